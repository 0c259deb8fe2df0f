/*
 * compat.h
 *	  What differs between server versions; the only place that asks for them.
 */
#ifndef SMART_AM_COMPAT_H
#define SMART_AM_COMPAT_H

#include "access/amapi.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "commands/vacuum.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/pg_locale.h"
#include "utils/rangetypes.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM >= 160000
#include "utils/relfilenumbermap.h"
#include "varatt.h"
#else
#include "utils/relfilenodemap.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/procarray.h"
#include "storage/procnumber.h"
#include "access/tidstore.h"
#include "storage/read_stream.h"
#else
#include "storage/backendid.h"
#include "storage/sinvaladt.h"
#endif

#if PG_VERSION_NUM < 170000
#include "commands/explain.h"
#include "executor/instrument.h"
#include "tcop/tcopprot.h"
#endif

#if PG_VERSION_NUM < 150000
#error "smart needs PostgreSQL 15 or newer"
#endif

#if PG_VERSION_NUM >= 180000
/* The first five strategies are btree's, which the server's numbers of comparisons are, too. */
static inline CompareType
smart_translate_strategy(StrategyNumber strategy, Oid family)
{
	return strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber ? (CompareType) strategy
																				   : COMPARE_INVALID;
}

static inline StrategyNumber
smart_translate_comparison(CompareType comparison, Oid family)
{
	return comparison >= COMPARE_LT && comparison <= COMPARE_GT ? (StrategyNumber) comparison : InvalidStrategy;
}
#endif

/* What later versions want to know of an access method beside what version 15 does. */
static inline void
smart_compat_describe(IndexAmRoutine *routine)
{
#if PG_VERSION_NUM >= 170000
	routine->amcanbuildparallel = true;
#endif
#if PG_VERSION_NUM >= 180000
	routine->amconsistentequality = true;
	routine->amconsistentordering = true;
	routine->amtranslatestrategy = smart_translate_strategy;
	routine->amtranslatecmptype = smart_translate_comparison;
#endif
}

/* A search of the index begins: for its statistics and, from version 18 on, for EXPLAIN ANALYZE. */
static inline void
smart_count_search(IndexScanDesc scan)
{
	pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
	if (scan->instrument != NULL)
		scan->instrument->nsearches++;
#endif
}

/*
 * The file of a relation by its numbers; those of its tablespace, database and file; the subtransaction in which the
 * relation got the file that it has now, if that was in this transaction; the relation that has a file now; and the tag of a
 * buffer with a page of the relation's file.
 */
#if PG_VERSION_NUM >= 160000
typedef RelFileLocator smart_file;
#define smart_make_file(tablespace, database, number) \
	((smart_file){.spcOid = (tablespace), .dbOid = (database), .relNumber = (number)})
#define smart_relation_tablespace(relation)         ((relation)->rd_locator.spcOid)
#define smart_relation_database(relation)           ((relation)->rd_locator.dbOid)
#define smart_relation_file(relation)               ((relation)->rd_locator.relNumber)
#define smart_relation_new_file_subid(relation)     ((relation)->rd_newRelfilelocatorSubid)
#define smart_relation_locator(relation)            ((relation)->rd_locator)
#define smart_relation_with_file(file)              RelidByRelfilenumber((file)->spcOid, (file)->relNumber)
#define smart_make_buffer_tag(tag, relation, block) InitBufferTag(tag, &(relation)->rd_locator, MAIN_FORKNUM, block)
#else
typedef RelFileNode smart_file;
#define smart_make_file(tablespace, database, number) \
	((smart_file){.spcNode = (tablespace), .dbNode = (database), .relNode = (number)})
#define smart_relation_tablespace(relation)         ((relation)->rd_node.spcNode)
#define smart_relation_database(relation)           ((relation)->rd_node.dbNode)
#define smart_relation_file(relation)               ((relation)->rd_node.relNode)
#define smart_relation_new_file_subid(relation)     ((relation)->rd_newRelfilenodeSubid)
#define smart_relation_locator(relation)            ((relation)->rd_node)
#define smart_relation_with_file(file)              RelidByRelfilenode((file)->spcNode, (file)->relNode)
#define smart_make_buffer_tag(tag, relation, block) INIT_BUFFERTAG(*(tag), (relation)->rd_node, MAIN_FORKNUM, block)
#endif

