/*
 * groups_test.c
 *	  Packed entries in groups (tree/groups.h) against a plain list: all come back in their order, each key leads to the
 *	  entry that a search of the list finds, with and without a suffix that takes no part in the order; and a page that was
 *	  damaged may say anything, but within its bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/must.h"
#include "tree/groups.h"

#define PAGE   8192
#define ROUNDS 2000
#define ITEMS  4096
#define KEYS   200 /* that are looked for in one page */

struct item
{
	int length; /* without the suffix */
	uint8_t bytes[SMART_ENTRY_MAX];
};

/* How entries look: bytes of an entry, of which so many may take any value, and from so many values. */
struct shape
{
	int least;
	int most;
	int common; /* bytes that all have in common, at the beginning */
	uint32_t values;
	int suffix;
};

static uint64_t seed = 88172645463325252u;
static struct item *items;
static uint32_t count;

static uint32_t
below(uint32_t limit)
{
	return (uint32_t) (test_random(&seed) % limit);
}

static void
make_item(struct item *item, const struct shape *shape)
{
	item->length = shape->least + (int) below((uint32_t) (shape->most - shape->least + 1));
	for (int i = 0; i < item->length; i++)
		item->bytes[i] = i < shape->common ? 'c' : (uint8_t) (below(shape->values) * (255 / (shape->values - 1)));
}

static int
compare_items(const void *a, const void *b)
{
	const struct item *left = a;
	const struct item *right = b;

	return smart_compare_bytes(left->bytes, (size_t) left->length, right->bytes, (size_t) right->length);
}

/* Ascending items, all different. */
static void
make_items(const struct shape *shape, uint32_t wanted)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < wanted; i++)
		make_item(&items[i], shape);
	qsort(items, wanted, sizeof(*items), compare_items);
	for (uint32_t i = 0; i < wanted; i++)
	{
		if (kept == 0 || compare_items(&items[kept - 1], &items[i]) != 0)
			memmove(&items[kept++], &items[i], sizeof(*items));
	}
	count = kept;
}

/* Suffixes are the numbers of items. */
static int
with_suffix(uint32_t i, int suffix, uint8_t *entry)
{
	memcpy(entry, items[i].bytes, (size_t) items[i].length);
	if (suffix > 0)
		(void) smart_put_be32(entry + items[i].length, i);
	return items[i].length + suffix;
}

/* Packs items until there is no more room; count becomes how many they were.  Where entries end, and the directory begins. */
static void
fill_page(uint8_t *page, int suffix, uint8_t **end, uint8_t **directory)
{
	static struct smart_groups_writer writer;
	uint8_t entry[SMART_ENTRY_MAX];
	uint32_t i;

	smart_groups_begin(&writer, page, page + PAGE, suffix);
	for (i = 0; i < count; i++)
	{
		if (!smart_groups_add(&writer, entry, with_suffix(i, suffix, entry)))
			break;
	}
	must(i > 0, "an entry fits into an empty page");
	count = i;
	*directory = smart_groups_finish(&writer);
	*end = writer.packer.at;
}

static bool
is_item(const struct smart_unpacker *unpacker, uint32_t i, int suffix)
{
	uint8_t entry[SMART_ENTRY_MAX];
	int length = with_suffix(i, suffix, entry);

	return unpacker->length == length && memcmp(unpacker->entry, entry, (size_t) length) == 0;
}

/* A key to look for: an item, one with a byte more, less or changed, or any. */
static void
make_key(struct item *key, const struct shape *shape)
{
	const struct item *item = &items[below(count)];

	if (below(5) == 0)
	{
		make_item(key, shape);
		return;
	}
	key->length = item->length;
	memcpy(key->bytes, item->bytes, (size_t) item->length);
	switch (below(4))
	{
		case 0:
			if (key->length < SMART_ENTRY_MAX)
				key->bytes[key->length++] = (uint8_t) below(256);
			break;
		case 1:
			key->length -= key->length > 1;
			break;
		case 2:
			key->bytes[below((uint32_t) key->length)] ^= (uint8_t) (1 + below(255));
			break;
		default:
			break;
	}
}

/* How many items come before the key, or are it if at. */
static uint32_t
items_before(const struct item *key, bool at)
{
	uint32_t n = 0;

	while (n < count && compare_items(&items[n], key) < at)
		n++;
	return n;
}

