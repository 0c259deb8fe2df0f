/*
 * divide_plan.c
 *	  Which parts a leaf is divided into, and their blocks.
 *
 * All of the leaf's entries are known, and all that come: so it is cut into as many parts as they need, at once.  Where
 * keys ascend at the leaf's end the parts are full but for the last; else there is room in each.  A byte with more
 * entries than a leaf holds gets a node of its own, with the same below.
 */
#include "tree/block/access.h"
#include "tree/structure/change.h"
#include "tree/write/divide.h"

/* Nodes within nodes. */
#define LEVELS_MAX 4
/* Parts of a node. */
#define BELOW_MAX 48

/* Cutting entries [from..to) of the list, by the byte at a position from its base on. */
struct cut
{
	const struct smart_tree *tree;
	uint32_t to;
	unsigned int position;
	size_t wanted; /* bytes of a leaf that has room; 0: they shall be full */
	unsigned int max;
	unsigned int count;
	struct smart_part *parts;
};

static uint32_t
end_of_byte(const struct cut *cut, uint32_t from)
{
	const struct smart_list *list = &cut->tree->list;
	unsigned int byte = smart_ref_byte(&list->refs[from], cut->position);

	smart_assert(from < cut->to);
	while (from < cut->to && smart_ref_byte(&list->refs[from], cut->position) == byte)
		from++;
	return from;
}

static size_t
bytes_of(const struct cut *cut, uint32_t from, uint32_t to)
{
	return smart_leaf_bytes_for(cut->tree, &cut->tree->list, from, to, cut->position);
}

static bool
is_leaf(const struct cut *cut, uint32_t from, uint32_t to)
{
	return smart_leaf_fits(cut->tree, &cut->tree->list, from, to, cut->position);
}

/* Where the part ends that begins at from: it has all entries of at least one byte. */
static uint32_t
end_of_part(const struct cut *cut, uint32_t from)
{
	uint32_t end = end_of_byte(cut, from);
	size_t target = cut->tree->options.leaf_size;

	if (cut->wanted != 0)
	{
		size_t left = bytes_of(cut, from, cut->to);

		target = left / ((left + cut->wanted - 1) / cut->wanted);
	}
	while (end < cut->to)
	{
		uint32_t next = end_of_byte(cut, end);
		size_t with;
		size_t without;

		if (!is_leaf(cut, from, next))
			break;
		with = bytes_of(cut, from, next);
		without = bytes_of(cut, from, end);
		if (with > target && (without >= target || with - target > target - without))
			break;
		end = next;
	}
	smart_assert(end > from && end <= cut->to);
	return end;
}

/* Appends a part; false: there are too many. */
static bool
add_part(struct cut *cut, unsigned int lo, unsigned int hi, uint32_t from, uint32_t to)
{
	smart_assert(lo <= hi && hi <= 255 && from <= to);
	if (cut->count == cut->max)
		return false;
	cut->parts[cut->count++] = (struct smart_part){.lo = lo, .hi = hi, .from = from, .to = to};
	return true;
}

/*
 * Parts for all of lo..hi, the first one of the entries below `first` if that is not `from`; false: too many.  The entries
 * below `first` stay in the leaf, even if they are more than a new leaf would take: a block that was made for one long
 * entry may have room for others.
 */
static bool
cut_range(struct cut *cut, unsigned int lo, unsigned int hi, uint32_t from, uint32_t first)
{
	const struct smart_list *list = &cut->tree->list;
	unsigned int next = lo; /* byte */
	bool stretches = false; /* the part before is a leaf */

	smart_assert(lo <= hi && from < cut->to);
	cut->count = 0;
	while (from < cut->to)
	{
		bool stays = first > from;
		uint32_t end = stays ? first : end_of_part(cut, from);
		unsigned int byte = smart_ref_byte(&list->refs[from], cut->position);
		bool leaf = (stays && !SMART_FAULT(cutold)) || is_leaf(cut, from, end);

		smart_assert(end <= cut->to && byte >= next && byte <= hi);
		/* What lies between two parts is the lower leaf's; a node has its byte alone. */
		if (stretches)
			cut->parts[cut->count - 1].hi = byte - 1;
		else if (!leaf && byte > next && !add_part(cut, next, byte - 1, from, from))
			return false;
		if (!add_part(cut, stretches || !leaf ? byte : next, leaf ? hi : byte, from, end))
			return false;
		next = leaf ? hi + 1 : byte + 1;
		if (leaf && end < cut->to)
			next = smart_ref_byte(&list->refs[end - 1], cut->position) + 1;
		stretches = leaf;
		from = end;
	}
	if (cut->parts[cut->count - 1].hi < hi)
		return add_part(cut, cut->parts[cut->count - 1].hi + 1, hi, cut->to, cut->to);
	smart_assert(cut->parts[cut->count - 1].hi == hi);
	return true;
}

/* ---- blocks ---- */

static void
made(void *argument, smart_slot link)
{
	struct smart_division *division = argument;

	smart_assert(division->block_count < SMART_BLOCKS_MAX);
	division->copies[division->block_count] = NULL;
	division->blocks[division->block_count++] = link;
}

