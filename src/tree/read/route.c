/*
 * route.c
 *	  Nodes that a walk on a remote provider comes through.
 */
#include "tree/block/access.h"
#include "tree/read/route.h"

void
smart_route_start(struct smart_route *route)
{
	route->renewals = 0;
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
		route->kept[i].known = route->kept[i].renew = false;
}

static struct smart_kept *
keep(struct smart_route *route, const struct smart_node *node, bool fresh)
{
	struct smart_kept *kept = NULL;
	struct smart_kept *victim = NULL;

	for (int i = 0; i < SMART_ROUTE_NODES && kept == NULL; i++)
	{
		struct smart_kept *other = &route->kept[i];

		if (other->known && other->node.address == node->address &&
			memcmp(other->node.words, node->words, sizeof(node->head)) == 0)
			kept = other;
	}
	/* A copy from the cache may be older than one of this walk. */
	if (kept != NULL && (&kept->node == node || (kept->fresh && !fresh)))
		return kept;
	/* Makes room: what can be had from the cache again goes first, then what was not used for long. */
	for (int i = 0; i < SMART_ROUTE_NODES && kept == NULL; i++)
	{
		struct smart_kept *other = &route->kept[i];

		if (!other->known)
			kept = other;
		else if (!other->renew && (victim == NULL || other->fresh < victim->fresh ||
								   (other->fresh == victim->fresh && other->used < victim->used)))
			victim = other;
	}
	if (kept == NULL)
		kept = victim;
	smart_assert(kept != NULL);
	memcpy(&kept->node, node,
		   offsetof(struct smart_node, words) + (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
	kept->known = true;
	kept->fresh = fresh;
	kept->used = ++route->uses;
	return kept;
}

struct smart_node *
smart_route_keep(struct smart_route *route, const struct smart_node *node, bool fresh)
{
	return &keep(route, node, fresh)->node;
}

void
smart_route_forget(struct smart_route *route, const struct smart_node *node)
{
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
		route->kept[i].known &= &route->kept[i].node != node;
}

void
smart_route_want(struct smart_route *route, const struct smart_node *node)
{
	struct smart_kept *kept = keep(route, node, false);

	if (kept->fresh || kept->renew || route->renewals == SMART_ROUTE_RENEWED)
		return;
	kept->renew = true;
	route->renewals++;
	smart_assert(kept->known && route->renewals <= SMART_ROUTE_RENEWED);
}

int
smart_route_prepare(const struct smart_tree *tree, struct smart_route *route, struct fabric_request *batch)
{
	int count = 0;

	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		struct smart_node *node = &route->kept[i].node;

		if (route->kept[i].renew && smart_node_prepare_again(tree, node->link, node->arrived, node, &batch[count]))
			count += 2;
	}
	smart_assert(count == 2 * (int) route->renewals);
	return count;
}

/* A live node is fresh now, whichever it is: find asks whose it is.  One that is not live any more is forgotten. */
void
smart_route_finish(struct smart_route *route, bool done)
{
	route->renewals = 0;
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		struct smart_kept *kept = &route->kept[i];
		struct smart_node *node = &kept->node;

		if (!kept->renew)
			continue;
		node->depth = smart_node_depth(node->words[0]);
		kept->fresh = kept->known = done && memcmp(node->head, node->words, sizeof(node->head)) == 0 &&
									smart_node_state(node->words[0]) == SMART_LIVE &&
									smart_header_fits(node->words[0], node->kind, node->arrived);
		kept->renew = false;
	}
}

bool
smart_route_find(const struct smart_tree *tree, struct smart_route *route, const struct smart_key *key,
				 struct smart_place *place)
{
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		struct smart_kept *kept = &route->kept[i];
		struct smart_node *node = &kept->node;

		if (!kept->known || !smart_node_is_ours(tree, node, key))
			continue;
		*place = (struct smart_place){.slot = node->link, .consumed = node->depth};
		smart_node_step(node, key, place, true);
		if (place->kind != SMART_PLACE_LEAF &&
			(place->kind != SMART_PLACE_EMPTY || (!kept->fresh && !SMART_FAULT(trustempty)) ||
			 smart_slot_frozen(node->words[SMART_NODE_HEAD_WORDS + place->index])))
			continue;
		/* I2: an empty range is evidence only in a node that was READ within the walk. */
		smart_assert(place->kind == SMART_PLACE_LEAF || kept->fresh || SMART_FAULT(trustempty));
		kept->used = ++route->uses;
		return true;
	}
	return false;
}
