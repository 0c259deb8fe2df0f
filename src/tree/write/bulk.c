/*
 * bulk.c
 *	  Bulk delete, removal of many, and weeding of one leaf.
 *
 * Progress: as insert.
 */
#include "tree/block/access.h"
#include "tree/block/cursor.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/read/readahead.h"
#include "tree/structure/standby.h"
#include "tree/structure/strict.h"
#include "tree/write/bulk_round.h"
#include "tree/write/sweep.h"

/* A bulk delete, the removal of many, or the weeding of one leaf. */
struct smart_bulk
{
	struct smart_tree *tree;
	const struct smart_victims *victims;
	bool dead_only; /* the cursor is a key that is to go, and entries that stay are not counted */
	struct smart_cursor cursor;
	struct smart_sweep *sweep;     /* NULL: the tree cannot be swept */
	struct smart_readahead *ahead; /* remote; NULL on a direct provider */
	struct smart_round *round;     /* leaves that are to lose entries with others; NULL: each loses them at once */
	struct smart_blocked_points *blocked; /* NULL: there are no cached results */
	uint8_t *entry;                       /* the whole bytes of the entry that is asked about */
	unsigned int depth;                   /* up to which entry holds the cursor's bytes */
	uint64_t visited;
	uint64_t removed;
};

/* smart_drop callback: asks the caller about the whole entry. */
static bool
is_dead(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	struct smart_bulk *bulk = argument;
	const struct smart_victims *victims = bulk->victims;
	size_t head = leaf->depth + leaf->prefix_length;

	/* Between two looks at one place its leaf may have gone deeper. */
	if (bulk->depth != leaf->depth)
	{
		struct smart_key key = smart_cursor_key(&bulk->cursor);

		for (unsigned int i = 0; i < leaf->depth; i++)
			bulk->entry[i] = (uint8_t) smart_key_byte(&key, i);
		bulk->depth = leaf->depth;
	}
	memcpy(bulk->entry + leaf->depth, smart_leaf_prefix(leaf), leaf->prefix_length);
	memcpy(bulk->entry + head, suffix, length);
	if (!victims->dead(victims->argument, bulk->entry, head + length))
		return false;
	/* The key of an entry that begins with it is the same. */
	return victims->last == NULL ||
		   smart_compare_bytes(bulk->entry, head + length < victims->last_length ? head + length : victims->last_length,
							   victims->last, victims->last_length) <= 0;
}

/*
 * The same in a rewrite: what is left out has no cached results until the rewrite has come about, or not.  Who is told of
 * what is removed is told ahead.
 */
static bool
leave_out(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	struct smart_bulk *bulk = argument;
	bool dead = is_dead(argument, leaf, suffix, length);

	if (dead && bulk->victims->found != NULL)
		bulk->victims->found(bulk->victims->argument, bulk->entry, leaf->depth + leaf->prefix_length + length);
	if (!dead || bulk->blocked == NULL)
		return dead;
	smart_assert(bulk->blocked->count < SMART_BLOCKED_MAX);
	bulk->blocked->points[bulk->blocked->count++] =
		smart_block(bulk->tree, bulk->entry, leaf->depth + leaf->prefix_length + length);
	return true;
}

/* Is an entry to be removed?  It is not if somebody only wants to be told of it. */
static bool
meet(struct smart_bulk *bulk, const struct smart_leaf *leaf, const struct smart_ref *ref)
{
	const struct smart_victims *victims = bulk->victims;
	bool dead = is_dead(bulk, leaf, ref->tail, ref->tail_length);

	if (!dead || !smart_victims_stay(victims))
		return dead;
	victims->found(victims->argument, bulk->entry, leaf->depth + leaf->prefix_length + ref->tail_length);
	return false;
}

/* The leaf of the key, which answers up to the byte limit, loses what is dead with the next round; false: that has no room. */
static bool
put_off(struct smart_bulk *bulk, const struct smart_key *key, unsigned int depth, unsigned int limit)
{
	smart_assert(depth < SMART_KEY_MAX && limit <= 255);
	for (unsigned int i = 0; i <= depth; i++)
		bulk->entry[i] = (uint8_t) smart_key_byte(key, i);
	return smart_round_add(bulk->round, bulk->entry, depth + 1, (int) limit);
}

