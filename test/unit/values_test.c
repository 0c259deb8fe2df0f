/*
 * values_test.c
 *	  Values that are changed in place: what get, update and upsert say, while leaves split,
 *	  go down, and are rewritten; what they cost; and a leaf that a client has left frozen.
 */
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/tree_client.h"
#include "tree/block/access.h"
#include "tree/block/values.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"

#define KEY   8
#define ENTRY (KEY + SMART_VALUE_BYTES)
#define MANY  20000

struct bench
{
	struct test_node *node;
	struct test_client *owner;
	struct smart_tree_options options;
	struct tree_client *client;
	struct tree_client *other;
};

/* fixed_length: 0 for keys of any length. */
static struct bench
open_bench_of(uint32_t leaf_size, uint32_t fixed_length)
{
	struct bench bench = {.node = test_node_open(8, 64 << 20)};

	bench.owner = test_client_open(bench.node, 1);
	bench.options = (struct smart_tree_options){.leaf_size = leaf_size,
												.fixed_length = fixed_length,
												.shared = true,
												.value = true};
	bench.options.id = test_tree_create(bench.owner, &bench.options.root);
	bench.client = tree_client_open(bench.node, &bench.options, true, 2);
	bench.other = tree_client_open(bench.node, &bench.options, true, 3);
	return bench;
}

static struct bench
open_bench(void)
{
	return open_bench_of(256, KEY);
}

static void
close_bench(struct bench *bench)
{
	tree_client_close(bench->other);
	tree_client_close(bench->client);
	test_client_close(bench->owner);
	test_node_close(bench->node);
}

/* Keys that spread: the number's bytes, the lowest first. */
static void
make_entry(uint8_t *entry, uint64_t number, uint64_t value)
{
	memcpy(entry, &number, KEY);
	memcpy(entry + KEY, &value, sizeof(value));
}

static bool
insert(struct tree_client *client, uint64_t number, uint64_t value)
{
	uint8_t entry[ENTRY];
	bool added = false;

	make_entry(entry, number, value);
	CHECK(smart_tree_insert(client->tree, entry, KEY, ENTRY, &added) == SMART_OK);
	return added;
}

static bool
update(struct tree_client *client, uint64_t number, uint64_t value)
{
	uint8_t entry[ENTRY];
	bool found = false;

	make_entry(entry, number, value);
	CHECK(smart_tree_update(client->tree, entry, KEY, value, &found) == SMART_OK);
	return found;
}

static bool
has_value(struct tree_client *client, uint64_t number, uint64_t value)
{
	uint8_t entry[ENTRY];
	uint64_t seen = value + 1;
	bool found = false;

	make_entry(entry, number, value);
	CHECK(smart_tree_get(client->tree, entry, KEY, &seen, &found) == SMART_OK);
	return found && seen == value;
}

static bool
is_absent(struct tree_client *client, uint64_t number)
{
	uint8_t entry[ENTRY];
	uint64_t seen = 5;
	bool found = true;

	make_entry(entry, number, 0);
	CHECK(smart_tree_get(client->tree, entry, KEY, &seen, &found) == SMART_OK);
	return !found && seen == 5;
}

