/*
 * window.c
 *	  Blocks that are READ in one batch before their turn comes (remote
 *	  providers): those that a walk comes to, and the leaves of many keys.
 *
 * Many keys (= ANY) go down level by level: one batch READs all the nodes of a
 * level that the cache does not have, and the last one all the leaves.
 *
 * What is found are hints, as everything that a cache leads to: a leaf answers
 * for itself later (B1), and a key without one is looked for as any other.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/find/window.h"

/* ---- windows ---- */

/* The copy at position i is to be of what link leads to; NULL: no memory. */
static uint8_t *
make_copy(struct smart_tree *tree, struct smart_window *window, unsigned int i, smart_slot link)
{
	uint32_t bytes = smart_class_bytes(smart_slot_class(link));

	smart_assert(i < SMART_WINDOW_MAX);
	if (window->blocks[i].room < bytes)
	{
		smart_release(tree->env, window->blocks[i].copy);
		/* A leaf is read some bytes at a time. */
		window->blocks[i].copy = tree->env->allocate(tree->env, bytes + SMART_BATCH_SLACK);
		window->blocks[i].room = window->blocks[i].copy != NULL ? bytes : 0;
	}
	window->blocks[i].link = link;
	window->blocks[i].ticket = 0;
	return window->blocks[i].copy;
}

/* The READs of the blocks of the window that wait (their numbers). */
static void
put_reads(const struct smart_window *window, const uint8_t *waiting, unsigned int count, struct fabric_request *reads)
{
	smart_assert(count <= SMART_WINDOW_MAX);
	for (unsigned int i = 0; i < count; i++)
	{
		smart_slot link = window->blocks[waiting[i]].link;

		reads[i] = smart_read_request(smart_slot_address(link), window->blocks[waiting[i]].copy,
									  smart_class_bytes(smart_slot_class(link)));
	}
}

/*
 * READs them, behind the requests in front.  Blocks and requests are not changed by others meanwhile: the window is one
 * walk's.
 */
static smart_status
read_blocks(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front, int front_count,
			const uint8_t *waiting, unsigned int count)
{
	struct fabric_request batch[SMART_WINDOW_MAX + SMART_WINDOW_FRONT_MAX];
	bool delivered = false;
	smart_status status;

	smart_assert(front_count <= SMART_WINDOW_FRONT_MAX);
	if (front_count > 0)
		memcpy(batch, front, (size_t) front_count * sizeof(*front));
	put_reads(window, waiting, count, batch + front_count);
	if (front_count > 0 || count != 1)
		return fabric_execute(tree->fabric, batch, front_count + (int) count);
	/* A leaf by itself: others may be after it, too; who READs it keeps it. */
	status = smart_leaf_read_together(tree, batch[0].remote, batch[0].local, batch[0].length, &delivered);
	if (delivered)
		window->blocks[waiting[0]].ticket = 0;
	return status;
}

smart_status
smart_window_read(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front,
				  int front_count, const smart_slot *slots, unsigned int count)
{
	uint8_t waiting[SMART_WINDOW_MAX];
	smart_status status;

	smart_assert(!tree->direct && count <= SMART_WINDOW_MAX);
	window->count = 0;
	for (unsigned int i = 0; i < count; i++)
	{
		if (make_copy(tree, window, i, slots[i]) == NULL)
			return SMART_NO_MEMORY;
		waiting[i] = (uint8_t) i;
	}
	status = read_blocks(tree, window, front, front_count, waiting, count);
	if (status == SMART_OK)
		window->count = count;
	return status;
}

/* Takes the copies that there are of leaves (A5) into the window; the numbers of the others are waiting[0..*waits). */
static smart_status
take_copies(struct smart_tree *tree, struct smart_window *window, const smart_slot *slots, unsigned int count,
			uint8_t *waiting, unsigned int *waits)
{
	bool asks = smart_leaf_copy_asks(tree);

	smart_assert(!tree->direct && count <= SMART_WINDOW_MAX);
	window->count = 0;
	*waits = 0;
	for (unsigned int i = 0; i < count; i++)
	{
		uint8_t *copy = make_copy(tree, window, i, slots[i]);

		if (copy == NULL)
			return SMART_NO_MEMORY;
		/* The tickets are from before the READs. */
		if (!asks || !smart_leaf_copy_take(tree, slots[i], copy, &window->blocks[i].ticket))
			waiting[(*waits)++] = (uint8_t) i;
	}
	return SMART_OK;
}

