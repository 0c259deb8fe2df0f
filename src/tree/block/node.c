/*
 * node.c
 *	  Internal nodes: reading, searching, making, activating.
 */
#include "tree/block/access.h"
#include "tree/block/node.h"

/* Slots that were not READ look as if they were unused: who asks for more than the key's own needs all of them. */
static void
assert_whole(const struct smart_node *node)
{
	smart_assert(!node->part || SMART_FAULT(partview));
}

/* Where a slot that covers byte stands in a copied node, whether it is frozen or not. */
static int
index_of(const struct smart_node *node, smart_slot slot, unsigned int byte)
{
	const uint64_t *slots = node->words + SMART_NODE_HEAD_WORDS;
	int index = node->kind == SMART_NODE_256 ? (int) byte : 0;

	while (((slots[index] ^ slot) & ~SMART_SLOT_FROZEN) != 0)
		index += node->kind == SMART_NODE_256 ? -1 : 1;
	smart_assert(index >= 0 && index < (int) node->slots);
	return index;
}

int
smart_node_cover_index(const struct smart_node *node, unsigned int byte)
{
	smart_slot slot = smart_cover(node->words + SMART_NODE_HEAD_WORDS, node->kind, node->slots, byte);

	assert_whole(node);
	return smart_slot_used(slot) ? index_of(node, slot, byte) : -1;
}

void
smart_node_step(struct smart_node *node, const struct smart_key *key, struct smart_place *place, bool hint)
{
	smart_place_step(place, node->words[0], node->words + SMART_NODE_HEAD_WORDS, node->kind, node->slots, key, hint);
	if (place->kind > SMART_PLACE_NODE)
	{
		place->child = node;
		return;
	}
	place->index = index_of(node, place->slot, smart_key_byte(key, node->depth));
	place->slot_address = smart_node_slot_address(node->address, (unsigned int) place->index);
	place->node = node;
}

unsigned int
smart_node_next_pk(const struct smart_node *node, unsigned int after)
{
	unsigned int next = 256;

	assert_whole(node);
	if (node->kind == SMART_NODE_256)
	{
		for (next = after + 1; next < 256 && !smart_slot_used(node->words[SMART_NODE_HEAD_WORDS + next]); next++)
			;
		return next;
	}
	for (unsigned int i = 0; i < node->slots; i++)
	{
		smart_slot slot = node->words[SMART_NODE_HEAD_WORDS + i];

		if (smart_slot_used(slot) && smart_slot_pk(slot) > after && smart_slot_pk(slot) < next)
			next = smart_slot_pk(slot);
	}
	return next;
}

unsigned int
smart_node_used(const struct smart_node *node)
{
	unsigned int count = 0;

	assert_whole(node);
	for (unsigned int i = 0; i < node->slots; i++)
		count += smart_slot_used(node->words[SMART_NODE_HEAD_WORDS + i]);
	return count;
}

unsigned int
smart_node_leaves(const struct smart_node *node)
{
	unsigned int count = 0;

	assert_whole(node);
	for (unsigned int i = 0; i < node->slots; i++)
		count += smart_slot_is_leaf(node->words[SMART_NODE_HEAD_WORDS + i]);
	return count;
}

int
smart_node_free_index(const struct smart_node *node, unsigned int pk)
{
	assert_whole(node);
	if (node->kind == SMART_NODE_256)
		return node->words[SMART_NODE_HEAD_WORDS + pk] == 0 ? (int) pk : -1;
	for (unsigned int i = 0; i < node->slots; i++)
	{
		smart_slot slot = node->words[SMART_NODE_HEAD_WORDS + i];

		if (slot == 0)
			return (int) i;
		if (!smart_slot_used(slot))
			return -1; /* frozen: the node is about to be replaced */
	}
	return -1;
}

bool
smart_node_shows(const struct smart_tree *tree, const struct smart_place *place)
{
	const struct smart_node *node = place->node;

	return node != NULL && node->moment != 0 && node->moment == tree->moment &&
		   !smart_slot_frozen(node->words[SMART_NODE_HEAD_WORDS + place->index]);
}

/* What link says of a node; false: it cannot be a link to one. */
static bool
expect_node(const struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node)
{
	unsigned int kind = smart_slot_size(link);

	if (kind < 1 || kind > SMART_NODE_KINDS)
		return false;
	node->address = smart_slot_address(link);
	node->link = link;
	node->arrived = arrived;
	node->kind = kind;
	node->slots = tree->kind_slots[kind];
	node->moment = 0;
	node->today = false;
	node->part = false;
	return true;
}

smart_status
smart_node_read(struct smart_tree *tree, smart_slot link, fabric_address link_address, unsigned int arrived,
				struct smart_node *node)
{
	unsigned int words;

	if (!expect_node(tree, link, arrived, node))
		return SMART_CORRUPT;
	node->link_address = link_address;
	words = SMART_NODE_HEAD_WORDS + node->slots;
	if (tree->direct)
	{
		const uint64_t *shared = fabric_direct(tree->fabric, node->address, words * sizeof(uint64_t));

		if (shared == NULL)
			return SMART_CORRUPT;
		/* Each word once; acquire pairs with the CAS that stored it (I3). */
		for (unsigned int i = 0; i < words; i++)
			node->words[i] = smart_load_acquire(&shared[i]);
	}
	else
	{
		smart_status status = smart_block_read(tree, node->address, node->words, words * sizeof(uint64_t));

		if (status != SMART_OK)
			return status;
	}
	node->depth = smart_node_depth(node->words[0]);
	return SMART_OK;
}

