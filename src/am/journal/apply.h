/*
 * apply.h
 *	  Bringing a tree up to date with the chain of its journal.
 */
#ifndef SMART_AM_JOURNAL_APPLY_H
#define SMART_AM_JOURNAL_APPLY_H

#include "am/index/meta.h"
#include "tree/pack.h"
#include "tree/tree.h"

struct smart_codec;

/* What operations are applied to. */
enum smart_target
{
	SMART_TARGET_TREE,      /* if that has no room, it is an error */
	SMART_TARGET_SPARE,     /* a tree that the index can do without, since its pages can answer */
	SMART_TARGET_DELTA,     /* tombstones are spent in turn 0 */
	SMART_TARGET_DELTA_1,   /* in turn 1 */
	SMART_TARGET_LEAN_DELTA /* there are none: nothing is left */
};

/*
 * Applies to a tree what the chain has from *place up to its end, and moves *place there;
 * after_piece, if not NULL, is called with each place up to which all has been applied, and tells whether to go on.  Others may read and change the tree
 * meanwhile: per piece each entry is changed once, so that an operation that is applied again after a cancel does no harm.
 * meta: read when the chain had *place; for a delta it tells of its run; NULL: of now, and not for a delta.
 * Returns true if it came to the end or was to stop before; false if the chain has been cut before *place, or if the target has no room.  OUT_OF_MEMORY, DISK_FULL: a tree has no
 * room.  INDEX_CORRUPTED; errors of the tree.
 */
extern bool smart_journal_apply(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
								struct smart_tree *tree, enum smart_target target, struct smart_chain_place *place,
								bool (*after_piece)(void *, const struct smart_chain_place *), void *argument);

#endif /* SMART_AM_JOURNAL_APPLY_H */
