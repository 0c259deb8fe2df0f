/*
 * fit.c
 *	  Which nested loops may look ahead.
 *
 * Rows of the outer side that are taken before their turn may be never wanted, where the query ends early (LIMIT, EXISTS).  So
 * computing them must have no effect: no volatile functions, no locks of rows, no changes of tables.  What nodes that are not
 * in the list below do is not known.  Values for the index are columns of the row, which need not be computed: what is computed
 * could fail for a row whose turn would never have come.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "access/genam.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/join/fit.h"
#include "base/assert.h"

/* ---- the outer side ---- */

static bool is_harmless(const PlannedStmt *statement, const Plan *plan);

/* Has an expression a subquery that is not harmless? */
static bool
find_harm(Node *node, void *argument)
{
	const PlannedStmt *statement = argument;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
	{
		const SubPlan *subplan = (const SubPlan *) node;

		smart_assert(subplan->plan_id > 0 && subplan->plan_id <= list_length(statement->subplans));
		if (!is_harmless(statement, list_nth(statement->subplans, subplan->plan_id - 1)))
			return true;
	}
	return expression_tree_walker(node, find_harm, argument);
}

static bool
is_harmless_expression(const PlannedStmt *statement, const void *expression)
{
	Node *node = unconstify(Node *, (const Node *) expression);

	return node == NULL ||
		   (!contain_volatile_functions(node) && !find_harm(node, unconstify(PlannedStmt *, statement)));
}

static bool
are_harmless(const PlannedStmt *statement, const List *plans)
{
	const ListCell *cell;

	foreach (cell, plans)
	{
		if (!is_harmless(statement, lfirst(cell)))
			return false;
	}
	return true;
}

/* What only nodes of this kind have.  False, too: of this kind it is not known. */
static bool
is_harmless_node(const PlannedStmt *statement, const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Memoize:
		case T_Hash:
		case T_Unique:
		case T_SetOp:
		case T_Group:
		case T_Agg:
		case T_Gather:
		case T_GatherMerge:
			return true;
		case T_IndexScan:
			return is_harmless_expression(statement, ((const IndexScan *) plan)->indexqualorig) &&
				   is_harmless_expression(statement, ((const IndexScan *) plan)->indexorderbyorig);
		case T_IndexOnlyScan:
			return is_harmless_expression(statement, ((const IndexOnlyScan *) plan)->indexqual);
		case T_BitmapIndexScan:
			return is_harmless_expression(statement, ((const BitmapIndexScan *) plan)->indexqualorig);
		case T_BitmapHeapScan:
			return is_harmless_expression(statement, ((const BitmapHeapScan *) plan)->bitmapqualorig);
		case T_BitmapAnd:
			return are_harmless(statement, ((const BitmapAnd *) plan)->bitmapplans);
		case T_BitmapOr:
			return are_harmless(statement, ((const BitmapOr *) plan)->bitmapplans);
		case T_FunctionScan:
			return is_harmless_expression(statement, ((const FunctionScan *) plan)->functions);
		case T_ValuesScan:
			return is_harmless_expression(statement, ((const ValuesScan *) plan)->values_lists);
		case T_Result:
			return is_harmless_expression(statement, ((const Result *) plan)->resconstantqual);
		case T_Limit:
			return is_harmless_expression(statement, ((const Limit *) plan)->limitOffset) &&
				   is_harmless_expression(statement, ((const Limit *) plan)->limitCount);
		case T_NestLoop:
			return is_harmless_expression(statement, ((const NestLoop *) plan)->join.joinqual);
		case T_MergeJoin:
			return is_harmless_expression(statement, ((const MergeJoin *) plan)->join.joinqual) &&
				   is_harmless_expression(statement, ((const MergeJoin *) plan)->mergeclauses);
		case T_HashJoin:
			return is_harmless_expression(statement, ((const HashJoin *) plan)->join.joinqual) &&
				   is_harmless_expression(statement, ((const HashJoin *) plan)->hashclauses);
		case T_Append:
			return are_harmless(statement, ((const Append *) plan)->appendplans);
		case T_MergeAppend:
			return are_harmless(statement, ((const MergeAppend *) plan)->mergeplans);
		case T_SubqueryScan:
			return is_harmless(statement, ((const SubqueryScan *) plan)->subplan);
		case T_CteScan:
			return is_harmless(statement, list_nth(statement->subplans, ((const CteScan *) plan)->ctePlanId - 1));
		default:
			return false;
	}
}

