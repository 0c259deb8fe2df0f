/*
 * readahead.c
 *	  Remote providers: the leaves that a cursor comes to, read ahead.
 *
 * The leaves that follow are READ in the same batch, in a window of 4, 8, 16 ..
 * 256, or of 3, 5, 8 .. 256 if the walk may end anywhere: those of the same node, and
 * of the nodes that are known behind it.  The walk keeps copies of nodes, so that
 * it descends again only when the cursor has left them.
 *
 * A window ends before a node that is not known.  The same batch READs that node, and
 * those behind it that the next windows will need, as far as slots show them
 * (nodes_ahead.c).  So a first scan, which finds nothing in the cache, takes about as many
 * round trips as a later one, plus one for each level of nodes.
 *
 * While the walk is busy with a window, the batch of the next one is under way.  So a long
 * walk waits only for what the network cannot bring in time.  What that batch brings of nodes is
 * taken when it is needed, by an operation in which it proves something (settle).
 *
 * Why copies of a while ago may be used: the walk has to return what is in the
 * tree from its start to its end.  A leaf that was live when it was READ, with
 * the right checksum and range, was the truth at that moment (I1), however it
 * was found.  And a slot that is not frozen in a live node was part of the tree
 * when it was READ (I2): if that was after the walk began, an empty range that
 * it stands for held no entry that the walk owes.  So a node with an empty range
 * ahead is READ again with the leaves, at no cost in round trips.  All
 * other evidence is strict.
 */
#include "tree/block/copies.h"
#include "tree/block/cursor.h"
#include "tree/find/find.h"
#include "tree/read/outlook.h"
#include "tree/read/readahead.h"
#include "tree/structure/strict.h"

#define BOUNDED_FIRST   4 /* leaves of the first window: no more than the walk needs */
#define UNBOUNDED_FIRST 3
#define FLIGHT_FIRST    16 /* leaves of the first window that is READ while the walk is busy with the one before */
#define FAR_NS          UINT64_C(300000) /* windows grow faster if one is waited for for longer */

_Static_assert(SMART_AHEAD_REQUESTS <= SMART_WINDOW_FRONT_MAX, "nodes go in front of a window");

struct smart_readahead
{
	struct smart_tree *tree;
	uint32_t first; /* leaves of the first window that are still to be READ */
	uint32_t most;  /* that the last window might have */
	bool far;       /* the walk has waited for it for long */
	bool strict;    /* the next leaf is looked for strictly */
	bool begun;     /* a window has been READ */
	bool in_gap;    /* it has come to keys that are not there */
	struct smart_window window;
	struct smart_window_flight *next; /* the window behind it; NULL: there has been none */
	bool expected;                    /* it is under way, or has landed, and the walk will come to it, */
	bool unsettled;                   /* and what it brings of nodes has not been taken */
	struct smart_window points;       /* leaves of points that were said to come */
	uint32_t served;                  /* which of them served last: the next one is near */
	bool goes_on;                     /* more is known to lie behind the last window */
	bool beyond;                      /* it has come behind its first window */
	struct smart_route route;
	struct smart_outlook outlook;
};

smart_status
smart_readahead_open(struct smart_tree *tree, struct smart_readahead **result)
{
	struct smart_readahead *walk = tree->env->allocate(tree->env, sizeof(*walk));

	if (walk == NULL)
		return SMART_NO_MEMORY;
	memset(walk, 0, sizeof(*walk));
	walk->tree = walk->route.tree = tree;
	if (smart_outlook_init(&walk->outlook, &walk->route) != SMART_OK)
	{
		smart_readahead_close(walk);
		return SMART_NO_MEMORY;
	}
	*result = walk;
	return SMART_OK;
}

void
smart_readahead_close(struct smart_readahead *walk)
{
	struct smart_env *env = walk->tree->env;

	if (walk->next != NULL)
		smart_window_flight_done(walk->tree, walk->next);
	smart_release(env, walk->next);
	smart_window_done(&walk->window, env);
	smart_window_done(&walk->points, env);
	smart_outlook_done(&walk->outlook, env);
	smart_route_done(&walk->route);
	env->release(env, walk);
}