bool
smart_node_from_copy(const struct smart_tree *tree, smart_slot link, unsigned int arrived, const uint8_t *copy,
					 struct smart_node *node)
{
	if (!expect_node(tree, link, arrived, node))
		return false;
	node->link_address = 0;
	if (copy != NULL)
		memcpy(node->words, copy, (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
	memcpy(node->head, node->words, sizeof(node->head));
	node->depth = smart_node_depth(node->words[0]);
	return true;
}

bool
smart_node_recall(struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node, bool *usable)
{
	struct smart_services *services = tree->services;
	uint64_t moment;

	if (services->cache_find == NULL || !services->cache_find(services, tree->options.id, link, node->words, &moment))
		return false;
	*usable =
		smart_node_from_copy(tree, link, arrived, NULL, node) && smart_header_fits(node->words[0], node->kind, arrived);
	node->moment = moment != 0 && SMART_FAULT(lastmoment) ? tree->moment : moment;
	node->today = moment != 0 && node->moment == tree->moment;
	return true;
}

smart_status
smart_node_read_again(struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
					  const struct smart_key *key, bool *ours)
{
	struct fabric_request batch[2];
	smart_status status;

	smart_assert(!tree->direct);
	*ours = smart_node_prepare_again(tree, link, arrived, node, batch);
	if (!*ours)
		return SMART_OK;
	status = smart_execute(tree, batch, 2);
	if (status != SMART_OK)
		return status;
	*ours = smart_node_finish_again(tree, node, key);
	return SMART_OK;
}

bool
smart_node_prepare_again(const struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
						 struct fabric_request *batch)
{
	smart_assert(!tree->direct);
	if (!expect_node(tree, link, arrived, node))
		return false;
	node->link_address = 0;
	batch[0] = smart_read_request(node->address, node->head, sizeof(node->head));
	batch[1] = smart_read_request(node->address, node->words, (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
	return true;
}

bool
smart_node_finish_again(const struct smart_tree *tree, struct smart_node *node, const struct smart_key *key)
{
	uint64_t header = node->words[0];

	node->depth = smart_node_depth(header);
	return memcmp(node->head, node->words, sizeof(node->head)) == 0 && smart_node_state(header) == SMART_LIVE &&
		   smart_header_fits(header, node->kind, node->arrived) && smart_node_is_ours(tree, node, key);
}

bool
smart_node_is_ours(const struct smart_tree *tree, const struct smart_node *node, const struct smart_key *key)
{
	return node->words[1] == smart_prefix_hash(tree, key, node->depth);
}

unsigned int
smart_kind_for(const struct smart_tree *tree, unsigned int slots)
{
	for (unsigned int kind = SMART_NODE_6; kind < SMART_NODE_256; kind++)
	{
		/* By pointer a direct-mapped node is searched fastest, and its bytes travel nowhere. */
		if (tree->direct && kind == SMART_NODE_126)
			continue;
		if (tree->kind_slots[kind] >= slots)
			return kind;
	}
	return SMART_NODE_256;
}

smart_status
smart_node_build(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int pk,
				 const smart_slot *slots, unsigned int count, unsigned int spare, smart_slot *link)
{
	unsigned int kind = smart_kind_for(tree, count + spare);
	fabric_address address;
	smart_status status = smart_allocate(tree, SMART_CLASS_NODE(kind), &address);

	if (status != SMART_OK)
		return status;
	return smart_node_build_in(tree, key, depth, smart_slot_make_node(pk, kind, address), slots, count, link);
}

smart_status
smart_node_build_in(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, smart_slot room,
					const smart_slot *slots, unsigned int count, smart_slot *link)
{
	unsigned int kind = smart_slot_size(room);
	fabric_address address = smart_slot_address(room);
	uint64_t *words = (uint64_t *) tree->build_buffer;
	unsigned int bytes = smart_kind_bytes(kind);
	uint64_t partial = 0;
	smart_status status;

	smart_assert(count >= 1 && count <= tree->kind_slots[kind] && smart_slot_pk(slots[0]) == 0);
	for (unsigned int i = depth < SMART_NODE_PARTIAL_MAX ? 0 : depth - SMART_NODE_PARTIAL_MAX; i < depth; i++)
		partial = (partial << 8) | smart_key_byte(key, i);
	memset(words, 0, bytes);
	words[0] = smart_node_header_make(tree->born, kind, depth, partial);
	words[1] = smart_prefix_hash(tree, key, depth);
	for (unsigned int i = 0; i < count; i++)
	{
		smart_assert(smart_slot_used(slots[i]) && !smart_slot_frozen(slots[i]));
		words[SMART_NODE_HEAD_WORDS + (kind == SMART_NODE_256 ? smart_slot_pk(slots[i]) : i)] = slots[i];
	}
	*link = room;
	status = smart_block_write(tree, address, words, bytes);
	if (status != SMART_OK)
		smart_retire_slot(tree, *link);
	else if (tree->gather == NULL)
	{
		/* As it will be when it is linked; nothing that leads to it is known before. */
		smart_post_birth(tree, address, words[0]);
		words[0] = smart_node_with_state(words[0], SMART_LIVE);
		smart_keep_node(tree, *link, words);
	}
	return status;
}

smart_status
smart_node_activate(struct smart_tree *tree, fabric_address node)
{
	uint64_t header;
	uint64_t seen;
	smart_status status = smart_word_read(tree, node, &header);

	if (status != SMART_OK || smart_node_state(header) != SMART_NEW)
		return status;
	/* Losing means that another client did it, or replaced the node since. */
	return smart_word_cas(tree, node, header, smart_node_with_state(header, SMART_LIVE), &seen);
}
