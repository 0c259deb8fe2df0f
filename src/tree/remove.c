/*
 * remove.c
 *	  Remove, bulk delete, and weeding of one leaf: a leaf is sealed and replaced by
 *	  a copy without the entry, or entries.
 *
 * The commit is the CAS of the leaf's slot, and it has to be one's own: if
 * somebody else replaced the sealed leaf, the entries are still there.
 *
 * Progress: as insert.
 */
#include "tree/readahead.h"

/* Attempts on a rear lock that somebody holds, before the leaf is rewritten. */
#define LOCK_PATIENCE 3

/* Entries of one leaf, at most. */
#define BLOCKED_MAX SMART_LEAF_SIZE_MAX

/* Points of entries that a rewrite leaves out. */
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
	struct blocked *blocked; /* bulk delete, with answers; else NULL */
	bool only_if_there;      /* one key: finished if it is absent */
	bool finished;
	unsigned int refused;
};

static void
unblock_all(struct smart_tree *tree, struct blocked *blocked)
{
	while (blocked != NULL && blocked->count > 0)
		smart_unblock(tree, &blocked->points[--blocked->count]);
}

/*
 * The leaf is locked and live.  Strict; install if pending; seal and replace.  Lost
 * with the same leaf still there (a frozen node's copy, say): once more.
 */
static smart_status
remove_locked(struct smart_tree *tree, struct removal *removal, struct smart_leaf_lock *lock, struct smart_leaf *leaf)
{
	struct smart_rewrite rewrite = {.drop = &removal->drop};
	unsigned int attempts = 0;
	struct smart_place place;
	smart_status status;

	for (;;)
	{
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = smart_find_strict(tree, &removal->key, &place);
		if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || smart_slot_address(place.slot) != leaf->address)
			return status;
		if (leaf->state == SMART_LIVE && smart_pending(&place, leaf))
			return smart_install(tree, &removal->key, &place, leaf);
		rewrite.lock = leaf->state == SMART_LIVE ? lock : NULL;
		leaf->link = place.slot;
		unblock_all(tree, removal->blocked);
		status = smart_replace_leaf(tree, &removal->key, &place, leaf, &rewrite, &removal->finished);
		if (status != SMART_OK || removal->finished)
			return status;
	}
}

/* Where the leaf is: as was seen a while ago, once, or strictly. */
static smart_status
find_leaf(struct smart_tree *tree, struct removal *removal, smart_slot *link)
{
	struct smart_place place;
	smart_status status;

	*link = removal->hint;
	removal->hint = 0;
	if (*link != 0)
		return SMART_OK;
	status = smart_find_strict(tree, &removal->key, &place);
	removal->finished = status == SMART_OK && place.kind != SMART_PLACE_LEAF;
	if (status == SMART_OK && !removal->finished)
		*link = place.slot;
	return status;
}

/* One attempt.  A leaf that proves its place (I1) may have been found in any way; remove_locked() is strict. */
static smart_status
remove_once(struct smart_tree *tree, struct removal *removal)
{
	const struct smart_key *key = &removal->key;
	bool hinted = removal->hint != 0;
	struct smart_leaf_lock lock;
	struct smart_leaf leaf;
	smart_slot link;
	bool locked;
	bool good;
	smart_status unlocked;
	smart_status status = find_leaf(tree, removal, &link);

	if (status != SMART_OK || removal->finished)
		return status;
	status = smart_leaf_lock_and_read(tree, link, key, &lock, &leaf, &locked, &good);
	if (status != SMART_OK)
		return status;
	if (!locked)
	{
		if (hinted || ++removal->refused < LOCK_PATIENCE)
			return SMART_OK;
		removal->refused = 0;
		return smart_forward(tree, key, smart_slot_address(link));
	}
	if (!good || leaf.state != SMART_LIVE || !smart_leaf_covers(&leaf, key))
	{
		status = smart_leaf_unlock(tree, &lock);
		return status == SMART_OK && !hinted ? smart_forward(tree, key, smart_slot_address(link)) : status;
	}
	if (removal->only_if_there && !smart_leaf_contains(&leaf, key))
		removal->finished = true;
	else
		status = remove_locked(tree, removal, &lock, &leaf);
	unlocked = smart_leaf_unlock(tree, &lock);
	return status != SMART_OK ? status : unlocked;
}

/* Runs a removal to its end; afterwards drop.count is what it removed. */
static smart_status
remove_entries(struct smart_tree *tree, struct removal *removal)
{
	unsigned int attempts = 0;
	smart_status status;

	do
	{
		removal->drop.count = 0;
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = remove_once(tree, removal);
	} while (status == SMART_OK && !removal->finished);
	/* What was removed is removed, whether or not there was room to tidy up behind it. */
	if (SMART_FAULT(zero) && status == SMART_OK)
		smart_fault_zero(tree, &removal->key);
	else if (status == SMART_OK && removal->drop.count > 0 && smart_tidy(tree, &removal->key) == SMART_CORRUPT)
		status = SMART_CORRUPT;
	unblock_all(tree, removal->blocked);
	return status;
}

