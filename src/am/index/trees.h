/*
 * trees.h
 *	  Making and freeing the trees of indexes.
 */
#ifndef SMART_AM_TREES_H
#define SMART_AM_TREES_H

#include "utils/relcache.h"

#include "base/status.h"

/*
 * Makes an empty tree for an index in the directory of the region, owned by its database, relfilenode and
 * transaction; *tree is its id.  The status is that of the attempt.  Until a metapage names it, the caller has to
 * free it after an error.
 */
extern smart_status smart_tree_make(Relation index, uint64 *tree);

/*
 * Called where a tree is about to be made, inside a transaction, with nothing of a tree in hand: may free what is not
 * needed any more.  temporary: the tree is a temporary table's.  Set by orphans.c; NULL: nothing is freed.
 */
extern void (*smart_make_room_hook)(bool temporary);
extern void smart_am_tree_make_room(bool temporary);

/* Frees a tree that no metapage names and no backend uses; closes this backend's handle. */
extern void smart_am_tree_drop(uint64 tree);

/*
 * Frees the trees but keep (0: none is kept) that this transaction, or this backend for a temporary table, made for
 * the file that the index has now.
 */
extern void smart_am_tree_drop_older(Relation index, uint64 keep);

#endif /* SMART_AM_TREES_H */
