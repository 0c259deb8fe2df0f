/*
 * sweep.c
 *	  Bulk delete by pointers: leaves are looked at where they lie, and an entry is only put together if somebody wants to
 *	  see all of it.
 *
 * Nothing is different for other clients: a leaf with dead entries is locked, sealed and replaced by a copy, as REMOVE
 * says.  What is saved is the strict descents.  The lock is taken first, and then slot and meta are read: the node was
 * come to by pointers within this epoch, so it is in the tree if the slot still leads to the leaf and is not frozen (I2),
 * and the slots are newer than the leaf's hi, which only the lock's holder changes.  The copy keeps the order in which
 * the entries lie, so that what stays is copied in long pieces.
 *
 * Where a leaf is not live, or pending, or a slot frozen, where the CAS of the slot is lost or there is no room, the sweep
 * leaves the leaf to remove.c, which is strict and helps.
 *
 * Progress: as insert.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"
#include "tree/write/sweep.h"

void
smart_sweep_begin(struct smart_sweep *sweep, struct smart_tree *tree, const struct smart_victims *victims,
				  uint8_t *entry)
{
	smart_assert(smart_tree_is_swept(tree));
	sweep->tree = tree;
	sweep->victims = victims;
	sweep->entry = entry;
	sweep->parent.words = NULL;
	sweep->untidy = false;
	sweep->tidy_depth = 0;
	sweep->in_gap = false;
}

/* ---- looking ---- */

/* Has the lines of the leaf behind this one fetched while this one is looked at: a hint, whatever the node holds now. */
static void
prefetch_next(const struct smart_tree *tree, const struct smart_place *place, const struct smart_leaf *leaf)
{
	unsigned int kind = smart_node_kind(smart_load_acquire(place->shared));
	const uint64_t *slots = place->shared + SMART_NODE_HEAD_WORDS;
	smart_slot next = leaf->hi == 255 ? 0 : smart_cover(slots, kind, tree->kind_slots[kind], leaf->hi + 1);

	if (smart_slot_is_leaf(next) && next != place->slot)
		smart_prefetch_block(tree, smart_slot_address(next), smart_slot_size(next) * SMART_UNIT);
}

/*
 * The leaf or empty range that covers the key; *found false: it has to be looked for strictly.  A leaf is live, and below
 * a node.
 */
static smart_status
find(struct smart_sweep *sweep, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
	 bool *found)
{
	struct smart_tree *tree = sweep->tree;
	smart_status status = SMART_OK;

	smart_assert(sweep->tree->entered && sweep->tree->locked == 0);
	*found = false;
	if (sweep->parent.words != NULL)
		status = smart_find_from(tree, key, &sweep->parent, place, found);
	if (status == SMART_OK && !*found)
		status = smart_find_fast(tree, key, place);
	sweep->parent.words = NULL;
	/* By pointers "empty" is as good as strict. */
	*found = place->kind == SMART_PLACE_EMPTY || place->kind == SMART_PLACE_MISMATCH;
	if (status != SMART_OK || place->kind != SMART_PLACE_LEAF || place->index < 0)
		return status;
	status = smart_leaf_read(tree, place->slot, key, NULL, leaf, found);
	*found = status == SMART_OK && *found && leaf->state == SMART_LIVE && leaf->depth == place->depth &&
			 smart_leaf_covers(leaf, key);
	if (*found)
	{
		smart_remember_ancestor(&sweep->parent, place->shared, place->shared_at);
		prefetch_next(tree, place, leaf);
	}
	return status;
}

/* Moves the cursor behind the leaf.  If it keeps the bytes before the leaf's depth, it is below the leaf's node still. */
static smart_status
pass(struct smart_sweep *sweep, struct smart_cursor *cursor, const struct smart_leaf *leaf)
{
	smart_status status = smart_cursor_pass(cursor, leaf->depth, leaf->hi);

	if (cursor->end || cursor->length <= leaf->depth)
		sweep->parent.words = NULL;
	return status;
}

