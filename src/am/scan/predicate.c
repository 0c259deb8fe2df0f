/*
 * predicate.c
 *	  What a serializable transaction has read of an index, and what it writes.
 *
 * Core keeps predicate locks on pages, and an index has none.  But pages are only numbers: here they stand for
 * the strings that entries begin with.  A scan locks the string that all entries of its range have in front;
 * an entry that is added there begins with it, too.  Leaves play no part in it, so nothing changes when they
 * are split or replaced.  Strings whose numbers are the same by chance make a transaction fail that need not,
 * and nothing else.
 *
 * A backend that adds an entry checks all lengths that such a string may have, after the entry is in the tree, or, of an index
 * that has none, is staged (src/am/journal/staging.h): a scan that locks after that finds the entry, and is told by the table
 * that there is a row it must not see; a lock that a scan took before is found.
 *
 * Strings as short as that of all values, or none, are a lock on the whole index.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "am/scan/predicate.h"
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
	smart_assert(length > 0);
	return hash_bytes(bytes, (int) length) % MaxBlockNumber;
}

void
smart_predicate_lock(Relation index, Snapshot snapshot, struct smart_ranges *ranges)
{
	uint32 count = 0;

	if (!IsolationIsSerializable() || !IsMVCCSnapshot(snapshot))
		return;
	for (bool more = smart_ranges_first(ranges, false); more; more = smart_ranges_next(ranges, false))
	{
		/* The string that all entries of the current range begin with */
		uint32 shared = (uint32) smart_common_prefix(ranges->from, ranges->from_length, ranges->to, ranges->to_length);
		uint32 length = 0;

		/* Where the end is the next byte, and no more, all before it have the byte of the beginning. */
		if (shared + 1 == ranges->to_length && shared < ranges->from_length &&
			ranges->from[shared] + 1 == ranges->to[shared])
			shared++;
		for (uint32 i = 0; i < lengthof(lengths) && lengths[i] <= shared; i++)
			length = lengths[i];
		if (++count > RANGES_MAX || ranges->to_length == 0 || length == 0)
		{
			PredicateLockRelation(index, snapshot);
			return;
		}
		smart_assert(length <= ranges->from_length);
		PredicateLockPage(index, page_of(ranges->from, length), snapshot);
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
