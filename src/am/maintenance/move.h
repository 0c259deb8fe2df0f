/*
 * move.h
 *	  Moving the tree of an index to other memory nodes, while the index is used.
 */
#ifndef SMART_AM_MOVE_H
#define SMART_AM_MOVE_H

#include "utils/relcache.h"

/* Does the tree of an index that is not lost have to move (smart_tree_has_to_move)? */
extern bool smart_move_is_due(Relation index);

/*
 * Moves the tree of an index if it has to, within the current transaction, which has done nothing else; returns whether it
 * has.  LOCK_NOT_AVAILABLE: another session has locked the table, or waits for a lock, or the move is not wanted any more;
 * OBJECT_NOT_IN_PREREQUISITE_STATE: a row could not be inserted into the new tree, or the index was lost meanwhile; errors of
 * the journal and of the tree.  After any error the index has the tree that it had.
 */
extern bool smart_move_index(Oid index);

#endif /* SMART_AM_MOVE_H */
