/*
 * readahead.h
 *	  A walk over the leaves of a remote tree in order, many to a round trip.
 */
#ifndef SMART_TREE_READAHEAD_H
#define SMART_TREE_READAHEAD_H

#include "tree/block/cursor.h"
#include "tree/find/window.h"

struct smart_readahead;

extern smart_status smart_readahead_open(struct smart_tree *tree, struct smart_readahead **walk);
extern void smart_readahead_close(struct smart_readahead *walk);

/*
 * Starts a walk towards the bound to, whose bytes stay the caller's; to_length 0: none
 * is known, and the first leaf may be all that is wanted.  keep_points: the walk may use the leaves of
 * smart_readahead_points.
 */
extern void
smart_readahead_start(struct smart_readahead *walk, const uint8_t *to, uint32_t to_length, bool keep_points);

/*
 * READs the leaves of many keys, within an epoch.  They serve this walk and those that keep the points, until forget is
 * called, or start without keep_points.
 */
extern smart_status
smart_readahead_points(struct smart_readahead *walk, const struct smart_key *keys, unsigned int count);

/* Forgets the leaves that were read ahead. */
extern void smart_readahead_forget(struct smart_readahead *walk);

/* The walk's owner has changed the leaf at the cursor: it is looked for strictly. */
extern void smart_readahead_changed(struct smart_readahead *walk);

/*
 * The leaf that answers for the cursor, up to byte *limit of its depth; place->kind
 * tells if there is none, and where that ends (smart_cursor_skip).  Within an
 * epoch.  The leaf's bytes are good until the next call.
 */
extern smart_status smart_readahead_find(struct smart_readahead *walk, const struct smart_cursor *cursor,
										 struct smart_place *place, struct smart_leaf *leaf, unsigned int *limit);

#endif /* SMART_TREE_READAHEAD_H */