/* The leaf that covers the cursor, or what there is instead; moves the cursor behind it.  Within an epoch. */
static smart_status
bulk_step(struct smart_bulk *bulk)
{
	struct smart_tree *tree = bulk->tree;
	struct smart_list *list = &tree->list;
	struct smart_cursor *cursor = &bulk->cursor;
	struct smart_key key = smart_cursor_key(cursor);
	struct smart_place place;
	struct smart_leaf leaf;
	struct smart_leaf_removal removal;
	const struct smart_drop *drop = &removal.drop;
	unsigned int limit;
	uint64_t dead = 0;
	smart_status status = bulk->ahead == NULL ? smart_confirm(tree, &key, &place, &leaf, &limit)
											  : smart_readahead_find(bulk->ahead, cursor, &place, &leaf, &limit);

	smart_assert(tree->entered && tree->locked == 0 && (bulk->blocked == NULL || bulk->blocked->count == 0));
	if (status != SMART_OK)
		return status;
	if (place.kind != SMART_PLACE_LEAF)
		return smart_cursor_skip(cursor, &place);
	/* Entries of bytes that the cursor has passed already were counted with another leaf. */
	bulk->depth = UINT_MAX;
	list->count = 0;
	status = smart_list_collect(tree, list, &leaf, smart_key_byte(&key, leaf.depth), limit);
	for (uint32_t i = 0; status == SMART_OK && i < list->count; i++)
		dead += meet(bulk, &leaf, &list->refs[i]);
	if (status != SMART_OK)
		return status;
	if (dead == 0)
	{
		bulk->visited += list->count;
		/* A leaf that another client has left so, for want of room perhaps: every reader has to look twice. */
		if (leaf.state == SMART_SEALED)
			status = smart_forward(tree, &key, leaf.address);
		return status == SMART_OK || smart_no_room(status) ? smart_cursor_pass(cursor, leaf.depth, limit) : status;
	}
	if (bulk->round != NULL && put_off(bulk, &key, leaf.depth, limit))
	{
		bulk->visited += list->count;
		return smart_cursor_pass(cursor, leaf.depth, limit);
	}
	removal = (struct smart_leaf_removal){.key = key,
										  .hint = tree->direct ? 0 : place.slot,
										  .drop = {.dead = leave_out, .argument = bulk},
										  .blocked = bulk->blocked};
	status = smart_remove_from_leaf(tree, &removal);
	/* Of an attempt that failed it is not known what it has removed. */
	if (status == SMART_OK)
	{
		bulk->removed += drop->count;
		bulk->visited += drop->count;
	}
	/*
	 * Behind the leaf that was rewritten without its dead entries, if the cursor was at its beginning, so that what
	 * stays is counted once.  Else the same place is visited again, until nothing dead is left in it.
	 */
	if (status == SMART_OK && drop->count > 0 && cursor->length <= drop->depth + 1 &&
		smart_key_byte(&key, drop->depth) == drop->lo)
	{
		bulk->visited += drop->kept;
		return smart_cursor_pass(cursor, drop->depth, drop->hi);
	}
	if (bulk->ahead != NULL)
		smart_readahead_changed(bulk->ahead);
	return status;
}

/*
 * Removes from the leaf that covers the cursor, which is one of the keys that are to go, all that are; moves the cursor
 * behind the leaf or, if the key is not there, behind the key.  Within an epoch.
 */
static smart_status
remove_step(struct smart_bulk *bulk)
{
	struct smart_cursor *cursor = &bulk->cursor;
	struct smart_leaf_removal removal = {.key = smart_cursor_key(cursor),
										 .drop = {.dead = leave_out, .argument = bulk},
										 .blocked = bulk->blocked,
										 .only_if_there = true};
	smart_status status;

	smart_assert(bulk->dead_only && cursor->length > 0);
	bulk->depth = UINT_MAX;
	status = smart_remove_from_leaf(bulk->tree, &removal);
	if (status != SMART_OK)
		return status;
	bulk->removed += removal.drop.count;
	if (removal.drop.count > 0)
		return smart_cursor_pass(cursor, removal.drop.depth, removal.drop.hi);
	cursor->length = (uint32_t) smart_successor(cursor->bytes, cursor->length);
	cursor->end = cursor->length == 0;
	return SMART_OK;
}

