/*
 * descend.c
 *	  Strict descents (B4) and answers from leaves that are changing (B5).
 *
 * A strict descent reads the root's word and then every node within this
 * operation, and goes only through live nodes and unfrozen slots.  By I2 each
 * node it passes was in the tree after the operation began; what it finds at
 * the end was the truth at a moment within the operation.  Whatever stands in
 * the way it helps forward: it activates new nodes, and replaces frozen ones.
 *
 * On a remote provider it leaves what it read in the cache, so that a path that
 * misled one operation does not mislead the next.
 *
 * Progress: lock-free.  A descent starts again only because somebody's change
 * took effect, or because it finished somebody's change itself.
 */
#include "tree/internal.h"
#include "tree/cover.h"

/* Checks of one node on the way (B4 a). *again: the descent has to start anew. */
static smart_status
enter_node(struct smart_tree *tree, const struct smart_node *node, bool *again)
{
	*again = false;
	if (smart_node_kind(node->words[0]) != node->kind || node->depth < node->arrived ||
		node->depth - node->arrived > SMART_NODE_PARTIAL_MAX)
	{
		/* Not the node that the slot promised: its memory has been used again. */
		*again = true;
		return SMART_OK;
	}
	switch (smart_node_state(node->words[0]))
	{
		case SMART_NEW:
			*again = true;
			return smart_node_activate(tree, node->address);
		case SMART_LIVE:
			break;
		default:
			*again = true;
			break;
	}
	return SMART_OK;
}

/* The first byte before the node's depth that differs from the key's; false: none. */
static bool
header_differs(const struct smart_key *key, struct smart_node *node, struct smart_place *place)
{
	for (unsigned int i = node->arrived; i < node->depth; i++)
	{
		unsigned int byte = smart_node_partial_byte(node->words[0], i);

		if (byte == smart_key_byte(key, i))
			continue;
		place->kind = SMART_PLACE_MISMATCH;
		place->child = node;
		place->mismatch_at = i;
		place->mismatch_byte = byte;
		place->mismatch_header = node->words[0];
		return true;
	}
	return false;
}

/*
 * By pointers, a node that only leads on to another need not be copied: moves
 * place through it.  false: it has to be looked at properly.
 */
static bool
pass_through(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	unsigned int kind = smart_slot_size(place->slot);
	fabric_address address = smart_slot_address(place->slot);
	const uint64_t *words = fabric_direct(tree->fabric, address, smart_kind_bytes(kind));
	const uint64_t *slots;
	uint64_t header;
	unsigned int depth;
	unsigned int byte;
	unsigned int index;
	smart_slot slot;

	if (words == NULL || kind < 1 || kind > SMART_NODE_KINDS)
		return false;
	slots = words + SMART_NODE_HEAD_WORDS;
	header = smart_load_acquire(words);
	depth = smart_node_depth(header);
	if (smart_node_state(header) != SMART_LIVE || smart_node_kind(header) != kind || depth < place->consumed ||
		depth - place->consumed > SMART_NODE_PARTIAL_MAX)
		return false;
	for (unsigned int i = place->consumed; i < depth; i++)
	{
		if (smart_node_partial_byte(header, i) != smart_key_byte(key, i))
			return false;
	}
	byte = smart_key_byte(key, depth);
	slot = smart_cover(slots, kind, tree->kind_slots[kind], byte);
	if (!smart_slot_is_node(slot) || smart_slot_pk(slot) != byte || smart_slot_frozen(slot))
		return false;
	index = kind == SMART_NODE_256 ? byte : 0;
	while (index < tree->kind_slots[kind] && smart_load_acquire(&slots[index]) != slot)
		index++;
	if (index == tree->kind_slots[kind])
		return false; /* it changed this moment */
	place->node = NULL;
	place->index = (int) index;
	place->slot = slot;
	place->slot_address = smart_node_slot_address(address, index);
	place->depth = depth;
	place->consumed = depth + 1;
	return true;
}

/*
 * One descent.  *again: it met something that had to be helped or was torn.
 * Uses two of the handle's three nodes in turn, so that place->node and
 * place->child stay good until the next descent.
 */
static smart_status
descend(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, bool *again)
{
	smart_slot slot;
	fabric_address slot_address = tree->options.root;
	int next = 0;
	smart_status status = smart_word_read(tree, slot_address, &slot);

	*again = false;
	*place = (struct smart_place){.slot = slot, .slot_address = slot_address, .index = -1};
	if (status == SMART_OK)
		smart_keep_node(tree, 0, &slot);
	while (status == SMART_OK && smart_slot_is_node(place->slot))
	{
		struct smart_node *node = &tree->nodes[next];
		unsigned int byte;
		int index;

		if (tree->direct && pass_through(tree, key, place))
			continue;
		status = smart_node_read(tree, place->slot, place->slot_address, place->consumed, node);
		node->parent = place->node == NULL ? 0 : place->node->link;
		node->parent_index = place->index;
		if (SMART_FAULT(stalecas))
			smart_fault_stale_node(tree, place->slot, node);
		if (status == SMART_OK)
			status = enter_node(tree, node, again);
		if (status != SMART_OK || *again || header_differs(key, node, place))
			return status;
		/* Remote memory may have been used again; a dead compute node's reads are not fenced by our epoch. */
		if (!tree->direct && !smart_node_is_ours(tree, node, key))
		{
			*again = true;
			return SMART_OK;
		}
		smart_keep_node(tree, place->slot, node->words);
		byte = smart_key_byte(key, node->depth);
		index = smart_node_cover_index(node, byte);
		slot = index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index];
		if (index < 0 || (smart_slot_is_node(slot) && smart_slot_pk(slot) != byte) ||
			(smart_slot_is_empty(slot) && !SMART_FAULT(nohi) && smart_slot_empty_hi(slot) < byte))
		{
			*again = true; /* torn: pieces of different moments */
			return SMART_OK;
		}
		if (smart_slot_frozen(slot))
		{
			*again = true;
			return smart_replace_node(tree, key, node, false);
		}
		place->node = node;
		place->index = index;
		place->slot = slot;
		place->slot_address = smart_node_slot_address(node->address, (unsigned int) index);
		place->depth = node->depth;
		place->consumed = node->depth + 1;
		next = 1 - next;
	}
	place->kind = smart_slot_is_empty(place->slot) ? SMART_PLACE_EMPTY : SMART_PLACE_LEAF;
	if (status == SMART_OK && !smart_slot_used(place->slot))
		return SMART_CORRUPT;
	return status;
}

