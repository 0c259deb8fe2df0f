/*
 * meta.h
 *	  Reading and changing the metapage; for relation.c, trees.c and rebuild.c only.
 */
#ifndef SMART_AM_META_H
#define SMART_AM_META_H

#include "am/am.h"

/*
 * Reads and checks the metapage.  INDEX_CORRUPTED: none there, or not one of
 * ours; FEATURE_NOT_SUPPORTED: another format version.
 */
extern void smart_meta_read(Relation index, struct smart_meta *meta);

/*
 * Which tree a metapage names (0: none), from a copy of the page.  False: it is no metapage that this version
 * understands.  No error, and nothing of the relation is needed.
 */
extern bool smart_meta_named_tree(Page page, uint64 *tree);

/* Were the entries made as codec would make them? */
extern bool smart_meta_fits(const struct smart_meta *meta, const struct smart_codec *codec);

/*
 * May the tree that a metapage names be looked for in this region?  Not if it was
 * made in another one, nor if the metapage came here with a copy of a database
 * (CREATE DATABASE ... TEMPLATE): the tree belongs to the original.
 */
extern bool smart_meta_tree_is_here(Relation index, const struct smart_meta *meta);

/*
 * Makes a tree and names it in the metapage unless that names one already;
 * *meta: what it says then.
 */
extern void smart_meta_make_tree(Relation index, const struct smart_codec *codec, struct smart_meta *meta);

/* Says in the metapage that this tree is stale, unless another one is named there by now.  WAL-logged. */
extern void smart_meta_mark_stale(Relation index, uint64 tree);

/* Names another tree in the metapage, whatever it said.  WAL-logged, and flushed. */
extern void smart_meta_replace_tree(Relation index, const struct smart_codec *codec, uint64 tree);

/* The metapage that an index with this codec and this tree (0: none) has. */
extern void smart_meta_fill(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta);

/* Makes a tree in the region's directory, without a handle (trees.c). */
extern uint64 smart_tree_make(Relation index);

#endif /* SMART_AM_META_H */