static void
bulk_end(struct smart_bulk *bulk)
{
	struct smart_env *env = bulk->tree->env;

	smart_assert(!bulk->tree->entered && bulk->tree->locked == 0);
	smart_standby_release(bulk->tree);
	if (bulk->ahead != NULL)
		smart_readahead_close(bulk->ahead);
	smart_release(env, bulk->round);
	smart_release(env, bulk->sweep);
	smart_release(env, bulk->entry);
	smart_release(env, bulk->blocked);
	smart_cursor_done(&bulk->cursor, env);
}

/* Makes what a bulk delete from the first entry on needs; bulk_end() is due if it succeeds. */
static smart_status
bulk_begin(struct smart_bulk *bulk, bool sweeps)
{
	struct smart_tree *tree = bulk->tree;
	struct smart_env *env = tree->env;
	smart_status status = smart_cursor_init(&bulk->cursor, env);

	smart_assert(!tree->entered && tree->locked == 0);
	if (status != SMART_OK)
		return status;
	bulk->entry = env->allocate(env, SMART_KEY_MAX + SMART_ENTRY_MAX);
	if (tree->results)
		bulk->blocked = env->allocate(env, sizeof(*bulk->blocked));
	if (sweeps)
		bulk->sweep = env->allocate(env, sizeof(*bulk->sweep));
	if (bulk->entry == NULL || (tree->results && bulk->blocked == NULL) || (sweeps && bulk->sweep == NULL))
	{
		bulk_end(bulk);
		return SMART_NO_MEMORY;
	}
	if (bulk->blocked != NULL)
		bulk->blocked->count = 0;
	if (sweeps)
		smart_sweep_begin(bulk->sweep, tree, bulk->victims, bulk->entry);
	return SMART_OK;
}

/* As a sweep, or, where that does not do, strictly. */
static smart_status
step(struct smart_bulk *bulk)
{
	struct smart_sweep *sweep = bulk->sweep;
	bool done = false;
	smart_status status = SMART_OK;

	smart_assert(bulk->tree->entered && bulk->tree->locked == 0);
	if (sweep != NULL)
		status = bulk->dead_only ? smart_sweep_remove(sweep, &bulk->cursor, &done)
								 : smart_sweep_step(sweep, &bulk->cursor, &done);
	if (status != SMART_OK)
		return status;
	if (!done && sweep != NULL)
		smart_sweep_lose(sweep);
	if (!done)
		return bulk->dead_only ? remove_step(bulk) : bulk_step(bulk);
	smart_assert(sweep->dead <= sweep->visited);
	bulk->visited += sweep->visited;
	if (!smart_victims_stay(bulk->victims))
		bulk->removed += sweep->dead;
	return SMART_OK;
}

/* One step as an operation of its own. */
static smart_status
bulk_once(struct smart_bulk *bulk)
{
	smart_status status;

	smart_enter(bulk->tree);
	status = smart_leave(bulk->tree, step(bulk));
	/* A1: no equality prefix stays blocked longer than its operation. */
	smart_assert(bulk->blocked == NULL || bulk->blocked->count == 0);
	return status;
}

/* Puts the cursor on a key. */
static void
go_to(struct smart_cursor *cursor, const uint8_t *bytes, size_t length)
{
	smart_assert(length > 0 && length <= SMART_KEY_MAX);
	memcpy(cursor->bytes, bytes, length);
	cursor->length = (uint32_t) length;
	cursor->end = false;
}

/* Rounds: the cursor goes to the next leaf. */
static void
begin_leaf(void *argument, const struct smart_key *key)
{
	struct smart_bulk *bulk = argument;

	go_to(&bulk->cursor, key->bytes, key->length);
	bulk->depth = UINT_MAX;
}