/*
 * What stands for the number of a backend where a table is not temporary; this backend's number among those that run,
 * never negative, and the same from 0 to MaxBackends - 1; and whether a backend of a number runs.
 */
#if PG_VERSION_NUM >= 170000
#define SMART_NO_BACKEND            INVALID_PROC_NUMBER
#define smart_my_backend()          MyProcNumber
#define smart_my_backend_index()    MyProcNumber
#define smart_backend_runs(backend) (ProcNumberGetProc(backend) != NULL)
#else
#define SMART_NO_BACKEND            InvalidBackendId
#define smart_my_backend()          MyBackendId
#define smart_my_backend_index()    (MyBackendId - 1)
#define smart_backend_runs(backend) (BackendIdGetProc(backend) != NULL)
#endif

/* Has DROP DATABASE begun to remove it, so that it takes no connections any more?  Known since 15.4. */
#define smart_database_is_invalid(database) ((database)->datconnlimit == -2)

/* Does a collation order strings by their bytes? */
#if PG_VERSION_NUM >= 180000
#define smart_orders_by_bytes(collation) (pg_newlocale_from_collation(collation)->collate_is_c)
#else
#define smart_orders_by_bytes(collation) lc_collate_is_c(collation)
#endif

/*
 * Are there sort keys to be trusted for a collation that does not order strings by their bytes: bytes that compare as
 * its strings do?  Those of the C library are not among them.
 */
static inline bool
smart_has_sort_keys(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

#if PG_VERSION_NUM >= 160000
	return pg_strxfrm_enabled(locale);
#else
	return locale != NULL && locale->provider == COLLPROVIDER_ICU;
#endif
}

/* As smart_sort_key(), of the C library: the server does not ask that for sort keys which it does not trust. */
static inline Size
smart_libc_sort_key(pg_locale_t locale, const char *string, Size length, char *out, Size room)
{
	char *copy = pnstrdup(string, length);
	Size size;

	/* The locale of the database may be that of the process, without one of its own. */
	if (locale != NULL && locale->info.lt != (locale_t) 0)
		size = strxfrm_l(out, copy, room, locale->info.lt);
	else
		size = strxfrm(out, copy, room);
	pfree(copy);
	return size;
}

/*
 * Writes the sort key of a string, which has no 00 inside, and returns its length without the final 00.  If that is not
 * less than room, the key is not there.  For collations of ICU and of the C library.
 */
static inline Size
smart_sort_key(Oid collation, const char *string, Size length, char *out, Size room)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

	if (locale == NULL || locale->provider == COLLPROVIDER_LIBC)
		return smart_libc_sort_key(locale, string, length, out, room);
#if PG_VERSION_NUM >= 160000
	return pg_strnxfrm(out, room, string, length, locale);
#elif defined(USE_ICU)
	UChar *wide;
	int32_t wide_length = icu_to_uchar(&wide, string, length);
	int32_t size = ucol_getSortKey(locale->info.icu.ucol, wide, wide_length, (uint8_t *) out, (int32_t) room);

	pfree(wide);
	return (Size) size - 1;
#else
	elog(ERROR, "collation %u has no sort keys", collation);
#endif
}

/* The version of the rules by which there are sort keys, of ICU and its data; 0: not known. */
static inline uint32
smart_sort_key_version(Oid collation)
{
	uint32 word = 0;
#ifdef USE_ICU
	pg_locale_t locale = pg_newlocale_from_collation(collation);
	UVersionInfo version;

	if (locale != NULL && locale->provider == COLLPROVIDER_ICU)
	{
		ucol_getVersion(locale->info.icu.ucol, version);
		memcpy(&word, version, sizeof(word));
	}
#endif
	return word;
}

/*
 * A server before version 17 may be told to remove rows which an old snapshot still sees (old_snapshot_threshold).  A
 * tree has no LSN to tell whether such a snapshot has missed something: every one that is old
 * enough gets the error (SNAPSHOT_TOO_OLD).  To be called when entries have been read.
 */
