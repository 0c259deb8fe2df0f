/*
 * split.c
 *	  SPLIT and INSTALL: a leaf gives away the upper part of its range.
 *
 * D1 narrows the leaf's hi by one CAS on meta.  From then on the leaf is pending
 * (I5): its entries above hi stay authoritative until D2, INSTALL, puts a slot
 * for byte hi + 1 into the node, by one CAS, done by the first client that comes.  D3
 * drops the entries above hi from the leaf.
 *
 * Progress: lock-free; no client waits for the one that narrowed.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/block/values.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"

unsigned int
smart_choose_cut(const struct smart_list *list, unsigned int position, unsigned int key_byte, bool ascending)
{
	unsigned int last = smart_ref_byte(&list->refs[list->count - 1], position);
	unsigned int byte = smart_ref_byte(&list->refs[0], position);
	unsigned int cut = 0;
	size_t total = 0;
	size_t below = 0;
	size_t best = SIZE_MAX;

	if (ascending && key_byte > last)
		return last + 1;
	for (uint32_t i = 0; i < list->count; i++)
		total += smart_ref_length(&list->refs[i]);
	for (uint32_t i = 0; i + 1 < list->count; i++)
	{
		unsigned int next = smart_ref_byte(&list->refs[i + 1], position);
		size_t distance;

		below += smart_ref_length(&list->refs[i]);
		if (next == byte)
			continue;
		byte = next;
		distance = 2 * below > total ? 2 * below - total : total - 2 * below;
		if (distance < best)
		{
			best = distance;
			cut = next;
		}
		/* All that follow are farther from the middle. */
		if (2 * below >= total)
			return ascending && key_byte == last ? last : cut;
	}
	return cut;
}

/*
 * Room for the halves of a leaf, in bytes.  Entries of one length fill the
 * leaves of a tree in step: were the halves to grow through several sizes, each
 * size's slabs would be left with holes when the leaves go on to the next.  On memory
 * nodes each size costs round trips.
 */
static size_t
room_for_half(const struct smart_tree *tree)
{
	return tree->options.fixed_length != 0 || !tree->direct ? tree->options.leaf_size : 0;
}

unsigned int
smart_split_units(struct smart_tree *tree, const struct smart_key *key, size_t length, unsigned int mid,
				  smart_status *status)
{
	struct smart_list *list = &tree->list;
	size_t reserve = room_for_half(tree);
	uint32_t from = 0;
	bool guest = false;
	unsigned int units;

	while (from < list->count && smart_ref_byte(&list->refs[from], 0) < mid)
		from++;
	if (smart_key_byte(key, list->base) >= mid)
	{
		if (from == list->count)
			reserve = tree->options.leaf_size;
		*status = smart_list_add(tree, list, key, length);
		if (*status != SMART_OK)
			return 0;
		guest = true;
	}
	if (from == list->count)
		return 0;
	units = smart_leaf_units_for(tree, list, from, list->count, 0, reserve);
	if (guest)
	{
		bool fits = smart_leaf_fits(tree, list, from, list->count, 0);

		smart_list_take_out(list, key, length);
		if (from < list->count && !fits)
			units = smart_leaf_units_for(tree, list, from, list->count, 0, reserve);
	}
	return units;
}

/* The greatest byte at its depth among a leaf's entries, those above hi included; -1: malformed. */
static int
greatest_byte(const struct smart_leaf *leaf)
{
	unsigned int offset = leaf->start;
	unsigned int greatest = 0;

	if (leaf->prefix_length > 0)
		return smart_leaf_prefix(leaf)[0];
	/* Of the sorted run, the last one. */
	if (leaf->stride != 0 && leaf->sorted_end > offset)
		offset = leaf->sorted_end - leaf->stride;
	while (offset < leaf->used)
	{
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0)
			return -1;
		greatest = suffix[0] > greatest ? suffix[0] : greatest;
	}
	return (int) greatest;
}

/* Bytes of an entry for INSTALL to take in; *added: it did. */
struct guest
{
	size_t length; /* the key's; 0: none */
	bool added;
};

/*
 * The upper half [mid..end] of a leaf: its entries there are in tree->list.  It takes the
 * guest in if it belongs there and finds room.
 */
