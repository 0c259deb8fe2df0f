/*
 * down.c
 *	  DOWN, the paper's leaf split: a sealed leaf that cannot be cut by ranges
 *	  any more gives way to a node below, with its entries in leaves there.
 *
 * All blocks are made unlinked; one CAS of the leaf's slot publishes them
 * together.  Progress: lock-free.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/structure/change.h"

/* A chain node spans six bytes of a key: five compressed and one branched. */
#define CHAIN_SPAN (SMART_NODE_PARTIAL_MAX + 1)
#define BUILT_MAX  (SMART_KEY_MAX / CHAIN_SPAN + 8)

/* The blocks made so far, to be activated or retired together. */
struct built
{
	unsigned int count;
	smart_slot links[BUILT_MAX];
};

static void
built_add(void *argument, smart_slot link)
{
	struct built *built = argument;

	smart_assert(built->count < BUILT_MAX);
	if (!smart_slot_is_empty(link))
		built->links[built->count++] = link;
}

/* A leaf for [lo..hi] of the entries in [from..to), or an empty range. */
static smart_status
make_part(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int lo, unsigned int hi,
		  uint32_t from, uint32_t to, struct built *built, smart_slot *slots, unsigned int *count)
{
	smart_slot link = smart_slot_make_empty(lo, hi);
	smart_status status = SMART_OK;

	smart_assert(tree->entered && from <= to && to <= tree->list.count && *count < 3);
	if (from < to)
		status = smart_leaf_build(tree, key, depth, lo, hi, &tree->list, from, to, 0, &link);
	if (status != SMART_OK)
		return status;
	built_add(built, link);
	slots[(*count)++] = link;
	return SMART_OK;
}

/* How many entries of the list lie below the cut. */
static uint32_t
count_below(const struct smart_list *list, unsigned int position, unsigned int cut)
{
	uint32_t count = 0;

	while (count < list->count && smart_ref_byte(&list->refs[count], position) < cut)
		count++;
	return count;
}

/*
 * Puts the key into the list if the leaves of a node at depth stay within the leaf size with it.  *added: it is there.
 * Not where keys ascend: there it begins a leaf with room.
 */
static smart_status
take_in(struct smart_tree *tree, const struct smart_key *key, size_t length, unsigned int depth, bool *added)
{
	struct smart_list *list = &tree->list;
	uint32_t middle;
	smart_status status = smart_list_add(tree, list, key, length);

	if (status != SMART_OK)
		return status;
	middle = count_below(list, depth - list->base,
						 smart_choose_cut(list, depth - list->base, smart_key_byte(key, depth), false));
	smart_assert(middle > 0 && middle < list->count);
	*added = smart_leaf_fits(tree, list, 0, middle, depth - list->base) &&
			 smart_leaf_fits(tree, list, middle, list->count, depth - list->base);
	if (!*added)
		smart_list_take_out(list, key, length);
	return SMART_OK;
}

/* The node at depth that holds all entries, and its leaves. */
static smart_status
make_branch(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, bool ascending,
			struct built *built, smart_slot *link)
{
	const struct smart_list *list = &tree->list;
	unsigned int position = depth - list->base;
	unsigned int cut = smart_choose_cut(list, position, smart_key_byte(key, depth), ascending);
	unsigned int count = 0;
	uint32_t middle;
	smart_slot slots[3];
	smart_status status = SMART_OK;

	smart_assert(list->count > 0 && depth >= list->base);
	if (cut == 0)
	{
		/* All entries have one byte here; the key has another. */
		unsigned int byte = smart_ref_byte(&list->refs[0], position);

		status = make_part(tree, key, depth, byte, byte, 0, list->count, built, slots, &count);
		if (status == SMART_OK)
			count = smart_slots_around(slots, slots[0], byte);
	}
	else
	{
		middle = count_below(list, position, cut);
		status = make_part(tree, key, depth, 0, cut - 1, 0, middle, built, slots, &count);
		if (status == SMART_OK)
			status = make_part(tree, key, depth, cut, 255, middle, list->count, built, slots, &count);
	}
	if (status == SMART_OK)
		status = smart_node_build(tree, key, depth, 0, slots, count, 1, link);
	if (status == SMART_OK)
		built_add(built, *link);
	return status;
}

