/*
 * build.c
 *	  CREATE INDEX, REINDEX, TRUNCATE: the heap is read, its entries are sorted
 *	  and loaded into a new tree.
 *
 * The tree becomes the index by its metapage, which is written last: before
 * that nobody can see the tree, after an error nothing is left of it.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/duplicates.h"
#include "am/server.h"
#include "am/report.h"
#include "am/sorter.h"

/* Subphases in pg_stat_progress_create_index. */
#define PHASE_SCAN 2
#define PHASE_SORT 3
#define PHASE_LOAD 4

#define REPORT_EVERY  4096 /* entries between two looks at the world outside */
#define ROWS_PER_PAGE 300  /* at least as many as fit on a page of a heap */

struct build
{
	Relation heap;
	Relation index;
	struct smart_codec *codec;
	struct smart_sorter *sorter;
	struct smart_duplicates *duplicates; /* of a unique index, else NULL */
	double entries;
	uint8 entry[SMART_ENTRY_MAX];
};

char *
smart_am_build_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "scanning table";
		case PHASE_SORT:
			return "sorting entries";
		case PHASE_LOAD:
			return "loading entries into the tree";
		default:
			return NULL;
	}
}

static void
refuse_system_tables(Relation heap, Relation index)
{
	if (IsCatalogRelation(heap) || IsToastRelation(heap))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("access method \"smart\" does not support system catalogs and TOAST tables")));
	if (RelationGetNumberOfBlocks(index) != 0)
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
						errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
}

/* What the owner of a new unique index should know at once. */
static void
warn_of_limits(Relation heap, Relation index)
{
	if (SMART_SPECULATE_OURSELVES && heap->rd_rel->relispartition && index->rd_index->indisunique)
		ereport(WARNING, (errmsg("INSERT ... ON CONFLICT into the partitioned table above \"%s\" will fail",
								 RelationGetRelationName(heap)),
						  errdetail("Before PostgreSQL 18 it works with unique btree indexes only."),
						  errhint("Insert into the partition itself.")));
}

/* Called for every row that has an entry. */
static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	struct build *build = state;
	int key_length;
	int length;

	length = smart_codec_encode(build->codec, values, isnull, tid, build->entry, &key_length);
	smart_sorter_add(build->sorter, build->entry, length);
	if (!alive && build->duplicates != NULL)
		smart_duplicates_add_dead(build->duplicates, tid);
	build->entries++;
}

/* Reads the heap and sorts its entries; returns the number of rows. */
static double
collect(struct build *build, IndexInfo *info)
{
	Size memory = (Size) maintenance_work_mem * 1024;
	Size width = build->codec->fixed_length > 0 ? (Size) build->codec->fixed_length + 32 : (Size) BLCKSZ / 64;
	Size expected = (Size) RelationGetNumberOfBlocks(build->heap) * ROWS_PER_PAGE * width;
	double rows;

	build->sorter = smart_sorter_begin(build->codec->fixed_length, memory, expected, smart_backend_client()->env);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	rows = table_index_build_scan(build->heap, build->index, info, true, true, add_row, build, NULL);
	{
		const int parameter[] = {PROGRESS_CREATEIDX_TUPLES_TOTAL, PROGRESS_SCAN_BLOCKS_TOTAL, PROGRESS_SCAN_BLOCKS_DONE,
								 PROGRESS_CREATEIDX_SUBPHASE};
		const int64 value[] = {(int64) build->entries, 0, 0, PHASE_SORT};

		pgstat_progress_update_multi_param(lengthof(parameter), parameter, value);
	}
	smart_sorter_perform(build->sorter);
	return rows;
}

/* Puts the sorted entries into a tree that nobody else sees. */
static void
load_entries(struct build *build, struct smart_load *load)
{
	const uint8 *entry;
	int length;
	int64 done = 0;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
	while ((entry = smart_sorter_next(build->sorter, &length)) != NULL)
	{
		if (build->duplicates != NULL)
			smart_duplicates_check(build->duplicates, entry, length);
		smart_check_status(smart_load_add(load, entry, (size_t) length), build->index);
		if (++done % REPORT_EVERY == 0)
		{
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
			CHECK_FOR_INTERRUPTS();
		}
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
}

/* Makes the tree and, last of all, the metapage that names it. */
static void
load(struct build *build)
{
	struct smart_load *volatile loading = NULL;
	struct smart_tree *tree;
	uint64 id;

	id = smart_am_tree_create(build->index, build->codec, &tree);
	PG_TRY();
	{
		struct smart_load *opened;
		smart_status status;

		smart_check_status(smart_load_begin(tree, (unsigned int) smart_options_fillfactor(build->index), &opened),
						   build->index);
		loading = opened;
		load_entries(build, opened);
		loading = NULL; /* finish frees it whatever comes out */
		status = smart_load_finish(opened);
		smart_check_status(status, build->index);
		smart_meta_create(build->index, MAIN_FORKNUM, build->codec, id);
	}
	PG_CATCH();
	{
		if (loading != NULL)
			smart_load_abandon(loading);
		smart_am_tree_drop(id);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

IndexBuildResult *
smart_am_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct build *build;

	smart_server_require();
	refuse_system_tables(heap, index);
	warn_of_limits(heap, index);
	build = palloc0(sizeof(*build));
	build->heap = heap;
	build->index = index;
	build->codec = smart_codec_make(index, context);
	if (info->ii_Unique)
		build->duplicates = smart_duplicates_begin(heap, index, build->codec, info->ii_NullsNotDistinct);

	/* A table that is truncated where it was created keeps its files: what they held before is gone already. */
	smart_am_tree_drop_older(index, 0);

	result->heap_tuples = collect(build, info);
	result->index_tuples = build->entries;
	if (build->entries > 0)
		load(build);
	else
		smart_meta_create(index, MAIN_FORKNUM, build->codec, 0);
	smart_sorter_end(build->sorter);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return result;
}

/* The init fork of an unlogged index: what it is after a crash. */
void
smart_am_build_empty(Relation index)
{
	struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);

	smart_meta_create(index, INIT_FORKNUM, codec, 0);
	pfree(codec);
}
