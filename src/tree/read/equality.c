/*
 * equality.c
 *	  The entries of one equality prefix, without a scan: from the compute node's memory, or
 *	  from the one leaf that the cache leads to.
 */
#include "tree/block/access.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"

bool
smart_tree_result(struct smart_tree *tree, const uint8_t *point, size_t length, struct smart_result *cached)
{
	cached->ticket = 0;
	if (!tree->results || length == 0 || length >= SMART_RESULT_BYTES_MAX)
		return false;
	return tree->services->find_result(tree->services, tree->options.id, point, (unsigned int) length, cached);
}

/* What the leaf that the cache leads to says; *known: it holds all of the point, which is in tree->list. */
static smart_status
ask_leaf(struct smart_tree *tree, const struct smart_key *point, struct smart_result *cached, bool *known)
{
	struct smart_place place;
	struct smart_leaf leaf;
	bool good;
	smart_status status = smart_find_fast(tree, point, &place);

	if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || place.depth >= point->length)
		return status;
	status = smart_offload_leaf(tree, place.slot, point, tree->leaf_buffer, &leaf, &good);
	if (status != SMART_OK || !good || leaf.state != SMART_LIVE || leaf.depth != place.depth ||
		!smart_leaf_covers(&leaf, point))
		return status;
	status = smart_result_collect(tree, point, &leaf);
	if (status != SMART_OK)
		return status;
	*known = true;
	smart_keep_collected(tree, point, cached);
	return SMART_OK;
}

smart_status
smart_tree_point(struct smart_tree *tree, const uint8_t *bytes, size_t length, smart_entry_fn visit, void *argument,
				 bool *known)
{
	struct smart_key point = {.bytes = bytes, .length = (uint32_t) length};
	const struct smart_list *list = &tree->list;
	struct smart_result cached = {.ticket = 0};
	uint8_t *entry = tree->build_buffer;
	smart_status status;
	bool there = false;
	bool more = true;

	if (length == 0 || length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	*known = false;
	if (!tree->results)
		return SMART_OK;
	if (smart_tree_result(tree, bytes, length, &cached))
	{
		*known = true;
		memcpy(entry, bytes, length);
		for (unsigned int i = 0; more && i < cached.length; i += 1 + cached.tails[i])
		{
			smart_assert(i + 1 + cached.tails[i] <= cached.length);
			memcpy(entry + length, cached.tails + i + 1, cached.tails[i]);
			more = visit(argument, entry, length + cached.tails[i]);
		}
		return SMART_OK;
	}
	smart_enter(tree);
	status = ask_leaf(tree, &point, &cached, &there);
	status = smart_leave(tree, status);
	if (status != SMART_OK || !there)
		return status;
	*known = true;
	/* The list's entries lie in the handle's memory, whatever becomes of the leaf. */
	memcpy(entry, bytes, list->base);
	for (uint32_t i = 0; more && i < list->count; i++)
		more = visit(argument, entry, list->base + smart_ref_put(entry + list->base, &list->refs[i], 0));
	return SMART_OK;
}
