/*
 * insert.c
 *	  Insert: lock the leaf, append, publish by one CAS on meta (C1-C8).
 *
 * The fast path costs three round trips in shared mode: read, lock, then write,
 * publish and unlock; or four by a promise (C5a), with an atomic less: read, promise,
 * write, and a READ that is shared.  Everything else makes room and starts again.
 *
 * Progress: lock-free but for the lock of the leaf; a client that waits for a lock of
 * another compute node too long rewrites the leaf (FORWARD), so that no client is
 * blocked by a holder that died or sleeps.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/block/piggyback.h"
#include "tree/block/promise.h"
#include "tree/block/values.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"
#include "tree/write/append.h"
#include "tree/write/insert.h"

/* One insert on its way. */
struct insertion
{
	struct smart_key key;
	size_t length; /* bytes to store */
	bool strict;   /* the cache has misled this insert: it takes the strict path */
	bool finished;
	bool added;
	bool unsure; /* another client may have appended the entry for this one (append.c) */
	struct smart_company company;
};

/* C7: a first entry in an empty range.  place is strict. */
static smart_status
fill_empty(struct smart_tree *tree, struct insertion *insertion, const struct smart_place *place)
{
	unsigned int lo = place->index < 0 ? 0 : smart_slot_pk(place->slot);
	int before = place->node == NULL || lo == 0 ? -1 : smart_node_cover_index(place->node, lo - 1);
	smart_slot slot = before < 0 ? 0 : place->node->words[SMART_NODE_HEAD_WORDS + before];
	size_t reserve = 0;
	smart_slot leaf;
	smart_status status;

	smart_assert(smart_slot_is_empty(place->slot) && smart_slot_pk(place->slot) == lo);
	smart_assert(tree->entered && tree->locked == 0 && !insertion->added);
	/* A whole leaf behind one that was filled to the brim, as a split at the edge leaves it where keys ascend. */
	if (smart_slot_is_leaf(slot) && smart_slot_size(slot) * SMART_UNIT >= tree->options.leaf_size)
		reserve = tree->options.leaf_size;
	status = smart_leaf_build_one(tree, &insertion->key, insertion->length, place->depth, lo,
								  smart_slot_empty_hi(place->slot), reserve, &leaf);
	if (status != SMART_OK)
		return status;
	/* Publishes the entry. */
	status = smart_place_cas(tree, place, leaf, &insertion->added);
	if (!insertion->added)
	{
		smart_retire_loser(tree, status, leaf);
		return status;
	}
	return smart_slot_activate(tree, leaf);
}

/*
 * C8, header split: the key leaves a node's compressed bytes at mismatch_at.  A
 * node there gets the old one, under its byte, and a leaf with the key; one CAS
 * of the parent's slot publishes both.
 */
static smart_status
header_split(struct smart_tree *tree, struct insertion *insertion, const struct smart_place *place)
{
	const struct smart_key *key = &insertion->key;
	unsigned int depth = place->mismatch_at;
	unsigned int old_byte = place->mismatch_byte;
	unsigned int key_byte = smart_key_byte(key, depth);
	unsigned int lo = key_byte < old_byte ? 0 : old_byte + 1;
	unsigned int hi = key_byte < old_byte ? old_byte - 1 : 255;
	unsigned int count = 0;
	smart_slot slots[3];
	smart_slot leaf;
	smart_slot node;
	smart_status status;

	smart_assert(place->kind == SMART_PLACE_MISMATCH && key_byte != old_byte && depth >= place->consumed);
	smart_assert(smart_slot_is_node(place->slot));
	status = smart_leaf_build_one(tree, key, insertion->length, depth, lo, hi, 0, &leaf);
	if (status != SMART_OK)
		return status;
	if (key_byte < old_byte)
		slots[count++] = leaf;
	else if (old_byte > 0)
		slots[count++] = smart_slot_make_empty(0, old_byte - 1);
	slots[count++] = smart_slot_with_pk(place->slot, old_byte);
	if (key_byte > old_byte)
		slots[count++] = leaf;
	else if (old_byte < 255)
		slots[count++] = smart_slot_make_empty(old_byte + 1, 255);
	smart_assert(count >= 2 && count <= 3 && smart_slot_pk(slots[0]) == 0);
	status = smart_node_build(tree, key, depth, smart_slot_pk(place->slot), slots, count, 1, &node);
	if (status != SMART_OK)
	{
		smart_retire_slot(tree, leaf);
		return status;
	}
	status = smart_place_cas(tree, place, node, &insertion->added);
	if (!insertion->added)
	{
		smart_retire_loser(tree, status, leaf);
		smart_retire_loser(tree, status, node);
		return status;
	}
	status = smart_slot_activate(tree, node);
	return status == SMART_OK ? smart_slot_activate(tree, leaf) : status;
}

