/*
 * opened.h
 *	  An index and its table, as what works in the background opens them: it waits for no lock, and gives way to others.
 */
#ifndef SMART_AM_OPENED_H
#define SMART_AM_OPENED_H

#include "storage/lockdefs.h"
#include "utils/relcache.h"

struct smart_opened
{
	Relation heap;
	Relation index;
};

enum smart_opening
{
	SMART_OPENED,
	SMART_OPENING_GONE,  /* or it is not of this access method */
	SMART_OPENING_LOCKED /* by another session, which keeps one of the locks out */
};

/* Opens an index and its table with these locks.  Nothing is open unless it returns SMART_OPENED. */
extern enum smart_opening
smart_try_open(Oid index, LOCKMODE heap_lock, LOCKMODE index_lock, struct smart_opened *opened);

/* The same; false: they have gone.  LOCK_NOT_AVAILABLE: one of them is locked. */
extern bool smart_open_conditionally(Oid index, LOCKMODE heap_lock, LOCKMODE index_lock, struct smart_opened *opened);

/* Closes both; the locks go with the transaction. */
extern void smart_opened_close(const struct smart_opened *opened);

/*
 * Does a session wait for a lock on either that conflicts with this one, or for this transaction to end?  Lets go of the snapshot that the catalogs were read
 * with: it would keep VACUUM from removing and freezing rows, and recovery waiting.
 */
extern bool smart_opened_is_awaited(const struct smart_opened *opened, LOCKMODE lock);

/* Serves interrupts.  LOCK_NOT_AVAILABLE if a session waits so; work: whose the message is. */
extern void smart_opened_give_way(const struct smart_opened *opened, LOCKMODE lock, const char *work);

#endif /* SMART_AM_OPENED_H */
