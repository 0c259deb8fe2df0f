/*
 * lookahead.c
 *	  Nested loops that look ahead.
 *
 * A nested loop asks its inner index scan for one row of its outer side after the other, and on memory nodes each may cost a
 * round trip.  So when a plan has been made ready to run, a node of ours is put between such a join and its outer side.  It
 * takes several rows ahead, tells the index scan what it is going to be asked for (src/am/scan/read_ahead.h), which has all the
 * leaves READ in one batch, and hands the rows on one by one.  The join, and what it asks the scan for, stay what they were:
 * a scan that was told wrong, or too late, does as if it had been told nothing.
 *
 * Where nothing costs a round trip, since all is cached, rows are passed on as they come.  Rows are taken ahead when the last
 * one has cost one: 2, 4, 8 .. SMART_POINTS_MAX, as long as there is something to READ for them.
 *
 * The node is of the executor only: no plan has it.  All processes of a parallel query put it in the same places, so that it is
 * found by its number where they report what they did.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "am/compat.h"
#include "am/join/fit.h"
#include "am/join/lookahead.h"
#include "am/scan/scan.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "tree/tree.h"

#define FIRST_ROWS    2
#define ROW_BYTES_MAX (1024 * 1024) /* of the rows that are taken ahead */

/* Which key of the index scan has the value of which column. */
struct source
{
	int key;
	AttrNumber column;
	bool toastable;
};

/* The index scan of a join's inner side, whichever kind it is. */
struct inner
{
	IndexScanDesc scan; /* NULL: it has not begun */
	ScanKey keys;
	int nkeys;
	IndexRuntimeKeyInfo *runtime;
	int nruntime;
};

struct lookahead
{
	CustomScanState node;
	const NestLoop *join;
	PlanState *inner;

	int rows;               /* taken, and */
	int next;               /* of them the next to be handed on */
	int most;               /* to be taken the next time; 0: none, until a row has cost a round trip */
	bool ended;             /* the outer side has no more */
	bool useless;           /* it has been found that rows cost round trips all the same */
	uint64 trips;           /* of the scan, when it was looked at last */
	MemoryContext context;  /* of the rows' values; NULL until rows are taken */
	MemoryContext scratch;  /* of values for the index */
	TupleTableSlot **slots; /* SMART_POINTS_MAX, or 0 before there is room */
	int nslots;
	ScanKey keys; /* for each row */
	struct source *sources;
	int nsources;
};

static ExecutorStart_hook_type next_hook = NULL;

/* ---- the inner side ---- */

static struct inner
look_at_inner(const PlanState *node)
{
	struct inner inner;

	if (IsA(node, IndexScanState))
	{
		const IndexScanState *state = (const IndexScanState *) node;

		inner = (struct inner){.scan = state->iss_ScanDesc,
							   .keys = state->iss_ScanKeys,
							   .nkeys = state->iss_NumScanKeys,
							   .runtime = state->iss_RuntimeKeys,
							   .nruntime = state->iss_NumRuntimeKeys};
	}
	else
	{
		const IndexOnlyScanState *state = (const IndexOnlyScanState *) node;

		smart_assert(IsA(node, IndexOnlyScanState));
		inner = (struct inner){.scan = state->ioss_ScanDesc,
							   .keys = state->ioss_ScanKeys,
							   .nkeys = state->ioss_NumScanKeys,
							   .runtime = state->ioss_RuntimeKeys,
							   .nruntime = state->ioss_NumRuntimeKeys};
	}
	return inner;
}

/* Finds out which keys have values of the outer side; the others keep theirs from one row to the next. */
static void
find_sources(struct lookahead *self, const struct inner *inner)
{
	smart_assert(self->nsources == 0);
	self->sources = palloc(sizeof(struct source) * inner->nruntime);
	for (int i = 0; i < inner->nruntime; i++)
	{
		const IndexRuntimeKeyInfo *key = &inner->runtime[i];
		const Param *parameter = smart_join_parameter(key->key_expr->expr);
		AttrNumber column = parameter == NULL ? 0 : smart_join_source(self->join, parameter);

		smart_assert(key->scan_key >= inner->keys && key->scan_key < inner->keys + inner->nkeys);
		if (column > 0)
			self->sources[self->nsources++] = (struct source){.key = (int) (key->scan_key - inner->keys),
															  .column = column,
															  .toastable = key->key_toastable};
	}
}

/* The keys with which the scan will be asked for the rows; in the current context. */
static void
make_keys(const struct lookahead *self, const struct inner *inner)
{
	smart_assert(self->rows > 0 && self->rows <= self->nslots);
	for (int row = 0; row < self->rows; row++)
	{
		ScanKey keys = self->keys + row * inner->nkeys;

		memcpy(keys, inner->keys, sizeof(ScanKeyData) * inner->nkeys);
		for (int i = 0; i < self->nsources; i++)
		{
			const struct source *source = &self->sources[i];
			ScanKey key = &keys[source->key];
			bool isnull;
			Datum value = slot_getattr(self->slots[row], source->column, &isnull);

			smart_assert(source->key >= 0 && source->key < inner->nkeys);
			key->sk_flags = isnull ? key->sk_flags | SK_ISNULL : key->sk_flags & ~SK_ISNULL;
			key->sk_argument = isnull || !source->toastable ? value : PointerGetDatum(PG_DETOAST_DATUM(value));
		}
	}
}

