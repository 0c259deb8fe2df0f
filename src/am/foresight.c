/*
 * foresight.c
 *	  The ranges that a scan comes to next, on memory nodes.
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
	bool remote = smart_server_is_remote();

	self->several = false;
	self->points = remote && ranges->nprefix == ranges->codec->nkeys;
	for (int i = 0; i < ranges->nprefix; i++)
	{
		self->several |= ranges->columns[i].count > 1;
		/* A row comparison may cut a part of the range off. */
		self->points &= !ranges->columns[i].wide;
	}
	self->several &= remote;
	self->left = 0;
	self->most = FIRST_POINTS;
}

void
smart_foresight_lose(struct smart_foresight *self)
{
	self->left = 0;
}

/* ---- what is known ---- */

static void
ask(const struct smart_foresight *self, struct smart_tree *tree, const struct smart_ranges *ranges,
	struct smart_foreseen *foreseen)
{
	foreseen->answer.ticket = 0;
	foreseen->known = self->points && smart_tree_answer(tree, ranges->from, ranges->from_length, &foreseen->answer);
}

/* Asks about the current range and the next ones. */
static void
look_ahead(struct smart_foresight *self, struct smart_tree *tree, struct smart_ranges *ranges, bool backward)
{
	uint32 current[INDEX_MAX_KEYS];

	if (self->ahead == NULL)
		self->ahead = MemoryContextAlloc(self->ends.context, SMART_POINTS_MAX * sizeof(struct smart_foreseen));
	memcpy(current, ranges->current, ranges->nprefix * sizeof(uint32));
	do
		ask(self, tree, ranges, &self->ahead[self->left++]);
	while (self->left < self->most && smart_ranges_next(ranges, backward));
	smart_ranges_go(ranges, current);
	self->next = 0;
	self->most = SMART_POINTS_MAX;
	self->said = false;
}

bool
smart_foresight_look(struct smart_foresight *self, struct smart_tree *tree, struct smart_ranges *ranges, bool backward)
{
	if (self->left == 0)
	{
		self->said = true;
		self->read_ahead = false;
		if (self->several)
			look_ahead(self, tree, ranges, backward);
	}
	if (self->left == 0)
		ask(self, tree, ranges, &self->now);
	else
	{
		self->now = self->ahead[self->next++];
		self->left--;
	}
	return self->now.known;
}

/* ---- what is sought ---- */

/* Says those of the current range and the next ones that are not known; one alone is not worth it. */
static smart_status
say(struct smart_foresight *self, struct smart_scan *scan, struct smart_ranges *ranges, bool backward)
{
	const struct smart_foreseen *foreseen = self->ahead + self->next - 1;
	struct smart_point points[SMART_POINTS_MAX];
	struct smart_ends *ends = &self->ends;
	unsigned int count = 0;
	smart_status status;

	smart_assert(self->next > 0 && !self->read_ahead);
	smart_ranges_ahead(ranges, backward, self->left + 1, ends);
	for (unsigned int i = 0; i < ends->count; i++)
	{
		if (!foreseen[i].known)
			points[count++] = (struct smart_point){.bytes = ends->bytes + ends->start[i],
												   .length = ends->start[i + 1] - ends->start[i]};
	}
	if (count > 1)
	{
		status = smart_scan_points(scan, points, count, backward);
		if (status != SMART_OK)
			return status;
		self->read_ahead = true;
	}
	self->said = true;
	return SMART_OK;
}

smart_status
smart_foresight_seek(struct smart_foresight *self, struct smart_scan *scan, struct smart_ranges *ranges, bool backward)
{
	smart_status status = SMART_OK;

	smart_assert(!self->now.known);
	if (!self->said)
		status = say(self, scan, ranges, backward);
	if (status == SMART_OK && self->read_ahead)
		status =
			smart_scan_seek_point(scan, ranges->from, ranges->from_length, ranges->to, ranges->to_length, backward);
	else if (status == SMART_OK)
		status = smart_scan_seek(scan, ranges->from, ranges->from_length, ranges->to, ranges->to_length, backward);
	if (status == SMART_OK)
		smart_scan_keep(scan, self->now.answer.ticket);
	return status;
}