/* The key's place, and what follows from there to the end, or for a while. */
static bool
seek_finds(struct smart_groups *groups, const struct item *key, int suffix)
{
	static struct smart_unpacker unpacker;
	uint32_t place = items_before(key, false);
	bool found = smart_groups_seek(groups, key->bytes, key->length, &unpacker);

	for (uint32_t i = place; i < count && i < place + 100; i++)
	{
		if (!found || !is_item(&unpacker, i, suffix))
			return false;
		found = smart_groups_next(groups, &unpacker);
	}
	return count > place + 100 || (!found && unpacker.at == groups->end);
}

static bool
floor_finds(struct smart_groups *groups, const struct item *key)
{
	static struct smart_unpacker unpacker;
	uint32_t place = items_before(key, true);
	uint8_t suffix[4];
	bool found = smart_groups_floor(groups, key->bytes, key->length, &unpacker, suffix);

	return found && smart_load_be32(suffix) == (place > 0 ? place - 1 : 0);
}

/* Group after group from the last one on: each has the items before those of the next one. */
static bool
backward_finds_all(struct smart_groups *groups, int suffix)
{
	static struct smart_unpacker unpacker;
	uint32_t left = count;
	uint32_t group = groups->count;

	while (group-- > 0)
	{
		uint32_t n = 0;

		if (!smart_groups_enter(groups, group, &unpacker))
			return false;
		while (smart_unpacker_next(&unpacker))
			n++;
		if (n == 0 || n > left || unpacker.at != unpacker.end || !is_item(&unpacker, left - 1, suffix))
			return false;
		left -= n;
	}
	return left == 0;
}

/* The last group that begins before the key: the next one does not. */
static bool
enter_before_finds(struct smart_groups *groups, const struct item *key, int suffix)
{
	static struct smart_unpacker unpacker;
	uint32_t place = items_before(key, false);
	uint32_t group;

	if (!smart_groups_enter_before(groups, key->bytes, key->length, &unpacker))
		return false;
	group = groups->group;
	for (uint32_t i = 0; i < groups->count; i++)
	{
		bool before = false;

		if (!smart_groups_enter(groups, i, &unpacker) || !smart_unpacker_next(&unpacker))
			return false;
		for (uint32_t k = 0; k < place && !before; k++)
			before = is_item(&unpacker, k, suffix);
		if (before != (i <= group) && !(i == 0 && place == 0))
			return false;
	}
	return place > 0 || group == 0;
}

static void
check_page(const struct shape *shape, uint32_t wanted)
{
	uint8_t *page = malloc(PAGE);
	static struct smart_unpacker unpacker;
	static struct item key;
	struct smart_groups groups;
	uint8_t *end;
	uint8_t *directory;
	bool good = true;

	must(page != NULL, "malloc");
	make_items(shape, wanted);
	fill_page(page, shape->suffix, &end, &directory);
	CHECK(smart_groups_open(&groups, page, end, directory, page + PAGE, shape->suffix));
	smart_groups_rewind(&groups, &unpacker);
	for (uint32_t i = 0; i < count; i++)
		good &= smart_groups_next(&groups, &unpacker) && is_item(&unpacker, i, shape->suffix);
	CHECK(good && !smart_groups_next(&groups, &unpacker) && unpacker.at == end);
	CHECK(backward_finds_all(&groups, shape->suffix));
	good = true;
	for (int i = 0; i < KEYS && good; i++)
	{
		make_key(&key, shape);
		good &= seek_finds(&groups, &key, shape->suffix);
		good &= i % 10 != 0 || enter_before_finds(&groups, &key, shape->suffix);
		good &= shape->suffix == 0 || floor_finds(&groups, &key);
	}
	CHECK(good);
	free(page);
}

/* Groups are there, and not too many of them: else nothing above tells anything of them. */
static void
check_groups(void)
{
	const struct shape shape = {.least = 14, .most = 14, .common = 2, .values = 256};
	uint8_t *page = malloc(PAGE);
	struct smart_groups groups;
	uint8_t *end;
	uint8_t *directory;

	must(page != NULL, "malloc");
	make_items(&shape, ITEMS);
	fill_page(page, 0, &end, &directory);
	CHECK(count < ITEMS);
	CHECK(smart_groups_open(&groups, page, end, directory, page + PAGE, 0));
	/* Each has an entry too many at most, and a word and a place in the directory. */
	CHECK(groups.count >= PAGE / (SMART_GROUP_BYTES + SMART_PACKED_MAX(14) + 6));
	CHECK(groups.count <= PAGE / (SMART_GROUP_BYTES + 6) + 1);
	CHECK(directory - end < 32);
	free(page);
}

