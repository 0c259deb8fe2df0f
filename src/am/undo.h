/*
 * undo.h
 *	  What an insert writes down, so that its entry can be removed again if the
 *	  server dies before the WAL of its row is flushed (compute/undo.h).
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_UNDO_H
#define SMART_AM_UNDO_H

#include "access/xlogdefs.h"

#include "am/am.h"
#include "compute/client.h"

/*
 * To be called before an entry goes into the tree of self.  others: its row may be of another transaction.  Nothing
 * where the row's table dies with the crash.  May flush WAL, and raise errors; no lock of a leaf is held.
 */
extern void
smart_undo_note(const struct smart_relation *self, Relation index, const uint8 *entry, int key_length, bool others);

/* This backend ends and will insert nothing more. */
extern void smart_undo_end(void);

/*
 * After a crash: removes what was inserted for rows behind this position, and forgets all records.  *removed: entries.
 * With nobody at work but this client.
 */
extern smart_status smart_undo_perform(struct smart_client *client, XLogRecPtr end, uint64 *removed);

#endif /* SMART_AM_UNDO_H */
