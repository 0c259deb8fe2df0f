/*
 * as_btree.h
 *	  Indexes that pass for btrees, on servers that ask for the access method by name.
 */
#ifndef SMART_AM_INDEX_AS_BTREE_H
#define SMART_AM_INDEX_AS_BTREE_H

#include "nodes/pg_list.h"

/* The caller's, from begin to end. */
struct smart_as_btree
{
	struct smart_as_btree *outer;
	List *indexes;
	Oid method; /* that they have */
	int level;  /* of planner and utility statements; they pass for btrees on this one only */
};

/*
 * From begin to end the relcache says that open smart indexes (a list of Relations) are btrees.  Code of the server that
 * would take them at their word is not told: the planner, and statements that are no queries.  End is to be called after
 * an error, too, and before the indexes are closed.
 */
extern void smart_as_btree_begin(struct smart_as_btree *self, List *indexes);
extern void smart_as_btree_end(struct smart_as_btree *self);

/* Called once, when the library is loaded: sets hooks. */
extern void smart_as_btree_init(void);

#endif /* SMART_AM_INDEX_AS_BTREE_H */
