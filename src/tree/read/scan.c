/*
 * scan.c
 *	  Scans of ranges, forward and backward, a leaf at a time.
 *
 * The scan's position is a cursor, a string and not a block: between two calls
 * leaves may split, merge and move.  Each step finds the leaf that answers for
 * the cursor, returns the entries between the cursor and the end of what that
 * leaf stands for, and moves the cursor there.  So every entry that is there all
 * the time is met exactly once.
 *
 * On a remote provider the leaves that follow are READ ahead (readahead.c); on a
 * direct one their lines are prefetched.
 */
#include "tree/block/access.h"
#include "tree/block/cursor.h"
#include "tree/block/promise.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/read/readahead.h"
#include "tree/read/scan.h"
#include "tree/structure/order.h"
#include "tree/structure/strict.h"

#define PREFETCH_AHEAD 4

struct smart_scan
{
	struct smart_tree *tree;
	struct smart_cursor cursor;
	uint8_t *from;
	uint8_t *to;
	uint32_t from_length;
	uint32_t to_length;
	uint32_t steps;  /* batches since seek */
	bool orders;     /* leaves are put in order */
	bool in_gap;     /* the last step has met no leaf */
	uint64_t ticket; /* of the point that the range is, until its first step; 0: none */
	struct smart_batch_buffer buffer;
	struct smart_readahead *ahead; /* remote; NULL on a direct provider */
	/* Direct: the node of the last leaf, if the cursor is still below it. */
	struct smart_ancestor parent;
	/* Direct: the node whose leaves are prefetched, its leaf slots in order, and how far. */
	const uint64_t *sorted_node;
	uint32_t sorted_count;
	uint32_t prefetched;
	smart_slot sorted[256];
};

smart_status
smart_scan_open(struct smart_tree *tree, struct smart_scan **result)
{
	struct smart_env *env = tree->env;
	struct smart_scan *scan = env->allocate(env, sizeof(*scan));
	smart_status status;

	if (scan == NULL)
		return SMART_NO_MEMORY;
	memset(scan, 0, sizeof(*scan));
	scan->tree = tree;
	scan->from = env->allocate(env, 2 * (SMART_KEY_MAX + 1));
	scan->to = scan->from == NULL ? NULL : scan->from + SMART_KEY_MAX + 1;
	status = scan->from == NULL ? SMART_NO_MEMORY : smart_cursor_init(&scan->cursor, env);
	if (status == SMART_OK)
		status = smart_batch_buffer_init(&scan->buffer, tree);
	if (status == SMART_OK && !tree->direct)
		status = smart_readahead_open(tree, &scan->ahead);
	if (status != SMART_OK)
	{
		smart_scan_close(scan);
		return status;
	}
	scan->orders = smart_tree_is_swept(tree);
	scan->cursor.end = true;
	*result = scan;
	return SMART_OK;
}

void
smart_scan_close(struct smart_scan *scan)
{
	struct smart_env *env = scan->tree->env;

	if (scan->ahead != NULL)
		smart_readahead_close(scan->ahead);
	smart_batch_buffer_done(&scan->buffer, env);
	smart_cursor_done(&scan->cursor, env);
	smart_release(env, scan->from);
	env->release(env, scan);
}

/* Makes of a string the last key before it, or one with as little as possible between; returns its padding. */
static uint8_t
step_back(uint8_t *bytes, uint32_t length)
{
	if (length == 0)
		return 0xff;
	if (bytes[length - 1] == 0)
		return 0x00;
	bytes[length - 1]--;
	return 0xff;
}

