/*
 * combine_test.c
 *	  Write combining: which of the entries that others have handed in the holder of a
 *	  leaf's lock appends with its own, and what it tells their owners.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/coordinate/rdwc_parts.h"
#include "support/check.h"
#include "support/tree_client.h"
#include "tree/block/access.h"
#include "tree/block/leaf.h"
#include "tree/find/find.h"
#include "tree/structure/strict.h"

#define ENTRY   16
#define KEYS    150
#define WAITERS 9 /* numbers of clients in the table */

struct bench
{
	struct test_node *node;
	struct test_client *owner;
	struct tree_client *client;
	struct smart_tree_options options;
};

static struct smart_rdwc *table;
static struct smart_leaf_locks locks;

static struct bench
open_bench(bool shared)
{
	struct bench bench = {.node = test_node_open(8, 64 << 20)};

	table = aligned_alloc(128, (smart_rdwc_size(SMART_RDWC_PLACES, WAITERS) + 127) / 128 * 128);
	if (table == NULL)
		abort();
	smart_rdwc_init(table, SMART_RDWC_PLACES, WAITERS);
	bench.node->compute.leaf_locks = &locks;
	bench.node->compute.rdwc = table;
	bench.owner = test_client_open(bench.node, 1);
	bench.options = (struct smart_tree_options){.leaf_size = 512, .shared = shared};
	bench.options.id = test_tree_create(bench.owner, &bench.options.root);
	bench.client = tree_client_open(bench.node, &bench.options, true, 2);
	return bench;
}

static void
close_bench(struct bench *bench)
{
	tree_client_close(bench->client);
	test_client_close(bench->owner);
	test_node_close(bench->node);
	free(table);
}

static struct smart_handed
entry_of(const struct bench *bench, const char *text)
{
	return (struct smart_handed){.tree = bench->options.id,
								 .bytes = (const uint8_t *) text,
								 .key_length = (uint32_t) strlen(text),
								 .length = (uint32_t) strlen(text)};
}

/* As a client that waits for the leaf with this entry. */
static void
put_into_list(const struct bench *bench, fabric_address leaf, uint32_t client, struct smart_handed entry)
{
	struct rdwc_place *place = rdwc_place_of(table, leaf);
	struct rdwc_line *line = rdwc_line(table, client);

	memcpy(line->entry, entry.bytes, entry.length);
	line->handed = entry;
	CHECK(rdwc_place_claim(place, leaf, &bench->owner->thread.env));
	rdwc_push(table, &place->handed, client, RDWC_HANDED);
	rdwc_place_unlock(place);
}

static uint32_t
outcome_of(uint32_t client)
{
	uint32_t state = rdwc_state(rdwc_line(table, client));

	if (state >= RDWC_SETTLED)
		__atomic_store_n(&rdwc_line(table, client)->state, RDWC_IDLE, __ATOMIC_RELAXED);
	return state;
}

static bool
insert(const struct bench *bench, const char *text)
{
	bool added = false;

	CHECK(smart_tree_insert(bench->client->tree, (const uint8_t *) text, strlen(text), strlen(text), &added) ==
		  SMART_OK);
	return added;
}

static bool
is_there(const struct bench *bench, const char *text)
{
	bool found = false;

	CHECK(smart_tree_lookup(bench->client->tree, (const uint8_t *) text, strlen(text), &found) == SMART_OK);
	return found;
}

/* The leaf of a key. */
static fabric_address
leaf_of(const struct bench *bench, const char *text, struct smart_leaf *leaf)
{
	struct smart_key key = {.bytes = (const uint8_t *) text, .length = (uint32_t) strlen(text)};
	struct smart_place place;
	bool good = false;

	smart_enter(bench->client->tree);
	CHECK(smart_find_strict(bench->client->tree, &key, &place) == SMART_OK && place.kind == SMART_PLACE_LEAF);
	CHECK(smart_leaf_read(bench->client->tree, place.slot, &key, bench->client->tree->leaf_buffer, leaf, &good) ==
			  SMART_OK &&
		  good);
	CHECK(smart_leave(bench->client->tree, SMART_OK) == SMART_OK);
	return smart_slot_address(place.slot);
}

/*
 * Every sort of entry that a holder may find, at the leaf of "town/b…".  letters: those
 * that the keys have there; without "c" the leaf's entries have a byte more in common.
 */
