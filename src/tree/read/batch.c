/*
 * batch.c
 *	  From a leaf to a scan's batch: which entries lie within the bounds, in
 *	  order, copied out so that no epoch has to be held.
 */
#include "tree/block/cursor.h"
#include "tree/read/scan.h"

/* A leaf's depth and its prefix have at most so many bytes each. */
#define PREFIX_BYTES (2 * SMART_KEY_MAX + SMART_BATCH_SLACK)

#define PLACED_MAX 256 /* items that are put in order by their words */
#define WORDS      4   /* that are compared at a time */

typedef int32_t words_vector __attribute__((vector_size(WORDS * sizeof(int32_t))));

/* How a bound cuts the entries of one leaf, all of which begin with the same prefix. */
enum cut
{
	CUT_ALL,  /* every entry passes */
	CUT_NONE, /* no entry passes */
	CUT_SOME  /* compare suffixes with the rest of the bound */
};

struct bound
{
	enum cut cut;
	const uint8_t *rest; /* of the bound, behind the prefix */
	uint32_t rest_length;
};

struct filter
{
	struct bound lower; /* entry >= */
	struct bound upper; /* entry < */
	struct bound last;  /* entry <= bound ‖ 0xff...: the cursor of a backward scan */
	unsigned int limit;
	bool by_byte; /* the leaf has entries beyond limit */
};

smart_status
smart_batch_buffer_init(struct smart_batch_buffer *buffer, const struct smart_tree *tree)
{
	struct smart_env *env = tree->env;

	buffer->duplicates = !tree->direct;
	buffer->payload = tree->options.payload;
	buffer->prefix = env->allocate(env, PREFIX_BYTES);
	buffer->bytes = env->allocate(env, SMART_LEAF_BYTES_MAX + SMART_BATCH_SLACK);
	/* No leaf holds more entries than bytes. */
	buffer->items_capacity = SMART_LEAF_BYTES_MAX;
	buffer->items = env->allocate(env, buffer->items_capacity * sizeof(struct smart_item));
	if (buffer->prefix == NULL || buffer->bytes == NULL || buffer->items == NULL)
		return SMART_NO_MEMORY;
	return SMART_OK;
}

void
smart_batch_buffer_done(struct smart_batch_buffer *buffer, struct smart_env *env)
{
	smart_release(env, buffer->prefix);
	smart_release(env, buffer->bytes);
	smart_release(env, buffer->items);
}

/*
 * Compares a bound with the leaf's prefix.  below: what it means if the bound
 * sorts before the prefix; above: behind it; equal: if it is a prefix of it.
 */
static struct bound
make_bound(const uint8_t *bytes, uint32_t length, const uint8_t *prefix, uint32_t prefix_length, enum cut below,
		   enum cut above, enum cut equal)
{
	uint32_t shorter = length < prefix_length ? length : prefix_length;
	int order = shorter == 0 ? 0 : memcmp(bytes, prefix, shorter);

	if (order < 0)
		return (struct bound){.cut = below};
	if (order > 0)
		return (struct bound){.cut = above};
	if (length <= prefix_length)
		return (struct bound){.cut = equal};
	return (struct bound){.cut = CUT_SOME, .rest = bytes + prefix_length, .rest_length = length - prefix_length};
}