static void
check_tree(struct tree_client *client, uint64_t entries)
{
	struct smart_verify_report report;
	char message[256] = "";

	CHECK(smart_tree_verify(client->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK);
	CHECK(report.entries == entries);
}

static void
check_one_key(void)
{
	struct bench bench = open_bench();
	uint8_t entry[ENTRY];
	bool flag = true;

	CHECK(is_absent(bench.client, 7) && !update(bench.client, 7, 1) && is_absent(bench.client, 7));
	CHECK(insert(bench.client, 7, 10) && has_value(bench.other, 7, 10));
	CHECK(!insert(bench.client, 7, 11) && has_value(bench.client, 7, 10));
	CHECK(update(bench.client, 7, 12) && has_value(bench.other, 7, 12));
	CHECK(update(bench.other, 7, 12) && has_value(bench.client, 7, 12));
	CHECK(update(bench.other, 7, SMART_VALUE_MAX) && has_value(bench.client, 7, SMART_VALUE_MAX));
	CHECK(update(bench.other, 7, 0) && has_value(bench.client, 7, 0));
	/* The other's entry, and its own. */
	make_entry(entry, 7, 20);
	CHECK(smart_tree_upsert(bench.client->tree, entry, KEY, &flag) == SMART_OK && !flag);
	make_entry(entry, 8, 21);
	CHECK(smart_tree_upsert(bench.client->tree, entry, KEY, &flag) == SMART_OK && flag);
	CHECK(has_value(bench.other, 7, 20) && has_value(bench.other, 8, 21));
	CHECK(smart_tree_remove(bench.client->tree, entry, KEY, &flag) == SMART_OK && flag && is_absent(bench.other, 8));
	CHECK(has_value(bench.other, 7, 20) && !update(bench.other, 8, 1));
	check_tree(bench.client, 1);
	close_bench(&bench);
}

static void
check_wrong_arguments(void)
{
	struct bench bench = open_bench();
	uint8_t entry[ENTRY + 1] = {0};
	uint64_t value;
	bool flag;

	make_entry(entry, 7, SMART_VALUE_MAX + 1);
	CHECK(smart_tree_insert(bench.client->tree, entry, KEY, ENTRY, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_upsert(bench.client->tree, entry, KEY, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_update(bench.client->tree, entry, KEY, SMART_VALUE_MAX + 1, &flag) == SMART_TOO_LONG);
	make_entry(entry, 7, 1);
	CHECK(smart_tree_insert(bench.client->tree, entry, KEY, KEY, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_insert(bench.client->tree, entry, KEY, ENTRY + 1, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_upsert(bench.client->tree, entry, KEY - 1, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_update(bench.client->tree, entry, KEY + 1, 1, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_get(bench.client->tree, entry, KEY - 1, &value, &flag) == SMART_TOO_LONG);
	check_tree(bench.client, 0);
	close_bench(&bench);
}

/* Inserts, updates and removals in turn: leaves split, grow, go down and are rewritten, marked and not. */
static void
check_many(uint32_t leaf_size)
{
	struct bench bench = open_bench_of(leaf_size, KEY);
	uint64_t left = 0;
	uint8_t entry[ENTRY];
	bool flag;

	for (uint64_t i = 0; i < MANY; i++)
	{
		CHECK(insert(bench.client, i, i));
		if (i % 3 == 0)
			CHECK(update(bench.other, i / 2, MANY + i / 2));
	}
	for (uint64_t i = 0; i < MANY; i += 5)
	{
		make_entry(entry, i, 0);
		CHECK(smart_tree_remove(bench.other->tree, entry, KEY, &flag) == SMART_OK && flag);
	}
	for (uint64_t i = 0; i < MANY; i++)
	{
		bool updated = (2 * i) % 3 == 0 || (2 * i + 1) % 3 == 0;
		uint64_t value = updated && 2 * i + 1 < MANY ? MANY + i : i;

		left += i % 5 != 0;
		if (i % 5 == 0 ? !is_absent(bench.client, i) : !has_value(bench.client, i, value))
			CHECK(i == MANY);
	}
	check_tree(bench.client, left);
	close_bench(&bench);
}

static void
check_load(void)
{
	struct bench bench = open_bench();
	struct smart_load *load;
	uint8_t entry[ENTRY];
	bool flag;

	CHECK(smart_load_begin(bench.client->tree, 100, &load) == SMART_OK);
	for (uint64_t i = 0; i < MANY; i++)
	{
		make_entry(entry, __builtin_bswap64(i * 7), i + 1);
		CHECK(smart_load_add(load, entry, ENTRY) == SMART_OK);
	}
	make_entry(entry, __builtin_bswap64(MANY * 7), SMART_VALUE_MAX + 1);
	CHECK(smart_load_add(load, entry, ENTRY) == SMART_TOO_LONG);
	CHECK(smart_load_finish(load) == SMART_OK);
	for (uint64_t i = 0; i < MANY; i++)
	{
		if (!has_value(bench.other, __builtin_bswap64(i * 7), i + 1))
			CHECK(i == MANY);
	}
	check_tree(bench.client, MANY);
	make_entry(entry, __builtin_bswap64(7), 0);
	CHECK(smart_tree_lookup(bench.client->tree, entry, KEY, &flag) == SMART_OK && flag);
	close_bench(&bench);
}

/* ---- keys of any length ---- */

#define TEXT_MAX 80
#define TEXTS    8000

/* Digits, which ascend, some more letters, an end, and the value; the key's length. */
static size_t
make_text(uint8_t *entry, uint64_t number, uint64_t value)
{
	size_t length = (size_t) snprintf((char *) entry, TEXT_MAX, "%05u%.*s", (unsigned int) number,
									  (int) (number * 7 % 50), "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz") +
					1;

	memcpy(entry + length, &value, sizeof(value));
	return length;
}

static bool
insert_text(struct tree_client *client, uint64_t number, uint64_t value)
{
	uint8_t entry[TEXT_MAX];
	size_t key_length = make_text(entry, number, value);
	bool added = false;

	CHECK(smart_tree_insert(client->tree, entry, key_length, key_length + SMART_VALUE_BYTES, &added) == SMART_OK);
	return added;
}

static bool
update_text(struct tree_client *client, uint64_t number, uint64_t value)
{
	uint8_t entry[TEXT_MAX];
	size_t key_length = make_text(entry, number, value);
	bool found = false;

	CHECK(smart_tree_update(client->tree, entry, key_length, value, &found) == SMART_OK);
	return found;
}

static bool
text_has_value(struct tree_client *client, uint64_t number, uint64_t value)
{
	uint8_t entry[TEXT_MAX];
	size_t key_length = make_text(entry, number, value);
	uint64_t seen = value + 1;
	bool found = false;

	CHECK(smart_tree_get(client->tree, entry, key_length, &seen, &found) == SMART_OK);
	return found && seen == value;
}

/* Loaded, inserted in between, updated and removed: values stay with their keys as leaves are divided and rewritten. */
static void
check_any_length(void)
{
	struct bench bench = open_bench_of(256, 0);
	struct smart_load *load;
	uint8_t entry[TEXT_MAX];
	uint64_t wrong = 0;
	bool flag;

	CHECK(smart_load_begin(bench.client->tree, 100, &load) == SMART_OK);
	for (uint64_t i = 0; i < TEXTS; i += 4)
	{
		size_t key_length = make_text(entry, i, i);

		CHECK(smart_load_add(load, entry, key_length + SMART_VALUE_BYTES) == SMART_OK);
	}
	CHECK(smart_load_add(load, entry, SMART_VALUE_BYTES) == SMART_TOO_LONG);
	CHECK(smart_load_finish(load) == SMART_OK);
	for (uint64_t i = 0; i < TEXTS; i++)
	{
		wrong += i % 4 != 0 && !insert_text(bench.client, i, i);
		wrong += insert_text(bench.other, i, TEXTS + i);
		wrong += i % 3 == 0 && !update_text(bench.other, i, 2 * TEXTS + i);
	}
	for (uint64_t i = 0; i < TEXTS; i += 5)
	{
		size_t key_length = make_text(entry, i, 0);

		CHECK(smart_tree_remove(bench.other->tree, entry, key_length, &flag) == SMART_OK && flag);
	}
	for (uint64_t i = 0; i < TEXTS; i++)
		wrong += text_has_value(bench.client, i, i % 3 == 0 ? 2 * TEXTS + i : i) != (i % 5 != 0);
	CHECK(wrong == 0);
	check_tree(bench.client, TEXTS - TEXTS / 5);
	close_bench(&bench);
}

static void
check_wrong_lengths(void)
{
	static uint8_t entry[SMART_KEY_MAX + 1 + SMART_VALUE_BYTES];
	struct bench bench = open_bench_of(256, 0);
	uint64_t value;
	bool flag;

	CHECK(smart_tree_get(bench.client->tree, entry, 0, &value, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_get(bench.client->tree, entry, SMART_KEY_MAX + 1, &value, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_update(bench.client->tree, entry, SMART_KEY_MAX + 1, 1, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_insert(bench.client->tree, entry, SMART_KEY_MAX + 1, sizeof(entry), &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_insert(bench.client->tree, entry, KEY, KEY, &flag) == SMART_TOO_LONG);
	CHECK(smart_tree_insert(bench.client->tree, entry, SMART_KEY_MAX, SMART_KEY_MAX + SMART_VALUE_BYTES, &flag) ==
			  SMART_OK &&
		  flag);
	CHECK(smart_tree_update(bench.other->tree, entry, SMART_KEY_MAX, 9, &flag) == SMART_OK && flag);
	CHECK(smart_tree_get(bench.client->tree, entry, SMART_KEY_MAX, &value, &flag) == SMART_OK && flag && value == 9);
	check_tree(bench.client, 1);
	close_bench(&bench);
}

static uint64_t
trips(const struct bench *bench)
{
	return bench->client->sim.fabric.counters.round_trips;
}

/* One leaf at the root, and no cache: the root's word, the leaf, and what is done to it. */
static void
check_round_trips(void)
{
	struct bench bench = open_bench();
	uint64_t before;

	insert(bench.client, 7, 1);
	has_value(bench.client, 7, 1);
	before = trips(&bench);
	CHECK(has_value(bench.client, 7, 1));
	CHECK(trips(&bench) - before == 2);
	before = trips(&bench);
	CHECK(update(bench.client, 7, 2));
	CHECK(trips(&bench) - before == 4); /* the first one marks the leaf */
	before = trips(&bench);
	CHECK(update(bench.client, 7, 3));
	CHECK(trips(&bench) - before == 3);
	close_bench(&bench);
}

/* The leaf at the root, as it is now. */
static void
read_root_leaf(struct bench *bench, struct smart_key *key, struct smart_leaf *leaf)
{
	struct smart_place place;
	bool good = false;

	CHECK(smart_find_strict(bench->client->tree, key, &place) == SMART_OK && place.kind == SMART_PLACE_LEAF);
	CHECK(smart_leaf_read(bench->client->tree, place.slot, key, bench->client->tree->leaf_buffer, leaf, &good) ==
		  SMART_OK);
	CHECK(good);
}

/* A client seals a leaf, freezes its values and dies: others read them, and the next update replaces the leaf. */
static void
check_frozen(void)
{
	struct bench bench = open_bench();
	uint64_t number = 7;
	struct smart_key key = {.bytes = (const uint8_t *) &number, .length = KEY};
	struct smart_leaf leaf;
	struct smart_leaf now;
	static const uint8_t zeros[SMART_UNIT];
	uint8_t bytes[SMART_UNIT] __attribute__((aligned(8)));
	bool flag = false;

	insert(bench.client, 7, 1);
	insert(bench.client, 8, 2);
	update(bench.client, 7, 3);
	smart_enter(bench.client->tree);
	read_root_leaf(&bench, &key, &leaf);
	CHECK((leaf.meta & SMART_META_UPDATED) != 0);
	CHECK(smart_seal(bench.client->tree, &leaf, &flag) == SMART_OK && flag);
	CHECK(smart_values_freeze(bench.client->tree, &leaf, 0, &flag) == SMART_OK && !flag);
	CHECK(smart_value_frozen(smart_value_at(&leaf, 0)) && smart_value_frozen(smart_value_at(&leaf, 1)));
	CHECK(smart_leave(bench.client->tree, SMART_OK) == SMART_OK);
	CHECK(has_value(bench.other, 7, 3) && has_value(bench.other, 8, 2));
	CHECK(update(bench.other, 7, 4) && has_value(bench.other, 7, 4) && has_value(bench.other, 8, 2));
	/* The old block is zeros. */
	smart_enter(bench.client->tree);
	CHECK(smart_block_read(bench.client->tree, leaf.address, bytes, sizeof(bytes)) == SMART_OK);
	CHECK(memcmp(bytes, zeros, sizeof(bytes)) == 0);
	read_root_leaf(&bench, &key, &now);
	CHECK(now.address != leaf.address && now.state == SMART_LIVE);
	CHECK(smart_leave(bench.client->tree, SMART_OK) == SMART_OK);
	check_tree(bench.client, 2);
	close_bench(&bench);
}

int
main(void)
{
	check_one_key();
	check_wrong_arguments();
	check_many(256);
	/* Leaves of more entries than are frozen in one batch. */
	check_many(4096);
	check_load();
	check_any_length();
	check_wrong_lengths();
	check_round_trips();
	check_frozen();
	return check_finish();
}
