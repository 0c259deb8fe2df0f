/*
 * scan.h
 *	  The batch of a scan: the entries of one leaf that lie within its bounds.
 */
#ifndef SMART_TREE_SCAN_H
#define SMART_TREE_SCAN_H

#include "tree/block/cursor.h"
#include "tree/block/handle.h"
#include "tree/block/leaf.h"

/* Memory of a scan's batches. */
struct smart_batch_buffer
{
	uint8_t *prefix; /* the key up to the suffixes */
	uint8_t *bytes;  /* suffixes, or a copy of the leaf */
	struct smart_item *items;
	uint32_t items_capacity;
	uint32_t payload; /* bytes behind each key */
	bool duplicates;  /* a leaf may have a key twice (I7) */
};

/* Entries e with from <= e < to, and not behind the cursor. */
struct smart_scan_bounds
{
	const uint8_t *from;
	const uint8_t *to;
	uint32_t from_length;
	uint32_t to_length; /* 0: none */
	const struct smart_cursor *cursor;
};

extern smart_status smart_batch_buffer_init(struct smart_batch_buffer *buffer, const struct smart_tree *tree);
extern void smart_batch_buffer_done(struct smart_batch_buffer *buffer, struct smart_env *env);

/*
 * Fills batch with the entries of leaf up to byte limit that lie within bounds,
 * in ascending order, copied.  The cursor lies within the leaf's range.
 */
extern smart_status
smart_batch_fill(struct smart_batch_buffer *buffer, const struct smart_leaf *leaf, unsigned int limit,
				 const struct smart_scan_bounds *bounds, struct smart_batch *batch);

#endif /* SMART_TREE_SCAN_H */