static smart_status
build_upper(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf, unsigned int mid,
			unsigned int end, struct guest *guest, smart_slot *upper)
{
	struct smart_list *list = &tree->list;
	unsigned int byte = smart_key_byte(key, leaf->depth);
	size_t reserve = room_for_half(tree);
	smart_status status = SMART_OK;

	if (guest->length > 0 && byte >= mid && byte <= end)
	{
		/* The first one behind a full leaf, where keys ascend. */
		if (list->count == 0)
			reserve = tree->options.leaf_size;
		list->base = leaf->depth;
		status = smart_list_try_add(tree, list, key, guest->length, &guest->added);
	}
	if (status != SMART_OK)
		return status;
	if (list->count > 0)
		return smart_leaf_build(tree, key, leaf->depth, mid, end, list, 0, list->count, reserve, upper);
	*upper = smart_slot_make_empty(mid, end);
	return SMART_OK;
}

/* Fault anyempty: any unused slot; -1: none. */
static int
any_index(struct smart_tree *tree, const struct smart_node *node)
{
	unsigned int first = (unsigned int) (tree->env->random(tree->env) % node->slots);

	for (unsigned int i = 0; i < node->slots; i++)
	{
		unsigned int index = (first + i) % node->slots;

		if (node->words[SMART_NODE_HEAD_WORDS + index] == 0)
			return (int) index;
	}
	return -1;
}

/* INSTALL, as below; *won: it was this client that did it.  lock: NULL, or the leaf's, which is let go with it. */
static smart_status
install(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
		const struct smart_leaf *leaf, struct smart_leaf_lock *lock, struct guest *guest, bool *won)
{
	unsigned int mid = leaf->hi + 1;
	unsigned int end = smart_node_next_pk(place->node, leaf->hi) - 1;
	int index = SMART_FAULT(anyempty) ? any_index(tree, place->node) : smart_node_free_index(place->node, mid);
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	bool gone = false;
	smart_slot upper;
	uint64_t seen;
	smart_status status = SMART_OK;

	/* I5: pending, hence not sealed, in a view that is newer than its meta. */
	smart_assert(smart_slot_address(place->slot) == leaf->address && leaf->state == SMART_LIVE);
	smart_assert(smart_pending(place, leaf) && mid <= end && end <= 255);
	*won = false;
	if (index < 0)
		return smart_replace_node(tree, key, place->node, false, NULL);
	/* I3: slots fill in index order. */
	smart_assert(SMART_FAULT(anyempty) || place->node->kind == SMART_NODE_256 ||
				 (index > 0 && smart_slot_used(place->node->words[SMART_NODE_HEAD_WORDS + index - 1])));
	tree->list.count = 0;
	/* V3: no value above hi changes any more. */
	if (tree->options.value)
		status = smart_values_freeze(tree, leaf, mid, &gone);
	if (status != SMART_OK || gone)
		return status;
	if (greatest_byte(leaf) >= (int) mid)
		status = smart_list_collect(tree, &tree->list, leaf, mid, end);
	if (status == SMART_OK)
		status = build_upper(tree, key, leaf, mid, end, guest, &upper);
	if (status != SMART_OK)
		return status;
	smart_assert(smart_slot_pk(upper) == mid && (!guest->added || smart_slot_is_leaf(upper)));
	if (smart_slot_is_leaf(upper))
		blocked = smart_leaf_hint_block(tree, upper);
	/* Publishes the upper half: the leaf's own slot stops covering mid and above. */
	status =
		smart_link(tree, smart_node_slot_address(place->node->address, (unsigned int) index), 0, upper, lock, &seen);
	*won = status == SMART_OK && seen == 0;
	guest->added &= *won;
	if (!*won)
	{
		(void) smart_leaf_hint_unblock(tree, &blocked);
		smart_retire_loser(tree, status, upper);
		return status;
	}
	smart_leaf_hint_begin(tree, upper, key, &blocked);
	smart_slot_changed(tree, place->node->link, index, 0, upper);
	return smart_slot_activate(tree, upper);
}

