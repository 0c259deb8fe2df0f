/*
 * compat.h
 *	  What differs between server versions; the only place that asks for them.
 */
#ifndef SMART_AM_COMPAT_H
#define SMART_AM_COMPAT_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "commands/vacuum.h"
#include "pgstat.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/pg_locale.h"
#include "utils/rangetypes.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/procarray.h"
#include "storage/procnumber.h"
#else
#include "storage/backendid.h"
#include "storage/sinvaladt.h"
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

/* The number of the file that stores a relation; its tablespace does not matter to us. */
static inline Oid
smart_relation_file(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator.relNumber;
#else
	return relation->rd_node.relNode;
#endif
}

static inline Oid
smart_relation_tablespace(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator.spcOid;
#else
	return relation->rd_node.spcNode;
#endif
}

/* The file of a relation, by its numbers. */
#if PG_VERSION_NUM >= 160000
typedef RelFileLocator smart_file;
#else
typedef RelFileNode smart_file;
#endif

static inline smart_file
smart_make_file(Oid tablespace, Oid database, Oid number)
{
#if PG_VERSION_NUM >= 160000
	return (smart_file){.spcOid = tablespace, .dbOid = database, .relNumber = number};
#else
	return (smart_file){.spcNode = tablespace, .dbNode = database, .relNode = number};
#endif
}

/* What stands for the number of a backend where a table is not temporary. */
#if PG_VERSION_NUM >= 170000
#define SMART_NO_BACKEND INVALID_PROC_NUMBER
#else
#define SMART_NO_BACKEND InvalidBackendId
#endif

/* Does a backend of this number run? */
static inline bool
smart_backend_runs(int backend)
{
#if PG_VERSION_NUM >= 170000
	return ProcNumberGetProc(backend) != NULL;
#else
	return BackendIdGetProc(backend) != NULL;
#endif
}

/* Has DROP DATABASE begun to remove it, so that nobody can connect any more?  Known since 15.4. */
static inline bool
smart_database_is_invalid(Form_pg_database database)
{
	return database->datconnlimit == -2;
}

/* In which subtransaction a relation got the file that it has now, if it was in this transaction. */
static inline SubTransactionId
smart_relation_new_file_subid(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_newRelfilelocatorSubid;
#else
	return relation->rd_newRelfilenodeSubid;
#endif
}

/* The database that a relation's file belongs to. */
static inline Oid
smart_relation_database(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator.dbOid;
#else
	return relation->rd_node.dbNode;
#endif
}

/* This backend's number among those that run; never negative. */
static inline int
smart_my_backend(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyBackendId;
#endif
}

/* Does a collation order strings by their bytes? */
static inline bool
smart_orders_by_bytes(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/*
 * Are there sort keys for a collation that does not order strings by their bytes: bytes that compare as its strings
 * do?  Those of the C library cannot be trusted.
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

/*
 * Writes the sort key of a string, which has no 00 inside, and returns its length without the final 00.  If that is not
 * less than room, the key is not there.
 */
static inline Size
smart_sort_key(Oid collation, const char *string, Size length, char *out, Size room)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

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
static inline RangeType *
smart_make_range(TypeCacheEntry *type, RangeBound *lower, RangeBound *upper, bool empty)
{
#if PG_VERSION_NUM >= 160000
	return range_serialize(type, lower, upper, empty, NULL);
#else
	return range_serialize(type, lower, upper, empty);
#endif
}

/* Inside a security-restricted operation: names are looked up in safe places only. */
static inline void
smart_restrict_search_path(void)
{
#if PG_VERSION_NUM >= 170000
	RestrictSearchPath();
#endif
}

/* The cost-based delay of VACUUM. */
static inline void
smart_vacuum_delay_point(void)
{
#if PG_VERSION_NUM >= 180000
	vacuum_delay_point(false);
#else
	vacuum_delay_point();
#endif
}

/* How many elements an array in a condition has, as far as the planner knows. */
static inline double
smart_array_length(PlannerInfo *root, Node *array)
{
#if PG_VERSION_NUM >= 170000
	return estimate_array_length(root, array);
#else
	return estimate_array_length(array);
#endif
}

/* Reads so many bytes of a temporary file, where they have to be. */
static inline void
smart_read_exactly(BufFile *file, void *bytes, Size size)
{
#if PG_VERSION_NUM >= 160000
	BufFileReadExact(file, bytes, size);
#else
	if (BufFileRead(file, bytes, size) != size)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not read a temporary file of an index build: %m")));
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

/* A set for so many events; free it. */
static inline WaitEventSet *
smart_make_wait_set(int events)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, events);
#else
	return CreateWaitEventSet(CurrentMemoryContext, events);
#endif
}

/* The wait event of this name, or the one of all extensions where there are no others. */
static inline uint32
smart_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}

/*
 * Before version 18 the executor opens the indexes of INSERT ... ON CONFLICT
 * only if all unique ones are btrees.
 */
#if PG_VERSION_NUM < 180000
#define SMART_SPECULATE_OURSELVES 1
#else
#define SMART_SPECULATE_OURSELVES 0
#endif

/* Before version 18 the planner asks some questions of btrees only (as_btree.c). */
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
static inline Size
smart_parallel_scan_offset(ParallelIndexScanDesc parallel)
{
#if PG_VERSION_NUM >= 180000
	return parallel->ps_offset_am;
#else
	return parallel->ps_offset;
#endif
}

/* From version 18 on extensions may add options to EXPLAIN, and lines to its nodes. */
#define SMART_EXTENDS_EXPLAIN (PG_VERSION_NUM >= 180000)

#endif /* SMART_AM_COMPAT_H */
