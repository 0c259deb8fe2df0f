/*
 * down.c
 *	  DOWN, the paper's leaf split: a sealed leaf that cannot be cut by ranges
 *	  any more gives way to a node below, with its entries in leaves there.
 *
 * All blocks are made unlinked; one CAS of the leaf's slot publishes them
 * together.  Progress: lock-free.
 */
#include "tree/internal.h"

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

/* The first position, at or above the leaf's depth, where entries or key differ. */
static unsigned int
branch_position(const struct smart_list *list, const struct smart_key *key)
{
	const struct smart_ref *first = &list->refs[0];
	const struct smart_ref *last = &list->refs[list->count - 1];
	unsigned int common = smart_ref_common(first, last);
	unsigned int i = 0;

	/* They ascend: a byte that first and last share with the key, all share. */
	while (i < common && smart_ref_byte(first, i) == smart_key_byte(key, list->base + i))
		i++;
	return list->base + i;
}

/* A leaf for [lo..hi] of the entries in [from..to), or an empty range. */
static smart_status
make_part(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int lo, unsigned int hi,
		  uint32_t from, uint32_t to, struct built *built, smart_slot *slots, unsigned int *count)
{
	smart_slot link = smart_slot_make_empty(lo, hi);
	smart_status status = SMART_OK;

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
	*added = smart_leaf_bytes_for(tree, list, 0, middle, depth - list->base) <= tree->options.leaf_size &&
			 smart_leaf_bytes_for(tree, list, middle, list->count, depth - list->base) <= tree->options.leaf_size;
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

	if (cut == 0)
	{
		/* All entries have one byte here; the key has another. */
		unsigned int byte = smart_ref_byte(&list->refs[0], position);

		if (byte > 0)
			slots[count++] = smart_slot_make_empty(0, byte - 1);
		status = make_part(tree, key, depth, byte, byte, 0, list->count, built, slots, &count);
		if (byte < 255)
			slots[count++] = smart_slot_make_empty(byte + 1, 255);
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

/*
 * Wraps the node at depth that *link leads to into chain nodes, until a reader
 * who comes with consumed bytes gets there by five bytes a step.  made() is
 * told of each.
 */
smart_status
smart_make_chain(struct smart_tree *tree, const struct smart_key *key, unsigned int consumed, unsigned int depth,
				 smart_slot *link, void (*made)(void *argument, smart_slot link), void *argument)
{
	unsigned int links = 0;

	while (depth - (consumed + CHAIN_SPAN * links) > SMART_NODE_PARTIAL_MAX)
		links++;
	for (unsigned int i = links; i-- > 0;)
	{
		unsigned int at = consumed + CHAIN_SPAN * i + SMART_NODE_PARTIAL_MAX;
		unsigned int byte = smart_key_byte(key, at);
		unsigned int count = 0;
		smart_slot slots[3];
		smart_status status;

		if (byte > 0)
			slots[count++] = smart_slot_make_empty(0, byte - 1);
		slots[count++] = smart_slot_with_pk(*link, byte);
		if (byte < 255)
			slots[count++] = smart_slot_make_empty(byte + 1, 255);
		status = smart_node_build(tree, key, at, 0, slots, count, 1, link);
		if (status != SMART_OK)
			return status;
		made(argument, *link);
	}
	return SMART_OK;
}

static void
retire_built(struct smart_tree *tree, const struct built *built)
{
	for (unsigned int i = 0; i < built->count; i++)
		smart_retire_slot(tree, built->links[i]);
}

/*
 * DOWN.  place is strict and its slot leads to leaf, which is to be sealed as in
 * smart_end_leaf, and holds entries; key, of which length bytes are to be stored, is to come into its range,
 * and is not there.  *added: it is now.
 */
smart_status
smart_down(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
		   struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool ascending, bool *added)
{
	struct smart_list *list = &tree->list;
	struct built built = {.count = 0};
	unsigned int depth;
	smart_slot link;
	bool took = false;
	bool won;
	smart_status status;

	smart_assert(place->slot == leaf->link);
	list->count = 0;
	status = smart_list_collect(tree, list, leaf, leaf->lo, leaf->hi);
	if (status != SMART_OK)
		return status;
	smart_assert(list->count > 0);
	*added = false;
	depth = branch_position(list, key);
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
	*added = took;
	for (unsigned int i = 0; i < built.count && status == SMART_OK; i++)
		status = smart_slot_activate(tree, built.links[i]);
	smart_retire_slot(tree, place->slot);
	return status;
}
