/*
 * row_paths.c
 *	  Index conditions from row comparisons.
 *
 * Core makes (a, b) > (1, 2) an index condition for btree only, in the planner and again in
 * the executor.  But it implies a >= 1, which is a condition like any other.  So where
 * a query compares rows, core is asked once more for the paths of a table's smart
 * indexes, with such conditions among those that it may use; the comparison itself
 * is in the table's own list of conditions, and stays a filter.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"

#include "am/am.h"

static set_rel_pathlist_hook_type next_hook = NULL;

/* The operator of the first members with equality in it; InvalidOid: the family has none. */
static Oid
first_operator(const RowCompareExpr *comparison)
{
	Oid operator= linitial_oid(comparison->opnos);
	Oid family = linitial_oid(comparison->opfamilies);
	int strategy = get_op_opfamily_strategy(operator, family);
	Oid left;
	Oid right;

	if (strategy == BTLessEqualStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
		return operator;
	if (strategy != BTLessStrategyNumber && strategy != BTGreaterStrategyNumber)
		return InvalidOid;
	op_input_types(operator, & left, &right);
	return get_opfamily_member(family, left, right,
							   strategy == BTLessStrategyNumber ? BTLessEqualStrategyNumber
																: BTGreaterEqualStrategyNumber);
}

/* What a row comparison implies for its first members, with the same right to be asked early; NULL: nothing. */
static RestrictInfo *
implied_condition(PlannerInfo *root, const RestrictInfo *condition)
{
	const RowCompareExpr *comparison = (const RowCompareExpr *) condition->clause;
	Oid operator= first_operator(comparison);
	Expr *left = linitial(comparison->largs);
	Expr *right = linitial(comparison->rargs);
	RestrictInfo *implied;

	if (!OidIsValid(operator))
		return NULL;
	implied = makeNode(RestrictInfo);
	*implied = *condition;
	implied->clause =
		make_opclause(operator, BOOLOID, false, left, right, InvalidOid, linitial_oid(comparison->inputcollids));
	set_opfuncid((OpExpr *) implied->clause);
	implied->left_relids = pull_varnos(root, (Node *) left);
	implied->right_relids = pull_varnos(root, (Node *) right);
	implied->clause_relids = bms_union(implied->left_relids, implied->right_relids);
	implied->leakproof = !contain_leaked_vars((Node *) implied->clause);
	implied->eval_cost.startup = -1;
	implied->norm_selec = -1;
	implied->outer_selec = -1;
	return implied;
}

/* What the row comparisons in a list of RestrictInfos imply. */
static List *
implied_conditions(PlannerInfo *root, List *conditions)
{
	List *implied = NIL;
	ListCell *cell;

	foreach (cell, conditions)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);
		RestrictInfo *one = IsA(condition->clause, RowCompareExpr) ? implied_condition(root, condition) : NULL;

		if (one != NULL)
			implied = lappend(implied, one);
	}
	return implied;
}

/* Gives conditions to choose from to each index of a list, or back what it had. */
static List *
exchange_conditions(List *indexes, List *conditions)
{
	List *had = NIL;
	ListCell *index;
	ListCell *list;

	forboth (index, indexes, list, conditions)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, index);

		had = lappend(had, info->indrestrictinfo);
		info->indrestrictinfo = lfirst(list);
	}
	return had;
}

/* Asks core for paths of these indexes of the table only, with more conditions for the scan, and for joins. */
static void
add_paths(PlannerInfo *root, RelOptInfo *rel, List *indexes, List *for_scan, List *for_join)
{
	List *all_indexes = rel->indexlist;
	List *join_conditions = rel->joininfo;
	List *conditions = NIL;
	ListCell *cell;

	foreach (cell, indexes)
		conditions = lappend(conditions, list_concat_copy(lfirst_node(IndexOptInfo, cell)->indrestrictinfo, for_scan));
	conditions = exchange_conditions(indexes, conditions);
	rel->indexlist = indexes;
	rel->joininfo = list_concat_copy(join_conditions, for_join);
	create_index_paths(root, rel);
	rel->joininfo = join_conditions;
	rel->indexlist = all_indexes;
	(void) exchange_conditions(indexes, conditions);
}

static void
add_row_paths(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	List *indexes = NIL;
	List *for_scan;
	List *for_join;
	ListCell *cell;

	if (next_hook != NULL)
		next_hook(root, rel, number, entry);
	if (entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL || IS_DUMMY_REL(rel))
		return;
	foreach (cell, rel->indexlist)
	{
		if (lfirst_node(IndexOptInfo, cell)->amcostestimate == smart_am_cost)
			indexes = lappend(indexes, lfirst(cell));
	}
	if (indexes == NIL)
		return;
	for_scan = implied_conditions(root, rel->baserestrictinfo);
	for_join = implied_conditions(root, rel->joininfo);
	if (for_scan != NIL || for_join != NIL)
		add_paths(root, rel, indexes, for_scan, for_join);
}

void
smart_row_paths_init(void)
{
	next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_row_paths;
}
