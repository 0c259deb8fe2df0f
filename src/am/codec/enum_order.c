/*
 * enum_order.c
 *	  Keeps the order of enums as indexes have it.
 *
 * Entries hold the sort orders of an enum's values (enum.c).  ALTER TYPE ... ADD VALUE leaves those alone: it
 * gives the new value a number halfway between its neighbours.  Only when there is none, after some twenty values were
 * added at one place, it numbers all values anew; entries made before and afterwards would not fit together then.  So
 * this is refused as long as there is an index in the order of the type.  The one in the way has to be dropped and made
 * again.
 *
 * An index that is being built is not seen yet.  Its builder holds a lock on the type, as ADD VALUE does.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/syscache.h"

#include "am/codec/encode.h"
#include "am/codec/enum_order.h"
#include "am/codec/normalizer.h"
#include "base/assert.h"

static ProcessUtility_hook_type next_hook = NULL;

/* The values of an enum before a statement */
struct values
{
	int count;
	struct
	{
		Oid value;
		float4 order;
	} of[FLEXIBLE_ARRAY_MEMBER];
};

static struct values *
values_of(Oid type)
{
	CatCList *rows = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(type));
	struct values *values = palloc(offsetof(struct values, of) + rows->n_members * sizeof(values->of[0]));

	values->count = rows->n_members;
	for (int i = 0; i < rows->n_members; i++)
	{
		Form_pg_enum row = (Form_pg_enum) GETSTRUCT(&rows->members[i]->tuple);

		values->of[i].value = row->oid;
		values->of[i].order = row->enumsortorder;
	}
	ReleaseCatCacheList(rows);
	return values;
}

/* Does each value have the sort order that it had? */
static bool
keep_order(const struct values *values)
{
	bool kept = true;

	for (int i = 0; i < values->count && kept; i++)
	{
		HeapTuple row = SearchSysCache1(ENUMOID, ObjectIdGetDatum(values->of[i].value));

		kept = HeapTupleIsValid(row) && ((Form_pg_enum) GETSTRUCT(row))->enumsortorder == values->of[i].order;
		if (HeapTupleIsValid(row))
			ReleaseSysCache(row);
	}
	return kept;
}

/* The enums on whose order an index of ours depends: a list of their types */
static List *
enums_of(Relation index)
{
	struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	List *types = NIL;

	for (int i = 0; i < codec->nkeys; i++)
		types = list_concat(types, smart_normalizer_enums(&codec->columns[i].normalizer));
	pfree(codec);
	return types;
}

static void
refuse_if_used(Oid type, const char *value)
{
	Relation classes = table_open(RelationRelationId, AccessShareLock);
	TableScanDesc scan = table_beginscan_catalog(classes, 0, NULL);
	HeapTuple row;

	while ((row = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(row);
		Relation index;

		if (class->relkind != RELKIND_INDEX || class->relam < FirstNormalObjectId)
			continue;
		index = try_relation_open(class->oid, AccessShareLock);
		if (index == NULL)
			continue;
		if (index->rd_rel->relkind == RELKIND_INDEX && index->rd_indam->amvalidate == smart_validate &&
			list_member_oid(enums_of(index), type))
			ereport(ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
					errmsg("value \"%s\" cannot be added to type %s at this place", value, format_type_be(type)),
					errdetail("All values of the type would be numbered anew, and index \"%s\" has the old numbers.",
							  RelationGetRelationName(index)),
					errhint("Drop the index, add the value, and create the index again."));
		relation_close(index, AccessShareLock);
	}
	table_endscan(scan);
	table_close(classes, AccessShareLock);
}

static void
at_utility(PlannedStmt *planned, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		   QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	ProcessUtility_hook_type run = next_hook != NULL ? next_hook : standard_ProcessUtility;
	AlterEnumStmt *statement = NULL;
	struct values *values;
	Oid type;

	/* A value that is renamed stays where it is */
	if (IsA(planned->utilityStmt, AlterEnumStmt))
		statement = (AlterEnumStmt *) planned->utilityStmt;
	if (statement == NULL || statement->oldVal != NULL)
	{
		run(planned, query, read_only, context, params, environment, destination, completion);
		return;
	}

	type = typenameTypeId(NULL, makeTypeNameFromNameList(statement->typeName));
	values = values_of(type);
	run(planned, query, read_only, context, params, environment, destination, completion);
	CommandCounterIncrement();
	if (!keep_order(values))
		refuse_if_used(type, statement->newVal);
	pfree(values);
}

void
smart_enum_order_init(void)
{
	smart_assert(ProcessUtility_hook != at_utility);
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = at_utility;
}

void
smart_enum_order_keep(Relation index)
{
	ListCell *type;

	foreach (type, enums_of(index))
		LockDatabaseObject(TypeRelationId, lfirst_oid(type), 0, ShareLock);
}
