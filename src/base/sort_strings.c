/*
 * sort_strings.c
 *	  Sorting of entries in memory: records of any length.
 *
 * The heads spare the way to the records: eight rounds look at nothing else.
 * Then the heads of a group are filled with its next eight bytes.
 */
#include "base/assert.h"
#include "base/sort.h"

#define SMALL       24        /* a group up to which insertion sort wins */
#define CHECK_EVERY (1 << 16) /* a group from which on an interrupt is looked for */
#define AHEAD       8         /* records to prefetch */

struct buckets
{
	size_t next[256]; /* where the next item of the bucket goes */
	size_t end[256];
};

static inline unsigned int
digit(uint64_t head, size_t depth)
{
	return (unsigned int) (head >> (56 - 8 * (depth % 8))) & 0xff;
}

/* Compares what follows the heads, which are equal and hold the bytes before offset. */
static int
compare_rest(const uint8_t *a, const uint8_t *b, size_t offset)
{
	size_t a_length = smart_sort_length(a);
	size_t b_length = smart_sort_length(b);

	if (offset >= a_length || offset >= b_length)
		return (a_length > b_length) - (a_length < b_length);
	return smart_compare_bytes(smart_sort_bytes(a) + offset, a_length - offset, smart_sort_bytes(b) + offset,
							   b_length - offset);
}

static void
insertion_sort(struct smart_sort_item *items, size_t count, size_t depth)
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

/* Counts the digits; returns the digit that most items have. */
static unsigned int
count_digits(const struct smart_sort_item *items, size_t count, size_t depth, struct buckets *buckets)
{
	size_t start = 0;
	unsigned int largest = 0;

	memset(buckets->end, 0, sizeof(buckets->end));
	for (size_t i = 0; i < count; i++)
		buckets->end[digit(items[i].head, depth)]++;
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

/* Moves every item into the bucket of its digit; as in sort.c. */
static void
permute(struct smart_sort_item *items, size_t depth, struct buckets *buckets)
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
				struct smart_sort_item item = items[i];
				struct smart_sort_item *place = &items[buckets->next[digit(item.head, depth)]++];

				items[i] = *place;
				*place = item;
			}
			if (buckets->next[d] < end)
				open[kept++] = (uint8_t) d;
		}
		count = kept;
	}
}

/*
 * Sorts items that agree in the bytes before depth and whose heads hold the
 * eight around it.  Recurses into all buckets but the largest, hence at most
 * log2(count) deep.
 */
static smart_status
sort(struct smart_sort_item *items, size_t count, size_t depth, struct smart_env *env)
{
	while (count > SMALL)
	{
		struct buckets buckets;
		unsigned int largest = count_digits(items, count, depth, &buckets);
		size_t start = buckets.next[largest];

		if (count >= CHECK_EVERY && env->interrupted(env))
			return SMART_INTERRUPTED;
		if (buckets.end[largest] - start < count)
			permute(items, depth, &buckets);
		for (unsigned int d = 0; d < 256; d++)
		{
			size_t from = d == 0 ? 0 : buckets.end[d - 1];
			size_t size = buckets.end[d] - from;
			size_t below = depth;
			smart_status status;

			if (d == largest || size < 2 || !advance(items + from, size, &below))
				continue;
			status = sort(items + from, size, below, env);
			if (status != SMART_OK)
				return status;
		}
		items += start;
		count = buckets.end[largest] - start;
		if (!advance(items, count, &depth))
			return SMART_OK;
	}
	insertion_sort(items, count, depth);
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
	return sort(items, count, depth, env);
}
