/*
 * overlay_test.c
 *	  Merging a base and what lies over it (tree/overlay.h) against a plain list: forward and backward, by blocks of any size, of
 *	  keys of one length and of many, which differ in their first bytes or far behind them, with payloads and without.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/must.h"
#include "tree/overlay.h"

#define KEYS   1500
#define ROUNDS 400
#define LONG   900 /* bytes of the longest keys: blocks are full of bytes before they are full of entries */

#define BYTES_MAX (LONG + 32)

/* How keys look: no byte but the last one is 0, so that none is a prefix of another one. */
struct shape
{
	uint32_t least;
	uint32_t most;
	uint32_t common;  /* bytes that all have in common, at the beginning */
	uint32_t values;  /* of each other byte */
	uint32_t payload; /* bytes behind the key of an entry */
	uint32_t base;    /* of 100 keys, as many are in the base */
	uint32_t over;    /* and as many over it */
	uint32_t removed; /* and of 100 of these, as many are removed */
};

struct bytes
{
	uint32_t length;
	uint32_t key_length;
	bool there;
	uint8_t bytes[BYTES_MAX];
};

/* Entries of one side, or those that are expected, in the order of keys. */
struct list
{
	uint32_t count;
	struct bytes *entries;
};

static uint64_t seed = 88172645463325252u;

static uint32_t
below(uint32_t limit)
{
	return (uint32_t) (test_random(&seed) % limit);
}

static void
make_key(struct bytes *key, const struct shape *shape)
{
	key->key_length = key->length = shape->least + below(shape->most - shape->least + 1);
	for (uint32_t i = 0; i + 1 < key->length; i++)
		key->bytes[i] = i < shape->common ? 'c' : (uint8_t) (1 + below(shape->values) * (254 / shape->values));
	key->bytes[key->length - 1] = 0;
}

static int
compare_keys(const void *a, const void *b)
{
	const struct bytes *left = a;
	const struct bytes *right = b;

	return smart_compare_bytes(left->bytes, left->length, right->bytes, right->length);
}

static void
add_payload(struct bytes *entry, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++)
		entry->bytes[entry->length++] = (uint8_t) below(256);
}

/* Keys, their places on both sides, and what merging is to give. */
static void
make_lists(const struct shape *shape, struct list *base, struct list *over, struct list *expected)
{
	struct list keys = {.entries = malloc(KEYS * sizeof(struct bytes))};
	uint32_t wanted = below(4) == 0 ? below(20) : below(KEYS);

	must(keys.entries != NULL, "malloc");
	for (uint32_t i = 0; i < wanted; i++)
		make_key(&keys.entries[i], shape);
	qsort(keys.entries, wanted, sizeof(*keys.entries), compare_keys);
	base->count = over->count = expected->count = 0;
	for (uint32_t i = 0; i < wanted; i++)
	{
		struct bytes entry = keys.entries[i];
		bool in_base = below(100) < shape->base;
		bool is_over = below(100) < shape->over;

		if (i > 0 && compare_keys(&keys.entries[i - 1], &keys.entries[i]) == 0)
			continue;
		add_payload(&entry, shape->payload);
		if (in_base)
			base->entries[base->count++] = entry;
		if (is_over)
		{
			entry = keys.entries[i];
			entry.there = below(100) >= shape->removed;
			/* What was removed has the key alone, or is filled up. */
			if (entry.there || below(2) == 0)
				add_payload(&entry, shape->payload);
			over->entries[over->count++] = entry;
		}
		if (is_over ? entry.there : in_base)
			expected->entries[expected->count++] = entry;
	}
	free(keys.entries);
}

/* The entry with this number in the direction of the scan. */
static const struct bytes *
entry_of(const struct list *list, uint32_t number, bool backward)
{
	return &list->entries[backward ? list->count - 1 - number : number];
}

/* Begins the next block of a side if it needs one; *given: entries it has had. */
static void
give(struct smart_overlay *overlay, struct smart_side *side, const struct list *list, uint32_t *given)
{
	bool stops = below(4) != 0;
	uint32_t most = below(3) == 0 ? SMART_SIDE_MAX : 1 + below(SMART_SIDE_MAX);
	uint8_t *place;

	if (!smart_overlay_needs(overlay, side))
		return;
	while (*given < list->count && (place = smart_overlay_place(overlay, side, most)) != NULL)
	{
		if (side == &overlay->over && stops && smart_overlay_reaches(overlay))
			return;
		const struct bytes *entry = entry_of(list, (*given)++, overlay->backward);

		memcpy(place, entry->bytes, entry->length);
		if (side == &overlay->over)
			smart_overlay_add_over(overlay, (int) entry->length, (int) entry->key_length, entry->there);
		else
			smart_overlay_add(overlay, side, (int) entry->length);
	}
	/* Whether it has ended may be known together with the last entry, or later. */
	side->ended = *given == list->count && (side->count == 0 || below(2) == 0);
}

