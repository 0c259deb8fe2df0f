/*
 * groups.c
 *	  Packed entries in ascending order, in groups.
 */
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "tree/groups.h"

#define WORD  ((uint32_t) sizeof(uint32_t))
#define PLACE ((uint32_t) sizeof(uint16_t))

#define CACHE_LINE 64

#define NOWHERE INT_MAX

_Static_assert(SMART_GROUPS_DIRECTORY(3) - SMART_GROUPS_DIRECTORY(2) == WORD + PLACE, "directory format");

/* What an entry, of which so many bytes count, has behind those that it shares with others. */
static uint32_t
word_of(const uint8_t *bytes, int length, int shared)
{
	return length <= shared ? 0 : (uint32_t) (smart_rank(bytes + shared, (size_t) (length - shared)) >> 32);
}

static uint32_t
get_word(const struct smart_groups *groups, uint32_t group)
{
	uint32_t word;

	smart_assert(group > 0 && group < groups->count);
	memcpy(&word, groups->words + (group - 1) * WORD, sizeof(word));
	return word;
}

static uint32_t
get_half(const uint8_t *at)
{
	uint16_t half;

	memcpy(&half, at, sizeof(half));
	return half;
}

/* ---- reading ---- */

/* Where a group begins, from the first entry on, or where the last one ends; as it is written there. */
static uint32_t
place_of(const struct smart_groups *groups, uint32_t group)
{
	smart_assert(group <= groups->count);
	if (group == groups->count)
		return (uint32_t) (groups->end - groups->begin);
	return group == 0 ? 0 : get_half(groups->places + (group - 1) * PLACE);
}

/* From where to where is a group?  False: its places are damaged. */
static bool
find_group(const struct smart_groups *groups, uint32_t group, uint32_t *from, uint32_t *to)
{
	*from = place_of(groups, group);
	*to = place_of(groups, group + 1);
	return *from < *to && *to <= place_of(groups, groups->count);
}

bool
smart_groups_open(struct smart_groups *groups, const uint8_t *begin, const uint8_t *end, const uint8_t *directory,
				  const uint8_t *directory_end, int suffix)
{
	int64_t length = directory_end - directory;
	uint32_t from;
	uint32_t to;

	if (length < SMART_GROUPS_DIRECTORY(1))
		return false;
	groups->begin = begin;
	groups->end = end;
	groups->count = get_half(directory_end - PLACE);
	if (groups->count == 0 || groups->count > SMART_GROUPS_MAX || length != SMART_GROUPS_DIRECTORY(groups->count))
		return false;
	groups->words = directory;
	groups->places = directory + (groups->count - 1) * WORD;
	groups->shared = (int) get_half(directory_end - 2 * PLACE);
	groups->suffix = suffix;
	groups->group = 0;
	/* The others are looked at when they are entered: there are many, and a search enters one. */
	return find_group(groups, 0, &from, &to);
}

bool
smart_groups_enter(struct smart_groups *groups, uint32_t group, struct smart_unpacker *unpacker)
{
	uint32_t from;
	uint32_t to;

	groups->group = group;
	smart_unpacker_begin(unpacker, groups->begin, groups->end);
	if (!find_group(groups, group, &from, &to) || (group > 0 && !smart_unpacker_next(unpacker)))
		return false;
	unpacker->at = groups->begin + from;
	unpacker->end = groups->begin + to;
	return true;
}

void
smart_groups_rewind(struct smart_groups *groups, struct smart_unpacker *unpacker)
{
	(void) smart_groups_enter(groups, 0, unpacker);
}

bool
smart_groups_next(struct smart_groups *groups, struct smart_unpacker *unpacker)
{
	while (!smart_unpacker_next(unpacker))
	{
		if (unpacker->at != unpacker->end || groups->group + 1 == groups->count ||
			!smart_groups_enter(groups, groups->group + 1, unpacker))
			return false;
	}
	return true;
}

/* The order of the entry that was read and the key.  *differs: the first byte that is not the same, if both have one. */
static int
compare(const struct smart_groups *groups, const struct smart_unpacker *unpacker, const uint8_t *key, int length,
		int *differs)
{
	int counts = unpacker->length > groups->suffix ? unpacker->length - groups->suffix : 0;
	int same = (int) smart_common_prefix(unpacker->entry, (size_t) counts, key, (size_t) length);

	*differs = NOWHERE;
	if (same == counts || same == length)
		return (counts > length) - (counts < length);
	*differs = same;
	return unpacker->entry[same] < key[same] ? -1 : 1;
}

