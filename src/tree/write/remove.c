/*
 * remove.c
 *	  Remove, bulk delete, removal of many, and weeding of one leaf: a leaf is sealed and
 *	  replaced by a copy without the entry, or entries.
 *
 * The commit is the CAS of the leaf's slot, by this client itself: if another client
 * replaced the sealed leaf, the entries are still there.
 *
 * Progress: as insert.
 */
#include "tree/block/access.h"
#include "tree/block/cursor.h"
#include "tree/block/lock.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/read/readahead.h"
#include "tree/structure/change.h"
#include "tree/structure/standby.h"
#include "tree/structure/strict.h"
#include "tree/write/sweep.h"

/* Attempts to put a leaf back that lies in a standby. */
#define SETTLE_ATTEMPTS 8

/* Entries of one leaf, at most. */
#define BLOCKED_MAX SMART_LEAF_SIZE_MAX

/* The blocked equality prefixes of entries that a rewrite leaves out. */
struct blocked
{
	uint32_t count;
	struct smart_blocked points[BLOCKED_MAX];
};

/* A removal from the leaf that covers key. */
struct removal
{
	struct smart_key key;
	smart_slot hint; /* remote: leads to the leaf where it was seen a while ago; 0: not known */
	struct smart_drop drop;
	struct blocked *blocked; /* bulk delete, with cached results; else NULL */
	bool only_if_there;      /* one key: finished if it is absent */
	bool finished;
};

static void
unblock_all(struct smart_tree *tree, struct blocked *blocked)
{
	while (blocked != NULL && blocked->count > 0)
		smart_unblock(tree, &blocked->points[--blocked->count]);
}

/* Not if it is about one key, and that is not there. */
static bool
wants_rewrite(const struct removal *removal, const struct smart_leaf *leaf)
{
	return !removal->only_if_there || smart_leaf_contains(leaf, &removal->key);
}

/*
 * The leaf is locked and live, or was found strictly and is sealed.  Strict; install if pending; seal and replace.  Lost
 * with the same leaf still there (a frozen node's copy, say): once more.
 */
static smart_status
remove_locked(struct smart_tree *tree, struct removal *removal, struct smart_leaf_lock *lock, struct smart_leaf *leaf)
{
	struct smart_rewrite rewrite = {.drop = &removal->drop};
	unsigned int attempts = 0;
	struct smart_place place;
	smart_status status;

	smart_assert(tree->locked == leaf->address && smart_leaf_covers(leaf, &removal->key));
	smart_assert(leaf->state == SMART_LIVE || leaf->state == SMART_SEALED);
	for (;;)
	{
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = smart_find_strict(tree, &removal->key, &place);
		if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || smart_slot_address(place.slot) != leaf->address)
			return status;
		if (leaf->state == SMART_LIVE && smart_pending(&place, leaf))
			return smart_install(tree, &removal->key, &place, leaf);
		smart_assert(!smart_pending(&place, leaf));
		/* B5: a sealed leaf's content is the truth if its slot has stayed. */
		removal->finished = leaf->state == SMART_SEALED && !wants_rewrite(removal, leaf);
		if (removal->finished)
			return SMART_OK;
		rewrite.lock = leaf->state == SMART_LIVE ? lock : NULL;
		leaf->link = place.slot;
		unblock_all(tree, removal->blocked);
		status = smart_replace_leaf(tree, &removal->key, &place, leaf, &rewrite, &removal->finished);
		/* I3: sealed, so that nothing comes into the leaf any more, whichever client wins the slot. */
		smart_assert(status != SMART_OK || leaf->state == SMART_SEALED);
		if (status != SMART_OK || removal->finished)
			return status;
	}
}

/* The leaf covers the key, and its local lock is held.  If it is live, the other lock is taken first. */
static smart_status
remove_from_leaf(struct smart_tree *tree, struct removal *removal, struct smart_leaf_lock *lock,
				 struct smart_leaf *leaf)
{
	bool taken = true;
	smart_status unlocked;
	smart_status status = SMART_OK;

	removal->finished = leaf->state == SMART_LIVE && !wants_rewrite(removal, leaf);
	if (!removal->finished && leaf->state == SMART_LIVE)
		status = smart_leaf_take(tree, lock, leaf, &taken);
	if (status == SMART_OK && !removal->finished && taken)
		status = remove_locked(tree, removal, lock, leaf);
	unlocked = smart_leaf_unlock(tree, lock);
	smart_assert(tree->locked == 0);
	return status != SMART_OK ? status : unlocked;
}

