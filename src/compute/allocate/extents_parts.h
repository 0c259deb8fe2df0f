/*
 * extents_parts.h
 *	  What the parts of an extent map offer to each other and to the space; other code uses extents.h.
 *
 *	  extent_map      memory nodes, and where remote chunks are, by memory node and place
 *	  chunks        a remote chunk's life: in use, leaving or lost, unused
 *	  pending_frees   what memory nodes have yet to be told
 *	  extents_ask      what memory nodes are asked for: chunks and roots of trees
 *	  extents_nodes    memory nodes come, rest, and get lost
 */
#ifndef SMART_COMPUTE_EXTENTS_PARTS_H
#define SMART_COMPUTE_EXTENTS_PARTS_H

#include "compute/allocate/extent_map.h"
#include "compute/allocate/pages.h"
#include "compute/allocate/supply.h"
#include "compute/allocate/trees.h"

/* ---- pending_frees; under the directory's lock ---- */

/* One more, or one less, record that refers to a memory node; false: the node is not open. */
extern bool smart_extents_count_tree(struct smart_space *space, unsigned int node, bool more);

/* The record of a tree that its memory node has no root slot of (any more) becomes free. */
extern void smart_extents_forget_tree(struct smart_space *space, uint32_t number);

/* As smart_storage.tree_dropped: the record becomes a pending free, unless its memory node is lost. */
extern void smart_extents_tree_dropped(struct smart_space *space, uint32_t number, uint64_t id);

/* ---- extents_ask ---- */

/* A space whose blocks lie on memory nodes. */
extern const struct smart_storage smart_extents_storage;

/* Says why the call fails, where no memory node or link does it. */
extern void smart_extents_explain(struct smart_space *space, const char *problem);

#endif /* SMART_COMPUTE_EXTENTS_PARTS_H */