smart_status
smart_readahead_points(struct smart_readahead *walk, const struct smart_key *keys, unsigned int count)
{
	smart_assert(walk->tree->entered && count <= SMART_POINTS_MAX);
	walk->served = 0;
	return smart_points_read(walk->tree, keys, count, &walk->points);
}

/*
 * Leaves of the next window.  A walk that may end anywhere grows less fast: fewer leaves are READ in vain when it is given up.
 * Where a round trip takes long, a few more leaves cost less than another one.
 */
static uint32_t
grown(const struct smart_readahead *walk)
{
	uint32_t next = walk->far                     ? 4 * walk->most
					: walk->outlook.to_length > 0 ? 2 * walk->most
												  : (5 * walk->most + 1) / 3;

	smart_assert(walk->most > 0 && next >= walk->most);
	return next < SMART_WINDOW_MAX ? next : SMART_WINDOW_MAX;
}

void
smart_readahead_start(struct smart_readahead *walk, const uint8_t *to, uint32_t to_length, bool keep_points)
{
	smart_assert(!walk->tree->direct && walk->points.count <= SMART_WINDOW_MAX);
	if (!keep_points)
		walk->points.count = 0;
	walk->first = to_length > 0 ? BOUNDED_FIRST : UNBOUNDED_FIRST;
	if (walk->tree->options.first_window > 0)
		walk->first = walk->tree->options.first_window;
	walk->most = walk->first;
	walk->strict = false;
	walk->window.count = 0;
	walk->begun = walk->in_gap = walk->goes_on = walk->beyond = walk->far = false;
	/* What is under way comes to nothing. */
	walk->expected = walk->expected && SMART_FAULT(oldflight);
	walk->unsettled = false;
	smart_route_start(&walk->route);
	smart_outlook_start(&walk->outlook, to, to_length);
}

void
smart_readahead_forget(struct smart_readahead *walk)
{
	walk->window.count = 0;
	walk->points.count = 0;
	walk->expected = walk->expected && SMART_FAULT(oldflight);
	walk->unsettled = false;
}

void
smart_readahead_changed(struct smart_readahead *walk)
{
	walk->strict = true;
}

/*
 * For how many leaves a walk looks ahead that READs so many: for no more within its first window, so that one which
 * ends there READs no node in vain.  Else for as many again; and once more in a long one, since a node may lead to nodes.
 */
static unsigned int
reach(const struct smart_readahead *walk, unsigned int leaves)
{
	smart_assert(leaves > 0 && leaves <= SMART_WINDOW_MAX);
	return walk->first > 0 ? leaves : leaves == SMART_WINDOW_MAX ? 3 * leaves : 2 * leaves;
}

/* The leaf of place and those behind it. */
static smart_status
look_ahead(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_place *place,
		   struct smart_look *look)
{
	smart_status status;

	*look = (struct smart_look){.most = walk->first > 0 ? walk->first : grown(walk)};
	look->reach = reach(walk, look->most);
	if (!walk->begun && place->node != NULL)
		smart_outlook_begin(&walk->outlook, place->node);
	smart_outlook_window(&walk->outlook);
	status = smart_outlook_from_leaf(&walk->outlook, cursor, place, look);
	smart_assert(look->count <= look->most);
	walk->begun = true;
	walk->goes_on = look->full;
	walk->beyond = walk->first == 0;
	if (walk->first > 0)
		walk->first -= look->count;
	else
		walk->most = look->most;
	return status;
}

/* ---- the window behind ---- */

static uint64_t
now_ns(const struct smart_readahead *walk)
{
	return walk->tree->env->now_ns(walk->tree->env);
}

static void
await_flight(struct smart_readahead *walk)
{
	uint64_t since_ns;

	smart_assert(walk->next != NULL);
	if (!walk->next->flight.under_way)
		return;
	since_ns = now_ns(walk);
	fabric_land(walk->tree->fabric);
	walk->far = now_ns(walk) - since_ns > FAR_NS;
}

/* Takes what the flight brings of nodes, before anything is READ, or looked for, that it may show. */
static void
settle(struct smart_readahead *walk)
{
	if (!walk->unsettled)
		return;
	walk->unsettled = false;
	await_flight(walk);
	smart_route_finish(&walk->route, smart_window_take_front(walk->tree, walk->next));
}