static void
make_filter(struct filter *filter, const struct smart_batch *batch, const struct smart_leaf *leaf, unsigned int limit,
			const struct smart_scan_bounds *bounds)
{
	const struct smart_cursor *cursor = bounds->cursor;
	const uint8_t *lower = cursor->backward ? bounds->from : cursor->bytes;
	uint32_t lower_length = cursor->backward ? bounds->from_length : cursor->length;

	smart_assert(limit <= 255);
	filter->lower = make_bound(lower, lower_length, batch->prefix, batch->prefix_length, CUT_ALL, CUT_NONE, CUT_ALL);
	filter->upper = (struct bound){.cut = CUT_ALL};
	if (bounds->to_length > 0)
		filter->upper =
			make_bound(bounds->to, bounds->to_length, batch->prefix, batch->prefix_length, CUT_NONE, CUT_ALL, CUT_NONE);
	filter->last = (struct bound){.cut = CUT_ALL};
	if (cursor->backward && cursor->pad == 0xff)
		filter->last =
			make_bound(cursor->bytes, cursor->length, batch->prefix, batch->prefix_length, CUT_NONE, CUT_ALL, CUT_ALL);
	filter->limit = limit;
	filter->by_byte = leaf->prefix_length == 0;
	if (leaf->prefix_length > 0 && smart_leaf_prefix(leaf)[0] > limit)
		filter->lower.cut = CUT_NONE;
}

static inline bool
passes_upper(const struct filter *filter, const uint8_t *suffix, unsigned int length)
{
	if (filter->by_byte && suffix[0] > filter->limit)
		return false;
	if (filter->upper.cut == CUT_SOME &&
		smart_compare_bytes(suffix, length, filter->upper.rest, filter->upper.rest_length) >= 0)
		return false;
	if (filter->last.cut == CUT_SOME)
	{
		unsigned int shorter = length < filter->last.rest_length ? length : filter->last.rest_length;

		if (memcmp(suffix, filter->last.rest, shorter) > 0)
			return false;
	}
	return true;
}

/* The first entry that passes the lower bound, where that can be told without walking. */
static unsigned int
first_offset(const struct smart_leaf *leaf, const struct bound *lower)
{
	if (leaf->stride == 0 || lower->cut != CUT_SOME)
		return leaf->start;
	return smart_leaf_lower_bound(leaf, lower->rest, lower->rest_length);
}

/* ---- order ---- */

/* Have two entries the same key? */
static inline bool
are_duplicates(const struct smart_batch_buffer *buffer, const uint8_t *block, struct smart_item a, struct smart_item b)
{
	return a.length == b.length && a.length > buffer->payload &&
		   memcmp(block + a.offset, block + b.offset, (size_t) a.length - buffer->payload) == 0 &&
		   !SMART_FAULT(duplicates);
}

/*
 * Loads the first word of each item, as a signed number of the same order: processors compare those many at a time.  The last vector is
 * filled up with the greatest number.  False: the key part of an item is shorter than a word.
 */
static bool
get_words(const struct smart_batch_buffer *buffer, const uint8_t *block, uint32_t count, int32_t *words)
{
	const struct smart_item *items = buffer->items;
	uint32_t shortest = UINT32_MAX;

	smart_assert(count > 0 && count <= PLACED_MAX);
	for (uint32_t i = 0; i < count; i++)
		shortest = items[i].length < shortest ? items[i].length : shortest;
	if (shortest < sizeof(*words) + buffer->payload)
		return false;
	for (uint32_t i = 0; i < count; i++)
		words[i] = smart_load_int32(block + items[i].offset);
	for (uint32_t i = count; i % WORDS != 0; i++)
		words[i] = INT32_MAX;
	return true;
}

/* Ascend the items from the last one of the run on? */
static bool
is_in_order(const int32_t *words, uint32_t run, uint32_t count)
{
	for (uint32_t i = run > 0 ? run : 1; i < count; i++)
	{
		if (words[i - 1] >= words[i])
			return false;
	}
	return true;
}

/* How many words are lower than this one; *equal: how many are equal to it, itself among them. */
static uint32_t
count_lower(const int32_t *words, uint32_t count, int32_t word, uint32_t *equal)
{
	words_vector lower = {0};
	words_vector same = {0};

	for (uint32_t i = 0; i < count; i += WORDS)
	{
		words_vector some;

		memcpy(&some, words + i, sizeof(some));
		/* What is true is -1. */
		lower -= some < word;
		same -= some == word;
	}
	*equal = (uint32_t) (same[0] + same[1] + same[2] + same[3]);
	return (uint32_t) (lower[0] + lower[1] + lower[2] + lower[3]);
}