/* One attempt.  A leaf that proves its place (I1) may have been found in any way; remove_locked() is strict. */
static smart_status
remove_once(struct smart_tree *tree, struct removal *removal)
{
	const struct smart_key *key = &removal->key;
	bool hinted = removal->hint != 0;
	struct smart_leaf_lock lock;
	struct smart_place place;
	struct smart_leaf leaf;
	smart_slot link = removal->hint;
	bool good;
	bool stuck;
	smart_status status = SMART_OK;

	smart_assert(tree->entered && tree->locked == 0 && !removal->finished);
	/* Where it was seen a while ago, once; then strictly. */
	removal->hint = 0;
	if (!hinted)
	{
		status = smart_find_strict(tree, key, &place);
		removal->finished = status == SMART_OK && place.kind != SMART_PLACE_LEAF;
		if (status != SMART_OK || removal->finished)
			return status;
		link = place.slot;
	}
	status = smart_lock_local(tree, link);
	if (status == SMART_OK)
		status = smart_leaf_read_locked(tree, link, key, &lock, &leaf, &good, &stuck);
	if (status != SMART_OK)
		return status;
	/* A sealed one that was seen a while ago may be another leaf by now. */
	if (stuck || !good || !smart_leaf_covers(&leaf, key) ||
		(leaf.state != SMART_LIVE && (leaf.state != SMART_SEALED || hinted)))
	{
		smart_unlock_local(tree);
		return hinted ? SMART_OK : smart_forward(tree, key, smart_slot_address(link));
	}
	return remove_from_leaf(tree, removal, &lock, &leaf);
}

/* Fault zero: joins an empty range with the empty one below it in place; its slot goes back to 0. */
static void
join_in_place(struct smart_tree *tree, const struct smart_key *key)
{
	struct smart_place place;
	smart_slot below;
	uint64_t seen;
	int index;

	if (smart_find_strict(tree, key, &place) != SMART_OK || place.kind != SMART_PLACE_EMPTY || place.node == NULL ||
		smart_slot_pk(place.slot) == 0)
		return;
	index = smart_node_cover_index(place.node, smart_slot_pk(place.slot) - 1);
	below = index < 0 ? 0 : place.node->words[SMART_NODE_HEAD_WORDS + index];
	if (!smart_slot_is_empty(below) || smart_slot_frozen(below))
		return;
	if (smart_word_cas(tree, place.slot_address, place.slot, 0, &seen) == SMART_OK && seen == place.slot)
		smart_word_cas(tree, smart_node_slot_address(place.node->address, (unsigned int) index), below,
					   smart_slot_make_empty(smart_slot_pk(below), smart_slot_empty_hi(place.slot)), &seen);
}

/* The copy that was made where there was no room goes back to a block that is as long as it needs. */
static smart_status
settle(struct smart_tree *tree, const struct smart_key *key)
{
	smart_slot parked = smart_standby_unpark(tree);
	struct smart_place place;
	smart_status status = SMART_OK;

	/* Once, but for a parent that is being replaced.  If it comes to nothing, another client, or VACUUM, finishes it. */
	for (int attempt = 0; parked != 0 && status == SMART_OK && attempt < SETTLE_ATTEMPTS; attempt++)
	{
		status = smart_find_strict(tree, key, &place);
		if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || place.slot != parked)
			break;
		status = smart_forward(tree, key, smart_slot_address(parked));
	}
	tree->standby.parked = 0;
	return status;
}

/* Runs a removal to its end; afterwards drop.count is what it removed. */
static smart_status
remove_entries(struct smart_tree *tree, struct removal *removal)
{
	unsigned int attempts = 0;
	smart_status status;

	smart_assert(tree->entered && tree->locked == 0 && !removal->finished && tree->standby.parked == 0);
	tree->removing = tree->mends = true;
	do
	{
		removal->drop.count = 0;
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = remove_once(tree, removal);
		/* A standby is used again without being wiped (V4). */
		if (smart_no_room(status) && !tree->options.value)
		{
			unblock_all(tree, removal->blocked);
			status = smart_standby_renew(tree, status);
		}
	} while (status == SMART_OK && !removal->finished);
	if (settle(tree, &removal->key) == SMART_CORRUPT)
		status = SMART_CORRUPT;
	tree->removing = tree->mends = false;
	/* What was removed is removed, whether or not there was room to tidy up behind it. */
	if (SMART_FAULT(zero) && status == SMART_OK)
		join_in_place(tree, &removal->key);
	else if (status == SMART_OK && removal->drop.count > 0 && smart_tidy(tree, &removal->key) == SMART_CORRUPT)
		status = SMART_CORRUPT;
	unblock_all(tree, removal->blocked);
	smart_assert(tree->locked == 0 && (status != SMART_OK || removal->finished));
	return status;
}