static smart_status
execute_round(struct smart_bulk *bulk, struct smart_round *round)
{
	struct smart_round_drop drop = {.begin = begin_leaf, .dead = leave_out, .argument = bulk, .blocked = bulk->blocked};
	smart_status status = smart_round_execute(round, &drop);

	bulk->removed += drop.removed;
	return status;
}

/* All that is dead from the key on, up to the byte limit in the place of its last one. */
static smart_status
remove_range(struct smart_bulk *bulk, const struct smart_key *key, unsigned int limit)
{
	uint8_t bound[SMART_KEY_MAX];
	size_t length;
	smart_status status = SMART_OK;

	smart_assert(key->length > 0 && limit <= 255);
	memcpy(bound, key->bytes, key->length);
	bound[key->length - 1] = (uint8_t) limit;
	length = smart_successor(bound, key->length);
	go_to(&bulk->cursor, key->bytes, key->length);
	while (status == SMART_OK && !smart_cursor_past(&bulk->cursor, bound, length))
		status = bulk_once(bulk);
	return status;
}

/* The leaves that were put off lose what is dead.  What they hold was counted before. */
static smart_status
remove_put_off(struct smart_bulk *bulk)
{
	struct smart_bulk rest = *bulk; /* walks by itself, and puts nothing off */
	smart_status status = smart_cursor_init(&rest.cursor, bulk->tree->env);

	smart_assert(bulk->round != NULL && !bulk->tree->entered);
	rest.ahead = NULL;
	rest.round = NULL;
	while (status == SMART_OK && !smart_round_is_empty(bulk->round))
	{
		struct smart_key key;
		int limit;

		status = execute_round(&rest, bulk->round);
		for (unsigned int i = 0; status == SMART_OK && smart_round_next_alone(bulk->round, &i, &key, &limit); i++)
			status = remove_range(&rest, &key, (unsigned int) limit);
		smart_round_keep_open(bulk->round);
	}
	bulk->removed = rest.removed;
	smart_cursor_done(&rest.cursor, bulk->tree->env);
	return status;
}

smart_status
smart_tree_bulk_delete(struct smart_tree *tree, const struct smart_victims *victims, smart_pause_fn pause_point,
					   uint64_t *visited, uint64_t *removed)
{
	struct smart_bulk bulk = {.tree = tree, .victims = victims};
	smart_status status = bulk_begin(&bulk, smart_tree_is_swept(tree));

	smart_assert(victims->last == NULL);
	if (status != SMART_OK)
		return status;
	if (!tree->direct)
		status = smart_readahead_open(tree, &bulk.ahead);
	if (status == SMART_OK && bulk.ahead != NULL)
		smart_readahead_start(bulk.ahead, NULL, 0, false);
	if (!smart_victims_stay(victims))
		bulk.round = smart_round_open(tree);
	while (status == SMART_OK && !bulk.cursor.end)
	{
		struct smart_key next = smart_cursor_key(&bulk.cursor);

		if (bulk.sweep != NULL)
			status = smart_sweep_tidy(bulk.sweep, &next);
		if (status == SMART_OK)
			status = bulk_once(&bulk);
		if (status == SMART_OK && bulk.round != NULL && (smart_round_is_full(bulk.round) || bulk.cursor.end))
			status = remove_put_off(&bulk);
		if (status == SMART_OK && pause_point != NULL && !pause_point(victims->argument))
			status = SMART_INTERRUPTED;
	}
	if (status == SMART_OK && bulk.sweep != NULL)
		status = smart_sweep_tidy(bulk.sweep, NULL);
	bulk_end(&bulk);
	if (status == SMART_OK)
	{
		*visited = bulk.visited;
		*removed = bulk.removed;
	}
	return status;
}

