/*
 * conflict.c
 *	  INSERT ... ON CONFLICT on tables with a unique smart index, on servers
 *	  whose executor insists on btree there.
 *
 * The executor opens a table's indexes when the first row arrives, and leaves
 * that out if somebody has done it.  So this hook opens them when the plan has
 * been started, and fills in what a speculative insertion wants to know: the
 * equality operator of each key column, which for our operator families as for
 * btree's is strategy 3.  Only tables with a unique smart index are touched.
 *
 * Rows that are routed through a partitioned table get their indexes opened by
 * the executor itself, row by row; there nothing can be done but to say no
 * before the first row.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_inherits.h"
#include "executor/executor.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/am.h"

static ExecutorStart_hook_type previous_hook = NULL;

/* Partitioned tables whose partitions were found to have no unique smart index; forgotten at any change of a table. */
#define FINE_MAX 32
static Oid fine[FINE_MAX];
static int nfine = 0;
static uint64 changes = 0; /* of any table, as far as this backend has heard of them */

static void
forget_fine(Datum argument, Oid relation)
{
	nfine = 0;
	changes++;
}

static bool
is_smart(Relation index)
{
	return index->rd_indam->aminsert == smart_am_insert;
}

static bool
has_unique_smart_index(Relation table)
{
	List *indexes = RelationGetIndexList(table);
	ListCell *cell;
	bool found = false;

	foreach (cell, indexes)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		found |= index->rd_index->indisunique && is_smart(index);
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
	return found;
}

/* What a speculative insertion wants to know about a unique index. */
static void
describe_unique_index(Relation index, IndexInfo *info)
{
	int nkeys = IndexRelationGetNumberOfKeyAttributes(index);

	info->ii_UniqueOps = palloc(sizeof(Oid) * nkeys);
	info->ii_UniqueProcs = palloc(sizeof(Oid) * nkeys);
	info->ii_UniqueStrats = palloc(sizeof(uint16) * nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		Oid type = index->rd_opcintype[i];
		Oid equal = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);

		if (!OidIsValid(equal))
			ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
							errmsg("operator family %u of index \"%s\" has no equality operator for type %u",
								   index->rd_opfamily[i], RelationGetRelationName(index), type)));
		info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
		info->ii_UniqueOps[i] = equal;
		info->ii_UniqueProcs[i] = get_opcode(equal);
	}
}

/* Opens the indexes of a result table as the executor would; it also closes them. */
static void
open_indexes(ResultRelInfo *result)
{
	List *indexes = RelationGetIndexList(result->ri_RelationDesc);
	int count = list_length(indexes);
	ListCell *cell;

	Assert(count > 0);
	result->ri_IndexRelationDescs = palloc(sizeof(Relation) * count);
	result->ri_IndexRelationInfo = palloc(sizeof(IndexInfo *) * count);
	result->ri_NumIndices = 0;
	foreach (cell, indexes)
	{
		Relation index = index_open(lfirst_oid(cell), RowExclusiveLock);
		IndexInfo *info = BuildIndexInfo(index);

		if (info->ii_Unique)
			describe_unique_index(index, info);
		result->ri_IndexRelationDescs[result->ri_NumIndices] = index;
		result->ri_IndexRelationInfo[result->ri_NumIndices] = info;
		result->ri_NumIndices++;
	}
	list_free(indexes);
}

/* Raises an error if rows may be routed to a partition with a unique smart index. */
static void
check_partitions(Relation parent)
{
	List *partitions;
	ListCell *cell;
	uint64 changes_before;

	for (int i = 0; i < nfine; i++)
	{
		if (fine[i] == RelationGetRelid(parent))
			return;
	}
	changes_before = changes;
	partitions = find_all_inheritors(RelationGetRelid(parent), AccessShareLock, NULL);
	foreach (cell, partitions)
	{
		Relation partition = table_open(lfirst_oid(cell), NoLock);

		if (has_unique_smart_index(partition))
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("INSERT ... ON CONFLICT into partitioned table \"%s\" is not supported",
								   RelationGetRelationName(parent)),
							errdetail("Partition \"%s\" has a unique index of access method \"smart\".",
									  RelationGetRelationName(partition)),
							errhint("Insert into the partition itself, or use PostgreSQL 18 or newer.")));
		table_close(partition, NoLock);
	}
	list_free(partitions);
	if (nfine < FINE_MAX && changes == changes_before)
		fine[nfine++] = RelationGetRelid(parent);
}

static void
prepare(ModifyTableState *modify)
{
	ResultRelInfo *result = modify->resultRelInfo;
	Relation table = result->ri_RelationDesc;

	if (((ModifyTable *) modify->ps.plan)->onConflictAction == ONCONFLICT_NONE)
		return;
	if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		check_partitions(table);
	else if (table->rd_rel->relhasindex && result->ri_IndexRelationDescs == NULL && has_unique_smart_index(table))
		open_indexes(result);
}

static void
executor_start(QueryDesc *query, int flags)
{
	MemoryContext old;
	ListCell *cell;

	if (previous_hook)
		previous_hook(query, flags);
	else
		standard_ExecutorStart(query, flags);

	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	/* An INSERT is the top of a plan, or below WITH. */
	old = MemoryContextSwitchTo(query->estate->es_query_cxt);
	if (query->planstate != NULL && IsA(query->planstate, ModifyTableState))
		prepare((ModifyTableState *) query->planstate);
	foreach (cell, query->estate->es_auxmodifytables)
		prepare(lfirst(cell));
	MemoryContextSwitchTo(old);
}

void
smart_conflict_init(void)
{
	if (!SMART_SPECULATE_OURSELVES)
		return;
	previous_hook = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	CacheRegisterRelcacheCallback(forget_fine, (Datum) 0);
}
