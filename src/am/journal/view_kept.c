/*
 * view_kept.c
 *	  A view that is kept when its statement is over, as it is mostly opened again by the next one: with its delta's handle and its
 *	  buffers, but without its pin.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/journal/carry.h"
#include "am/journal/delta.h"
#include "am/journal/view_state.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

#define KEPT_VIEWS 4 /* of a session */

static struct smart_view *kept[KEPT_VIEWS];

/* Whoever has opened a view; lives in the memory context that he did so in. */
struct smart_view_holder
{
	struct smart_view *view; /* NULL: it was closed */
	MemoryContextCallback release;
};

/* Can the view be opened once more?  Not if an error has come in between, and what a former run had would be left. */
static bool
is_worth_keeping(const struct smart_view *view)
{
	return view->reading == 0 && view->taken == 1 && smart_view_has_sources(view) && !view->by_chain &&
		   view->operations == NULL;
}

static void
keep(struct smart_view *view)
{
	static uint32 next = 0;
	struct smart_view **place = &kept[next % KEPT_VIEWS];

	smart_assert(view->sorted == NULL);
	for (int i = 0; i < KEPT_VIEWS && *place != NULL; i++)
		place = &kept[++next % KEPT_VIEWS];
	if (*place != NULL)
		MemoryContextDelete((*place)->context);
	*place = view;
	next++;
	view->holder = NULL;
	view->index = NULL;
	view->codec = NULL;
}

/* Takes the view of an index that was kept, or returns NULL.  One that stays alone never takes one with a follower, nor the reverse. */
static struct smart_view *
take_kept(Relation index, bool alone)
{
	for (int i = 0; i < KEPT_VIEWS; i++)
	{
		struct smart_view *view = kept[i];

		if (view == NULL || view->oid != RelationGetRelid(index) ||
			(view->alone != alone && smart_relation_writes_back(index)))
			continue;
		kept[i] = NULL;
		if (likely(view->changes == smart_changes() &&
				   memcmp(&view->file, &smart_relation_locator(index), sizeof(view->file)) == 0))
			return view;
		MemoryContextDelete(view->context);
	}
	return NULL;
}

/* The pin holds the delta's memory back: a statement may open a view for each of its rows (ON CONFLICT). */
static void
release_view(void *argument)
{
	struct smart_view_holder *holder = argument;
	struct smart_view *view = holder->view;

	if (view == NULL)
		return;
	smart_assert(view->holder == holder);
	holder->view = NULL;
	smart_view_count_passed(view);
	smart_pin_leave(&view->pin);
	if (is_worth_keeping(view))
		keep(view);
	else
		MemoryContextDelete(view->context);
}

void
smart_view_release(struct smart_view *view)
{
	smart_view_end_sorted(view);
	release_view(view->holder);
}

static struct smart_view *
make_view(Relation index)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "smart view", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_view *view = palloc(sizeof(*view));

	memset(view, 0, offsetof(struct smart_view, range));
	view->context = context;
	view->oid = RelationGetRelid(index);
	view->file = smart_relation_locator(index);
	initStringInfo(&view->pile.bytes);
	initStringInfo(&view->pile.ends);
	MemoryContextSwitchTo(old);
	return view;
}

/* Goes on with the follower of a view that was kept, if it is to have one. */
static bool
take_up_follower(struct smart_view *view)
{
	bool carried = !view->alone && smart_relation_is_carried(view->index, &view->seen);

	if (!carried || view->follower == NULL)
		return !carried && view->follower == NULL;
	if (!smart_carry_is_usable(view->follower, &view->seen))
		return false;
	view->whole = smart_carry_has_all(view->index, view->follower);
	/* What was READ of it ahead is of a former statement. */
	view->renewals++;
	view->told = SMART_VIEW_NOTHING;
	return true;
}

/* The same with its run and its delta, if they are still those of the index. */
static bool
take_up(struct smart_view *view)
{
	if (!smart_view_has_sources(view) || !smart_relation_can_answer(view->index))
		return false;
	smart_meta_refresh(view->index, &view->seen);
	if (view->seen.journal != view->meta.journal || view->seen.run != view->meta.run ||
		!smart_meta_is_loadable(&view->seen) || (view->delta != NULL && !smart_delta_pin(view->delta, &view->pin)) ||
		!take_up_follower(view) || !smart_view_has_sources(view))
		return false;
	view->meta = view->seen;
	view->sought = false;
	view->near = false;
	view->behind = false;
	view->behind_range = view->ahead = false;
	smart_reader_begin_run(&view->reader, view->index, &view->meta, false);
	smart_view_leave_unfit_follower(view);
	return true;
}

struct smart_view *
smart_view_make(Relation index, const struct smart_codec *codec, bool alone)
{
	struct smart_view_holder *holder = palloc(sizeof(*holder));
	struct smart_view *view = take_kept(index, alone);
	ErrorContextCallback callback;
	bool done;

	if (view == NULL)
		view = make_view(index);
	smart_assert(view->holder == NULL && view->reading == 0);
	smart_assert(view->oid == RelationGetRelid(index));
	view->index = index;
	view->codec = codec;
	view->alone = alone;
	view->younger = false;
	view->waits = false;
	view->chain_reads = 0;
	view->holder = holder;
	*holder = (struct smart_view_holder){.view = view, .release = {.func = release_view, .arg = holder}};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &holder->release);
	smart_view_begin_reading(view, &callback);
	done = take_up(view) || smart_view_take_run(view);
	smart_view_end_reading(view, &callback);
	return done ? view : NULL;
}
