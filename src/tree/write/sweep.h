/*
 * sweep.h
 *	  Bulk delete by pointers.
 */
#ifndef SMART_TREE_SWEEP_H
#define SMART_TREE_SWEEP_H

#include "tree/block/cursor.h"
#include "tree/block/handle.h"

/* A sweep over the leaves of a tree, in key order. */
struct smart_sweep
{
	struct smart_tree *tree;
	const struct smart_victims *victims;
	uint8_t *entry;               /* SMART_KEY_MAX + SMART_ENTRY_MAX: the whole bytes of an entry */
	struct smart_ancestor parent; /* the node of the last leaf, if the cursor is still below it; words NULL: none */
	bool in_gap;                  /* the last step has met no leaf */
	/* The node below which leaves have become smaller, and has to be looked at when the sweep leaves it. */
	bool untidy;
	unsigned int tidy_depth;
	uint8_t tidy[SMART_KEY_MAX + 1]; /* a key below it, up to its byte there */
	/* What was found in a leaf: */
	uint32_t visited; /* entries in range */
	uint32_t dead;    /* those that are to go */
	uint32_t count;   /* of at[]: the dead ones and, when they are removed, what lies out of range */
	uint16_t at[SMART_LEAF_BYTES_MAX / 2]; /* their offsets */
};

/* Is somebody told of them, and nothing removed? */
static inline bool
smart_victims_stay(const struct smart_victims *victims)
{
	return victims->found != NULL && !victims->at_once;
}

/* entry: memory of the caller's for SMART_KEY_MAX + SMART_ENTRY_MAX bytes. */
extern void smart_sweep_begin(struct smart_sweep *sweep, struct smart_tree *tree, const struct smart_victims *victims,
							  uint8_t *entry);

/*
 * One step, within an epoch: the leaf, or empty range, that covers the cursor.  What is to go there is told, or removed.
 * *done: the cursor has moved behind it, and visited and dead have been counted.  Else nothing has happened: something is
 * being changed there, or finds no room, and a strict step is due.
 */
extern smart_status smart_sweep_step(struct smart_sweep *sweep, struct smart_cursor *cursor, bool *done);

/* The same for the leaf that covers a key which is to go: all that is to go there is removed. */
extern smart_status smart_sweep_remove(struct smart_sweep *sweep, struct smart_cursor *cursor, bool *done);

/* Another's step moves the cursor. */
static inline void
smart_sweep_lose(struct smart_sweep *sweep)
{
	if (!SMART_FAULT(keptparent))
		sweep->parent.words = NULL;
}

/* The cursor, behind the leaf that was looked at last, is going to be at another key. */
extern void smart_sweep_go(struct smart_sweep *sweep, struct smart_cursor *cursor, const uint8_t *key, size_t length);

/*
 * Before a step, within no operation: if the sweep leaves the node where it has removed entries, what became small there
 * is merged.  next: where the step begins; NULL: the sweep is over.
 */
extern smart_status smart_sweep_tidy(struct smart_sweep *sweep, const struct smart_key *next);

#endif /* SMART_TREE_SWEEP_H */
