/*
 * remove.c
 *	  REMOVE: a leaf is sealed and replaced by a copy without the entry, or entries.
 *
 * The commit is the CAS of the leaf's slot, by this client itself: if another client
 * replaced the sealed leaf, the entries are still there.
 *
 * Progress: as insert.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"
#include "tree/structure/standby.h"
#include "tree/structure/strict.h"
#include "tree/write/remove.h"

/* Attempts to put a leaf back that lies in a standby. */
#define SETTLE_ATTEMPTS 8

void
smart_unblock_points(struct smart_tree *tree, struct smart_blocked_points *blocked)
{
	while (blocked != NULL && blocked->count > 0)
		smart_unblock(tree, &blocked->points[--blocked->count]);
}

/* Not if it is about one key, and that is not there. */
static bool
wants_rewrite(const struct smart_leaf_removal *removal, const struct smart_leaf *leaf)
{
	return !removal->only_if_there || smart_leaf_contains(leaf, &removal->key);
}

/*
 * The leaf is locked and live, or was found strictly and is sealed.  Strict; install if pending; seal and replace.  Lost
 * with the same leaf still there (a frozen node's copy, say): once more.
 */
static smart_status
remove_locked(struct smart_tree *tree, struct smart_leaf_removal *removal, struct smart_leaf_lock *lock,
			  struct smart_leaf *leaf)
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
		smart_unblock_points(tree, removal->blocked);
		status = smart_replace_leaf(tree, &removal->key, &place, leaf, &rewrite, &removal->finished);
		/* I3: sealed, so that nothing comes into the leaf any more, whichever client wins the slot. */
		smart_assert(status != SMART_OK || leaf->state == SMART_SEALED);
		if (status != SMART_OK || removal->finished)
			return status;
	}
}

/* The leaf covers the key, and its local lock is held.  If it is live, the other lock is taken first. */
static smart_status
remove_from_leaf(struct smart_tree *tree, struct smart_leaf_removal *removal, struct smart_leaf_lock *lock,
				 struct smart_leaf *leaf)
{
	bool taken = true;
	smart_status unlocked;
	smart_status status = SMART_OK;

	smart_assert(tree->locked == leaf->address && (leaf->state == SMART_LIVE || leaf->state == SMART_SEALED));
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
remove_once(struct smart_tree *tree, struct smart_leaf_removal *removal)
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

	smart_assert(tree->entered && tree->locked == 0);
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

smart_status
smart_remove_from_leaf(struct smart_tree *tree, struct smart_leaf_removal *removal)
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
			smart_unblock_points(tree, removal->blocked);
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
	smart_unblock_points(tree, removal->blocked);
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
	struct smart_leaf_removal removal = {.key = {.bytes = key_bytes, .length = (uint32_t) key_length},
										 .only_if_there = true};
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	smart_status status;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	removal.drop = (struct smart_drop){.dead = is_key, .argument = &removal.key};
	/* A1: no cached result for this equality prefix while it may change. */
	if (tree->results && !SMART_FAULT(lateblock))
		blocked = smart_block(tree, key_bytes, key_length);
	smart_enter(tree);
	status = smart_leave(tree, smart_remove_from_leaf(tree, &removal));
	smart_standby_release(tree);
	if (tree->results && SMART_FAULT(lateblock))
		blocked = smart_block(tree, key_bytes, key_length);
	smart_unblock(tree, &blocked);
	if (status == SMART_OK)
		*removed = removal.drop.count > 0;
	return status;
}
