/*
 * ranges.h
 *	  The conditions of a scan as ranges of entries.
 *
 * Every condition on a column selects an interval of that column's encodings, or single ones (points); a row
 * comparison, an interval that goes on into the columns behind.  Leading columns with points, followed by at
 * most one column with an interval, make a sequence of byte ranges: one for each combination of points.  They
 * are visited in the order of the index, so the entries come in that order too, whatever arrays there are.
 * Conditions on columns behind these are compared with each entry's bytes.
 */
#ifndef SMART_AM_RANGES_H
#define SMART_AM_RANGES_H

#include "access/skey.h"

#include "am/codec/encode.h"
#include "tree/tree.h"

/* A byte string in the bytes of struct smart_ranges. */
struct smart_span
{
	uint32 offset;
	uint32 length;
};

/* What the conditions on one column select. */
struct smart_column_set
{
	bool constrained; /* is there any condition on the column? */
	bool has_points;  /* single encodings, in ascending order, in points[first..first + count) */
	uint32 first;
	uint32 count;

	/*
	 * The interval low <= column < high; an empty string is no limit.  No encoding begins another one, so it
	 * does not matter if the columns behind are compared, too; if it is wide, they have to be.
	 */
	bool wide;
	struct smart_span low;
	struct smart_span high;
};

struct smart_ranges
{
	const struct smart_codec *codec;
	bool never;    /* no entry can satisfy the conditions */
	bool recheck;  /* the executor must ask the conditions again */
	bool filtered; /* entries in the ranges must pass smart_ranges_match() */
	int nprefix;   /* leading columns with points; the column behind them has the interval */

	/* The current range: from <= entry < to; to_length 0: no upper end. */
	uint32 from_length;
	uint32 to_length;
	uint8 from[SMART_KEY_MAX + 1];
	uint8 to[SMART_KEY_MAX + 1];

	/* Strings and points of all columns; kept from one set of keys to the next. */
	uint8 *bytes;
	uint32 used;
	uint32 room;
	struct smart_span *points;
	uint32 npoints;
	uint32 points_room;

	MemoryContext scratch;          /* elements of arrays and the like, until the next keys */
	uint32 current[INDEX_MAX_KEYS]; /* which point of each leading column */
	struct smart_column_set columns[INDEX_MAX_KEYS];
};

static inline const uint8 *
smart_span_bytes(const struct smart_ranges *ranges, struct smart_span span)
{
	return ranges->bytes + span.offset;
}

/* Is each range an equality prefix: has every key column a value?  A row comparison may cut a part of a range off. */
static inline bool
smart_ranges_are_points(const struct smart_ranges *ranges)
{
	bool points = ranges->nprefix == ranges->codec->nkeys;

	for (int i = 0; i < ranges->nprefix; i++)
		points &= !ranges->columns[i].wide;
	return points;
}

/*
 * Is there one range only, of entries that have these values, and no NULL, in all key columns?  The range begins with the columns
 * as those entries have them then.
 */
extern bool smart_ranges_are_one_key(const struct smart_ranges *ranges);

/* The first range, and the following ones, in ascending order or (backward) in descending order.  False: there is none. */
extern bool smart_ranges_first(struct smart_ranges *ranges, bool backward);
extern bool smart_ranges_next(struct smart_ranges *ranges, bool backward);

/* Goes to the range with these points, as current[] held them at an earlier time under the same conditions. */
extern void smart_ranges_go(struct smart_ranges *ranges, const uint32 *position);

/* Does an entry of the current range satisfy the conditions on later columns? */
extern bool smart_ranges_match(const struct smart_ranges *ranges, const uint8 *entry, int length);

/*
 * Where a scan may go on behind an entry (backward: before it) of the current range: key, with room for
 * SMART_KEY_MAX + 1 bytes, at or behind which (before which) the next entry lies that satisfies the conditions on
 * later columns.  Returns how many bytes from its beginning on the entry shares with those that are left out, or -1 if
 * it satisfies the conditions itself.  *length 0: there is none in this range.
 */
extern int smart_ranges_skip(const struct smart_ranges *ranges, const uint8 *entry, int entry_length, bool backward,
							 uint8 *key, uint32 *length);

#endif /* SMART_AM_RANGES_H */