/* The leaf that was made last, as it was written. */
static void
remember_copy(const struct smart_tree *tree, struct smart_division *division)
{
	struct smart_born *born = division->born;
	unsigned int last = division->block_count - 1;
	unsigned int bytes = smart_slot_size(division->blocks[last]) * SMART_UNIT;

	if (!tree->copies || born == NULL || bytes > born->size - born->used)
		return;
	memcpy(born->bytes + born->used, tree->build_buffer, bytes);
	division->copies[last] = born->bytes + born->used;
	born->used += bytes;
	smart_assert(born->used <= born->size);
}

static smart_status build_node(struct smart_tree *tree, struct smart_division *division, const struct smart_part *part,
							   unsigned int consumed, size_t wanted, unsigned int level, smart_slot *link);

/* What the part leads to, in a node at this depth.  SMART_TOO_LONG: that is too much at once. */
static smart_status
build_part(struct smart_tree *tree, struct smart_division *division, const struct smart_key *key, unsigned int depth,
		   struct smart_part *part, size_t wanted, unsigned int level)
{
	const struct smart_list *list = &tree->list;
	unsigned int skip = depth - list->base;
	smart_status status = SMART_OK;

	smart_assert(depth >= list->base && part->from <= part->to && part->to <= list->count);
	part->link = smart_slot_make_empty(part->lo, part->hi);
	if (part->from == part->to)
		return SMART_OK;
	if (!smart_leaf_fits(tree, list, part->from, part->to, skip))
		return build_node(tree, division, part, depth + 1, wanted, level + 1, &part->link);
	if (division->block_count == SMART_BLOCKS_MAX)
		return SMART_TOO_LONG;
	/* On memory nodes each size that a leaf grows through costs round trips. */
	status = smart_leaf_build(tree, key, depth, part->lo, part->hi, list, part->from, part->to, tree->options.leaf_size,
							  &part->link);
	if (status != SMART_OK)
		return status;
	made(division, part->link);
	remember_copy(tree, division);
	return SMART_OK;
}

/* The key of a guest among the entries, which has all bytes that they share; NULL: there is none. */
static const struct smart_key *
key_of_guest(const struct smart_tree *tree, const struct smart_division *division, uint32_t from, uint32_t to)
{
	const struct smart_list *list = &tree->list;

	for (uint32_t i = from; i < to; i++)
	{
		for (unsigned int guest = 0; list->refs[i].tail_length == 0 && guest < division->guest_count; guest++)
		{
			if (list->refs[i].head == division->guests[guest].key.bytes + list->base)
				return &division->guests[guest].key;
		}
	}
	return NULL;
}

/* A node for one byte with more entries than a leaf holds, and all that lies below. */
static smart_status
build_node(struct smart_tree *tree, struct smart_division *division, const struct smart_part *part,
		   unsigned int consumed, size_t wanted, unsigned int level, smart_slot *link)
{
	const struct smart_list *list = &tree->list;
	const struct smart_key *key = key_of_guest(tree, division, part->from, part->to);
	struct smart_part parts[BELOW_MAX];
	smart_slot slots[BELOW_MAX];
	unsigned int position = smart_ref_common(&list->refs[part->from], &list->refs[part->to - 1]);
	unsigned int depth = list->base + position;
	struct cut cut =
		{.tree = tree, .to = part->to, .position = position, .wanted = wanted, .max = BELOW_MAX, .parts = parts};
	smart_status status = SMART_OK;

	smart_assert(part->lo == part->hi && depth >= consumed);
	if (level > LEVELS_MAX || key == NULL || !cut_range(&cut, 0, 255, part->from, part->from))
		return SMART_TOO_LONG;
	for (unsigned int i = 0; i < cut.count && status == SMART_OK; i++)
	{
		status = build_part(tree, division, key, depth, &parts[i], wanted, level);
		slots[i] = parts[i].link;
	}
	/* The node, and one for each further six bytes that all entries share. */
	if (status == SMART_OK &&
		division->block_count + 2 + (depth - consumed) / SMART_NODE_PARTIAL_MAX > SMART_BLOCKS_MAX)
		status = SMART_TOO_LONG;
	if (status != SMART_OK)
		return status;
	status = smart_node_build(tree, key, depth, 0, slots, cut.count, 1, link);
	if (status != SMART_OK)
		return status;
	made(division, *link);
	status = smart_make_chain(tree, key, consumed, depth, link, made, division);
	*link = smart_slot_with_pk(*link, part->lo);
	return status;
}

static void
retire_blocks(struct smart_tree *tree, struct smart_division *division)
{
	for (unsigned int i = 0; i < division->block_count; i++)
		smart_retire_slot(tree, division->blocks[i]);
	division->block_count = 0;
}

