/*
 * as_btree.c
 *	  Indexes that pass for btrees, on servers that ask for the access method by name.
 *
 * Before version 18 INSERT ... ON CONFLICT asks whether a unique index is a btree when it opens the indexes of a partition,
 * and would do the right thing with a smart one, whose operator families have btree's numbers and operators (conflict.c,
 * routing.c).  It looks at the row of pg_class that the relcache has.  So for that long the access method in this row is
 * btree: not in the catalog, but in this process's copy.  The indexes are open meanwhile, so the copies stay where they
 * are.  If a message of another process has one read anew, it is changed again (at_change).
 *
 * REFRESH MATERIALIZED VIEW CONCURRENTLY asks so, too, but goes on to assert that the operator classes are btree's.
 *
 * An index is read and written through its callbacks, whatever the row says.  But the planner would look for a btree's
 * root and not know the order, and commands such as REINDEX would write down what they read.  Functions in a query may
 * call either at any time.  So both are counted as levels, and indexes pass for btrees on the level where that was begun.
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "optimizer/planner.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/as_btree.h"
#include "base/assert.h"

static planner_hook_type next_planner = NULL;
static ProcessUtility_hook_type next_utility = NULL;

static struct smart_as_btree *innermost = NULL;
static int level = 0;

/* ---- what the relcache says ---- */

static void
set_method(const struct smart_as_btree *self, Oid method)
{
	ListCell *cell;

	smart_assert(self->indexes != NIL && OidIsValid(method));
	foreach (cell, self->indexes)
		((Relation) lfirst(cell))->rd_rel->relam = method;
}

/* Sets the method of all indexes.  One may be in several lists. */
static void
set_methods(void)
{
	for (const struct smart_as_btree *one = innermost; one != NULL; one = one->outer)
		set_method(one, one->method);
	for (const struct smart_as_btree *one = innermost; one != NULL; one = one->outer)
	{
		if (one->level == level)
			set_method(one, BTREE_AM_OID);
	}
}

/* A relation has changed, or all of them may have: those that are open have been read anew. */
static void
at_change(Datum argument, Oid relation)
{
	set_methods();
}

void
smart_as_btree_begin(struct smart_as_btree *self, List *indexes)
{
	smart_assert(indexes != NIL);
	smart_assert(innermost == NULL || innermost->level <= level);
	for (const struct smart_as_btree *one = innermost; one != NULL; one = one->outer)
		set_method(one, one->method);
	*self = (struct smart_as_btree){.outer = innermost,
									.indexes = indexes,
									.method = ((Relation) linitial(indexes))->rd_rel->relam,
									.level = level};
	smart_assert(self->method != BTREE_AM_OID);
	innermost = self;
	set_methods();
}

void
smart_as_btree_end(struct smart_as_btree *self)
{
	smart_assert(innermost == self && self->level == level);
	set_method(self, self->method);
	innermost = self->outer;
	set_methods();
}

static void
enter(void)
{
	level++;
	set_methods();
}

static void
leave(void)
{
	smart_assert(level > 0);
	level--;
	set_methods();
}

/* ---- hooks ---- */

static PlannedStmt *
plan(Query *query, const char *text, int options, ParamListInfo params)
{
	planner_hook_type run = next_planner != NULL ? next_planner : standard_planner;
	PlannedStmt *planned;

	if (innermost == NULL)
		return run(query, text, options, params);
	enter();
	PG_TRY();
	{
		planned = run(query, text, options, params);
	}
	PG_FINALLY();
	{
		leave();
	}
	PG_END_TRY();
	return planned;
}

static void
at_utility(PlannedStmt *planned, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		   QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	ProcessUtility_hook_type run = next_utility != NULL ? next_utility : standard_ProcessUtility;

	if (innermost == NULL)
	{
		run(planned, query, read_only, context, params, environment, destination, completion);
		return;
	}
	enter();
	PG_TRY();
	{
		run(planned, query, read_only, context, params, environment, destination, completion);
	}
	PG_FINALLY();
	{
		leave();
	}
	PG_END_TRY();
}

void
smart_as_btree_init(void)
{
	if (!SMART_SPECULATE_OURSELVES)
		return;
	smart_assert(planner_hook != plan && ProcessUtility_hook != at_utility);
	next_planner = planner_hook;
	planner_hook = plan;
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = at_utility;
	CacheRegisterRelcacheCallback(at_change, (Datum) 0);
}
