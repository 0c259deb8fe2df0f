/*
 * duplicates.h
 *	  The uniqueness of what a build loads: equal keys are neighbours then.
 */
#ifndef SMART_AM_DUPLICATES_H
#define SMART_AM_DUPLICATES_H

#include "postgres.h"

#include "storage/buffile.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "am/encode.h"

struct smart_duplicates;

/*
 * What is to be known of the rows that the build of a unique index reads; lives as long as CurrentMemoryContext, which
 * its dead rows go to.  nulls_equal: NULLS NOT DISTINCT.
 */
extern struct smart_duplicates *
smart_duplicates_begin(Relation heap, Relation index, const struct smart_codec *codec, bool nulls_equal);

/* This row has an entry, but is dead to all transactions that begin now: it does no harm to uniqueness. */
extern void smart_duplicates_add_dead(struct smart_duplicates *duplicates, ItemPointer tid);

/* The dead rows that one process of several has met are written to notes, and added by the leader from there. */
extern void smart_duplicates_hand_over(struct smart_duplicates *duplicates, BufFile *notes);
extern void smart_duplicates_take_over(struct smart_duplicates *duplicates, BufFile *notes);

/*
 * Looks at the next entry, in ascending order; all dead rows have been added.
 * UNIQUE_VIOLATION if a live row has the key of another one.
 */
extern void smart_duplicates_check(struct smart_duplicates *duplicates, const uint8 *entry, int length);

/* Errors of both kinds of check (values and isnull of the key columns are as in the index). */
extern void smart_report_duplicate_built(Relation heap, Relation index, const Datum *values, const bool *isnull)
	__attribute__((noreturn));
extern void smart_report_duplicate_inserted(Relation heap, Relation index, const Datum *values, const bool *isnull)
	__attribute__((noreturn));

#endif /* SMART_AM_DUPLICATES_H */