/* Makes the blocks of all parts. */
static smart_status
build_parts(struct smart_tree *tree, struct smart_division *division, size_t wanted)
{
	smart_status status = SMART_OK;
	unsigned int guest = 0;

	smart_assert(division->block_count == 0);
	for (unsigned int i = 0; i < division->count && status == SMART_OK; i++)
	{
		struct smart_part *part = &division->parts[i];

		part->guest = guest;
		for (uint32_t entry = part->from; entry < part->to; entry++)
			guest += tree->list.refs[entry].tail_length == 0;
		part->guests = guest - part->guest;
		part->block = division->block_count;
		if (i > 0 || !division->stays)
			status = build_part(tree, division, division->key, division->leaf.depth, part, wanted, 0);
		part->blocks = division->block_count - part->block;
	}
	smart_assert(guest <= division->guest_count);
	if (status != SMART_OK)
		retire_blocks(tree, division);
	return status;
}

/* ---- the plan ---- */

/* The leaf's entries, and so many guests; *old: of the leaf. */
static smart_status
list_entries(struct smart_tree *tree, const struct smart_division *division, unsigned int guests, uint32_t *old)
{
	struct smart_list *list = &tree->list;
	const struct smart_leaf *leaf = &division->leaf;
	smart_status status = SMART_OK;

	smart_assert(guests > 0 && guests <= division->guest_count);
	list->count = 0;
	list->base = leaf->depth;
	if (smart_slot_is_leaf(leaf->link))
		status = smart_list_collect(tree, list, leaf, leaf->lo, leaf->hi);
	*old = list->count;
	for (unsigned int i = 0; i < guests && status == SMART_OK; i++)
		status = smart_list_add(tree, list, &division->guests[i].key, division->guests[i].length);
	return status;
}

/* How many more slots the node has for parts. */
static unsigned int
free_slots(const struct smart_view *view)
{
	unsigned int slots = view->node.slots;
	unsigned int used = smart_node_used(&view->node) + view->planned;

	if (view->node.kind == SMART_NODE_256)
		return slots;
	return used < slots ? slots - used : 0;
}

/* Cuts what is in the list into parts; false: into too many. */
static bool
choose_parts(struct smart_tree *tree, struct smart_division *division, uint32_t old, size_t *wanted)
{
	const struct smart_leaf *leaf = &division->leaf;
	const struct smart_list *list = &tree->list;
	bool behind = old > 0 && list->refs[old].tail_length == 0 && list->refs[old - 1].tail_length > 0;
	bool full = leaf->units * SMART_UNIT >= tree->options.leaf_size;
	bool apart = behind && smart_ref_byte(&list->refs[old - 1], 0) < smart_ref_byte(&list->refs[old], 0);
	struct cut cut = {.tree = tree, .to = list->count, .max = SMART_PARTS_MAX, .parts = division->parts};

	smart_assert(old < list->count);
	/* Keys ascend where all that come lie behind all that are there. */
	for (uint32_t i = 0; i < old && behind; i++)
		behind = list->refs[i].tail_length > 0;
	*wanted = cut.wanted = behind ? 0 : tree->options.leaf_size * 3 / 4;
	if (!cut_range(&cut, leaf->lo, leaf->hi, 0, behind && full && apart ? old : 0))
		return false;
	division->count = cut.count;
	division->stays = behind && full && apart;
	return true;
}

/* An empty range becomes a leaf and nothing else. */
static bool
is_one_leaf(const struct smart_tree *tree, const struct smart_division *division)
{
	const struct smart_list *list = &tree->list;

	return division->count == 1 && smart_leaf_fits(tree, list, 0, list->count, 0);
}

smart_status
smart_divide_plan(struct smart_tree *tree, struct smart_division *division)
{
	struct smart_view *view = division->view;
	unsigned int room = free_slots(view);
	smart_status status;
	size_t wanted;
	uint32_t old;

	smart_assert(tree->entered && !tree->direct && division->guest_count > 0);
	division->step = SMART_DIVISION_NONE;
	division->block_count = 0;
	if (!smart_divide_shows(division, division->leaf.hi))
		return SMART_OK;
	/* With fewer guests, where there are too many parts. */
	for (unsigned int guests = division->guest_count; guests > 0; guests /= 2)
	{
		bool empty = smart_slot_is_empty(division->leaf.link);

		status = list_entries(tree, division, guests, &old);
		if (status != SMART_OK)
			return status;
		if (!choose_parts(tree, division, old, &wanted) || (empty && !is_one_leaf(tree, division)))
			continue;
		if (division->count - 1 > room)
		{
			view->full |= guests == 1 && smart_node_used(&view->node) == view->node.slots;
			continue;
		}
		status = build_parts(tree, division, wanted);
		if (status == SMART_TOO_LONG)
			continue;
		/* Whoever comes by itself may need less room, or hears that there is none. */
		if (smart_no_room(status))
			return SMART_OK;
		if (status != SMART_OK)
			return status;
		division->at = division->count - 1;
		division->step = division->count > 1 ? SMART_DIVISION_NARROW : SMART_DIVISION_REPLACE;
		view->planned += division->count - 1;
		return SMART_OK;
	}
	return SMART_OK;
}
