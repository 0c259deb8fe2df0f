/*
 * as_btree.c
 *	  What the planner asks of btrees only, before version 18.
 *
 * Two questions are put to indexes that are btrees by name: has a join at most one
 * match there (an index that is unique by the operators of a family of btree), and
 * where do the values of a column end now (beyond what ANALYZE has seen).  A smart index has both answers.  So the
 * planner gets a second description of it, which bears the name and
 * the families of a btree.  Nothing is ever scanned by that one: it tells that it can
 * neither return rows nor a bitmap, so core throws away the paths that it makes of it.
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "catalog/pg_opfamily.h"

#include "am/am.h"
#include "am/compat.h"

/* Core asks for the cost of a path before it throws it away. */
static void
cost_nothing(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
			 Selectivity *selectivity, double *correlation, double *pages)
{
	*startup_cost = *total_cost = *correlation = *pages = 0;
	*selectivity = 1;
}

IndexOptInfo *
smart_as_btree(const IndexOptInfo *info, bool joins, bool ordered)
{
	bool proves = joins && info->unique && info->immediate && info->indpred == NIL;
	bool has_ends = ordered && info->indpred == NIL && info->canreturn[0];
	IndexOptInfo *btree;

	if (!SMART_PLANNER_WANTS_BTREE || info->sortopfamily == NULL || (!proves && !has_ends))
		return NULL;
	btree = makeNode(IndexOptInfo);
	*btree = *info;
	btree->relam = BTREE_AM_OID;
	btree->opfamily = info->sortopfamily;
	/* The planner reads no values from what might be there. */
	btree->hypothetical = !has_ends;
	btree->amcostestimate = cost_nothing;
	btree->amhasgettuple = btree->amhasgetbitmap = btree->amcanparallel = false;
	btree->amoptionalkey = false;
	return btree;
}

void
smart_name_booleans(IndexOptInfo *info)
{
	if (!SMART_PLANNER_WANTS_BOOLEAN_FAMILY || info->sortopfamily == NULL)
		return;
	for (int i = 0; i < info->nkeycolumns; i++)
	{
		if (info->sortopfamily[i] == BOOL_BTREE_FAM_OID)
			info->opfamily[i] = BOOL_BTREE_FAM_OID;
	}
}