smart_status
smart_install(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
			  const struct smart_leaf *leaf)
{
	struct guest none = {.length = 0};
	bool won;

	smart_assert(tree->entered && place->node != NULL);
	return install(tree, key, place, leaf, NULL, &none, &won);
}

smart_status
smart_narrow(struct smart_tree *tree, const struct smart_leaf *leaf, unsigned int mid,
			 struct smart_narrowing *narrowing)
{
	/* I3: hi only falls.  I4: the lock's holder alone appends, so the entries stay those that were read. */
	smart_assert(mid > leaf->lo && mid <= leaf->hi && leaf->state == SMART_LIVE);
	smart_assert(tree->locked == leaf->address);
	narrowing->seen = 0;
	narrowing->desired = smart_meta_with_hi(leaf->meta, mid - 1);
	narrowing->blocked = smart_leaf_hint_block(tree, leaf->link);
	smart_assert(smart_meta_used(narrowing->desired) == leaf->used && smart_meta_hi(narrowing->desired) == mid - 1);
	/* Publishes that [mid .. hi] is pending. */
	return smart_post_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, narrowing->desired,
						  &narrowing->seen);
}

smart_status
smart_end_narrowing(struct smart_tree *tree, struct smart_leaf_lock *lock, struct smart_leaf *leaf,
					struct smart_narrowing *narrowing, bool *done)
{
	smart_status status = smart_post_flush(tree);

	(void) smart_leaf_hint_unblock(tree, &narrowing->blocked);
	*done = status == SMART_OK && narrowing->seen == leaf->meta;
	if (!*done)
		return status;
	smart_assert(smart_meta_hi(narrowing->desired) < leaf->hi && tree->locked == leaf->address);
	leaf->meta = narrowing->desired;
	if (lock->meta != 0)
		lock->meta = leaf->meta;
	leaf->hi = smart_meta_hi(leaf->meta);
	smart_assert(leaf->lo <= leaf->hi);
	return SMART_OK;
}

unsigned int
smart_split_edge(const struct smart_key *key, const struct smart_leaf *leaf)
{
	int greatest = greatest_byte(leaf);

	return greatest >= (int) leaf->lo && (int) smart_key_byte(key, leaf->depth) > greatest ? (unsigned int) greatest + 1
																						   : 0;
}

unsigned int
smart_split_middle(const struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf,
				   bool ascending)
{
	const struct smart_list *list = &tree->list;
	unsigned int mid = smart_choose_cut(list, 0, smart_key_byte(key, leaf->depth), ascending);
	unsigned int byte;

	smart_assert(leaf->lo < leaf->hi && list->count > 0 && list->base == leaf->depth);
	if (mid != 0)
		return mid;
	byte = smart_ref_byte(&list->refs[0], 0);
	return byte > leaf->lo ? byte : byte + 1;
}

smart_status
smart_split(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
			struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool *added)
{
	bool junk = greatest_byte(leaf) > (int) leaf->hi;
	struct smart_rewrite rewrite = {.reserve = room_for_half(tree), .lock = lock};
	struct guest guest = {.length = length};
	smart_status status;
	bool won;

	smart_assert(smart_pending(place, leaf) && lock->leaf == leaf->address && tree->locked == leaf->address);
	if (!junk)
		smart_remember_node(tree, key, place->node);
	status = install(tree, key, place, leaf, junk ? NULL : lock, &guest, &won);
	*added = guest.added;
	/* Where others have installed the upper half, the next rewrite drops the junk. */
	if (status != SMART_OK || !won || !junk)
		return status;
	/*
	 * D3: the entries above hi, which another leaf has now, are dropped.  The leaf is
	 * not pending: the CAS of D2 has put the slot for hi + 1 where every client finds it, and a
	 * used slot stays so, in the node and in what replaces it.
	 */
	smart_assert(leaf->state == SMART_LIVE && tree->locked == leaf->address);
	if (smart_leaf_covers(leaf, key))
		rewrite.guest = length;
	status = smart_replace_leaf(tree, key, place, leaf, &rewrite, &won);
	*added |= won && rewrite.took;
	/* What finds no room is left to the next rewrite, too. */
	return *added && smart_no_room(status) ? SMART_OK : status;
}
