/*
 * sort.c
 *	  Sorting of entries in memory: items of a few words, and records of any length.
 *
 * An item of a record is two words, of which the first is its head: buckets are made and filled alike.  The heads spare
 * the way to the records: eight rounds look at nothing else.  Then the heads of a group are filled with its next eight
 * bytes.
 */
#include "base/sort.h"

#include "base/assert.h"

#define SMALL         80        /* a group up to which insertion sort wins */
#define SMALL_STRINGS 24        /* … of records */
#define CHECK_EVERY   (1 << 16) /* a group from which on an interrupt is looked for */
#define AHEAD         8         /* records to prefetch */
#define STRING_WORDS  2         /* of an item that leads to a record */

_Static_assert(sizeof(struct smart_sort_item) == STRING_WORDS * sizeof(uint64_t), "buckets take it for words");

/* ---- items of words ---- */

struct buckets
{
	size_t next[256]; /* where the next item of the bucket goes */
	size_t end[256];
};

static inline __attribute__((always_inline)) unsigned int
digit(const uint64_t *item, unsigned int byte)
{
	return (unsigned int) (item[byte / 8] >> (56 - 8 * (byte % 8))) & 0xff;
}

static inline __attribute__((always_inline)) bool
less(const uint64_t *a, const uint64_t *b, unsigned int words)
{
	for (unsigned int i = 0; i + 1 < words; i++)
	{
		if (a[i] != b[i])
			return a[i] < b[i];
	}
	return a[words - 1] < b[words - 1];
}

static inline __attribute__((always_inline)) void
move(uint64_t *to, const uint64_t *from, unsigned int words)
{
	uint64_t item[SMART_SORT_WORDS_MAX];

	/* Both may be the same for all the compiler knows, which would call memmove() for three words. */
	memcpy(item, from, words * sizeof(*item));
	memcpy(to, item, words * sizeof(*item));
}

static inline __attribute__((always_inline)) void
insertion_sort(uint64_t *items, size_t count, unsigned int words)
{
	for (size_t i = 1; i < count; i++)
	{
		uint64_t item[SMART_SORT_WORDS_MAX];
		size_t to = i;

		move(item, items + i * words, words);
		while (to > 0 && less(item, items + (to - 1) * words, words))
		{
			move(items + to * words, items + (to - 1) * words, words);
			to--;
		}
		move(items + to * words, item, words);
	}
}

/* Counts the digits; returns the digit that most items have. */
static inline __attribute__((always_inline)) unsigned int
count_digits(const uint64_t *items, size_t count, unsigned int words, unsigned int byte, struct buckets *buckets)
{
	size_t start = 0;
	unsigned int largest = 0;

	memset(buckets->end, 0, sizeof(buckets->end));
	for (size_t i = 0; i < count; i++)
		buckets->end[digit(items + i * words, byte)]++;
	for (unsigned int d = 1; d < 256; d++)
	{
		if (buckets->end[d] > buckets->end[largest])
			largest = d;
	}
	for (unsigned int d = 0; d < 256; d++)
	{
		buckets->next[d] = start;
		start += buckets->end[d];
		buckets->end[d] = start;
	}
	smart_assert(start == count && buckets->end[largest] > buckets->next[largest]);
	return largest;
}

static inline __attribute__((always_inline)) void
swap(uint64_t *a, uint64_t *b, unsigned int words)
{
	uint64_t item[SMART_SORT_WORDS_MAX];

	move(item, a, words);
	move(a, b, words);
	move(b, item, words);
}

/*
 * Moves every item into the bucket of its digit.  Each swap puts one item where
 * it belongs and does not wait for the one before, so that their cache misses
 * overlap; what comes back in exchange is looked at in a later round.
 */
static inline __attribute__((always_inline)) void
permute(uint64_t *items, unsigned int words, unsigned int byte, struct buckets *buckets)
{
	uint8_t open[256];
	unsigned int count = 256;

	for (unsigned int d = 0; d < 256; d++)
		open[d] = (uint8_t) d;
	while (count > 0)
	{
		unsigned int kept = 0;

		for (unsigned int o = 0; o < count; o++)
		{
			unsigned int d = open[o];
			size_t end = buckets->end[d];

			for (size_t i = buckets->next[d]; i < end; i++)
			{
				uint64_t *item = items + i * words;

				smart_assert(buckets->next[digit(item, byte)] < buckets->end[digit(item, byte)]);
				swap(item, items + buckets->next[digit(item, byte)]++ * words, words);
			}
			if (buckets->next[d] < end)
				open[kept++] = (uint8_t) d;
		}
		count = kept;
	}
}