static void
check_entries(bool shared, const char *letters)
{
	bool prefix = strchr(letters, 'c') == NULL;
	struct bench bench = open_bench(shared);
	struct smart_handed stranger = entry_of(&bench, "town/bees");
	struct smart_leaf leaf;
	struct smart_verify_report report;
	uint64_t writes;
	fabric_address address;
	char message[256] = "";
	char long_text[200];
	char filler[120];

	/* Enough of them for two leaves below the node at the fifth byte. */
	for (unsigned int i = 0; i < KEYS; i++)
	{
		char text[ENTRY];

		snprintf(text, sizeof(text), "town/%c%02u", letters[i % strlen(letters)], i);
		CHECK(insert(&bench, text));
	}
	/* One that leaves room for short entries only. */
	memset(filler, 'a', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	memcpy(filler, "town/b", 6);
	CHECK(insert(&bench, filler));
	address = leaf_of(&bench, "town/b00", &leaf);
	CHECK(leaf.depth == 5 && leaf.hi < 'y' && leaf.hi >= 'c' && (leaf.prefix_length > 0) == prefix);
	CHECK(smart_leaf_room(&leaf) > 60 && smart_leaf_room(&leaf) < sizeof(long_text) - 20);
	memset(long_text, 'b', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	memcpy(long_text, "town/", 5);
	stranger.tree++;
	put_into_list(&bench, address, 1, entry_of(&bench, "town/badger"));
	put_into_list(&bench, address, 2, entry_of(&bench, "town/b06"));
	put_into_list(&bench, address, 3, entry_of(&bench, "town/yak"));
	put_into_list(&bench, address, 4, entry_of(&bench, "tower"));
	put_into_list(&bench, address, 5, entry_of(&bench, "gown/badger"));
	put_into_list(&bench, address, 6, entry_of(&bench, long_text));
	put_into_list(&bench, address, 7, stranger);
	put_into_list(&bench, address, 8, entry_of(&bench, "town/cat"));
	writes = bench.client->sim.fabric.counters.requests[FABRIC_WRITE];
	CHECK(insert(&bench, "town/bear"));
	CHECK(bench.client->sim.fabric.counters.requests[FABRIC_WRITE] == writes + 1);
	CHECK(outcome_of(1) == RDWC_SETTLED + SMART_COMBINED_ADDED && is_there(&bench, "town/badger"));
	CHECK(outcome_of(2) == RDWC_SETTLED + SMART_COMBINED_THERE);
	CHECK(outcome_of(3) == RDWC_SETTLED + SMART_COMBINED_NOT && !is_there(&bench, "town/yak"));
	CHECK(outcome_of(4) == RDWC_SETTLED + SMART_COMBINED_NOT && !is_there(&bench, "tower"));
	CHECK(outcome_of(5) == RDWC_SETTLED + SMART_COMBINED_NOT && !is_there(&bench, "gown/badger"));
	CHECK(outcome_of(6) == RDWC_SETTLED + SMART_COMBINED_NOT && !is_there(&bench, long_text));
	CHECK(outcome_of(7) == RDWC_HANDED && !is_there(&bench, "town/bees"));
	CHECK(outcome_of(8) == (uint32_t) (RDWC_SETTLED + (prefix ? SMART_COMBINED_NOT : SMART_COMBINED_ADDED)));
	CHECK(is_there(&bench, "town/cat") != prefix);
	CHECK(is_there(&bench, "town/bear"));

	/* The same key twice, and once more the holder's own. */
	put_into_list(&bench, address, 1, entry_of(&bench, "town/bat"));
	put_into_list(&bench, address, 2, entry_of(&bench, "town/bat"));
	put_into_list(&bench, address, 3, entry_of(&bench, "town/bird"));
	CHECK(insert(&bench, "town/bird"));
	CHECK(outcome_of(1) + outcome_of(2) == 2 * RDWC_SETTLED + SMART_COMBINED_ADDED + SMART_COMBINED_THERE);
	CHECK(outcome_of(3) == RDWC_SETTLED + SMART_COMBINED_THERE && is_there(&bench, "town/bat"));
	CHECK(smart_tree_verify(bench.client->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK &&
		  report.entries == (prefix ? KEYS + 5 : KEYS + 6));
	close_bench(&bench);
}

int
main(void)
{
	check_entries(false, "by");
	check_entries(true, "by");
	check_entries(false, "bcyyyy");
	check_entries(true, "bcyyyy");
	return check_finish();
}
