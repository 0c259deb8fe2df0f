/*
 * pending.c
 *	  Pending adds: entries of this backend that wait to go into their trees together.
 *
 * With memory nodes an entry by itself costs a round trip, and without them it waits for memory; those of a statement that inserts
 * many rows go together, and in order.  They wait in this process's own memory.  Nobody else can see that: between a row's place in
 * its table and its entry's in the index any time may pass, as when the process is stopped there.  What is different from that is
 * what this backend does meanwhile, and each of these writes out first:
 *
 * - A scan of the index whose snapshot may see a pending row: it was taken after the statement began, or is none of MVCC's.
 *   So does a query with such a snapshot that has parallel workers, who know nothing of this process.
 * - A utility command.  The end of the statement that all others are within, or of COPY; the commit, and PREPARE, for
 *   whatever is left.
 *
 * A row may go while its transaction goes on: when its subtransaction is rolled back, or when ON CONFLICT withdraws it.
 * VACUUM of another process then removes its entries and gives its place away, so none may be added afterwards.  The
 * first are dropped, and the second never wait: adds wait only in statements that are known to have none.
 *
 * A statement has the index locked until its subtransaction ends, with which its adds go.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/pending.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define INDEXES_MAX 32
#define ENTRIES_MAX 2048        /* of an index */
#define BYTES_MAX   (64 * 1024) /* likewise */
#define FEW         16          /* entries that might as well not have waited */
#define SHORT_MAX   3           /* times that there were so few, before those that come do not wait any more */

struct pending_index
{
	Oid index;
	uint32 count;
	uint32 *places;       /* of its adds, in bytes */
	StringInfoData bytes; /* struct smart_pending_add, each MAXALIGNed */
};

/* The statement that is under way. */
struct statement
{
	bool open;         /* its adds may wait */
	CommandId command; /* its rows are of no earlier one */
};

static MemoryContext context = NULL; /* of all that is pending */
static struct pending_index pending[INDEXES_MAX];
static int npending = 0;
static CommandId first_command; /* no pending row is of an earlier one */
static bool writing = false;
static uint32 short_writes = 0; /* how many times something within the statement has asked for few entries */
static struct statement statement = {.open = false};

static smart_pending_writer write_adds;
static ExecutorRun_hook_type next_run;
static ExecutorFinish_hook_type next_finish;
static ProcessUtility_hook_type next_utility;

/* ---- writing out ---- */

static const struct smart_pending_add *
add_at(const struct pending_index *self, uint32 i)
{
	smart_assert(i < self->count);
	smart_assert(self->places[i] < (uint32) self->bytes.len && self->places[i] == MAXALIGN(self->places[i]));
	return (const struct smart_pending_add *) (self->bytes.data + self->places[i]);
}

static void
forget_all(void)
{
	npending = 0;
	if (context != NULL)
		MemoryContextReset(context);
}

static void
write_index(struct pending_index *self)
{
	const struct smart_pending_add **adds;
	Relation index;

	if (self->count == 0)
		return;
	smart_assert(!writing && IsTransactionState());
	smart_assert(self->count <= ENTRIES_MAX);
	adds = palloc(self->count * sizeof(*adds));
	for (uint32 i = 0; i < self->count; i++)
		adds[i] = add_at(self, i);
	writing = true;
	PG_TRY();
	{
		index = relation_open(self->index, NoLock);
		write_adds(index, adds, self->count);
		relation_close(index, NoLock);
	}
	PG_FINALLY();
	{
		writing = false;
	}
	PG_END_TRY();
	/* After an error all of them stay, until what they belong to is rolled back; who goes on adds them again. */
	pfree(adds);
	self->count = 0;
	resetStringInfo(&self->bytes);
}

void
smart_pending_write_out(void)
{
	if (likely(npending == 0) || writing)
		return;
	for (int i = 0; i < npending; i++)
		write_index(&pending[i]);
	forget_all();
}

/* May a snapshot see a pending row? */
static bool
may_see(Snapshot snapshot)
{
	return snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC || snapshot->curcid > first_command;
}

