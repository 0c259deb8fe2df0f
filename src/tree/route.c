/*
 * route.c
 *	  Nodes that a walk over a remote tree has come through.
 *
 * What they say of leaves is a hint.  What they say of empty ranges is evidence
 * if they were READ within the walk: a slot that is not frozen in a live node
 * is part of the tree at the moment of the READ (I2), and then nothing was in
 * that range that had been there since the walk began.
 */
#include "tree/route.h"

_Static_assert(SMART_ROUTE_RENEWED < SMART_ROUTE_NODES, "a node that waits to be READ again is not forgotten");

void
smart_route_clear(struct smart_route *route)
{
	route->renewals = 0;
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
		route->kept[i].known = route->kept[i].renew = false;
}

/* Makes room for another node: what can be had from the cache again goes first, then what was not used for long. */
static struct smart_kept *
choose_victim(struct smart_route *route)
{
	struct smart_kept *victim = NULL;

	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		struct smart_kept *kept = &route->kept[i];

		if (!kept->known)
			return kept;
		if (!kept->renew && (victim == NULL || kept->fresh < victim->fresh ||
							 (kept->fresh == victim->fresh && kept->used < victim->used)))
			victim = kept;
	}
	smart_assert(victim != NULL);
	return victim;
}

/* Remembers a node; fresh: it was READ within this walk. */
struct smart_node *
smart_route_keep(struct smart_route *route, const struct smart_node *node, bool fresh)
{
	struct smart_kept *kept = NULL;

	for (int i = 0; i < SMART_ROUTE_NODES && kept == NULL; i++)
	{
		struct smart_kept *other = &route->kept[i];

		if (other->known && other->node.address == node->address &&
			memcmp(other->node.words, node->words, sizeof(other->head)) == 0)
			kept = other;
	}
	/* A copy from the cache may be older than one of this walk. */
	if (kept != NULL && (&kept->node == node || (kept->fresh && !fresh)))
		return &kept->node;
	if (kept == NULL)
		kept = choose_victim(route);
	memcpy(&kept->node, node,
		   offsetof(struct smart_node, words) + (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
	kept->known = true;
	kept->fresh = fresh;
	kept->used = ++route->uses;
	return &kept->node;
}

/* What a kept node leads to was wrong. */
void
smart_route_forget(struct smart_route *route, const struct smart_node *node)
{
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
		route->kept[i].known &= &route->kept[i].node != node;
}

/* The next batch reads the node again, if there is room: there is an empty range in it. */
void
smart_route_want(struct smart_route *route, const struct smart_node *node)
{
	struct smart_node *copy = smart_route_keep(route, node, false);
	struct smart_kept *kept = (struct smart_kept *) (void *) ((char *) copy - offsetof(struct smart_kept, node));

	if (kept->fresh || kept->renew || route->renewals == SMART_ROUTE_RENEWED)
		return;
	kept->renew = true;
	route->renewals++;
}

/* As smart_node_read_again: the header on both sides of the slots will prove whose they are.  Returns the requests. */
int
smart_route_prepare(struct smart_route *route, struct fabric_request *batch)
{
	int count = 0;

	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		struct smart_kept *kept = &route->kept[i];
		uint32_t bytes = (uint32_t) ((SMART_NODE_HEAD_WORDS + kept->node.slots) * sizeof(uint64_t));

		if (!kept->renew)
			continue;
		batch[count++] = (struct fabric_request){.verb = FABRIC_READ,
												 .remote = kept->node.address,
												 .local = kept->head,
												 .length = sizeof(kept->head)};
		batch[count++] = (struct fabric_request){.verb = FABRIC_READ,
												 .remote = kept->node.address,
												 .local = kept->words,
												 .length = bytes};
	}
	smart_assert(count == 2 * (int) route->renewals);
	return count;
}

/* done: the batch was executed.  A node that is not live any more, or another one, stays as old as it was. */
void
smart_route_finish(struct smart_route *route, bool done)
{
	route->renewals = 0;
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		struct smart_kept *kept = &route->kept[i];
		struct smart_node *node = &kept->node;

		if (kept->renew && done && smart_node_state(kept->head[0]) == SMART_LIVE &&
			memcmp(kept->head, node->words, sizeof(kept->head)) == 0 &&
			memcmp(kept->head, kept->words, sizeof(kept->head)) == 0)
		{
			memcpy(node->words, kept->words, (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
			kept->fresh = true;
		}
		kept->renew = false;
	}
}

/* Where a kept node leads: a leaf, or an empty range; false: the cursor has left it, or it cannot tell. */
static bool
find_in_node(const struct smart_tree *tree, struct smart_kept *kept, const struct smart_key *key,
			 struct smart_place *place)
{
	struct smart_node *node = &kept->node;
	unsigned int byte;
	smart_slot slot;
	int index;

	if (!kept->known || !smart_node_is_ours(tree, node, key))
		return false;
	byte = smart_key_byte(key, node->depth);
	index = smart_node_cover_index(node, byte);
	slot = index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index];
	if (!smart_slot_is_range(slot))
		return false;
	if (smart_slot_is_empty(slot) && ((!kept->fresh && !SMART_FAULT(trustempty)) || smart_slot_frozen(slot) ||
									  (smart_slot_empty_hi(slot) < byte && !SMART_FAULT(nohi))))
		return false;
	*place = (struct smart_place){.kind = smart_slot_is_leaf(slot) ? SMART_PLACE_LEAF : SMART_PLACE_EMPTY,
								  .slot = slot & ~SMART_SLOT_FROZEN,
								  .index = index,
								  .node = node,
								  .depth = node->depth,
								  .consumed = node->depth + 1};
	return true;
}

bool
smart_route_find(const struct smart_tree *tree, struct smart_route *route, const struct smart_key *key,
				 struct smart_place *place)
{
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		if (!find_in_node(tree, &route->kept[i], key, place))
			continue;
		route->kept[i].used = ++route->uses;
		return true;
	}
	return false;
}
