/*
 * row_conditions.c
 *	  Index conditions that row comparisons imply, and how much they select.
 *
 * Where at least two members of a row are consecutive columns of an index and go the same way, (a, b) > (1, 2)
 * becomes a >* ROW(1, 2), with an operator of strategy 15: a condition on the first column for core, which
 * matches and carries it as any other, and on all of them for the scan (scankey.c).  The row is cut where the
 * columns end, and the operator includes equality then.  One member alone, or one of an operator family that
 * has no such operators, gives a >= 1.
 *
 * Core makes a bitmap for each arm of an OR (a, b) > (1, 2) OR c = 3, with the conditions of that arm: it gets the implied one there.
 *
 * Core estimates by the first members alone, (a, b) > (1, 2) as a > 1.  This file does so, too, as far as that
 * is less than what all of them say: a > 1 OR (a = 1 AND b > 2).
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/scan/row_conditions.h"
#include "base/assert.h"

extern PGDLLEXPORT Datum smart_row_bound(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum smart_row_bound_support(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(smart_row_bound);
PG_FUNCTION_INFO_V1(smart_row_bound_support);

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

/* The strategy by which this column of the index compares a member of a row, 0: it has none; -1: it may not. */
static int
member_strategy(IndexOptInfo *index, int column, const struct comparison *comparison, int member)
{
	Oid collation = index->indexcollations[column];

	smart_assert(column < index->nkeycolumns && member < list_length(comparison->columns));
	if (!match_index_to_operand(list_nth(comparison->columns, member), column, index) ||
		(OidIsValid(collation) && collation != list_nth_oid(comparison->collations, member)))
		return -1;
	return get_op_opfamily_strategy(list_nth_oid(comparison->operators, member), index->opfamily[column]);
}

/* The operator by which a column compares itself with a value; InvalidOid: its family has none. */
static Oid
column_operator(const IndexOptInfo *index, int column, int strategy, Expr *value)
{
	Oid family = index->opfamily[column];
	Oid type = index->opcintype[column];
	Oid opno = get_opfamily_member(family, type, exprType((Node *) value), strategy);

	/* Classes of arrays and the like have one type for all. */
	return OidIsValid(opno) ? opno : get_opfamily_member(family, type, type, strategy);
}

static struct meeting
meet(const struct target *target, const struct comparison *comparison)
{
	IndexOptInfo *index = target->index;
	struct meeting meeting = {.count = 0};
	bool found = false;
	bool ambiguous = false;

	for (int column = 0; column < index->nkeycolumns && !found; column++)
	{
		meeting.column = column;
		meeting.strategy = member_strategy(index, column, comparison, 0);
		if (meeting.strategy < 0)
			continue;
		found = meeting.strategy >= BTLessStrategyNumber && meeting.strategy <= BTGreaterStrategyNumber &&
				meeting.strategy != BTEqualStrategyNumber;
		ambiguous |= !found;
	}
	if (!found)
		return meeting;

	/*
	 * So many members, from the first on, are consecutive columns that go the same way, in an order that is known.
	 * Core would take an operator for rows to an earlier column that has the same values in another order.
	 */
	while (!ambiguous && meeting.count < list_length(comparison->columns) &&
		   meeting.column + meeting.count < index->nkeycolumns)
	{
		int column = meeting.column + meeting.count;

		if (!target->ordered[column] || member_strategy(index, column, comparison, meeting.count) != meeting.strategy ||
			index->reverse_sort[column] != index->reverse_sort[meeting.column] ||
			!OidIsValid(
				column_operator(index, column, BTEqualStrategyNumber, list_nth(comparison->values, meeting.count))))
			break;
		meeting.count++;
	}
	meeting.count = Max(meeting.count, 1);
	return meeting;
}

/* The condition on the first column where a comparison meets an index; NULL: there is no operator for it. */
static Expr *
make_condition(const struct target *target, const struct comparison *comparison, const struct meeting *meeting)
{
	Oid family = target->index->opfamily[meeting->column];
	int strategy = meeting->strategy;
	int including = strategy < BTEqualStrategyNumber ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	Expr *value = linitial(comparison->values);
	Oid opno = InvalidOid;
	Oid left;
	Oid right;
	Expr *condition;

	smart_assert(meeting->count >= 1 && meeting->count <= list_length(comparison->columns));
	if (meeting->count < list_length(comparison->columns))
		strategy = including;
	if (meeting->count > 1)
		opno = get_opfamily_member(family, ANYOID, RECORDOID, SMART_STRATEGY_ROW + strategy);
	if (OidIsValid(opno))
	{
		RowExpr *row = makeNode(RowExpr);

		/* A record of the members' values, whose fields have the types that the operators are for */
		for (int i = 0; i < meeting->count; i++)
		{
			Expr *field = list_nth(comparison->values, i);

			op_input_types(list_nth_oid(comparison->operators, i), &left, &right);
			if (exprType((Node *) field) != right && !IsPolymorphicType(right) && right != RECORDOID)
				field = (Expr *) makeRelabelType(field, right, -1, exprCollation((Node *) field), COERCE_IMPLICIT_CAST);
			row->args = lappend(row->args, field);
		}
		row->row_typeid = RECORDOID;
		row->row_format = COERCE_EXPLICIT_CALL;
		row->location = -1;
		value = (Expr *) row;
	}
	else
	{
		op_input_types(linitial_oid(comparison->operators), &left, &right);
		opno = get_opfamily_member(family, left, right, including);
		if (!OidIsValid(opno))
			return NULL;
	}
	condition = make_opclause(opno, BOOLOID, false, linitial(comparison->columns), value, InvalidOid,
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
	smart_assert(list_length(operators) == list_length(columns));
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
	bool found_order = false;
	List *implied = NIL;
	ListCell *cell;

	memset(target.ordered, true, sizeof(target.ordered));
	foreach (cell, conditions)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);
		RestrictInfo *one;

		if (!IsA(condition->clause, RowCompareExpr))
			continue;
		/* A codec does not survive a look at a catalog, so what is asked of it is kept. */
		if (!found_order && !index->hypothetical)
		{
			Relation relation = index_open(index->indexoid, NoLock);
			const struct smart_codec *codec = smart_relation_codec(relation);

			for (int i = 0; i < codec->nkeys; i++)
				target.ordered[i] = !codec->columns[i].normalizer.unordered;
			index_close(relation, NoLock);
			found_order = true;
		}
		one = implied_condition(root, &target, condition);
		if (one != NULL)
			implied = lappend(implied, one);
	}
	return implied;
}

