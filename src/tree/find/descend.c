/*
 * descend.c
 *	  One strict descent (B4).
 *
 * It reads the root's word and then every node within this operation, and goes
 * only through live nodes and unfrozen slots.  By I2 each node it passes was in
 * the tree after the operation began; what it finds at the end was the truth at
 * a moment within the operation.
 *
 * On a remote provider it begins at the last node that the cache shows on the key's
 * path, which it READs in a way that proves it, and turns to the root only when
 * that node is not what it was.  It leaves what it read in the cache, so that a
 * path that misled one operation does not mislead the next.
 *
 * A descent does not replace what is in its way.  It names a node with a frozen slot
 * (SMART_PLACE_FROZEN) and leaves it to its caller, which is strict.c, or grow.c
 * on its way to the parent of a node that it replaces.  All that it does for others
 * is to activate a node that it sees linked.
 */
#include "tree/block/access.h"
#include "tree/block/piggyback.h"
#include "tree/find/find.h"

/* Fault stalecas: a node of a strict descent out of the cache. */
static void
take_stale_node(struct smart_tree *tree, struct smart_node *node)
{
	uint64_t moment;

	if (tree->direct || tree->env->random(tree->env) % 4 == 0 ||
		!tree->services->cache_find(tree->services, tree->options.id, node->link, node->words, &moment))
		return;
	node->depth = smart_node_depth(node->words[0]);
}

/*
 * By pointers, a node that only leads on to another need not be copied: moves
 * place through it.  false: it has to be looked at properly.
 */
static bool
pass_by_pointer(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	struct smart_place next = *place;
	unsigned int kind = smart_slot_size(place->slot);
	fabric_address address = smart_slot_address(place->slot);
	const uint64_t *words = fabric_direct(tree->fabric, address, smart_kind_bytes(kind));
	const uint64_t *slots;
	uint64_t header;
	unsigned int index;

	if (words == NULL || kind < 1 || kind > SMART_NODE_KINDS)
		return false;
	slots = words + SMART_NODE_HEAD_WORDS;
	header = smart_load_acquire(words);
	if (smart_node_state(header) != SMART_LIVE || !smart_header_fits(header, kind, place->consumed))
		return false;
	smart_place_step(&next, header, slots, kind, tree->kind_slots[kind], key, false);
	if (next.kind != SMART_PLACE_NODE)
		return false;
	index = kind == SMART_NODE_256 ? smart_slot_pk(next.slot) : 0;
	while (index < tree->kind_slots[kind] && smart_load_acquire(&slots[index]) != next.slot)
		index++;
	if (index == tree->kind_slots[kind])
		return false; /* it changed this moment */
	next.node = NULL;
	next.index = (int) index;
	next.slot_address = smart_node_slot_address(address, index);
	*place = next;
	return true;
}

/*
 * READs the node that place leads to and goes through it.  UNKNOWN: it is not what its slot promised, which means
 * that its memory has been used again, or it is dead, or was new until now (B4 a), or the view is torn.
 */
static smart_status
pass_copied(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	struct smart_node *node = smart_next_node(tree, place);
	smart_status status = smart_node_read(tree, place->slot, place->slot_address, place->consumed, node);

	if (status != SMART_OK)
		return status;
	smart_node_set_parent(node, place);
	place->kind = SMART_PLACE_UNKNOWN;
	if (SMART_FAULT(stalecas))
		take_stale_node(tree, node);
	if (!smart_header_fits(node->words[0], node->kind, node->arrived))
		return SMART_OK;
	if (smart_node_state(node->words[0]) == SMART_NEW)
		return smart_node_activate(tree, node->address);
	if (smart_node_state(node->words[0]) != SMART_LIVE)
		return SMART_OK;
	smart_node_step(node, key, place, false);
	if (place->kind == SMART_PLACE_MISMATCH)
		return SMART_OK;
	/* Remote memory may have been used again; a dead compute node's reads are not held up by this epoch. */
	smart_assert(node->link_address != 0 && (place->kind > SMART_PLACE_NODE || place->node == node));
	if (tree->direct || smart_node_is_ours(tree, node, key))
		smart_keep_read_node(tree, node, true);
	else
		place->kind = SMART_PLACE_UNKNOWN;
	return SMART_OK;
}

