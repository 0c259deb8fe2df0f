/*
 * overwrite.h
 *	  Updates in exclusive mode: a value is changed by a WRITE (V5).
 */
#ifndef SMART_TREE_OVERWRITE_H
#define SMART_TREE_OVERWRITE_H

#include "tree/block/handle.h"

/* Within an epoch.  The key's value becomes this word, if the key is there. */
extern smart_status smart_overwrite(struct smart_tree *tree, const struct smart_key *key, uint64_t word, bool *found);

#endif /* SMART_TREE_OVERWRITE_H */
