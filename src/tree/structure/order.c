/*
 * order.c
 *	  A leaf that is put in order: REPLACE-LEAF, by a reader.
 *
 * Progress: it waits for nobody.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"
#include "tree/structure/order.h"
#include "tree/structure/strict.h"

/* The leaf is locked, and as it was read since. */
static smart_status
replace(struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf, struct smart_leaf_lock *lock)
{
	/* With as much room as it has. */
	struct smart_rewrite rewrite = {.reserve = smart_leaf_room(leaf), .lock = lock};
	struct smart_place place;
	bool won;
	smart_status status = smart_find_strict(tree, key, &place);

	if (status == SMART_OK && place.kind == SMART_PLACE_LEAF && place.slot == leaf->link &&
		!smart_pending(&place, leaf))
		status = smart_replace_leaf(tree, key, &place, leaf, &rewrite, &won);
	return smart_no_room(status) || status == SMART_NO_MEMORY ? SMART_OK : status;
}

smart_status
smart_order_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *seen)
{
	struct smart_leaf_lock lock;
	struct smart_leaf leaf;
	smart_status unlocked;
	bool good;
	bool stuck;
	smart_status status;

	smart_assert(smart_tree_is_swept(tree));
	if (!smart_try_lock_local(tree, seen->link))
		return SMART_OK;
	status = smart_leaf_read_locked(tree, seen->link, key, &lock, &leaf, &good, &stuck);
	if (status != SMART_OK)
		return status;
	if (SMART_FAULT(oldorder))
		leaf = *seen;
	if (good && smart_leaf_covers(&leaf, key) && smart_leaf_wants_order(&leaf))
		status = replace(tree, key, &leaf, &lock);
	unlocked = smart_leaf_unlock(tree, &lock);
	return status != SMART_OK ? status : unlocked;
}
