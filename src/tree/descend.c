/*
 * descend.c
 *	  Strict descents (B4).
 *
 * A strict descent reads the root's word and then every node within this
 * operation, and goes only through live nodes and unfrozen slots.  By I2 each
 * node it passes was in the tree after the operation began; what it finds at
 * the end was the truth at a moment within the operation.  Whatever stands in
 * the way it helps forward: it activates new nodes, and replaces frozen ones.
 *
 * On a remote provider it begins at the last node that the cache shows on the key's
 * path, which it READs in a way that proves it, and turns to the root only when
 * that node is not what it was.  It leaves what it read in the cache, so that a
 * path that misled one operation does not mislead the next.
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
 * Goes through a node that was read just now: place becomes where the key leads in
 * it.  *again: it has to be helped, or the view is torn.
 */
static smart_status
pass_node(struct smart_tree *tree, const struct smart_key *key, struct smart_node *node, struct smart_place *place,
		  bool *again)
{
	unsigned int byte = smart_key_byte(key, node->depth);
	int index = smart_node_cover_index(node, byte);
	smart_slot slot = index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index];

	smart_keep_node(tree, node->link, node->words);
	*again = index < 0 || (smart_slot_is_node(slot) && smart_slot_pk(slot) != byte) ||
			 (smart_slot_is_empty(slot) && !SMART_FAULT(nohi) && smart_slot_empty_hi(slot) < byte);
	if (*again)
		return SMART_OK; /* torn: pieces of different moments */
	if (smart_slot_frozen(slot))
	{
		*again = true;
		return smart_replace_node(tree, key, node, false);
	}
	*place = (struct smart_place){.slot = slot,
								  .slot_address = smart_node_slot_address(node->address, (unsigned int) index),
								  .index = index,
								  .node = node,
								  .depth = node->depth,
								  .consumed = node->depth + 1};
	return SMART_OK;
}

/*
 * From place on, which is strict.  *again: it met something that had to be helped or
 * was torn.  Uses two of the handle's nodes in turn, beginning with nodes[next], so
 * that place->node and place->child stay good until the next descent.
 */
static smart_status
descend(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, int next, bool *again)
{
	smart_status status = SMART_OK;

	*again = false;
	while (status == SMART_OK && !*again && smart_slot_is_node(place->slot))
	{
		struct smart_node *node = &tree->nodes[next];

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
		status = pass_node(tree, key, node, place, again);
		next = 1 - next;
	}
	place->kind = smart_slot_is_empty(place->slot) ? SMART_PLACE_EMPTY : SMART_PLACE_LEAF;
	if (status == SMART_OK && !smart_slot_used(place->slot))
		return SMART_CORRUPT;
	return status;
}

/* One descent from the root's word. */
static smart_status
descend_from_root(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, bool *again)
{
	smart_slot slot;
	smart_status status = smart_word_read(tree, tree->options.root, &slot);

	if (status != SMART_OK)
		return status;
	smart_keep_node(tree, 0, &slot);
	*place = (struct smart_place){.slot = slot, .slot_address = tree->options.root, .index = -1};
	return descend(tree, key, place, 0, again);
}

/*
 * One descent from the last node that the cache shows on the key's path: if it is
 * live and of this prefix before and in a READ of now, what its slots show is as
 * strict as if the descent had begun at the root (I2).  *found false: there is no
 * such node, or the descent has to be made again.
 */
static smart_status
descend_near(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, bool *found)
{
	struct smart_node *node = &tree->nodes[0];
	struct smart_waypoint near;
	bool ours;
	bool again;
	smart_status status = smart_find_cached(tree, key, place);

	*found = false;
	near = tree->waypoint;
	if (status != SMART_OK || near.link == 0)
		return status;
	if (!smart_beside_take(tree, near.link, near.arrived, node, key, &ours))
		status = smart_node_read_again(tree, near.link, near.arrived, node, key, &ours);
	if (status == SMART_OK && !ours)
		smart_forget_node(tree, near.link);
	if (status != SMART_OK || !ours)
		return status;
	node->parent = near.parent;
	node->parent_index = near.parent_index;
	node->parent_arrived = near.parent_arrived;
	if (SMART_FAULT(stalecas))
		smart_fault_stale_node(tree, near.link, node);
	status = pass_node(tree, key, node, place, &again);
	if (status == SMART_OK && !again)
		status = descend(tree, key, place, 1, &again);
	*found = status == SMART_OK && !again;
	return status;
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
			status = descend_from_root(tree, key, place, &again);
	} while (status == SMART_OK && again);
	return status;
}

/*
 * READs a node that descend_near came to once more, together with the parent that
 * the cache shows; *found: both are live, and the parent's slot leads to the node.
 */
static smart_status
read_with_parent(struct smart_tree *tree, const struct smart_key *key, bool *found)
{
	struct smart_node *node = &tree->nodes[0];
	struct smart_node *parent = &tree->nodes[1];
	uint64_t head[2][SMART_NODE_HEAD_WORDS];
	struct fabric_request batch[4];
	smart_status status;
	int index;

	*found = node->parent != 0 &&
			 smart_node_prepare_again(tree, node->parent, node->parent_arrived, parent, head[0], &batch[0]) &&
			 smart_node_prepare_again(tree, node->link, node->arrived, node, head[1], &batch[2]);
	if (!*found)
		return SMART_OK;
	status = smart_execute(tree, batch, 4);
	if (status != SMART_OK)
		return status;
	*found = smart_node_finish_again(tree, parent, head[0], key) && smart_node_finish_again(tree, node, head[1], key);
	if (!*found)
		return SMART_OK;
	index = smart_node_cover_index(parent, smart_key_byte(key, parent->depth));
	*found = index >= 0 && parent->words[SMART_NODE_HEAD_WORDS + index] == node->link;
	if (*found)
	{
		node->link_address = smart_node_slot_address(parent->address, (unsigned int) index);
		node->parent_index = index;
	}
	return SMART_OK;
}

/*
 * A node that was found without its parent, again with it, on key's path; NULL:
 * there is another one in its place.
 */
smart_status
smart_find_parent(struct smart_tree *tree, const struct smart_key *key, const struct smart_node **node)
{
	fabric_address address = (*node)->address;
	struct smart_place place;
	bool found;
	smart_status status;

	smart_assert(!tree->direct && *node == &tree->nodes[0] && (*node)->link_address == 0);
	status = read_with_parent(tree, key, &found);
	if (status != SMART_OK || found)
		return status;
	status = smart_find_from_root(tree, key, &place);
	*node = status == SMART_OK && place.node != NULL && place.node->address == address ? place.node : NULL;
	return status;
}
