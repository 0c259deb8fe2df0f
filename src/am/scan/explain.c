/*
 * explain.c
 *	  EXPLAIN (ANALYZE, ROUND_TRIPS): how often a scan of a smart index waited for
 *	  memory nodes.  From version 18 on, where extensions may add to EXPLAIN.
 */
#include "postgres.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/scan/scan.h"

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
	if (state->analyze && GetExplainExtensionState(state, our_id) != NULL)
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

void
smart_explain_init(void)
{
}

#endif