/* smart_drop callback: the one entry whose key is argument. */
static bool
is_key(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	return smart_leaf_prefix_matches(leaf, argument) && smart_leaf_compare(leaf, suffix, length, argument) == 0;
}

smart_status
smart_tree_remove(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, bool *removed)
{
	struct removal removal = {.key = {.bytes = key_bytes, .length = (uint32_t) key_length}, .only_if_there = true};
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	smart_status status;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	removal.drop = (struct smart_drop){.dead = is_key, .argument = &removal.key};
	/* A1: no cached result for this equality prefix while it may change. */
	if (tree->results && !SMART_FAULT(lateblock))
		blocked = smart_block(tree, key_bytes, key_length);
	smart_enter(tree);
	status = smart_leave(tree, remove_entries(tree, &removal));
	smart_standby_release(tree);
	if (tree->results && SMART_FAULT(lateblock))
		blocked = smart_block(tree, key_bytes, key_length);
	smart_unblock(tree, &blocked);
	if (status == SMART_OK)
		*removed = removal.drop.count > 0;
	return status;
}

/* ---- bulk delete ---- */

/* A bulk delete, the removal of many, or the weeding of one leaf. */
struct bulk
{
	struct smart_tree *tree;
	const struct smart_victims *victims;
	bool dead_only; /* the cursor is a key that is to go, and entries that stay are not counted */
	struct smart_cursor cursor;
	struct smart_sweep *sweep;     /* NULL: the tree cannot be swept */
	struct smart_readahead *ahead; /* remote; NULL on a direct provider */
	struct blocked *blocked;       /* NULL: there are no cached results */
	uint8_t *entry;                /* the whole bytes of the entry that is asked about */
	unsigned int depth;            /* up to which entry holds the cursor's bytes */
	uint64_t visited;
	uint64_t removed;
};

/* smart_drop callback: asks the caller about the whole entry. */
static bool
is_dead(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	struct bulk *bulk = argument;
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
	struct bulk *bulk = argument;
	bool dead = is_dead(argument, leaf, suffix, length);

	if (dead && bulk->victims->found != NULL)
		bulk->victims->found(bulk->victims->argument, bulk->entry, leaf->depth + leaf->prefix_length + length);
	if (!dead || bulk->blocked == NULL)
		return dead;
	smart_assert(bulk->blocked->count < BLOCKED_MAX);
	bulk->blocked->points[bulk->blocked->count++] =
		smart_block(bulk->tree, bulk->entry, leaf->depth + leaf->prefix_length + length);
	return true;
}

/* Is an entry to be removed?  It is not if somebody only wants to be told of it. */
static bool
meet(struct bulk *bulk, const struct smart_leaf *leaf, const struct smart_ref *ref)
{
	const struct smart_victims *victims = bulk->victims;
	bool dead = is_dead(bulk, leaf, ref->tail, ref->tail_length);

	if (!dead || !smart_victims_stay(victims))
		return dead;
	victims->found(victims->argument, bulk->entry, leaf->depth + leaf->prefix_length + ref->tail_length);
	return false;
}