/* Order of an entry and a key that share the bytes before the leaf's depth. */
static int
compare(const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length, const struct smart_key *key)
{
	const uint8_t *prefix = smart_leaf_prefix(leaf);

	for (unsigned int i = 0; i < leaf->prefix_length; i++)
	{
		unsigned int byte = smart_key_byte(key, leaf->depth + i);

		if (prefix[i] != byte)
			return prefix[i] < byte ? -1 : 1;
	}
	return smart_leaf_compare(leaf, suffix, length, key);
}

/* What a look at a leaf's entries is about. */
struct look
{
	const struct smart_leaf *leaf;
	const struct smart_key *key;  /* shares the bytes before the leaf's depth */
	unsigned int lo;              /* entries with a lower byte are none of it */
	const struct smart_key *from; /* not NULL: nor are those below it */
	const struct smart_key *last; /* not NULL: those above it are not to go */
	bool outside;                 /* entries above the leaf's hi are wanted, too */
	bool ready;                   /* sweep->entry has what all entries of the leaf share */
};

/* Puts an entry together; returns its length. */
static size_t
put_together(struct smart_sweep *sweep, struct look *look, const uint8_t *suffix, unsigned int length)
{
	const struct smart_leaf *leaf = look->leaf;
	size_t head = leaf->depth + leaf->prefix_length;

	if (!look->ready)
	{
		for (unsigned int i = 0; i < leaf->depth; i++)
			sweep->entry[i] = (uint8_t) smart_key_byte(look->key, i);
		memcpy(sweep->entry + leaf->depth, smart_leaf_prefix(leaf), leaf->prefix_length);
		look->ready = true;
	}
	memcpy(sweep->entry + head, suffix, length);
	return head + length;
}

static inline bool
is_dead(struct smart_sweep *sweep, struct look *look, const uint8_t *suffix, unsigned int length)
{
	const struct smart_victims *victims = sweep->victims;
	bool dead;

	if (smart_likely(victims->tail != 0 && length >= victims->tail))
		dead = victims->dead(victims->argument, suffix, length);
	else
	{
		size_t whole = put_together(sweep, look, suffix, length);

		dead = victims->dead(victims->argument, sweep->entry, whole);
	}
	return dead && (look->last == NULL || compare(look->leaf, suffix, length, look->last) <= 0);
}

/* Looks at all entries, as they lie. */
static smart_status
look_at(struct smart_sweep *sweep, struct look *look)
{
	const struct smart_leaf *leaf = look->leaf;
	const uint8_t *prefix = smart_leaf_prefix(leaf);
	unsigned int offset = leaf->start;

	sweep->visited = sweep->dead = sweep->count = 0;
	while (offset < leaf->used)
	{
		unsigned int at = offset;
		const uint8_t *suffix = leaf->block + offset;
		unsigned int length = leaf->stride;
		unsigned int byte;
		bool leaves;

		offset = length != 0 ? offset + length : smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (smart_unlikely(offset == 0 || offset > leaf->used))
			return SMART_CORRUPT;
		byte = leaf->prefix_length > 0 ? prefix[0] : suffix[0];
		if (smart_unlikely(byte > leaf->hi || byte < look->lo))
			leaves = look->outside;
		else if (smart_unlikely(look->from != NULL && compare(leaf, suffix, length, look->from) < 0))
			leaves = false;
		else
		{
			leaves = is_dead(sweep, look, suffix, length);
			sweep->visited++;
			sweep->dead += leaves;
		}
		if (leaves)
			sweep->at[sweep->count++] = (uint16_t) at;
	}
	smart_assert(sweep->dead <= sweep->visited && sweep->dead <= sweep->count);
	return SMART_OK;
}

/* The suffix of the entry at an offset that look_at() has passed. */
static const uint8_t *
suffix_at(const struct smart_leaf *leaf, unsigned int offset, unsigned int *length)
{
	const uint8_t *suffix = NULL;

	*length = 0;
	(void) smart_leaf_next_entry(leaf, offset, &suffix, length);
	return suffix;
}

