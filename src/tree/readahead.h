/*
 * readahead.h
 *	  A walk over the leaves of a remote tree in order, many to a round trip.
 */
#ifndef SMART_TREE_READAHEAD_H
#define SMART_TREE_READAHEAD_H

#include "tree/internal.h"

#define SMART_READAHEAD_MAX    64
#define SMART_WINDOW_FRONT_MAX 8

/* Blocks that were read in one batch. */
struct smart_window
{
	uint32_t count;
	struct
	{
		smart_slot link; /* 0: used up */
		uint8_t *copy;   /* NULL: never used */
	} blocks[SMART_READAHEAD_MAX];
};

/*
 * READs what the slots lead to, at most SMART_READAHEAD_MAX blocks, in one batch, with at most SMART_WINDOW_FRONT_MAX
 * requests in front.
 */
extern smart_status
smart_window_read(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front,
				  int front_count, const smart_slot *slots, unsigned int count);
/* The copy of what link leads to, once; NULL: it is not there. */
extern uint8_t *smart_window_take(struct smart_window *window, smart_slot link);
extern void smart_window_done(struct smart_window *window, struct smart_env *env);

/* A window of one block, which was brought otherwise. */
extern smart_status
smart_window_put(struct smart_tree *tree, struct smart_window *window, smart_slot link, const uint8_t *bytes);
/* The same of a leaf that the search was brought by a memory node (offload.c), if it was. */
extern smart_status smart_offload_window(struct smart_tree *tree, smart_slot link, struct smart_window *window);
/* READs the leaves to which count keys lead, as the cache shows them, each once; level by level, with a batch for each. */
extern smart_status smart_points_read(struct smart_tree *tree, const struct smart_key *keys, unsigned int count,
									  struct smart_window *window);

struct smart_readahead;

extern smart_status smart_readahead_open(struct smart_tree *tree, struct smart_readahead **walk);
extern void smart_readahead_close(struct smart_readahead *walk);

/*
 * Starts a walk towards the bound to, whose bytes stay the caller's; to_length 0: none
 * is known, and the first leaf may be all that is wanted.
 */
extern void smart_readahead_start(struct smart_readahead *walk, const uint8_t *to, uint32_t to_length);

/*
 * READs the leaves of many keys, within an epoch.  They answer in this walk and in those that continue starts, until
 * start or forget is called.
 */
extern smart_status
smart_readahead_points(struct smart_readahead *walk, const struct smart_key *keys, unsigned int count);
/* As start, for a walk that may use the points' leaves. */
extern void smart_readahead_continue(struct smart_readahead *walk, const uint8_t *to, uint32_t to_length);

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