void
smart_pending_before_scan(Relation index, Snapshot snapshot)
{
	if (likely(npending == 0) || writing || !may_see(snapshot))
		return;
	for (int i = 0; i < npending; i++)
	{
		if (pending[i].index != RelationGetRelid(index) || pending[i].count == 0)
			continue;
		short_writes += pending[i].count < FEW;
		write_index(&pending[i]);
	}
}

/* ---- transactions ---- */

static void
at_transaction_end(XactEvent event, void *argument)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			smart_pending_write_out();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			smart_assert(event == XACT_EVENT_ABORT || npending == 0);
			forget_all();
			break;
		default:
			break;
	}
}

static Size
bytes_of(uint32 length)
{
	return MAXALIGN(offsetof(struct smart_pending_add, entry) + (Size) length);
}

/* Those of the subtransaction are dropped, and of all that began after it, which were a part of it. */
static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	for (int i = 0; i < npending; i++)
	{
		struct pending_index *self = &pending[i];
		uint32 kept = 0;

		for (uint32 at = 0; at < self->count; at++)
		{
			if (add_at(self, at)->subtransaction < mine)
				self->places[kept++] = self->places[at];
		}
		self->count = kept;
		/* What is behind the last one is free. */
		self->bytes.len = kept == 0 ? 0 : (int) (self->places[kept - 1] + bytes_of(add_at(self, kept - 1)->length));
	}
}

/* ---- adds ---- */

bool
smart_pending_is_open(void)
{
	return statement.open && !writing && short_writes < SHORT_MAX;
}

static struct pending_index *
take_index(Oid index)
{
	struct pending_index *self;
	MemoryContext old;

	for (int i = 0; i < npending; i++)
	{
		if (pending[i].index == index)
			return &pending[i];
	}
	if (npending == INDEXES_MAX)
		smart_pending_write_out();
	if (context == NULL)
	{
		context = AllocSetContextCreate(TopMemoryContext, "smart pending adds", ALLOCSET_DEFAULT_SIZES);
		RegisterXactCallback(at_transaction_end, NULL);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
	}
	smart_assert(npending < INDEXES_MAX);
	self = &pending[npending];
	old = MemoryContextSwitchTo(context);
	*self = (struct pending_index){.index = index};
	self->places = palloc(ENTRIES_MAX * sizeof(*self->places));
	initStringInfo(&self->bytes);
	MemoryContextSwitchTo(old);
	npending++;
	return self;
}

void
smart_pending_add(Relation index, const uint8 *entry, int key_length, int length)
{
	struct pending_index *self = take_index(RelationGetRelid(index));
	struct smart_pending_add *add;
	Size size;

	smart_assert(smart_pending_is_open());
	smart_assert(key_length > 0 && key_length <= length && length <= UINT16_MAX);
	if (self->count == ENTRIES_MAX || self->bytes.len > BYTES_MAX)
		write_index(self);
	if (npending == 1 && self->count == 0)
		first_command = statement.command;
	first_command = Min(first_command, statement.command);
	smart_assert(self->count < ENTRIES_MAX);
	size = bytes_of((uint32) length);
	enlargeStringInfo(&self->bytes, (int) size);
	add = (struct smart_pending_add *) (self->bytes.data + self->bytes.len);
	add->subtransaction = GetCurrentSubTransactionId();
	add->key_length = (uint16) key_length;
	add->length = (uint16) length;
	memcpy(add->entry, entry, (Size) length);
	self->places[self->count++] = (uint32) self->bytes.len;
	self->bytes.len += (int) size;
	smart_assert(self->bytes.len < self->bytes.maxlen);
}

/* ---- statements ---- */

static bool
withdraws_rows(const PlanState *node)
{
	return node != NULL && IsA(node, ModifyTableState) &&
		   ((const ModifyTable *) node->plan)->onConflictAction != ONCONFLICT_NONE;
}

/* May adds wait at all? */
static bool
is_wanted(void)
{
	return smart_server_available() && smart_settings.batching;
}

/* A statement begins within an outer one, if that is open. */
static void
begin_statement(struct statement inner, const struct statement *outer)
{
	if (!outer->open)
		short_writes = 0;
	statement = inner;
}

