/*
 * staging.h
 *	  Staging areas: adds of one backend that are in the tree, but not in the chain yet.
 *
 * A transaction's adds go into few records that way.  They are written out before its commit record; before a process
 * journals a removal from the index, or opens a tree for reads; and before a statement that may give the index's file
 * to another purpose.
 */
#ifndef SMART_AM_JOURNAL_STAGING_H
#define SMART_AM_JOURNAL_STAGING_H

#include "utils/relcache.h"

#include "am/index/meta.h"

struct smart_pending_add;

/* Asks the server for memory and locks (shmem_request_hook), and makes the areas (shmem_startup_hook). */
extern void smart_staging_request(void);
extern void smart_staging_make(void);

/* Sets what this process does before utility commands.  Once, from _PG_init. */
extern void smart_staging_init(void);

/*
 * Journals the add of an entry, which the index's tree has by now: into this backend's area, or straight into the chain
 * (chain.h) if that is about to be too late.  changes, and the result: as smart_chain_add().  The caller has an
 * inserter's lock of the index, which is kept to the end of the transaction.  subtransaction: that inserted the row.
 * hash: of the entry's key, if there may be checks for that, and the caller has locked the key (key_locks.h); else 0.
 * Errors: as smart_chain_add().
 */
extern bool smart_staging_add(Relation index, struct smart_tail *tail, uint32 changes, const uint8 *entry, int length,
							  SubTransactionId subtransaction, uint32 hash);

/* The same of adds that waited (pending.h); returns how many have been journaled: the first ones, all unless trees have changed. */
extern uint32 smart_staging_add_many(Relation index, struct smart_tail *tail, uint32 changes,
									 const struct smart_pending_add **adds, uint32 count);

/*
 * Writes out what all areas have of an index.  settled: what the caller is about to do concerns adds alone that were staged
 * before it learned of their rows, so areas that look empty need not be locked.  The caller has an inserter's lock of the
 * index.  Errors as above.
 */
extern void smart_staging_write_out(Relation index, struct smart_tail *tail, bool settled);

/*
 * Writes out the areas that have an add of this key of a unique index.  Who has to know of all has locked the key.  Errors as above.
 */
struct smart_staged_key
{
	uint32 hash; /* as for smart_staging_add() */
	uint32 length;
	const uint8 *bytes;
};

extern void smart_staging_write_out_key(Relation index, struct smart_tail *tail, const struct smart_staged_key *key);

/* Writes out all that this backend has staged: for who reads chains.  Errors as above. */
extern void smart_staging_write_out_own(void);

/* The file of an index gets a new content, in this transaction: what this backend's area has of it is of no use. */
extern void smart_staging_discard(Relation index);

#endif /* SMART_AM_JOURNAL_STAGING_H */
