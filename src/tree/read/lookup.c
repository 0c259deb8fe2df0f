/*
 * lookup.c
 *	  Lookups: is a key there?
 *
 * First the cached result is asked, where there is one (A1-A3), then the leaf that
 * a fast search comes to (B1, B3); what does not answer for itself is looked for
 * strictly (B5).
 *
 * Progress: lock-free, but for a READ that is shared with others (leaf.c).
 */
#include "tree/block/access.h"
#include "tree/block/promise.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/structure/strict.h"

/* Within an epoch.  An entry that may be taken back is made final, or the leaf is looked at again (C5a). */
static smart_status
lookup_strictly(struct smart_tree *tree, const struct smart_key *key, bool *found)
{
	struct smart_place place;
	struct smart_leaf leaf;
	unsigned int attempts = 0;
	unsigned int limit;
	bool sure;
	smart_status status;

	smart_assert(tree->entered && tree->locked == 0);
	do
	{
		sure = true;
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = smart_confirm(tree, key, &place, &leaf, &limit);
		smart_assert(status != SMART_OK || (place.kind != SMART_PLACE_FROZEN && place.kind != SMART_PLACE_UNKNOWN));
		if (status == SMART_OK)
			*found = place.kind == SMART_PLACE_LEAF && smart_leaf_contains(&leaf, key);
		if (status == SMART_OK && *found)
			status = smart_promise_vouch(tree, &leaf, key, &sure);
	} while (status == SMART_OK && !sure);
	return status;
}

/*
 * Within an epoch.  point_length: bytes of the key's equality prefix, whose result is kept if the leaf that answers tells
 * it; 0: nothing is kept.
 */
static smart_status
lookup(struct smart_tree *tree, const struct smart_key *key, unsigned int point_length, struct smart_result *cached,
	   bool *found)
{
	struct smart_key point = {.bytes = key->bytes, .length = point_length};
	struct smart_place place;
	struct smart_leaf leaf;
	uint64_t word;
	bool sure = true;
	bool good;
	smart_status status = smart_find_fast(tree, key, &place);

	if (status != SMART_OK)
		return status;
	smart_assert(tree->entered && place.kind != SMART_PLACE_NODE && place.kind != SMART_PLACE_FROZEN);
	if (place.kind == SMART_PLACE_UNKNOWN && smart_offload_proves_empty(tree, key, &place))
		place.kind = SMART_PLACE_EMPTY;
	if (place.kind == SMART_PLACE_LEAF)
	{
		status = smart_offload_leaf(tree, place.slot, key, tree->leaf_buffer, &leaf, &good);
		if (status != SMART_OK)
			return status;
		if (good && leaf.state == SMART_LIVE && leaf.depth == place.depth && smart_leaf_covers(&leaf, key))
		{
			*found = smart_leaf_contains(&leaf, key);
			if (leaf.depth < point_length)
				smart_keep_result(tree, &point, &leaf, cached);
			status = *found ? smart_promise_vouch(tree, &leaf, key, &sure) : SMART_OK;
			if (status != SMART_OK || sure)
				return status;
		}
		/* Does the slot that a cached path led to still hold what it held?  Its node may be dead. */
		if (SMART_FAULT(slotonly) && good && leaf.depth == place.depth && !tree->direct && place.node != NULL &&
			smart_word_read(tree, place.slot_address, &word) == SMART_OK && (word & ~SMART_SLOT_FROZEN) == place.slot)
		{
			*found = smart_leaf_contains(&leaf, key);
			return SMART_OK;
		}
	}
	else if (place.kind != SMART_PLACE_UNKNOWN)
	{
		/* Only a strict path says so (a direct one is, and a memory node's if it is exact). */
		smart_assert(place.kind == SMART_PLACE_EMPTY || tree->direct);
		*found = false;
		return SMART_OK;
	}
	return lookup_strictly(tree, key, found);
}

/* As a process that touches the tree. */
static smart_status
enter_and_lookup(struct smart_tree *tree, const struct smart_key *key, unsigned int point_length,
				 struct smart_result *cached, bool *found)
{
	smart_status status;
	bool there = false;

	smart_enter(tree);
	status = smart_leave(tree, lookup(tree, key, point_length, cached, &there));
	if (status == SMART_OK)
		*found = there;
	return status;
}

smart_status
smart_tree_lookup(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, bool *found)
{
	struct smart_key key = {.bytes = key_bytes, .length = (uint32_t) key_length};
	struct smart_result cached;
	unsigned int point = 0;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	if (tree->results)
	{
		point = smart_point_of(tree, key_bytes, key_length);
		if (point > 0 && tree->services->find_result(tree->services, tree->cached_as, key_bytes, point, &cached))
		{
			smart_assert(!tree->options.shared && point + cached.length <= SMART_RESULT_BYTES_MAX);
			*found = smart_result_contains(&cached, &key, point);
			return SMART_OK;
		}
	}
	return enter_and_lookup(tree, &key, point, &cached, found);
}

smart_status
smart_tree_lookup_uncached(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, bool *found)
{
	struct smart_key key = {.bytes = key_bytes, .length = (uint32_t) key_length};
	struct smart_result none;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	return enter_and_lookup(tree, &key, 0, &none, found);
}

smart_status
smart_tree_is_bare(struct smart_tree *tree, bool *bare)
{
	smart_slot root = 0;
	smart_status status;

	smart_enter(tree);
	status = smart_leave(tree, smart_word_read(tree, tree->options.root, &root));
	*bare = status == SMART_OK && smart_slot_is_empty(root);
	return status;
}
