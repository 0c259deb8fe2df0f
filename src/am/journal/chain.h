/*
 * chain.h
 *	  The chain of log pages: appending operations to its tail.
 *
 * For each entry the operations stand in the chain, and in WAL, in the order in which they happened, so that the last
 * one wins for a standby and for loading alike.
 */
#ifndef SMART_AM_JOURNAL_CHAIN_H
#define SMART_AM_JOURNAL_CHAIN_H

#include "storage/buf.h"

#include "am/index/meta.h"
#include "am/journal/batches.h"
#include "am/journal/free.h"
#include "am/journal/page.h"

/* Entries, or keys, one behind the other: item i lies from start[i] to start[i + 1]. */
struct smart_entries
{
	const uint8 *bytes;
	const uint32 *start;
	uint32 count;
};

/*
 * Appends the add of an entry, which the index's tree has by now.  changes: what smart_changes() was when the caller
 * looked for the tree.  False: nothing was appended, since a tree was opened for adds, given up or replaced in the
 * meantime; the caller looks for the tree again and puts the entry there first.  So an add that comes behind the end
 * that a loader has read is in the loader's tree already.
 *
 * The caller has an inserter's lock of the index.  Errors: as smart_page_take(); those of WAL.
 */
extern bool smart_chain_add(Relation index, struct smart_tail *tail, uint32 changes, const uint8 *entry, int length);

/*
 * Appends adds whose entries the index's tree has, whatever becomes of it; returns how many.  *spare: a free page, locked
 * (smart_page_take), which is used if one is needed, and InvalidBuffer then; no other page is taken, so that there may be
 * some left.  Errors as above.
 */
extern uint32
smart_chain_add_all(Relation index, struct smart_tail *tail, Buffer *spare, const struct smart_entries *entries);

/* Bytes that the tail has room for now. */
extern Size smart_chain_room(Relation index, struct smart_tail *tail);

/*
 * Appends a batch of removals, whose head is set.  A page that is needed is one of the reserve, if that has any.  The
 * caller is the only remover (lock.h).  Errors as above.
 */
extern void smart_chain_remove_batch(Relation index, struct smart_tail *tail, struct smart_reserve *reserve,
									 const struct smart_packed *packed);

/*
 * The same for all batches; *done counts those that are in the chain, also after an error.  None is if there is no room
 * on disk for all, unless another process takes that room meanwhile.
 */
extern void
smart_chain_remove(Relation index, struct smart_tail *tail, const struct smart_batches *batches, volatile uint32 *done);

/*
 * Where the chain ends now, as its tail's lock tells: what is appended later stands there or behind.  A chain that has no
 * page gets its first one.  The caller has an inserter's lock of the index.  Errors as above.
 */
extern void smart_chain_end(Relation index, struct smart_tail *tail, struct smart_chain_place *end);

#endif /* SMART_AM_JOURNAL_CHAIN_H */
