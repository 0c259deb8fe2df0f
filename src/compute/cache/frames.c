/*
 * frames.c
 *	  Frames of the ART cache: where a copy finds room, and which one has to go.
 *
 * Everything here runs under the partition's lock.  A new copy takes a vacant frame of its kind, or cuts a span that
 * was never used.  If there is neither, frames are drawn at random, alternately one of all and one of the kind that
 * needs room:
 *
 *	  - a frame that was hit since it was drawn last is cooled, and stays
 *	  - a frame whose children are in the cache stays: a path is known from the root down or it is worth nothing
 *	  - any other frame of the right kind is evicted
 *	  - if any other frame is of another kind and most of its span is cool, the whole span goes over to the kind that
 *	    needs room, after what is hot in it, or has children, has moved to other spans
 *	  - a span whose frames find room in other spans of their kind goes over at once
 *	  - where a node needs room, a span of leaf hints goes over cool or not.
 *
 * So room follows use, whatever sizes the nodes of the trees have, and a hit costs one mark, with no count or queue.
 */
#include "compute/cache/parts.h"

#define DRAWS_MAX  16 /* rounds before a frame has to go, hot or not */
#define FORCED_MAX 16 /* draws among those, in search of one without children */
#define REFUGE_MAX 4  /* draws for room for a frame whose span is given away */
#define ROOT_SPANS 64 /* in which to look for a frame for a root word */
#define COOL_SHARE 4  /* a span is cool if not more than one in so many of its frames is hot */
#define SPAN_NONE  UINT32_MAX

static inline unsigned int
kind_of_span(const struct cache_part *part, uint32_t span)
{
	return cache_identity_kind(part->spans[span].identity);
}

static inline uint32_t
frames_of_span(const struct cache_part *part, unsigned int kind)
{
	return (uint32_t) (((size_t) 1 << part->cache->span_shift) / cache_frame_bytes(kind));
}

/* The i-th frame of a span. */
static inline uint32_t
frame_in_span(const struct cache_part *part, uint32_t span, uint32_t i)
{
	return cache_number(((uint64_t) span << part->cache->span_shift) + i * cache_frame_bytes(kind_of_span(part, span)));
}

static uint32_t
draw_below(const struct cache_part *part, uint32_t limit)
{
	return (uint32_t) (((cache_random(&part->shared->random) >> 32) * limit) >> 32);
}

/* One frame that holds key more, or less. */
static inline void
count_frame(const struct cache_part *part, uint32_t number, uint64_t key, int64_t difference)
{
	uint64_t *frames = &part->shared->frames[cache_sort(key)];
	uint64_t *bytes = &part->shared->bytes[cache_sort(key)];
	uint64_t length = cache_frame_bytes(cache_kind_of_frame(part, number));

	smart_assert(cache_is_locked(part) && (difference > 0 || (*frames > 0 && *bytes >= length)));
	__atomic_store_n(frames, *frames + (uint64_t) difference, __ATOMIC_RELAXED);
	__atomic_store_n(bytes, *bytes + (uint64_t) difference * length, __ATOMIC_RELAXED);
}

/* ---- changes that readers notice ---- */

void
cache_begin_change(struct cache_frame *frame)
{
	smart_assert((frame->sequence & 1) == 0);
	__atomic_store_n(&frame->sequence, frame->sequence + 1, __ATOMIC_RELAXED);
	/* The odd number is visible before any word changes.  Partner: the acquire fence in read_frame. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

void
cache_end_change(struct cache_frame *frame)
{
	smart_assert((frame->sequence & 1) != 0);
	/* Release: the words are visible before the even number.  Partner: read_frame's acquire. */
	__atomic_store_n(&frame->sequence, frame->sequence + 1, __ATOMIC_RELEASE);
}

