/*
 * stat.c
 *	  What can be asked about an index: smart_index_stats(), smart_relation_size().
 *	  (In which state it is: index_state.c.)
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/server.h"
#include "am/open.h"
#include "am/report.h"
#include "base/assert.h"

#define STATS_COLUMNS 13

PG_FUNCTION_INFO_V1(smart_index_stats);
PG_FUNCTION_INFO_V1(smart_relation_size);

Relation
smart_index_open(Oid oid)
{
	Relation index = smart_index_try_open(oid);

	if (index == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no index with OID %u", oid)));
	if (!index->rd_index->indisvalid)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
						errdetail("Its concurrent build runs or has failed."), smart_hint_reindex(index)));
	return index;
}

static bool
has_this_method(Relation index)
{
	return (index->rd_rel->relkind == RELKIND_INDEX || index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX) &&
		   index->rd_indam->ambeginscan == smart_am_begin_scan;
}

Relation
smart_index_try_open(Oid oid)
{
	Relation index = try_relation_open(oid, AccessShareLock);

	if (index == NULL)
		return NULL;
	if (!has_this_method(index))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not an index of access method \"smart\"", RelationGetRelationName(index))));
	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is an index of a partitioned table", RelationGetRelationName(index)),
						errhint("Each partition has an index of its own: pg_partition_tree() shows their names.")));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot look at indexes of other sessions' temporary tables")));
	return index;
}

static uint64
tree_bytes(const struct smart_relation *self)
{
	return self->tree == NULL ? 0 : smart_space_tree_bytes(&smart_backend_client()->space, self->meta.tree);
}

BlockNumber
smart_relation_pages(const struct smart_relation *self)
{
	uint64 pages = 1 + (tree_bytes(self) + BLCKSZ - 1) / BLCKSZ;

	return (BlockNumber) Min(pages, MaxBlockNumber);
}

/* Bytes of memory of the tree and of the relation itself; NULL if the index was dropped a moment ago. */
PGDLLEXPORT Datum
smart_relation_size(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_try_open(PG_GETARG_OID(0));
	uint64 bytes;

	if (index == NULL)
		PG_RETURN_NULL();
	bytes = tree_bytes(smart_relation_open(index));
	bytes += (uint64) RelationGetNumberOfBlocks(index) * BLCKSZ;
	relation_close(index, AccessShareLock);
	PG_RETURN_INT64((int64) bytes);
}

static Datum
form_stats(TupleDesc descriptor, const struct smart_verify_report *report, uint64 bytes_allocated)
{
	Datum values[STATS_COLUMNS];
	bool isnull[STATS_COLUMNS] = {false};
	uint64 nodes = 0;
	int column = 0;

	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		nodes += report->nodes[kind];
	values[column++] = Int64GetDatum((int64) report->entries);
	values[column++] = Int64GetDatum((int64) report->leaves);
	values[column++] = Int64GetDatum((int64) nodes);
	values[column++] = Int64GetDatum((int64) report->bytes_used);
	values[column++] = Int64GetDatum((int64) bytes_allocated);

	/* The share of the blocks' bytes that hold something; an empty tree has no blocks. */
	isnull[column] = report->bytes_blocks == 0;
	values[column++] =
		Float8GetDatum(report->bytes_blocks == 0 ? 0 : (double) report->bytes_used / (double) report->bytes_blocks);
	values[column++] = Int32GetDatum((int32) report->height);
	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		values[column++] = Int64GetDatum((int64) report->nodes[kind]);
	smart_assert(column == STATS_COLUMNS);
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, isnull));
}

/* Walks the whole tree and counts. */
PGDLLEXPORT Datum
smart_index_stats(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_open(PG_GETARG_OID(0));
	struct smart_relation *self = smart_relation_open(index);
	struct smart_verify_report report = {0};
	char message[256];
	TupleDesc descriptor;
	smart_status status = SMART_OK;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts != STATS_COLUMNS)
		elog(ERROR, "smart_index_stats is declared with other columns than this library returns");
	if (self->tree != NULL)
		status = smart_relation_verify(self, &report, message, sizeof(message));
	if (status == SMART_CORRUPT)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED), errmsg("index \"%s\" is corrupt", RelationGetRelationName(index)),
				 errdetail_internal("%s", message)));
	smart_check_status(status, index);
	relation_close(index, AccessShareLock);
	PG_RETURN_DATUM(form_stats(BlessTupleDesc(descriptor), &report, tree_bytes(self)));
}
