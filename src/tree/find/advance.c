/*
 * advance.c
 *	  Where a walk by pointers goes on behind a stretch without entries: one descent finds the next leaf.
 *
 * Keys that share many bytes have a chain of nodes above them, most of them with one child.  A walk that passes by what is
 * empty range by range, with a descent for each, takes the square of the chain's length, on the way down to its first leaf
 * and on the way up from its last one.
 *
 * What is believed here is what those descents would have been told: a slot of a live node that was come to by pointers
 * within this epoch, which is empty and not frozen, or a node whose prefix lies beside the cursor (search.c).  Where anything
 * else is met, the cursor stays in front of it, and the walk's next step looks at it.
 */
#include "tree/block/access.h"
#include "tree/find/find.h"

struct path
{
	struct smart_tree *tree;
	struct smart_cursor *cursor;
	struct smart_place place;
	unsigned int turn_depth; /* the last node on the way down that has more behind its child, */
	unsigned int turn_byte;  /* whose byte this is */
	bool turns;              /* there is one */
};

/* Is nothing in the node behind (backward: before) the child for this byte? */
static bool
is_last_child(const uint64_t *slots, unsigned int kind, unsigned int count, unsigned int byte, bool backward)
{
	while (byte != (backward ? 0u : 255u))
	{
		smart_slot slot;

		byte = backward ? byte - 1 : byte + 1;
		slot = smart_cover(slots, kind, count, byte);
		if (smart_place_kind_of(slot, byte, false) != SMART_PLACE_EMPTY)
			return false;
		byte = backward ? smart_slot_pk(slot) : smart_slot_empty_hi(slot);
	}
	return true;
}

/* All of the node has been passed: on to where the path has more. */
static smart_status
leave_node(const struct path *path)
{
	struct smart_cursor *cursor = path->cursor;

	if (!path->turns)
		return smart_cursor_pass(cursor, 0, cursor->backward ? 0 : 255);
	return smart_cursor_pass(cursor, path->turn_depth, path->turn_byte);
}

/* The cursor goes to the first slot of the node, from where it stands, that is not empty; *inside false: there is none. */
static smart_status
pass_empty(struct path *path, uint64_t header, const uint64_t *slots, unsigned int kind, bool *inside)
{
	struct smart_place *place = &path->place;
	struct smart_cursor *cursor = path->cursor;
	unsigned int count = path->tree->kind_slots[kind];
	unsigned int depth = smart_node_depth(header);
	const struct smart_place before = *place;
	smart_status status = SMART_OK;

	*inside = true;
	while (status == SMART_OK && *inside)
	{
		const struct smart_key key = smart_cursor_key(cursor);

		*place = before;
		smart_place_step(place, header, slots, kind, count, &key, false);
		if (place->kind != SMART_PLACE_EMPTY && place->kind != SMART_PLACE_MISMATCH)
			return SMART_OK;
		place->index = 0; /* any but the root's */
		status = smart_cursor_skip(cursor, place);
		*inside = !cursor->end && cursor->length >= depth + (place->kind == SMART_PLACE_EMPTY);
	}
	return status;
}

/* The same, and whether the path has a turn in the node. */
static smart_status
go_down(struct path *path, bool *on)
{
	struct smart_place *place = &path->place;
	unsigned int kind = smart_slot_size(place->slot);
	const uint64_t *words = fabric_direct(path->tree->fabric, smart_slot_address(place->slot), smart_kind_bytes(kind));
	const uint64_t *slots;
	uint64_t header;
	bool inside;
	smart_status status;

	*on = false;
	if (smart_unlikely(words == NULL || kind > SMART_NODE_KINDS))
		return SMART_CORRUPT;
	header = smart_load_acquire(words);
	if (smart_node_state(header) != SMART_LIVE || smart_node_depth(header) < place->consumed)
		return SMART_OK;
	slots = words + SMART_NODE_HEAD_WORDS;
	status = pass_empty(path, header, slots, kind, &inside);
	if (status != SMART_OK)
		return status;
	if (!inside)
		return leave_node(path);
	*on = place->kind == SMART_PLACE_NODE;
	if (*on && !SMART_FAULT(noturn) &&
		!is_last_child(slots, kind, path->tree->kind_slots[kind], smart_slot_pk(place->slot), path->cursor->backward))
	{
		path->turns = true;
		path->turn_depth = place->depth;
		path->turn_byte = smart_slot_pk(place->slot);
	}
	return SMART_OK;
}

static smart_status
advance(struct smart_tree *tree, struct smart_cursor *cursor)
{
	const uint64_t *root = fabric_direct(tree->fabric, tree->options.root, sizeof(uint64_t));
	struct path path = {.tree = tree, .cursor = cursor};
	bool on;
	smart_status status = SMART_OK;

	smart_assert(tree->direct && tree->entered && !cursor->end);
	if (root == NULL)
		return SMART_CORRUPT;
	path.place.slot = smart_load_acquire(root);
	on = smart_place_kind_of(path.place.slot, 0, false) == SMART_PLACE_NODE;
	while (status == SMART_OK && on)
		status = go_down(&path, &on);
	return status;
}

smart_status
smart_pass_gap(struct smart_tree *tree, struct smart_cursor *cursor, const struct smart_place *place, bool in_gap)
{
	smart_status status = smart_cursor_skip(cursor, place);

	if (status != SMART_OK || !in_gap || !tree->direct || cursor->end)
		return status;
	return advance(tree, cursor);
}
