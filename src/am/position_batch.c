/*
 * position_batch.c
 *	  The batch that an index scan is in, and how it comes to others.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "am/locate.h"
#include "am/position_parts.h"
#include "am/report.h"
#include "am/skip.h"
#include "base/assert.h"
#include "base/bytes.h"

static struct smart_scan *
tree_scan(struct smart_position *self)
{
	if (self->tree_scan == NULL)
		self->tree_scan = smart_relation_scan(self->relation);
	return self->tree_scan;
}

int
smart_position_entry(struct smart_position *self, int i)
{
	const struct smart_batch *batch = &self->batch;
	const struct smart_item *item = &batch->items[i];

	smart_assert(i >= 0 && (uint32) i < batch->count);
	smart_assert(batch->prefix_length + item->length <= sizeof(self->entry));
	if (!self->prefix_there)
	{
		memcpy(self->entry, batch->prefix, batch->prefix_length);
		self->prefix_there = true;
	}
	memcpy(self->entry + batch->prefix_length, batch->bytes + item->offset, item->length);
	return (int) (batch->prefix_length + item->length);
}

uint32
smart_position_key(struct smart_position *self, int i, uint8 *key)
{
	int length = smart_position_entry(self, i);
	int key_length = smart_codec_key_length(self->relation->codec, self->entry, length);

	memcpy(key, self->entry, key_length);
	return (uint32) key_length;
}

/* ---- holds ---- */

void
smart_position_end_hold(struct smart_position *self)
{
	if (self->holding)
		smart_hold_leave(&self->hold);
	self->holding = false;
}

void
smart_position_begin_hold(struct smart_position *self)
{
	if (!self->scan->xs_want_itup && IsMVCCSnapshot(self->scan->xs_snapshot))
		return;
	/* Copies that were read under a hold stand under it. */
	if (self->holding && (self->pieces.count > 0 || !smart_hold_wanted()))
		return;
	smart_position_end_hold(self);
	self->hold = smart_hold_enter(self->relation->meta.tree);
	self->holding = true;
	/* Behind the hold, for which who gives up a tree waits after he has said so. */
	smart_relation_check_whole(self->relation, self->scan->indexRelation);
	smart_scan_forget(tree_scan(self));
	smart_foresight_lose(&self->foresight);
}

/* ---- reading ---- */

void
smart_position_seek_range(struct smart_position *self, bool backward)
{
	smart_status status;
	uint64 since_ns = 0;

	self->backward = backward;
	self->told = false;
	self->known = smart_foresight_look(&self->foresight, self->relation->tree, self->ranges, backward);
	if (self->known)
		return;
	do
		status = smart_foresight_seek(&self->foresight, tree_scan(self), self->ranges, backward);
	while (smart_again_if_away(status, &since_ns));
	smart_check_status(status, self->scan->indexRelation);
}

bool
smart_position_seek_beyond(struct smart_position *self, uint8 *key, uint32 length, bool backward)
{
	const struct smart_ranges *ranges = self->ranges;
	smart_status status;

	self->backward = backward;
	self->known = false;
	smart_foresight_lose(&self->foresight);
	if (backward)
	{
		if (smart_compare_bytes(ranges->from, ranges->from_length, key, length) >= 0)
			return false;
		status = smart_scan_seek(tree_scan(self), ranges->from, ranges->from_length, key, length, true);
	}
	else
	{
		length = (uint32) smart_successor(key, length);
		if (ranges->to_length > 0 && smart_compare_bytes(key, length, ranges->to, ranges->to_length) >= 0)
			return false;
		status = smart_scan_seek(tree_scan(self), key, length, ranges->to, ranges->to_length, false);
	}
	smart_check_status(status, self->scan->indexRelation);
	return true;
}

/* The next batch of the current range, or SMART_DONE. */
static smart_status
read_range(struct smart_position *self)
{
	const struct smart_ranges *ranges = self->ranges;

	if (!self->known)
		return smart_relation_next(tree_scan(self), &self->batch);
	if (self->told)
		return SMART_DONE;
	self->told = true;
	smart_answered_fill(&self->answered, ranges->from, ranges->from_length, &self->foresight.now.answer, &self->batch);
	return self->batch.count > 0 ? SMART_OK : SMART_DONE;
}

bool
smart_position_read(struct smart_position *self, bool backward, bool *sought)
{
	smart_status status;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		status = *sought ? read_range(self) : SMART_DONE;
		if (status == SMART_OK)
		{
			smart_assert(self->batch.count > 0);
			self->prefix_there = false;
			return true;
		}
		if (status != SMART_DONE)
			smart_report_status(status, self->scan->indexRelation);
		self->batch.count = 0;
		if (!smart_ranges_next(self->ranges, backward))
			return false;
		smart_position_begin_hold(self);
		smart_position_seek_range(self, backward);
		*sought = true;
	}
}

bool
smart_position_leap(struct smart_position *self, bool backward)
{
	const struct smart_ranges *ranges = self->ranges;
	int last = backward ? 0 : (int) self->batch.count - 1;
	uint8 key[SMART_KEY_MAX + 1];
	uint8 group[SMART_KEY_MAX];
	uint32 length;
	int entry_length = smart_position_entry(self, last);
	int shared = smart_skip(ranges, self->entry, entry_length, backward, key, &length);

	if (shared < 0)
		return true;
	memcpy(group, self->entry, (Size) shared);
	(void) smart_position_entry(self, backward ? (int) self->batch.count - 1 : 0);
	if (memcmp(group, self->entry, (Size) shared) != 0)
		return true;
	if (length == 0)
		return false;
	smart_foresight_lose(&self->foresight);
	if (backward)
	{
		if (smart_compare_bytes(key, length, ranges->from, ranges->from_length) <= 0)
			return false;
		smart_check_status(smart_scan_seek(tree_scan(self), ranges->from, ranges->from_length, key, length, true),
						   NULL);
		return true;
	}
	if (ranges->to_length > 0 && smart_compare_bytes(key, length, ranges->to, ranges->to_length) >= 0)
		return false;
	smart_check_status(smart_scan_seek(tree_scan(self), key, length, ranges->to, ranges->to_length, false), NULL);
	return true;
}