/* A frame's bucket and what it holds; its sequence is odd. */
static void
link_frame(const struct cache_part *part, uint32_t number, uint64_t tree, uint64_t key)
{
	struct cache_frame *frame = cache_frame_at(part, number);
	uint32_t *head = cache_head(part, tree, key);

	smart_assert(key != 0 && frame->key == 0 && cache_is_locked(part));
	smart_assert((frame->sequence & 1) != 0 && *head != number &&
				 cache_key_fits(key, cache_kind_of_frame(part, number)));
	if (!cache_is_hint(key))
		__atomic_store_n(&frame->body[0], tree, __ATOMIC_RELAXED);
	__atomic_store_n(&frame->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&frame->next, *head, __ATOMIC_RELAXED);
	/* Release: a reader that follows it sees the odd sequence at least. */
	__atomic_store_n(head, number, __ATOMIC_RELEASE);
	count_frame(part, number, key, 1);
}

void
cache_vacate(const struct cache_part *part, uint32_t number)
{
	struct cache_frame *frame = cache_frame_at(part, number);
	struct cache_span *span = &part->spans[cache_span_of(part, number)];
	unsigned int kind = cache_identity_kind(span->identity);
	uint32_t *link = cache_head(part, cache_tree_of(frame), frame->key);

	smart_assert(frame->key != 0 && span->used > 0 && cache_is_locked(part));
	count_frame(part, number, frame->key, -1);
	while (*link != number)
	{
		smart_assert(*link != 0);
		link = &cache_frame_at(part, *link)->next;
	}
	__atomic_store_n(link, frame->next, __ATOMIC_RELEASE);
	cache_begin_change(frame);
	__atomic_store_n(&frame->key, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&frame->next, span->vacant, __ATOMIC_RELAXED);
	cache_end_change(frame);
	span->vacant = number;
	span->used--;
	part->shared->vacant[kind]++;
	smart_assert(span->used < frames_of_span(part, kind));
}

/* Cuts a span, in which no frame is used, into vacant frames of a kind. */
static void
format_span(const struct cache_part *part, uint32_t index, unsigned int kind)
{
	struct cache_span *span = &part->spans[index];
	unsigned int old = cache_identity_kind(span->identity);
	uint64_t generation = (span->identity >> 8) + 1;
	uint32_t frames = frames_of_span(part, kind);

	smart_assert(index < part->cache->spans && span->used == 0 && kind > 0 && kind < CACHE_KINDS &&
				 cache_is_locked(part));
	smart_assert(old == 0 || part->shared->vacant[old] >= frames_of_span(part, old));
	if (old != 0)
		part->shared->vacant[old] -= frames_of_span(part, old);
	__atomic_store_n(&span->identity, generation << 8, __ATOMIC_RELAXED);
	/* Visible before any word of the new frames.  Partner: the acquire fence in read_frame. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	span->vacant = 0;
	for (uint32_t i = frames; i-- > 0;)
	{
		uint32_t number = cache_number(((uint64_t) index << part->cache->span_shift) + i * cache_frame_bytes(kind));
		struct cache_frame *frame = cache_frame_at(part, number);

		__atomic_store_n(&frame->sequence, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&frame->key, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&frame->next, span->vacant, __ATOMIC_RELAXED);
		span->vacant = number;
	}
	/* Release: the frames are whole.  Partner: read_frame's acquire. */
	__atomic_store_n(&span->identity, generation << 8 | kind, __ATOMIC_RELEASE);
	part->shared->vacant[kind] += frames;
}

/* ---- vacant frames ---- */