static bool
is_harmless(const PlannedStmt *statement, const Plan *plan)
{
	check_stack_depth();
	if (plan == NULL)
		return true;
	return is_harmless_node(statement, plan) && is_harmless_expression(statement, plan->targetlist) &&
		   is_harmless_expression(statement, plan->qual) && is_harmless(statement, outerPlan(plan)) &&
		   is_harmless(statement, innerPlan(plan));
}

/* Does the statement lock rows?  What is locked is the rows of now, and SKIP LOCKED should come to them late. */
static bool
locks_rows(const PlannedStmt *statement)
{
	const ListCell *cell;

	foreach (cell, statement->rowMarks)
	{
		if (lfirst_node(PlanRowMark, cell)->markType < ROW_MARK_REFERENCE)
			return true;
	}
	return false;
}

/* ---- the inner side ---- */

const Param *
smart_join_parameter(const Expr *value)
{
	while (value != NULL && IsA(value, RelabelType))
		value = ((const RelabelType *) value)->arg;
	return value != NULL && IsA(value, Param) ? (const Param *) value : NULL;
}

AttrNumber
smart_join_source(const NestLoop *join, const Param *parameter)
{
	const ListCell *cell;

	foreach (cell, join->nestParams)
	{
		const NestLoopParam *source = lfirst_node(NestLoopParam, cell);

		if (parameter->paramkind != PARAM_EXEC || parameter->paramid != source->paramno)
			continue;
		smart_assert(source->paramval->varno == OUTER_VAR);
		return source->paramval->varattno;
	}
	return 0;
}

/* *varies: at least one of the conditions has a value of the outer side's row. */
static bool
are_simple(const NestLoop *join, const List *conditions, bool *varies)
{
	const ListCell *cell;

	*varies = false;
	foreach (cell, conditions)
	{
		const Expr *condition = lfirst(cell);
		const Param *parameter;
		AttrNumber source;

		if (IsA(condition, NullTest))
			continue;
		if (!IsA(condition, OpExpr))
			return false;
		smart_assert(list_length(((const OpExpr *) condition)->args) == 2);
		if (IsA(lsecond(((const OpExpr *) condition)->args), Const))
			continue;
		parameter = smart_join_parameter(lsecond(((const OpExpr *) condition)->args));
		if (parameter == NULL || parameter->paramtype == RECORDOID)
			return false;
		source = smart_join_source(join, parameter);
		/* A system column, or the whole row, has to be asked for in another way. */
		if (source < 0)
			return false;
		*varies |= source > 0;
	}
	return *varies;
}

/* Does a node of the inner side ask its only child anew for each row of the outer side? */
static bool
asks_its_child(const Plan *plan)
{
	return plan != NULL && (IsA(plan, Memoize) || IsA(plan, Limit) || IsA(plan, Sort) || IsA(plan, Agg) ||
							IsA(plan, Group) || IsA(plan, Unique) || IsA(plan, Result) || IsA(plan, SubqueryScan));
}

static bool
is_ours(Oid index)
{
	Relation relation = index_open(index, AccessShareLock);
	bool ours = smart_is_our_index(relation);

	index_close(relation, AccessShareLock);
	return ours;
}

const Scan *
smart_join_fits(const PlannedStmt *statement, const NestLoop *join)
{
	const Plan *inner = innerPlan(&join->join.plan);
	const List *conditions;
	ScanDirection direction;
	bool varies;
	Oid index;

	if (join->nestParams == NIL)
		return NULL;
	while (asks_its_child(inner))
		inner = IsA(inner, SubqueryScan) ? ((const SubqueryScan *) inner)->subplan : outerPlan(inner);
	if (inner == NULL)
		return NULL;
	if (IsA(inner, IndexScan))
	{
		const IndexScan *scan = (const IndexScan *) inner;

		conditions = scan->indexqual;
		direction = scan->indexorderdir;
		index = scan->indexid;
	}
	else if (IsA(inner, IndexOnlyScan))
	{
		const IndexOnlyScan *scan = (const IndexOnlyScan *) inner;

		conditions = scan->indexqual;
		direction = scan->indexorderdir;
		index = scan->indexid;
	}
	else
		return NULL;
	if (inner->parallel_aware || ScanDirectionIsBackward(direction) || !are_simple(join, conditions, &varies) ||
		!is_ours(index) || locks_rows(statement) || !is_harmless(statement, outerPlan(&join->join.plan)))
		return NULL;
	return (const Scan *) inner;
}