/* The leaf that covers the cursor, or what there is instead; moves the cursor behind it.  Within an epoch. */
static smart_status
bulk_step(struct bulk *bulk)
{
	struct smart_tree *tree = bulk->tree;
	struct smart_list *list = &tree->list;
	struct smart_cursor *cursor = &bulk->cursor;
	struct smart_key key = smart_cursor_key(cursor);
	struct smart_place place;
	struct smart_leaf leaf;
	struct removal removal;
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
	removal = (struct removal){.key = key,
							   .hint = tree->direct ? 0 : place.slot,
							   .drop = {.dead = leave_out, .argument = bulk},
							   .blocked = bulk->blocked};
	status = remove_entries(tree, &removal);
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
remove_step(struct bulk *bulk)
{
	struct smart_cursor *cursor = &bulk->cursor;
	struct removal removal = {.key = smart_cursor_key(cursor),
							  .drop = {.dead = leave_out, .argument = bulk},
							  .blocked = bulk->blocked,
							  .only_if_there = true};
	smart_status status;

	bulk->depth = UINT_MAX;
	status = remove_entries(bulk->tree, &removal);
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
bulk_end(struct bulk *bulk)
{
	struct smart_env *env = bulk->tree->env;

	smart_standby_release(bulk->tree);
	if (bulk->ahead != NULL)
		smart_readahead_close(bulk->ahead);
	smart_release(env, bulk->sweep);
	smart_release(env, bulk->entry);
	smart_release(env, bulk->blocked);
	smart_cursor_done(&bulk->cursor, env);
}

/* Makes what a bulk delete from the first entry on needs; bulk_end() is due if it succeeds. */
static smart_status
bulk_begin(struct bulk *bulk, bool sweeps)
{
	struct smart_tree *tree = bulk->tree;
	struct smart_env *env = tree->env;
	smart_status status = smart_cursor_init(&bulk->cursor, env);

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
step(struct bulk *bulk)
{
	struct smart_sweep *sweep = bulk->sweep;
	bool done = false;
	smart_status status = SMART_OK;

	if (sweep != NULL)
		status = bulk->dead_only ? smart_sweep_remove(sweep, &bulk->cursor, &done)
								 : smart_sweep_step(sweep, &bulk->cursor, &done);
	if (status != SMART_OK)
		return status;
	if (!done && sweep != NULL)
		smart_sweep_lose(sweep);
	if (!done)
		return bulk->dead_only ? remove_step(bulk) : bulk_step(bulk);
	bulk->visited += sweep->visited;
	if (!smart_victims_stay(bulk->victims))
		bulk->removed += sweep->dead;
	return SMART_OK;
}

/* One step as an operation of its own. */
static smart_status
bulk_once(struct bulk *bulk)
{
	smart_status status;

	smart_enter(bulk->tree);
	status = smart_leave(bulk->tree, step(bulk));
	/* A1: no equality prefix stays blocked longer than its operation. */
	smart_assert(bulk->blocked == NULL || bulk->blocked->count == 0);
	return status;
}

smart_status
smart_tree_bulk_delete(struct smart_tree *tree, const struct smart_victims *victims, smart_pause_fn pause_point,
					   uint64_t *visited, uint64_t *removed)
{
	struct bulk bulk = {.tree = tree, .victims = victims};
	smart_status status = bulk_begin(&bulk, smart_tree_is_swept(tree));

	smart_assert(victims->last == NULL);
	if (status != SMART_OK)
		return status;
	if (!tree->direct)
		status = smart_readahead_open(tree, &bulk.ahead);
	if (status == SMART_OK && bulk.ahead != NULL)
		smart_readahead_start(bulk.ahead, NULL, 0, false);
	while (status == SMART_OK && !bulk.cursor.end)
	{
		struct smart_key next = smart_cursor_key(&bulk.cursor);

		if (bulk.sweep != NULL)
			status = smart_sweep_tidy(bulk.sweep, &next);
		if (status == SMART_OK)
			status = bulk_once(&bulk);
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

smart_status
smart_tree_remove_many(struct smart_tree *tree, const struct smart_victims *victims, smart_next_key_fn next,
					   uint64_t *removed)
{
	struct bulk bulk = {.tree = tree, .victims = victims, .dead_only = true};
	smart_status status = bulk_begin(&bulk, smart_tree_is_swept(tree));
	struct smart_key key = {0};
	const uint8_t *bytes;
	size_t length;

	smart_assert(!smart_victims_stay(victims));
	if (status != SMART_OK)
		return status;
	while (status == SMART_OK && !bulk.cursor.end &&
		   next(victims->argument, bulk.cursor.bytes, bulk.cursor.length, &bytes, &length))
	{
		smart_assert(length > 0 && length <= SMART_KEY_MAX);
		if (bulk.sweep != NULL)
			smart_sweep_go(bulk.sweep, &bulk.cursor, bytes, length);
		memcpy(bulk.cursor.bytes, bytes, length);
		bulk.cursor.length = (uint32_t) length;
		key = smart_cursor_key(&bulk.cursor);
		if (bulk.sweep != NULL)
			status = smart_sweep_tidy(bulk.sweep, &key);
		if (status == SMART_OK)
			status = bulk_once(&bulk);
	}
	if (status == SMART_OK && bulk.sweep != NULL)
		status = smart_sweep_tidy(bulk.sweep, NULL);
	bulk_end(&bulk);
	*removed = bulk.removed;
	return status;
}

smart_status
smart_tree_weed(struct smart_tree *tree, const uint8_t *key, size_t key_length, smart_dead_fn dead, void *argument,
				uint64_t *removed)
{
	const struct smart_victims victims = {.dead = dead, .argument = argument};
	struct bulk bulk = {.tree = tree, .victims = &victims};
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