/* A vacant frame outside of span `but`; its sequence is odd from here on.  0: there is none. */
static uint32_t
take_vacant(const struct cache_part *part, unsigned int kind, uint32_t but)
{
	struct cache_partition *shared = part->shared;

	smart_assert(cache_is_locked(part) && kind > 0 && kind < CACHE_KINDS);
	for (uint32_t i = 0; shared->vacant[kind] > 0 && i < shared->spans_used; i++)
	{
		uint32_t index = (shared->roomy[kind] + i) % shared->spans_used;
		struct cache_span *span = &part->spans[index];
		uint32_t number = span->vacant;

		if (number == 0 || index == but || cache_identity_kind(span->identity) != kind)
			continue;
		smart_assert(cache_span_of(part, number) == index && cache_frame_at(part, number)->key == 0);
		smart_assert(span->used < frames_of_span(part, kind));
		shared->roomy[kind] = index;
		shared->vacant[kind]--;
		span->vacant = cache_frame_at(part, number)->next;
		span->used++;
		cache_begin_change(cache_frame_at(part, number));
		return number;
	}
	return 0;
}

/* ---- which frame has to go ---- */

enum judgement
{
	FRAME_VACANT,
	FRAME_STAYS, /* it was hit, or has children here */
	FRAME_GOES
};

static bool
has_children(const struct cache_part *part, uint32_t number)
{
	struct cache_frame *frame = cache_frame_at(part, number);
	unsigned int kind = cache_kind_of_frame(part, number);
	uint64_t tree = frame->key == CACHE_ROOT_KEY ? frame->body[0] : smart_slot_pk(frame->key);
	uint64_t unpacked[SMART_NODE_WORDS_MAX];
	const uint64_t *words = cache_words_of(frame, frame->key);
	unsigned int first = frame->key == CACHE_ROOT_KEY ? 0 : SMART_NODE_HEAD_WORDS;
	unsigned int end;

	if (cache_is_result(frame->key) || cache_is_hint(frame->key))
		return false;
	end = cache_words(frame->key, kind);
	if (cache_is_packed(kind) && frame->key != CACHE_ROOT_KEY)
	{
		if (cache_find_frame(part, 0, frame->key, unpacked) != number)
			return false;
		words = unpacked;
		end = SMART_NODE_HEAD_WORDS + cache_key_slots(frame->key);
	}
	for (unsigned int i = first; i < end; i++)
	{
		smart_slot slot = words[i];

		if (smart_slot_is_node(slot) && smart_slot_size(slot) >= 1 && smart_slot_size(slot) <= SMART_NODE_KINDS &&
			cache_has(part->cache, tree, slot))
			return true;
	}
	return false;
}

/* Cools a frame that was hit. */
static enum judgement
judge(const struct cache_part *part, uint32_t number)
{
	struct cache_frame *frame = cache_frame_at(part, number);
	uint8_t *heat = cache_heat_of(part, number);

	smart_assert(cache_is_locked(part) && (frame->sequence & 1) == 0);
	if (frame->key == 0)
		return FRAME_VACANT;
	if (__atomic_load_n(heat, __ATOMIC_RELAXED) != 0)
	{
		__atomic_store_n(heat, 0, __ATOMIC_RELAXED);
		return FRAME_STAYS;
	}
	return has_children(part, number) ? FRAME_STAYS : FRAME_GOES;
}

/* A frame of one kind outside of span `but`; 0: there is none. */
static uint32_t
draw_of_kind(const struct cache_part *part, unsigned int kind, uint32_t but)
{
	uint32_t spans = part->shared->spans_used;
	uint32_t first = draw_below(part, spans);

	for (uint32_t i = 0; i < spans; i++)
	{
		uint32_t span = (first + i) % spans;

		if (kind_of_span(part, span) == kind && span != but)
			return frame_in_span(part, span, draw_below(part, frames_of_span(part, kind)));
	}
	return 0;
}

static void
evict(const struct cache_part *part, uint32_t number)
{
	cache_vacate(part, number);
	cache_count(&part->line->counters.evictions);
}

/* ---- spans that go over to another kind ---- */

