/*
 * parallel_build.c
 *	  CREATE INDEX with several processes: the leader, which runs the command, and
 *	  workers.
 *
 * All of them take chunks of the table (table_pages.h), or blocks from one parallel scan, until none is left.  A
 * worker sorts its entries within its part of maintenance_work_mem, writes them as one sorted run to a file that the
 * leader can read, and ends; the leader merges these runs with its own and with what it has in memory, and loads
 * the tree alone.  Thus no worker needs memory nodes, and uniqueness, which is checked when entries are
 * neighbours, is checked in one place.
 *
 * In its notes the worker describes the run, and lists the rows that are dead, for which uniqueness does
 * not matter.  The files belong to the segment of shared memory that the processes share, and go with it,
 * after errors too.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/sharedfileset.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/build/duplicates.h"
#include "am/build/parallel_build.h"
#include "am/build/table_pages.h"
#include "am/sort/sorter.h"
#include "am/compat.h"
#include "am/server/progress.h"
#include "base/assert.h"

/* Keys of what is in the shared memory; the server has large ones of its own. */
#define KEY_SHARED  UINT64CONST(1)
#define KEY_SCAN    UINT64CONST(2)
#define KEY_QUERY   UINT64CONST(3)
#define KEY_BUFFERS UINT64CONST(4)
#define KEY_WAL     UINT64CONST(5)

/* What a worker has found: written by it, read when it has ended. */
struct result
{
	double rows;
	double entries;
	bool broken_hot_chain;
};

struct shared
{
	Oid heap;
	Oid index;
	bool concurrent; /* CONCURRENTLY: locks and the snapshot are others */
	int processes;
	pg_atomic_uint32 chunks; /* of the table, that processes have taken */
	SharedFileSet files;
	struct result result[FLEXIBLE_ARRAY_MEMBER]; /* of each worker */
};

struct smart_parallel_build
{
	ParallelContext *context;
	struct shared *shared;
	ParallelTableScanDesc scan;
	Snapshot snapshot;
	BufferUsage *buffers; /* of each worker; so is the next */
	WalUsage *wal;
};

PGDLLEXPORT void smart_parallel_build_main(dsm_segment *segment, shm_toc *toc);

/* The file in which a worker describes its run. */
static const char *
notes_name(int worker)
{
	return psprintf("notes.%d", worker);
}

/* ---- the leader ---- */

/* Makes the shared memory, with room for all that workers need to know and to report. */
static void
make_shared(struct smart_parallel_build *self, Relation heap)
{
	ParallelContext *context = self->context;
	Size workers = (Size) context->nworkers;
	Size query = debug_query_string == NULL ? 0 : strlen(debug_query_string) + 1;

	shm_toc_estimate_chunk(&context->estimator, offsetof(struct shared, result) + workers * sizeof(struct result));
	shm_toc_estimate_chunk(&context->estimator, table_parallelscan_estimate(heap, self->snapshot));
	shm_toc_estimate_chunk(&context->estimator, workers * sizeof(BufferUsage));
	shm_toc_estimate_chunk(&context->estimator, workers * sizeof(WalUsage));
	shm_toc_estimate_chunk(&context->estimator, query);
	shm_toc_estimate_keys(&context->estimator, 5);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return;
	self->shared = shm_toc_allocate(context->toc, offsetof(struct shared, result) + workers * sizeof(struct result));
	self->scan = shm_toc_allocate(context->toc, table_parallelscan_estimate(heap, self->snapshot));
	self->buffers = shm_toc_allocate(context->toc, workers * sizeof(BufferUsage));
	self->wal = shm_toc_allocate(context->toc, workers * sizeof(WalUsage));
	shm_toc_insert(context->toc, KEY_SHARED, self->shared);
	shm_toc_insert(context->toc, KEY_SCAN, self->scan);
	shm_toc_insert(context->toc, KEY_BUFFERS, self->buffers);
	shm_toc_insert(context->toc, KEY_WAL, self->wal);
	if (query > 0)
	{
		char *copy = shm_toc_allocate(context->toc, query);

		memcpy(copy, debug_query_string, query);
		shm_toc_insert(context->toc, KEY_QUERY, copy);
	}
}

