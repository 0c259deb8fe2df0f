/*
 * routing.c
 *	  INSERT ... ON CONFLICT through a partitioned table whose partitions have unique smart indexes, on servers whose
 *	  executor insists on btree there.
 *
 * The executor opens the indexes of a partition when the first row is routed to it, in ExecFindPartition().  So the node
 * that the statement gets its rows from is watched: each row is routed once ahead of the executor, by the same function
 * with a state of our own (the scout), in which there is no ON CONFLICT and nothing is refused.  When that finds a
 * partition for the first time, the executor's own state is made to find it, too, while its unique smart indexes pass for
 * btrees (as_btree.c).  From then on it is as if the executor had opened it itself.
 *
 * A row has the columns of the table when the node hands it out, and triggers change rows when they have been routed: so
 * both find the same partition.
 */
#include "postgres.h"

#include "access/genam.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/as_btree.h"
#include "am/index/relation.h"
#include "am/write/routing.h"
#include "base/assert.h"

/* A statement under way; in the context of its query. */
struct routing
{
	struct routing *next;
	ModifyTableState *modify;
	PlanState *source; /* of its rows */
	ExecProcNodeMtd fetch;

	/* The scout */
	EState *estate;
	ModifyTableState *state;
	PartitionTupleRouting *partitions;

	MemoryContextCallback at_end;
};

static ExecutorEnd_hook_type next_hook = NULL;
static struct routing *all = NULL;

static void
forget(void *argument)
{
	struct routing **place = &all;

	while (*place != NULL && *place != argument)
		place = &(*place)->next;
	if (*place != NULL)
		*place = (*place)->next;
}

/* ---- rows ---- */

/*
 * Opens the unique smart ones among a partition's indexes.  Each lock that is waited for may tell of another index, which a session
 * makes concurrently, and the executor finds those that there are when all are locked.
 */
static List *
open_unique_smart_indexes(Relation partition)
{
	List *indexes = NIL;
	List *seen = NIL;
	List *unseen;

	AcceptInvalidationMessages();
	while ((unseen = list_difference_oid(RelationGetIndexList(partition), seen)) != NIL)
	{
		Relation index = index_open(linitial_oid(unseen), RowExclusiveLock);

		seen = lappend_oid(seen, RelationGetRelid(index));
		if (index->rd_index->indisunique && smart_is_our_index(index))
			indexes = lappend(indexes, index);
		else
			index_close(index, NoLock);
	}
	return indexes;
}

/* Their locks stay. */
static void
close_indexes(List *indexes)
{
	ListCell *cell;

	foreach (cell, indexes)
		index_close((Relation) lfirst(cell), NoLock);
	list_free(indexes);
}

/* Has the executor open the partition of a row. */
static void
open_partition(ModifyTableState *modify, TupleTableSlot *row, List *indexes)
{
	struct smart_as_btree as_btree;

	smart_as_btree_begin(&as_btree, indexes);
	PG_TRY();
	{
		(void) ExecFindPartition(modify, modify->rootResultRelInfo, modify->mt_partition_tuple_routing, row,
								 modify->ps.state);
	}
	PG_FINALLY();
	{
		smart_as_btree_end(&as_btree);
	}
	PG_END_TRY();
}

static TupleTableSlot *
next_row(PlanState *node)
{
	struct routing *self = all;
	TupleTableSlot *row;
	ResultRelInfo *partition;

	while (self->source != node)
		self = self->next;
	row = self->fetch(node);
	if (TupIsNull(row))
		return row;
	partition = ExecFindPartition(self->state, self->modify->rootResultRelInfo, self->partitions, row, self->estate);
	ResetPerTupleExprContext(self->estate);
	/* Of the scout's own description of the partition, which inserts nothing, this field says that it has been here. */
	if (partition->ri_FdwState == NULL)
	{
		List *indexes = open_unique_smart_indexes(partition->ri_RelationDesc);

		partition->ri_FdwState = self;
		if (indexes != NIL)
			open_partition(self->modify, row, indexes);
		close_indexes(indexes);
	}
	return row;
}

/* ---- the scout ---- */

/* A statement that inserts without more ado, for a state of its own. */
static ModifyTable *
plain_insert(const ModifyTable *plan)
{
	ModifyTable *plain = makeNode(ModifyTable);

	plain->operation = plan->operation;
	plain->resultRelations = plan->resultRelations;
	plain->onConflictAction = ONCONFLICT_NONE;
	return plain;
}

static void
make_scout(struct routing *self)
{
	const ModifyTableState *modify = self->modify;
	ModifyTableState *state = makeNode(ModifyTableState);

	self->estate = CreateExecutorState();
	state->ps.plan = (Plan *) plain_insert((const ModifyTable *) modify->ps.plan);
	state->ps.state = self->estate;
	state->operation = modify->operation;
	state->mt_nrels = modify->mt_nrels;
	state->resultRelInfo = modify->resultRelInfo;
	state->rootResultRelInfo = modify->rootResultRelInfo;
	self->state = state;
	self->partitions = ExecSetupPartitionTupleRouting(self->estate, modify->rootResultRelInfo->ri_RelationDesc);
}

void
smart_routing_prepare(ModifyTableState *modify)
{
	struct routing *self = palloc0(sizeof(*self));
	PlanState *source = outerPlanState(modify);

	smart_assert(modify->operation == CMD_INSERT && modify->mt_partition_tuple_routing != NULL);
	self->modify = modify;
	self->source = source;
	make_scout(self);

	self->at_end.func = forget;
	self->at_end.arg = self;
	MemoryContextRegisterResetCallback(modify->ps.state->es_query_cxt, &self->at_end);
	self->next = all;
	all = self;
	self->fetch = source->ExecProcNodeReal;
	ExecSetExecProcNode(source, next_row);
}

/* Closes what the scouts of a query have opened. */
static void
end_scouts(const EState *estate)
{
	struct routing *next;

	for (struct routing *self = all; self != NULL; self = next)
	{
		next = self->next;
		if (self->modify->ps.state != estate)
			continue;
		ExecCleanupTupleRouting(self->state, self->partitions);
		ExecResetTupleTable(self->estate->es_tupleTable, false);
		FreeExecutorState(self->estate);
		forget(self);
	}
}

static void
executor_end(QueryDesc *query)
{
	if (all != NULL)
		end_scouts(query->estate);
	if (next_hook != NULL)
		next_hook(query);
	else
		standard_ExecutorEnd(query);
}

void
smart_routing_init(void)
{
	if (!SMART_SPECULATE_OURSELVES)
		return;
	next_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
}