/* Tells of the dead entries, in order: those behind the sorted run are sorted in. */
static void
tell(struct smart_sweep *sweep, struct look *look)
{
	const struct smart_leaf *leaf = look->leaf;
	const uint8_t *suffix;
	unsigned int length;

	smart_assert(sweep->victims->found != NULL && (sweep->count == sweep->dead || SMART_FAULT(strayed)));
	for (uint32_t i = 1; i < sweep->count; i++)
	{
		uint16_t at = sweep->at[i];
		uint32_t to = i;

		if (at < leaf->sorted_end)
			continue;
		suffix = suffix_at(leaf, at, &length);
		for (; to > 0; to--)
		{
			unsigned int other_length;
			const uint8_t *other = suffix_at(leaf, sweep->at[to - 1], &other_length);

			if (smart_compare_bytes(other, other_length, suffix, length) < 0)
				break;
			sweep->at[to] = sweep->at[to - 1];
		}
		sweep->at[to] = at;
	}
	for (uint32_t i = 0; i < sweep->count; i++)
	{
		suffix = suffix_at(leaf, sweep->at[i], &length);
		length = (unsigned int) put_together(sweep, look, suffix, length);
		sweep->victims->found(sweep->victims->argument, sweep->entry, length);
	}
}

/* ---- removing ---- */

/*
 * The place again, in the leaf's node as it is now, which is newer than the leaf's meta.  False: the slot has changed or
 * is frozen, or the leaf is pending.
 */
static bool
is_linked(struct smart_tree *tree, struct smart_place *place, const struct smart_leaf *leaf)
{
	const uint64_t *slots = place->shared + SMART_NODE_HEAD_WORDS;
	uint64_t header = smart_load_acquire(place->shared);
	unsigned int kind = smart_node_kind(header);
	unsigned int count = tree->kind_slots[kind];
	unsigned int i = kind == SMART_NODE_256 ? leaf->lo : 0;

	if (smart_node_state(header) != SMART_LIVE)
		return false;
	while (i < count && smart_load_acquire(&slots[i]) != place->slot)
		i = kind == SMART_NODE_256 ? count : i + 1;
	if (i == count || (leaf->hi < 255 && smart_cover(slots, kind, count, leaf->hi + 1) == place->slot))
		return false;
	place->node = NULL;
	place->index = (int) i;
	place->slot_address = smart_node_slot_address(place->shared_at, i);
	return true;
}

/* Writes the leaf without what look_at() has found into a block; returns the bytes used, and where the sorted run ends. */
static unsigned int
put_rest(const struct smart_sweep *sweep, const struct smart_leaf *leaf, uint8_t *block, unsigned int *sorted_end)
{
	unsigned int from = SMART_LEAF_HEADER_BYTES;
	unsigned int used = SMART_LEAF_HEADER_BYTES;

	*sorted_end = leaf->sorted_end;
	for (uint32_t i = 0; i <= sweep->count; i++)
	{
		unsigned int to = i < sweep->count ? sweep->at[i] : leaf->used;
		unsigned int next = to;
		const uint8_t *suffix;
		unsigned int length;

		smart_assert(from <= to && to <= leaf->used);
		memcpy(block + used, leaf->block + from, to - from);
		used += to - from;
		if (i < sweep->count)
			next = leaf->stride != 0 ? to + leaf->stride : smart_leaf_next_entry(leaf, to, &suffix, &length);
		if (to < leaf->sorted_end)
			*sorted_end -= next - to;
		from = next;
	}
	return used;
}

