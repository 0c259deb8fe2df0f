/*
 * fetch.c
 *	  A node that a search by way of the cache needs, and the cache does not have: READ whole, or a part of it (B6).
 *
 * A node of the direct-mapped kind is 2,064 bytes long.  Where the cache has room for it, it is READ whole and kept.
 * Where there is none, what a search needs is one slot, and that stands at a place which is known before the node is:
 * the byte tells it, if the position of the byte is known.  The header has the position, and is READ first anyway; so
 * the search supposes that as many bytes are skipped as in the last such node, and looks at the header afterwards.  Then
 * a node that was not cached costs 144 bytes instead of 2,080, which is what limits small caches.
 *
 * A node takes a single READ below one that this search has READ itself, or that the cache has of the same moment: what
 * its slots show cannot have been used again (B1).
 */
#include "tree/block/access.h"
#include "tree/find/find.h"

#define PART_SLOTS 16 /* up to the byte's own one: more than half of the slots are in use, so that one of these is */

/* Was the slot that led here READ in this moment, in a live node, and not frozen?  Then the child was in the tree (I2). */
static bool
is_of_today(const struct smart_place *place)
{
	const struct smart_node *node = place->node;

	if (SMART_FAULT(onepiece))
		return true;
	return node != NULL && node->today && !smart_slot_frozen(node->words[SMART_NODE_HEAD_WORDS + place->index]);
}

/* *ours: the node is live and of key's prefix in this tree. */
static smart_status
read_whole(struct smart_tree *tree, const struct smart_place *place, struct smart_node *node,
		   const struct smart_key *key, bool *ours)
{
	bool today = is_of_today(place);
	struct fabric_request batch[2];
	smart_status status;

	*ours = smart_node_prepare_again(tree, place->slot, place->consumed, node, batch);
	if (!*ours)
		return SMART_OK;
	status = today ? smart_execute(tree, &batch[1], 1) : smart_execute(tree, batch, 2);
	if (status != SMART_OK)
		return status;
	if (today)
		memcpy(node->head, node->words, sizeof(node->head));
	*ours = smart_node_finish_again(tree, node, key);
	node->today = *ours;
	return SMART_OK;
}

/* ---- parts ---- */

static unsigned int
first_of_part(unsigned int byte)
{
	smart_assert(byte <= 255);
	return byte < PART_SLOTS ? 0 : byte - PART_SLOTS + 1;
}

static struct fabric_request
part_request(struct smart_node *node, unsigned int byte)
{
	unsigned int first = first_of_part(byte);

	return smart_read_request(smart_node_slot_address(node->address, first),
							  &node->words[SMART_NODE_HEAD_WORDS + first],
							  (byte - first + 1) * (uint32_t) sizeof(uint64_t));
}

/* Is the slot that covers byte among those that were READ? */
static bool
part_covers(const struct smart_node *node, unsigned int byte)
{
	const uint64_t *slots = node->words + SMART_NODE_HEAD_WORDS;
	unsigned int first = first_of_part(byte);

	return smart_slot_used(smart_cover(slots + first, SMART_NODE_256, node->slots, byte - first));
}

/* What the part lacks.  The node was live after the operation began: its block is no other before the end (I6). */
static smart_status
read_rest(struct smart_tree *tree, struct smart_node *node, const struct smart_key *key, bool *ours)
{
	struct fabric_request batch[2];
	smart_status status;

	smart_node_prepare_again(tree, node->link, node->arrived, node, batch);
	status = smart_execute(tree, &batch[1], 1);
	if (status != SMART_OK)
		return status;
	*ours = smart_node_finish_again(tree, node, key);
	node->today = *ours;
	return SMART_OK;
}

/* The node is whole (node->part is false) if the part turns out to lack the slot. */
static smart_status
read_part(struct smart_tree *tree, const struct smart_place *place, struct smart_node *node,
		  const struct smart_key *key, bool *ours)
{
	unsigned int depth = place->consumed + tree->part_skips;
	struct fabric_request batch[2];
	smart_status status;

	smart_assert(smart_slot_size(place->slot) == SMART_NODE_256 && tree->entered);
	smart_node_prepare_again(tree, place->slot, place->consumed, node, batch);
	memset(node->words, 0, sizeof(node->words));
	batch[1] = part_request(node, smart_key_byte(key, depth));
	status = smart_execute(tree, batch, 2);
	if (status != SMART_OK)
		return status;
	memcpy(node->words, node->head, sizeof(node->head));
	*ours = smart_node_finish_again(tree, node, key);
	if (*ours && node->depth != depth)
	{
		tree->part_skips = node->depth - place->consumed;
		batch[1] = part_request(node, smart_key_byte(key, node->depth));
		status = smart_execute(tree, &batch[1], 1);
	}
	if (status != SMART_OK || !*ours)
		return status;
	if (!part_covers(node, smart_key_byte(key, node->depth)))
		return read_rest(tree, node, key, ours);
	node->part = true;
	node->today = true;
	return SMART_OK;
}

smart_status
smart_fetch_node(struct smart_tree *tree, const struct smart_place *place, bool parts, struct smart_node *node,
				 const struct smart_key *key, bool *ours)
{
	struct smart_services *services = tree->services;

	smart_assert(!tree->direct && tree->entered && smart_slot_is_node(place->slot));
	if (parts && smart_slot_size(place->slot) == SMART_NODE_256 && services->cache_wants != NULL &&
		!services->cache_wants(services, tree->options.id, place->slot))
		return read_part(tree, place, node, key, ours);
	return read_whole(tree, place, node, key, ours);
}