smart_status
smart_window_fill(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front,
				  int front_count, const smart_slot *slots, unsigned int count, bool *posted)
{
	uint8_t waiting[SMART_WINDOW_MAX];
	unsigned int waits;
	smart_status status = take_copies(tree, window, slots, count, waiting, &waits);

	*posted = status == SMART_OK && waits > 0;
	if (*posted)
		status = read_blocks(tree, window, front, front_count, waiting, waits);
	if (status == SMART_OK)
		window->count = count;
	return status;
}

/* The requests in front, whose bytes stay the flight's until it has landed. */
static smart_status
put_front(struct smart_tree *tree, struct smart_window_flight *flight, const struct fabric_request *front, int count)
{
	uint32_t bytes = 0;

	smart_assert(count <= SMART_WINDOW_FRONT_MAX);
	for (int i = 0; i < count; i++)
		bytes += front[i].length;
	if (flight->room < bytes)
	{
		smart_release(tree->env, flight->bytes);
		flight->bytes = tree->env->allocate(tree->env, bytes);
		flight->room = flight->bytes != NULL ? bytes : 0;
		if (flight->bytes == NULL)
			return SMART_NO_MEMORY;
	}
	bytes = 0;
	for (int i = 0; i < count; i++)
	{
		flight->reads[i] = front[i];
		flight->reads[i].local = flight->bytes + bytes;
		flight->front[i] = front[i].local;
		bytes += front[i].length;
	}
	flight->front_count = count;
	return SMART_OK;
}

smart_status
smart_window_depart(struct smart_tree *tree, struct smart_window_flight *flight, const struct fabric_request *front,
					int front_count, const smart_slot *slots, unsigned int count)
{
	uint8_t waiting[SMART_WINDOW_MAX];
	unsigned int waits;
	smart_status status;

	/* One that nobody has waited for. */
	if (flight->flight.under_way)
		fabric_land(tree->fabric);
	status = take_copies(tree, &flight->window, slots, count, waiting, &waits);
	if (status == SMART_OK)
		status = put_front(tree, flight, front, front_count);
	flight->flight = (struct fabric_flight){.reads = flight->reads, .count = front_count + (int) waits};
	flight->moment = tree->moment;
	if (status == SMART_OK && flight->flight.count > 0)
	{
		put_reads(&flight->window, waiting, waits, flight->reads + front_count);
		status = fabric_depart(tree->fabric, &flight->flight);
	}
	if (status == SMART_OK)
		flight->window.count = count;
	return status;
}

bool
smart_window_take_front(const struct smart_tree *tree, struct smart_window_flight *flight)
{
	smart_assert(!flight->flight.under_way);
	if (flight->flight.status != SMART_OK || flight->moment == 0 || flight->moment != tree->moment)
		return false;
	for (int i = 0; i < flight->front_count; i++)
		memcpy(flight->front[i], flight->reads[i].local, flight->reads[i].length);
	return true;
}

void
smart_window_flight_done(struct smart_tree *tree, struct smart_window_flight *flight)
{
	if (flight->flight.under_way)
		fabric_land(tree->fabric);
	smart_release(tree->env, flight->bytes);
	smart_window_done(&flight->window, tree->env);
}

smart_status
smart_window_put(struct smart_tree *tree, struct smart_window *window, smart_slot link, const uint8_t *bytes)
{
	window->count = 0;
	if (make_copy(tree, window, 0, link) == NULL)
		return SMART_NO_MEMORY;
	memcpy(window->blocks[0].copy, bytes, smart_class_bytes(smart_slot_class(link)));
	window->count = 1;
	return SMART_OK;
}

