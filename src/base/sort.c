/*
 * sort.c
 *	  Sorting of entries in memory: items of a few words.  sort_strings.c has
 *	  the other kind.
 */
#include "base/sort.h"

#include "base/assert.h"

#define SMALL		32			/* a group up to which insertion sort wins */
#define CHECK_EVERY (1 << 16)	/* a group from which on an interrupt is looked for */

struct buckets
{
	size_t		next[256];		/* where the next item of the bucket goes */
	size_t		end[256];
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
	for (unsigned int i = 0; i < words; i++)
		to[i] = from[i];
}

static inline __attribute__((always_inline)) void
insertion_sort(uint64_t *items, size_t count, unsigned int words)
{
	for (size_t i = 1; i < count; i++)
	{
		uint64_t	item[SMART_SORT_WORDS_MAX];
		size_t		to = i;

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
	size_t		start = 0;
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
	return largest;
}

/* Moves every item into the bucket of its digit, following the cycles of the permutation. */
static inline __attribute__((always_inline)) void
permute(uint64_t *items, unsigned int words, unsigned int byte, struct buckets *buckets)
{
	for (unsigned int d = 0; d < 256; d++)
	{
		while (buckets->next[d] < buckets->end[d])
		{
			uint64_t	item[SMART_SORT_WORDS_MAX];
			unsigned int to;

			move(item, items + buckets->next[d] * words, words);
			while ((to = digit(item, byte)) != d)
			{
				uint64_t   *place = items + buckets->next[to]++ * words;
				uint64_t	evicted[SMART_SORT_WORDS_MAX];

				move(evicted, place, words);
				move(place, item, words);
				move(item, evicted, words);
			}
			move(items + buckets->next[d]++ * words, item, words);
		}
	}
}

/*
 * Sorts items that agree in the bytes before byte.  Recurses into all buckets
 * but the largest, hence at most log2(count) deep.
 */
#define DEFINE_SORT(words) \
static smart_status \
sort_##words(uint64_t *items, size_t count, unsigned int byte, struct smart_env *env) \
{ \
	while (count > SMALL && byte < (words) * 8) \
	{ \
		struct buckets buckets; \
		unsigned int largest = count_digits(items, count, words, byte, &buckets); \
		size_t		start = buckets.next[largest]; \
		size_t		size = buckets.end[largest] - start; \
		\
		if (count >= CHECK_EVERY && env->interrupted(env)) \
			return SMART_INTERRUPTED; \
		if (size < count) \
		{ \
			permute(items, words, byte, &buckets); \
			for (unsigned int d = 0; d < 256; d++) \
			{ \
				size_t		from = d == 0 ? 0 : buckets.end[d - 1]; \
				smart_status status; \
				\
				if (d == largest || buckets.end[d] - from < 2) \
					continue; \
				status = sort_##words(items + from * (words), buckets.end[d] - from, byte + 1, env); \
				if (status != SMART_OK) \
					return status; \
			} \
		} \
		items += start * (words); \
		count = size; \
		byte++; \
	} \
	if (count <= SMALL) \
		insertion_sort(items, count, words); \
	return SMART_OK; \
}

DEFINE_SORT(1)
DEFINE_SORT(2)
DEFINE_SORT(3)
DEFINE_SORT(4)

/* The first byte in which any two items differ. */
static unsigned int
first_difference(const uint64_t *items, size_t count, unsigned int words)
{
	uint64_t	differ[SMART_SORT_WORDS_MAX] = {0};
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
	unsigned int byte;

	smart_assert(words >= 1 && words <= SMART_SORT_WORDS_MAX);
	smart_assert(env != NULL);
	byte = first_difference(items, count, words);
	switch (words)
	{
		case 1:
			return sort_1(items, count, byte, env);
		case 2:
			return sort_2(items, count, byte, env);
		case 3:
			return sort_3(items, count, byte, env);
		default:
			return sort_4(items, count, byte, env);
	}
}