static inline void
smart_check_snapshot_age(Relation index, Snapshot snapshot)
{
#if PG_VERSION_NUM < 170000
	if (unlikely(old_snapshot_threshold >= 0) && IsMVCCSnapshot(snapshot) && !XLogRecPtrIsInvalid(snapshot->lsn))
		TestForOldSnapshot_impl(snapshot, index);
#endif
}

/* Builds a range, which is palloc'ed. */
#if PG_VERSION_NUM >= 160000
#define smart_make_range(type, lower, upper, empty) range_serialize(type, lower, upper, empty, NULL)
#else
#define smart_make_range(type, lower, upper, empty) range_serialize(type, lower, upper, empty)
#endif

/* What a check hook gives to the assign hook: NULL if there is no memory. */
#if PG_VERSION_NUM >= 160000
#define smart_guc_allocate(size) guc_malloc(LOG, size)
#define smart_guc_free(extra)    guc_free(extra)
#else
#define smart_guc_allocate(size) malloc(size)
#define smart_guc_free(extra)    free(extra)
#endif

/* Inside a security-restricted operation: names are looked up in safe places only. */
#if PG_VERSION_NUM >= 170000
#define smart_restrict_search_path() RestrictSearchPath()
#else
#define smart_restrict_search_path() ((void) 0)
#endif

/* The cost-based delay of VACUUM. */
#if PG_VERSION_NUM >= 180000
#define smart_vacuum_delay_point() vacuum_delay_point(false)
#else
#define smart_vacuum_delay_point() vacuum_delay_point()
#endif

/* From now on this process sleeps there as vacuum_cost_delay and vacuum_cost_limit say. */
static inline void
smart_begin_vacuum_delays(void)
{
	VacuumCostBalance = 0;
#if PG_VERSION_NUM >= 160000
	VacuumUpdateCosts();
#else
	VacuumCostActive = VacuumCostDelay > 0;
#endif
}

/* Has the server bulk delete an index as VACUUM does, with a list of dead rows that is empty. */
static inline void
smart_vacuum_nothing(IndexVacuumInfo *info)
{
#if PG_VERSION_NUM >= 170000
	VacDeadItemsInfo none = {0};

	(void) vac_bulkdel_one_index(info, NULL, NULL, &none);
#else
	VacDeadItems none = {0};

	(void) vac_bulkdel_one_index(info, NULL, &none);
#endif
}

/*
 * Calls add for each table block with rows in VACUUM's list of dead ones, in ascending order; their offset numbers ascend,
 * too.  False: add has said so, and there the walk has ended.
 */
typedef bool (*smart_dead_block_fn)(void *argument, BlockNumber block, const OffsetNumber *offsets, int count);

static inline bool
smart_each_dead_block(void *list, smart_dead_block_fn add, void *argument)
{
	OffsetNumber offsets[MaxOffsetNumber];
	bool more = true;
#if PG_VERSION_NUM >= 170000
	TidStore *store = list;
	TidStoreIterResult *block;
	TidStoreIter *iteration;

	TidStoreLockShare(store);
	iteration = TidStoreBeginIterate(store);
	while (more && (block = TidStoreIterateNext(iteration)) != NULL)
	{
#if PG_VERSION_NUM >= 180000
		int count = TidStoreGetBlockOffsets(block, offsets, lengthof(offsets));
#else
		int count = block->num_offsets;

		memcpy(offsets, block->offsets, (Size) count * sizeof(OffsetNumber));
#endif
		more = add(argument, block->blkno, offsets, count);
	}
	TidStoreEndIterate(iteration);
	TidStoreUnlock(store);
#else
	const VacDeadItems *items = list;
	int count;

	for (int i = 0; i < items->num_items && more; i += count)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&items->items[i]);

		for (count = 0; i + count < items->num_items; count++)
		{
			const ItemPointerData *tid = &items->items[i + count];

			if (count == lengthof(offsets) || ItemPointerGetBlockNumber(tid) != block)
				break;
			offsets[count] = ItemPointerGetOffsetNumber(tid);
		}
		more = add(argument, block, offsets, count);
	}
#endif
	return more;
}

