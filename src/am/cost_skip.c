/*
 * cost_skip.c
 *	  What a scan saves by leaping over entries (skip.c).
 *
 * A scan need not read all entries between the first
 * and the last one, whatever the conditions on later columns.  It
 * reads a leaf of each group of equal columns before those, and what it finds.  What
 * the way to each of them takes on memory nodes, cost_estimate.c tells.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
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

/* How many groups of equal columns from first to behind - 1 there are among so many of the index's entries. */
static double
count_groups(PlannerInfo *root, const IndexOptInfo *index, int first, int behind, double entries)
{
	RelOptInfo *table = index->rel;
	Cardinality rows = table->rows;
	List *columns = NIL;
	double groups;

	for (int i = first; i < behind; i++)
		columns = lappend(columns, list_nth_node(TargetEntry, index->indextlist, i)->expr);
	/* Of the rows that are left when all conditions are met few groups would be left; we pass by the others, too. */
	table->rows = clamp_row_est(Min(entries, table->tuples));
	groups = estimate_num_groups(root, columns, entries, NULL, NULL);
	table->rows = rows;
	return groups;
}

/* Does one of a column's values satisfy those conditions on it that compare it with a constant, and may be asked? */
static bool
satisfies(const IndexPath *path, int column, VariableStatData *statistics, Datum value)
{
	ListCell *cell;

	foreach (cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);
		ListCell *inner;

		foreach (inner, clause->indexquals)
		{
			OpExpr *compare = (OpExpr *) lfirst_node(RestrictInfo, inner)->clause;
			Const *constant;

			if (clause->indexcol != column || !IsA(compare, OpExpr) || !IsA(lsecond(compare->args), Const) ||
				!statistic_proc_security_check(statistics, get_opcode(compare->opno)))
				continue;
			constant = lsecond_node(Const, compare->args);
			if (constant->constisnull ||
				!DatumGetBool(
					OidFunctionCall2Coll(get_opcode(compare->opno), compare->inputcollid, value, constant->constvalue)))
				return false;
		}
	}
	return true;
}

/*
 * What part of a column's values satisfies the conditions on it, if these select such a part of the
 * entries: common values are asked one by one, since each is many entries, and of the others it is as large a part
 * as of their entries.
 */
static double
part_of_values(PlannerInfo *root, const IndexPath *path, int column, double part_of_entries)
{
	const IndexOptInfo *index = path->indexinfo;
	TargetEntry *target = list_nth_node(TargetEntry, index->indextlist, column);
	VariableStatData statistics;
	AttStatsSlot common;
	bool is_default;
	double values;
	double part = part_of_entries;

	examine_variable(root, (Node *) target->expr, (int) index->rel->relid, &statistics);
	values = get_variable_numdistinct(&statistics, &is_default);
	if (HeapTupleIsValid(statistics.statsTuple) &&
		get_attstatsslot(&common, statistics.statsTuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		double others = Max(values - common.nvalues, 0);
		double found = 0;
		double left = 1;

		for (int i = 0; i < common.nvalues; i++)
		{
			bool matches = satisfies(path, column, &statistics, common.values[i]);

			found += matches;
			part -= matches ? common.numbers[i] : 0;
			left -= common.numbers[i];
		}
		part = left > 0 ? Max(Min(part / left, 1), 0) : 0;
		part = (found + others * part) / Max(common.nvalues + others, 1);
		free_attstatsslot(&common);
	}
	ReleaseVariableStats(statistics);
	return part;
}

void
smart_cost_skip(PlannerInfo *root, const IndexPath *path, struct smart_skipping *skipping)
{
	const IndexOptInfo *index = path->indexinfo;
	bool conditions[INDEX_MAX_KEYS] = {false};
	bool points[INDEX_MAX_KEYS] = {false};
	int first = 0;
	int later;
	double selected;
	double entries;
	ListCell *cell;

	*skipping = (struct smart_skipping){.fraction = 1};
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
		return;
	selected = Max(entries_up_to(root, path, first - 1), 1);
	entries = Max(entries_up_to(root, path, first), 1);
	skipping->found = entries_up_to(root, path, index->nkeycolumns - 1);
	skipping->groups = count_groups(root, index, first, later, selected);
	if (conditions[first])
		skipping->groups = Max(skipping->groups * part_of_values(root, path, first, Min(entries / selected, 1)), 1);
	skipping->fraction = Min((skipping->found + ENTRIES_PER_LEAP * skipping->groups) / entries, 1);
}
