/*
 * row_estimate.c
 *	  How much of an index a row comparison selects.
 *
 * Core goes by the first members alone, (a, b) > (1, 2) as a > 1, and so do we as far as that is less than
 * what all of them say: a > 1 OR (a = 1 AND b > 2).
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "am/am.h"
#include "am/row_conditions.h"

Oid
smart_row_column_operator(const IndexOptInfo *index, int column, int strategy, Expr *value)
{
	Oid family = index->opfamily[column];
	Oid type = index->opcintype[column];
	Oid operator= get_opfamily_member(family, type, exprType((Node *) value), strategy);

	/* Classes of arrays and the like have one type for all. */
	return OidIsValid(operator) ? operator: get_opfamily_member(family, type, type, strategy);
}

/* "column strategy value" */
static Expr *
compare_column(const IndexOptInfo *index, int column, int strategy, Expr *value)
{
	Expr *left = list_nth_node(TargetEntry, index->indextlist, column)->expr;

	return make_opclause(smart_row_column_operator(index, column, strategy, value), BOOLOID, false, left, value,
						 InvalidOid, index->indexcollations[column]);
}

/* a > 1 OR (a = 1 AND b > 2) */
static Expr *
spell_out(const IndexOptInfo *index, int column, int strategy, const List *values)
{
	int strict = strategy < BTEqualStrategyNumber ? BTLessStrategyNumber : BTGreaterStrategyNumber;
	int i = list_length(values) - 1;
	Expr *all = compare_column(index, column + i, strategy, list_nth(values, i));

	while (--i >= 0)
	{
		Expr *value = list_nth(values, i);
		Expr *equal = compare_column(index, column + i, BTEqualStrategyNumber, value);

		all = make_andclause(list_make2(equal, all));
		all = make_orclause(list_make2(compare_column(index, column + i, strict, value), all));
	}
	return all;
}

static double
selectivity_of(PlannerInfo *root, const IndexOptInfo *index, Expr *condition)
{
	return clause_selectivity(root, (Node *) condition, (int) index->rel->relid, JOIN_INNER, NULL);
}

/*
 * What stands for a row's condition: that of the first member, by which core judges how many rows there are to be found.
 * What is read must not seem to be more; but it is less where many rows are alike in the first column, and nothing
 * has to come from another table for that to be known.
 */
static void
judge_row(PlannerInfo *root, const IndexOptInfo *index, int column, int strategy, const List *values,
		  RestrictInfo *judged)
{
	judged->clause = compare_column(index, column, strategy, linitial(values));
	judged->norm_selec = Min(selectivity_of(root, index, judged->clause),
							 selectivity_of(root, index, spell_out(index, column, strategy, values)));
}

IndexClause *
smart_row_clause_to_judge(PlannerInfo *root, const IndexOptInfo *index, IndexClause *clause)
{
	const RestrictInfo *condition = linitial_node(RestrictInfo, clause->indexquals);
	RestrictInfo *judged;
	IndexClause *copy;
	const OpExpr *expression;
	int strategy;

	if (condition->norm_selec != SMART_ROW_REDUNDANT || !IsA(condition->clause, OpExpr))
		return clause;
	expression = (const OpExpr *) condition->clause;
	judged = makeNode(RestrictInfo);
	*judged = *condition;
	judged->norm_selec = -1;
	strategy = get_op_opfamily_strategy(expression->opno, index->opfamily[clause->indexcol]);
	if (strategy > SMART_STRATEGY_ROW)
		judge_row(root, index, clause->indexcol, strategy - SMART_STRATEGY_ROW,
				  lsecond_node(RowExpr, expression->args)->args, judged);
	copy = makeNode(IndexClause);
	*copy = *clause;
	copy->indexquals = list_make1(judged);
	return copy;
}
