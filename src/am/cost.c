/*
 * cost.c
 *	  What a scan costs.
 *
 * How many entries a condition selects, how the rows lie in the heap and what
 * repeated scans share does not depend on what kind of ordered index answers;
 * core's estimate for btree knows all that.  It is given the size of our tree,
 * which planner.c found out, and the price of our descent.  It is not told of
 * conditions that the index cannot narrow down to, such as ranges under a
 * collation whose order it does not know: all rows are fetched for those.
 */
#include "postgres.h"

#include "access/genam.h"
#include "nodes/nodeFuncs.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/am.h"
#include "base/assert.h"

/* So many blocks of the tree take as much work as one page of a btree on the way down: one byte is looked for in each. */
#define BLOCKS_PER_PAGE 5

/* The operator of a condition, or InvalidOid: IS NULL */
static Oid
operator_of(const IndexClause *clause)
{
	Expr *expression = linitial_node(RestrictInfo, clause->indexquals)->clause;

	if (IsA(expression, OpExpr))
		return ((OpExpr *) expression)->opno;
	if (IsA(expression, ScalarArrayOpExpr))
		return ((ScalarArrayOpExpr *) expression)->opno;
	return InvalidOid;
}

/* Those of the path's conditions that the index narrows down to */
static List *
narrowing_clauses(IndexPath *path)
{
	IndexOptInfo *info = path->indexinfo;
	Relation index = index_open(info->indexoid, NoLock);
	List *clauses = NIL;
	ListCell *cell;

	foreach (cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		Oid opno = operator_of(clause);
		int column = clause->indexcol;

		/* A partitioned table's index has no codec, and nothing is scanned there. */
		if (!OidIsValid(opno) || index->rd_rel->relkind != RELKIND_INDEX ||
			smart_codec_narrows(smart_relation_codec(index), column,
								get_op_opfamily_strategy(opno, info->opfamily[column])))
			clauses = lappend(clauses, clause);
	}
	index_close(index, NoLock);
	return clauses;
}

void
smart_am_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
			  Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List *clauses = path->indexclauses;
	int height = index->tree_height;

	/* btree's estimate counts levels from 0, and -1 as not known. */
	if (height > 0)
		index->tree_height = (height - 1) / BLOCKS_PER_PAGE;
	if (!index->hypothetical)
		path->indexclauses = narrowing_clauses(path);
	btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
	index->tree_height = height;
	path->indexclauses = clauses;
	smart_assert(*startup_cost <= *total_cost);
}
