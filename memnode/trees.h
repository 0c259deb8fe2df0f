/*
 * trees.h
 *	  The directory of trees: for each tree of each owner a record, and a place
 *	  for its root slot in one of the owner's chunks of roots.
 */
#ifndef MEMNODE_TREES_H
#define MEMNODE_TREES_H

#include "base/status.h"
#include "chunks.h"

struct memnode_root_chunk;

struct memnode_trees
{
	struct memnode_region *region;
	struct memnode_chunks *chunks;
	uint32_t count;                                   /* trees of all owners */
	uint32_t own[MEMNODE_OWNERS];                     /* by owner */
	struct memnode_root_chunk *roots[MEMNODE_OWNERS]; /* lists, by owner */
	uint32_t *bucket;                                 /* hash table of record numbers + 1, by owner and id */
	uint32_t *next;                                   /* in its bucket, or in the list of free records; + 1 */
	uint32_t free_record;
};

/*
 * Reads the records.  SMART_CORRUPT: two trees have one root slot.  Chunks of
 * roots that no tree uses (their user died before it made the tree) are freed.
 */
extern smart_status
memnode_trees_open(struct memnode_trees *trees, struct memnode_region *region, struct memnode_chunks *chunks);
extern void memnode_trees_close(struct memnode_trees *trees);

/* A tree of an owner, or NULL. */
extern const struct memnode_tree_record *
memnode_trees_find(const struct memnode_trees *trees, uint32_t owner, uint64_t id);

/*
 * A new tree with an empty root slot.  SMART_NO_SPACE: no record or no chunk for its root is left;
 * SMART_NO_MEMORY.
 */
extern smart_status
memnode_trees_make(struct memnode_trees *trees, uint32_t owner, uint64_t id,
				   const uint8_t description[WIRE_OWNER_BYTES], const struct memnode_tree_record **tree);

/* Forgets a tree.  False: there is none. */
extern bool memnode_trees_drop(struct memnode_trees *trees, uint32_t owner, uint64_t id);

/* Forgets all trees of an owner; its chunks of roots stay, to be freed by memnode_chunks_give_all. */
extern void memnode_trees_drop_all(struct memnode_trees *trees, uint32_t owner);

/*
 * Up to WIRE_LIST_MAX trees of an owner, from *cursor on (0: from the start); *cursor is where to
 * go on then, 0 at the end.  Looks at a bounded number of records, so that fewer, even none, may come before the end.
 */
extern uint32_t
memnode_trees_list(const struct memnode_trees *trees, uint32_t owner, uint64_t *cursor, struct wire_tree *list);

#endif /* MEMNODE_TREES_H */