/* Tells the scan of the rows that were taken.  False: there was nothing to be READ for them. */
static bool
tell(struct lookahead *self, const struct inner *inner)
{
	MemoryContext old = MemoryContextSwitchTo(self->scratch);
	bool read;

	smart_assert(inner->scan != NULL && self->rows <= self->nslots);
	make_keys(self, inner);
	MemoryContextSwitchTo(old);
	read = smart_scan_read_ahead(inner->scan, self->keys, inner->nkeys, self->rows);
	MemoryContextReset(self->scratch);
	return read;
}

/* ---- the outer side ---- */

static void
make_room(struct lookahead *self, const struct inner *inner)
{
	MemoryContext old = MemoryContextSwitchTo(self->node.ss.ps.state->es_query_cxt);
	/* A copy is not counted by the resource owner, which may be another one when the query ends. */
	TupleDesc row = CreateTupleDescCopy(self->node.ss.ps.ps_ResultTupleDesc);

	smart_assert(self->context == NULL && self->nslots == 0);
	self->context = AllocSetContextCreate(CurrentMemoryContext, "smart lookahead", ALLOCSET_DEFAULT_SIZES);
	self->scratch = AllocSetContextCreate(CurrentMemoryContext, "smart lookahead keys", ALLOCSET_SMALL_SIZES);
	self->nslots = SMART_POINTS_MAX;
	self->slots = palloc(sizeof(TupleTableSlot *) * self->nslots);
	self->keys = palloc(sizeof(ScanKeyData) * inner->nkeys * self->nslots);
	find_sources(self, inner);
	MemoryContextSwitchTo(self->context);
	for (int i = 0; i < self->nslots; i++)
		self->slots[i] = MakeSingleTupleTableSlot(row, self->node.ss.ps.resultops);
	MemoryContextSwitchTo(old);
}

/* Takes rows, up to self->most, and tells the scan of them. */
static void
take_rows(struct lookahead *self, const struct inner *inner)
{
	PlanState *outer = outerPlanState(&self->node.ss.ps);
	bool read = false;

	smart_assert(self->rows == 0 && self->next == 0 && self->most > 0 && inner->scan != NULL);
	if (self->context == NULL)
		make_room(self, inner);
	self->most = Min(self->most, self->nslots);
	while (self->rows < self->most && MemoryContextMemAllocated(self->context, false) < ROW_BYTES_MAX)
	{
		TupleTableSlot *row = ExecProcNode(outer);

		if (TupIsNull(row))
		{
			self->ended = true;
			break;
		}
		/* A copy of its own: a row on a page would keep that pinned. */
		ExecCopySlot(self->slots[self->rows], row);
		ExecMaterializeSlot(self->slots[self->rows]);
		self->rows++;
	}
	if (self->rows > 0)
		read = tell(self, inner);
	self->most = read ? 2 * self->most : 0;
	self->trips = smart_scan_round_trips(inner->scan);
}

/* The rows that were taken have been handed on, or are not wanted. */
static void
clear_rows(struct lookahead *self)
{
	smart_assert(self->next >= 0 && self->next <= self->rows && self->rows <= self->nslots);
	for (int i = 0; i < self->rows; i++)
		ExecClearTuple(self->slots[i]);
	self->rows = self->next = 0;
}

/* What the rows so far have cost: are others to be taken ahead? */
static void
judge(struct lookahead *self, const struct inner *inner)
{
	uint64 trips = smart_scan_round_trips(inner->scan);

	smart_assert(trips >= self->trips);
	if (self->rows > 0 && self->most > 0)
		self->useless |= trips - self->trips > (uint64) self->rows / 2;
	else if (trips > self->trips)
		self->most = FIRST_ROWS;
	self->trips = trips;
	if (self->useless)
		self->most = 0;
}

static TupleTableSlot *
next_row(PlanState *node)
{
	struct lookahead *self = (struct lookahead *) node;
	struct inner inner;

	CHECK_FOR_INTERRUPTS();
	if (self->next < self->rows)
		return self->slots[self->next++];
	inner = look_at_inner(self->inner);
	if (inner.scan != NULL)
		judge(self, &inner);
	clear_rows(self);
	if (!self->ended && self->most > 0)
		take_rows(self, &inner);
	else if (inner.scan != NULL)
		(void) smart_scan_read_ahead(inner.scan, NULL, 0, 0);
	if (self->rows > 0)
		return self->slots[self->next++];
	return self->ended ? ExecClearTuple(node->ps_ResultTupleSlot) : ExecProcNode(outerPlanState(node));
}

/* ---- the node ---- */

static void
end_node(CustomScanState *node)
{
	struct lookahead *self = (struct lookahead *) node;

	for (int i = 0; i < self->nslots; i++)
		ExecDropSingleTupleTableSlot(self->slots[i]);
	self->nslots = self->rows = 0;
	ExecEndNode(outerPlanState(node));
}