/* The same for any width: each case is compiled on its own. */
static unsigned int
count_digits_any(const uint64_t *items, size_t count, unsigned int words, unsigned int byte, struct buckets *buckets)
{
	switch (words)
	{
		case 1:
			return count_digits(items, count, 1, byte, buckets);
		case 2:
			return count_digits(items, count, 2, byte, buckets);
		case 3:
			return count_digits(items, count, 3, byte, buckets);
		default:
			smart_assert(words == 4);
			return count_digits(items, count, 4, byte, buckets);
	}
}

static void
permute_any(uint64_t *items, unsigned int words, unsigned int byte, struct buckets *buckets)
{
	switch (words)
	{
		case 1:
			permute(items, 1, byte, buckets);
			break;
		case 2:
			permute(items, 2, byte, buckets);
			break;
		case 3:
			permute(items, 3, byte, buckets);
			break;
		default:
			smart_assert(words == 4);
			permute(items, 4, byte, buckets);
	}
}

static void
insertion_sort_any(uint64_t *items, size_t count, unsigned int words)
{
	switch (words)
	{
		case 1:
			insertion_sort(items, count, 1);
			break;
		case 2:
			insertion_sort(items, count, 2);
			break;
		case 3:
			insertion_sort(items, count, 3);
			break;
		default:
			smart_assert(words == 4);
			insertion_sort(items, count, 4);
	}
}

/*
 * Sorts items that agree in the bytes before byte.  Recurses into all buckets
 * but the largest, hence at most log2(count) deep.
 */
static smart_status
sort(uint64_t *items, size_t count, unsigned int words, unsigned int byte, struct smart_env *env)
{
	smart_assert(byte <= words * 8);
	while (count > SMALL && byte < words * 8)
	{
		struct buckets buckets;
		unsigned int largest = count_digits_any(items, count, words, byte, &buckets);
		size_t start = buckets.next[largest];
		size_t size = buckets.end[largest] - start;

		if (count >= CHECK_EVERY && env->interrupted(env))
			return SMART_INTERRUPTED;
		if (size < count)
			permute_any(items, words, byte, &buckets);
		for (unsigned int d = 0; size < count && d < 256; d++)
		{
			size_t from = d == 0 ? 0 : buckets.end[d - 1];
			smart_status status;

			if (d == largest || buckets.end[d] - from < 2)
				continue;
			status = sort(items + from * words, buckets.end[d] - from, words, byte + 1, env);
			if (status != SMART_OK)
				return status;
		}
		smart_assert(size > 0 && size <= count);
		items += start * words;
		count = size;
		byte++;
	}
	if (count <= SMALL)
		insertion_sort_any(items, count, words);
	return SMART_OK;
}

/* The first byte in which any two items differ. */
static unsigned int
first_difference(const uint64_t *items, size_t count, unsigned int words)
{
	uint64_t differ[SMART_SORT_WORDS_MAX] = {0};
	unsigned int word = 0;

	for (size_t i = 1; i < count; i++)
	{
		for (unsigned int w = 0; w < words; w++)
			differ[w] |= items[i * words + w] ^ items[w];
	}
	while (word < words && differ[word] == 0)
		word++;
	return word * 8 + (word < words ? (unsigned int) __builtin_clzll(differ[word]) / 8 : 0);
}

smart_status
smart_sort_words(uint64_t *items, size_t count, unsigned int words, struct smart_env *env)
{
	smart_assert(words >= 1 && words <= SMART_SORT_WORDS_MAX);
	smart_assert(env != NULL);
	return sort(items, count, words, first_difference(items, count, words), env);
}

/* ---- records ---- */

