/*
 * undo.h
 *	  What an insert writes down, so that its entry can be removed again if the server dies before the WAL of its
 *	  row is flushed (compute/recovery/undo.h); and what is durable in WAL.
 */
#ifndef SMART_AM_UNDO_H
#define SMART_AM_UNDO_H

#include "access/xlogdefs.h"
#include "utils/relcache.h"

#include "compute/client.h"
#include "compute/recovery/undo.h"

/*
 * Flushes all of WAL that any process has written up to now.  A removal in the region survives a crash at once, so
 * what allows it has to survive, too.
 */
extern void smart_wal_flush(void);

/*
 * WAL is durable up to here: the region is told before anything is forgotten or removed for that reason.  A data
 * directory whose WAL ends earlier is not the region's.
 */
extern void smart_wal_is_durable(XLogRecPtr end);

/*
 * Writes the record of an entry that is about to go into a tree, and sets its position.  others: the entry's row may
 * be of another transaction.  Does nothing where the row's table dies with the crash.  May flush WAL, and raise
 * errors; no lock of a leaf is held.  SMART_NO_SPACE, SMART_DISK_FULL: nothing was written, as there is no room; then the entry
 * must not go into the tree.
 */
extern smart_status smart_undo_write(Relation index, struct smart_undo *undo, bool others);

/* This backend ends and will insert nothing more. */
extern void smart_undo_end(void);

/* The transaction has ended.  A segment beyond the limit is released: another session may need it first. */
extern void smart_undo_at_transaction_end(void);

/*
 * After a crash: removes what was inserted for rows behind this position, and forgets all records.  *removed:
 * entries.  No other client may be at work.
 */
extern smart_status smart_undo_perform(struct smart_client *client, XLogRecPtr end, uint64 *removed);

#endif /* SMART_AM_UNDO_H */