/* Are hardly any of its frames hot, and is there room elsewhere for those that lead to something? */
static bool
is_cool(const struct cache_part *part, uint32_t span)
{
	unsigned int kind = kind_of_span(part, span);
	uint32_t frames = frames_of_span(part, kind);
	uint32_t elsewhere = part->shared->vacant[kind] - (frames - part->spans[span].used);
	uint32_t parents = 0;
	uint32_t hot = 0;

	for (uint32_t i = 0; i < frames && hot * COOL_SHARE <= frames && parents <= elsewhere; i++)
	{
		uint32_t number = frame_in_span(part, span, i);

		if (__atomic_load_n(cache_heat_of(part, number), __ATOMIC_RELAXED) != 0)
			hot++;
		else if (cache_frame_at(part, number)->key != 0 && has_children(part, number))
			parents++;
	}
	return hot * COOL_SHARE <= frames && parents <= elsewhere;
}

/* Room elsewhere for a frame of a span that is given away; 0: no other frame may go. */
static uint32_t
find_refuge(const struct cache_part *part, unsigned int kind, uint32_t span)
{
	uint32_t number = take_vacant(part, kind, span);

	for (int i = 0; number == 0 && i < REFUGE_MAX; i++)
	{
		uint32_t other = draw_of_kind(part, kind, span);

		if (other == 0)
			return 0;
		if (judge(part, other) != FRAME_GOES)
			continue;
		evict(part, other);
		number = take_vacant(part, kind, span);
	}
	smart_assert(number == 0 || cache_span_of(part, number) != span);
	return number;
}

static void
move_frame(const struct cache_part *part, uint32_t from, uint32_t to, bool hot)
{
	struct cache_frame *old = cache_frame_at(part, from);
	struct cache_frame *new = cache_frame_at(part, to);
	uint64_t tree = cache_tree_of(old);
	uint64_t key = old->key;
	uint64_t front = old->body[0];

	smart_assert(key != 0 && from != to && (new->sequence & 1) != 0);
	smart_assert(cache_kind_of_frame(part, from) == cache_kind_of_frame(part, to));
	for (unsigned int i = 0; i < cache_words(key, cache_kind_of_frame(part, from)); i++)
		__atomic_store_n(&cache_words_of(new, key)[i], cache_words_of(old, key)[i], __ATOMIC_RELAXED);
	cache_vacate(part, from);
	link_frame(part, to, tree, key);
	if (!cache_is_hint(key))
		__atomic_store_n(&new->body[0], front, __ATOMIC_RELAXED);
	__atomic_store_n(cache_heat_of(part, to), hot ? 1 : 0, __ATOMIC_RELAXED);
	cache_end_change(new);
}

/* Is there room in other spans of the same kind for all that a span holds? */
static inline bool
is_spare(const struct cache_part *part, uint32_t span)
{
	unsigned int kind = kind_of_span(part, span);
	uint32_t used = part->spans[span].used;

	return part->shared->vacant[kind] - (frames_of_span(part, kind) - used) >= used;
}

/* Empties a span, and gives it to another kind. */
static void
give_span(const struct cache_part *part, uint32_t span, unsigned int kind)
{
	unsigned int old = kind_of_span(part, span);
	uint32_t frames = frames_of_span(part, old);
	bool spare = is_spare(part, span);

	smart_assert(old != 0 && span < part->shared->spans_used);
	for (uint32_t i = 0; i < frames; i++)
	{
		uint32_t number = frame_in_span(part, span, i);
		uint32_t refuge = 0;
		bool stays;

		if (cache_frame_at(part, number)->key == 0)
			continue;
		stays = judge(part, number) == FRAME_STAYS;
		if (stays || spare)
			refuge = find_refuge(part, old, span);
		if (refuge != 0)
			move_frame(part, number, refuge, stays);
		else
			evict(part, number);
	}
	format_span(part, span, kind);
	cache_count(&part->line->counters.moves);
}

/* ---- room ---- */