static struct statement
statement_of(const QueryDesc *query)
{
	struct statement result = {.open = is_wanted(), .command = query->estate->es_output_cid};
	ListCell *cell;

	/* An INSERT is the top of a plan, or below WITH. */
	if (withdraws_rows(query->planstate))
		result.open = false;
	foreach (cell, query->estate->es_auxmodifytables)
	{
		if (withdraws_rows(lfirst(cell)))
			result.open = false;
	}
	return result;
}

/* Does a query insert nothing itself, so that nothing has to be known of it? */
static bool
is_harmless(const QueryDesc *query)
{
	return !statement.open &&
		   (!is_wanted() || (query->operation == CMD_SELECT && query->estate->es_auxmodifytables == NIL));
}

static void
run(SMART_EXECUTOR_RUN_PARAMETERS)
{
	if (next_run != NULL)
		next_run(SMART_EXECUTOR_RUN_ARGUMENTS);
	else
		standard_ExecutorRun(SMART_EXECUTOR_RUN_ARGUMENTS);
}

static void
at_run(SMART_EXECUTOR_RUN_PARAMETERS)
{
	struct statement outer = statement;

	/* Its workers know nothing of this process. */
	if (npending > 0 && query->plannedstmt->parallelModeNeeded && may_see(query->snapshot))
		smart_pending_write_out();
	if (is_harmless(query))
	{
		run(SMART_EXECUTOR_RUN_ARGUMENTS);
		return;
	}
	begin_statement(statement_of(query), &outer);
	PG_TRY();
	{
		run(SMART_EXECUTOR_RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		statement = outer;
	}
	PG_END_TRY();
}

static void
finish(QueryDesc *query)
{
	if (next_finish != NULL)
		next_finish(query);
	else
		standard_ExecutorFinish(query);
}

static void
at_finish(QueryDesc *query)
{
	struct statement outer = statement;

	if (is_harmless(query))
	{
		finish(query);
		return;
	}
	begin_statement(statement_of(query), &outer);
	PG_TRY();
	{
		finish(query);
	}
	PG_FINALLY();
	{
		statement = outer;
	}
	PG_END_TRY();
	/* Within another statement they may go on waiting. */
	if (!outer.open)
		smart_pending_write_out();
}

static void
run_utility(PlannedStmt *command, const char *text, bool read_only, ProcessUtilityContext utility_context,
			ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *receiver,
			QueryCompletion *completion)
{
	if (next_utility != NULL)
		next_utility(command, text, read_only, utility_context, parameters, environment, receiver, completion);
	else
		standard_ProcessUtility(command, text, read_only, utility_context, parameters, environment, receiver,
								completion);
}

static void
at_utility(PlannedStmt *command, const char *text, bool read_only, ProcessUtilityContext utility_context,
		   ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	struct statement outer = statement;
	bool copies = IsA(command->utilityStmt, CopyStmt) && castNode(CopyStmt, command->utilityStmt)->is_from;

	/* COMMIT and PREPARE write out by themselves, and ROLLBACK must not raise an error. */
	if (IsA(command->utilityStmt, TransactionStmt))
	{
		run_utility(command, text, read_only, utility_context, parameters, environment, receiver, completion);
		return;
	}
	smart_pending_write_out();
	begin_statement((struct statement){.open = copies && is_wanted(),
									   .command = copies ? GetCurrentCommandId(false) : 0},
					&outer);
	PG_TRY();
	{
		run_utility(command, text, read_only, utility_context, parameters, environment, receiver, completion);
		/* COPY: whatever statements ran within it, it is the one that is under way again. */
		if (statement.open)
			smart_pending_write_out();
	}
	PG_FINALLY();
	{
		statement = outer;
	}
	PG_END_TRY();
}

void
smart_pending_init(smart_pending_writer writer)
{
	smart_assert(write_adds == NULL && writer != NULL);
	write_adds = writer;
	next_run = ExecutorRun_hook;
	ExecutorRun_hook = at_run;
	next_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = at_finish;
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = at_utility;
}