/* ---- in the arms of an OR ---- */

/* An arm is a condition, or an AND of some, which may be ORs themselves. */
static List *
conditions_of(Node *arm)
{
	return is_andclause(arm) ? ((BoolExpr *) arm)->args : list_make1(arm);
}

bool
smart_compares_rows(const List *conditions)
{
	ListCell *cell;
	ListCell *arm;

	foreach (cell, conditions)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);

		if (IsA(condition->clause, RowCompareExpr))
			return true;
		foreach (arm, restriction_is_or_clause(condition) ? ((BoolExpr *) condition->orclause)->args : NIL)
		{
			if (smart_compares_rows(conditions_of(lfirst(arm))))
				return true;
		}
	}
	return false;
}

/* The arms with what they imply; *implied gets that, too. */
static List *
extend_arms(PlannerInfo *root, IndexOptInfo *index, const List *arms, List **implied)
{
	List *extended = NIL;
	ListCell *cell;

	foreach (cell, arms)
	{
		Node *arm = lfirst(cell);
		List *conditions = conditions_of(arm);
		List *more = smart_row_conditions(root, index, conditions);

		*implied = list_concat(*implied, more);
		extended = lappend(extended, more == NIL ? arm : (Node *) make_andclause(list_concat_copy(conditions, more)));
	}
	return extended;
}

List *
smart_row_alternatives(PlannerInfo *root, IndexOptInfo *index, List *conditions, List **implied)
{
	List *alternatives = NIL;
	ListCell *cell;

	*implied = NIL;
	foreach (cell, conditions)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);

		if (restriction_is_or_clause(condition))
		{
			RestrictInfo *alternative = makeNode(RestrictInfo);

			*alternative = *condition;
			alternative->orclause =
				make_orclause(extend_arms(root, index, ((BoolExpr *) condition->orclause)->args, implied));
			condition = alternative;
		}
		alternatives = lappend(alternatives, condition);
	}
	return *implied == NIL ? NIL : alternatives;
}

/* ---- how much they select ---- */

/* "column strategy value" */
static Expr *
compare_column(const IndexOptInfo *index, int column, int strategy, Expr *value)
{
	smart_assert(column >= 0 && column < index->nkeycolumns);
	Expr *left = list_nth_node(TargetEntry, index->indextlist, column)->expr;

	return make_opclause(column_operator(index, column, strategy, value), BOOLOID, false, left, value, InvalidOid,
						 index->indexcollations[column]);
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
	{
		const List *values = lsecond_node(RowExpr, expression->args)->args;
		int column = clause->indexcol;

		/*
		 * That of the first member, by which core judges how many rows there are to be found.  What is read must not
		 * seem to be more; but it is less where many rows are alike in the first column, and nothing has to come
		 * from another table for that to be known.
		 */
		strategy -= SMART_STRATEGY_ROW;
		judged->clause = compare_column(index, column, strategy, linitial(values));
		judged->norm_selec = Min(selectivity_of(root, index, judged->clause),
								 selectivity_of(root, index, spell_out(index, column, strategy, values)));
	}
	copy = makeNode(IndexClause);
	*copy = *clause;
	copy->indexquals = list_make1(judged);
	return copy;
}

/* ---- the operators' functions ---- */

/*
 * smart_row_bound("any", record) returns boolean
 *
 * The function of the operators <* <=* >=* >*, by which the planner gives the row of a comparison to a
 * scan.  The comparison itself stays a filter, which tells rows apart; so all may pass where the
 * executor asks again.
 */
Datum
smart_row_bound(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(true);
}

/*
 * smart_row_bound_support(internal) returns internal
 *
 * Is asked to simplify what was written in a query, and never what the planner makes later.  Without the comparison
 * rows would depend on the plan.  Error: FEATURE_NOT_SUPPORTED.
 */
Datum
smart_row_bound_support(PG_FUNCTION_ARGS)
{
	if (IsA(PG_GETARG_POINTER(0), SupportRequestSimplify))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("operators <*, <=*, >=* and >* are for index conditions that the planner makes"),
				errhint("Compare rows: (a, b) > (1, 2)."));
	PG_RETURN_POINTER(NULL);
}
