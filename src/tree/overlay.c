/*
 * overlay.c
 *	  Merging two sources of entries in one order.
 */
#include <string.h>

#include "tree/overlay.h"

#define WORD ((uint32_t) sizeof(uint64_t))

#define FEW 32 /* entries of a side that are compared as they are: words would cost more */

/* Numbers of entries count from the first one of the overlay on, whichever side they are of. */

static const uint8_t *
bytes_of(const struct smart_overlay *overlay, uint32_t i)
{
	smart_assert(i < 2 * SMART_SIDE_MAX);
	return overlay->bytes + overlay->items[i].offset;
}

static void
begin_side(struct smart_side *side, uint32_t first, uint32_t begin)
{
	*side = (struct smart_side){.first = first, .begin = begin};
}

void
smart_overlay_begin(struct smart_overlay *overlay, bool backward)
{
	overlay->backward = backward;
	overlay->stale = true;
	begin_side(&overlay->base, 0, 0);
	begin_side(&overlay->over, SMART_SIDE_MAX, SMART_SIDE_BYTES);
}

/* The entries of a side that are left: from *i to before the result. */
static uint32_t
left_of(const struct smart_side *side, uint32_t *i)
{
	smart_assert(side->next <= side->count);
	*i = side->first + side->next;
	return side->first + side->count;
}

/* ---- words ---- */

/* How many bytes two entries share. */
static uint32_t
shared(const struct smart_overlay *overlay, uint32_t i, uint32_t j)
{
	return (uint32_t) smart_common_prefix(bytes_of(overlay, i), overlay->items[i].length, bytes_of(overlay, j),
										  overlay->items[j].length);
}

/* As many leading bytes have all entries in common that are left: both sides ascend or descend. */
static uint32_t
shared_by_all(const struct smart_overlay *overlay)
{
	uint32_t base;
	uint32_t over;
	uint32_t base_end = left_of(&overlay->base, &base);
	uint32_t over_end = left_of(&overlay->over, &over);
	uint32_t within = shared(overlay, base, base_end - 1);
	uint32_t first = shared(overlay, base, over);
	uint32_t last = shared(overlay, base, over_end - 1);
	uint32_t least = first < last ? first : last;

	smart_assert(base < base_end && over < over_end);
	return within < least ? within : least;
}

static void
set_words(struct smart_overlay *overlay, const struct smart_side *side, uint32_t from, uint64_t mask)
{
	/* Backward, what is greater comes first. */
	uint64_t turn = overlay->backward ? UINT64_MAX : 0;
	uint32_t i;
	uint32_t end = left_of(side, &i);

	for (; i < end; i++)
	{
		const struct smart_item item = overlay->items[i];
		/* A page may say anything. */
		uint64_t word =
			item.length > from ? smart_rank(overlay->bytes + item.offset + from, (size_t) item.length - from) : 0;

		overlay->words[i] = (word & mask) ^ turn;
	}
}

/*
 * A word has what follows the bytes that all have in common, as far as the shortest key over the base goes: so it tells the order of
 * two keys that differ there, whatever follows them in an entry.
 */
static void
make_words(struct smart_overlay *overlay)
{
	uint32_t shortest = UINT32_MAX;
	uint32_t longest = 0;
	uint32_t over;
	uint32_t end = left_of(&overlay->over, &over);
	uint32_t from;
	uint32_t length;
	uint64_t mask;

	for (uint32_t i = over; i < end; i++)
	{
		uint32_t key_length = overlay->key_lengths[i];

		shortest = key_length < shortest ? key_length : shortest;
		longest = key_length > longest ? key_length : longest;
	}
	smart_assert(over < end && shortest <= longest);
	from = shared_by_all(overlay);
	from = from < shortest ? from : shortest;
	length = shortest - from < WORD ? shortest - from : WORD;
	mask = length == 0 ? 0 : ~UINT64_C(0) << (8 * (WORD - length));
	set_words(overlay, &overlay->base, from, mask);
	set_words(overlay, &overlay->over, from, mask);
	overlay->exact = length > 0 && longest == from + length;
	overlay->stale = false;
}

/* ---- merging ---- */

