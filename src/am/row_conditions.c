/*
 * row_conditions.c
 *	  Index conditions that row comparisons imply.
 *
 * Where at least two members of a row are consecutive columns of an index and go the same
 * way, (a, b) > (1, 2) becomes a >* ROW(1, 2), with an operator of strategy 15: a condition
 * on the first column for core, which matches and carries it as any other, and on all of
 * them for the scan (row_bound.c).  It is cut where the columns end, and has equality in it
 * then.  One member alone, or one of an operator family that has no such operators, gives
 * a >= 1.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/row_conditions.h"
#include "base/assert.h"

/* An index, and which of its columns have an order. */
struct target
{
	IndexOptInfo *index;
	bool ordered[INDEX_MAX_KEYS];
};

/* A row comparison with the index's columns on its left side. */
struct comparison
{
	List *operators;
	List *columns;
	List *values;
	List *collations;
};

/* How a comparison meets an index. */
struct meeting
{
	int column;   /* the first member's */
	int count;    /* members on this column and those behind it; 0: they do not meet */
	int strategy; /* btree's, of all of them */
};

/* A codec does not survive a look at a catalog, so what is asked of it is kept. */
static void
find_order(struct target *target)
{
	IndexOptInfo *info = target->index;
	const struct smart_codec *codec;
	Relation index;

	memset(target->ordered, true, sizeof(target->ordered));
	if (info->hypothetical)
		return;
	index = index_open(info->indexoid, NoLock);
	codec = smart_relation_codec(index);
	for (int i = 0; i < codec->nkeys; i++)
		target->ordered[i] = !codec->columns[i].image.unordered;
	index_close(index, NoLock);
}

/* May a member of a row be compared by this column of the index? */
static bool
is_column(IndexOptInfo *index, int column, const struct comparison *comparison, int member)
{
	Oid collation = index->indexcollations[column];

	return match_index_to_operand(list_nth(comparison->columns, member), column, index) &&
		   (!OidIsValid(collation) || collation == list_nth_oid(comparison->collations, member));
}

static int
member_strategy(const IndexOptInfo *index, int column, const struct comparison *comparison, int member)
{
	return get_op_opfamily_strategy(list_nth_oid(comparison->operators, member), index->opfamily[column]);
}

/* How many members, from the first on, are consecutive columns that go the same way, in an order that is known. */
static int
count_members(const struct target *target, const struct comparison *comparison, const struct meeting *meeting)
{
	IndexOptInfo *index = target->index;
	int count = 0;

	while (count < list_length(comparison->columns) && meeting->column + count < index->nkeycolumns)
	{
		int column = meeting->column + count;

		if (!target->ordered[column] || !is_column(index, column, comparison, count) ||
			member_strategy(index, column, comparison, count) != meeting->strategy ||
			index->reverse_sort[column] != index->reverse_sort[meeting->column] ||
			!OidIsValid(
				smart_row_column_operator(index, column, BTEqualStrategyNumber, list_nth(comparison->values, count))))
			break;
		count++;
	}
	return Max(count, 1);
}

static struct meeting
meet(const struct target *target, const struct comparison *comparison)
{
	IndexOptInfo *index = target->index;
	struct meeting meeting = {.count = 0};
	bool ambiguous = false;

	for (int column = 0; column < index->nkeycolumns; column++)
	{
		int strategy;

		if (!is_column(index, column, comparison, 0))
			continue;
		strategy = member_strategy(index, column, comparison, 0);
		if (strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber &&
			strategy != BTEqualStrategyNumber)
		{
			meeting.column = column;
			meeting.strategy = strategy;
			/* Core would take an operator for rows to an earlier column that has the same values in another order. */
			meeting.count = ambiguous ? 1 : count_members(target, comparison, &meeting);
			break;
		}
		ambiguous = true;
	}
	return meeting;
}