/* READs the nodes that are wanted.  What a flight brings of others has been taken: the route does not tell them apart. */
static smart_status
read_nodes(struct smart_readahead *walk)
{
	smart_assert(!walk->unsettled);
	return smart_route_read(&walk->route);
}

/* Where the next window goes; false: no memory. */
static bool
open_next(struct smart_readahead *walk)
{
	if (walk->next != NULL)
		return true;
	walk->next = walk->tree->env->allocate(walk->tree->env, sizeof(*walk->next));
	if (walk->next != NULL)
		memset(walk->next, 0, sizeof(*walk->next));
	return walk->next != NULL;
}

/*
 * The walk has come to a window: begins the READs of the next one, if known nodes lead to its leaves.  If that fails
 * they are READ when their turn comes, and what is the matter shows then.  Not within the first window: a walk that
 * needs a few entries would leave READs that the next request has to wait for.
 */
static void
depart(struct smart_readahead *walk)
{
	struct smart_tree *tree = walk->tree;
	struct fabric_request front[SMART_AHEAD_REQUESTS];
	struct smart_look look = {.most = grown(walk)};
	uint32_t first = tree->options.first_window > 0 ? tree->options.first_window : FLIGHT_FIRST;

	/* The one that is expected may be of use although a hint before it has misled. */
	if (walk->expected || tree->fabric->provider->depart == NULL || !walk->goes_on || !walk->beyond ||
		look.most < first || !open_next(walk))
		return;
	walk->goes_on = false;
	smart_outlook_window(&walk->outlook);
	look.reach = reach(walk, look.most);
	if (smart_outlook_behind(&walk->outlook, &look) != SMART_OK || look.count == 0 ||
		smart_window_depart(tree, walk->next, front, smart_route_prepare(&walk->route, front), look.slots,
							look.count) != SMART_OK)
		return;
	walk->expected = walk->unsettled = true;
	walk->goes_on = look.full;
	walk->most = look.most;
}

/* The walk has come to the end of its window: the next one takes its place, if it can. */
static void
land(struct smart_readahead *walk)
{
	struct smart_window window = walk->window;

	smart_assert(walk->expected);
	settle(walk);
	await_flight(walk);
	walk->expected = false;
	if (walk->next->flight.status != SMART_OK)
		return;
	walk->window = walk->next->window;
	walk->next->window = window;
	depart(walk);
}

/* ---- the walk's steps ---- */

/*
 * Where the known nodes lead, and others that are READ for that, a batch for each level, and in each those that follow
 * it, too.  Another kind than LEAF and EMPTY: a search has to find out.
 */
static smart_status
find_way(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_key *key,
		 struct smart_place *place)
{
	smart_slot last = 0;

	for (;;)
	{
		smart_status status;
		struct smart_look look = {.full = true, .reach = reach(walk, walk->first > 0 ? walk->first : grown(walk))};

		smart_route_descend(&walk->route, key, place);
		if (place->kind != SMART_PLACE_NODE || place->slot == last)
			return SMART_OK;
		last = place->slot;
		smart_outlook_missed(&walk->outlook);
		status = smart_outlook_from(&walk->outlook, cursor, &look);
		if (status == SMART_OK)
			status = read_nodes(walk);
		if (status != SMART_OK)
			return status;
	}
}

/* What shows that no key lies in front of the next leaves comes with the next batch, too, as far as copies tell. */
static smart_status
look_between(struct smart_readahead *walk, const struct smart_cursor *cursor)
{
	struct smart_look look = {.most = SMART_WINDOW_MAX};

	return smart_outlook_from(&walk->outlook, cursor, &look);
}

/* No key lies between the cursor and the keys below a node, as far as copies tell: do nodes show it that were READ together? */
static smart_status
prove_mismatch(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_key *key,
			   struct smart_place *place)
{
	smart_status status = SMART_OK;

	smart_assert(place->kind == SMART_PLACE_MISMATCH);
	if (smart_route_shows_mismatch(&walk->route, key, place))
		return SMART_OK;
	/* There is a chain of such nodes above keys that share many bytes. */
	if (smart_route_want_mismatch(&walk->route, key, place))
		status = look_between(walk, cursor);
	if (status == SMART_OK)
		status = read_nodes(walk);
	if (status == SMART_OK)
		smart_route_descend(&walk->route, key, place);
	if (place->kind != SMART_PLACE_MISMATCH || !smart_route_shows_mismatch(&walk->route, key, place))
		place->kind = SMART_PLACE_UNKNOWN;
	return status;
}

