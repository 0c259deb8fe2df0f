/*
 * view.c
 *	  An index without a tree that answers from the pages of its journal: who opens it, and what has to be in it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/index/trees.h"
#include "am/journal/await.h"
#include "am/journal/delta.h"
#include "am/journal/follow.h"
#include "am/journal/staging.h"
#include "am/journal/view_state.h"
#include "am/server/report.h"
#include "am/server/settings.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

#define LOOK_MS 20 /* between two looks at a memory node that may be away */

/* ---- opening ---- */

bool
smart_view_attach(struct smart_relation *self, Relation index, bool alone)
{
	smart_assert(self->view == NULL);
	self->view = smart_view_make(index, self->codec, alone);
	return self->view != NULL;
}

void
smart_view_close(struct smart_relation *self)
{
	smart_view_release(self->view);
	self->view = NULL;
}

bool
smart_view_open_for_scan(struct smart_relation *self, Relation index)
{
	/* So that all that the snapshot sees is in the chain. */
	smart_staging_write_out_own();
	if (!smart_view_attach(self, index, false))
		return false;
	self->view->younger = true;
	return true;
}

struct smart_relation *
smart_view_open(Relation index, bool alone)
{
	struct smart_relation *self = smart_relation_open_bare(index);

	return smart_view_attach(self, index, alone) ? self : NULL;
}

uint64
smart_view_pinned(const struct smart_view *view)
{
	return view->meta.journal;
}

/* ---- what has to be in it ---- */

bool
smart_view_catch_up(struct smart_relation *self, Relation index, bool all)
{
	if (all)
		smart_staging_write_out(index, &self->tail, true);
	else
		smart_staging_write_out_own();
	/* What was read ahead may have been removed meanwhile. */
	self->view->sought = false;
	return smart_view_renew(self->view);
}

bool
smart_view_catch_up_key(struct smart_relation *self, Relation index, const struct smart_staged_key *key)
{
	smart_staging_write_out_key(index, &self->tail, key);
	self->view->sought = false;
	return smart_view_renew(self->view);
}

void
smart_view_catch_up_serializable(struct smart_relation *self, Relation index)
{
	if (IsolationIsSerializable() && !smart_view_catch_up(self, index, true))
		smart_view_leave(self, index);
}

/* ---- a tree instead ---- */

static bool
arrive_on_standby(struct smart_relation *self, Relation index)
{
	uint32 changes = smart_changes();
	const struct smart_relation *loaded = smart_relation_try_open(index);

	if (loaded == NULL || smart_tree_is_away(loaded->meta.tree))
	{
		self->changes = changes;
		return false;
	}
	if ((loaded->standby && loaded->tree != NULL && !smart_follow_catch_up(index, loaded)) ||
		!smart_relation_arrive(self, index))
		return false;
	/* That was loaded anew between the two. */
	if (self->standby && self->meta.tree != loaded->meta.tree && !smart_follow_catch_up(index, self))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" has been loaded anew since the statement began", RelationGetRelationName(index)),
				errhint("Try again."));
	return true;
}

/* Does the index have its tree again?  Then self has that, and no view. */
static bool
arrive(struct smart_relation *self, Relation index)
{
	smart_view_forget(self->view);
	return RecoveryInProgress() ? arrive_on_standby(self, index) : smart_relation_arrive(self, index);
}

/* The tree has gone, or cannot be read: self has a view, or the tree of now. */
static void
replace_tree(struct smart_relation *self, Relation index)
{
	/* As long as the open index. */
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(self));

	smart_assert(self->view == NULL && !self->standby);
	smart_relation_lose(self, index);
	while (!smart_view_attach(self, index, false) && smart_relation_can_answer(index))
		smart_journal_await(index);
	MemoryContextSwitchTo(old);
	/* Or it has its tree again. */
	if (self->view == NULL)
		(void) smart_relation_refresh(self, index);
}

bool
smart_view_replace_tree(struct smart_relation *self, Relation index)
{
	if ((likely(self->changes == smart_changes()) && self->meta.tree != 0) || self->view != NULL)
		return false;
	if (self->standby || !smart_relation_can_answer(index))
		return false;
	replace_tree(self, index);
	return true;
}

bool
smart_view_after_failure(struct smart_relation *self, Relation index, smart_status status, TimestampTz *until)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!smart_status_is_of_node(status) || self->view != NULL || self->standby || !smart_relation_could_answer(index))
		return false;
	if (*until == 0)
		*until = TimestampTzPlusMilliseconds(now, smart_settings.fabric_timeout_ms);
	/* Only the launcher can tell that a node is away, which takes it a moment. */
	if (now >= *until)
		return false;
	if (!smart_relation_can_answer(index))
		smart_changes_wait(LOOK_MS);
	if (smart_relation_can_answer(index))
		replace_tree(self, index);
	return true;
}

void
smart_view_leave(struct smart_relation *self, Relation index)
{
	while (!arrive(self, index))
	{
		CHECK_FOR_INTERRUPTS();
		if (smart_relation_is_to_answer(index) && smart_view_renew(self->view))
			return;
		if (smart_relation_is_loadable(index))
			smart_journal_await(index);
		else
		{
			(void) smart_relation_open(index); /* says why it cannot be used, unless that is over */
			smart_changes_wait(LOOK_MS);       /* or it has a tree that does not answer */
		}
	}
}

/* Has the view what the metapage told when it was opened?  Then it has all that the snapshot of its scan sees. */
static bool
is_current(struct smart_view *view)
{
	ErrorContextCallback callback;
	bool current;

	if (!view->younger || view->whole || view->by_chain || view->follower != NULL ||
		unlikely(view->changes != smart_changes()))
		return false;
	smart_view_begin_reading(view, &callback);
	current = smart_delta_is_current(view->index, view->delta, &view->meta);
	smart_view_end_reading(view, &callback);
	view->younger = false;
	return current;
}

void
smart_view_refresh(struct smart_relation *self, Relation index)
{
	if (unlikely(self->changes != smart_changes()) && arrive(self, index))
		return;
	if (!is_current(self->view) && !smart_view_catch_up(self, index, false))
		smart_view_leave(self, index);
}