/*
 * sorted_keys.c
 *	  Keys in ascending order, beside which a walk over the entries of a tree goes.
 */
#include "postgres.h"

#include "am/journal/sorted_keys.h"
#include "base/assert.h"
#include "base/bytes.h"

static inline int
compare(const struct smart_sorted_key *own, const uint8 *key, size_t key_length)
{
	return smart_compare_bytes(own->bytes, own->length, key, key_length);
}

/* qsort's. */
static int
compare_keys(const void *a, const void *b)
{
	const struct smart_sorted_key *right = b;

	return compare(a, right->bytes, right->length);
}

void
smart_sorted_keys_sort(struct smart_sorted_keys *keys)
{
	bool ascending = true;

	for (uint32 i = 1; i < keys->count && ascending; i++)
		ascending = compare_keys(&keys->keys[i - 1], &keys->keys[i]) <= 0;
	if (!ascending)
		qsort(keys->keys, keys->count, sizeof(*keys->keys), compare_keys);
}

/* The first position, from one on, whose key is not below another one. */
static uint32
search(const struct smart_sorted_keys *keys, uint32 from, const uint8 *key, size_t key_length)
{
	uint32 low = from;
	uint32 high = from;

	smart_assert(from <= keys->count);
	/* Mostly it is near: in steps that double, until it has been passed. */
	for (uint32 step = 1; high < keys->count && compare(&keys->keys[high], key, key_length) < 0; step *= 2)
	{
		low = high + 1;
		high = Min(keys->count, high + step);
	}
	while (low < high)
	{
		uint32 middle = low + (high - low) / 2;

		if (compare(&keys->keys[middle], key, key_length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	smart_assert(low >= from && low <= keys->count);
	return low;
}

bool
smart_sorted_keys_next(struct smart_sorted_keys *keys, const uint8 *from, size_t from_length, const uint8 **key,
					   size_t *key_length)
{
	keys->next = search(keys, keys->next, from, from_length);
	smart_assert(keys->next <= keys->count);
	if (keys->next == keys->count)
		return false;
	smart_assert(compare(&keys->keys[keys->next], from, from_length) >= 0);
	keys->at = keys->next;
	*key = keys->keys[keys->next].bytes;
	*key_length = keys->keys[keys->next].length;
	return true;
}

const struct smart_sorted_key *
smart_sorted_keys_find(struct smart_sorted_keys *keys, const uint8 *key, size_t key_length)
{
	uint32 at = keys->at;
	int order = at < keys->count ? compare(&keys->keys[at], key, key_length) : 1;

	if (order > 0 && at > 0 && compare(&keys->keys[at - 1], key, key_length) >= 0)
	{
		at = search(keys, 0, key, key_length);
		order = at < keys->count ? compare(&keys->keys[at], key, key_length) : 1;
	}
	while (order < 0 && ++at < keys->count)
		order = compare(&keys->keys[at], key, key_length);
	smart_assert(at <= keys->count);
	keys->at = at;
	return at < keys->count && order == 0 ? &keys->keys[at] : NULL;
}
