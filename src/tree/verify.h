/*
 * verify.h
 *	  The state of a walk through a whole tree.
 */
#ifndef SMART_TREE_VERIFY_H
#define SMART_TREE_VERIFY_H

#include "tree/readahead.h"

/* Every node on a path branches at its own position. */
#define SMART_FRAMES_MAX (SMART_KEY_MAX + 1)

/* A node on the path: a copy of it, and its used slots in order. */
struct smart_frame
{
	struct smart_node node;
	unsigned int count;
	unsigned int next; /* slot to visit next */
	bool frozen;
	smart_slot slots[256];
	struct smart_window children; /* remote: blocks of slots from next on */
};

struct smart_walk
{
	struct smart_tree *tree;
	struct smart_verify_report *report;
	smart_entry_fn entry;
	void *argument;
	struct smart_cursor path; /* key bytes that lead to where the walk is */
	struct smart_cursor done; /* everything before has been checked */
	uint8_t *bytes;           /* the entry that is handed out */
	size_t last_length;       /* of the last one, in last; 0: none yet */
	uint8_t *last;
	uint64_t epoch_end;    /* the number of leaves at which this epoch ends */
	unsigned int depth;    /* frames in use */
	unsigned int restarts; /* at this place */
	bool doubt;            /* something did not fit */
	bool finished;
	char message[160];
	struct smart_frame *frames[SMART_FRAMES_MAX];
};

extern smart_status smart_walk_init(struct smart_walk *walk);
extern void smart_walk_done(struct smart_walk *walk);

/*
 * Checks the leaf that a slot for bytes up to hi at depth leads to, and hands out its entries.  copy: of the block, where it
 * was read ahead, or NULL.
 */
extern smart_status
smart_walk_leaf(struct smart_walk *walk, smart_slot slot, unsigned int depth, unsigned int hi, const uint8_t *copy);

#endif /* SMART_TREE_VERIFY_H */