/* Which block link leads to; window->count: none. */
static uint32_t
find_block(struct smart_window *window, smart_slot link)
{
	smart_assert(link != 0 && window->count <= SMART_WINDOW_MAX);
	for (uint32_t tried = 0, i = window->served; tried < window->count; tried++, i++)
	{
		i = i < window->count ? i : 0;
		if (window->blocks[i].link != link)
			continue;
		window->served = i;
		return i;
	}
	return window->count;
}

uint8_t *
smart_window_take(struct smart_window *window, smart_slot link, uint64_t *ticket)
{
	uint32_t i = find_block(window, link);

	if (i == window->count)
		return NULL;
	window->blocks[i].link = 0;
	if (ticket != NULL)
		*ticket = window->blocks[i].ticket;
	return window->blocks[i].copy;
}

const uint8_t *
smart_window_look(struct smart_window *window, smart_slot link)
{
	uint32_t i = find_block(window, link);

	return i == window->count ? NULL : window->blocks[i].copy;
}

void
smart_window_done(struct smart_window *window, struct smart_env *env)
{
	for (int i = 0; i < SMART_WINDOW_MAX; i++)
		smart_release(env, window->blocks[i].copy);
}

/* ---- the leaves of many keys ---- */

_Static_assert(SMART_POINTS_MAX <= SMART_WINDOW_MAX, "a window holds the leaves of all points");

/* Nodes of the descent before, one a level, which keys in order have in common: nobody looks for them in the cache again. */
#define LEVELS_MAX 8

struct recalled
{
	bool usable;
	struct smart_node node; /* link 0: none */
};

struct points
{
	struct smart_tree *tree;
	const struct smart_key *keys;
	unsigned int count;
	unsigned int arriving;                       /* nodes that are being READ, each for one key or more */
	struct smart_place places[SMART_POINTS_MAX]; /* of the keys; UNKNOWN: this one comes to no leaf */
	struct smart_above above[SMART_POINTS_MAX];
	unsigned int waits_for[SMART_POINTS_MAX]; /* the node that the key's descent goes through next */
	struct smart_node nodes[SMART_POINTS_MAX];
	struct recalled recalled[LEVELS_MAX];
	struct fabric_request batch[2 * SMART_POINTS_MAX];
};

static void
pass(struct points *points, unsigned int point, struct smart_node *node)
{
	smart_assert(point < points->count);
	points->above[point] = (struct smart_above){.link = node->link, .arrived = node->arrived};
	smart_node_step(node, &points->keys[point], &points->places[point], true);
}

/* What the cache has of the node that the descent comes to at a level; NULL: it has not. */
static struct recalled *
recall(struct points *points, unsigned int level, const struct smart_place *place)
{
	struct recalled *recalled = &points->recalled[level < LEVELS_MAX ? level : LEVELS_MAX - 1];
	bool same = recalled->node.link == place->slot && recalled->node.arrived == place->consumed;

	smart_assert(place->kind == SMART_PLACE_NODE);
	if (!same && !smart_node_recall(points->tree, place->slot, place->consumed, &recalled->node, &recalled->usable))
	{
		recalled->node.link = 0;
		return NULL;
	}
	return recalled;
}

/* Takes the key's descent as far as the cache leads; it then waits for the READ of the next node, if there is one. */
static void
go_down(struct points *points, unsigned int point)
{
	struct smart_place *place = &points->places[point];
	unsigned int i = 0;

	for (unsigned int level = 0; place->kind == SMART_PLACE_NODE; level++)
	{
		struct recalled *recalled = recall(points, level, place);

		if (recalled == NULL)
			break;
		if (recalled->usable)
			pass(points, point, &recalled->node);
		else
			place->kind = SMART_PLACE_UNKNOWN;
	}
	if (place->kind != SMART_PLACE_NODE)
		return;
	while (i < points->arriving && points->nodes[i].link != place->slot)
		i++;
	points->waits_for[point] = i;
	smart_assert(i < points->count);
	if (i < points->arriving)
		return;
	if (smart_node_prepare_again(points->tree, place->slot, place->consumed, &points->nodes[i],
								 &points->batch[2 * (size_t) i]))
		points->arriving++;
	else
		place->kind = SMART_PLACE_UNKNOWN;
}