/* Do the leaf's last entries ascend towards the key?  Two in a row above the sorted run are a good sign of more to come. */
static bool
ascends(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int offset = leaf->start;
	const uint8_t *previous = NULL;
	unsigned int previous_length = 0;

	if (leaf->stride != 0 && leaf->used > leaf->start)
	{
		/* Fixed suffixes: the last one tells, and the one before it. */
		const uint8_t *last = leaf->block + leaf->used - leaf->stride;

		if (smart_leaf_compare(leaf, last, leaf->stride, key) >= 0)
			return false;
		return leaf->used - leaf->start < 2 * leaf->stride || memcmp(last - leaf->stride, last, leaf->stride) < 0;
	}
	while (offset != 0 && offset < leaf->used)
	{
		bool appended = offset >= leaf->sorted_end;
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0)
			return false;
		if (appended && previous != NULL && smart_compare_bytes(previous, previous_length, suffix, length) >= 0)
			return false;
		previous = suffix;
		previous_length = length;
	}
	return previous != NULL && smart_leaf_compare(leaf, previous, previous_length, key) < 0;
}

/* May the leaf be the root's?  No other one covers all bytes but by chance. */
static inline bool
is_roots(const struct smart_leaf *leaf)
{
	return leaf->depth == 0 && leaf->lo == 0 && leaf->hi == 255;
}

/* What is to be done with a leaf that has no room for the key, as far as the leaf tells. */
struct remedy
{
	bool ascending;
	size_t bytes;       /* of a leaf with the key; 0: the leaf has no entries, or it is split where keys ascend */
	bool too_much;      /* that is more than a leaf grows to */
	unsigned int mid;   /* where it can be split; 0: not at all */
	unsigned int units; /* of the upper half's block; 0: it needs none */
};

static smart_status
choose_remedy(struct smart_tree *tree, const struct insertion *insertion, const struct smart_leaf *leaf,
			  struct remedy *remedy)
{
	const struct smart_key *key = &insertion->key;
	struct smart_list *list = &tree->list;
	smart_status status = SMART_OK;

	smart_assert(tree->locked == leaf->address && leaf->state == SMART_LIVE);
	*remedy = (struct remedy){.ascending = ascends(leaf, key)};
	if (remedy->ascending && leaf->units * SMART_UNIT >= tree->options.leaf_size && leaf->lo < leaf->hi)
		remedy->mid = smart_split_edge(key, leaf);
	list->count = 0;
	list->base = leaf->depth;
	if (remedy->mid != 0 && !is_roots(leaf))
	{
		remedy->units = smart_split_units(tree, key, insertion->length, remedy->mid, &status);
		return status;
	}
	status = smart_list_collect(tree, list, leaf, leaf->lo, leaf->hi);
	if (status == SMART_OK && list->count > 0)
	{
		status = smart_list_add(tree, list, key, insertion->length);
		if (status != SMART_OK)
			return status;
		remedy->bytes = smart_leaf_bytes_for(tree, list, 0, list->count, 0);
		remedy->too_much = !smart_leaf_fits(tree, list, 0, list->count, 0);
		smart_list_take_out(list, key, insertion->length);
	}
	if (status == SMART_OK && remedy->mid == 0 && remedy->too_much && leaf->lo < leaf->hi)
		remedy->mid = smart_split_middle(tree, key, leaf, remedy->ascending);
	if (status == SMART_OK && remedy->mid != 0)
		remedy->units = smart_split_units(tree, key, insertion->length, remedy->mid, &status);
	return status;
}

/* Takes the block for D2 ahead of D1: a leaf that stays pending for want of room could not be replaced by a removal. */
static smart_status
take_room(struct smart_tree *tree, const struct remedy *remedy)
{
	fabric_address address;
	smart_status status;

	smart_assert(tree->room == 0);
	if (remedy->units == 0)
		return SMART_OK;
	status = smart_allocate(tree, SMART_CLASS_LEAF(remedy->units), &address);
	if (status == SMART_OK)
		tree->room = smart_slot_make_leaf(0, remedy->units, address);
	return status;
}

/*
 * The strict descent of C6 to the leaf, in one batch with D1 if the leaf is to be
 * split: it need not be known to be linked, since it is live when that CAS comes about
 * (I1).  *found false: the leaf is elsewhere, or another client changed it.  *narrow: D1
 * came about.
 */