/*
 * Puts the items of the tail, which follow those of the run, in their places.  An item's place is the number of words that are lower
 * than its own.  Counting them takes no branch; those of a binary search cannot be predicted.  False: two words are equal, or
 * there are none, and nothing was moved.
 */
static bool
place_by_words(const struct smart_batch_buffer *buffer, const uint8_t *block, uint32_t run, uint32_t count)
{
	struct smart_item *items = buffer->items;
	int32_t words[PLACED_MAX];
	struct smart_item tail[PLACED_MAX];
	uint32_t place[PLACED_MAX];
	uint8_t is_taken[PLACED_MAX];

	smart_assert(run < count);
	if (count > PLACED_MAX || !get_words(buffer, block, count, words))
		return false;
	if (is_in_order(words, run, count))
		return true;
	memset(is_taken, 0, count);
	for (uint32_t i = run; i < count; i++)
	{
		uint32_t equal;

		place[i] = count_lower(words, count, words[i], &equal);
		smart_assert(equal > 0 && place[i] < count);
		if (equal != 1)
			return false;
		is_taken[place[i]] = 1;
	}
	memcpy(tail, items + run, (count - run) * sizeof(*tail));
	/* No branch: where the place is taken, an item of the run is copied there all the same, and overwritten below. */
	for (uint32_t i = count, left = run; i > left; i--)
	{
		items[i - 1] = items[left > 0 ? left - 1 : 0];
		left -= !is_taken[i - 1];
	}
	for (uint32_t i = run; i < count; i++)
		items[place[i]] = tail[i - run];
	return true;
}

/*
 * Puts an item of the tail where it belongs among count ascending ones.  False: it is not
 * there, since its key is there already (I7), and came first.
 */
static bool
insert_item(const struct smart_batch_buffer *buffer, uint32_t count, const uint8_t *block, struct smart_item item)
{
	struct smart_item *items = buffer->items;
	uint32_t low = 0;
	uint32_t high = count;

	smart_assert(count < buffer->items_capacity);
	/* Keys that came in order are there in order. */
	if (count > 0 && smart_compare_bytes(block + items[count - 1].offset, items[count - 1].length, block + item.offset,
										 item.length) < 0)
		low = count;
	while (low < high)
	{
		uint32_t middle = (low + high) / 2;

		if (smart_compare_bytes(block + items[middle].offset, items[middle].length, block + item.offset, item.length) <
			0)
			low = middle + 1;
		else
			high = middle;
	}
	/* The payload may have put it on either side. */
	if (buffer->duplicates && ((low > 0 && are_duplicates(buffer, block, items[low - 1], item)) ||
							   (low < count && are_duplicates(buffer, block, items[low], item))))
		return false;
	memmove(&items[low + 1], &items[low], (count - low) * sizeof(item));
	items[low] = item;
	return true;
}

/* Puts the items of the tail among those of the run, which ascend; returns how many there are then. */
static uint32_t
put_in_order(const struct smart_batch_buffer *buffer, const uint8_t *block, uint32_t run, uint32_t count)
{
	uint32_t done = run;

	smart_assert(run <= count && count <= buffer->items_capacity);
	if (run == count || count == 1 || place_by_words(buffer, block, run, count))
		return count;
	for (uint32_t i = run; i < count; i++)
		done += insert_item(buffer, done, block, buffer->items[i]);
	smart_assert(done >= run && done <= count);
	return done;
}

/* ---- the batch ---- */

