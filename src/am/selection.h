/*
 * selection.h
 *	  Between scankey.c, which reads conditions, and selection.c, which gathers
 *	  what they select.
 */
#ifndef SMART_AM_SELECTION_H
#define SMART_AM_SELECTION_H

#include "am/ranges.h"

/* What one condition selects on its column. */
struct smart_choice
{
	bool nothing;
	bool is_point;         /* the one encoding low */
	bool wide;             /* the columns behind are in low or high, too */
	struct smart_span low; /* low <= column < high */
	struct smart_span high;
};

/* The strings {SMART_NOT_NULL} and its successor, between which all values lie: the first ones in every set of bytes. */
#define smart_value_low  ((struct smart_span){.offset = 0, .length = 1})
#define smart_value_high ((struct smart_span){.offset = 1, .length = 1})

/* Makes room for length more bytes and returns where they go: good until the next call. */
extern uint8 *smart_selection_reserve(struct smart_ranges *ranges, uint32 length);

/* Keeps the first length bytes that were written there. */
extern struct smart_span smart_selection_keep(struct smart_ranges *ranges, uint32 length);

/* The first string behind all that begin with this one; it begins with a null byte, so there is one. */
extern struct smart_span smart_selection_successor(struct smart_ranges *ranges, struct smart_span span);

/* Less than, equal to or greater than zero, as memcmp(); a string is above one that it begins with. */
extern int smart_selection_compare(const struct smart_ranges *ranges, struct smart_span a, struct smart_span b);

/* Adds a point behind the others; sorts the points from first on, and drops doubles. */
extern void smart_selection_add_point(struct smart_ranges *ranges, struct smart_span point);
extern void smart_selection_sort_points(struct smart_ranges *ranges, uint32 first);

/* Restricts a column to the points from first on, which are sorted and the last ones. */
extern void smart_selection_restrict_to_points(struct smart_ranges *ranges, int column, uint32 first);

/* Restricts a column to what one more condition selects. */
extern void smart_selection_restrict(struct smart_ranges *ranges, int column, const struct smart_choice *choice);

/* Brings the points of a column and its interval together, when all conditions are known. */
extern void smart_selection_settle(struct smart_ranges *ranges, struct smart_column_set *set);

#endif /* SMART_AM_SELECTION_H */
