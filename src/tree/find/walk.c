/*
 * walk.c
 *	  The memory node's side of an offloaded descent.
 *
 * A daemon links this file, and of the rest of the tree only cover.c.
 */
#include <string.h>

#include "tree/find/walk.h"
#include "tree/step/place.h"

struct walk
{
	const struct smart_walk_memory *memory;
	struct smart_key key;
	unsigned int home;        /* the memory node */
	struct smart_place place; /* what leads to the next block; UNKNOWN: the walk ends before it */
	uint8_t *reply;
	uint32_t bytes; /* of the reply so far */
	uint64_t words[SMART_NODE_WORDS_MAX];
};

/* ---- loading ---- */

static void
load_words(const struct walk *walk, const uint64_t *shared, unsigned int count, uint64_t *words)
{
	for (unsigned int i = 0; i < count; i++)
		words[i] = walk->memory->load(walk->memory->argument, &shared[i]);
}

/* Where the block that slot leads to lies, if it is on this memory node and the client may READ it; else NULL. */
static const uint64_t *
find_words(const struct walk *walk, uint32_t length)
{
	fabric_address address = smart_slot_address(walk->place.slot);

	return fabric_node(address) == walk->home ? walk->memory->find(walk->memory->argument, address, length) : NULL;
}

/* The same kind of block as those before, behind them; false: there is no room. */
static bool
add(struct walk *walk, smart_slot link, const uint64_t *words, uint32_t length)
{
	uint8_t *room = fabric_path_add(walk->reply, &walk->bytes, link, length);

	if (room != NULL)
		memcpy(room, words, length);
	return room != NULL;
}

/* ---- nodes ---- */

/* Goes through the node that the place leads to; another kind than NODE, LEAF and EMPTY: the walk ends before or in it. */
static void
walk_node(struct walk *walk)
{
	struct smart_place *place = &walk->place;
	unsigned int kind = smart_slot_size(place->slot);
	uint64_t head[SMART_NODE_HEAD_WORDS];
	const uint64_t *shared;
	unsigned int count;

	place->kind = SMART_PLACE_UNKNOWN;
	if (kind < 1 || kind > SMART_NODE_KINDS)
		return;
	count = SMART_NODE_HEAD_WORDS + smart_kind_slots(kind);
	shared = find_words(walk, count * (uint32_t) sizeof(uint64_t));
	if (shared == NULL)
		return;
	load_words(walk, shared, count, walk->words);
	load_words(walk, shared, SMART_NODE_HEAD_WORDS, head);
	/* A live node where its slot promised one, and as it was before? */
	if (memcmp(head, walk->words, sizeof(head)) == 0 && smart_node_state(head[0]) == SMART_LIVE &&
		smart_header_fits(head[0], kind, place->consumed) &&
		add(walk, place->slot, walk->words, count * (uint32_t) sizeof(uint64_t)))
		smart_place_step(place, head[0], walk->words + SMART_NODE_HEAD_WORDS, kind, smart_kind_slots(kind), &walk->key,
						 false);
}

uint32_t
smart_walk(const struct smart_walk_memory *memory, const struct fabric_descent *descent, uint8_t *reply)
{
	struct walk walk = {.memory = memory,
						.key = {.bytes = descent->key, .length = descent->key_length, .pad = descent->pad},
						.home = fabric_node(descent->link == 0 ? descent->root : smart_slot_address(descent->link)),
						.reply = reply,
						.bytes = fabric_path_begin(reply)};
	enum fabric_path_end end = FABRIC_PATH_STOPPED;
	struct smart_place *place = &walk.place;
	uint64_t leaf[SMART_LEAF_BYTES_MAX / sizeof(uint64_t)];
	const uint64_t *shared = NULL;
	uint32_t length;

	*place = (struct smart_place){.kind = SMART_PLACE_UNKNOWN, .slot = descent->link, .consumed = descent->arrived};
	if (smart_slot_is_node(descent->link))
		place->kind = SMART_PLACE_NODE;
	else if (descent->link == 0)
	{
		shared = memory->find(memory->argument, descent->root, sizeof(place->slot));
		if (shared != NULL)
			load_words(&walk, shared, 1, &place->slot);
		if (shared != NULL && add(&walk, 0, &place->slot, sizeof(place->slot)))
			place->kind = smart_place_kind_of(place->slot, 0, false);
	}
	while (place->kind == SMART_PLACE_NODE)
		walk_node(&walk);
	if (place->kind == SMART_PLACE_EMPTY)
		end = FABRIC_PATH_EMPTY;
	else if (place->kind == SMART_PLACE_LEAF && !memory->exact)
		end = FABRIC_PATH_LEAF;
	else if (place->kind == SMART_PLACE_LEAF)
	{
		/* A torn leaf is found out by its checksum, as one that was READ. */
		length = smart_slot_size(place->slot) * SMART_UNIT;
		shared = find_words(&walk, length);
		if (shared != NULL)
			load_words(&walk, shared, length / (uint32_t) sizeof(uint64_t), leaf);
		if (shared != NULL && add(&walk, place->slot, leaf, length))
			end = FABRIC_PATH_LEAF;
	}
	fabric_path_end(reply, end, memory->exact);
	return walk.bytes;
}
