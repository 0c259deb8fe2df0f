/*
 * ahead_ranges.c
 *	  Ranges of searches to come, whose leaves were READ together.
 *
 * The leaves are older than the searches, so a ticket with which a search may keep its result has to be from before they
 * were READ (src/README, A2): it is kept with the range.
 */
#include "postgres.h"

#include "am/scan/ahead_ranges.h"
#include "base/assert.h"

#define BYTES_ROOM 1024 /* for the beginnings of ranges, at first */

static bool
begins_so(const struct smart_ahead_ranges *self, unsigned int i, const struct smart_ranges *ranges)
{
	struct smart_span span = self->spans[i];

	smart_assert(i < self->count && span.offset + span.length <= self->used);
	return span.length == ranges->from_length && memcmp(self->bytes + span.offset, ranges->from, span.length) == 0;
}

bool
smart_ahead_ranges_ends_with(const struct smart_ahead_ranges *self, const struct smart_ranges *ranges)
{
	return self->count > 0 && begins_so(self, self->count - 1, ranges);
}

bool
smart_ahead_ranges_add(struct smart_ahead_ranges *self, MemoryContext context, const struct smart_ranges *ranges,
					   uint64 ticket)
{
	if (self->count == SMART_POINTS_MAX)
		return false;
	if (self->tickets == NULL)
	{
		self->tickets = MemoryContextAlloc(context, SMART_POINTS_MAX * sizeof(uint64));
		self->spans = MemoryContextAlloc(context, SMART_POINTS_MAX * sizeof(struct smart_span));
	}
	if (self->count == 0)
		self->used = self->next = 0;
	if (self->used + ranges->from_length > self->room)
	{
		self->room = Max(2 * self->room, self->used + ranges->from_length + BYTES_ROOM);
		self->bytes = self->bytes == NULL ? MemoryContextAlloc(context, self->room) : repalloc(self->bytes, self->room);
	}
	self->tickets[self->count] = ticket;
	self->spans[self->count] = (struct smart_span){.offset = self->used, .length = ranges->from_length};
	memcpy(self->bytes + self->used, ranges->from, ranges->from_length);
	self->used += ranges->from_length;
	self->count++;
	smart_assert(self->used <= self->room && self->count <= SMART_POINTS_MAX);
	return true;
}

uint64
smart_ahead_ranges_ticket(struct smart_ahead_ranges *self, const struct smart_ranges *ranges)
{
	for (unsigned int i = self->next; i < self->count; i++)
	{
		if (begins_so(self, i, ranges))
		{
			/* The same key may come again. */
			self->next = i;
			return self->tickets[i];
		}
	}
	return 0;
}

smart_status
smart_ahead_ranges_read(const struct smart_ahead_ranges *self, struct smart_scan *scan)
{
	struct smart_point points[SMART_POINTS_MAX];

	smart_assert(self->count > 0 && self->count <= SMART_POINTS_MAX);
	for (unsigned int i = 0; i < self->count; i++)
		points[i] = (struct smart_point){.bytes = self->bytes + self->spans[i].offset, .length = self->spans[i].length};
	return smart_scan_points(scan, points, self->count, false);
}
