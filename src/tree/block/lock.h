/*
 * lock.h
 *	  The lock of a leaf.
 */
#ifndef SMART_TREE_LOCK_H
#define SMART_TREE_LOCK_H

#include "tree/block/handle.h"

struct smart_leaf_lock
{
	fabric_address leaf;
	fabric_address word_address; /* shared mode */
	uint64_t word;               /* shared mode: what this client stored; 0: none */
};

/* The local lock, of one leaf at a time.  SMART_INTERRUPTED, SMART_TIMEOUT: not locked. */
extern smart_status smart_lock_local(struct smart_tree *tree, smart_slot link);
extern void smart_unlock_local(struct smart_tree *tree);
/*
 * The local lock is held: takes the rear lock, too, in shared mode, and reads the leaf, in one batch.  *locked false:
 * another compute node holds it, and the local lock is let go.  So it is if there is an error.
 */
extern smart_status
smart_leaf_read_locked(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					   struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *locked, bool *good);
/* Both locks. */
extern smart_status smart_leaf_unlock(struct smart_tree *tree, struct smart_leaf_lock *lock);

#endif /* SMART_TREE_LOCK_H */
