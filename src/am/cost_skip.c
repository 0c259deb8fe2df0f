/*
 * cost_skip.c
 *	  What a scan saves by leaping over entries (skip.c).
 *
 * A scan need not read all entries between the first
 * and the last one, whatever the conditions on later columns.  It
 * reads a leaf of each group of equal columns before those, and what it finds.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "am/am.h"
#include "base/assert.h"

/* To leap into a group costs what the first page of any search does: as many entries as a page of a btree has. */
#define ENTRIES_PER_LEAP 350.0

/* Does a condition leave single values of its column? */
static bool
leaves_points(const IndexOptInfo *index, const IndexClause *clause)
{
	Expr *expression = linitial_node(RestrictInfo, clause->indexquals)->clause;
	Oid operator;

	if (IsA(expression, NullTest))
		return ((NullTest *) expression)->nulltesttype == IS_NULL;
	if (IsA(expression, OpExpr))
		operator=((OpExpr *) expression)->opno;
	else if (IsA(expression, ScalarArrayOpExpr))
		operator=((ScalarArrayOpExpr *) expression)->opno;
	else
		return false;
	return get_op_opfamily_strategy(operator, index->opfamily[clause->indexcol]) == BTEqualStrategyNumber;
}

/* How many entries satisfy the conditions on the columns up to last. */
static double
entries_up_to(PlannerInfo *root, const IndexPath *path, int last)
{
	const IndexOptInfo *index = path->indexinfo;
	List *conditions = NIL;
	ListCell *cell;

	foreach (cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);

		if (clause->indexcol <= last)
			conditions = list_concat(conditions, clause->indexquals);
	}
	return index->tuples * clauselist_selectivity(root, conditions, (int) index->rel->relid, JOIN_INNER, NULL);
}

/* How many groups of equal columns from first to behind - 1 there are among so many entries. */
static double
count_groups(PlannerInfo *root, const IndexOptInfo *index, int first, int behind, double entries)
{
	List *columns = NIL;

	for (int i = first; i < behind; i++)
		columns = lappend(columns, list_nth_node(TargetEntry, index->indextlist, i)->expr);
	return estimate_num_groups(root, columns, entries, NULL, NULL);
}

double
smart_cost_skip_fraction(PlannerInfo *root, const IndexPath *path)
{
	const IndexOptInfo *index = path->indexinfo;
	bool conditions[INDEX_MAX_KEYS] = {false};
	bool points[INDEX_MAX_KEYS] = {false};
	int first = 0;
	int later;
	double entries;
	double found;
	double read;
	ListCell *cell;

	foreach (cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);

		conditions[clause->indexcol] = true;
		points[clause->indexcol] |= leaves_points(index, clause);
	}
	while (first < index->nkeycolumns && points[first])
		first++;
	later = first + 1;
	while (later < index->nkeycolumns && !conditions[later])
		later++;
	if (later >= index->nkeycolumns)
		return 1.0;
	entries = Max(entries_up_to(root, path, first), 1.0);
	found = entries_up_to(root, path, index->nkeycolumns - 1);
	read = found + ENTRIES_PER_LEAP * count_groups(root, index, first, later, entries);
	return Min(read / entries, 1.0);
}