/* Is a batch what comes next?  *taken: how many were taken before it. */
static bool
is_next(const struct smart_batch *batch, const struct list *expected, bool backward, uint32_t *taken)
{
	static uint8_t bytes[SMART_ENTRY_MAX];

	if (batch->count > expected->count - *taken)
		return false;
	for (uint32_t i = 0; i < batch->count; i++)
	{
		/* A batch ascends either way. */
		uint32_t number = *taken + (backward ? batch->count - 1 - i : i);
		const struct bytes *entry = entry_of(expected, number, backward);

		if (smart_batch_entry(batch, i, bytes) != (int) entry->length ||
			memcmp(bytes, entry->bytes, entry->length) != 0)
			return false;
	}
	*taken += batch->count;
	return true;
}

static bool
merges(struct smart_overlay *overlay, const struct list *base, const struct list *over, const struct list *expected,
	   bool backward)
{
	uint32_t from_base = 0;
	uint32_t from_over = 0;
	uint32_t taken = 0;

	smart_overlay_begin(overlay, backward);
	while (!smart_overlay_is_used_up(&overlay->base) || !smart_overlay_is_used_up(&overlay->over))
	{
		struct smart_batch batch;

		give(overlay, &overlay->base, base, &from_base);
		give(overlay, &overlay->over, over, &from_over);
		smart_overlay_merge(overlay, &batch);
		if (!is_next(&batch, expected, backward, &taken))
			return false;
	}
	return taken == expected->count;
}

static void
check_shape(const struct shape *shape, struct smart_overlay *overlay, struct list lists[3])
{
	bool good = true;

	for (int i = 0; i < ROUNDS && good; i++)
	{
		make_lists(shape, &lists[0], &lists[1], &lists[2]);
		good = merges(overlay, &lists[0], &lists[1], &lists[2], false) &&
			   merges(overlay, &lists[0], &lists[1], &lists[2], true);
	}
	CHECK(good);
}

/* Entries that do not ascend, as a damaged page may have them: whatever comes out, each came in (AddressSanitizer). */
static void
check_disorder(struct smart_overlay *overlay)
{
	static const struct shape shape = {.least = 1, .most = 30, .values = 3};
	static struct bytes entry;
	struct smart_batch batch;

	for (int i = 0; i < ROUNDS; i++)
	{
		smart_overlay_begin(overlay, i % 2 != 0);
		for (uint32_t k = 0; k < SMART_SIDE_MAX; k++)
		{
			for (int side = 0; side < 2; side++)
			{
				make_key(&entry, &shape);
				memcpy(smart_overlay_place(overlay, side == 0 ? &overlay->base : &overlay->over, SMART_SIDE_MAX),
					   entry.bytes, entry.length);
				if (side == 0)
					smart_overlay_add(overlay, &overlay->base, (int) entry.length);
				else
					smart_overlay_add_over(overlay, (int) entry.length, (int) entry.length, true);
			}
		}
		overlay->base.ended = overlay->over.ended = true;
		smart_overlay_merge(overlay, &batch);
		CHECK(batch.count >= SMART_SIDE_MAX && batch.count <= 2 * SMART_SIDE_MAX);
	}
}

int
main(void)
{
	static const struct shape shapes[] = {
		{.least = 14, .most = 14, .values = 127, .base = 60, .over = 50, .removed = 40},
		{.least = 14, .most = 14, .common = 7, .values = 10, .payload = 8, .base = 60, .over = 50, .removed = 40},
		{.least = 9, .most = 9, .common = 4, .values = 6, .base = 90, .over = 90, .removed = 50},
		{.least = 2, .most = 40, .values = 2, .base = 60, .over = 50, .removed = 40},
		{.least = 2, .most = 6, .values = 9, .payload = 12, .base = 70, .over = 60, .removed = 60},
		{.least = 20, .most = 40, .common = 16, .values = 127, .payload = 3, .base = 99, .over = 2, .removed = 50},
		{.least = 20, .most = 40, .common = 16, .values = 127, .base = 2, .over = 99, .removed = 99},
		{.least = 1, .most = LONG, .values = 2, .payload = 20, .base = 60, .over = 60, .removed = 30},
		{.least = 14, .most = 14, .values = 127, .base = 0, .over = 80, .removed = 20},
		{.least = 14, .most = 14, .values = 127, .base = 80, .over = 0, .removed = 0},
	};
	struct smart_overlay *overlay = malloc(sizeof(*overlay));
	struct list lists[3];

	must(overlay != NULL, "malloc");
	for (int i = 0; i < 3; i++)
	{
		lists[i].entries = malloc(KEYS * sizeof(struct bytes));
		must(lists[i].entries != NULL, "malloc");
	}
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		check_shape(&shapes[i], overlay, lists);
	check_disorder(overlay);
	for (int i = 0; i < 3; i++)
		free(lists[i].entries);
	free(overlay);
	return check_finish();
}