/* Makes the copy, of so many bytes with the rear; an empty range if nothing is left. */
static smart_status
make_copy(struct smart_sweep *sweep, const struct smart_key *key, const struct smart_leaf *leaf, smart_slot *copy)
{
	struct smart_tree *tree = sweep->tree;
	unsigned int left = leaf->used + SMART_LEAF_REAR_BYTES;
	unsigned int sorted_end;
	unsigned int used;
	unsigned int units;
	fabric_address address;
	uint8_t *block;
	uint64_t hash;
	uint64_t header;
	uint64_t meta;
	smart_status status;

	*copy = smart_slot_make_empty(leaf->lo, leaf->hi);
	for (uint32_t i = 0; i < sweep->count; i++)
	{
		const uint8_t *suffix;
		unsigned int length;

		left -= leaf->stride != 0 ? leaf->stride
								  : smart_leaf_next_entry(leaf, sweep->at[i], &suffix, &length) - sweep->at[i];
	}
	smart_assert(left >= leaf->start + SMART_LEAF_REAR_BYTES);
	if (left == leaf->start + SMART_LEAF_REAR_BYTES)
		return SMART_OK;
	units = (unsigned int) SMART_UNITS_FOR(left);
	status = smart_allocate(tree, SMART_CLASS_LEAF(units), &address);
	if (status != SMART_OK)
		return status;
	block = fabric_direct(tree->fabric, address, (size_t) units * SMART_UNIT);
	if (block == NULL)
		return SMART_CORRUPT;
	used = put_rest(sweep, leaf, block, &sorted_end);
	smart_assert(used + SMART_LEAF_REAR_BYTES == left && sorted_end <= used);
	hash = smart_prefix_hash(tree, key, leaf->depth);
	header = smart_leaf_header_make(leaf->depth, leaf->lo, leaf->prefix_length, sorted_end, (uint32_t) (hash >> 45));
	memcpy(block, &header, sizeof(header));
	meta = smart_meta_make(used, SMART_NEW, leaf->hi, smart_crc32c((uint32_t) (hash ^ (hash >> 32)), block, used));
	if (sorted_end == used)
		meta |= SMART_META_SORTED;
	memcpy(block + units * SMART_UNIT - SMART_LEAF_REAR_BYTES, &meta, sizeof(meta));
	*copy = smart_slot_make_leaf(leaf->lo, units, address);
	return SMART_OK;
}

/* The leaf is locked, and holds entries that are to go: SEAL, REPLACE-LEAF. */
static smart_status
replace(struct smart_sweep *sweep, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
		struct smart_leaf_lock *lock, bool *done)
{
	struct smart_tree *tree = sweep->tree;
	smart_slot copy;
	smart_status status = make_copy(sweep, key, leaf, &copy);

	if (smart_no_room(status))
		return SMART_OK;
	if (status != SMART_OK)
		return status;
	status = smart_end_leaf(tree, place, leaf, lock, copy, done);
	if (!*done)
	{
		smart_retire_loser(tree, status, copy);
		return status;
	}
	smart_assert(status == SMART_OK && leaf->state == SMART_SEALED);
	sweep->untidy = true;
	sweep->tidy_depth = leaf->depth;
	for (unsigned int i = 0; i <= leaf->depth; i++)
		sweep->tidy[i] = (uint8_t) smart_key_byte(key, i);
	status = smart_slot_activate(tree, copy);
	smart_retire_slot(tree, place->slot);
	return status;
}

/*
 * Locks the leaf that place leads to, looks at it once more, and removes what is to go from all of it.  seen: the leaf's
 * meta when it was looked at in this operation; 0: it was not.  With the same meta it has the same entries (I4, I6).
 */
static smart_status
remove_dead(struct smart_sweep *sweep, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
			uint64_t seen, bool *done)
{
	const struct smart_victims *victims = sweep->victims;
	struct smart_tree *tree = sweep->tree;
	struct smart_key last = {.bytes = victims->last, .length = (uint32_t) victims->last_length};
	struct look look = {.leaf = leaf, .key = key, .lo = leaf->lo, .outside = true};
	struct smart_leaf_lock lock;
	smart_status unlocked;
	bool removed = false;
	bool good;
	bool stuck;
	smart_status status = smart_lock_local(tree, place->slot);

	*done = false;
	if (status == SMART_OK)
		status = smart_leaf_read_locked(tree, place->slot, key, &lock, leaf, &good, &stuck);
	if (status != SMART_OK)
		return status;
	/* It may have become another one since it was found, or narrow. */
	if (good && leaf->state == SMART_LIVE && leaf->depth == place->depth && smart_leaf_covers(leaf, key) &&
		is_linked(tree, place, leaf))
	{
		/* The last key is not below this one: if it does not belong here, all that is here is below it. */
		if (victims->last != NULL && smart_leaf_covers(leaf, &last) && key->length >= leaf->depth &&
			last.length > leaf->depth && memcmp(last.bytes, key->bytes, leaf->depth) == 0)
			look.last = &last;
		if (leaf->meta != seen)
			status = look_at(sweep, &look);
		*done = status == SMART_OK && sweep->dead == 0;
		/* What lies out of range has gone elsewhere: nobody is to be told of it. */
		if (status == SMART_OK && sweep->dead > 0 &&
			(victims->found == NULL || sweep->count == sweep->dead || SMART_FAULT(strayed)))
		{
			status = replace(sweep, key, place, leaf, &lock, done);
			removed = *done;
		}
	}
	unlocked = smart_leaf_unlock(tree, &lock);
	smart_assert(tree->locked == 0);
	/* The leaf that was replaced stays as it is within this epoch. */
	if (removed && victims->found != NULL && !SMART_FAULT(untold))
		tell(sweep, &look);
	return status != SMART_OK ? status : unlocked;
}