/*
 * Is the entry that was read before the key as the one before it in its group, which differs from the key there?  One look
 * tells that of most.  False: it has to be compared.
 */
static inline bool
is_still_before(const struct smart_groups *groups, const struct smart_unpacker *unpacker, const uint8_t *key,
				int differs)
{
	return unpacker->shared > differs || (unpacker->shared == differs && unpacker->length - groups->suffix > differs &&
										  unpacker->entry[differs] < key[differs]);
}

/* Reads the first entry of a group; false: it is damaged. */
static bool
read_first(struct smart_groups *groups, uint32_t group, struct smart_unpacker *unpacker)
{
	return smart_groups_enter(groups, group, unpacker) && smart_unpacker_next(unpacker);
}

/* How many groups from the second one on begin with a smaller word.  Without branches: their order is a matter of chance. */
static uint32_t
words_below(const struct smart_groups *groups, uint32_t word)
{
	uint32_t below = 0;
	uint32_t left = groups->count - 1;

	while (left > 1)
	{
		uint32_t half = left / 2;

		below += get_word(groups, below + half) < word ? half : 0;
		left -= half;
	}
	return below + (left == 1 && get_word(groups, below + 1) < word);
}

/*
 * Which groups' first entries could stand on either side of the key, as far as words tell: those from *low + 1 to *high.
 * False: an entry is damaged.
 */
static bool
narrow(struct smart_groups *groups, const uint8_t *key, int length, struct smart_unpacker *unpacker, uint32_t *low,
	   uint32_t *high)
{
	uint32_t last = groups->count - 1;
	uint32_t word = word_of(key, length, groups->shared);
	int order;

	if (!read_first(groups, 0, unpacker) || unpacker->length < groups->shared)
		return false;
	order =
		smart_compare_equal_length(unpacker->entry, key, (size_t) (length < groups->shared ? length : groups->shared));
	if (order != 0)
	{
		*low = *high = order < 0 ? last : 0;
		return true;
	}
	*low = *high = words_below(groups, word);
	while (*high < last && get_word(groups, *high + 1) == word)
		(*high)++;
	smart_assert(*low <= *high && *high < groups->count);
	return true;
}

/*
 * The last group whose first entry is before the key, or the first group; at: or is the key.  False: an entry is damaged.
 */
static bool
choose(struct smart_groups *groups, const uint8_t *key, int length, bool at, struct smart_unpacker *unpacker,
	   uint32_t *group)
{
	uint32_t low;
	uint32_t high;
	uint32_t from;
	uint32_t to;
	int differs;

	if (!narrow(groups, key, length, unpacker, &low, &high))
		return false;
	while (low < high)
	{
		uint32_t middle = (low + high + 1) / 2;

		if (!read_first(groups, middle, unpacker))
			return false;
		if (compare(groups, unpacker, key, length, &differs) < at)
			low = middle;
		else
			high = middle - 1;
	}
	smart_assert(low < groups->count);
	if (!find_group(groups, low, &from, &to))
		return false;
	/* All lines at once: each entry is read on the way to the next one. */
	for (; from < to; from += CACHE_LINE)
		__builtin_prefetch(groups->begin + from);
	*group = low;
	return true;
}

bool
smart_groups_enter_before(struct smart_groups *groups, const uint8_t *key, int length, struct smart_unpacker *unpacker)
{
	uint32_t group;

	return choose(groups, key, length, false, unpacker, &group) && smart_groups_enter(groups, group, unpacker);
}

bool
smart_groups_seek(struct smart_groups *groups, const uint8_t *key, int length, struct smart_unpacker *unpacker)
{
	int differs = NOWHERE;

	if (!smart_groups_enter_before(groups, key, length, unpacker))
		return false;
	for (;;)
	{
		while (smart_unpacker_next(unpacker))
		{
			if (!is_still_before(groups, unpacker, key, differs) &&
				compare(groups, unpacker, key, length, &differs) >= 0)
				return true;
		}
		/* All of the group are before the key, so none of the next one is, unless the page is damaged. */
		if (!smart_groups_next(groups, unpacker))
			return false;
		if (compare(groups, unpacker, key, length, &differs) >= 0)
			return true;
	}
}