/* Compares what follows the heads, which are equal and hold the bytes before offset. */
static int
compare_rest(const uint8_t *a, const uint8_t *b, size_t offset)
{
	size_t a_length = smart_sort_length(a);
	size_t b_length = smart_sort_length(b);

	smart_assert(offset > 0 && offset % 8 == 0);
	if (offset >= a_length || offset >= b_length)
		return (a_length > b_length) - (a_length < b_length);
	return smart_compare_bytes(smart_sort_bytes(a) + offset, a_length - offset, smart_sort_bytes(b) + offset,
							   b_length - offset);
}

static void
insertion_sort_strings(struct smart_sort_item *items, size_t count, size_t depth)
{
	size_t offset = depth / 8 * 8 + 8;

	for (size_t i = 1; i < count; i++)
	{
		struct smart_sort_item item = items[i];
		size_t to = i;

		while (to > 0 &&
			   (item.head < items[to - 1].head ||
				(item.head == items[to - 1].head && compare_rest(item.record, items[to - 1].record, offset) < 0)))
		{
			items[to] = items[to - 1];
			to--;
		}
		items[to] = item;
	}
}

/*
 * Fills the heads with the bytes from *depth on, and with later ones as long as
 * they do not differ.  Sets *depth to the first byte that differs; false if all
 * entries ended before that.
 */
static bool
refill(struct smart_sort_item *items, size_t count, size_t *depth)
{
	smart_assert(*depth % 8 == 0 && count > 0);
	for (size_t offset = *depth;; offset += 8)
	{
		uint64_t differ = 0;
		bool more = false;

		for (size_t i = 0; i < count; i++)
		{
			if (i + AHEAD < count)
				__builtin_prefetch(items[i + AHEAD].record + offset);
			items[i].head = smart_sort_head(items[i].record, offset);
			differ |= items[i].head ^ items[0].head;
			more |= smart_sort_length(items[i].record) > offset + 8;
		}
		*depth = offset + (differ != 0 ? (size_t) __builtin_clzll(differ) / 8 : 8);
		if (differ != 0 || !more)
			return differ != 0;
	}
}

/* Steps behind a byte that is the same in all items; false if the entries have ended. */
static bool
advance(struct smart_sort_item *items, size_t count, size_t *depth)
{
	(*depth)++;
	return *depth % 8 != 0 || refill(items, count, depth);
}

/*
 * Sorts items that agree in the bytes before depth and whose heads hold the
 * eight around it.  Recurses into all buckets but the largest, hence at most
 * log2(count) deep.
 */
static smart_status
sort_strings(struct smart_sort_item *items, size_t count, size_t depth, struct smart_env *env)
{
	smart_assert(count > 1);
	while (count > SMALL_STRINGS)
	{
		struct buckets buckets;
		uint64_t *words = (uint64_t *) (void *) items;
		unsigned int largest = count_digits_any(words, count, STRING_WORDS, depth % 8, &buckets);
		size_t start = buckets.next[largest];

		if (count >= CHECK_EVERY && env->interrupted(env))
			return SMART_INTERRUPTED;
		if (buckets.end[largest] - start < count)
			permute_any(words, STRING_WORDS, depth % 8, &buckets);
		for (unsigned int d = 0; d < 256; d++)
		{
			size_t from = d == 0 ? 0 : buckets.end[d - 1];
			size_t size = buckets.end[d] - from;
			size_t below = depth;
			smart_status status;

			if (d == largest || size < 2 || !advance(items + from, size, &below))
				continue;
			status = sort_strings(items + from, size, below, env);
			if (status != SMART_OK)
				return status;
		}
		smart_assert(start < buckets.end[largest] && buckets.end[largest] <= count);
		items += start;
		count = buckets.end[largest] - start;
		if (!advance(items, count, &depth))
			return SMART_OK;
	}
	insertion_sort_strings(items, count, depth);
	return SMART_OK;
}

smart_status
smart_sort_strings(struct smart_sort_item *items, size_t count, struct smart_env *env)
{
	uint64_t differ = 0;
	size_t depth = 0;

	smart_assert(env != NULL);
	smart_assert(count == 0 || items != NULL);
	for (size_t i = 1; i < count; i++)
		differ |= items[i].head ^ items[0].head;
	if (count < 2)
		return SMART_OK;
	if (differ != 0)
		depth = (size_t) __builtin_clzll(differ) / 8;
	else
	{
		depth = 8;
		if (!refill(items, count, &depth))
			return SMART_OK;
	}
	return sort_strings(items, count, depth, env);
}
