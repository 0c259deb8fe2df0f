/*
 * view_now.c
 *	  What a view reads: the run, the follower and the delta, as long as they are those of now.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/index/trees.h"
#include "am/journal/carry.h"
#include "am/journal/chain_range.h"
#include "am/journal/delta.h"
#include "am/journal/due.h"
#include "am/journal/follow.h"
#include "am/journal/spent.h"
#include "am/journal/view_state.h"
#include "am/server/errands.h"
#include "am/server/passed.h"
#include "am/server/rebuild_table.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

/* ---- damage ---- */

/* Called for each message while a view's pages are read: nobody else may read those of an index that has no tree for good. */
static void
look_for_damage(void *argument)
{
	const struct smart_view *view = argument;
	int code = geterrcode();

	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		smart_rebuild_want_anew(smart_relation_database(view->index), RelationGetRelid(view->index));
}

void
smart_view_begin_reading(struct smart_view *view, ErrorContextCallback *callback)
{
	*callback = (ErrorContextCallback){.previous = error_context_stack, .callback = look_for_damage, .arg = view};
	error_context_stack = callback;
	view->reading++;
}

void
smart_view_end_reading(struct smart_view *view, const ErrorContextCallback *callback)
{
	smart_assert(view->reading > 0 && error_context_stack == callback);
	error_context_stack = callback->previous;
	view->reading--;
}

/* ---- what there is now ---- */

void
smart_view_end_sorted(struct smart_view *view)
{
	if (view->sorted == NULL)
		return;
	smart_sorted_chain_end(view->sorted);
	view->sorted = NULL;
	MemoryContextDelete(view->of_sorted);
}

/*
 * Scans pass by the same removed entries again and again, until there is another run; and by spent tombstones, until the carrier has
 * removed them.  If he cannot, they count as the others.
 */
void
smart_view_count_passed(struct smart_view *view)
{
	uint64 passed = view->passed_by;
	uint64 spent = view->spent;
	uint64 delta;
	uint64 sum;
	bool pays;

	view->passed_by = view->spent = 0;
	if (likely(passed + spent == 0) || view->delta == NULL || RecoveryInProgress())
		return;
	delta = view->delta->meta.tree;
	sum = smart_spent_pass(delta, spent, &pays) + smart_passed_add(delta, passed);
	if (pays)
		smart_errand_hurry(SMART_ERRAND_CARRY, MyDatabaseId, view->oid);
	/* Once: who compacts looks whether it is due (due.h). */
	if (smart_compaction_would_pay(&view->meta, sum) && !smart_compaction_would_pay(&view->meta, sum - passed - spent))
		smart_errand_request(SMART_ERRAND_COMPACT, MyDatabaseId, view->oid);
}

/* Looks whether there is a follower that can be the base, and whether it needs the delta. */
static void
take_follower(struct smart_view *view)
{
	/* As long as the view. */
	MemoryContext old = MemoryContextSwitchTo(view->context);

	view->follower = view->alone ? NULL : smart_carry_open(view->index, view->codec, &view->meta);
	MemoryContextSwitchTo(old);
	view->whole = view->follower != NULL && smart_carry_has_all(view->index, view->follower);
	view->changes = smart_changes();
	view->renewals++;
	view->taken++;
	view->sought = false;
	view->told = SMART_VIEW_NOTHING;
}

/* The same, if there is one now, or the one there was cannot be any more. */
static void
look_for_follower(struct smart_view *view)
{
	if (view->follower != NULL ? !smart_carry_is_usable(view->follower, &view->meta)
							   : !view->alone && unlikely(view->changes != smart_changes()))
		take_follower(view);
}

/* Has the follower all by itself by now?  What was read ahead of it before has not. */
static bool
is_whole(struct smart_view *view)
{
	bool was_whole = view->whole;

	view->whole = view->follower != NULL && smart_carry_has_all(view->index, view->follower);
	if (view->whole && !was_whole)
		view->renewals++;
	return view->whole;
}

/* A lean delta goes with the run alone, another one with a follower that has come as far as its spent tombstones say. */
static bool
go_together(const struct smart_relation *delta, const struct smart_relation *follower)
{
	struct smart_chain_place place;

	return !smart_tree_is_lean(delta->meta.tree) && smart_follow_place(follower->meta.tree, &place) &&
		   smart_spent_allows(delta->meta.tree, &place);
}

