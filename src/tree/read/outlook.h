/*
 * outlook.h
 *	  What a walk on a remote provider will come to, as far as nodes tell that it knows.
 *
 * Leaves in the walk's direction: hints, which prove themselves later.  And behind them nodes that are not known, whose
 * leaves are those of the next windows.  What has to be READ for that, and to show gaps between the leaves, is wanted
 * of the route (route.h), whose next batch brings it.
 */
#ifndef SMART_TREE_OUTLOOK_H
#define SMART_TREE_OUTLOOK_H

#include "tree/block/cursor.h"
#include "tree/find/window.h"
#include "tree/read/route.h"

struct smart_outlook
{
	struct smart_route *route;
	uint32_t to_length;
	const uint8_t *to;       /* the end, in the walk's direction */
	unsigned int cold;       /* for so many windows it looks for nodes that are not known */
	unsigned int leaves;     /* that it has seen, */
	unsigned int nodes;      /* and nodes that lead to them */
	struct smart_cursor at;  /* as far as it has looked */
	struct smart_cursor end; /* as far as the last window reaches */
};

/* One look, for a window of so many leaves at most. */
struct smart_look
{
	smart_slot slots[SMART_WINDOW_MAX];
	unsigned int count;
	unsigned int most;
	unsigned int behind; /* leaves behind those: that known nodes lead to, and that others may be expected to lead to */
	unsigned int reach;  /* leaves in all that are looked for, where nodes are met that are not known */
	bool full;           /* no more slots: there are enough, or a node is not known */
	bool done;           /* the end of the walk has been seen, or as much as is looked for */
};

/* The route outlives it.  SMART_NO_MEMORY: it has to be done all the same. */
extern smart_status smart_outlook_init(struct smart_outlook *outlook, struct smart_route *route);
extern void smart_outlook_done(struct smart_outlook *outlook, struct smart_env *env);
/* A walk begins, towards the bound to, whose bytes stay the caller's; to_length 0: none is known. */
extern void smart_outlook_start(struct smart_outlook *outlook, const uint8_t *to, uint32_t to_length);
/* Its first leaf is this node's. */
extern void smart_outlook_begin(struct smart_outlook *outlook, const struct smart_node *node);
/* It has come to a node that is not known: it looks for others for a while. */
extern void smart_outlook_missed(struct smart_outlook *outlook);
/* It looks for the leaves of another window. */
extern void smart_outlook_window(struct smart_outlook *outlook);

/*
 * Looks for leaves from the leaf of place on, where the cursor stands: first in place's node, if there is one, then in those that follow.
 * Errors of the cursor.
 */
extern smart_status smart_outlook_from_leaf(struct smart_outlook *outlook, const struct smart_cursor *cursor,
											const struct smart_place *place, struct smart_look *look);
/* The same from the cursor on; and behind the last window, if that was full. */
extern smart_status
smart_outlook_from(struct smart_outlook *outlook, const struct smart_cursor *cursor, struct smart_look *look);
extern smart_status smart_outlook_behind(struct smart_outlook *outlook, struct smart_look *look);

#endif /* SMART_TREE_OUTLOOK_H */