/* Key by key. */
static smart_status
remove_one_by_one(struct smart_bulk *bulk, smart_next_key_fn next)
{
	struct smart_cursor *cursor = &bulk->cursor;
	smart_status status = SMART_OK;
	const uint8_t *bytes;
	size_t length;

	smart_assert(bulk->dead_only && bulk->round == NULL);
	while (status == SMART_OK && !cursor->end &&
		   next(bulk->victims->argument, cursor->bytes, cursor->length, &bytes, &length))
	{
		struct smart_key key;

		if (bulk->sweep != NULL)
			smart_sweep_go(bulk->sweep, cursor, bytes, length);
		go_to(cursor, bytes, length);
		key = smart_cursor_key(cursor);
		if (bulk->sweep != NULL)
			status = smart_sweep_tidy(bulk->sweep, &key);
		if (status == SMART_OK)
			status = bulk_once(bulk);
	}
	return status == SMART_OK && bulk->sweep != NULL ? smart_sweep_tidy(bulk->sweep, NULL) : status;
}

/* What a round could not do. */
static smart_status
remove_alone(struct smart_bulk *bulk, const struct smart_round *round)
{
	struct smart_cursor *cursor = &bulk->cursor;
	unsigned int number = 0;
	struct smart_key key;
	int limit;
	smart_status status = SMART_OK;

	smart_assert(bulk->dead_only);
	cursor->length = 0;
	cursor->end = false;
	for (; status == SMART_OK && !cursor->end && smart_round_next_alone(round, &number, &key, &limit); number++)
	{
		/* Its leaf may have been seen to with another key. */
		if (smart_compare_bytes(key.bytes, key.length, cursor->bytes, cursor->length) < 0)
			continue;
		go_to(cursor, key.bytes, key.length);
		status = bulk_once(bulk);
	}
	return status;
}

/* Many leaves at a time. */
static smart_status
remove_in_rounds(struct smart_bulk *bulk, smart_next_key_fn next)
{
	struct smart_env *env = bulk->tree->env;
	struct smart_round *round = bulk->round;
	struct smart_cursor from; /* behind the keys that the rounds have had */
	const uint8_t *bytes;
	size_t length;
	smart_status status = smart_cursor_init(&from, env);

	smart_assert(bulk->dead_only && round != NULL);
	while (status == SMART_OK)
	{
		while (!from.end && next(bulk->victims->argument, from.bytes, from.length, &bytes, &length) &&
			   smart_round_add(round, bytes, length, -1))
		{
			go_to(&from, bytes, length);
			from.length = (uint32_t) smart_successor(from.bytes, from.length);
			from.end = from.length == 0;
		}
		if (smart_round_is_empty(round))
			break;
		status = execute_round(bulk, round);
		if (status == SMART_OK)
			status = remove_alone(bulk, round);
		smart_round_keep_open(round);
	}
	smart_cursor_done(&from, env);
	return status;
}

smart_status
smart_tree_remove_many(struct smart_tree *tree, const struct smart_victims *victims, smart_next_key_fn next,
					   uint64_t *removed)
{
	struct smart_bulk bulk = {.tree = tree, .victims = victims, .dead_only = true};
	smart_status status = bulk_begin(&bulk, smart_tree_is_swept(tree));

	smart_assert(!smart_victims_stay(victims));
	if (status != SMART_OK)
		return status;
	bulk.round = smart_round_open(tree);
	status = bulk.round == NULL ? remove_one_by_one(&bulk, next) : remove_in_rounds(&bulk, next);
	bulk_end(&bulk);
	*removed = bulk.removed;
	return status;
}

smart_status
smart_tree_weed(struct smart_tree *tree, const uint8_t *key, size_t key_length, smart_dead_fn dead, void *argument,
				uint64_t *removed)
{
	const struct smart_victims victims = {.dead = dead, .argument = argument};
	struct smart_bulk bulk = {.tree = tree, .victims = &victims};
	smart_status status;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	status = bulk_begin(&bulk, false);
	if (status != SMART_OK)
		return status;
	memcpy(bulk.cursor.bytes, key, key_length);
	bulk.cursor.length = (uint32_t) key_length;
	smart_enter(tree);
	status = smart_leave(tree, bulk_step(&bulk));
	bulk_end(&bulk);
	if (status == SMART_OK)
		*removed = bulk.removed;
	return status;
}
