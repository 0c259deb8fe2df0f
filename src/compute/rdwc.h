/*
 * rdwc.h
 *	  Read delegation and write combining (RDWC; SMART, OSDI'23): clients of a
 *	  compute node that want the same leaf of a remote memory node at the same time
 *	  share READs and appends.
 *
 * Reads.  At most one READ of a leaf is in the air.  Who comes while it is waits
 * for its end; then one of those who wait READs for all of them, and who comes
 * meanwhile waits for the next.  So nobody is given a copy whose READ was posted
 * before it asked.  (SMART lets a reader join a READ in the air.  That reader may
 * miss an entry whose insert ended before the reader began.)
 *
 * Writes.  Who waits for a leaf's lock hands its entry in.  Whoever gets the lock
 * next appends all that were handed in together with its own (src/tree/combine.c)
 * and tells each what became of it.  Entries are a set: none replaces another.
 * What does not fit, or does not belong into the leaf, is given back, and its
 * owner goes on as if nothing had been.  The owner may take it back as long as
 * nobody has taken it; then it waits for what comes of it.
 *
 * A client that fails to READ for others, or to append, tells them so, and they go
 * on by themselves.  Whether a failed append took effect is not known (a lost
 * connection).  Then the owner tries again by itself, and if it finds its key
 * there it says that it has added it: it was its own entry, or somebody else
 * added the same key meanwhile.  If somebody removed the key in between, it has been
 * added twice.  A server's entries carry the row's TID, which nobody else adds, nor
 * removes as long as the insert has not come back.
 *
 * The table has a place for the hash of a leaf's address, used by one leaf at a
 * time; a leaf whose place another one uses is read and written as if there were
 * no table.  Every client has a line, with room for the entry it hands in and for two
 * copies that it READs for others.  An entry that is too long is not handed in, a leaf
 * that is too long is not copied; a copy that somebody has yet to take is not
 * overwritten, and who waits for a third is told to READ by itself.
 *
 * Progress: blocking with limits.  A wait ends with the batch of another client,
 * which has a limit; at an interrupt; or at timeout_ms.  The outcome of an entry that was
 * taken is waited for in spite of interrupts, and for timeout_ms more.  Only a place's
 * lock word, which is held for some instructions, is waited for without a limit, as
 * a spinlock is.
 */
#ifndef SMART_COMPUTE_RDWC_H
#define SMART_COMPUTE_RDWC_H

#include <stddef.h>

#include "base/env.h"
#include "compute/leaf_locks.h"
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

/* Who calls: the client's number, its environment, and the limit of its waits. */
struct smart_rdwc_caller
{
	struct smart_rdwc *rdwc;
	struct smart_env *env;
	uint32_t client;
	uint32_t timeout_ms;
};

/* As the services of these names (tree/services.h). */
extern smart_status smart_rdwc_read_begin(const struct smart_rdwc_caller *caller, fabric_address leaf, uint8_t *buffer,
										  uint32_t length, enum smart_delegation *delegation);
extern void smart_rdwc_read_end(const struct smart_rdwc_caller *caller, const uint8_t *copy, uint32_t length);

extern smart_status
smart_rdwc_lock_or_combine(const struct smart_rdwc_caller *caller, struct smart_leaf_locks *locks, unsigned int lock,
						   fabric_address leaf, const struct smart_handed *entry, enum smart_combined *combined);
extern bool smart_rdwc_is_awaited(const struct smart_rdwc_caller *caller, fabric_address leaf);
extern unsigned int smart_rdwc_take(const struct smart_rdwc_caller *caller, fabric_address leaf, uint64_t tree,
									struct smart_handed *entries, unsigned int most);
extern void smart_rdwc_settle(const struct smart_rdwc_caller *caller, const struct smart_handed *entry,
							  enum smart_combined combined);

/* Did a client learn, up to now, that the outcome of an entry is unknown so many times?  For tests. */
extern uint64_t smart_rdwc_unknown(const struct smart_rdwc *rdwc, uint32_t client);

#endif /* SMART_COMPUTE_RDWC_H */
