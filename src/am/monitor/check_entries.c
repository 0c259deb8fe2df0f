/*
 * check_entries.c
 *	  The entries of an index that is checked, whether its tree or the pages of its journal answer.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "am/journal/follow.h"
#include "am/journal/known.h"
#include "am/journal/standby.h"
#include "am/journal/view.h"
#include "am/monitor/check_entries.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"
#include "base/bytes.h"

static __attribute__((noreturn)) void
report_replaced(Relation index)
{
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("index \"%s\" has to be loaded anew", RelationGetRelationName(index)),
			errhint("Check it again later."));
}

void
smart_check_report_used_anew(Relation index)
{
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the pages of index \"%s\" were used anew while they were read", RelationGetRelationName(index)),
			errhint("Check it again."));
}

struct smart_relation *
smart_check_open(Relation index)
{
	struct smart_relation *self;

	smart_known_forget();
	self = smart_relation_can_answer(index) ? smart_view_open(index, true) : NULL;
	if (self == NULL)
		return smart_journal_open(index, false);
	if (!smart_view_catch_up(self, index, true))
		report_replaced(index);
	return self;
}

/* ---- all of them ---- */

static void
read_view(struct smart_relation *self, Relation index, void (*take)(void *, const struct smart_batch *), void *argument)
{
	const uint8 nothing = 0;
	struct smart_batch batch;
	enum smart_found found;

	smart_view_seek(self->view, &nothing, 0, &nothing, 0, false);
	smart_view_will_be_closed(self->view);
	while ((found = smart_view_next(self->view, &batch)) == SMART_FOUND)
		take(argument, &batch);
	if (found != SMART_FOUND_END)
		smart_check_report_used_anew(index);
}

void
smart_check_each(struct smart_relation *self, Relation index,
				 void (*take)(void *argument, const struct smart_batch *batch), void *argument)
{
	struct smart_scan *scan;
	struct smart_batch batch;
	smart_status status;

	smart_assert(self->tree != NULL || self->view != NULL);
	if (self->view != NULL)
	{
		read_view(self, index, take, argument);
		return;
	}
	scan = smart_relation_scan(self);
	smart_check_status(smart_scan_seek(scan, NULL, 0, NULL, 0, false), index);
	while ((status = smart_relation_next(scan, &batch)) == SMART_OK)
	{
		CHECK_FOR_INTERRUPTS();
		take(argument, &batch);
	}
	if (status != SMART_DONE)
		smart_report_status(status, index);
}

/* ---- one ---- */

static bool
view_has(struct smart_relation *self, Relation index, const uint8 *key, int key_length)
{
	uint8 behind[SMART_KEY_MAX + 1];
	struct smart_batch batch;

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	memcpy(behind, key, (Size) key_length);
	smart_view_seek(self->view, key, (uint32) key_length, behind, (uint32) smart_successor(behind, (Size) key_length),
					false);
	return smart_view_next(self->view, &batch) == SMART_FOUND;
}

bool
smart_check_is_there(struct smart_relation *self, Relation index, const uint8 *key, int key_length)
{
	bool found;

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	/* On a standby the line pointer was freed by replay, which has replayed the removal of the entry before. */
	if (self->standby && !smart_follow_catch_up(index, self) && RecoveryInProgress())
		report_replaced(index);
	/*
	 * Opened again if it may have another tree by now: VACUUM takes away entries there alone.  And a view, as the caller is
	 * reading it.
	 */
	if (self->view != NULL || (!self->standby && self->changes != smart_changes()))
		self = smart_check_open(index);
	if (self->view != NULL)
		return view_has(self, index, key, key_length);
	if (self->tree == NULL)
		return false;
	smart_check_status(smart_relation_lookup(self, key, key_length, &found), index);
	return found;
}
