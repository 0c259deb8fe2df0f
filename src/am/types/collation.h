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

/*
 * Do the sort keys of a collation of unknown order (smart_sort_key()), and then the bytes, compare as its strings do, as
 * far as samples can tell?  They are tried out once in a process for each collation.  If not, *refusal is set to a
 * sentence about it, which lives as long as the process.
 */
extern bool smart_collation_keys_hold(Oid collation, const char **refusal);

/* The C library's version, never 0: its sort keys are another version's no more. */
extern uint32 smart_libc_version(void);

#endif /* SMART_AM_COLLATION_H */