/* The same by a search, which a memory node may make. */
static smart_status
search(struct smart_readahead *walk, const struct smart_key *key, struct smart_place *place)
{
	smart_status status;
	bool fresh;

	*place = (struct smart_place){.kind = SMART_PLACE_UNKNOWN};
	status = smart_find_whole(walk->tree, key, place);
	if (status != SMART_OK || place->node == NULL || !smart_slot_is_range(place->slot))
		return status;
	/* What a memory node brought on the way was READ within this walk. */
	fresh = smart_offload_shows(walk->tree, key, place->node);
	place->node = smart_route_keep(&walk->route, place->node, fresh);
	return place->kind == SMART_PLACE_LEAF ? smart_offload_window(walk->tree, place->slot, &walk->window) : SMART_OK;
}

/*
 * Where the kept nodes lead, or the cache: a leaf, or an empty range that its node
 * proves.  UNKNOWN: none of them can tell.
 */
static smart_status
find_place(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_key *key,
		   struct smart_place *place)
{
	/* What the walk comes to first may be all. */
	bool goes_by_cache = walk->begun || walk->in_gap;
	smart_status status = SMART_OK;

	if (smart_route_find(&walk->route, key, place))
		return SMART_OK;
	place->kind = SMART_PLACE_UNKNOWN;
	place->node = NULL;
	if (goes_by_cache)
		smart_route_descend(&walk->route, key, place);
	/* What is under way is waited for unless this leads to a leaf: it may show what is here. */
	if (walk->unsettled && place->kind != SMART_PLACE_LEAF)
	{
		settle(walk);
		if (smart_route_find(&walk->route, key, place))
			return SMART_OK;
	}
	if (goes_by_cache && place->kind != SMART_PLACE_LEAF)
		status = find_way(walk, cursor, key, place);
	if (status == SMART_OK && place->kind == SMART_PLACE_MISMATCH)
		return prove_mismatch(walk, cursor, key, place);
	if (status != SMART_OK ||
		(smart_route_is_ahead(&walk->route, place->node) && smart_route_find(&walk->route, key, place)))
		return status;
	if (place->node != NULL && (place->kind == SMART_PLACE_LEAF || place->kind == SMART_PLACE_EMPTY))
		place->node = smart_route_keep(&walk->route, place->node, false);
	else
	{
		settle(walk);
		status = search(walk, key, place);
	}
	if (status != SMART_OK || place->kind == SMART_PLACE_LEAF || place->node == NULL ||
		!smart_slot_is_range(place->slot))
		return status;
	smart_route_want(&walk->route, key, place->node);
	status = read_nodes(walk);
	if (status == SMART_OK && !smart_route_find(&walk->route, key, place))
		place->kind = SMART_PLACE_UNKNOWN;
	return status;
}

static bool
is_missed(struct smart_readahead *walk, const struct smart_place *place, smart_status status)
{
	return status == SMART_OK && place->kind == SMART_PLACE_LEAF &&
		   smart_window_look(&walk->window, place->slot) == NULL;
}

/*
 * The same, and if the window does not have the leaf the next one takes its place.  What that brings of nodes changes those that place
 * has come from.
 */
static smart_status
find_next(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_key *key,
		  struct smart_place *place)
{
	smart_status status = find_place(walk, cursor, key, place);

	if (is_missed(walk, place, status) && walk->expected)
	{
		land(walk);
		status = find_place(walk, cursor, key, place);
	}
	if (is_missed(walk, place, status) && walk->unsettled)
	{
		settle(walk);
		status = find_place(walk, cursor, key, place);
	}
	return status;
}

