/*
 * hold.h
 *	  Vacuum interlock holds that end with their resource owner.
 */
#ifndef SMART_AM_HOLD_H
#define SMART_AM_HOLD_H

#include "postgres.h"

#include "utils/relcache.h"

/* A hold, or none if serial is 0. */
struct smart_hold_ticket
{
	uint32 place;
	uint32 serial;
};

/*
 * Holds a tree: TIDs read from it afterwards are not given to other rows by
 * VACUUM before the hold ends.  It ends with smart_hold_leave() or with
 * CurrentResourceOwner, whichever comes first.
 */
extern struct smart_hold_ticket smart_hold_enter(uint64 tree);

/* Ends a hold; nothing if there is none or its owner has ended it.  Clears the ticket. */
extern void smart_hold_leave(struct smart_hold_ticket *ticket);

/*
 * Waits until all holds of the tree that were entered before now have ended.  After a
 * second the log says that what (a phrase before "index") waits for whom.  Interruptible.
 */
extern void smart_hold_wait(Relation index, uint64 tree, const char *what, const char *whom);

/* Does anybody wait for holds to end? */
extern bool smart_hold_wanted(void);

#endif /* SMART_AM_HOLD_H */
