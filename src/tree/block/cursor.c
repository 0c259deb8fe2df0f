/*
 * cursor.c
 *	  Where a walk through the tree goes on: strings just behind, or just
 *	  before, what has been seen.
 */
#include "tree/block/cursor.h"
#include "tree/block/handle.h"

smart_status
smart_cursor_init(struct smart_cursor *cursor, struct smart_env *env)
{
	*cursor = (struct smart_cursor){.bytes = env->allocate(env, SMART_KEY_MAX + 1)};
	return cursor->bytes == NULL ? SMART_NO_MEMORY : SMART_OK;
}

void
smart_cursor_done(struct smart_cursor *cursor, struct smart_env *env)
{
	smart_release(env, cursor->bytes);
	cursor->bytes = NULL;
}

size_t
smart_successor(uint8_t *key, size_t length)
{
	while (length > 0 && key[length - 1] == 0xff)
		length--;
	if (length > 0)
		key[length - 1]++;
	return length;
}

/* Writes the padding out up to length bytes. */
static void
materialize(struct smart_cursor *cursor, unsigned int length)
{
	smart_assert(length <= SMART_KEY_MAX + 1);
	if (length > cursor->length)
		memset(cursor->bytes + cursor->length, cursor->pad, length - cursor->length);
	cursor->length = length;
}

smart_status
smart_cursor_pass(struct smart_cursor *cursor, unsigned int depth, unsigned int byte)
{
	smart_assert(depth <= SMART_KEY_MAX && byte <= 255);
	materialize(cursor, depth);
	cursor->bytes[depth] = (uint8_t) byte;
	cursor->length = depth + 1;
	cursor->pad = cursor->backward ? 0xff : 0x00;
	if (cursor->backward)
	{
		/* The last string before all that begin with these bytes, if 0xff follows it for ever. */
		while (cursor->length > 0 && cursor->bytes[cursor->length - 1] == 0)
			cursor->length--;
		if (cursor->length > 0)
			cursor->bytes[cursor->length - 1]--;
	}
	else
		cursor->length = (uint32_t) smart_successor(cursor->bytes, cursor->length);
	cursor->end = cursor->length == 0;
	return SMART_OK;
}

bool
smart_cursor_past(const struct smart_cursor *cursor, const uint8_t *bound, size_t length)
{
	size_t common;

	if (cursor->end)
		return true;
	if (length == 0)
		return false;
	if (!cursor->backward)
		return smart_compare_bytes(cursor->bytes, cursor->length, bound, length) >= 0;
	/* With 0xff behind it the cursor is below the bound only if a byte of its own is. */
	common = smart_common_prefix(cursor->bytes, cursor->length, bound, length);
	return common < cursor->length && common < length && cursor->bytes[common] < bound[common];
}

smart_status
smart_cursor_skip(struct smart_cursor *cursor, const struct smart_place *place)
{
	struct smart_key key = smart_cursor_key(cursor);
	unsigned int at = place->mismatch_at;
	unsigned int depth;

	if (place->kind == SMART_PLACE_EMPTY)
	{
		if (place->index < 0)
			return smart_cursor_pass(cursor, 0, cursor->backward ? 0 : 255);
		return smart_cursor_pass(cursor, place->depth,
								 cursor->backward ? smart_slot_pk(place->slot) : smart_slot_empty_hi(place->slot));
	}
	smart_assert(place->kind == SMART_PLACE_MISMATCH);
	if (cursor->backward == (smart_key_byte(&key, at) < place->mismatch_byte))
	{
		/* All below the node has been passed: leave its slot behind. */
		if (place->consumed == 0)
			return smart_cursor_pass(cursor, 0, cursor->backward ? 0 : 255);
		return smart_cursor_pass(cursor, place->consumed - 1, smart_key_byte(&key, place->consumed - 1));
	}
	/* All below the node lies ahead: go to its first (last) key. */
	depth = smart_node_depth(place->mismatch_header);
	materialize(cursor, at);
	for (unsigned int i = at; i < depth; i++)
		cursor->bytes[i] = (uint8_t) smart_node_partial_byte(place->mismatch_header, i);
	cursor->length = depth;
	cursor->pad = cursor->backward ? 0xff : 0x00;
	return SMART_OK;
}
