/*
 * split.c
 *	  SPLIT and INSTALL: a leaf gives away the upper part of its range.
 *
 * D1 narrows the leaf's hi by one CAS on meta.  From then on the leaf is pending
 * (I5): its entries above hi stay authoritative until D2, INSTALL, puts a slot
 * for byte hi + 1 into the node, by one CAS, done by whoever comes first.  D3
 * drops the entries above hi from the leaf.
 *
 * Progress: lock-free; nobody waits for the one who narrowed.
 */
#include "tree/internal.h"

/*
 * I5, in the view of place: byte hi + 1 is still covered by the leaf's own slot.
 * The view must be newer than the leaf's meta.
 */
bool
smart_pending(const struct smart_place *place, const struct smart_leaf *leaf)
{
	if (place->node == NULL || leaf->hi == 255)
		return false;
	if (SMART_FAULT(standsrule))
		return smart_node_next_pk(place->node, leaf->hi) != leaf->hi + 1;
	return smart_node_cover_index(place->node, leaf->hi + 1) == place->index;
}

/*
 * The partial key at which sorted entries are cut in two, position counted from
 * the list's base: the lower part gets the bytes below it.  Above all entries
 * when keys ascend, so that the lower leaf stays full; else where the halves
 * come closest in bytes.  0: all entries have one byte there.
 */
unsigned int
smart_choose_cut(const struct smart_list *list, unsigned int position, unsigned int key_byte, bool ascending)
{
	unsigned int last = smart_ref_byte(&list->refs[list->count - 1], position);
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
		if (next == smart_ref_byte(&list->refs[i], position))
			continue;
		if (ascending && next == last && key_byte == last && 2 * below >= total)
			return last;
		distance = 2 * below > total ? 2 * below - total : total - 2 * below;
		if (distance < best)
		{
			best = distance;
			cut = next;
		}
	}
	return cut;
}

/* key's first depth bytes and then byte, in the handle's key buffer. */
void
smart_key_at(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int byte,
			 struct smart_key *result)
{
	for (unsigned int i = 0; i < depth; i++)
		tree->key_buffer[i] = (uint8_t) smart_key_byte(key, i);
	tree->key_buffer[depth] = (uint8_t) byte;
	*result = (struct smart_key){.bytes = tree->key_buffer, .length = depth + 1};
}

/*
 * Room for the halves of a leaf, in bytes.  Entries of one length fill the
 * leaves of a tree in step: were the halves to grow through several sizes, each
 * size's slabs would be left with holes when the leaves go on to the next.
 */
static size_t
room_for_half(const struct smart_tree *tree)
{
	return tree->options.fixed_length != 0 ? tree->options.leaf_size : 0;
}

