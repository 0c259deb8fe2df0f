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
	fabric_address word_address; /* shared mode: of meta */
	uint64_t meta;               /* shared mode: of the leaf, locked by this client; 0: it is not */
};

/* The local lock, of one leaf at a time.  SMART_INTERRUPTED, SMART_TIMEOUT: not locked. */
extern smart_status smart_lock_local(struct smart_tree *tree, smart_slot link);
/* The same if it is free at this moment; false: it is not, or locks cannot be tried. */
extern bool smart_try_lock_local(struct smart_tree *tree, smart_slot link);
extern void smart_unlock_local(struct smart_tree *tree);
/*
 * The local lock is held: reads the leaf.  In shared mode it waits as long as another compute node appends to the leaf;
 * *stuck: that one does not move, and the leaf is locked still.  An error: the local lock is let go.
 */
extern smart_status
smart_leaf_read_locked(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					   struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *good, bool *stuck);
/*
 * Takes the lock of the leaf, which is live, from the meta that was read; the node above it that is planned
 * (piggyback.h) is READ in the same batch.  *taken false: the leaf has changed since.
 */
extern smart_status
smart_leaf_take_shared(struct smart_tree *tree, struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *taken);

/* The same in shared mode; in exclusive mode the local lock is enough. */
static inline smart_status
smart_leaf_take(struct smart_tree *tree, struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *taken)
{
	*taken = !tree->options.shared;
	return *taken ? SMART_OK : smart_leaf_take_shared(tree, lock, leaf, taken);
}

/* Both locks, if both are held. */
extern smart_status smart_leaf_unlock(struct smart_tree *tree, struct smart_leaf_lock *lock);

#endif /* SMART_TREE_LOCK_H */
