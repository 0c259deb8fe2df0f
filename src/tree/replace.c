/*
 * replace.c
 *	  SEAL, REPLACE-LEAF and FORWARD: a leaf's content becomes final, and then
 *	  its slot goes over to a copy, by one CAS each.
 *
 * A leaf that was sealed is finished by whoever meets it; nothing is undone.
 * Progress: lock-free.
 */
#include "tree/internal.h"

/*
 * SEAL: live -> sealed, from the exact value read.  Only for a leaf that is not
 * pending in a strict view newer than that value.  *sealed false: it changed.
 */
smart_status
smart_seal(struct smart_tree *tree, struct smart_leaf *leaf, bool *sealed)
{
	uint64_t desired = smart_meta_with_state(leaf->meta, SMART_SEALED);
	struct smart_blocked blocked = {.gate = SMART_GATE_NONE};
	uint64_t seen;
	smart_status status;

	smart_assert(leaf->state == SMART_LIVE || leaf->state == SMART_SEALED);
	*sealed = leaf->state == SMART_SEALED;
	if (*sealed)
		return SMART_OK;
	if (!SMART_FAULT(freestub))
		blocked = smart_stub_block(tree, leaf->link);
	status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, &seen);
	(void) smart_stub_unblock(tree, &blocked);
	if (status == SMART_OK && seen == leaf->meta)
	{
		leaf->meta = desired;
		leaf->state = SMART_SEALED;
		*sealed = true;
	}
	return status;
}

/*
 * The CAS of the slot of a leaf that ends; *won: it leads to desired now.  lock NULL:
 * the leaf is sealed.  Else it is live, not pending in a strict view newer than its
 * meta, and the caller holds its lock: then all that can happen to meta is that
 * somebody else seals it, as it is.  So SEAL needs no answer before the slot's CAS:
 * they go in one batch, and the rear lock is let go behind them.
 */
smart_status
smart_end_leaf(struct smart_tree *tree, const struct smart_place *place, struct smart_leaf *leaf,
			   struct smart_leaf_lock *lock, smart_slot desired, bool *won)
{
	uint64_t sealed = smart_meta_with_state(leaf->meta, SMART_SEALED);
	struct smart_blocked blocked = {.gate = SMART_GATE_NONE};
	uint64_t met = sealed;
	uint64_t seen = 0;
	smart_status status = SMART_OK;

	smart_assert(leaf->state == (lock == NULL ? SMART_SEALED : SMART_LIVE) && place->slot == leaf->link);
	*won = false;
	if (lock != NULL && !SMART_FAULT(freestub))
		blocked = smart_stub_block(tree, leaf->link);
	if (lock != NULL)
		status = smart_post_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, sealed, &met);
	/* Publishes what comes in the leaf's place; a frozen slot makes it fail, and the next strict descent helps. */
	if (status == SMART_OK)
		status = smart_link_and_unlock(tree, place->slot_address, place->slot, desired, lock, &seen);
	(void) smart_stub_unblock(tree, &blocked);
	if (status == SMART_OK && met != leaf->meta && met != sealed)
		return SMART_CORRUPT;
	if (status != SMART_OK)
		return status;
	leaf->meta = sealed;
	leaf->state = SMART_SEALED;
	*won = seen == place->slot;
	if (*won)
		smart_slot_changed(tree, place->node == NULL ? 0 : place->node->link, place->index, place->slot, desired);
	return SMART_OK;
}

/* Removes from the list what the rewrite leaves out. */
static void
drop_entries(struct smart_list *list, const struct smart_leaf *leaf, struct smart_drop *drop)
{
	uint32_t kept = 0;

	drop->count = 0;
	for (uint32_t i = 0; i < list->count; i++)
	{
		if (drop->dead(drop->argument, leaf, list->refs[i].tail, list->refs[i].tail_length))
			drop->count++;
		else
			list->refs[kept++] = list->refs[i];
	}
	list->count = kept;
	drop->kept = kept;
	drop->depth = leaf->depth;
	drop->lo = leaf->lo;
	drop->hi = leaf->hi;
}

/* What is left to try when there is no room for a block that just fits: a longer one. */
static smart_status
build_copy_longer(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf, smart_slot *copy)
{
	const struct smart_list *list = &tree->list;
	size_t needed = smart_leaf_bytes_for(tree, list, 0, list->count, 0);
	size_t old = leaf->units * SMART_UNIT;
	smart_status status;

	/* First as long as the old one: the replacements before this one have given such blocks back. */
	status = smart_leaf_build(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count,
							  old > needed ? old - needed : 0, copy);
	for (size_t more = SMART_UNIT; smart_no_room(status) && needed + more <= tree->options.leaf_size;
		 more += SMART_UNIT)
		status = smart_leaf_build(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, more, copy);
	return status;
}