void
smart_view_leave_unfit_follower(struct smart_view *view)
{
	if (view->follower == NULL || view->whole || view->delta == NULL || go_together(view->delta, view->follower))
		return;
	view->follower = NULL;
	view->renewals++;
	view->sought = false;
	view->told = SMART_VIEW_NOTHING;
}

/* Nobody has made the delta of a long chain yet: is that read instead? */
static bool
may_do_without_delta(const struct smart_view *view)
{
	return !view->waits && smart_chain_range_pays(&view->meta) && !smart_delta_is_there(view->index, &view->meta);
}

void
smart_view_wait_for_delta(struct smart_view *view)
{
	MemoryContext old = MemoryContextSwitchTo(view->context);

	smart_assert(view->by_chain && view->delta == NULL);
	view->by_chain = false;
	view->waits = true;
	view->delta = smart_delta_open(view->index, view->codec, &view->meta, &view->pin);
	MemoryContextSwitchTo(old);
	if (view->delta == NULL || !smart_delta_catch_up(view->index, view->codec, view->delta, &view->seen))
		view->behind = true;
	/* What was READ of the follower ahead was READ before the delta was pinned. */
	view->renewals++;
	view->told = SMART_VIEW_NOTHING;
	smart_view_leave_unfit_follower(view);
}

bool
smart_view_take_run(struct smart_view *view)
{
	Relation index = view->index;
	MemoryContext old = MemoryContextSwitchTo(view->context);

	smart_view_count_passed(view);
	smart_view_end_sorted(view);
	view->delta = NULL;
	view->follower = NULL;
	view->whole = view->near = view->by_chain = false;
	smart_pin_leave(&view->pin);
	for (int i = 0; i < SMART_VIEW_RENEWALS_MAX && !smart_view_has_sources(view) && smart_relation_can_answer(index);
		 i++)
	{
		uint64 run = view->meta.run;

		/* If the journal has gone on meanwhile, there is another delta to be made. */
		smart_meta_refresh(index, &view->seen);
		view->meta = view->seen;
		view->number = 0;
		if (i > 0 && view->meta.run == run)
			break;
		take_follower(view);
		view->by_chain = !view->whole && may_do_without_delta(view);
		if (!view->whole && !view->by_chain)
			view->delta = smart_delta_open(index, view->codec, &view->meta, &view->pin);
	}
	MemoryContextSwitchTo(old);
	view->sought = false;
	view->behind = false;
	if (!smart_view_has_sources(view))
		return false;
	smart_assert(view->by_chain + view->whole + (view->delta != NULL) == 1);
	smart_reader_begin_run(&view->reader, index, &view->meta, false);
	view->behind_range = view->ahead = false;
	smart_view_leave_unfit_follower(view);
	return true;
}

/* Without a delta: the chain is read once more, unless there is another run. */
static bool
read_again(struct smart_view *view)
{
	smart_assert(view->by_chain && view->delta == NULL);
	view->sought = false;
	smart_meta_refresh(view->index, &view->seen);
	return smart_meta_is_loadable(&view->seen) && view->seen.journal == view->meta.journal &&
		   view->seen.run == view->meta.run;
}

bool
smart_view_renew(struct smart_view *view)
{
	ErrorContextCallback callback;
	bool done = false;
	bool usable = true;

	smart_view_begin_reading(view, &callback);
	view->near = false;
	for (int i = 0; i < SMART_VIEW_RENEWALS_MAX && usable && !done; i++)
	{
		done = is_whole(view) || (view->by_chain && read_again(view)) ||
			   (view->delta != NULL && smart_delta_catch_up(view->index, view->codec, view->delta, &view->seen));
		usable = done || smart_view_take_run(view);
	}
	if (done && !view->whole)
		look_for_follower(view);
	smart_view_leave_unfit_follower(view);
	smart_view_end_reading(view, &callback);
	return done;
}

bool
smart_view_find_delta(struct smart_view *view)
{
	smart_assert(view->whole);
	if (view->by_chain)
		return false;
	if (view->delta == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(view->context);

		view->delta = smart_delta_find(view->index, view->codec, &view->meta, &view->pin);
		MemoryContextSwitchTo(old);
		/* What was READ of the follower ahead was READ before the delta was pinned. */
		view->renewals++;
	}
	return view->delta != NULL && smart_delta_catch_up(view->index, view->codec, view->delta, &view->seen);
}
