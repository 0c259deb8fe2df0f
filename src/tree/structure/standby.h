/*
 * standby.h
 *	  A removal's block where there is no room.
 */
#ifndef SMART_TREE_STANDBY_H
#define SMART_TREE_STANDBY_H

#include "tree/block/handle.h"

/* Makes the leaf's copy, of tree->list, in the standby's block, if that is ready and long enough; else failure. */
extern smart_status smart_standby_build(struct smart_tree *tree, const struct smart_key *key,
										const struct smart_leaf *leaf, smart_slot *copy, smart_status failure);
/*
 * The copy has taken the old leaf's place, whose block becomes the standby's, or is retired.  True: the copy was made
 * sealed, and there is nothing to activate.
 */
extern bool smart_standby_swap(struct smart_tree *tree, smart_slot old, smart_slot copy);
/* The copy did not come about.  status: of the CAS. */
extern void smart_standby_lost(struct smart_tree *tree, smart_status status, smart_slot copy);

/*
 * An attempt of a removal came to failure, for want of room.  Sees to it that there is a standby for another attempt;
 * ends the operation, and begins it again.  SMART_OK; SMART_INTERRUPTED; failure: nothing can be done about it.
 */
extern smart_status smart_standby_renew(struct smart_tree *tree, smart_status failure);
/*
 * The removal is over.  The leaf that lies in the standby's former place, for the caller to put a copy in its place, which
 * finds room in the standby; 0: there is none, or that has to be left to others.  Ends the operation, and begins it again.
 */
extern smart_slot smart_standby_unpark(struct smart_tree *tree);
/* Gives the standby back.  Within no operation. */
extern void smart_standby_release(struct smart_tree *tree);

#endif /* SMART_TREE_STANDBY_H */
