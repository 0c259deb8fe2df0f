/*
 * hints.c
 *	  Leaf hints: what is known of a leaf without its entries.
 *
 * An insert READs a leaf for few things: whether the leaf is the one for the key,
 * whether the key is there, and meta, which tells where the next entry goes and is
 * what the CAS compares.  A leaf hint has all but the second in the compute node's memory, in
 * a tenth of the bytes.  Where a leaf's entries ascend it has the greatest key, too: one
 * above it is not there.  append.c appends by what a hint says.
 *
 * A hint is kept true as a cached result is (A1-A4).  What it says is changed by a CAS
 * on meta, or by the leaf's end, which begins with one (SEAL); a client that posts such a
 * CAS blocks the hint.  So a hint that is found under the leaf's local lock, within an
 * epoch, tells of a leaf that was live at that moment, and its `used` stays true until
 * the lock is let go, since only the lock's holder appends (I4).  If the leaf is sealed
 * meanwhile by a merge, which has no lock, the entry's bytes land above used, where no
 * reader looks, in a block that is not used again within the epoch; and the CAS is lost.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"

/*
 * Of the leaf whose range begins with lo at depth, for keys that share key's bytes ahead of it, and this prefix from
 * there on.  Another owner's tenure makes another hash (P5); id and cached_as are the same where there are no tenures.
 */
static uint64_t
identity_of(const struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int lo,
			const uint8_t *prefix, unsigned int prefix_length)
{
	return XXH3_64bits_withSeed(prefix, prefix_length,
								smart_prefix_hash(tree, key, depth) ^ tree->options.id ^ tree->cached_as ^
									(uint64_t) lo << 56);
}

struct smart_blocked
smart_leaf_hint_block(struct smart_tree *tree, smart_slot link)
{
	smart_assert(tree->entered && smart_slot_is_leaf(link));
	if (!tree->hints && !tree->copies)
		return (struct smart_blocked){.version = SMART_VERSION_NONE};
	return tree->services->block_hint(tree->services, link);
}

uint64_t
smart_leaf_hint_unblock(struct smart_tree *tree, const struct smart_blocked *blocked)
{
	return blocked->version == SMART_VERSION_NONE ? 0 : tree->services->unblock_point(tree->services, blocked);
}

static void
put_greatest(struct smart_leaf_hint *hint, const uint8_t *rest, unsigned int length)
{
	hint->greatest_length = (uint8_t) (length < sizeof(hint->greatest) ? length : sizeof(hint->greatest));
	memcpy(hint->greatest, rest, hint->greatest_length);
}

void
smart_leaf_hint_keep(struct smart_tree *tree, smart_slot link, const uint8_t *block, const struct smart_key *key,
					 uint64_t meta, uint64_t ticket)
{
	struct smart_leaf_hint hint = {.meta = meta};
	const uint8_t *suffix = NULL;
	unsigned int length = 0;
	unsigned int offset;
	struct smart_leaf leaf;

	if (ticket == 0 || !smart_leaf_parse(tree, link, block, meta, &leaf))
		return;
	smart_assert(leaf.state == SMART_LIVE && leaf.units == smart_slot_size(link));
	hint.prefix_length = (uint16_t) leaf.prefix_length;
	hint.identity = identity_of(tree, key, leaf.depth, leaf.lo, smart_leaf_prefix(&leaf), leaf.prefix_length);
	/* The last entry's key is the greatest one, if all ascend. */
	offset = leaf.stride != 0 && leaf.used > leaf.start ? leaf.used - leaf.stride : leaf.start;
	while ((meta & SMART_META_SORTED) != 0 && offset != 0 && offset < leaf.used)
		offset = smart_leaf_next_entry(&leaf, offset, &suffix, &length);
	if (suffix != NULL && length > tree->options.payload)
		put_greatest(&hint, suffix, length - tree->options.payload);
	tree->services->keep_hint(tree->services, link, &hint, ticket, false);
}

void
smart_leaf_hint_begin(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					  struct smart_blocked *blocked)
{
	uint64_t ticket = smart_leaf_hint_unblock(tree, blocked);

	if (tree->copies)
		smart_leaf_copy_changed(tree, link, tree->build_buffer, tree->built_meta, ticket);
	else
		smart_leaf_hint_keep(tree, link, tree->build_buffer, key, smart_meta_with_state(tree->built_meta, SMART_LIVE),
							 ticket);
}

bool
smart_leaf_hint_find(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
					 size_t length, struct smart_leaf_hint_view *view, bool *full)
{
	struct smart_leaf_hint *hint = &view->hint;
	struct smart_leaf *leaf = &view->leaf;
	const uint8_t *rest;
	unsigned int known = 0;

	smart_assert(tree->hints && tree->locked == smart_slot_address(place->slot));
	*full = tree->services->find_hint(tree->services, place->slot, hint);
	if (!*full)
		return false;
	*leaf = (struct smart_leaf){.address = smart_slot_address(place->slot),
								.link = place->slot,
								.units = smart_slot_size(place->slot),
								.meta = hint->meta,
								.depth = place->depth,
								.lo = smart_slot_pk(place->slot),
								.hi = smart_meta_hi(hint->meta),
								.prefix_length = hint->prefix_length,
								.used = smart_meta_used(hint->meta),
								.state = smart_meta_state(hint->meta)};
	view->consumed = leaf->depth + leaf->prefix_length;
	smart_assert(leaf->state == SMART_LIVE && leaf->used + SMART_LEAF_REAR_BYTES <= leaf->units * SMART_UNIT);
	if (key->length <= view->consumed || !smart_leaf_covers(leaf, key) ||
		smart_stored_bytes(tree, (unsigned int) length - view->consumed) > smart_leaf_room(leaf) ||
		identity_of(tree, key, leaf->depth, leaf->lo, key->bytes + leaf->depth, leaf->prefix_length) != hint->identity)
		return false;
	/* Does the key lie above all that are there?  If the bytes that are known do not tell, it does not. */
	rest = key->bytes + view->consumed;
	known = key->length - view->consumed;
	if (known > hint->greatest_length)
		known = hint->greatest_length;
	view->above = known > 0 && memcmp(rest, hint->greatest, known) > 0;
	return true;
}

void
smart_leaf_hint_append(struct smart_tree *tree, struct smart_leaf_hint_view *view, const struct smart_key *key,
					   uint64_t meta, uint64_t ticket)
{
	struct smart_leaf_hint *hint = &view->hint;

	smart_assert(smart_meta_used(meta) > smart_meta_used(hint->meta) && smart_meta_hi(meta) == view->leaf.hi);
	if (ticket == 0)
		return;
	hint->meta = meta;
	if ((meta & SMART_META_SORTED) != 0)
		put_greatest(hint, key->bytes + view->consumed, key->length - view->consumed);
	else
		hint->greatest_length = 0;
	tree->services->keep_hint(tree->services, view->leaf.link, hint, ticket, true);
}
