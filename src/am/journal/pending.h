/*
 * pending.h
 *	  Pending adds: entries of this backend that wait to go into their trees together.
 *
 * To everybody else a pending add is an aminsert that has not come that far yet (src/README, J12).  So it is written
 * out before something looks for it that may know of its row: a scan by this backend, the end of its statement, the commit.
 */
#ifndef SMART_AM_PENDING_H
#define SMART_AM_PENDING_H

#include "utils/relcache.h"
#include "utils/snapshot.h"

struct smart_pending_add
{
	SubTransactionId subtransaction; /* that inserted the row */
	uint16 key_length;
	uint16 length; /* with the entry behind it a record of base/sort.h */
	uint8 entry[FLEXIBLE_ARRAY_MEMBER];
};

/* Adds entries, in any order, to the index's tree and its journal, some perhaps once more.  May change their order. */
typedef void (*smart_pending_writer)(Relation index, const struct smart_pending_add **adds, uint32 count);

/* Sets what this process does around statements.  Once, from _PG_init, after smart_staging_init(). */
extern void smart_pending_init(smart_pending_writer writer);

/*
 * Is a statement under way whose entries may wait?  Not one that withdraws rows of its own (ON CONFLICT): another
 * process may take such a row's place as soon as it is gone.
 */
extern bool smart_pending_is_open(void);

/* Keeps an entry of a row that this statement has inserted, and writes the index's out if there are many. */
extern void smart_pending_add(Relation index, const uint8 *entry, int key_length, int length);

/* Writes all of them out. */
extern void smart_pending_write_out(void);

/* The same with those of an index before it is scanned with this snapshot, if that may see one of their rows. */
extern void smart_pending_before_scan(Relation index, Snapshot snapshot);

#endif /* SMART_AM_PENDING_H */
