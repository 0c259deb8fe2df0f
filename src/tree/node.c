/*
 * node.c
 *	  Internal nodes: reading, searching, making, activating.
 */
#include "tree/internal.h"
#include "tree/cover.h"

smart_slot
smart_cover(const uint64_t *slots, unsigned int kind, unsigned int count, unsigned int byte)
{
	if (kind == SMART_NODE_256)
		return smart_cover_direct(slots, byte);
	return smart_cover_scan(slots, count, byte);
}

/* Index of the slot that covers byte in a copied node, or -1: torn. */
int
smart_node_cover_index(const struct smart_node *node, unsigned int byte)
{
	int best = -1;

	if (node->kind == SMART_NODE_256)
	{
		for (best = (int) byte; best >= 0 && !smart_slot_used(node->words[SMART_NODE_HEAD_WORDS + best]); best--)
			;
		return best;
	}
	for (unsigned int i = 0; i < node->slots; i++)
	{
		smart_slot slot = node->words[SMART_NODE_HEAD_WORDS + i];

		if (!smart_slot_used(slot) || smart_slot_pk(slot) > byte)
			continue;
		if (best < 0 || smart_slot_pk(slot) > smart_slot_pk(node->words[SMART_NODE_HEAD_WORDS + best]))
			best = (int) i;
	}
	return best;
}

/* The smallest partial key above after, or 256. */
unsigned int
smart_node_next_pk(const struct smart_node *node, unsigned int after)
{
	unsigned int next = 256;

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

/*
 * Where a slot for pk has to go: the first unused one (I3: slots fill in index
 * order), or pk's own in a direct-mapped node.  -1: no room, or frozen.
 */
int
smart_node_free_index(const struct smart_node *node, unsigned int pk)
{
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
	return true;
}

/* Copies the node that link leads to.  Whether it is what link promised is for the caller to check. */
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

/* The same from a copy of its words, or (NULL) from words that are there already; false: link cannot lead to a node. */
bool
smart_node_from_copy(const struct smart_tree *tree, smart_slot link, unsigned int arrived, const uint8_t *copy,
					 struct smart_node *node)
{
	if (!expect_node(tree, link, arrived, node))
		return false;
	node->link_address = 0;
	if (copy != NULL)
		memcpy(node->words, copy, (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
	node->depth = smart_node_depth(node->words[0]);
	return true;
}

/*
 * The same for a link of an earlier operation, whose node may have been used
 * again: READs header and identity first and then the node, in one batch.  If
 * both are those of the live node of this prefix, before and in the node, then
 * the block was it all the time: it was live after this operation began, and
 * is not used again before the operation ends (I6).  Otherwise slots of its
 * earlier lives may be among the words.
 */
smart_status
smart_node_read_again(struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
					  const struct smart_key *key, bool *ours)
{
	uint64_t head[SMART_NODE_HEAD_WORDS];
	struct fabric_request batch[2];
	smart_status status;

	smart_assert(!tree->direct);
	*ours = smart_node_prepare_again(tree, link, arrived, node, head, batch);
	if (!*ours)
		return SMART_OK;
	status = smart_execute(tree, batch, 2);
	if (status != SMART_OK)
		return status;
	*ours = smart_node_finish_again(tree, node, head, key);
	return SMART_OK;
}

/* Its parts, for batches of several: two requests; false: link cannot lead to a node. */
bool
smart_node_prepare_again(const struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
						 uint64_t *head, struct fabric_request *batch)
{
	if (!expect_node(tree, link, arrived, node))
		return false;
	node->link_address = 0;
	batch[0] = (struct fabric_request){.verb = FABRIC_READ,
									   .remote = node->address,
									   .local = head,
									   .length = SMART_NODE_HEAD_WORDS * sizeof(uint64_t)};
	batch[1] = (struct fabric_request){.verb = FABRIC_READ,
									   .remote = node->address,
									   .local = node->words,
									   .length = (uint32_t) ((SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t))};
	return true;
}

/* … and, when they have been executed, whether it is the node on key's path. */
bool
smart_node_finish_again(const struct smart_tree *tree, struct smart_node *node, const uint64_t *head,
						const struct smart_key *key)
{
	node->depth = smart_node_depth(node->words[0]);
	return head[0] == node->words[0] && head[1] == node->words[1] && smart_node_state(node->words[0]) == SMART_LIVE &&
		   smart_node_kind(node->words[0]) == node->kind && node->depth >= node->arrived &&
		   node->depth - node->arrived <= SMART_NODE_PARTIAL_MAX && smart_node_is_ours(tree, node, key);
}

/* Does the identity say that this is the node of key's first depth bytes in this tree? */
bool
smart_node_is_ours(const struct smart_tree *tree, const struct smart_node *node, const struct smart_key *key)
{
	return node->words[1] == smart_prefix_hash(tree, key, node->depth);
}

/* The smallest kind that holds so many slots. */
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

/*
 * Makes a node (new) that branches on the byte at depth, with slots in
 * ascending order of their partial keys and room for spare more.  *link leads
 * to it under pk.
 */
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

/* The same in a block of one's own, to which room leads as *link will; it is retired if that fails. */
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
		smart_assert(!smart_slot_frozen(slots[i]));
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

uint64_t
smart_node_live(uint64_t header)
{
	return smart_node_with_state(header, SMART_LIVE);
}

/* ACTIVATE: new -> live, for a node that this operation linked or saw linked. */
smart_status
smart_node_activate(struct smart_tree *tree, fabric_address node)
{
	uint64_t header;
	uint64_t seen;
	smart_status status = smart_word_read(tree, node, &header);

	if (status != SMART_OK || smart_node_state(header) != SMART_NEW)
		return status;
	/* Losing means that somebody else did it, or replaced the node since. */
	return smart_word_cas(tree, node, header, smart_node_live(header), &seen);
}