/* Directories that cannot be: none of them is accepted. */
static void
check_directories(void)
{
	static const uint8_t no_group[] = {0, 0, 0, 0};
	static const uint8_t too_many[] = {0, 0, 255, 255};
	static const uint8_t two[] = {0, 0, 0, 0, 9, 0, 0, 0, 2, 0};
	const uint8_t entries[9] = {0x01, 'a'};
	static struct smart_unpacker unpacker;
	struct smart_groups groups;

	CHECK(!smart_groups_open(&groups, entries, entries + 9, no_group, no_group + 4, 0));
	CHECK(!smart_groups_open(&groups, entries, entries + 9, no_group, no_group + 3, 0));
	CHECK(!smart_groups_open(&groups, entries, entries + 9, too_many, too_many + 4, 0));
	CHECK(!smart_groups_open(&groups, entries, entries + 9, two, two + 9, 0));
	CHECK(!smart_groups_open(&groups, entries, entries, two, two + 10, 0));
	/* The second group begins where entries end: it cannot be read, and entries do not end with the first one. */
	CHECK(smart_groups_open(&groups, entries, entries + 9, two, two + 10, 0));
	CHECK(!smart_groups_enter(&groups, 1, &unpacker));
	smart_groups_rewind(&groups, &unpacker);
	unpacker.at = unpacker.end;
	CHECK(!smart_groups_next(&groups, &unpacker) && unpacker.at != groups.end);
}

/* Pages some of whose bytes have changed: found or not, but without a step beside them (AddressSanitizer). */
static void
check_damage(void)
{
	const struct shape shape = {.least = 1, .most = 30, .values = 3, .suffix = 4};
	static struct smart_unpacker unpacker;
	static struct item key;
	uint32_t opened = 0;

	for (int i = 0; i < ROUNDS; i++)
	{
		uint8_t *page = malloc(PAGE);
		struct smart_groups groups;
		uint8_t suffix[4];
		uint8_t *end;
		uint8_t *directory;

		must(page != NULL, "malloc");
		if (i % 100 == 0)
			make_items(&shape, ITEMS / 4);
		fill_page(page, shape.suffix, &end, &directory);
		for (uint32_t damages = 1 + below(3); damages > 0; damages--)
			page[below(4) == 0 ? PAGE - 1 - below((uint32_t) (page + PAGE - directory)) : below(PAGE)] =
				(uint8_t) below(256);
		if (smart_groups_open(&groups, page, end, directory, page + PAGE, shape.suffix))
		{
			opened++;
			make_key(&key, &shape);
			(void) smart_groups_floor(&groups, key.bytes, key.length, &unpacker, suffix);
			(void) smart_groups_seek(&groups, key.bytes, key.length, &unpacker);
			while (smart_groups_next(&groups, &unpacker))
				;
		}
		free(page);
	}
	CHECK(opened > ROUNDS / 2 && opened < ROUNDS);
}

int
main(void)
{
	static const struct shape shapes[] = {
		{.least = 14, .most = 14, .values = 256},               /* numbers and TIDs */
		{.least = 14, .most = 14, .common = 6, .values = 256},  /* of a small range */
		{.least = 12, .most = 12, .common = 2, .values = 2},    /* words of which many are equal */
		{.least = 1, .most = 60, .values = 4},                  /* text, much of it the beginning of other text */
		{.least = 1, .most = 300, .common = 200, .values = 26}, /* long, and much in common */
		{.least = 1, .most = 2700, .values = 2},                /* few on a page */
		{.least = 1, .most = 12, .values = 3, .suffix = 4},
		{.least = 1, .most = 4095, .values = 2, .suffix = 4}};

	items = calloc(ITEMS, sizeof(*items));
	must(items != NULL, "calloc");
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
	{
		for (int round = 0; round < 8; round++)
			check_page(&shapes[i], 1 + below(round < 3 ? 20 : shapes[i].most > 100 ? 400 : ITEMS));
	}
	check_groups();
	check_directories();
	check_damage();
	free(items);
	return check_finish();
}
