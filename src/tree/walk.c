/*
 * walk.c
 *	  The memory node's side of an offloaded descent.
 *
 * A daemon links this file and none other of the tree.
 */
#include <string.h>

#include "base/assert.h"
#include "tree/layout.h"
#include "tree/walk.h"

struct walk
{
	const struct smart_walk_memory *memory;
	const struct fabric_descent *descent;
	unsigned int home;     /* the memory node */
	smart_slot slot;       /* that leads to the next block */
	unsigned int consumed; /* bytes of the key that lead there */
	uint8_t *answer;
	uint32_t bytes; /* of the answer so far */
	uint64_t words[SMART_NODE_WORDS_MAX];
};

static unsigned int
key_byte(const struct fabric_descent *descent, unsigned int position)
{
	return position < descent->key_length ? descent->key[position] : descent->pad;
}

/* ---- loading ---- */

static void
load_words(const struct walk *walk, const uint64_t *shared, unsigned int count, uint64_t *words)
{
	for (unsigned int i = 0; i < count; i++)
		words[i] = walk->memory->load(walk->memory->argument, &shared[i]);
}

/* Where the block that slot leads to lies, if it is on this memory node and the client may READ it; else NULL. */
static const uint64_t *
find_block(const struct walk *walk, uint32_t length)
{
	fabric_address address = smart_slot_address(walk->slot);

	return fabric_node(address) == walk->home ? walk->memory->find(walk->memory->argument, address, length) : NULL;
}

/* The same kind of block as those before, behind them; false: there is no room. */
static bool
add(struct walk *walk, smart_slot link, const uint64_t *words, uint32_t length)
{
	uint8_t *room = fabric_path_add(walk->answer, &walk->bytes, link, length);

	if (room != NULL)
		memcpy(room, words, length);
	return room != NULL;
}

/* ---- nodes ---- */

/* Is what was loaded a live node where its slot promised one, and as it was before? */
static bool
is_node(const struct walk *walk, unsigned int kind, const uint64_t *head)
{
	uint64_t header = walk->words[0];
	unsigned int depth = smart_node_depth(header);

	return memcmp(head, walk->words, SMART_NODE_HEAD_WORDS * sizeof(*head)) == 0 &&
		   smart_node_state(header) == SMART_LIVE && smart_node_kind(header) == kind && depth >= walk->consumed &&
		   depth - walk->consumed <= SMART_NODE_PARTIAL_MAX;
}

/* The slot that covers the byte in the copied words; 0: none. */
static smart_slot
cover(const struct walk *walk, unsigned int kind, unsigned int byte)
{
	const uint64_t *slots = walk->words + SMART_NODE_HEAD_WORDS;
	smart_slot best = 0;

	if (kind == SMART_NODE_256)
	{
		int i = (int) byte;

		while (i > 0 && !smart_slot_used(slots[i]))
			i--;
		return slots[i];
	}
	for (unsigned int i = 0; i < smart_kind_slots(kind); i++)
	{
		if (smart_slot_used(slots[i]) && smart_slot_pk(slots[i]) <= byte &&
			(best == 0 || smart_slot_pk(slots[i]) > smart_slot_pk(best)))
			best = slots[i];
	}
	return best;
}

/* Does the key go on as the node's compressed bytes do? */
static bool
key_fits(const struct walk *walk, unsigned int depth)
{
	for (unsigned int i = walk->consumed; i < depth; i++)
		if (smart_node_partial_byte(walk->words[0], i) != key_byte(walk->descent, i))
			return false;
	return true;
}

/* Goes through the node that the slot leads to.  False: the walk ends before or in it. */
static bool
pass_node(struct walk *walk)
{
	unsigned int kind = smart_slot_size(walk->slot);
	uint64_t head[SMART_NODE_HEAD_WORDS];
	const uint64_t *shared;
	unsigned int count;
	unsigned int depth;
	unsigned int byte;
	smart_slot next;

	if (kind < 1 || kind > SMART_NODE_KINDS)
		return false;
	count = SMART_NODE_HEAD_WORDS + smart_kind_slots(kind);
	shared = find_block(walk, count * (uint32_t) sizeof(uint64_t));
	if (shared == NULL)
		return false;
	load_words(walk, shared, count, walk->words);
	load_words(walk, shared, SMART_NODE_HEAD_WORDS, head);
	if (!is_node(walk, kind, head) || !add(walk, walk->slot, walk->words, count * (uint32_t) sizeof(uint64_t)))
		return false;
	depth = smart_node_depth(walk->words[0]);
	byte = key_byte(walk->descent, depth);
	next = cover(walk, kind, byte);
	if (!key_fits(walk, depth) || !smart_slot_used(next) || smart_slot_frozen(next) ||
		(smart_slot_is_node(next) && smart_slot_pk(next) != byte) ||
		(smart_slot_is_empty(next) && smart_slot_empty_hi(next) < byte))
		return false;
	walk->slot = next;
	walk->consumed = depth + 1;
	return true;
}

/* ---- both ends ---- */

static bool
begin(struct walk *walk)
{
	const struct fabric_descent *descent = walk->descent;
	const uint64_t *root;

	walk->slot = descent->link;
	walk->consumed = descent->arrived;
	walk->home = fabric_node(descent->link == 0 ? descent->root : smart_slot_address(descent->link));
	if (descent->link != 0)
		return smart_slot_is_node(walk->slot);
	root = walk->memory->find(walk->memory->argument, descent->root, sizeof(*root));
	if (root == NULL)
		return false;
	load_words(walk, root, 1, &walk->slot);
	return add(walk, 0, &walk->slot, sizeof(walk->slot)) && smart_slot_used(walk->slot);
}

/* A torn leaf is found out by its checksum, as one that was READ. */
static bool
take_leaf(struct walk *walk)
{
	uint32_t length = smart_slot_size(walk->slot) * SMART_UNIT;
	const uint64_t *shared = find_block(walk, length);
	uint64_t words[SMART_LEAF_BYTES_MAX / sizeof(uint64_t)];

	if (shared == NULL)
		return false;
	load_words(walk, shared, length / (uint32_t) sizeof(uint64_t), words);
	return add(walk, walk->slot, words, length);
}

uint32_t
smart_walk(const struct smart_walk_memory *memory, const struct fabric_descent *descent, uint8_t *answer)
{
	struct walk walk = {.memory = memory, .descent = descent, .answer = answer, .bytes = fabric_path_begin(answer)};
	enum fabric_path_end end = FABRIC_PATH_STOPPED;
	bool goes_on = begin(&walk);

	while (goes_on && smart_slot_is_node(walk.slot))
		goes_on = pass_node(&walk);
	if (goes_on && smart_slot_is_empty(walk.slot))
		end = FABRIC_PATH_EMPTY;
	else if (goes_on && (!memory->exact || take_leaf(&walk)))
		end = FABRIC_PATH_LEAF;
	fabric_path_end(answer, end, memory->exact);
	return walk.bytes;
}
