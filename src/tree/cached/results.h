/*
 * results.h
 *	  Cached results: what an equality prefix has, from the compute node's memory.
 *
 * Nothing of this is called unless tree->results is set.  A point is an equality prefix.
 */
#ifndef SMART_TREE_RESULTS_H
#define SMART_TREE_RESULTS_H

#include "tree/block/handle.h"

#define SMART_VERSION_NONE UINT32_MAX

/* Length of the point of bytes that begin with a key; 0: it is too long for a cached result. */
extern unsigned int smart_point_of(const struct smart_tree *tree, const uint8_t *bytes, size_t length);
/*
 * Keeps what a leaf says about a point, if it is all, and fits.  A2: the leaf is live and covers the point's byte, and was READ
 * after the ticket was given.  Nothing is kept if the point reaches no further than the leaf, since other leaves may
 * hold entries of it, too.
 */
extern void smart_keep_result(struct smart_tree *tree, const struct smart_key *point, const struct smart_leaf *leaf,
							  struct smart_result *cached);
/* Is the key, which begins with the result's point, among the entries? */
extern bool
smart_result_contains(const struct smart_result *cached, const struct smart_key *key, unsigned int point_length);
/* A1: blocks the point of an entry, or of a key, that is about to come or go.  What unblock wants. */
extern struct smart_blocked smart_block(struct smart_tree *tree, const uint8_t *bytes, size_t length);
/* The change has taken effect, or no READ from here on can miss it (A3).  What blocks nothing may be unblocked, too. */
extern void smart_unblock(struct smart_tree *tree, const struct smart_blocked *blocked);

#endif /* SMART_TREE_RESULTS_H */
