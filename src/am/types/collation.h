/*
 * collation.h
 *	  In what order a collation has strings, as far as bytes can tell.
 */
#ifndef SMART_AM_COLLATION_H
#define SMART_AM_COLLATION_H

#include "am/codec/normalizer.h"

enum smart_collation_order
{
	SMART_ORDER_BYTES,  /* that of their bytes */
	SMART_ORDER_KEYS,   /* that of their sort keys, and then of their bytes if the collation is deterministic */
	SMART_ORDER_UNKNOWN /* of the C library: another one */
};

/* Found out once in a process for each collation.  The first time a collation "C.UTF-8" of the C library is tried out. */
extern enum smart_collation_order smart_collation_order(Oid collation);

#endif /* SMART_AM_COLLATION_H */
