/*
 * results.c
 *	  Cached results: what an equality prefix has, from the compute node's memory.
 *
 * In exclusive mode all clients of a tree share a compute node, and so may know
 * what a prefix has without a verb, as long as every client that changes it says so
 * first (A1-A3).  Results are taken from leaves that lookups READ; they tell
 * entries, not where they lie, so that changes of structure do not concern them.
 */
#include "tree/cached/results.h"

unsigned int
smart_point_of(const struct smart_tree *tree, const uint8_t *bytes, size_t length)
{
	size_t point = tree->options.point(tree->options.point_argument, bytes, length);

	smart_assert(point >= 1 && point <= length);
	return point < SMART_RESULT_BYTES_MAX ? (unsigned int) point : 0;
}

/* ---- writers ---- */

struct smart_blocked
smart_block(struct smart_tree *tree, const uint8_t *bytes, size_t length)
{
	unsigned int point = smart_point_of(tree, bytes, length);

	smart_assert(tree->results);
	if (point == 0)
		return (struct smart_blocked){.version = SMART_VERSION_NONE};
	return tree->services->block_point(tree->services, tree->cached_as, bytes, point);
}

void
smart_unblock(struct smart_tree *tree, const struct smart_blocked *blocked)
{
	if (blocked->version != SMART_VERSION_NONE)
		(void) tree->services->unblock_point(tree->services, blocked);
}

/* ---- what a leaf says ---- */

/* Puts into tree->list, in order, those entries of a live leaf that covers the point which begin with the point. */
static smart_status
collect(struct smart_tree *tree, const struct smart_key *point, const struct smart_leaf *leaf)
{
	struct smart_list *list = &tree->list;
	unsigned int byte = smart_key_byte(point, leaf->depth);
	const uint8_t *bytes = point->bytes + leaf->depth; /* what an entry goes on with, from the list's base */
	unsigned int length = point->length - leaf->depth;
	uint32_t kept = 0;
	smart_status status;

	smart_assert(leaf->depth < point->length && leaf->state == SMART_LIVE && smart_leaf_covers(leaf, point));
	list->count = 0;
	status = smart_list_collect(tree, list, leaf, byte, byte);
	for (uint32_t i = 0; status == SMART_OK && i < list->count; i++)
	{
		const struct smart_ref *ref = &list->refs[i];
		unsigned int head = length < ref->head_length ? length : ref->head_length;

		if (smart_ref_length(ref) >= length && memcmp(ref->head, bytes, head) == 0 &&
			memcmp(ref->tail, bytes + head, length - head) == 0)
			list->refs[kept++] = *ref;
	}
	list->count = kept;
	return status;
}

/* Keeps what is in tree->list as the point's cached result, unless it is too long. */
static void
keep_collected(struct smart_tree *tree, const struct smart_key *point, struct smart_result *cached)
{
	const struct smart_list *list = &tree->list;
	unsigned int skip = point->length - list->base;

	smart_assert(point->length > list->base && cached->ticket != 0);
	cached->length = 0;
	for (uint32_t i = 0; i < list->count; i++)
	{
		unsigned int length = smart_ref_length(&list->refs[i]) - skip;

		if (point->length + cached->length + 1 + length > SMART_RESULT_BYTES_MAX)
			return;
		cached->tails[cached->length++] = (uint8_t) length;
		cached->length += smart_ref_put(cached->tails + cached->length, &list->refs[i], skip);
	}
	smart_assert(point->length + cached->length <= SMART_RESULT_BYTES_MAX);
	tree->services->keep_result(tree->services, tree->cached_as, point->bytes, point->length, cached);
}

void
smart_keep_result(struct smart_tree *tree, const struct smart_key *point, const struct smart_leaf *leaf,
				  struct smart_result *cached)
{
	smart_assert(leaf->state == SMART_LIVE && smart_leaf_covers(leaf, point));
	if (cached->ticket != 0 && leaf->depth < point->length && collect(tree, point, leaf) == SMART_OK)
		keep_collected(tree, point, cached);
}

/* ---- what a cached result says ---- */

bool
smart_tree_result(struct smart_tree *tree, const uint8_t *point, size_t length, struct smart_result *cached)
{
	cached->ticket = 0;
	if (!tree->results || length == 0 || length >= SMART_RESULT_BYTES_MAX)
		return false;
	return tree->services->find_result(tree->services, tree->cached_as, point, (unsigned int) length, cached);
}

bool
smart_result_contains(const struct smart_result *cached, const struct smart_key *key, unsigned int point_length)
{
	const uint8_t *rest = key->bytes + point_length;
	unsigned int rest_length = key->length - point_length;

	for (unsigned int i = 0; i < cached->length; i += 1 + cached->tails[i])
	{
		smart_assert(i + 1 + cached->tails[i] <= cached->length);
		if (cached->tails[i] >= rest_length && memcmp(cached->tails + i + 1, rest, rest_length) == 0)
			return true;
	}
	return false;
}
