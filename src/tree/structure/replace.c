/*
 * replace.c
 *	  SEAL and REPLACE-LEAF: a leaf's content becomes final, and then its slot goes
 *	  over to a copy, by one CAS each.
 *
 * A leaf that was sealed is finished by the first client that meets it; nothing is
 * undone.  Progress: lock-free.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/block/values.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/structure/change.h"
#include "tree/structure/standby.h"

bool
smart_pending(const struct smart_place *place, const struct smart_leaf *leaf)
{
	if (place->node == NULL || leaf->hi == 255)
		return false;
	if (SMART_FAULT(standsrule))
		return smart_node_next_pk(place->node, leaf->hi) != leaf->hi + 1;
	return smart_node_cover_index(place->node, leaf->hi + 1) == place->index;
}

smart_status
smart_seal(struct smart_tree *tree, struct smart_leaf *leaf, bool *sealed)
{
	uint64_t desired = smart_meta_sealed(leaf->meta);
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	uint64_t seen;
	smart_status status;

	smart_assert(tree->entered && (leaf->state == SMART_LIVE || leaf->state == SMART_SEALED));
	*sealed = leaf->state == SMART_SEALED;
	if (*sealed)
		return SMART_OK;
	if (!SMART_FAULT(freehint))
		blocked = smart_leaf_hint_block(tree, leaf->link);
	status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, &seen);
	(void) smart_leaf_hint_unblock(tree, &blocked);
	if (status == SMART_OK && seen == leaf->meta)
	{
		leaf->meta = desired;
		leaf->state = SMART_SEALED;
		*sealed = true;
	}
	/* I3: sealed is final, and only the state has changed, and the lock. */
	smart_assert(!*sealed || (smart_meta_state(leaf->meta) == SMART_SEALED && smart_meta_hi(leaf->meta) == leaf->hi));
	return status;
}

smart_status
smart_settle_values(struct smart_tree *tree, struct smart_leaf *leaf, struct smart_leaf_lock **lock, bool *gone)
{
	uint64_t sealed = smart_meta_sealed(leaf->meta);
	uint64_t met = leaf->meta;
	smart_status status = SMART_OK;

	*gone = false;
	if ((leaf->meta & SMART_META_UPDATED) == 0)
		return SMART_OK;
	smart_assert(tree->options.value && tree->options.shared && (*lock != NULL || leaf->state == SMART_SEALED));
	if (*lock != NULL)
	{
		status = smart_word_cas(tree, (*lock)->word_address, leaf->meta, sealed, &met);
		/* Sealed in any case, or it was replaced since another client sealed it: its lock is nobody's. */
		(*lock)->meta = 0;
		*lock = NULL;
		if (status != SMART_OK)
			return status;
		*gone = met != leaf->meta && met != sealed;
		leaf->meta = sealed;
		leaf->state = SMART_SEALED;
	}
	return *gone ? SMART_OK : smart_values_freeze(tree, leaf, 0, gone);
}

smart_status
smart_place_cas(struct smart_tree *tree, const struct smart_place *place, smart_slot desired, bool *won)
{
	uint64_t seen = 0;
	smart_status status;

	smart_assert(place->slot_address != 0 && (place->node != NULL || place->index < 0 || tree->direct));
	status = smart_link(tree, place->slot_address, place->slot, desired, NULL, &seen);
	*won = status == SMART_OK && seen == place->slot;
	if (*won)
		smart_slot_changed(tree, place->node == NULL ? 0 : place->node->link, place->index, place->slot, desired);
	return status;
}

/*
 * The lock's holder knows what can happen to meta: another client seals the leaf, as it is.  So SEAL needs
 * no outcome before the slot's CAS: they go in one batch.  With SEAL the leaf is no client's any more.
 */
smart_status
smart_end_leaf(struct smart_tree *tree, const struct smart_place *place, struct smart_leaf *leaf,
			   struct smart_leaf_lock *lock, smart_slot desired, bool *won)
{
	uint64_t sealed = smart_meta_sealed(leaf->meta);
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	uint64_t met = sealed;
	smart_status status = SMART_OK;

	smart_assert(leaf->state == (lock == NULL ? SMART_SEALED : SMART_LIVE) && place->slot == leaf->link);
	smart_assert(lock == NULL || (lock->leaf == leaf->address && tree->locked == leaf->address));
	*won = false;
	if (lock != NULL && !SMART_FAULT(freehint))
		blocked = smart_leaf_hint_block(tree, leaf->link);
	if (lock != NULL)
		status = smart_post_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, sealed, &met);
	/* Publishes what comes in the leaf's place; a frozen slot makes it fail, and the next strict descent helps. */
	if (status == SMART_OK)
		status = smart_place_cas(tree, place, desired, won);
	if (lock != NULL)
		lock->meta = 0;
	(void) smart_leaf_hint_unblock(tree, &blocked);
	/* With values: replaced by another client, and wiped (V4). */
	if (status == SMART_OK && met == 0 && tree->options.value)
		met = sealed;
	if (status == SMART_OK && met != leaf->meta && met != sealed)
	{
		*won = false;
		return SMART_CORRUPT;
	}
	if (status != SMART_OK)
		return status;
	leaf->meta = sealed;
	leaf->state = SMART_SEALED;
	return SMART_OK;
}

