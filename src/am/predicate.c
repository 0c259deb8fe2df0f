/*
 * predicate.c
 *	  What a serializable transaction has read of an index, and what it writes.
 *
 * Core keeps predicate locks on pages, and an index has none.  But pages are only
 * numbers: here they stand for the strings that entries begin with.  A scan locks
 * the string that all entries of its range have in front; what is added there
 * begins with it, too.  Leaves play no part in it, so nothing changes when they
 * are split or replaced.  Strings whose numbers are the same by chance make
 * a transaction fail that need not, and nothing else.
 *
 * Whoever adds an entry asks for all lengths that such a string may have,
 * and does so when the entry is there: a scan that locks after that finds the
 * entry, and is told by the table that there is a row it must not see; one that
 * locked before is found.
 *
 * Strings as short as that of all values, or none, are a lock on the whole index.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "am/predicate.h"
#include "base/assert.h"
#include "base/bytes.h"

/* A scan with more ranges locks the whole index. */
#define RANGES_MAX 16

/* Lengths of strings that are locked, ascending. */
static const uint8 lengths[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 28, 32, 40, 48, 64};

/* The number that stands for a string. */
static BlockNumber
page_of(const uint8 *bytes, uint32 length)
{
	return hash_bytes(bytes, (int) length) % MaxBlockNumber;
}

/* How long the string is that all entries of the current range begin with. */
static uint32
shared_length(const struct smart_ranges *ranges)
{
	uint32 common = (uint32) smart_common_prefix(ranges->from, ranges->from_length, ranges->to, ranges->to_length);

	if (ranges->to_length == 0)
		return 0;
	/* Where the end is the next byte, and no more, all before it have the byte of the beginning. */
	if (common + 1 == ranges->to_length && common < ranges->from_length &&
		ranges->from[common] + 1 == ranges->to[common])
		common++;
	return common;
}

/* Locks the current range.  False: it has no string of its own. */
static bool
lock_range(Relation index, Snapshot snapshot, const struct smart_ranges *ranges)
{
	uint32 shared = shared_length(ranges);
	uint32 length = 0;

	for (uint32 i = 0; i < lengthof(lengths) && lengths[i] <= shared; i++)
		length = lengths[i];
	if (length > 0)
		PredicateLockPage(index, page_of(ranges->from, length), snapshot);
	return length > 0;
}

void
smart_predicate_lock(Relation index, Snapshot snapshot, struct smart_ranges *ranges)
{
	uint32 count = 0;
	bool more;

	if (!IsolationIsSerializable() || !IsMVCCSnapshot(snapshot))
		return;
	for (more = smart_ranges_first(ranges, false); more; more = smart_ranges_next(ranges, false))
	{
		if (++count > RANGES_MAX || !lock_range(index, snapshot, ranges))
		{
			PredicateLockRelation(index, snapshot);
			return;
		}
	}
}

void
smart_predicate_check(Relation index, const uint8 *key, int key_length)
{
	if (!IsolationIsSerializable())
		return;
	CheckForSerializableConflictIn(index, NULL, InvalidBlockNumber);
	for (uint32 i = 0; i < lengthof(lengths) && lengths[i] <= key_length; i++)
		CheckForSerializableConflictIn(index, NULL, page_of(key, lengths[i]));
}
