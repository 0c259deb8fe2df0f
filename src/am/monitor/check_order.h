/*
 * check_order.h
 *	  Are an index's entries in the order of the values that they were made of?
 */
#ifndef SMART_AM_CHECK_ORDER_H
#define SMART_AM_CHECK_ORDER_H

#include "utils/rel.h"

struct smart_relation;

/*
 * Reads all entries of an open index that has a tree, if their order is decided outside of the server: by sort keys of
 * ICU or the C library.  INDEX_CORRUPTED if two neighbours compare otherwise than their values do.  A column whose
 * values cannot be given back is passed over.
 */
extern void smart_check_order(struct smart_relation *self, Relation index);

#endif /* SMART_AM_CHECK_ORDER_H */