/* From place on, which is strict. */
static smart_status
descend(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	smart_status status = SMART_OK;

	while (status == SMART_OK && place->kind == SMART_PLACE_NODE)
	{
		if (!tree->direct || !pass_by_pointer(tree, key, place))
			status = pass_copied(tree, key, place);
	}
	return status;
}

smart_status
smart_descend(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	smart_slot slot;
	smart_status status = smart_word_read(tree, tree->options.root, &slot);

	if (status != SMART_OK)
		return status;
	/* The root's slot is never frozen. */
	if (!smart_slot_used(slot) || smart_slot_frozen(slot))
		return SMART_CORRUPT;
	smart_keep_node(tree, 0, &slot);
	*place = (struct smart_place){.kind = smart_place_kind_of(slot, 0, false),
								  .slot = slot,
								  .slot_address = tree->options.root,
								  .index = -1};
	return descend(tree, key, place);
}

smart_status
smart_descend_near(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	struct smart_node *node;
	bool ours;
	smart_status status;

	place->kind = SMART_PLACE_UNKNOWN;
	if (tree->direct || tree->services->cache_find == NULL)
		return SMART_OK;
	status = smart_find_cached(tree, key, place);
	node = place->node;
	place->kind = SMART_PLACE_UNKNOWN;
	if (status != SMART_OK || node == NULL)
		return status;
	ours = SMART_FAULT(partview) && node->part;
	if (!ours && !smart_piggyback_take(tree, node, key, &ours))
		status = smart_node_read_again(tree, node->link, node->arrived, node, key, &ours);
	if (status == SMART_OK && !ours)
		smart_forget_node(tree, node->link);
	if (status != SMART_OK || !ours)
		return status;
	if (SMART_FAULT(stalecas))
		take_stale_node(tree, node);
	smart_keep_read_node(tree, node, true);
	smart_assert(node->link_address == 0 && node->arrived <= node->depth);
	place->consumed = node->arrived;
	smart_node_step(node, key, place, false);
	return descend(tree, key, place);
}

/*
 * READs a node that descend_near came to once more, together with the parent that
 * the cache showed; *found: both are live, and the parent's slot leads to the node.
 */
static smart_status
read_with_parent(struct smart_tree *tree, const struct smart_key *key, struct smart_node *node, bool *found)
{
	struct smart_node *parent = &tree->nodes[node == &tree->nodes[0] ? 1 : 0];
	struct fabric_request batch[4];
	smart_status status;
	int index;

	*found = node->parent != 0 &&
			 smart_node_prepare_again(tree, node->parent, node->parent_arrived, parent, &batch[0]) &&
			 smart_node_prepare_again(tree, node->link, node->arrived, node, &batch[2]);
	if (!*found)
		return SMART_OK;
	status = smart_execute(tree, batch, 4);
	if (status != SMART_OK)
		return status;
	*found = smart_node_finish_again(tree, parent, key) && smart_node_finish_again(tree, node, key);
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

smart_status
smart_find_parent(struct smart_tree *tree, const struct smart_key *key, const struct smart_node **node)
{
	struct smart_node *copy = &tree->nodes[*node == &tree->nodes[0] ? 0 : 1];
	fabric_address address = copy->address;
	struct smart_place place;
	bool found;
	smart_status status;

	smart_assert(!tree->direct && *node == copy && copy->link_address == 0);
	status = read_with_parent(tree, key, copy, &found);
	if (status != SMART_OK || found)
		return status;
	*node = NULL;
	status = smart_descend(tree, key, &place);
	if (status != SMART_OK)
		return status;
	if (place.kind == SMART_PLACE_FROZEN)
		*node = place.child;
	else if (place.kind != SMART_PLACE_UNKNOWN && place.node != NULL && place.node->address == address)
		*node = place.node;
	smart_assert(*node == NULL || (*node)->link_address != 0);
	return SMART_OK;
}
