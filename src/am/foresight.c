/*
 * foresight.c
 *	  The ranges that a scan comes to next, said to a tree on memory nodes.
 */
#include "postgres.h"

#include "am/foresight.h"
#include "am/server.h"
#include "base/assert.h"

#define FIRST_POINTS 16 /* a scan that ends early has READ so many leaves in vain at most */

void
smart_foresight_init(struct smart_foresight *self, MemoryContext context)
{
	memset(self, 0, sizeof(*self));
	self->ends.context = context;
}

void
smart_foresight_begin(struct smart_foresight *self, const struct smart_ranges *ranges)
{
	self->wanted = false;
	for (int i = 0; i < ranges->nprefix; i++)
		self->wanted |= ranges->columns[i].count > 1;
	self->wanted &= smart_server_is_remote();
	self->left = 0;
	self->most = FIRST_POINTS;
}

void
smart_foresight_lose(struct smart_foresight *self)
{
	self->left = 0;
}

/* Says the current range and the next ones; one alone is not worth it. */
static smart_status
say(struct smart_foresight *self, struct smart_scan *scan, struct smart_ranges *ranges, bool backward)
{
	struct smart_point points[SMART_POINTS_MAX];
	struct smart_ends *ends = &self->ends;
	smart_status status;

	smart_ranges_ahead(ranges, backward, self->most, ends);
	if (ends->count == 1)
		return SMART_OK;
	for (unsigned int i = 0; i < ends->count; i++)
		points[i] =
			(struct smart_point){.bytes = ends->bytes + ends->start[i], .length = ends->start[i + 1] - ends->start[i]};
	status = smart_scan_points(scan, points, ends->count, backward);
	if (status != SMART_OK)
		return status;
	self->left = ends->count;
	self->most = SMART_POINTS_MAX;
	return SMART_OK;
}

smart_status
smart_foresight_seek(struct smart_foresight *self, struct smart_scan *scan, struct smart_ranges *ranges, bool backward)
{
	smart_status status = SMART_OK;

	if (self->wanted && self->left == 0)
		status = say(self, scan, ranges, backward);
	if (status != SMART_OK)
		return status;
	if (self->left == 0)
		return smart_scan_seek(scan, ranges->from, ranges->from_length, ranges->to, ranges->to_length, backward);
	self->left--;
	return smart_scan_seek_point(scan, ranges->from, ranges->from_length, ranges->to, ranges->to_length, backward);
}
