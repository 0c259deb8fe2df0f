/*
 * get.c
 *	  Get: the value of a key, in a tree with values.
 *
 * As a lookup (lookup.c).  A word is read whole, and was the key's value at a moment of the READ, whichever came first of
 * its pieces: as long as the leaf is live it is the authority, and a value that was frozen since was the last one (V3).
 * So is a value in a leaf whose content is confirmed strictly (B5).
 */
#include "tree/block/access.h"
#include "tree/block/values.h"
#include "tree/find/find.h"
#include "tree/structure/strict.h"

/* The leaf that answers for the key, and *answers: there is one; else the key is absent. */
static smart_status
find_answer(struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf, bool *answers)
{
	struct smart_place place;
	unsigned int limit;
	bool good;
	smart_status status = smart_find_fast(tree, key, &place);

	smart_assert(tree->entered && tree->locked == 0);
	*answers = false;
	if (status == SMART_OK && place.kind == SMART_PLACE_UNKNOWN && smart_offload_proves_empty(tree, key, &place))
		return SMART_OK;
	if (status == SMART_OK && place.kind == SMART_PLACE_LEAF)
	{
		status = smart_offload_leaf(tree, place.slot, key, tree->leaf_buffer, leaf, &good);
		*answers = status == SMART_OK && good && leaf->state == SMART_LIVE && leaf->depth == place.depth &&
				   smart_leaf_covers(leaf, key);
	}
	if (status != SMART_OK || *answers)
		return status;
	status = smart_confirm(tree, key, &place, leaf, &limit);
	*answers = status == SMART_OK && place.kind == SMART_PLACE_LEAF;
	return status;
}

smart_status
smart_tree_get(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, uint64_t *value, bool *found)
{
	struct smart_key key = {.bytes = key_bytes, .length = (uint32_t) key_length};
	struct smart_leaf leaf;
	bool answers;
	int entry = -1;
	smart_status status;

	smart_assert(tree->options.value);
	if (!smart_value_fits_key(tree, key_length))
		return SMART_TOO_LONG;
	smart_enter(tree);
	status = find_answer(tree, &key, &leaf, &answers);
	if (status == SMART_OK && answers)
		entry = smart_leaf_find(&leaf, &key);
	status = smart_leave(tree, status);
	if (status != SMART_OK)
		return status;
	*found = entry >= 0;
	if (*found)
		*value = smart_value_at(&leaf, (unsigned int) entry) & SMART_VALUE_MAX;
	return SMART_OK;
}