smart_status
smart_make_chain(struct smart_tree *tree, const struct smart_key *key, unsigned int consumed, unsigned int depth,
				 smart_slot *link, void (*made)(void *argument, smart_slot link), void *argument)
{
	unsigned int links = 0;

	smart_assert(depth >= consumed && smart_slot_is_node(*link));
	while (depth - (consumed + CHAIN_SPAN * links) > SMART_NODE_PARTIAL_MAX)
		links++;
	for (unsigned int i = links; i-- > 0;)
	{
		unsigned int at = consumed + CHAIN_SPAN * i + SMART_NODE_PARTIAL_MAX;
		smart_slot slots[3];
		unsigned int count = smart_slots_around(slots, *link, smart_key_byte(key, at));
		smart_status status = smart_node_build(tree, key, at, 0, slots, count, 1, link);

		if (status != SMART_OK)
			return status;
		if (made != NULL)
			made(argument, *link);
	}
	return SMART_OK;
}

static void
retire_built(struct smart_tree *tree, const struct built *built)
{
	smart_assert(tree->entered && built->count <= BUILT_MAX);
	for (unsigned int i = 0; i < built->count; i++)
		smart_retire_slot(tree, built->links[i]);
}

smart_status
smart_down(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
		   struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool ascending, bool *added)
{
	struct smart_list *list = &tree->list;
	struct built built = {.count = 0};
	unsigned int common;
	unsigned int depth;
	smart_slot link;
	bool took = false;
	bool gone;
	bool won;
	smart_status status;

	/* I5: it covers one byte or is the root's, so it is not pending. */
	smart_assert(place->slot == leaf->link && lock->leaf == leaf->address && !smart_pending(place, leaf));
	smart_assert(leaf->lo == leaf->hi || place->node == NULL);
	list->count = 0;
	*added = false;
	status = smart_settle_values(tree, leaf, &lock, &gone);
	if (status != SMART_OK || gone)
		return status;
	status = smart_list_collect(tree, list, leaf, leaf->lo, leaf->hi);
	if (status != SMART_OK)
		return status;
	smart_assert(list->count > 0);
	/* The first position where entries or key differ.  They ascend: a byte that first and last share, all share. */
	common = smart_ref_common(&list->refs[0], &list->refs[list->count - 1]);
	depth = list->base;
	while (depth - list->base < common &&
		   smart_ref_byte(&list->refs[0], depth - list->base) == smart_key_byte(key, depth))
		depth++;
	if (!ascending)
		status = take_in(tree, key, length, depth, &took);
	if (status != SMART_OK)
		return status;
	status = make_branch(tree, key, depth, ascending, &built, &link);
	if (status == SMART_OK)
		status = smart_make_chain(tree, key, place->consumed, depth, &link, built_add, &built);
	if (status != SMART_OK)
	{
		retire_built(tree, &built);
		return status;
	}
	link = smart_slot_with_pk(link, smart_slot_pk(place->slot));
	/* The one publication of everything above. */
	status = smart_end_leaf(tree, place, leaf, lock, link, &won);
	if (status != SMART_OK)
		return status; /* perhaps linked: not to be retired */
	if (!won)
	{
		retire_built(tree, &built);
		return SMART_OK;
	}
	smart_assert(leaf->state == SMART_SEALED && smart_slot_is_node(link));
	*added = took;
	for (unsigned int i = 0; i < built.count && status == SMART_OK; i++)
		status = smart_slot_activate(tree, built.links[i]);
	smart_retire_slot(tree, place->slot);
	return status;
}
