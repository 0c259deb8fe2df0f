/*
 * duplicates.h
 *	  The uniqueness of what a build loads: equal keys are neighbours then.
 */
#ifndef SMART_AM_DUPLICATES_H
#define SMART_AM_DUPLICATES_H

#include "storage/buffile.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "am/codec/encode.h"

struct smart_duplicates;

/*
 * State for the build of a unique index, in CurrentMemoryContext, where its dead rows go too.  nulls_equal: NULLS NOT
 * DISTINCT.
 */
extern struct smart_duplicates *
smart_duplicates_begin(Relation heap, Relation index, const struct smart_codec *codec, bool nulls_equal);

/* This row has an entry, but is dead to all transactions that begin now, and so is no duplicate of another row. */
extern void smart_duplicates_add_dead(struct smart_duplicates *duplicates, ItemPointer tid);

/* A worker writes the dead rows that it has met to notes; the leader adds them from there. */
extern void smart_duplicates_hand_over(struct smart_duplicates *duplicates, BufFile *notes);
extern void smart_duplicates_take_over(struct smart_duplicates *duplicates, BufFile *notes);

/*
 * Looks at the next entry, in ascending order; all dead rows have been added.
 * UNIQUE_VIOLATION if a live row has the key of another one.
 */
extern void smart_duplicates_check(struct smart_duplicates *duplicates, const uint8 *entry, int length);

#endif /* SMART_AM_DUPLICATES_H */