/*
 * Reads pages of a table one after the other, those that next() tells (InvalidBlockNumber: none any more), from version 17 on ahead
 * of time.  blocks: the table's.  The buffers are pinned, and not locked; InvalidBuffer: there are no more.
 */
typedef BlockNumber (*smart_next_block_fn)(void *argument);

struct smart_block_reader
{
	Relation table;
	BufferAccessStrategy strategy; /* NULL: pages of a small table stay in the buffers */
	smart_next_block_fn next;
	void *argument;
#if PG_VERSION_NUM >= 170000
	ReadStream *stream;
#endif
};

#if PG_VERSION_NUM >= 170000
static inline BlockNumber
smart_block_reader_ask(ReadStream *stream, void *reader, void *per_buffer)
{
	const struct smart_block_reader *self = reader;

	return self->next(self->argument);
}
#endif

static inline struct smart_block_reader *
smart_block_reader_begin(Relation table, BlockNumber blocks, smart_next_block_fn next, void *argument)
{
	struct smart_block_reader *self = palloc0(sizeof(*self));

	self->table = table;
	/* As the server's scans: a large table does not drive others out. */
	if (blocks > (BlockNumber) NBuffers / 4)
		self->strategy = GetAccessStrategy(BAS_BULKREAD);
	self->next = next;
	self->argument = argument;
#if PG_VERSION_NUM >= 170000
	self->stream = read_stream_begin_relation(READ_STREAM_SEQUENTIAL, self->strategy, table, MAIN_FORKNUM,
											  smart_block_reader_ask, self, 0);
#endif
	return self;
}

static inline Buffer
smart_block_reader_next(const struct smart_block_reader *self)
{
#if PG_VERSION_NUM >= 170000
	return read_stream_next_buffer(self->stream, NULL);
#else
	BlockNumber block = self->next(self->argument);

	return block == InvalidBlockNumber ? InvalidBuffer
									   : ReadBufferExtended(self->table, MAIN_FORKNUM, block, RBM_NORMAL, self->strategy);
#endif
}

static inline void
smart_block_reader_end(struct smart_block_reader *self)
{
#if PG_VERSION_NUM >= 170000
	read_stream_end(self->stream);
#endif
	if (self->strategy != NULL)
		FreeAccessStrategy(self->strategy);
	pfree(self);
}

/* Is this a worker of autovacuum? */
#if PG_VERSION_NUM >= 170000
#define smart_is_autovacuum_worker() AmAutoVacuumWorkerProcess()
#else
#define smart_is_autovacuum_worker() IsAutoVacuumWorkerProcess()
#endif

/* How many elements an array in a condition has, as far as the planner knows. */
#if PG_VERSION_NUM >= 170000
#define smart_array_length(root, array) estimate_array_length(root, array)
#else
#define smart_array_length(root, array) ((double) estimate_array_length(array))
#endif

/* Reads so many bytes of a temporary file, where they have to be. */
static inline void
smart_read_exactly(BufFile *file, void *bytes, Size size)
{
#if PG_VERSION_NUM >= 160000
	BufFileReadExact(file, bytes, size);
#else
	if (BufFileRead(file, bytes, size) != size)
		ereport(ERROR, errcode_for_file_access(), errmsg("could not read a temporary file of an index build: %m"));
#endif
}

/*
 * With how many more processes to build an index.  Until version 17 the server asks that
 * for btrees only, and leaves the others to themselves.
 */
static inline int
smart_build_workers(Relation heap, Relation index, const IndexInfo *info)
{
#if PG_VERSION_NUM >= 170000
	return info->ii_ParallelWorkers;
#else
	/* There is a file without a page when TRUNCATE has us build an empty index, which is nothing to share. */
	if (!IsNormalProcessingMode() || RelationGetNumberOfBlocks(heap) == 0)
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
#endif
}

/*
 * A set for so many events, to be freed; and the wait event of a name, or the one of all extensions where there are no
 * others.
 */
#if PG_VERSION_NUM >= 170000
#define smart_make_wait_set(events) CreateWaitEventSet(NULL, events)
#define smart_wait_event(name)      WaitEventExtensionNew(name)
#else
#define smart_make_wait_set(events) CreateWaitEventSet(CurrentMemoryContext, events)
#define smart_wait_event(name)      PG_WAIT_EXTENSION
#endif