/*
 * Makes the leaf's copy from the list.  One that drops entries has to come about
 * somehow, since it is what makes room; any other had better fail than be as
 * full as before.
 */
static smart_status
build_copy(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf,
		   const struct smart_rewrite *rewrite, smart_slot *copy)
{
	const struct smart_list *list = &tree->list;
	smart_status status;

	if (list->count == 0)
	{
		*copy = smart_slot_make_empty(leaf->lo, leaf->hi);
		return SMART_OK;
	}
	status = smart_leaf_build(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, rewrite->reserve, copy);
	if (smart_no_room(status) && rewrite->drop != NULL)
		status = build_copy_longer(tree, key, leaf, copy);
	return status;
}

/*
 * REPLACE-LEAF.  place is strict and its slot leads to leaf; rewrite->lock as in
 * smart_end_leaf.  The copy holds the entries up to hi but those that drop names, or is an empty
 * range.  *won: our CAS took the slot over (and with it, drops and the guest took
 * effect).
 */
smart_status
smart_replace_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
				   struct smart_leaf *leaf, struct smart_rewrite *rewrite, bool *won)
{
	struct smart_list *list = &tree->list;
	struct smart_blocked blocked = {.gate = SMART_GATE_NONE};
	smart_slot copy;
	smart_status status;

	smart_assert(place->slot == leaf->link && !smart_slot_frozen(place->slot));
	*won = false;
	list->count = 0;
	status = smart_list_collect(tree, list, leaf, leaf->lo, leaf->hi);
	if (status != SMART_OK)
		return status;
	if (rewrite->drop != NULL)
		drop_entries(list, leaf, rewrite->drop);
	rewrite->took = false;
	if (rewrite->guest > 0)
		status = smart_list_try_add(tree, list, key, rewrite->guest, &rewrite->took);
	if (status != SMART_OK)
		return status;
	status = build_copy(tree, key, leaf, rewrite, &copy);
	if (status != SMART_OK)
		return status;
	if (smart_slot_is_leaf(copy))
		blocked = smart_stub_block(tree, copy);
	status = smart_end_leaf(tree, place, leaf, rewrite->lock, copy, won);
	if (!*won)
	{
		(void) smart_stub_unblock(tree, &blocked);
		smart_retire_loser(tree, status, copy);
		if (SMART_FAULT(rollback) && leaf->state == SMART_SEALED)
			smart_fault_rollback(tree, leaf);
		return status;
	}
	smart_stub_begin(tree, copy, key, &blocked);
	status = smart_slot_activate(tree, copy);
	smart_retire_slot(tree, place->slot);
	return status;
}

/* Is the rear lock of this leaf held?  Only shared trees use it. */
static smart_status
rear_locked(struct smart_tree *tree, const struct smart_leaf *leaf, bool *locked)
{
	uint64_t word = 0;
	smart_status status = SMART_OK;

	if (tree->options.shared)
		status = smart_word_read(tree, smart_leaf_lock_address(leaf->address, leaf->units), &word);
	*locked = word != 0;
	return status;
}

/*
 * FORWARD: brings a leaf that somebody left new, pending, sealed or locked one
 * step on.  The second descent makes sure that the view is newer than the meta.
 */
smart_status
smart_forward(struct smart_tree *tree, const struct smart_key *key, fabric_address address)
{
	struct smart_rewrite rewrite = {.drop = NULL};
	struct smart_place place;
	struct smart_leaf leaf;
	bool good;
	bool flag;
	smart_status status = smart_find_strict(tree, key, &place);

	if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || smart_slot_address(place.slot) != address)
		return status;
	status = smart_leaf_read(tree, place.slot, key, tree->leaf_buffer, &leaf, &good);
	if (status != SMART_OK || !good)
		return status;
	status = smart_find_strict(tree, key, &place);
	if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || place.slot != leaf.link)
		return status;
	if (leaf.state == SMART_NEW)
		return smart_leaf_activate(tree, &leaf);
	if (smart_pending(&place, &leaf))
		return smart_install(tree, key, &place, &leaf);
	if (leaf.state == SMART_LIVE)
	{
		status = rear_locked(tree, &leaf, &flag);
		if (status != SMART_OK || !flag)
			return status;
		status = smart_seal(tree, &leaf, &flag);
		if (status != SMART_OK || !flag)
			return status;
	}
	return smart_replace_leaf(tree, key, &place, &leaf, &rewrite, &flag);
}
