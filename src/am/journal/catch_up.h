/*
 * catch_up.h
 *	  A tree that was left behind catches up with its journal, and is the index's again.
 */
#ifndef SMART_AM_JOURNAL_CATCH_UP_H
#define SMART_AM_JOURNAL_CATCH_UP_H

#include "utils/relcache.h"

#include "am/index/meta.h"
#include "tree/tree.h"

struct smart_codec;

/*
 * Brings the tree of a lost index up to date, if that was left behind and its memory nodes are back, and puts it into use.
 * False: it has no such tree, or the tree is of no use any more, and is not found again.  The caller has the lock of removers,
 * alone, and an inserter's locks of table and index.  Errors of reading the journal and of the tree.
 */
extern bool smart_catch_up(Relation index);

/*
 * Steps 3 to 5 of load.c: a tree that has what the chain has up to the place, and that the table of rebuilds knows, takes adds from
 * now on, and gets the rest of the chain, which is durable then.  False: the reader was left behind.  Errors as above.
 */
extern bool smart_take_adds(Relation index, const struct smart_codec *codec, struct smart_tree *tree,
							struct smart_chain_place *place);

#endif /* SMART_AM_JOURNAL_CATCH_UP_H */