static smart_status
find_to_remedy(struct smart_tree *tree, struct insertion *insertion, const struct remedy *remedy,
			   struct smart_leaf_lock *lock, struct smart_leaf *leaf, struct smart_place *place, bool *found,
			   bool *narrow)
{
	bool early = !tree->direct && remedy->mid != 0 && !is_roots(leaf);
	struct smart_narrowing narrowing;
	smart_status status = SMART_OK;
	smart_status ended = SMART_OK;

	smart_assert(tree->locked == leaf->address && leaf->state == SMART_LIVE);
	*found = *narrow = false;
	if (early)
		status = take_room(tree, remedy);
	if (status != SMART_OK)
		return status;
	if (early)
		status = smart_narrow(tree, leaf, remedy->mid, &narrowing);
	if (status == SMART_OK)
		status = smart_find_strict(tree, &insertion->key, place);
	if (early)
		ended = smart_end_narrowing(tree, lock, leaf, &narrowing, narrow);
	/* If the leaf is elsewhere, the cache was wrong: from here on with the true slot. */
	insertion->strict = true;
	if (status != SMART_OK || ended != SMART_OK)
		return status != SMART_OK ? status : ended;
	if (place->kind != SMART_PLACE_LEAF || smart_slot_address(place->slot) != leaf->address ||
		smart_slot_size(place->slot) != leaf->units)
		return SMART_OK;
	leaf->link = place->slot;
	/* The cache learns what is changed here, and may lead the next attempt. */
	insertion->strict = tree->direct;
	*found = *narrow || !early;
	if (!*found || early || remedy->mid == 0 || place->node == NULL || smart_pending(place, leaf))
		return SMART_OK;
	if (smart_node_free_index(place->node, remedy->mid) < 0)
	{
		/* A slot for D2 is made ahead of D1, too. */
		*found = false;
		return smart_replace_node(tree, &insertion->key, place->node, false, NULL);
	}
	status = take_room(tree, remedy);
	if (status != SMART_OK)
		return status;
	status = smart_narrow(tree, leaf, remedy->mid, &narrowing);
	ended = smart_end_narrowing(tree, lock, leaf, &narrowing, narrow);
	*found = *narrow;
	smart_assert(!*narrow || leaf->hi == remedy->mid - 1);
	return status != SMART_OK ? status : ended;
}

/*
 * C6: the key finds no room, or does not share the leaf's prefix.  The lock is
 * held.  Takes one change, which may bring the key in, or else leaves it to the
 * next attempt.
 */
static smart_status
change_leaf(struct smart_tree *tree, struct insertion *insertion, struct smart_leaf_lock *lock, struct smart_leaf *leaf)
{
	const struct smart_key *key = &insertion->key;
	struct smart_rewrite rewrite = {.lock = lock};
	struct smart_place place;
	struct remedy remedy;
	size_t grown;
	bool found;
	bool flag;
	smart_status status = choose_remedy(tree, insertion, leaf, &remedy);

	smart_assert(tree->locked == leaf->address && leaf->state == SMART_LIVE && !insertion->added);
	if (status == SMART_OK)
		status = find_to_remedy(tree, insertion, &remedy, lock, leaf, &place, &found, &flag);
	if (status != SMART_OK || !found)
		return status;
	if (smart_pending(&place, leaf))
		return flag ? smart_split(tree, key, insertion->length, &place, leaf, lock, &insertion->added)
					: smart_install(tree, key, &place, leaf);
	if (flag)
		return SMART_OK; /* the upper half was installed by another client */
	/* I5: not pending, so it may be sealed. */
	if (remedy.too_much)
		return smart_down(tree, key, insertion->length, &place, leaf, lock, remedy.ascending, &insertion->added);
	/* Growing: by half, or at once to a full leaf where keys ascend, or each growth costs round trips. */
	grown = remedy.ascending || !tree->direct ? tree->options.leaf_size : leaf->units * SMART_UNIT * 3 / 2;
	rewrite.reserve = remedy.bytes == 0 || grown < remedy.bytes ? 0 : grown - remedy.bytes;
	rewrite.guest = remedy.bytes == 0 ? 0 : insertion->length;
	status = smart_replace_leaf(tree, key, &place, leaf, &rewrite, &flag);
	insertion->added = flag && rewrite.took;
	/* I3: sealed is final; the new leaf, or another client's, has the authority. */
	smart_assert(status != SMART_OK || leaf->state == SMART_SEALED);
	return status;
}

