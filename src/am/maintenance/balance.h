/*
 * balance.h
 *	  Which trees have to move so that memory nodes become equally full.
 */
#ifndef SMART_AM_BALANCE_H
#define SMART_AM_BALANCE_H

#include "am/index/backend.h"

/*
 * Chooses trees so that, when they have been moved, no memory node that is open is much fuller than the others; those that
 * were chosen before, and are not needed for that, stay where they are.  Returns how many.
 */
extern uint64 smart_balance_choose(struct smart_space *space);

/* No tree is chosen any more. */
extern void smart_balance_forget(struct smart_space *space);

#endif /* SMART_AM_BALANCE_H */
