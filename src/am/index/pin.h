/*
 * pin.h
 *	  Vacuum pins that end with their resource owner.
 */
#ifndef SMART_AM_PIN_H
#define SMART_AM_PIN_H

#include "utils/relcache.h"

/* A pin, or none if serial is 0. */
struct smart_pin_ticket
{
	uint32 place;
	uint32 serial;
};

/*
 * Pins a tree: VACUUM does not give TIDs that are read from it afterwards to other rows before the pin ends.  It ends
 * with smart_pin_leave() or with CurrentResourceOwner, whichever comes first.
 */
extern struct smart_pin_ticket smart_pin_enter(uint64 tree);

/* Ends a pin; nothing if there is none or its owner has ended it.  Clears the ticket. */
extern void smart_pin_leave(struct smart_pin_ticket *ticket);

/*
 * Waits until all pins of the tree that were entered before now have ended.  After a second the log says that what (a
 * phrase before "index") waits for whom.  Interruptible.
 */
extern void smart_pin_wait(Relation index, uint64 tree, const char *what, const char *whom);

/* Has any process pinned a tree?  One that nobody can find any more is not pinned later. */
extern bool smart_pin_is_held(uint64 tree);

/* A moment, and whether all pins of a tree have ended that were entered before. */
extern uint64 smart_pin_moment(void);
extern bool smart_pin_is_over(uint64 tree, uint64 moment);

/* Does any process wait for pins to end? */
extern bool smart_pin_wanted(void);

#endif /* SMART_AM_PIN_H */