/* smart_drop callback: the one entry whose key is argument. */
static bool
is_key(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	return smart_leaf_prefix_matches(leaf, argument) && smart_leaf_compare(leaf, suffix, length, argument) == 0;
}

/* The whole operation, from its epoch's beginning to its end. */
static smart_status
remove_one(struct smart_tree *tree, struct removal *removal)
{
	smart_enter(tree);
	return smart_leave(tree, remove_entries(tree, removal));
}

/* The same where there are answers: none for this point while it may change (A1). */
static smart_status
remove_blocked(struct smart_tree *tree, struct removal *removal)
{
	struct smart_blocked blocked = {.gate = SMART_GATE_NONE};
	smart_status status;

	if (!SMART_FAULT(lateblock))
		blocked = smart_block(tree, removal->key.bytes, removal->key.length);
	status = remove_one(tree, removal);
	if (SMART_FAULT(lateblock))
		blocked = smart_block(tree, removal->key.bytes, removal->key.length);
	smart_unblock(tree, &blocked);
	return status;
}

smart_status
smart_tree_remove(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, bool *removed)
{
	struct removal removal = {.key = {.bytes = key_bytes, .length = (uint32_t) key_length}, .only_if_there = true};
	smart_status status;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	removal.drop = (struct smart_drop){.dead = is_key, .argument = &removal.key};
	status = tree->answers ? remove_blocked(tree, &removal) : remove_one(tree, &removal);
	if (status == SMART_OK)
		*removed = removal.drop.count > 0;
	return status;
}

/* ---- bulk delete ---- */

struct sweep
{
	struct smart_tree *tree;
	smart_dead_fn dead;
	void *argument;
	struct smart_cursor cursor;
	struct smart_readahead *ahead; /* remote; NULL on a direct provider */
	struct blocked *blocked;       /* NULL: there are no answers */
	uint8_t *entry;                /* the whole bytes of the entry that is asked about */
	unsigned int depth;            /* up to which entry holds the cursor's bytes */
	uint64_t visited;
	uint64_t removed;
};

/* smart_drop callback: asks the caller about the whole entry. */
static bool
is_dead(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	struct sweep *sweep = argument;
	size_t head = leaf->depth + leaf->prefix_length;

	/* Between two looks at one place its leaf may have gone deeper. */
	if (sweep->depth != leaf->depth)
	{
		struct smart_key key = smart_cursor_key(&sweep->cursor);

		for (unsigned int i = 0; i < leaf->depth; i++)
			sweep->entry[i] = (uint8_t) smart_key_byte(&key, i);
		sweep->depth = leaf->depth;
	}
	memcpy(sweep->entry + leaf->depth, smart_leaf_prefix(leaf), leaf->prefix_length);
	memcpy(sweep->entry + head, suffix, length);
	return sweep->dead(sweep->argument, sweep->entry, head + length);
}

/* The same in a rewrite: what is left out has no answers until the rewrite has come about, or not. */
static bool
leave_out(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	struct sweep *sweep = argument;
	bool dead = is_dead(argument, leaf, suffix, length);

	if (!dead || sweep->blocked == NULL)
		return dead;
	smart_assert(sweep->blocked->count < BLOCKED_MAX);
	sweep->blocked->points[sweep->blocked->count++] =
		smart_block(sweep->tree, sweep->entry, leaf->depth + leaf->prefix_length + length);
	return true;
}

/* Asks about the entries of a leaf with bytes from..to; counts them. */
static smart_status
sweep_leaf(struct sweep *sweep, const struct smart_leaf *leaf, unsigned int from, unsigned int to, uint64_t *entries,
		   uint64_t *dead)
{
	struct smart_list *list = &sweep->tree->list;
	smart_status status;

	list->count = 0;
	status = smart_list_collect(sweep->tree, list, leaf, from, to);
	if (status != SMART_OK)
		return status;
	*entries = list->count;
	*dead = 0;
	for (uint32_t i = 0; i < list->count; i++)
		*dead += is_dead(sweep, leaf, list->refs[i].tail, list->refs[i].tail_length);
	return SMART_OK;
}

/*
 * Behind the leaf that was rewritten without its dead entries, if the cursor was at its beginning.  Else
 * the same place is visited again, until nothing dead is left in it.
 */
static smart_status
pass_changed(struct sweep *sweep, const struct smart_drop *drop, smart_status status)
{
	struct smart_cursor *cursor = &sweep->cursor;
	struct smart_key key = smart_cursor_key(cursor);

	sweep->removed += drop->count;
	sweep->visited += drop->count;
	if (status == SMART_OK && drop->count > 0 && cursor->length <= drop->depth + 1 &&
		smart_key_byte(&key, drop->depth) == drop->lo)
	{
		sweep->visited += drop->kept;
		return smart_cursor_pass(cursor, drop->depth, drop->hi);
	}
	if (sweep->ahead != NULL)
		smart_readahead_changed(sweep->ahead);
	return status;
}

