/*
 * prefetch.c
 *	  The ranges that a scan comes to next, on memory nodes.
 *
 * Each range costs a round trip, if it is looked for alone; the leaves where many of them begin cost one
 * together.  So a scan with arrays tells the tree its next ranges in advance: a few at first, since it may
 * end early (LIMIT), then as many as the tree takes.
 *
 * Where the conditions give every key column a value, the result of a range may be cached (src/README, Cached
 * results).  The tree is not told of such ranges.  Like a leaf that is READ ahead, a cached result is as old
 * as the moment of the look.
 */
#include "postgres.h"

#include "am/scan/prefetch.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define FIRST_POINTS 16  /* a scan that ends early has READ so many leaves in vain at most */
#define BYTES_ROOM   512 /* bytes of the ends of ranges, at first */

void
smart_prefetch_init(struct smart_prefetch *self, MemoryContext context)
{
	memset(self, 0, sizeof(*self));
	self->context = context;
}

void
smart_prefetch_begin(struct smart_prefetch *self, const struct smart_ranges *ranges)
{
	bool remote = smart_server.remote;

	self->several = false;
	self->points = remote && smart_ranges_are_points(ranges);
	for (int i = 0; i < ranges->nprefix; i++)
		self->several |= remote && ranges->columns[i].count > 1;
	self->left = 0;
	self->most = FIRST_POINTS;
}

void
smart_prefetch_lose(struct smart_prefetch *self)
{
	self->left = 0;
	self->to_come.count = 0;
}

/* ---- what is cached ---- */

/* Looks whether the result of the current range is cached. */
static void
look(const struct smart_prefetch *self, struct smart_tree *tree, const struct smart_ranges *ranges,
	 struct smart_next_range *range)
{
	range->cached.ticket = 0;
	range->known = self->points && smart_tree_result(tree, ranges->from, ranges->from_length, &range->cached);
}

bool
smart_prefetch_look(struct smart_prefetch *self, struct smart_tree *tree, struct smart_ranges *ranges, bool backward)
{
	if (self->left == 0)
	{
		self->said = true;
		self->read_ahead = false;
	}
	if (self->left == 0 && !self->several)
	{
		look(self, tree, ranges, &self->now);
		/* The leaf may be older than this look. */
		if (self->to_come.count > 0 && !self->now.known)
			self->now.cached.ticket = smart_ahead_ranges_ticket(&self->to_come, ranges);
		return self->now.known;
	}
	self->to_come.count = 0; /* the tree is told of these ranges instead */

	/* Look at the current range, which stays, and the next ones. */
	if (self->left == 0)
	{
		uint32 current[INDEX_MAX_KEYS];

		smart_assert(self->most > 0 && self->most <= SMART_POINTS_MAX);
		if (self->ahead == NULL)
			self->ahead = MemoryContextAlloc(self->context, SMART_POINTS_MAX * sizeof(struct smart_next_range));
		memcpy(current, ranges->current, ranges->nprefix * sizeof(uint32));
		do
			look(self, tree, ranges, &self->ahead[self->left++]);
		while (self->left < self->most && smart_ranges_next(ranges, backward));
		smart_ranges_go(ranges, current);
		self->next = 0;
		self->most = SMART_POINTS_MAX;
		self->said = false;
	}
	smart_assert(self->next + self->left <= SMART_POINTS_MAX);
	self->now = self->ahead[self->next++];
	self->left--;
	return self->now.known;
}

smart_status
smart_prefetch_fill(const struct smart_prefetch *self, const struct smart_ranges *ranges, struct smart_cached *made,
					struct smart_batch *batch)
{
	const struct smart_result *cached = &self->now.cached;
	uint32 length = ranges->from_length;
	uint32 count = 0;

	smart_assert(self->now.known && length + cached->length <= SMART_RESULT_BYTES_MAX);
	memcpy(made->point, ranges->from, length);
	memcpy(made->tails, cached->tails, cached->length);
	for (uint32 i = 0; i < cached->length; i += 1 + cached->tails[i])
	{
		smart_assert(count < SMART_CACHED_ENTRIES && cached->tails[i] > 0);
		made->items[count++] = (struct smart_item){.offset = (uint16_t) (i + 1), .length = cached->tails[i]};
	}
	*batch = (struct smart_batch){.count = count,
								  .prefix_length = length,
								  .prefix = made->point,
								  .bytes = made->tails,
								  .items = made->items};
	return count > 0 ? SMART_OK : SMART_DONE;
}

/* ---- what is sought ---- */

/*
 * Tells the tree where the current range, which stays, and the next ones begin or, backward, end, as far as their
 * results are not cached.  One alone is not worth it.
 */
static smart_status
say(struct smart_prefetch *self, struct smart_scan *scan, struct smart_ranges *ranges, bool backward)
{
	const struct smart_next_range *range = self->ahead + self->next - 1;
	struct smart_point points[SMART_POINTS_MAX];
	uint32 current[INDEX_MAX_KEYS];
	unsigned int count = 0;
	unsigned int i = 0;
	uint32 used = 0;
	smart_status status;

	smart_assert(self->next > 0 && self->next + self->left <= SMART_POINTS_MAX && !self->read_ahead);
	memcpy(current, ranges->current, ranges->nprefix * sizeof(uint32));
	do
	{
		uint32 length = backward ? ranges->to_length : ranges->from_length;

		if (range[i].known)
			continue;
		if (used + length > self->room)
		{
			self->room = Max(2 * self->room, used + length + BYTES_ROOM);
			self->bytes =
				self->bytes == NULL ? MemoryContextAlloc(self->context, self->room) : repalloc(self->bytes, self->room);
		}
		memcpy(self->bytes + used, backward ? ranges->to : ranges->from, length);
		used += length;
		points[count++].length = length;
	} while (++i <= self->left && smart_ranges_next(ranges, backward));
	smart_ranges_go(ranges, current);
	if (count > 1)
	{
		used = 0;
		for (i = 0; i < count; i++)
		{
			points[i].bytes = self->bytes + used;
			used += points[i].length;
		}
		status = smart_scan_points(scan, points, count, backward);
		if (status != SMART_OK)
			return status;
		self->read_ahead = true;
	}
	self->said = true;
	return SMART_OK;
}

smart_status
smart_prefetch_seek(struct smart_prefetch *self, struct smart_scan *scan, struct smart_ranges *ranges, bool backward)
{
	smart_status status = SMART_OK;

	smart_assert(!self->now.known && (!self->read_ahead || self->said));
	if (!self->said)
		status = say(self, scan, ranges, backward);
	if (status == SMART_OK && (self->read_ahead || self->to_come.count > 0))
		status =
			smart_scan_seek_point(scan, ranges->from, ranges->from_length, ranges->to, ranges->to_length, backward);
	else if (status == SMART_OK)
		status = smart_scan_seek(scan, ranges->from, ranges->from_length, ranges->to, ranges->to_length, backward);
	if (status == SMART_OK)
		smart_scan_keep(scan, self->now.cached.ticket);
	return status;
}
