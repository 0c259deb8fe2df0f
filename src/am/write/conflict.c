/*
 * conflict.c
 *	  INSERT ... ON CONFLICT on tables with a unique smart index, on servers whose executor
 *	  insists on btree there.
 *
 * The executor opens a table's indexes when the first row arrives, unless they are open already.  So this
 * hook opens them when the plan has been started, and fills in what a speculative insertion asks for: the
 * equality operator of each key column, which is strategy 3 in smart's operator families as in btree's.
 * Only tables with a unique smart index are touched.
 *
 * Rows that are routed through a partitioned table: see routing.c.
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

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/write/insert.h"
#include "am/write/routing.h"
#include "base/assert.h"

static ExecutorStart_hook_type previous_hook = NULL;

/* What was found out about partitioned tables; forgotten at any change of a table. */
struct parent
{
	Oid oid;
	bool is_concerned; /* rows may be routed to a partition with a unique smart index */
};

#define PARENTS_MAX 32
static struct parent parents[PARENTS_MAX];
static int nparents = 0;
static uint64 changes = 0; /* of any table, as far as this backend has heard of them */

static void
forget_parents(Datum argument, Oid relation)
{
	nparents = 0;
	changes++;
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

		found |= index->rd_index->indisunique && smart_is_our_index(index);
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
	return found;
}

/*
 * Opens the indexes of a result table as the executor would, which closes them; and fills in what a speculative insertion
 * asks of unique ones.
 */
static void
open_indexes(ResultRelInfo *result)
{
	List *indexes = RelationGetIndexList(result->ri_RelationDesc);
	int count = list_length(indexes);
	ListCell *cell;

	smart_assert(count > 0 && result->ri_IndexRelationDescs == NULL);
	result->ri_IndexRelationDescs = palloc(sizeof(Relation) * count);
	result->ri_IndexRelationInfo = palloc(sizeof(IndexInfo *) * count);
	result->ri_NumIndices = 0;
	foreach (cell, indexes)
	{
		Relation index = index_open(lfirst_oid(cell), RowExclusiveLock);
		IndexInfo *info = BuildIndexInfo(index);
		int nkeys = info->ii_Unique ? IndexRelationGetNumberOfKeyAttributes(index) : 0;

		if (info->ii_Unique)
		{
			info->ii_UniqueOps = palloc(sizeof(Oid) * nkeys);
			info->ii_UniqueProcs = palloc(sizeof(Oid) * nkeys);
			info->ii_UniqueStrats = palloc(sizeof(uint16) * nkeys);
		}
		for (int i = 0; i < nkeys; i++)
		{
			Oid type = index->rd_opcintype[i];
			Oid equal = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);

			if (!OidIsValid(equal))
				ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR),
						errmsg("operator family %u of index \"%s\" has no equality operator for type %u",
							   index->rd_opfamily[i], RelationGetRelationName(index), type));
			info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
			info->ii_UniqueOps[i] = equal;
			info->ii_UniqueProcs[i] = get_opcode(equal);
		}
		result->ri_IndexRelationDescs[result->ri_NumIndices] = index;
		result->ri_IndexRelationInfo[result->ri_NumIndices] = info;
		result->ri_NumIndices++;
	}
	list_free(indexes);
}

/* May rows be routed to a partition with a unique smart index?  FEATURE_NOT_SUPPORTED if to a foreign table, too. */
static bool
look_at_partitions(Relation parent)
{
	List *partitions = find_all_inheritors(RelationGetRelid(parent), AccessShareLock, NULL);
	Oid smart = InvalidOid;
	Oid foreign = InvalidOid;
	ListCell *cell;

	foreach (cell, partitions)
	{
		Relation partition = table_open(lfirst_oid(cell), NoLock);

		if (has_unique_smart_index(partition))
			smart = RelationGetRelid(partition);
		if (partition->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
			foreign = RelationGetRelid(partition);
		table_close(partition, NoLock);
	}
	list_free(partitions);
	if (OidIsValid(smart) && OidIsValid(foreign))
		ereport(
			ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("INSERT ... ON CONFLICT into partitioned table \"%s\" is not supported",
				   RelationGetRelationName(parent)),
			errdetail("Partition \"%s\" has a unique index of access method \"smart\", and \"%s\" is a foreign table.",
					  get_rel_name(smart), get_rel_name(foreign)),
			errhint("Insert into the partition itself, or use PostgreSQL 18 or newer."));
	return OidIsValid(smart);
}

/* The same, as far as it is known already. */
static bool
is_concerned(Relation parent)
{
	uint64 changes_before = changes;
	bool concerned;

	smart_assert(nparents <= PARENTS_MAX);
	for (int i = 0; i < nparents; i++)
	{
		if (parents[i].oid == RelationGetRelid(parent))
			return parents[i].is_concerned;
	}
	concerned = look_at_partitions(parent);
	if (nparents < PARENTS_MAX && changes == changes_before)
		parents[nparents++] = (struct parent){RelationGetRelid(parent), concerned};
	return concerned;
}

static void
prepare(ModifyTableState *modify)
{
	ResultRelInfo *result = modify->resultRelInfo;
	Relation table = result->ri_RelationDesc;

	if (((ModifyTable *) modify->ps.plan)->onConflictAction == ONCONFLICT_NONE)
		return;
	if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		if (is_concerned(table))
			smart_routing_prepare(modify);
	}
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
	smart_routing_init();
	CacheRegisterRelcacheCallback(forget_parents, (Datum) 0);
}
