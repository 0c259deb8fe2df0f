/*
 * build.c
 *	  CREATE INDEX, REINDEX, TRUNCATE: the heap is read, its entries are sorted
 *	  (collector.c, with several processes parallel_build.c) and loaded into a new tree.
 *
 * The metapage makes the tree the index, and is written last: before that no other process can see the
 * tree, after an error nothing is left of it.
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/build/build.h"
#include "am/build/collector.h"
#include "am/build/parallel_build.h"
#include "am/sort/sorter.h"
#include "am/codec/encode.h"
#include "am/codec/enum_order.h"
#include "am/compat.h"
#include "am/index/meta.h"
#include "am/index/options.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/run.h"
#include "am/journal/run_filter.h"
#include "am/journal/staging.h"
#include "am/server/environment.h"
#include "am/server/progress.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define ENTRY_BYTES     40 /* of an entry, where they differ in length */
#define MEMORY_PER_BYTE 1.5

char *
smart_am_build_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case SMART_PHASE_SCAN:
			return "scanning table";
		case SMART_PHASE_SORT:
			return "sorting entries";
		case SMART_PHASE_LOAD:
			return "loading entries into the tree";
		case SMART_PHASE_JOURNAL:
			return "reading journal";
		default:
			return NULL;
	}
}

/* Does an access method have a default class that is of this very type? */
static bool
has_class(Oid type, Oid method)
{
	Oid class = GetDefaultOpClass(type, method);

	return OidIsValid(class) && get_opclass_input_type(class) == type;
}

bool
smart_build_takes_class(Oid type, Oid class_type, Oid method)
{
	smart_assert(OidIsValid(type) && OidIsValid(class_type) && OidIsValid(method));
	return type == class_type || !has_class(type, BTREE_AM_OID) || has_class(type, method);
}

/* May this index be built?  And what should the owner of a new one know at once? */
static void
check_request(Relation heap, Relation index)
{
	if (IsCatalogRelation(heap) || IsToastRelation(heap))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("access method \"smart\" does not support system catalogs and TOAST tables"));
	if (RelationGetNumberOfBlocks(index) != 0)
		ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR),
				errmsg("index \"%s\" already contains data", RelationGetRelationName(index)));

	/*
	 * A type that may pass for another one, as citext does for text, gets that one's class where it has none.  If it
	 * has comparisons of its own (a class of btree), the index would not know which values they take for equal: neither
	 * be used for them nor be unique by them.
	 */
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid type = getBaseType(TupleDescAttr(RelationGetDescr(index), i)->atttypid);
		Oid class_type = index->rd_opcintype[i];

		if (!smart_build_takes_class(type, class_type, index->rd_rel->relam))
			ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
					errmsg("data type %s has no operator class of its own for access method \"smart\"",
						   format_type_be(type)),
					errdetail("Its values are not compared as those of type %s.", format_type_be(class_type)),
					errhint("Index an expression of type %s, or create an operator class for type %s.",
							format_type_be(class_type), format_type_be(type)));
	}
}

/* May pages answer in the place of a tree? */
static bool
may_answer(Relation index)
{
	return smart_options_resident(index) != SMART_RESIDENT_ALWAYS && smart_meta_wants_journal(index);
}

/* Are they to?  Where there is no room, a tree that is begun takes what others have, only to be given up. */
static bool
is_to_answer(Relation index, const struct smart_collector *rows)
{
	double width = rows->codec->fixed_length > 0 ? rows->codec->fixed_length : ENTRY_BYTES;

	smart_assert(rows->entries > 0);
	return may_answer(index) &&
		   (smart_options_resident(index) == SMART_RESIDENT_NEVER || smart_relation_writes_back(index) ||
			!smart_tree_has_room((uint64) (rows->entries * width * MEMORY_PER_BYTE)));
}