/* All descents, from the root to their ends: a batch for each level that the cache does not have. */
static smart_status
descend_all(struct points *points)
{
	struct smart_tree *tree = points->tree;
	struct smart_services *services = tree->services;
	smart_status status = SMART_OK;
	smart_slot root;
	uint64_t moment;

	if (services->cache_find == NULL || !services->cache_find(services, tree->options.id, 0, &root, &moment))
	{
		status = smart_word_read(tree, tree->options.root, &root);
		if (status != SMART_OK)
			return status;
		smart_keep_node(tree, 0, &root);
	}
	for (unsigned int point = 0; point < points->count; point++)
	{
		points->places[point] = (struct smart_place){.kind = smart_place_kind_of(root, 0, true), .slot = root};
		points->above[point].link = 0;
	}
	for (;;)
	{
		points->arriving = 0;
		for (unsigned int point = 0; point < points->count; point++)
			go_down(points, point);
		smart_assert(points->arriving <= points->count);
		if (points->arriving > 0)
			status = fabric_execute(tree->fabric, points->batch, 2 * (int) points->arriving);
		if (status != SMART_OK || points->arriving == 0)
			return status;
		for (unsigned int point = 0; point < points->count; point++)
		{
			struct smart_place *place = &points->places[point];
			struct smart_node *node;

			if (place->kind != SMART_PLACE_NODE)
				continue;
			smart_assert(points->waits_for[point] < points->arriving);
			node = &points->nodes[points->waits_for[point]];
			place->kind = SMART_PLACE_UNKNOWN;
			if (!smart_node_finish_again(tree, node, &points->keys[point]))
				continue;
			smart_keep_read_node(tree, node, true);
			pass(points, point, node);
		}
	}
}

smart_status
smart_points_find(struct smart_tree *tree, const struct smart_key *keys, unsigned int count, struct smart_place *places,
				  struct smart_above *above)
{
	struct points *points = tree->env->allocate(tree->env, sizeof(*points));
	smart_status status;

	smart_assert(!tree->direct && tree->entered && count <= SMART_POINTS_MAX);
	if (points == NULL)
		return SMART_NO_MEMORY;
	points->tree = tree;
	points->keys = keys;
	points->count = count;
	for (unsigned int level = 0; level < LEVELS_MAX; level++)
		points->recalled[level].node.link = 0;
	status = descend_all(points);
	if (status == SMART_OK)
		memcpy(places, points->places, count * sizeof(*places));
	if (status == SMART_OK && above != NULL)
		memcpy(above, points->above, count * sizeof(*above));
	/* The nodes on the way go with this call. */
	for (unsigned int point = 0; point < count && status == SMART_OK; point++)
		places[point].node = places[point].child = NULL;
	tree->env->release(tree->env, points);
	return status;
}

smart_status
smart_points_read(struct smart_tree *tree, const struct smart_key *keys, unsigned int count,
				  struct smart_window *window)
{
	struct smart_place places[SMART_POINTS_MAX];
	smart_slot slots[SMART_POINTS_MAX];
	unsigned int leaves = 0;
	bool posted;
	smart_status status;

	window->count = 0;
	status = smart_points_find(tree, keys, count, places, NULL);
	/* Each leaf once, whatever number of keys lie in it. */
	for (unsigned int point = 0; point < count && status == SMART_OK; point++)
	{
		smart_slot slot = places[point].slot;
		unsigned int i = 0;

		if (places[point].kind != SMART_PLACE_LEAF)
			continue;
		while (i < leaves && slots[i] != slot)
			i++;
		slots[i] = slot;
		leaves = i == leaves ? leaves + 1 : leaves;
	}
	return status == SMART_OK && leaves > 0 ? smart_window_fill(tree, window, NULL, 0, slots, leaves, &posted) : status;
}