/* The leaf that covers the cursor, or what there is instead; moves the cursor behind it.  Within an epoch. */
static smart_status
sweep_step(struct sweep *sweep)
{
	struct smart_tree *tree = sweep->tree;
	struct smart_key key = smart_cursor_key(&sweep->cursor);
	struct smart_place place;
	struct smart_leaf leaf;
	struct removal removal;
	unsigned int limit;
	uint64_t entries;
	uint64_t dead;
	smart_status status = sweep->ahead == NULL
							  ? smart_settle(tree, &key, &place, &leaf, &limit)
							  : smart_readahead_find(sweep->ahead, &sweep->cursor, &place, &leaf, &limit);

	if (status != SMART_OK)
		return status;
	if (place.kind != SMART_PLACE_LEAF)
		return smart_cursor_skip(&sweep->cursor, &place);
	sweep->depth = UINT_MAX;
	/* Entries of bytes that the cursor has passed already were counted with another leaf. */
	status = sweep_leaf(sweep, &leaf, smart_key_byte(&key, leaf.depth), limit, &entries, &dead);
	if (status != SMART_OK)
		return status;
	if (dead == 0)
	{
		sweep->visited += entries;
		return smart_cursor_pass(&sweep->cursor, leaf.depth, limit);
	}
	removal = (struct removal){.key = key,
							   .hint = tree->direct ? 0 : place.slot,
							   .drop = {.dead = leave_out, .argument = sweep},
							   .blocked = sweep->blocked};
	status = remove_entries(tree, &removal);
	return pass_changed(sweep, &removal.drop, status);
}

static void
sweep_end(struct sweep *sweep)
{
	struct smart_env *env = sweep->tree->env;

	if (sweep->ahead != NULL)
		smart_readahead_close(sweep->ahead);
	if (sweep->entry != NULL)
		env->release(env, sweep->entry);
	if (sweep->blocked != NULL)
		env->release(env, sweep->blocked);
	smart_cursor_done(&sweep->cursor, env);
}

/* Makes what a sweep from the first entry on needs; sweep_end() is due if it succeeds. */
static smart_status
sweep_begin(struct sweep *sweep)
{
	struct smart_tree *tree = sweep->tree;
	smart_status status = smart_cursor_init(&sweep->cursor, tree->env);

	if (status != SMART_OK)
		return status;
	sweep->entry = tree->env->allocate(tree->env, SMART_KEY_MAX + SMART_ENTRY_MAX);
	if (tree->answers)
		sweep->blocked = tree->env->allocate(tree->env, sizeof(*sweep->blocked));
	if (sweep->entry == NULL || (tree->answers && sweep->blocked == NULL))
	{
		sweep_end(sweep);
		return SMART_NO_MEMORY;
	}
	if (sweep->blocked != NULL)
		sweep->blocked->count = 0;
	return SMART_OK;
}

smart_status
smart_tree_bulk_delete(struct smart_tree *tree, smart_dead_fn dead, smart_pause_fn pause_point, void *argument,
					   uint64_t *visited, uint64_t *removed)
{
	struct sweep sweep = {.tree = tree, .dead = dead, .argument = argument};
	smart_status status = sweep_begin(&sweep);

	if (status != SMART_OK)
		return status;
	if (!tree->direct)
		status = smart_readahead_open(tree, &sweep.ahead);
	if (status == SMART_OK && sweep.ahead != NULL)
		smart_readahead_start(sweep.ahead, NULL, 0);
	while (status == SMART_OK && !sweep.cursor.end)
	{
		smart_enter(tree);
		status = sweep_step(&sweep);
		status = smart_leave(tree, status);
		if (status == SMART_OK && pause_point != NULL && !pause_point(argument))
			status = SMART_INTERRUPTED;
	}
	sweep_end(&sweep);
	if (status == SMART_OK)
	{
		*visited = sweep.visited;
		*removed = sweep.removed;
	}
	return status;
}

smart_status
smart_tree_weed(struct smart_tree *tree, const uint8_t *key, size_t key_length, smart_dead_fn dead, void *argument,
				uint64_t *removed)
{
	struct sweep sweep = {.tree = tree, .dead = dead, .argument = argument};
	smart_status status;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	status = sweep_begin(&sweep);
	if (status != SMART_OK)
		return status;
	memcpy(sweep.cursor.bytes, key, key_length);
	sweep.cursor.length = (uint32_t) key_length;
	tree->services->enter(tree->services);
	status = sweep_step(&sweep);
	status = smart_leave(tree, status);
	sweep_end(&sweep);
	if (status == SMART_OK)
		*removed = sweep.removed;
	return status;
}