/* The greatest byte at its depth among a leaf's entries, those above hi included; -1: malformed. */
static int
greatest_byte(const struct smart_leaf *leaf)
{
	unsigned int offset = leaf->start;
	unsigned int greatest = 0;

	if (leaf->prefix_length > 0)
		return smart_leaf_prefix(leaf)[0];
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

/* INSTALL, as below; *won: it was this client that did it. */
static smart_status
install(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
		const struct smart_leaf *leaf, bool *won)
{
	unsigned int mid = leaf->hi + 1;
	unsigned int end = smart_node_next_pk(place->node, leaf->hi) - 1;
	int index =
		SMART_FAULT(anyempty) ? smart_fault_any_index(tree, place->node) : smart_node_free_index(place->node, mid);
	struct smart_list *list = &tree->list;
	smart_slot upper;
	uint64_t seen;
	smart_status status;

	smart_assert(smart_slot_address(place->slot) == leaf->address);
	*won = false;
	if (index < 0)
		return smart_replace_node(tree, key, place->node, false);
	list->count = 0;
	status = greatest_byte(leaf) < (int) mid ? SMART_OK : smart_list_collect(tree, list, leaf, mid, end);
	if (status != SMART_OK)
		return status;
	if (list->count == 0)
		upper = smart_slot_make_empty(mid, end);
	else
		status = smart_leaf_build(tree, key, leaf->depth, mid, end, list, 0, list->count, room_for_half(tree), &upper);
	if (status != SMART_OK)
		return status;
	/* Publishes the upper half: the leaf's own slot stops covering mid and above. */
	status = smart_link_cas(tree, smart_node_slot_address(place->node->address, (unsigned int) index), 0, upper, &seen);
	if (status != SMART_OK || seen != 0)
	{
		smart_retire_loser(tree, status, upper);
		return status;
	}
	*won = true;
	smart_slot_changed(tree, place->node->link, index, 0, upper);
	return smart_slot_activate(tree, upper);
}

/*
 * INSTALL (D2).  place is strict, leaf is what its slot leads to, pending in
 * this view.  Installs the slot for [hi + 1 .. next partial key - 1] with the
 * entries that lie there, or finds that somebody else did.
 */
smart_status
smart_install(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
			  const struct smart_leaf *leaf)
{
	bool won;

	return install(tree, key, place, leaf, &won);
}

/*
 * D3: the entries above hi, which another leaf has now, are dropped.  The leaf is
 * not pending: our CAS has put the slot for hi + 1 where everybody finds it, and a
 * used slot stays so, in the node and in what replaces it.
 */
static smart_status
drop_upper(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
		   struct smart_leaf *leaf, bool *added)
{
	struct smart_rewrite rewrite = {.reserve = room_for_half(tree)};
	bool sealed;
	bool won;
	smart_status status = smart_seal(tree, leaf, &sealed);

	if (status != SMART_OK || !sealed)
		return status;
	/* Entries of one length: a half has room for one more. */
	if (tree->options.fixed_length != 0 && smart_leaf_covers(leaf, key))
		rewrite.added = length;
	status = smart_replace_leaf(tree, key, place, leaf, &rewrite, &won);
	*added = won && rewrite.added > 0;
	return status;
}

/*
 * D1 and D2 at mid, D3 if there is anything to drop.  From the exact meta that
 * was read, so that nothing was appended or sealed since.  *added: D3 took the key
 * in.
 */
static smart_status
split_at(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
		 struct smart_leaf *leaf, unsigned int mid, bool *added)
{
	bool junk = greatest_byte(leaf) >= (int) mid;
	uint64_t narrowed = smart_meta_with_hi(leaf->meta, mid - 1);
	struct smart_blocked blocked = smart_stub_block(tree, leaf->link);
	uint64_t seen;
	bool won;
	smart_status status;

	smart_assert(mid > leaf->lo && mid <= leaf->hi && !smart_pending(place, leaf));
	/* Publishes that [mid .. hi] is pending. */
	status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, narrowed, &seen);
	(void) smart_stub_unblock(tree, &blocked);
	if (status != SMART_OK || seen != leaf->meta)
		return status;
	leaf->meta = narrowed;
	leaf->hi = mid - 1;
	status = install(tree, key, place, leaf, &won);
	/* Who finds the upper half installed by others leaves the junk to the next rewrite. */
	if (status == SMART_OK && won && junk)
		status = drop_upper(tree, key, length, place, leaf, added);
	return status;
}

/*
 * SPLIT above all entries, where keys ascend: the leaf stays full and nothing
 * has to be copied.  Conditions as smart_split.  *done false: the key does not
 * lie above all entries.
 */
smart_status
smart_split_at_edge(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
					struct smart_leaf *leaf, bool *done)
{
	int greatest = greatest_byte(leaf);
	bool added;

	*done = greatest >= 0 && (int) smart_key_byte(key, leaf->depth) > greatest && greatest >= (int) leaf->lo;
	if (!*done)
		return SMART_OK;
	smart_remember_node(tree, key, place->node);
	return split_at(tree, key, 0, place, leaf, (unsigned int) greatest + 1, &added);
}

/*
 * SPLIT.  The leaf's lock is held; place is strict and leads to it; it covers
 * more than one byte and is not pending.  tree->list holds its entries, in
 * order.  *added: the key is in the lower half now.
 */
smart_status
smart_split(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
			struct smart_leaf *leaf, bool ascending, bool *added)
{
	const struct smart_list *list = &tree->list;
	unsigned int mid;

	smart_assert(leaf->lo < leaf->hi && list->count > 0 && list->base == leaf->depth);
	*added = false;
	mid = smart_choose_cut(list, 0, smart_key_byte(key, leaf->depth), ascending);
	if (mid == 0)
	{
		unsigned int byte = smart_ref_byte(&list->refs[0], 0);

		mid = byte > leaf->lo ? byte : byte + 1;
	}
	return split_at(tree, key, length, place, leaf, mid, added);
}