/* A window that begins with the leaf of place, in one batch with nodes that have empty ranges on the way. */
static smart_status
read_window(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_place *place)
{
	struct fabric_request batch[SMART_AHEAD_REQUESTS] = {{.verb = FABRIC_READ}};
	struct smart_look look;
	uint64_t since_ns;
	bool posted = true;
	smart_status status;

	smart_assert(!walk->unsettled);
	status = look_ahead(walk, cursor, place, &look);
	since_ns = now_ns(walk);
	if (status == SMART_OK)
		status = smart_window_fill(walk->tree, &walk->window, batch, smart_route_prepare(&walk->route, batch),
								   look.slots, look.count, &posted);
	/* Nodes wait for a batch that there has to be. */
	if (posted)
		smart_route_finish(&walk->route, status == SMART_OK);
	if (status != SMART_OK)
		return status;
	walk->far = now_ns(walk) - since_ns > FAR_NS;
	depart(walk);
	return SMART_OK;
}

/* The leaf of a place that is not strict: from the window, or with a new one. */
static smart_status
read_leaf(struct smart_readahead *walk, const struct smart_cursor *cursor, const struct smart_key *key,
		  const struct smart_place *place, struct smart_leaf *leaf, bool *answers)
{
	uint64_t ticket = 0;
	uint8_t *copy = smart_window_take(&walk->window, place->slot, &ticket);

	smart_assert(place->kind == SMART_PLACE_LEAF && !smart_slot_frozen(place->slot));
	if (copy == NULL)
	{
		smart_status status = read_window(walk, cursor, place);

		if (status != SMART_OK)
			return status;
		copy = smart_window_take(&walk->window, place->slot, &ticket);
		smart_assert(copy != NULL);
	}
	*answers = smart_leaf_from_copy(walk->tree, place->slot, copy, key, leaf) && leaf->state == SMART_LIVE &&
			   leaf->depth == place->depth && smart_leaf_covers(leaf, key);
	if (*answers)
		smart_leaf_copy_read(walk->tree, leaf, ticket);
	return SMART_OK;
}

/* Is the key's leaf among those of the points?  Several keys may have the same one. */
static bool
serve_from_points(struct smart_readahead *walk, const struct smart_key *key, struct smart_place *place,
				  struct smart_leaf *leaf)
{
	smart_assert(walk->points.count <= SMART_WINDOW_MAX);
	for (uint32_t tried = 0; tried < walk->points.count; tried++)
	{
		uint32_t i = (walk->served + tried) % walk->points.count;
		smart_slot link = walk->points.blocks[i].link;

		if (!smart_leaf_from_copy(walk->tree, link, walk->points.blocks[i].copy, key, leaf) ||
			leaf->state != SMART_LIVE || !smart_leaf_covers(leaf, key))
			continue;
		walk->served = i;
		*place = (struct smart_place){.kind = SMART_PLACE_LEAF,
									  .slot = link,
									  .depth = leaf->depth,
									  .consumed = leaf->depth + 1};
		return true;
	}
	return false;
}

smart_status
smart_readahead_find(struct smart_readahead *walk, const struct smart_cursor *cursor, struct smart_place *place,
					 struct smart_leaf *leaf, unsigned int *limit)
{
	struct smart_tree *tree = walk->tree;
	struct smart_key key = smart_cursor_key(cursor);
	smart_status status = SMART_OK;
	bool answers;

	smart_assert(!tree->direct && tree->entered);
	if (serve_from_points(walk, &key, place, leaf))
	{
		*limit = leaf->hi;
		return SMART_OK;
	}
	place->kind = SMART_PLACE_UNKNOWN;
	if (!walk->strict)
		status = find_next(walk, cursor, &key, place);
	if (status != SMART_OK)
		return status;
	if (place->kind == SMART_PLACE_LEAF)
	{
		status = read_leaf(walk, cursor, &key, place, leaf, &answers);
		if (status != SMART_OK)
			return status;
		*limit = leaf->hi;
		if (answers)
			return SMART_OK;
		smart_route_forget(&walk->route, place->node);
	}
	else if (place->kind == SMART_PLACE_EMPTY || place->kind == SMART_PLACE_MISMATCH)
	{
		smart_assert(place->node != NULL || SMART_FAULT(trustempty));
		walk->in_gap = true;
		return SMART_OK;
	}
	status = smart_confirm(tree, &key, place, leaf, limit);
	if (status == SMART_OK)
	{
		if (place->node != NULL)
			smart_route_keep(&walk->route, place->node, true);
		walk->strict = false;
		walk->in_gap = place->kind != SMART_PLACE_LEAF;
	}
	return status;
}