static void
rescan_node(CustomScanState *node)
{
	struct lookahead *self = (struct lookahead *) node;
	struct inner inner = look_at_inner(self->inner);

	clear_rows(self);
	self->ended = false;
	self->most = 0;
	if (inner.scan != NULL)
	{
		(void) smart_scan_read_ahead(inner.scan, NULL, 0, 0);
		self->trips = smart_scan_round_trips(inner.scan);
	}
	/* Where a parameter has changed, the outer side is started anew when it is asked for the first row. */
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

#define NAME "Smart Lookahead"

/* It is begun as it is made, and asked for rows without a detour: insert_node. */
static const CustomExecMethods methods = {
	.CustomName = NAME,
	.EndCustomScan = end_node,
	.ReScanCustomScan = rescan_node,
};

/* No plan that is to be started has the node. */
static const CustomScanMethods plan_methods = {.CustomName = NAME};

/* What EXPLAIN, and whoever else goes over a plan, wants to see of a node. */
static Plan *
make_plan(const NestLoop *join)
{
	Plan *outer = outerPlan(&join->join.plan);
	CustomScan *scan = makeNode(CustomScan);
	Plan *plan = &scan->scan.plan;
	ListCell *cell;

	scan->methods = &plan_methods;
	plan->startup_cost = outer->startup_cost;
	plan->total_cost = outer->total_cost;
	plan->plan_rows = outer->plan_rows;
	plan->plan_width = outer->plan_width;
	plan->parallel_safe = outer->parallel_safe;
	/* Those of a plan are not negative. */
	plan->plan_node_id = -1 - join->join.plan.plan_node_id;
	smart_assert(plan->plan_node_id < 0);
	plan->lefttree = outer;
	plan->extParam = bms_copy(outer->extParam);
	plan->allParam = bms_copy(outer->allParam);
	foreach (cell, outer->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Var *column = makeVarFromTargetEntry(OUTER_VAR, entry);

		plan->targetlist =
			lappend(plan->targetlist, makeTargetEntry((Expr *) column, entry->resno, entry->resname, entry->resjunk));
	}
	return plan;
}

/* Puts a node between a join and its outer side. */
static void
insert_node(NestLoopState *state, PlanState *inner)
{
	const NestLoop *join = castNode(NestLoop, state->js.ps.plan);
	PlanState *outer = outerPlanState(state);
	EState *estate = state->js.ps.state;
	struct lookahead *self = palloc0(sizeof(*self));
	PlanState *node = &self->node.ss.ps;

	smart_assert(IsA(inner, IndexScanState) || IsA(inner, IndexOnlyScanState));
	self->node.ss.ps.type = T_CustomScanState;
	self->node.methods = &methods;
	self->join = join;
	self->inner = inner;
	node->plan = make_plan(join);
	node->state = estate;
	node->lefttree = outer;
	node->ps_ResultTupleDesc = ExecGetResultType(outer);
	/* The join was made ready for rows as the outer side has them. */
	node->resultops = ExecGetResultSlotOps(outer, &node->resultopsfixed);
	node->resultopsset = true;
	node->ps_ResultTupleSlot = ExecAllocTableSlot(&estate->es_tupleTable, node->ps_ResultTupleDesc, node->resultops);
	self->node.ss.ss_ScanTupleSlot = node->ps_ResultTupleSlot;
	ExecSetExecProcNode(node, next_row);
	if (estate->es_instrument)
		node->instrument = InstrAlloc(1, estate->es_instrument, false);
	outerPlanState(state) = node;
}

static bool
visit(PlanState *node, void *argument)
{
	const PlannedStmt *statement = argument;
	const Scan *scan;
	PlanState *inner;

	if (node == NULL)
		return false;
	(void) planstate_tree_walker(node, visit, argument);
	if (!IsA(node, NestLoopState))
		return false;
	scan = smart_join_fits(statement, castNode(NestLoop, node->plan));
	if (scan == NULL)
		return false;
	inner = innerPlanState(node);
	while (inner != NULL && inner->plan != (const Plan *) scan)
		inner = IsA(inner, SubqueryScanState) ? ((SubqueryScanState *) inner)->subplan : outerPlanState(inner);
	if (inner != NULL)
		insert_node((NestLoopState *) node, inner);
	return false;
}

static void
at_start(QueryDesc *query, int flags)
{
	MemoryContext old;

	if (next_hook != NULL)
		next_hook(query, flags);
	else
		standard_ExecutorStart(query, flags);
	if (!smart_server.remote || !smart_settings.batching || query->planstate == NULL)
		return;
	old = MemoryContextSwitchTo(query->estate->es_query_cxt);
	(void) visit(query->planstate, query->plannedstmt);
	MemoryContextSwitchTo(old);
}

void
smart_lookahead_init(void)
{
	smart_assert(ExecutorStart_hook != at_start);
	next_hook = ExecutorStart_hook;
	ExecutorStart_hook = at_start;
}
