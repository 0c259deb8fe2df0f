/*
 * rdwc.h
 *	  Read delegation and write combining (RDWC; SMART, OSDI'23): clients of a compute node that want the same leaf of
 *	  a remote memory node at the same time share READs and appends.  src/README, Together, tells why that is right.
 *
 * Reads.  At most one READ of a leaf is in the air.  A client that comes while it is waits for its end; then one of the
 * clients that wait READs for all of them, and a client that comes meanwhile waits for the next READ.  So no client is
 * given a copy whose READ was posted before it asked.
 *
 * Updates of a value (src/tree/write/update.c) are shared as READs are, under the address of the value's word: what is
 * in the air is a CAS, and who is told of its end has nothing left to do.
 *
 * Writes.  A client that waits for a leaf's lock hands its entry in.  The client that gets the lock next appends all
 * entries that were handed in together with its own (src/tree/write/append.c), and tells each owner what became of its
 * entry.  Entries are a set: none replaces another.  An entry that does not fit, or does not belong into the leaf, is
 * given back, and its owner goes on as if nothing had been.  An owner may take its entry back as long as no client has
 * taken it; then it waits for the outcome.
 *
 * A client that fails to READ for others, or to append, tells them so, and they go on by themselves.  Whether a failed
 * append took effect is not known (a lost connection).  Then the owner tries again, and if it finds its key there it
 * says that it has added it: it was its own entry, or another client added the same key meanwhile.  If a client removed
 * the key in between, it has been added twice.  A server's entries carry the row's TID, which no other client adds, nor
 * removes as long as the insert has not come back.
 *
 * The table has a place for the hash of a leaf's address, used by one leaf at a time; a leaf whose place another leaf
 * uses is read and written as if there were no table.  Every client has a line, with room for the entry that it hands
 * in and for two copies that it READs for others.  An entry that is too long is not handed in, a leaf that is too long
 * is not copied.  A copy that a client has yet to take is not overwritten, and a client that waits for a third is told
 * to READ by itself.
 *
 * Progress: blocking with limits.  A wait ends with the batch of another client, which has a limit; at an interrupt; or
 * at timeout_ms.  The outcome of an entry that was taken is waited for in spite of interrupts, and for timeout_ms more.
 * Only a place's lock word, which is held for some instructions, is waited for without a limit, as a spinlock is.
 */
#ifndef SMART_COMPUTE_RDWC_H
#define SMART_COMPUTE_RDWC_H

#include <stddef.h>

#include "base/env.h"
#include "compute/coordinate/leaf_locks.h"
#include "tree/services.h"

#define SMART_RDWC_PLACES      4096
#define SMART_RDWC_ENTRY_BYTES 256  /* longest entry that is handed in */
#define SMART_RDWC_COPY_BYTES  1024 /* longest leaf that is copied for others */

struct smart_rdwc;

/* Sums over all clients since the start.  All members are uint64_t. */
struct smart_rdwc_counters
{
	uint64_t delegated_reads;  /* leaves that another client READ */
	uint64_t read_batches;     /* READs for other clients, too */
	uint64_t combined_entries; /* entries that were taken and added, or found to be there */
	uint64_t combined_batches; /* appends of others' entries, too */
	uint64_t waits;            /* for a READ, or for the lock with an entry handed in */
	uint64_t withdrawals;      /* entries that their owners took back, having got the lock or been interrupted */
	uint64_t refusals;         /* waits for nothing: no room for a copy; entries that were given back */
	uint64_t failures;         /* READs and appends that others had waited for and did not get */
};

#define SMART_RDWC_COUNTERS (sizeof(struct smart_rdwc_counters) / sizeof(uint64_t))

/* Memory for a table of so many places (a power of two) and clients, in bytes. */
extern size_t smart_rdwc_size(unsigned int places, unsigned int clients);

/* Makes it, in memory aligned to 128. */
extern void smart_rdwc_init(struct smart_rdwc *rdwc, unsigned int places, unsigned int clients);

extern void smart_rdwc_sum(const struct smart_rdwc *rdwc, struct smart_rdwc_counters *sum);

/* The caller: the client's number, its environment, and the limit of its waits. */
struct smart_rdwc_caller
{
	struct smart_rdwc *rdwc;
	struct smart_env *env;
	uint32_t client;
	uint32_t timeout_ms;
};

/* A client among those of its compute node, be it a server's or a simulated one. */
struct smart_rdwc_member
{
	struct smart_rdwc_caller caller; /* rdwc may be NULL: leaf locks only */
	struct smart_leaf_locks *locks;
	unsigned int (*lock_of)(fabric_address leaf); /* a number for smart_leaf_lock_take */
};

/*
 * Sets the services that lock leaves and, if there is a table, those of RDWC.  The member is the client's, and
 * outlives the services.
 */
extern void smart_rdwc_services_init(struct smart_services *services, struct smart_rdwc_member *member);

#endif /* SMART_COMPUTE_RDWC_H */