/* The same; what was taken for the change and not used goes back. */
static smart_status
make_room(struct smart_tree *tree, struct insertion *insertion, struct smart_leaf_lock *lock, struct smart_leaf *leaf)
{
	smart_status status = change_leaf(tree, insertion, lock, leaf);

	smart_retire_slot(tree, tree->room);
	tree->room = 0;
	return status;
}

/* C5, C6: the leaf is live and covers the key, and its local lock is held.  Takes the other one, appends or makes room. */
static smart_status
add_to_leaf(struct smart_tree *tree, struct insertion *insertion, struct smart_leaf_lock *lock, struct smart_leaf *leaf)
{
	const struct smart_key *key = &insertion->key;
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	bool fits = smart_leaf_prefix_matches(leaf, key) &&
				smart_leaf_takes(leaf, smart_stored_bytes(tree, (unsigned int) insertion->length - consumed),
								 tree->options.value);
	bool promises = fits && smart_promises(tree);
	bool taken = false;
	smart_status unlocked;
	smart_status status = SMART_OK;

	smart_assert(tree->locked == leaf->address && smart_leaf_covers(leaf, key));
	if (!promises)
		status = smart_leaf_take(tree, lock, leaf, &taken);
	if (status == SMART_OK && fits && (promises || taken))
	{
		status = promises ? smart_leaf_promise(tree, leaf, key, insertion->length, &insertion->added)
						  : smart_leaf_publish(tree, lock, leaf, key, insertion->length, &insertion->company,
											   &insertion->added);
		insertion->finished = status == SMART_OK && insertion->added;
		return status;
	}
	if (status == SMART_OK && taken)
		status = make_room(tree, insertion, lock, leaf);
	insertion->finished = insertion->added;
	unlocked = smart_leaf_unlock(tree, lock);
	return status != SMART_OK ? status : unlocked;
}

/* C1 to C6: the leaf's local lock is held.  READs the leaf, appends or makes room, and unlocks. */
static smart_status
insert_under_lock(struct smart_tree *tree, struct insertion *insertion, const struct smart_place *place)
{
	const struct smart_key *key = &insertion->key;
	struct smart_leaf_lock lock;
	struct smart_leaf leaf;
	bool good;
	bool help;
	bool stuck;
	smart_status status = smart_leaf_read_locked(tree, place->slot, key, &lock, &leaf, &good, &stuck);

	smart_assert((status == SMART_OK) == (tree->locked != 0));
	if (status != SMART_OK)
		return status;
	if (!good && stuck)
	{
		smart_unlock_local(tree);
		insertion->strict = true;
		return smart_forward(tree, key, leaf.address);
	}
	if (!good || leaf.state != SMART_LIVE || leaf.depth != place->depth || !smart_leaf_covers(&leaf, key))
	{
		/* C3: not what the slot promised, or changing. */
		help = good && insertion->strict;
		smart_unlock_local(tree);
		insertion->strict = true;
		return help ? smart_forward(tree, key, leaf.address) : SMART_OK;
	}
	/* C4: a live leaf answers, whoever has locked it (I1). */
	if (smart_leaf_prefix_matches(&leaf, key) && !smart_leaf_ends_below(&leaf, key) && smart_leaf_contains(&leaf, key))
	{
		status = smart_promise_vouch(tree, &leaf, key, &insertion->finished);
		insertion->added = insertion->finished && insertion->unsure;
		smart_unlock_local(tree);
		return status;
	}
	if (stuck)
	{
		smart_unlock_local(tree);
		return smart_forward(tree, key, leaf.address);
	}
	return add_to_leaf(tree, insertion, &lock, &leaf);
}