/* The values of a row's members as a record whose fields have the types that the operators are for. */
static Expr *
make_row(const struct comparison *comparison, int count)
{
	RowExpr *row = makeNode(RowExpr);

	for (int i = 0; i < count; i++)
	{
		Expr *value = list_nth(comparison->values, i);
		Oid left;
		Oid right;

		op_input_types(list_nth_oid(comparison->operators, i), &left, &right);
		if (exprType((Node *) value) != right && !IsPolymorphicType(right) && right != RECORDOID)
			value = (Expr *) makeRelabelType(value, right, -1, exprCollation((Node *) value), COERCE_IMPLICIT_CAST);
		row->args = lappend(row->args, value);
	}
	row->row_typeid = RECORDOID;
	row->row_format = COERCE_EXPLICIT_CALL;
	row->location = -1;
	return (Expr *) row;
}

/* The condition on the first column where a comparison meets an index; NULL: there is no operator for it. */
static Expr *
make_condition(const struct target *target, const struct comparison *comparison, const struct meeting *meeting)
{
	Oid family = target->index->opfamily[meeting->column];
	int strategy = meeting->strategy;
	Expr *value = linitial(comparison->values);
	Oid operator= InvalidOid;
	Oid left;
	Oid right;
	Expr *condition;

	if (meeting->count < list_length(comparison->columns))
		strategy = strategy < BTEqualStrategyNumber ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	if (meeting->count > 1)
		operator= get_opfamily_member(family, ANYOID, RECORDOID, SMART_STRATEGY_ROW + strategy);
	if (OidIsValid(operator))
		value = make_row(comparison, meeting->count);
	else
	{
		op_input_types(linitial_oid(comparison->operators), &left, &right);
		strategy = strategy < BTEqualStrategyNumber ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
		operator= get_opfamily_member(family, left, right, strategy);
		if (!OidIsValid(operator))
			return NULL;
	}
	condition = make_opclause(operator, BOOLOID, false, linitial(comparison->columns), value, InvalidOid,
							  linitial_oid(comparison->collations));
	set_opfuncid((OpExpr *) condition);
	return condition;
}

/* Exchanges the sides of a comparison.  False: an operator has no commutator. */
static bool
commute(struct comparison *comparison)
{
	List *columns = comparison->columns;
	List *operators = NIL;
	ListCell *cell;

	foreach (cell, comparison->operators)
	{
		Oid commutator = get_commutator(lfirst_oid(cell));

		if (!OidIsValid(commutator))
			return false;
		operators = lappend_oid(operators, commutator);
	}
	comparison->operators = operators;
	comparison->columns = comparison->values;
	comparison->values = columns;
	return true;
}

/* What a row comparison implies, with the same right to be asked early; NULL: nothing. */
static RestrictInfo *
implied_condition(PlannerInfo *root, const struct target *target, const RestrictInfo *condition)
{
	const RowCompareExpr *clause = (const RowCompareExpr *) condition->clause;
	struct comparison comparison = {clause->opnos, clause->largs, clause->rargs, clause->inputcollids};
	struct meeting meeting = meet(target, &comparison);
	RestrictInfo *implied;
	Expr *expression;

	if (meeting.count == 0 && commute(&comparison))
		meeting = meet(target, &comparison);
	if (meeting.count == 0)
		return NULL;
	expression = make_condition(target, &comparison, &meeting);
	if (expression == NULL)
		return NULL;
	implied = makeNode(RestrictInfo);
	*implied = *condition;
	implied->clause = expression;
	implied->left_relids = pull_varnos(root, get_leftop(expression));
	implied->right_relids = pull_varnos(root, get_rightop(expression));
	implied->clause_relids = bms_union(implied->left_relids, implied->right_relids);
	implied->eval_cost.startup = -1;
	implied->norm_selec = SMART_ROW_REDUNDANT;
	implied->outer_selec = SMART_ROW_REDUNDANT;
	return implied;
}

List *
smart_row_conditions(PlannerInfo *root, IndexOptInfo *index, List *conditions)
{
	struct target target = {.index = index};
	List *implied = NIL;
	ListCell *cell;

	foreach (cell, conditions)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);
		RestrictInfo *one;

		if (!IsA(condition->clause, RowCompareExpr))
			continue;
		find_order(&target);
		one = implied_condition(root, &target, condition);
		if (one != NULL)
			implied = lappend(implied, one);
	}
	return implied;
}
