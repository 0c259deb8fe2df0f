/*
 * log.h
 *	  The log of a compute node that owns ranges: what its clients have changed, in remote memory, ahead of the trees
 *	  (src/README, Log).
 *
 * A ring of frames.  A frame is what one WRITE brings: the records of all clients that waited for it.  Positions count the
 * bytes from the log's beginning, and never fall; a position's place in the ring is what is left of it modulo the ring's
 * size.  The compute node has an image of the ring in memory that its clients share.
 *
 * Source: group commit and write-ahead logging are the databases' (DeWitt et al., SIGMOD'84; ARIES, TODS'92).
 */
#ifndef SMART_COMPUTE_PARTITION_LOG_H
#define SMART_COMPUTE_PARTITION_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/status.h"
#include "rdma/fabric.h"

#define SMART_LOG_COPIES_MAX  2
#define SMART_LOG_FLIGHTS_MAX 16
#define SMART_LOG_HEAD_BYTES  64 /* of remote memory, ahead of the ring */
#define SMART_LOG_ALIGN       16 /* of records */
#define SMART_LOG_BYTES_MIN   512

/* Where a log lies. */
struct smart_log_place
{
	fabric_address address[SMART_LOG_COPIES_MAX]; /* of a multiple of 64 each, SMART_LOG_HEAD_BYTES and the ring */
	unsigned int copies;                          /* on different memory nodes */
	uint32_t bytes;                               /* of the ring, a multiple of 64 */
	uint32_t owner;                               /* whose it is; no number is used twice (P1) */
};

enum smart_log_kind
{
	SMART_LOG_PUT = 1, /* the entry is there from here on, instead of another one of its key */
	SMART_LOG_REMOVE   /* no entry has this key; the entry is the key */
};

/* A record; the entry follows, and zeros up to a multiple of SMART_LOG_ALIGN. */
struct smart_log_record
{
	uint32_t range;
	uint32_t tenure;
	uint16_t key_length;
	uint16_t length; /* of the entry */
	uint8_t kind;    /* enum smart_log_kind */
	uint8_t unused[3];
};

_Static_assert(sizeof(struct smart_log_record) == SMART_LOG_ALIGN, "entries behind records are aligned as they are");

static inline const uint8_t *
smart_log_entry(const struct smart_log_record *record)
{
	return (const uint8_t *) (record + 1);
}

struct smart_log;

/* Bytes of the shared memory. */
extern size_t smart_log_size(uint32_t ring_bytes);

/*
 * Makes an empty log in shared memory and at its place.  flights: WRITEs at a time, at most; what comes meanwhile waits for
 * the next one.  The errors of a batch.
 */
extern smart_status
smart_log_open(struct smart_log *log, struct fabric *fabric, const struct smart_log_place *place, unsigned int flights);

/*
 * Appends a record to the image; *start, *end: its positions; *frame: that of its frame's beginning.  False: there is no room.
 * Blocked by who holds the log's local lock, for a few loads and stores, as are all others but read.
 */
extern bool smart_log_append(struct smart_log *log, struct smart_env *env, const struct smart_log_record *record,
							 const uint8_t *entry, uint64_t *start, uint64_t *end, uint64_t *frame);

/*
 * Returns when all records in front of a position are durable: WRITES them, or waits until others have.  An error of a batch,
 * SMART_INTERRUPTED, SMART_TIMEOUT: they are in the log, or come there, or not.
 */
extern smart_status smart_log_commit(struct smart_log *log, struct fabric *fabric, struct smart_env *env, uint64_t end,
									 uint32_t timeout_ms);

/* Up to where all records are durable; always a frame's end. */
extern uint64_t smart_log_durable(const struct smart_log *log);

/* Where the next record comes. */
extern uint64_t smart_log_tail(const struct smart_log *log);
/* Bytes that are in use, of how many. */
extern uint64_t smart_log_used(const struct smart_log *log);
extern uint32_t smart_log_bytes(const struct smart_log *log);

/* The record at a position that is in use. */
extern const struct smart_log_record *smart_log_at(const struct smart_log *log, uint64_t position);

/*
 * The space in front of a frame's beginning, or of the durable end, is free.  If another client is about that, it goes on
 * with what this one frees.  The errors of a batch: it is not free.
 */
extern smart_status
smart_log_release(struct smart_log *log, struct fabric *fabric, struct smart_env *env, uint64_t position);

/*
 * All records of a log whose owner changes it no more, in their order, from one of its copies.  They lie in memory of the
 * caller's env, *image, which the caller releases, whatever visit and this return.  An error of visit ends it.
 */
typedef smart_status (*smart_log_visit_fn)(void *argument, const struct smart_log_record *record);

extern smart_status smart_log_read(const struct smart_log_place *place, struct fabric *fabric, struct smart_env *env,
								   uint8_t **image, smart_log_visit_fn visit, void *argument);

#endif /* SMART_COMPUTE_PARTITION_LOG_H */