/* The place is a leaf. */
static smart_status
insert_at_leaf(struct smart_tree *tree, struct insertion *insertion, const struct smart_place *place)
{
	const struct smart_key *key = &insertion->key;
	struct smart_services *services = tree->services;
	enum smart_appended appended = SMART_APPENDED_NOT;
	enum smart_combined combined;
	bool settled;
	smart_status status = smart_leaf_lock_or_combine(tree, place->slot, key, insertion->length, &combined);

	smart_assert(place->kind == SMART_PLACE_LEAF && !insertion->finished);
	insertion->unsure |= combined == SMART_COMBINED_UNKNOWN;
	if (status != SMART_OK)
		return status;
	/* Handed in, or locked. */
	smart_assert((combined == SMART_COMBINED_ADDED || combined == SMART_COMBINED_THERE) == (tree->locked == 0));
	if (combined == SMART_COMBINED_ADDED || combined == SMART_COMBINED_THERE)
	{
		insertion->finished = true;
		insertion->added = combined == SMART_COMBINED_ADDED || insertion->unsure;
		return SMART_OK;
	}
	/*
	 * One round trip, if there is a hint of the leaf.  Not if other clients wait with entries: taking these along needs
	 * the leaf's copy, and saves more.
	 */
	if (tree->hints && !insertion->strict &&
		(services->is_awaited == NULL || !services->is_awaited(services, smart_slot_address(place->slot))))
		status = smart_append_by_leaf_hint(tree, place, key, insertion->length, &appended);
	else if (tree->copies && !insertion->strict)
		status = smart_append_by_copy(tree, place, key, insertion->length, &appended);
	settled = appended == SMART_APPENDED_ADDED || appended == SMART_APPENDED_TWICE;
	if (status != SMART_OK || settled || tree->locked == 0)
	{
		insertion->finished = status == SMART_OK && settled;
		insertion->added = insertion->finished && (appended == SMART_APPENDED_ADDED || insertion->unsure);
		if (tree->locked != 0)
			smart_unlock_local(tree);
		return status;
	}
	/* A leaf hint that tells of no room shows that the node above will be wanted. */
	smart_piggyback_plan(tree, place, appended == SMART_APPENDED_FULL);
	status = insert_under_lock(tree, insertion, place);
	smart_piggyback_forget(tree);
	return status;
}

static smart_status
insert_once(struct smart_tree *tree, struct insertion *insertion)
{
	struct smart_place place = {.kind = SMART_PLACE_UNKNOWN};
	smart_status status = SMART_OK;

	smart_assert(tree->entered && tree->locked == 0 && !insertion->finished);
	if (!insertion->strict)
	{
		status = smart_find_fast(tree, &insertion->key, &place);
		if (tree->direct && place.kind == SMART_PLACE_LEAF)
			smart_remember_leaf(tree, &insertion->key, &place);
	}
	if (status == SMART_OK && place.kind != SMART_PLACE_LEAF)
		status = smart_find_strict(tree, &insertion->key, &place);
	if (status != SMART_OK)
		return status;
	switch (place.kind)
	{
		case SMART_PLACE_EMPTY:
			status = fill_empty(tree, insertion, &place);
			break;
		case SMART_PLACE_MISMATCH:
			status = header_split(tree, insertion, &place);
			break;
		default:
			return insert_at_leaf(tree, insertion, &place);
	}
	insertion->finished = insertion->added;
	return status;
}

static smart_status
insert(struct smart_tree *tree, const uint8_t *entry, size_t key_length, size_t length, struct smart_company company,
	   bool *added)
{
	struct insertion insertion = {.key = {.bytes = entry, .length = (uint32_t) key_length},
								  .length = length,
								  .company = company};
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	unsigned int attempts = 0;
	smart_status status;

	if (key_length == 0 || key_length > SMART_KEY_MAX || length > SMART_ENTRY_MAX || length < key_length)
		return SMART_TOO_LONG;
	if (tree->options.value)
	{
		if (length != key_length + SMART_VALUE_BYTES || !smart_value_is_behind(tree, entry, key_length))
			return SMART_TOO_LONG;
		insertion.length = key_length;
	}
	smart_assert(tree->options.fixed_length == 0 || tree->options.fixed_length == insertion.length);
	/* A1: no cached result for this equality prefix while it may change. */
	if (tree->results && !SMART_FAULT(lateblock))
		blocked = smart_block(tree, entry, key_length);
	smart_enter(tree);
	do
	{
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = insert_once(tree, &insertion);
		smart_assert(tree->locked == 0);
	} while (status == SMART_OK && !insertion.finished);
	status = smart_leave(tree, status);
	if (tree->results && SMART_FAULT(lateblock))
		blocked = smart_block(tree, entry, key_length);
	/* If another client took the entry and did not tell in time (append.c), it may be added at any time. */
	if (status != SMART_TIMEOUT)
		smart_unblock(tree, &blocked);
	if (status == SMART_OK)
		*added = insertion.added;
	return status;
}

smart_status
smart_tree_insert(struct smart_tree *tree, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	return insert(tree, entry, key_length, length, (struct smart_company){.count = 0}, added);
}

smart_status
smart_insert_first(struct smart_tree *tree, struct smart_addition *additions, unsigned int count)
{
	struct smart_company company = {.next = additions + 1};
	smart_status status;

	smart_assert(count > 0 && !additions->settled);
	/* Cached results are blocked for one equality prefix at a time. */
	if (tree->direct && !tree->options.value && !tree->results)
		company.count = count - 1;
	status = insert(tree, additions->bytes, additions->key_length, additions->length, company, &additions->added);
	additions->settled = status == SMART_OK;
	return status;
}
