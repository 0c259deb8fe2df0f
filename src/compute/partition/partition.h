/*
 * partition.h
 *	  An index in ranges of keys, each a tree of its own, which one compute node owns at a time (src/README, Partitions).
 *
 * A table in remote memory says where the ranges begin, which trees they are, and who owns them.  A compute node has a
 * copy in memory that its clients share, routes by it, and opens the trees of its own ranges in exclusive mode: within
 * a turn, which smart_partition_enter begins.  What is sent to owners, and how, is up to the caller.
 *
 * Sources: DEX (VLDB'24), section 4, for logical partitions.  That owners may die, and that what an owner has answered for
 * is in remote memory, is ours.
 */
#ifndef SMART_COMPUTE_PARTITION_H
#define SMART_COMPUTE_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"
#include "rdma/fabric.h"

#define SMART_RANGES_MAX      4096
#define SMART_RANGE_BOUND_MAX 39 /* bytes */
#define SMART_OWNER_NONE      0

/* A range as the index is made.  No two have a tree in common, and each tree is empty, or has keys of its range only. */
struct smart_range
{
	uint64_t tree; /* id */
	fabric_address root;
	uint8_t bound_length; /* of the first range: 0 */
	uint8_t bound[SMART_RANGE_BOUND_MAX];
};

struct smart_partition;

/* Bytes of the table in remote memory, and of a compute node's copy. */
extern size_t smart_partition_table_bytes(unsigned int ranges);
extern size_t smart_partition_size(unsigned int ranges, unsigned int clients);

/*
 * Bytes of upper that a bound needs which is above lower and not above upper: the least number that tells them apart.
 * lower sorts before upper, and is not what upper begins with.  0: more than a bound can have.
 */
extern unsigned int
smart_range_bound(const uint8_t *lower, size_t lower_length, const uint8_t *upper, size_t upper_length);

/* Writes a table whose ranges nobody owns; their bounds ascend.  SMART_UNSORTED, and the errors of a batch. */
extern smart_status smart_partition_create(struct fabric *fabric, fabric_address table,
										   const struct smart_range *ranges, unsigned int count);

/*
 * READs the table into memory of smart_partition_size() bytes, which the compute node's clients, numbered below clients,
 * share.  owner: the compute node's number, not 0; a number is never used twice, so one that starts again has another.
 * SMART_CORRUPT: there is no table, or one of another number of ranges.
 */
extern smart_status smart_partition_open(struct smart_partition *partition, struct fabric *fabric, fabric_address table,
										 unsigned int ranges, unsigned int clients, uint32_t owner);

/* ---- routing ---- */

/* The range that a key lies in: the last one whose bound is not above it. */
extern unsigned int smart_partition_find(const struct smart_partition *partition, const uint8_t *key, size_t length);
extern unsigned int smart_partition_ranges(const struct smart_partition *partition);
extern const struct smart_range *smart_partition_range(const struct smart_partition *partition, unsigned int range);

/* Who owns a range now, by a READ; *tenure: how often it has changed hands. */
extern smart_status smart_partition_owner(const struct smart_partition *partition, struct fabric *fabric,
										  unsigned int range, uint32_t *owner, uint32_t *tenure);

/* ---- turns ---- */

/*
 * Begins a turn: until smart_partition_leave the range stays this compute node's, and its tree may be used with this
 * tenure.  False: the range is not, or not any more.  A client has one turn at a time.  Wait-free.
 */
extern bool
smart_partition_enter(struct smart_partition *partition, unsigned int client, unsigned int range, uint64_t *tenure);
extern void smart_partition_leave(struct smart_partition *partition, unsigned int client);

/* ---- owners ---- */

/*
 * What is done between tenures where owners have logs (changes.h, L3, L4); the table keeps whose log counts.  settle: into the
 * range's tree comes what the log of an owner, of a tenure, has of it; now: the tenure in which that is done.  flush: all
 * that this compute node's log has of the range is in the tree.
 */
struct smart_handover
{
	smart_status (*settle)(void *argument, unsigned int range, uint32_t owner, uint32_t tenure, uint32_t now);
	smart_status (*flush)(void *argument, unsigned int range, uint32_t tenure);
	void *argument;
};

/*
 * Makes the range this compute node's if it has been given to it, or if `fenced` owns it, who is SMART_OWNER_NONE or has
 * died: its connections to all memory nodes are closed, as they are when these have granted a later lease.  *mine: it is.
 * Otherwise nothing has happened, or another client of the compute node is about it.  handover: NULL where there are no
 * logs.  After an error, also of settle, the range may have become this compute node's; no turn begins before it has been
 * taken again.
 */
extern smart_status smart_partition_take(struct smart_partition *partition, struct fabric *fabric, unsigned int range,
										 uint32_t fenced, const struct smart_handover *handover, bool *mine);

/*
 * Gives a range of this compute node to another owner, by a client that is in no turn: no turn begins any more, those that
 * are under way end, and the owner's word changes.  SMART_STALE: the range was not this compute node's.  SMART_INTERRUPTED
 * and SMART_TIMEOUT, when a turn has lasted timeout_ms: it still is.  An error of the batch, or of flush: that is not known,
 * and smart_partition_take tells.
 */
extern smart_status
smart_partition_give(struct smart_partition *partition, struct fabric *fabric, struct smart_env *env,
					 unsigned int range, uint32_t to, uint32_t timeout_ms, const struct smart_handover *handover);

#endif /* SMART_COMPUTE_PARTITION_H */
