/*
 * fill.h
 *	  Making a tree from a journal.
 */
#ifndef SMART_AM_JOURNAL_FILL_H
#define SMART_AM_JOURNAL_FILL_H

#include "am/journal/merge.h"
#include "tree/tree.h"

/* What a loading came to. */
enum smart_loaded
{
	SMART_LOADED_NOT, /* there was nothing to be loaded */
	SMART_LOADED,
	SMART_CAUGHT_UP /* a tree that was left behind is used again (catch_up.h) */
};

/*
 * Fills an empty tree, which no other process sees, with what the run and the chain hold; *place: where the chain
 * ended.  *entries: how many.  False: the reader was left behind, and what is in the tree is of no use.
 * INDEX_CORRUPTED: the journal is damaged; errors of the tree.
 */
extern bool smart_journal_fill(Relation index, const struct smart_codec *codec, struct smart_tree *tree,
							   const struct smart_look *look, struct smart_chain_place *place, uint64 *entries);

#endif /* SMART_AM_JOURNAL_FILL_H */
