/*
 * route.c
 *	  Nodes that a walk on a remote provider comes through, and those that it READs before it comes to them.
 */
#include "tree/block/access.h"
#include "tree/read/route.h"

void
smart_route_start(struct smart_route *route)
{
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
		route->kept[i].known = false;
	route->latest = NULL;
	if (route->ahead != NULL)
		smart_nodes_ahead_start(route->ahead);
}

void
smart_route_done(struct smart_route *route)
{
	smart_release(route->tree->env, route->ahead);
}

/* ---- remembering ---- */

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
		else if (victim == NULL || other->fresh < victim->fresh ||
				 (other->fresh == victim->fresh && other->used < victim->used))
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
	if (route->ahead != NULL)
		smart_nodes_ahead_forget(route->ahead, node);
}

bool
smart_route_is_ahead(const struct smart_route *route, const struct smart_node *node)
{
	return route->ahead != NULL && smart_nodes_ahead_has(route->ahead, node);
}

/* ---- READs ---- */

static bool
open_ahead(struct smart_route *route)
{
	if (route->ahead == NULL)
		route->ahead = smart_nodes_ahead_open(route->tree->env);
	return route->ahead != NULL;
}

void
smart_route_want(struct smart_route *route, const struct smart_key *key, const struct smart_node *node)
{
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		if (&route->kept[i].node == node && route->kept[i].fresh)
			return;
	}
	if (open_ahead(route))
		(void) smart_nodes_ahead_renew(route->ahead, key, node);
}

bool
smart_route_want_ahead(struct smart_route *route, const struct smart_key *key, const struct smart_place *place)
{
	smart_assert(place->kind == SMART_PLACE_NODE);
	return open_ahead(route) && smart_nodes_ahead_want(route->ahead, key, place->slot, place->consumed,
													   smart_node_shows(route->tree, place));
}

bool
smart_route_want_mismatch(struct smart_route *route, const struct smart_key *key, const struct smart_place *place)
{
	smart_assert(place->kind == SMART_PLACE_MISMATCH);
	return place->node != NULL && open_ahead(route) &&
		   smart_nodes_ahead_want_both(route->ahead, key, place->node, place->slot);
}

bool
smart_route_shows_mismatch(const struct smart_route *route, const struct smart_key *key,
						   const struct smart_place *place)
{
	smart_assert(place->kind == SMART_PLACE_MISMATCH);
	if (SMART_FAULT(apart) && place->node != NULL)
		return true;
	return route->ahead != NULL && smart_nodes_ahead_shows_prefix(route->tree, route->ahead, key, place->child);
}

int
smart_route_prepare(struct smart_route *route, struct fabric_request *batch)
{
	return route->ahead == NULL ? 0 : smart_nodes_ahead_prepare(route->tree, route->ahead, batch);
}

void
smart_route_finish(struct smart_route *route, bool done)
{
	if (route->ahead != NULL)
		smart_nodes_ahead_finish(route->tree, route->ahead, done);
}

smart_status
smart_route_read(struct smart_route *route)
{
	struct fabric_request batch[SMART_AHEAD_REQUESTS] = {{.verb = FABRIC_READ}};
	int count = smart_route_prepare(route, batch);
	smart_status status = count > 0 ? fabric_execute(route->tree->fabric, batch, count) : SMART_OK;

	smart_route_finish(route, status == SMART_OK);
	return status;
}

/* ---- finding ---- */

static bool
leads(struct smart_route *route, struct smart_kept *kept, const struct smart_key *key, struct smart_place *place)
{
	if (!kept->known || !smart_node_is_ours(route->tree, &kept->node, key) ||
		!smart_node_leads(&kept->node, kept->fresh, key, place))
		return false;
	kept->used = ++route->uses;
	route->latest = kept;
	return true;
}

bool
smart_route_find(struct smart_route *route, const struct smart_key *key, struct smart_place *place)
{
	/* The next leaf is nearly always the same node's. */
	if (route->latest != NULL && leads(route, route->latest, key, place))
		return true;
	route->latest = NULL;
	if (route->ahead != NULL && smart_nodes_ahead_find(route->tree, route->ahead, key, place))
		return true;
	for (int i = 0; i < SMART_ROUTE_NODES; i++)
	{
		if (leads(route, &route->kept[i], key, place))
			return true;
	}
	return false;
}

void
smart_route_descend(struct smart_route *route, const struct smart_key *key, struct smart_place *place)
{
	struct smart_tree *tree = route->tree;
	struct smart_services *services = tree->services;
	uint64_t moment;
	bool usable = true;

	*place = (struct smart_place){.kind = SMART_PLACE_UNKNOWN, .index = -1};
	if (services->cache_find == NULL || !services->cache_find(services, tree->options.id, 0, &place->slot, &moment))
		return;
	place->kind = smart_place_kind_of(place->slot, 0, true);
	while (place->kind == SMART_PLACE_NODE)
	{
		struct smart_node *node =
			route->ahead == NULL ? NULL : smart_nodes_ahead_known(route->ahead, place->slot, place->consumed);

		if (node == NULL)
		{
			node = smart_next_node(tree, place);
			if (!smart_node_recall(tree, place->slot, place->consumed, node, &usable))
				return;
		}
		if (usable)
			smart_node_step(node, key, place, true);
		else
			place->kind = SMART_PLACE_UNKNOWN;
	}
}
