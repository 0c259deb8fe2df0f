/*
 * cost.c
 *	  What a scan costs.
 *
 * The estimate (cost_estimate.c) is not told of
 * conditions that the index cannot narrow down to, such as ranges under a
 * collation whose order it does not know: all rows are fetched for those.
 */
#include "postgres.h"

#include "access/genam.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/row_conditions.h"

/* Is anything fixed at the beginning of a pattern?  What is not known yet is taken to be. */
static bool
has_prefix(const struct smart_codec *codec, int column, int strategy, Node *pattern)
{
	uint8 bytes[SMART_COLUMNS_MAX];
	struct smart_bound bound;

	if (!IsA(pattern, Const) || ((Const *) pattern)->constisnull)
		return true;
	smart_codec_bound(codec, column, strategy, ((Const *) pattern)->constvalue, InvalidOid, bytes, sizeof(bytes),
					  &bound);
	return bound.kind != SMART_BOUND_PREFIX || bound.length > 1 || !bound.recheck;
}

/* Does a condition select a part of the index, or has its operator to be asked about every row? */
static bool
narrows(const struct smart_codec *codec, const IndexClause *clause, Oid family)
{
	Expr *condition = linitial_node(RestrictInfo, clause->indexquals)->clause;
	int column = clause->indexcol;
	int strategy;

	if (IsA(condition, OpExpr))
	{
		OpExpr *operation = (OpExpr *) condition;

		strategy = get_op_opfamily_strategy(operation->opno, family);
		return smart_codec_narrows(codec, column, strategy) &&
			   (strategy <= BTGreaterStrategyNumber || has_prefix(codec, column, strategy, lsecond(operation->args)));
	}
	if (IsA(condition, ScalarArrayOpExpr))
	{
		strategy = get_op_opfamily_strategy(((ScalarArrayOpExpr *) condition)->opno, family);
		return smart_codec_narrows(codec, column, strategy);
	}
	return true;
}

/* A path's conditions as estimates can judge them */
static List *
clauses_to_judge(PlannerInfo *root, const IndexPath *path)
{
	List *clauses = NIL;
	ListCell *cell;

	foreach (cell, path->indexclauses)
		clauses = lappend(clauses, smart_row_clause_to_judge(root, path->indexinfo, lfirst_node(IndexClause, cell)));
	return clauses;
}

/* Those of them that the index narrows down to */
static List *
narrowing_clauses(const IndexOptInfo *info, const List *all)
{
	Relation index = index_open(info->indexoid, NoLock);
	List *clauses = NIL;
	ListCell *cell;

	foreach (cell, all)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);

		/* A partitioned table's index has no codec, and nothing is scanned there. */
		if (index->rd_rel->relkind != RELKIND_INDEX ||
			narrows(smart_relation_codec(index), clause, info->opfamily[clause->indexcol]))
			clauses = lappend(clauses, clause);
	}
	index_close(index, NoLock);
	return clauses;
}

void
smart_am_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
			  Selectivity *selectivity, double *correlation, double *pages)
{
	List *clauses = path->indexclauses;
	struct smart_skipping skipping;

	path->indexclauses = clauses_to_judge(root, path);
	if (!path->indexinfo->hypothetical)
		path->indexclauses = narrowing_clauses(path->indexinfo, path->indexclauses);
	smart_cost_skip(root, path, &skipping);
	smart_cost_estimate(root, path, loop_count, &skipping, startup_cost, total_cost, selectivity, correlation, pages);
	path->indexclauses = clauses;
}
