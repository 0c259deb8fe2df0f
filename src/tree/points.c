/*
 * points.c
 *	  The leaves of many points at once (= ANY), level by level: one batch READs
 *	  all the nodes of a level that the cache does not have, and the last one all
 *	  the leaves.
 *
 * What is found are hints, as everything that a cache leads to: a leaf answers
 * for itself later (B1), and a point without one is looked for as any other.
 */
#include "tree/readahead.h"

_Static_assert(SMART_POINTS_MAX <= SMART_READAHEAD_MAX, "a window holds the leaves of all points");

/* A point on its way down. */
struct descent
{
	smart_slot slot;       /* where it is; 0: it came to no leaf */
	unsigned int consumed; /* bytes of the point that led there */
	unsigned int node;     /* that it waits for */
};

/* A node that is being READ, for one descent or more. */
struct arrival
{
	uint64_t head[SMART_NODE_HEAD_WORDS];
	struct smart_node node;
};

struct points
{
	struct smart_tree *tree;
	const struct smart_key *keys;
	unsigned int count;
	unsigned int arriving;
	struct descent descents[SMART_POINTS_MAX];
	struct arrival arrivals[SMART_POINTS_MAX];
	struct smart_node cached;
	struct fabric_request batch[2 * SMART_POINTS_MAX];
};

/* Goes through a node, which lies on the point's path. */
static void
pass_node(struct descent *descent, const struct smart_key *key, const struct smart_node *node)
{
	unsigned int byte = smart_key_byte(key, node->depth);
	int index = smart_node_cover_index(node, byte);

	descent->slot = 0;
	for (unsigned int i = descent->consumed; i < node->depth; i++)
	{
		if (smart_node_partial_byte(node->words[0], i) != smart_key_byte(key, i))
			return;
	}
	descent->consumed = node->depth + 1;
	if (index >= 0)
		descent->slot = node->words[SMART_NODE_HEAD_WORDS + index] & ~SMART_SLOT_FROZEN;
	if (smart_slot_is_node(descent->slot) && smart_slot_pk(descent->slot) != byte)
		descent->slot = 0;
}

/* Descends as far as the cache reaches; false: there is no node that has to be READ. */
static bool
descend_cached(struct points *points, unsigned int point)
{
	struct smart_services *services = points->tree->services;
	struct descent *descent = &points->descents[point];

	while (smart_slot_is_node(descent->slot))
	{
		struct smart_node *node = &points->cached;

		if (services->cache_find == NULL ||
			!services->cache_find(services, points->tree->options.id, descent->slot, node->words))
			return true;
		if (!smart_node_from_copy(points->tree, descent->slot, descent->consumed, NULL, node) ||
			node->depth < descent->consumed || node->depth - descent->consumed > SMART_NODE_PARTIAL_MAX)
			descent->slot = 0;
		else
			pass_node(descent, &points->keys[point], node);
	}
	return false;
}

/* Joins a READ of the node that the descent is at, or adds one. */
static void
join_arrival(struct points *points, unsigned int point)
{
	struct descent *descent = &points->descents[point];
	unsigned int i = 0;

	while (i < points->arriving && points->arrivals[i].node.link != descent->slot)
		i++;
	descent->node = i;
	if (i < points->arriving)
		return;
	if (smart_node_prepare_again(points->tree, descent->slot, descent->consumed, &points->arrivals[i].node,
								 points->arrivals[i].head, &points->batch[2 * (size_t) i]))
		points->arriving++;
	else
		descent->slot = 0;
}

/* The nodes of one level have been READ. */
static void
pass_arrivals(struct points *points)
{
	for (unsigned int point = 0; point < points->count; point++)
	{
		struct descent *descent = &points->descents[point];
		struct arrival *arrival = &points->arrivals[descent->node];

		if (!smart_slot_is_node(descent->slot))
			continue;
		if (!smart_node_finish_again(points->tree, &arrival->node, arrival->head, &points->keys[point]))
		{
			descent->slot = 0;
			continue;
		}
		smart_keep_node(points->tree, descent->slot, arrival->node.words);
		pass_node(descent, &points->keys[point], &arrival->node);
	}
}

static smart_status
find_root(struct smart_tree *tree, smart_slot *root)
{
	struct smart_services *services = tree->services;
	smart_status status;

	if (services->cache_find != NULL && services->cache_find(services, tree->options.id, 0, root))
		return SMART_OK;
	status = smart_word_read(tree, tree->options.root, root);
	if (status == SMART_OK)
		smart_keep_node(tree, 0, root);
	return status;
}

/* Brings all descents to their ends. */
static smart_status
descend_all(struct points *points)
{
	smart_status status = SMART_OK;

	do
	{
		points->arriving = 0;
		for (unsigned int point = 0; point < points->count; point++)
		{
			if (descend_cached(points, point))
				join_arrival(points, point);
		}
		if (points->arriving > 0)
			status = fabric_execute(points->tree->fabric, points->batch, 2 * (int) points->arriving);
		if (status == SMART_OK)
			pass_arrivals(points);
	} while (status == SMART_OK && points->arriving > 0);
	return status;
}

/* READs the leaves that were found, each once. */
static smart_status
read_leaves(struct points *points, struct smart_window *window)
{
	smart_slot slots[SMART_POINTS_MAX];
	unsigned int count = 0;

	for (unsigned int point = 0; point < points->count; point++)
	{
		smart_slot slot = points->descents[point].slot;
		unsigned int i = 0;

		if (!smart_slot_is_leaf(slot))
			continue;
		while (i < count && slots[i] != slot)
			i++;
		slots[i] = slot;
		count = i == count ? count + 1 : count;
	}
	return count == 0 ? SMART_OK : smart_window_read(points->tree, window, NULL, 0, slots, count);
}

smart_status
smart_points_read(struct smart_tree *tree, const struct smart_key *keys, unsigned int count,
				  struct smart_window *window)
{
	struct points *points = tree->env->allocate(tree->env, sizeof(*points));
	smart_slot root;
	smart_status status;

	smart_assert(!tree->direct && count <= SMART_POINTS_MAX);
	window->count = 0;
	if (points == NULL)
		return SMART_NO_MEMORY;
	points->tree = tree;
	points->keys = keys;
	points->count = count;
	status = find_root(tree, &root);
	for (unsigned int point = 0; point < count; point++)
		points->descents[point] = (struct descent){.slot = root};
	if (status == SMART_OK)
		status = descend_all(points);
	if (status == SMART_OK)
		status = read_leaves(points, window);
	tree->env->release(tree->env, points);
	return status;
}