static smart_status
seek(struct smart_scan *scan, const uint8_t *from, size_t from_length, const uint8_t *to, size_t to_length,
	 bool backward)
{
	smart_assert(!scan->tree->entered);
	if (from_length > SMART_KEY_MAX || to_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	if (from_length > 0)
		memcpy(scan->from, from, from_length);
	if (to_length > 0)
		memcpy(scan->to, to, to_length);
	scan->from_length = (uint32_t) from_length;
	scan->to_length = (uint32_t) to_length;
	scan->steps = 0;
	scan->in_gap = false;
	scan->ticket = 0;
	scan->sorted_node = NULL;
	scan->parent.words = NULL;
	scan->cursor.backward = backward;
	scan->cursor.end = to_length > 0 && smart_compare_bytes(from, from_length, to, to_length) >= 0;
	if (!backward)
	{
		if (from_length > 0)
			memcpy(scan->cursor.bytes, from, from_length);
		scan->cursor.length = (uint32_t) from_length;
		scan->cursor.pad = 0x00;
		return SMART_OK;
	}
	/* A backward scan begins with the last key below the upper end. */
	memcpy(scan->cursor.bytes, scan->to, to_length);
	scan->cursor.length = (uint32_t) to_length;
	scan->cursor.pad = step_back(scan->cursor.bytes, scan->cursor.length);
	return SMART_OK;
}

smart_status
smart_scan_seek(struct smart_scan *scan, const uint8_t *from, size_t from_length, const uint8_t *to, size_t to_length,
				bool backward)
{
	if (scan->ahead != NULL)
		smart_readahead_start(scan->ahead, backward ? scan->from : scan->to,
							  (uint32_t) (backward ? from_length : to_length), false);
	return seek(scan, from, from_length, to, to_length, backward);
}

smart_status
smart_scan_seek_point(struct smart_scan *scan, const uint8_t *from, size_t from_length, const uint8_t *to,
					  size_t to_length, bool backward)
{
	if (scan->ahead != NULL)
		smart_readahead_start(scan->ahead, backward ? scan->from : scan->to,
							  (uint32_t) (backward ? from_length : to_length), true);
	return seek(scan, from, from_length, to, to_length, backward);
}

smart_status
smart_scan_points(struct smart_scan *scan, const struct smart_point *points, unsigned int count, bool backward)
{
	struct smart_key keys[SMART_POINTS_MAX];
	smart_status status;

	smart_assert(count <= SMART_POINTS_MAX);
	if (scan->ahead == NULL)
		return SMART_OK;
	for (unsigned int i = 0; i < count; i++)
	{
		if (points[i].length > SMART_KEY_MAX)
			return SMART_TOO_LONG;
		keys[i] = (struct smart_key){.bytes = points[i].bytes,
									 .length = points[i].length,
									 .pad = backward ? step_back(points[i].bytes, points[i].length) : 0x00};
	}
	smart_enter(scan->tree);
	status = smart_readahead_points(scan->ahead, keys, count);
	return smart_leave(scan->tree, status);
}

/* ---- leaves ahead, direct ---- */

/* The leaf slots of a node in shared memory, in the scan's direction. */
static void
sort_node(struct smart_scan *scan, const uint64_t *words)
{
	unsigned int slots = scan->tree->kind_slots[smart_node_kind(smart_load_acquire(words))];

	smart_assert(scan->tree->direct && slots <= 256);
	scan->sorted_node = words;
	scan->sorted_count = 0;
	scan->prefetched = 0;
	for (unsigned int i = 0; i < slots; i++)
	{
		/* A direct-mapped node has them in order, so that the insertion below moves nothing. */
		unsigned int index = scan->cursor.backward ? slots - 1 - i : i;
		smart_slot slot = smart_load_acquire(&words[SMART_NODE_HEAD_WORDS + index]);
		uint32_t at = scan->sorted_count;

		if (!smart_slot_is_leaf(slot))
			continue;
		for (; at > 0 && (scan->sorted[at - 1] > slot) != scan->cursor.backward; at--)
			scan->sorted[at] = scan->sorted[at - 1];
		scan->sorted[at] = slot;
		scan->sorted_count++;
	}
}

/* Prefetches the leaves some way behind slot, each once; a hint only, so that a stale order does no harm. */
static void
prefetch_ahead(struct smart_scan *scan, const struct smart_place *place)
{
	uint32_t low = 0;
	uint32_t count;

	/* A scan that ends in its first leaf pays nothing. */
	if (scan->steps == 0 || place->index < 0)
		return;
	if (scan->sorted_node != place->shared)
		sort_node(scan, place->shared);
	count = scan->sorted_count;
	smart_assert(scan->prefetched <= count);
	while (count > 0)
	{
		uint32_t half = count / 2;

		if ((scan->sorted[low + half] <= place->slot) != scan->cursor.backward)
		{
			low += half + 1;
			count -= half + 1;
		}
		else
			count = half;
	}
	smart_assert(low <= scan->sorted_count);
	for (uint32_t i = low > scan->prefetched ? low : scan->prefetched;
		 i < scan->sorted_count && i < low + PREFETCH_AHEAD; i++)
	{
		smart_prefetch_block(scan->tree, smart_slot_address(scan->sorted[i]),
							 smart_slot_size(scan->sorted[i]) * SMART_UNIT);
		scan->prefetched = i + 1;
	}
}

/* ---- steps ---- */

/* The leaf that answers for the cursor, up to byte *limit of its depth. */
static smart_status
find_leaf(struct smart_scan *scan, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
		  unsigned int *limit)
{
	struct smart_tree *tree = scan->tree;
	smart_status status = SMART_OK;
	bool found = false;
	bool good;

	smart_assert(tree->entered && tree->locked == 0);
	if (scan->ahead != NULL)
		return smart_readahead_find(scan->ahead, &scan->cursor, place, leaf, limit);
	/* By pointers: from the node of the last leaf if the cursor is still below it, else from the root. */
	if (scan->parent.words != NULL)
		status = smart_find_from(tree, key, &scan->parent, place, &found);
	if (!found && status == SMART_OK)
		status = smart_find_fast(tree, key, place);
	if (status != SMART_OK)
		return status;
	if (place->kind == SMART_PLACE_LEAF)
	{
		status = smart_leaf_read(tree, place->slot, key, NULL, leaf, &good);
		if (status != SMART_OK)
			return status;
		if (good && leaf->state == SMART_LIVE && leaf->depth == place->depth && smart_leaf_covers(leaf, key))
		{
			prefetch_ahead(scan, place);
			/* Its node may be where the next one is found. */
			scan->parent.words = NULL;
			if (place->index >= 0)
				smart_remember_ancestor(&scan->parent, place->shared, place->shared_at);
			*limit = leaf->hi;
			return SMART_OK;
		}
	}
	else if (place->kind != SMART_PLACE_UNKNOWN)
		return SMART_OK; /* by pointers: as good as strict */
	scan->parent.words = NULL;
	return smart_confirm(tree, key, place, leaf, limit);
}

/* The same, and what the leaf has is there for good (C5a). */
static smart_status
find_settled(struct smart_scan *scan, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
			 unsigned int *limit)
{
	unsigned int attempts = 0;
	bool settled = true;
	smart_status status = find_leaf(scan, key, place, leaf, limit);

	if (status == SMART_OK && place->kind == SMART_PLACE_LEAF)
		status = smart_promise_settle(scan->tree, leaf, &settled);
	while (status == SMART_OK && !settled)
	{
		settled = true;
		status = smart_again(scan->tree, &attempts);
		if (status == SMART_OK)
			status = smart_confirm(scan->tree, key, place, leaf, limit);
		if (status == SMART_OK && place->kind == SMART_PLACE_LEAF)
			status = smart_promise_settle(scan->tree, leaf, &settled);
	}
	return status;
}

/* Moves the cursor behind what was found, whose entries it has up to a byte limit, if it is a leaf. */
static smart_status
pass(struct smart_scan *scan, const struct smart_place *place, const struct smart_leaf *leaf, unsigned int limit)
{
	struct smart_cursor *cursor = &scan->cursor;
	bool was_in_gap = scan->in_gap;
	smart_status status;

	scan->in_gap = place->kind != SMART_PLACE_LEAF;
	if (scan->in_gap)
		status = smart_pass_gap(scan->tree, cursor, place, was_in_gap);
	else
		status = smart_cursor_pass(cursor, leaf->depth, cursor->backward ? leaf->lo : limit);
	/* Is the cursor still below the remembered node, whose prefix it had? */
	if (scan->parent.words != NULL &&
		((scan->in_gap && was_in_gap) || cursor->length <= smart_node_depth(scan->parent.header)))
		scan->parent.words = NULL;
	return status;
}

/* One step, within an epoch. */
static smart_status
step(struct smart_scan *scan, struct smart_batch *batch)
{
	struct smart_key key = smart_cursor_key(&scan->cursor);
	struct smart_scan_bounds bounds = {.from = scan->from,
									   .from_length = scan->from_length,
									   .to = scan->to,
									   .to_length = scan->to_length,
									   .cursor = &scan->cursor};
	struct smart_place place;
	struct smart_leaf leaf;
	unsigned int limit;
	uint64_t ticket = scan->ticket;
	smart_status status = find_settled(scan, &key, &place, &leaf, &limit);

	batch->count = 0;
	scan->ticket = 0;
	if (status != SMART_OK)
		return status;
	smart_assert(place.kind == SMART_PLACE_LEAF || place.kind == SMART_PLACE_EMPTY ||
				 place.kind == SMART_PLACE_MISMATCH);
	if (place.kind == SMART_PLACE_LEAF)
	{
		smart_assert(limit <= 255);
		status = smart_batch_fill(&scan->buffer, &leaf, limit, &bounds, batch);
		if (status != SMART_OK)
			return status;
		/* One that ends in its first leaf leaves that as it is.  The batch is copied out. */
		if (scan->orders && scan->steps > 0 && smart_leaf_wants_order(&leaf))
			status = smart_order_leaf(scan->tree, &key, &leaf);
		if (status != SMART_OK)
			return status;
		scan->steps++;
	}
	/* The leaf that the point's range begins in tells its result if it holds all of it (A2).  The batch is copied out. */
	if (ticket != 0 && place.kind == SMART_PLACE_LEAF && leaf.state == SMART_LIVE && leaf.depth < scan->from_length)
	{
		struct smart_key point = {.bytes = scan->from, .length = scan->from_length};
		struct smart_result cached = {.ticket = ticket};

		if (smart_leaf_covers(&leaf, &point))
			smart_keep_result(scan->tree, &point, &leaf, &cached);
	}
	return pass(scan, &place, &leaf, limit);
}

void
smart_scan_keep(struct smart_scan *scan, uint64_t ticket)
{
	smart_assert(ticket == 0 || scan->tree->results);
	scan->ticket = ticket;
}

void
smart_scan_forget(struct smart_scan *scan)
{
	if (scan->ahead != NULL)
		smart_readahead_forget(scan->ahead);
}

bool
smart_scan_rest(const struct smart_scan *scan, uint8_t *from, uint32_t *from_length, uint8_t *to, uint32_t *to_length)
{
	const struct smart_cursor *cursor = &scan->cursor;
	/* A backward scan that has not moved stands before its upper end, which no successor tells. */
	bool moved = cursor->backward ? cursor->pad == 0xff : true;
	const uint8_t *edge = moved ? cursor->bytes : scan->to;

	if (cursor->end)
		return false;
	*from_length = cursor->backward ? scan->from_length : cursor->length;
	*to_length = !cursor->backward || !moved ? scan->to_length : cursor->length;
	smart_assert(*from_length <= SMART_KEY_MAX + 1 && *to_length <= SMART_KEY_MAX + 1);
	memcpy(from, cursor->backward ? scan->from : cursor->bytes, *from_length);
	memcpy(to, cursor->backward ? edge : scan->to, *to_length);
	if (cursor->backward && moved)
		*to_length = (uint32_t) smart_successor(to, *to_length);
	return true;
}

smart_status
smart_scan_next(struct smart_scan *scan, struct smart_batch *batch)
{
	unsigned int attempts = 0;

	while (scan->cursor.backward ? !smart_cursor_past(&scan->cursor, scan->from, scan->from_length)
								 : !smart_cursor_past(&scan->cursor, scan->to, scan->to_length))
	{
		smart_status status;

		smart_enter(scan->tree);
		status = smart_leave(scan->tree, step(scan, batch));
		if (status != SMART_OK)
			return status;
		if (batch->count > 0)
			return SMART_OK;
		/* Long empty stretches must stay interruptible. */
		if ((++attempts & 0xff) == 0 && scan->tree->env->interrupted(scan->tree->env))
			return SMART_INTERRUPTED;
	}
	return SMART_DONE;
}