/*
 * B4 from the last node that the cache shows on the key's path: if it is live
 * and of this prefix before and in a READ of now, what its slot shows is as
 * strict as if the descent had begun at the root.  Only a leaf or an empty range
 * counts; whatever would have to be helped or followed needs the nodes above.
 */
static smart_status
descend_near(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, bool *found)
{
	struct smart_place near;
	struct smart_node *node;
	smart_slot slot;
	int index;
	bool ours;
	smart_status status = smart_find_cached(tree, key, &near);

	*found = false;
	if (status != SMART_OK || near.node == NULL || !smart_slot_is_range(near.slot))
		return status;
	node = near.node;
	status = smart_node_read_again(tree, node->link, node->arrived, node, key, &ours);
	if (status != SMART_OK)
		return status;
	if (!ours)
	{
		smart_forget_node(tree, node->link);
		return SMART_OK;
	}
	if (SMART_FAULT(stalecas))
		smart_fault_stale_node(tree, node->link, node);
	smart_keep_node(tree, node->link, node->words);
	index = smart_node_cover_index(node, smart_key_byte(key, node->depth));
	slot = index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index];
	if (!smart_slot_is_range(slot) || smart_slot_frozen(slot) ||
		(smart_slot_is_empty(slot) && !SMART_FAULT(nohi) &&
		 smart_slot_empty_hi(slot) < smart_key_byte(key, node->depth)))
		return SMART_OK;
	*place = (struct smart_place){.kind = smart_slot_is_empty(slot) ? SMART_PLACE_EMPTY : SMART_PLACE_LEAF,
								  .slot = slot,
								  .slot_address = smart_node_slot_address(node->address, (unsigned int) index),
								  .index = index,
								  .node = node,
								  .depth = node->depth,
								  .consumed = node->depth + 1};
	*found = true;
	return SMART_OK;
}

smart_status
smart_find_strict(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	bool found = false;
	smart_status status = SMART_OK;

	if (!tree->direct && tree->services->cache_find != NULL)
		status = descend_near(tree, key, place, &found);
	return status != SMART_OK || found ? status : smart_find_from_root(tree, key, place);
}

/* The same from the root's word on: place->node is known with its parent. */
smart_status
smart_find_from_root(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	unsigned int attempts = 0;
	smart_status status;
	bool again;

	do
	{
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = descend(tree, key, place, &again);
	} while (status == SMART_OK && again);
	return status;
}

/*
 * B5.  Finds the leaf that answers for key now, and up to which byte of its depth
 * (*limit).  A sealed leaf, or one narrowed below the key's byte, answers too
 * if a second strict descent, after its content was read, still finds it: then
 * its upper half had not been given away.  place->kind tells: with EMPTY and
 * MISMATCH there is no leaf.
 */
smart_status
smart_settle(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
			 unsigned int *limit)
{
	unsigned int attempts = 0;
	smart_slot kept = 0;
	smart_status status;

	for (;;)
	{
		bool good;

		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = smart_find_strict(tree, key, place);
		if (status != SMART_OK || place->kind != SMART_PLACE_LEAF)
			return status;
		if (kept != 0 && kept == place->slot)
		{
			unsigned int byte = smart_key_byte(key, place->depth);

			*limit = byte <= leaf->hi ? leaf->hi
									  : (place->node == NULL ? 255 : smart_node_next_pk(place->node, leaf->hi) - 1);
			return SMART_OK;
		}
		kept = 0;
		status = smart_leaf_read(tree, place->slot, key, tree->kept_buffer, leaf, &good);
		if (status != SMART_OK)
			return status;
		if (!good || leaf->depth != place->depth || smart_key_byte(key, leaf->depth) < leaf->lo)
			continue; /* torn, or used again */
		if (leaf->state == SMART_NEW)
		{
			/* Seen linked by a strict descent: may be activated. */
			status = smart_leaf_activate(tree, leaf);
			if (status != SMART_OK)
				return status;
		}
		else if (leaf->state == SMART_LIVE && smart_leaf_covers(leaf, key))
		{
			*limit = leaf->hi;
			return SMART_OK;
		}
		else
			kept = place->slot;
	}
}