struct smart_parallel_build *
smart_parallel_build_begin(Relation heap, Relation index, const IndexInfo *info)
{
	int workers = smart_build_workers(heap, index, info);
	struct smart_parallel_build *self;

	if (workers == 0)
		return NULL;
	/* The tree will be marked with the transaction's id, and parallel mode gives none. */
	(void) GetTopTransactionId();
	self = palloc0(sizeof(*self));
	self->snapshot = info->ii_Concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	EnterParallelMode();
	self->context = CreateParallelContext("smart", "smart_parallel_build_main", workers);
	make_shared(self, heap);
	if (self->shared != NULL)
	{
		self->shared->heap = RelationGetRelid(heap);
		self->shared->index = RelationGetRelid(index);
		self->shared->concurrent = info->ii_Concurrent;
		self->shared->processes = self->context->nworkers + 1;
		pg_atomic_init_u32(&self->shared->chunks, 0);
		memset(self->shared->result, 0, (Size) self->context->nworkers * sizeof(struct result));
		SharedFileSetInit(&self->shared->files, self->context->seg);
		table_parallelscan_initialize(heap, self->scan, self->snapshot);
		/* How many workers have been started is known afterwards. */
		LaunchParallelWorkers(self->context);
	}
	smart_assert(self->shared != NULL || self->context->nworkers_launched == 0);
	if (self->context->nworkers_launched > 0)
		return self;
	smart_parallel_build_end(self);
	return NULL;
}

/* The part of one process. */
static void
read_part(struct shared *shared, struct smart_collector *collector, IndexInfo *info, ParallelTableScanDesc scan,
		  bool progress)
{
	bool pages = smart_table_has_pages(collector->heap, info);

	smart_assert(collector->chunks == NULL && collector->entries == 0);
	collector->chunks = &shared->chunks;
	smart_collector_read(collector, info, pages ? NULL : table_beginscan_parallel(collector->heap, scan), progress);
}

int
smart_parallel_build_processes(const struct smart_parallel_build *self)
{
	smart_assert(self->shared->processes > 1);
	return self->shared->processes;
}

void
smart_parallel_build_read(struct smart_parallel_build *self, struct smart_collector *collector, IndexInfo *info)
{
	Size memory = (Size) maintenance_work_mem * 1024 / (Size) self->shared->processes;
	int launched = self->context->nworkers_launched;

	smart_assert(launched > 0 && launched < self->shared->processes);
	read_part(self->shared, collector, info, self->scan, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_SORT);
	smart_sorter_prepare(collector->sorter);
	WaitForParallelWorkersToFinish(self->context);
	for (int worker = 0; worker < launched; worker++)
	{
		const struct result *result = &self->shared->result[worker];
		FileSet *files = &self->shared->files.fs;
		BufFile *notes = BufFileOpenFileSet(files, notes_name(worker), O_RDONLY, false);

		smart_sorter_take_over(collector->sorter, &self->shared->files, worker, notes, memory);
		if (collector->duplicates != NULL)
			smart_duplicates_take_over(collector->duplicates, notes);
		BufFileClose(notes);
		collector->rows += result->rows;
		collector->entries += result->entries;
		info->ii_BrokenHotChain |= result->broken_hot_chain;
		InstrAccumParallelQuery(&self->buffers[worker], &self->wal[worker]);
	}
}

void
smart_parallel_build_end(struct smart_parallel_build *self)
{
	DestroyParallelContext(self->context);
	if (self->snapshot != SnapshotAny)
		UnregisterSnapshot(self->snapshot);
	ExitParallelMode();
	pfree(self);
}

/* ---- a worker ---- */

/* Where a worker begins; the server has made it a copy of the leader's transaction. */
void
smart_parallel_build_main(dsm_segment *segment, shm_toc *toc)
{
	struct shared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	BufferUsage *buffers = shm_toc_lookup(toc, KEY_BUFFERS, false);
	WalUsage *wal = shm_toc_lookup(toc, KEY_WAL, false);
	struct smart_collector *collector = palloc(sizeof(*collector));
	struct result *result = &shared->result[ParallelWorkerNumber];
	/* As the leader has them, with which these do not conflict. */
	LOCKMODE heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation heap;
	Relation index;
	IndexInfo *info;
	BufFile *notes;

	smart_assert(ParallelWorkerNumber >= 0 && ParallelWorkerNumber < shared->processes - 1);
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	SharedFileSetAttach(&shared->files, segment);
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	InstrStartParallelQuery();
	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;
	smart_collector_begin(collector, heap, index, info, shared->processes);
	smart_sorter_share(collector->sorter, &shared->files, ParallelWorkerNumber);
	read_part(shared, collector, info, shm_toc_lookup(toc, KEY_SCAN, false), false);

	/* Its run, and what the leader has to know of that. */
	notes = BufFileCreateFileSet(&shared->files.fs, notes_name(ParallelWorkerNumber));
	smart_sorter_hand_over(collector->sorter, notes);
	if (collector->duplicates != NULL)
		smart_duplicates_hand_over(collector->duplicates, notes);
	BufFileExportFileSet(notes);
	BufFileClose(notes);
	smart_sorter_end(collector->sorter);
	*result = (struct result){.rows = collector->rows,
							  .entries = collector->entries,
							  .broken_hot_chain = info->ii_BrokenHotChain};
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}