/*
 * Makes the leaf's copy from the list.  One of a removal has to come about somehow, since it is what makes room; any
 * other rather fails than be as full as before.
 */
static smart_status
build_copy(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf,
		   const struct smart_rewrite *rewrite, smart_slot *copy)
{
	const struct smart_list *list = &tree->list;
	size_t needed;
	size_t reserve;
	smart_status status;

	status = smart_leaf_build(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, rewrite->reserve, copy);
	if (!smart_no_room(status) || !tree->removing)
		return status;
	/*
	 * What is left to try when there is no room for a block that just fits: a longer one.  First as long as the old
	 * one, since the replacements before this one have given such blocks back.
	 */
	needed = smart_leaf_bytes_for(tree, list, 0, list->count, 0);
	reserve = leaf->units * SMART_UNIT > needed ? leaf->units * SMART_UNIT - needed : 0;
	status = smart_leaf_build(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, reserve, copy);
	for (reserve = SMART_UNIT; smart_no_room(status) && needed + reserve <= tree->options.leaf_size;
		 reserve += SMART_UNIT)
		status = smart_leaf_build(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, reserve, copy);
	if (smart_no_room(status))
		status = smart_standby_build(tree, key, leaf, copy, status);
	return status;
}

void
smart_drop_entries(struct smart_list *list, const struct smart_leaf *leaf, struct smart_drop *drop)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++)
	{
		if (!drop->dead(drop->argument, leaf, list->refs[i].tail, list->refs[i].tail_length))
			list->refs[kept++] = list->refs[i];
	}
	drop->count = list->count - kept;
	drop->kept = kept;
	drop->depth = leaf->depth;
	drop->lo = leaf->lo;
	drop->hi = leaf->hi;
	list->count = kept;
}

smart_status
smart_replace_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
				   struct smart_leaf *leaf, struct smart_rewrite *rewrite, bool *won)
{
	struct smart_list *list = &tree->list;
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	bool mends = tree->mends;
	bool gone;
	smart_slot copy;
	uint64_t seen;
	smart_status status;

	smart_assert(place->slot == leaf->link && !smart_slot_frozen(place->slot));
	smart_assert(leaf->state == (rewrite->lock == NULL ? SMART_SEALED : SMART_LIVE) && leaf->lo <= leaf->hi);
	*won = rewrite->took = false;
	list->count = 0;
	status = smart_settle_values(tree, leaf, &rewrite->lock, &gone);
	if (status != SMART_OK || gone)
		return status;
	status = smart_list_collect(tree, list, leaf, leaf->lo, leaf->hi);
	if (status != SMART_OK)
		return status;
	if (rewrite->drop != NULL)
		smart_drop_entries(list, leaf, rewrite->drop);
	if (rewrite->guest > 0)
		status = smart_list_try_add(tree, list, key, rewrite->guest, &rewrite->took);
	copy = smart_slot_make_empty(leaf->lo, leaf->hi);
	/* A copy gives back what it takes: it leaves alone what is set apart for changes that do not. */
	tree->mends = false;
	if (status == SMART_OK && list->count > 0)
		status = build_copy(tree, key, leaf, rewrite, &copy);
	tree->mends = mends;
	if (status != SMART_OK)
		return status;
	/* What takes the leaf's place has its range. */
	smart_assert(smart_slot_is_range(copy) && smart_slot_pk(copy) == leaf->lo);
	smart_assert(smart_slot_is_leaf(copy) ? list->count > 0 : smart_slot_empty_hi(copy) == leaf->hi);
	if (smart_slot_is_leaf(copy))
		blocked = smart_leaf_hint_block(tree, copy);
	status = smart_end_leaf(tree, place, leaf, rewrite->lock, copy, won);
	if (!*won)
	{
		(void) smart_leaf_hint_unblock(tree, &blocked);
		smart_standby_lost(tree, status, copy);
		/* Although another client may have finished what this one began. */
		if (SMART_FAULT(rollback) && leaf->state == SMART_SEALED)
			smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta,
						   smart_meta_with_state(leaf->meta, SMART_LIVE), &seen);
		return status;
	}
	smart_assert(leaf->state == SMART_SEALED);
	if (smart_standby_swap(tree, place->slot, copy))
	{
		(void) smart_leaf_hint_unblock(tree, &blocked);
		return SMART_OK;
	}
	smart_leaf_hint_begin(tree, copy, key, &blocked);
	return smart_slot_activate(tree, copy);
}
