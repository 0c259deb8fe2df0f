/*
 * insert.h
 *	  Insert, with the entries behind it.
 */
#ifndef SMART_TREE_INSERT_H
#define SMART_TREE_INSERT_H

#include "tree/tree.h"

/*
 * smart_tree_insert() of the first of count entries, in order, which is settled with SMART_OK.  On a direct provider, in trees
 * without values, those behind it that go into the same leaf and find room there go along, and are settled, too.
 */
extern smart_status smart_insert_first(struct smart_tree *tree, struct smart_addition *additions, unsigned int count);

#endif /* SMART_TREE_INSERT_H */