/* The order of two entries in the direction of the scan: below 0, the one that lies over the base comes first; 0: it is the base's. */
static int
compare(const struct smart_overlay *overlay, uint32_t base, uint32_t over)
{
	uint32_t length = overlay->items[base].length;
	uint32_t key_length = overlay->key_lengths[over];
	int order = smart_compare_equal_length(bytes_of(overlay, over), bytes_of(overlay, base),
										   key_length < length ? key_length : length);

	return overlay->backward ? -order : order;
}

bool
smart_overlay_is_behind(const struct smart_overlay *overlay)
{
	const struct smart_side *base = &overlay->base;
	const struct smart_side *over = &overlay->over;

	return !base->ended && base->next < base->count &&
		   compare(overlay, base->first + base->count - 1, over->first + over->count - 1) > 0;
}

/* One of two numbers, without a branch, which a compiler would make of a conditional expression here. */
static inline uint32_t
pick(bool first, uint32_t one, uint32_t other)
{
	return other ^ ((one ^ other) & -(uint32_t) first);
}

/* Takes entries of both sides until one of them is used up; *out goes on by step.  words: the entries have them. */
static inline struct smart_item *
merge(struct smart_overlay *overlay, struct smart_item *out, int step, bool words)
{
	uint32_t base;
	uint32_t over;
	uint32_t base_end = left_of(&overlay->base, &base);
	uint32_t over_end = left_of(&overlay->over, &over);
	bool exact = words && overlay->exact;

	while (base < base_end && over < over_end)
	{
		uint64_t base_word = words ? overlay->words[base] : 0;
		uint64_t over_word = words ? overlay->words[over] : 0;
		bool from_base = base_word <= over_word;
		bool from_over = over_word <= base_word;

		if (!exact && base_word == over_word)
		{
			int order = compare(overlay, base, over);

			from_base = order >= 0;
			from_over = order <= 0;
		}
		*out = overlay->items[pick(from_over, over, base)];
		out += step & -(int) (!from_over | overlay->there[over]);
		base += from_base;
		over += from_over;
	}
	smart_assert(base <= base_end && over <= over_end);
	overlay->base.next = base - overlay->base.first;
	overlay->over.next = over - overlay->over.first;
	return out;
}

/* The same by whatever way is the fastest. */
static struct smart_item *
merge_blocks(struct smart_overlay *overlay, struct smart_item *out, int step)
{
	uint32_t in_base = overlay->base.count - overlay->base.next;
	uint32_t in_over = overlay->over.count - overlay->over.next;

	if (in_base == 0 || in_over == 0)
		return out;
	if (in_base <= FEW || in_over <= FEW)
		return merge(overlay, out, step, false);
	if (overlay->stale)
		make_words(overlay);
	return merge(overlay, out, step, true);
}

/* What is left of a side whose other one has ended. */
static struct smart_item *
take_rest(struct smart_overlay *overlay, struct smart_side *side, struct smart_item *out, int step)
{
	bool over = side == &overlay->over;
	uint32_t i;
	uint32_t end = left_of(side, &i);

	for (; i < end; i++)
	{
		*out = overlay->items[i];
		out += step & -(int) (!over || overlay->there[i]);
	}
	side->next = side->count;
	return out;
}

void
smart_overlay_merge(struct smart_overlay *overlay, struct smart_batch *batch)
{
	struct smart_side *base = &overlay->base;
	struct smart_side *over = &overlay->over;
	int step = overlay->backward ? -1 : 1;
	/* Backward, the batch is filled from its end. */
	struct smart_item *begin = overlay->merged + (overlay->backward ? 2 * SMART_SIDE_MAX : 0);
	struct smart_item *out = begin;

	*batch = (struct smart_batch){.prefix = overlay->bytes, .bytes = overlay->bytes};
	out = merge_blocks(overlay, out, step);
	if (smart_overlay_is_used_up(over))
		out = take_rest(overlay, base, out, step);
	if (smart_overlay_is_used_up(base))
		out = take_rest(overlay, over, out, step);
	batch->items = overlay->backward ? out + 1 : overlay->merged;
	batch->count = (uint32_t) (overlay->backward ? begin - out : out - begin);
	smart_assert(batch->count <= 2 * SMART_SIDE_MAX);
}