/*
 * Before version 18 the executor opens the indexes of INSERT ... ON CONFLICT
 * only if all unique ones are btrees.
 */
#define SMART_SPECULATE_OURSELVES (PG_VERSION_NUM < 180000)

/* Before version 18 unique indexes of partitioned tables, and the keys that foreign keys refer to, are to be btrees. */
#define SMART_UNIQUE_PARTITIONS     (PG_VERSION_NUM >= 180000)
#define SMART_REFERENCES_WANT_BTREE (PG_VERSION_NUM < 180000)

/* Is a constraint WITHOUT OVERLAPS, which is GiST's? */
#if PG_VERSION_NUM >= 180000
#define smart_constraint_is_of_ranges(constraint) ((constraint)->without_overlaps)
#else
#define smart_constraint_is_of_ranges(constraint) false
#endif

/* Does a subcommand of ALTER TABLE have the indexes of a column made anew? */
#if PG_VERSION_NUM >= 170000
#define smart_alters_values(command) ((command) == AT_AlterColumnType || (command) == AT_SetExpression)
#else
#define smart_alters_values(command) ((command) == AT_AlterColumnType)
#endif

/* Before version 18 the planner asks some questions of btrees only (planner.c). */
#define SMART_PLANNER_WANTS_BTREE (PG_VERSION_NUM < 180000)

/* Before version 16 it knows a boolean column by the families of btree and hash only. */
#define SMART_PLANNER_WANTS_BOOLEAN_FAMILY (PG_VERSION_NUM < 160000)

/* The apply worker of version 17 finds rows by indexes of btree and hash only. */
#define SMART_REPLICA_IDENTITY_FAILS (PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000)

/* What amestimateparallelscan is told. */
#if PG_VERSION_NUM >= 180000
#define SMART_ESTIMATE_PARALLEL_SCAN_ARGUMENTS Relation index, int nkeys, int norderbys
#elif PG_VERSION_NUM >= 170000
#define SMART_ESTIMATE_PARALLEL_SCAN_ARGUMENTS int nkeys, int norderbys
#else
#define SMART_ESTIMATE_PARALLEL_SCAN_ARGUMENTS void
#endif

/* Where an access method's own part of a parallel scan's shared memory lies. */
#if PG_VERSION_NUM >= 180000
#define smart_parallel_scan_offset(parallel) ((parallel)->ps_offset_am)
#else
#define smart_parallel_scan_offset(parallel) ((parallel)->ps_offset)
#endif

/* What ExecutorRun is told; names as in a hook's. */
#if PG_VERSION_NUM >= 180000
#define SMART_EXECUTOR_RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count
#define SMART_EXECUTOR_RUN_ARGUMENTS  query, direction, count
#else
#define SMART_EXECUTOR_RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define SMART_EXECUTOR_RUN_ARGUMENTS  query, direction, count, execute_once
#endif

/* From version 18 on extensions may add options to EXPLAIN, and lines to its nodes. */
#define SMART_EXTENDS_EXPLAIN (PG_VERSION_NUM >= 180000)

/* What EXPLAIN does with a query that no hook takes; before version 17 there is no function of the server for it. */
#if PG_VERSION_NUM >= 170000
#define smart_standard_explain standard_ExplainOneQuery
#else
static inline void
smart_standard_explain(Query *query, int options, IntoClause *into, ExplainState *state, const char *text,
					   ParamListInfo params, QueryEnvironment *environment)
{
	BufferUsage before = pgBufferUsage;
	BufferUsage usage = {0};
	instr_time begin;
	instr_time duration;
	PlannedStmt *plan;

	INSTR_TIME_SET_CURRENT(begin);
	plan = pg_plan_query(query, text, options, params);
	INSTR_TIME_SET_CURRENT(duration);
	INSTR_TIME_SUBTRACT(duration, begin);
	BufferUsageAccumDiff(&usage, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, state, text, params, environment, &duration, state->buffers ? &usage : NULL);
}
#endif

#endif /* SMART_AM_COMPAT_H */