/* ---- steps ---- */

smart_status
smart_sweep_step(struct smart_sweep *sweep, struct smart_cursor *cursor, bool *done)
{
	struct smart_key key = smart_cursor_key(cursor);
	struct smart_place place;
	struct smart_leaf leaf;
	struct look look = {.leaf = &leaf, .key = &key};
	bool was_in_gap;
	bool whole;
	smart_status status = find(sweep, &key, &place, &leaf, done);

	if (status != SMART_OK || !*done)
		return status;
	sweep->visited = sweep->dead = 0;
	was_in_gap = sweep->in_gap;
	sweep->in_gap = place.kind != SMART_PLACE_LEAF;
	if (sweep->in_gap)
		return smart_pass_gap(sweep->tree, cursor, &place, was_in_gap);
	look.lo = smart_key_byte(&key, leaf.depth);
	whole = cursor->length <= leaf.depth + 1 && look.lo == leaf.lo;
	look.from = whole ? NULL : &key;
	look.outside = whole && !smart_victims_stay(sweep->victims);
	status = look_at(sweep, &look);
	if (status != SMART_OK)
		return status;
	if (sweep->dead > 0 && smart_victims_stay(sweep->victims))
		tell(sweep, &look);
	else if (sweep->dead > 0)
	{
		/* What stays there is counted once. */
		*done = whole;
		if (whole)
			status = remove_dead(sweep, &key, &place, &leaf, leaf.meta, done);
		if (status != SMART_OK || !*done)
			return status;
	}
	return pass(sweep, cursor, &leaf);
}

smart_status
smart_sweep_remove(struct smart_sweep *sweep, struct smart_cursor *cursor, bool *done)
{
	struct smart_key key = smart_cursor_key(cursor);
	struct smart_place place;
	struct smart_leaf leaf;
	smart_status status;

	status = find(sweep, &key, &place, &leaf, done);
	if (status != SMART_OK || !*done)
		return status;
	if (place.kind == SMART_PLACE_LEAF)
		status = remove_dead(sweep, &key, &place, &leaf, 0, done);
	else
		*done = false;
	if (status == SMART_OK && *done)
		status = pass(sweep, cursor, &leaf);
	return status;
}

smart_status
smart_sweep_tidy(struct smart_sweep *sweep, const struct smart_key *next)
{
	struct smart_tree *tree = sweep->tree;
	struct smart_key key = {.bytes = sweep->tidy, .length = sweep->tidy_depth + 1};
	bool left = next == NULL;
	smart_status status;

	smart_assert(!tree->entered);
	for (unsigned int i = 0; i < sweep->tidy_depth && !left; i++)
		left = sweep->tidy[i] != smart_key_byte(next, i);
	if (!sweep->untidy || !left)
		return SMART_OK;
	sweep->untidy = false;
	sweep->parent.words = NULL;
	smart_enter(tree);
	status = smart_leave(tree, smart_tidy_node(tree, &key));
	return status == SMART_CORRUPT ? status : SMART_OK;
}

void
smart_sweep_go(struct smart_sweep *sweep, struct smart_cursor *cursor, const uint8_t *key, size_t length)
{
	unsigned int depth = sweep->parent.words == NULL ? 0 : smart_node_depth(sweep->parent.header);

	if (length <= depth || memcmp(cursor->bytes, key, depth) != 0)
		sweep->parent.words = NULL;
}