bool
smart_groups_floor(struct smart_groups *groups, const uint8_t *key, int length, struct smart_unpacker *unpacker,
				   uint8_t *suffix)
{
	uint64_t last = 0;
	uint32_t group;
	bool found = false;
	int differs = NOWHERE;

	smart_assert(groups->suffix <= (int) sizeof(last));
	if (!choose(groups, key, length, true, unpacker, &group) || !smart_groups_enter(groups, group, unpacker))
		return false;
	while (smart_unpacker_next(unpacker) && unpacker->length >= groups->suffix &&
		   ((group == 0 && !found) || is_still_before(groups, unpacker, key, differs) ||
			compare(groups, unpacker, key, length, &differs) <= 0))
	{
		/* More than there is of it, so that the compiler knows how much. */
		memcpy(&last, unpacker->entry + unpacker->length - groups->suffix, sizeof(last));
		found = true;
	}
	memcpy(suffix, &last, (size_t) groups->suffix);
	return found;
}

/* ---- writing ---- */

void
smart_groups_begin(struct smart_groups_writer *writer, uint8_t *begin, uint8_t *end, int suffix)
{
	smart_assert(end - begin >= SMART_GROUPS_DIRECTORY(1) && end - begin <= SMART_GROUPS_SPACE_MAX && suffix >= 0);
	smart_packer_begin(&writer->packer, begin, end - SMART_GROUPS_DIRECTORY(1));
	writer->begin = begin;
	writer->group = begin;
	writer->suffix = suffix;
	writer->count = 0;
	writer->first_length = 0;
}

/*
 * Makes room for one more group, which begins as if the very first entry came before it; false: there is none for that and
 * an entry of this length.
 */
static bool
begin_group(struct smart_groups_writer *writer, int length)
{
	struct smart_packer *packer = &writer->packer;
	int64_t directory = writer->count > 0 ? WORD + PLACE : 0;

	if (packer->end - packer->at < directory + SMART_PACKED_MAX(length))
		return false;
	packer->end -= directory;
	smart_assert(packer->at < packer->end);
	memcpy(packer->before, writer->first, (size_t) writer->first_length);
	packer->length = writer->first_length;
	smart_assert(writer->count < SMART_GROUPS_MAX);
	writer->group = packer->at;
	writer->places[writer->count++] = (uint16_t) (packer->at - writer->begin);
	return true;
}

bool
smart_groups_add(struct smart_groups_writer *writer, const uint8_t *entry, int length)
{
	struct smart_packer *packer = &writer->packer;
	bool begins = writer->count == 0 || packer->at - writer->group >= SMART_GROUP_BYTES;

	smart_assert(length > 0 && length >= writer->suffix);
	if ((begins && !begin_group(writer, length)) || !smart_packer_add(packer, entry, length))
		return false;
	if (writer->first_length == 0)
	{
		memcpy(writer->first, entry, (size_t) length);
		writer->first_length = length;
	}
	smart_assert(writer->count > 0 && writer->group < packer->at && packer->at <= packer->end);
	return true;
}

/* How many bytes do the first entries of all groups share? */
static int
share(struct smart_groups *groups)
{
	struct smart_unpacker first;
	struct smart_unpacker last;

	if (groups->count == 1)
		return 0;
	(void) read_first(groups, 0, &first);
	(void) read_first(groups, groups->count - 1, &last);
	smart_assert(first.length >= groups->suffix && last.length >= groups->suffix);
	return (int) smart_common_prefix(first.entry, (size_t) (first.length - groups->suffix), last.entry,
									 (size_t) (last.length - groups->suffix));
}

uint8_t *
smart_groups_finish(struct smart_groups_writer *writer)
{
	uint8_t *words = writer->packer.end;
	uint16_t count = (uint16_t) writer->count;
	uint8_t *places = words + (count - 1) * WORD;
	uint8_t *rear = places + (count - 1) * PLACE;
	struct smart_groups groups = {.begin = writer->begin,
								  .end = writer->packer.at,
								  .places = places,
								  .count = count,
								  .suffix = writer->suffix};
	struct smart_unpacker unpacker;
	uint16_t shared;

	smart_assert(count > 0 && writer->packer.at <= words);
	memcpy(places, writer->places + 1, (count - 1) * PLACE);
	shared = (uint16_t) share(&groups);
	for (uint32_t i = 1; i < count; i++)
	{
		uint32_t word;

		(void) read_first(&groups, i, &unpacker);
		smart_assert(unpacker.length >= writer->suffix);
		word = word_of(unpacker.entry, unpacker.length - writer->suffix, shared);
		memcpy(words + (i - 1) * WORD, &word, sizeof(word));
	}
	memcpy(rear, &shared, sizeof(shared));
	memcpy(rear + sizeof(shared), &count, sizeof(count));
	smart_assert(rear + 2 * PLACE == words + SMART_GROUPS_DIRECTORY(count));
	return words;
}