/* Evicts a frame of this kind, or gives a whole span of another one away; false: it stays. */
static bool
take_from(const struct cache_part *part, uint32_t number, unsigned int kind)
{
	uint32_t span = cache_span_of(part, number);
	bool spare = kind_of_span(part, span) != kind && is_spare(part, span);
	enum judgement judgement = spare ? FRAME_VACANT : judge(part, number);
	unsigned int old = kind_of_span(part, span);
	bool yields;

	if (old == kind)
	{
		if (judgement == FRAME_GOES)
			evict(part, number);
		return judgement != FRAME_STAYS;
	}
	if (!spare)
	{
		/* As many frames cool from this one on as make up one of a longer kind: all kinds lose heat alike, by bytes. */
		uint32_t frames = frames_of_span(part, old);
		uint32_t first = (uint32_t) ((number - frame_in_span(part, span, 0)) * CACHE_NUMBER / cache_frame_bytes(old));

		for (size_t i = 1; i < cache_frame_bytes(kind) / cache_frame_bytes(old); i++)
			__atomic_store_n(cache_heat_of(part, frame_in_span(part, span, (uint32_t) ((first + i) % frames))), 0,
							 __ATOMIC_RELAXED);
	}
	/* A node is worth more than the leaf hints that leave room for it: their span need not be cool. */
	yields = old >= CACHE_HINT && kind < CACHE_RESULT;
	if (judgement == FRAME_STAYS || (!spare && !yields && !is_cool(part, span)))
		return false;
	give_span(part, span, kind);
	return true;
}

static void
make_room(const struct cache_part *part, unsigned int kind)
{
	uint32_t spans = part->shared->spans_used;
	uint32_t number;

	smart_assert(spans == part->cache->spans && cache_is_locked(part));
	for (int i = 0; i < DRAWS_MAX; i++)
	{
		/* A frame of all, and then one of the kind. */
		uint32_t span = draw_below(part, spans);

		if (take_from(part, frame_in_span(part, span, draw_below(part, frames_of_span(part, kind_of_span(part, span)))),
					  kind))
			return;
		number = draw_of_kind(part, kind, SPAN_NONE);
		if (number != 0 && take_from(part, number, kind))
			return;
	}
	/* Everything is hot or leads to something: one of this kind, or a whole span if there is none. */
	number = draw_of_kind(part, kind, SPAN_NONE);
	for (int i = 0; number != 0 && i < FORCED_MAX && has_children(part, number); i++)
		number = draw_of_kind(part, kind, SPAN_NONE);
	if (number != 0)
		evict(part, number);
	else
		give_span(part, draw_below(part, spans), kind);
}

unsigned int
cache_root_kind(const struct cache_part *part)
{
	unsigned int best = 0;

	for (uint32_t i = 0; i < part->shared->spans_used && i < ROOT_SPANS; i++)
	{
		unsigned int kind = kind_of_span(part, i);

		if (kind < CACHE_RESULT && (best == 0 || cache_frame_bytes(kind) < cache_frame_bytes(best)))
			best = kind;
	}
	return best != 0 ? best : 1;
}

uint32_t
cache_make_frame(const struct cache_part *part, unsigned int kind, uint64_t tree, uint64_t key)
{
	uint32_t number = take_vacant(part, kind, SPAN_NONE);

	smart_assert(kind > 0 && kind < CACHE_KINDS && cache_key_fits(key, kind));
	if (number == 0)
	{
		uint32_t unused = part->shared->spans_used;

		if (unused < part->cache->spans)
		{
			format_span(part, unused, kind);
			/* Atomic for keep(), which looks without the lock whether there is any left. */
			__atomic_store_n(&part->shared->spans_used, unused + 1, __ATOMIC_RELAXED);
		}
		else
			make_room(part, kind);
		number = take_vacant(part, kind, SPAN_NONE);
	}
	smart_assert(number != 0);
	link_frame(part, number, tree, key);
	smart_assert(part->spans[cache_span_of(part, number)].used > 0);
	/* New copies begin cool: most of what a large scan brings is never asked for again. */
	__atomic_store_n(cache_heat_of(part, number), 0, __ATOMIC_RELAXED);
	return number;
}
