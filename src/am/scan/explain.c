/*
 * explain.c
 *	  EXPLAIN ANALYZE: how often a statement waited for memory nodes.
 *
 * With VERBOSE, if there are memory nodes.  From version 18 on extensions may add to EXPLAIN: each scan of a smart index tells,
 * also if the option ROUND_TRIPS asks for it.  Before, an extension sees the beginning and the end of EXPLAIN only.  But the
 * executor ends where the plan has been told, and the query's group is still open: so what is said there is
 * part of the output, whatever its format.  It is the number of the whole statement.
 */
#include "postgres.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/scan/scan.h"
#include "am/server/shared.h"

#if SMART_EXTENDS_EXPLAIN

#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "nodes/execnodes.h"

static int our_id; /* of what we keep in an ExplainState */
static explain_per_node_hook_type next_hook;

/* The option was given: a pointer that is not NULL stands for true. */
static void
take_option(ExplainState *state, DefElem *option, ParseState *parse)
{
	SetExplainExtensionState(state, our_id, defGetBoolean(option) ? &our_id : NULL);
}

/* The index scan of a plan's node; NULL: it has none, or it was never begun. */
static IndexScanDesc
scan_of(PlanState *node)
{
	switch (nodeTag(node))
	{
		case T_IndexScanState:
			return ((IndexScanState *) node)->iss_ScanDesc;
		case T_IndexOnlyScanState:
			return ((IndexOnlyScanState *) node)->ioss_ScanDesc;
		case T_BitmapIndexScanState:
			return ((BitmapIndexScanState *) node)->biss_ScanDesc;
		default:
			return NULL;
	}
}

static void
explain_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name, ExplainState *state)
{
	if (state->analyze && ((state->verbose && smart_server.remote) || GetExplainExtensionState(state, our_id) != NULL))
	{
		IndexScanDesc scan = scan_of(node);

		if (scan != NULL && smart_is_our_index(scan->indexRelation))
			ExplainPropertyInteger("Round Trips", NULL, (int64) smart_scan_round_trips(scan), state);
	}
	if (next_hook != NULL)
		next_hook(node, ancestors, relationship, plan_name, state);
}

void
smart_explain_init(void)
{
	our_id = GetExplainExtensionId("smart");
	RegisterExtensionExplainOption("round_trips", take_option);
	next_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else

#include "commands/explain.h"
#include "executor/executor.h"

/* A statement that is being explained. */
struct explained
{
	ExplainState *state;
	const char *text; /* the same pointer in its QueryDesc, and in no other one while it runs */
	uint64 before;    /* round trips of this session when it began to run */
};

static struct explained *explained; /* the innermost one that is to tell; NULL: none */
static ExplainOneQuery_hook_type next_hook;
static ExecutorStart_hook_type next_start;
static ExecutorEnd_hook_type next_end;

static void
explain_query(Query *query, int options, IntoClause *into, ExplainState *state, const char *text, ParamListInfo params,
			  QueryEnvironment *environment)
{
	struct explained *outer = explained;
	struct explained self = {.state = state, .text = text};

	if (state->analyze && state->verbose && smart_server.remote)
		explained = &self;
	PG_TRY();
	{
		if (next_hook != NULL)
			next_hook(query, options, into, state, text, params, environment);
		else
			smart_standard_explain(query, options, into, state, text, params, environment);
	}
	PG_FINALLY();
	{
		explained = outer;
	}
	PG_END_TRY();
}

/* Is this the statement that is explained, and not one that a function of it runs? */
static bool
is_explained(const QueryDesc *query)
{
	return explained != NULL && query->sourceText == explained->text;
}

static void
executor_start(QueryDesc *query, int flags)
{
	if (is_explained(query))
		explained->before = smart_session_round_trips();
	if (next_start != NULL)
		next_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

static void
executor_end(QueryDesc *query)
{
	if (is_explained(query))
		ExplainPropertyInteger("Round Trips", NULL, (int64) (smart_session_round_trips() - explained->before),
							   explained->state);
	if (next_end != NULL)
		next_end(query);
	else
		standard_ExecutorEnd(query);
}

void
smart_explain_init(void)
{
	next_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_query;
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	next_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
}

#endif