/* Items with offsets into the leaf's block, ascending.  SMART_CORRUPT: malformed. */
static smart_status
gather_items(struct smart_batch_buffer *buffer, const struct smart_leaf *leaf, const struct filter *filter,
			 uint32_t *result)
{
	const struct bound *lower = &filter->lower;
	struct smart_item *items = buffer->items;
	unsigned int offset = first_offset(leaf, lower);
	unsigned int first = offset;
	unsigned int stride = leaf->stride;
	uint32_t count = 0;
	uint32_t run = 0; /* of these */

	/* A sorted run of fixed suffixes passes as a whole if its last entry passes the upper bounds. */
	if (stride != 0 && first < leaf->sorted_end &&
		passes_upper(filter, leaf->block + leaf->sorted_end - stride, stride))
	{
		/* Counted, and of numbers that no store changes: the compiler makes vectors of it. */
		count = (leaf->sorted_end - first + stride - 1) / stride;
		for (uint32_t i = 0; i < count; i++)
			items[i] = (struct smart_item){.offset = (uint16_t) (first + i * stride), .length = (uint16_t) stride};
		run = count;
		offset = leaf->sorted_end;
	}
	while (offset < leaf->used)
	{
		bool in_run = offset < leaf->sorted_end;
		const uint8_t *suffix;
		unsigned int length;
		struct smart_item item;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0)
			return SMART_CORRUPT;
		if (!passes_upper(filter, suffix, length))
		{
			/* So does all of the run that follows. */
			if (in_run)
				offset = leaf->sorted_end;
			continue;
		}
		if (lower->cut != CUT_ALL && smart_compare_bytes(suffix, length, lower->rest, lower->rest_length) < 0)
			continue;
		item = (struct smart_item){.offset = (uint16_t) (suffix - leaf->block), .length = (uint16_t) length};
		items[count++] = item;
		run += in_run;
	}
	smart_assert(count <= buffer->items_capacity);
	*result = put_in_order(buffer, leaf->block, run, count);
	return SMART_OK;
}

/* Copies the suffixes out of the leaf: a few by themselves, many with the block. */
static void
copy_suffixes(struct smart_batch_buffer *buffer, const struct smart_leaf *leaf, uint32_t count)
{
	unsigned int used = 0;

	smart_assert(leaf->start <= leaf->used && leaf->used <= SMART_LEAF_BYTES_MAX);
	if (count > 4)
	{
		memcpy(buffer->bytes + leaf->start, leaf->block + leaf->start, leaf->used - leaf->start);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
	{
		memcpy(buffer->bytes + used, leaf->block + buffer->items[i].offset, buffer->items[i].length);
		buffer->items[i].offset = (uint16_t) used;
		used += buffer->items[i].length;
	}
}

smart_status
smart_batch_fill(struct smart_batch_buffer *buffer, const struct smart_leaf *leaf, unsigned int limit,
				 const struct smart_scan_bounds *bounds, struct smart_batch *batch)
{
	struct smart_key key = smart_cursor_key(bounds->cursor);
	struct filter filter;
	smart_status status = SMART_OK;

	smart_assert(leaf->depth + leaf->prefix_length + SMART_BATCH_SLACK <= PREFIX_BYTES);
	if (leaf->depth <= key.length)
		memcpy(buffer->prefix, key.bytes, leaf->depth);
	else
	{
		memcpy(buffer->prefix, key.bytes, key.length);
		memset(buffer->prefix + key.length, key.pad, leaf->depth - key.length);
	}
	memcpy(buffer->prefix + leaf->depth, smart_leaf_prefix(leaf), leaf->prefix_length);
	batch->prefix = buffer->prefix;
	batch->prefix_length = leaf->depth + leaf->prefix_length;
	batch->bytes = buffer->bytes;
	batch->items = buffer->items;
	batch->count = 0;
	make_filter(&filter, batch, leaf, limit, bounds);
	if (filter.lower.cut == CUT_NONE || filter.upper.cut == CUT_NONE || filter.last.cut == CUT_NONE)
		return SMART_OK;
	status = gather_items(buffer, leaf, &filter, &batch->count);
	if (status == SMART_OK)
		copy_suffixes(buffer, leaf, batch->count);
	return status;
}