/* Makes the tree and the run, and, last of all, the metapage that names them. */
static void
load(struct smart_collector *rows)
{
	struct smart_run run = {.root = InvalidBlockNumber};
	struct smart_tree *tree;
	uint64 id = smart_am_tree_create(rows->index, rows->codec, &tree);

	smart_assert(id != 0 && rows->entries > 0);
	PG_TRY();
	{
		if (smart_meta_wants_journal(rows->index))
			rows->run = smart_run_begin_build(rows->index);
		rows->may_leave = may_answer(rows->index);
		smart_collector_load(rows, tree);
		smart_assert(!rows->left || rows->run != NULL);
		if (rows->run != NULL)
			smart_run_finish(rows->run, &run);
		if (rows->left)
			smart_am_tree_drop(id);
		smart_meta_create(rows->index, MAIN_FORKNUM, rows->codec, rows->left ? SMART_TREE_NOWHERE : id, &run);
	}
	PG_CATCH();
	{
		smart_am_tree_drop(id);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* The same where pages are to answer: there is no tree. */
static void
write_run(struct smart_collector *rows)
{
	struct smart_run run;

	smart_assert(rows->run == NULL && rows->filter == NULL && rows->entries > 0);
	rows->run = smart_run_begin_build(rows->index);
	rows->filter = smart_run_filter_begin(rows->index, rows->codec, NULL, rows->entries, rows->entries);
	smart_collector_load(rows, NULL);
	smart_run_finish(rows->run, &run);
	smart_assert(run.pages > 0 && run.id != 0);
	smart_meta_create(rows->index, MAIN_FORKNUM, rows->codec, SMART_TREE_NOWHERE, &run);
	smart_run_filter_end(rows->filter, rows->index, &run);
}

/* Writes the metapage of an index without entries. */
static void
make_empty(Relation index, const struct smart_codec *codec)
{
	const struct smart_run none = {.journal = smart_meta_wants_journal(index) ? smart_random_token() : 0,
								   .root = InvalidBlockNumber};
	bool never = smart_options_resident(index) == SMART_RESIDENT_NEVER || smart_relation_writes_back(index);

	smart_meta_create(index, MAIN_FORKNUM, codec, never && may_answer(index) ? SMART_TREE_NOWHERE : 0, &none);
}

IndexBuildResult *
smart_am_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart build", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_collector *rows = palloc(sizeof(*rows));
	struct smart_parallel_build *parallel;
	const int parameter[] = {PROGRESS_CREATEIDX_TUPLES_TOTAL, PROGRESS_SCAN_BLOCKS_TOTAL, PROGRESS_SCAN_BLOCKS_DONE,
							 PROGRESS_CREATEIDX_SUBPHASE};
	int64 value[] = {0, 0, 0, SMART_PHASE_SORT};

	smart_server_require();
	check_request(heap, index);
	smart_enum_order_keep(index);

	/* A table that is truncated where it was created keeps its files: what they held before is gone already. */
	smart_am_tree_drop_older(index, 0);
	smart_staging_discard(index);
	smart_am_tree_make_room(false);

	/* Read the table, with other processes if there are some, and sort the entries. */
	parallel = smart_parallel_build_begin(heap, index, info);
	smart_collector_begin(rows, heap, index, info, parallel == NULL ? 1 : smart_parallel_build_processes(parallel));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_SCAN);
	if (parallel != NULL)
		smart_parallel_build_read(parallel, rows, info);
	else
		smart_collector_read(rows, info, NULL, true);
	value[0] = (int64) rows->entries;
	pgstat_progress_update_multi_param(lengthof(parameter), parameter, value);
	smart_sorter_perform(rows->sorter);
	result->heap_tuples = rows->rows;
	result->index_tuples = rows->entries;
	if (rows->entries == 0)
		make_empty(index, rows->codec);
	else if (is_to_answer(index, rows))
		write_run(rows);
	else
		load(rows);
	smart_assert(RelationGetNumberOfBlocks(index) > SMART_META_BLOCK);
	smart_sorter_end(rows->sorter);
	if (parallel != NULL)
		smart_parallel_build_end(parallel);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return result;
}

/* Writes the init fork of an unlogged index: the empty index that it is after a crash. */
void
smart_am_build_empty(Relation index)
{
	struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	const struct smart_run none = {.root = InvalidBlockNumber};

	smart_codec_check_refusal(codec);
	smart_meta_create(index, INIT_FORKNUM, codec, 0, &none);
	pfree(codec);
}
