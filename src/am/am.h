/*
 * am.h
 *	  What the parts of the access method share: the metapage, the open index
 *	  of a backend, options, and the callbacks of IndexAmRoutine.
 *
 * An index has three representations of itself.  The metapage, block 0 of the
 * main fork, is WAL-logged and the only authority on which tree the index
 * uses.  The relcache entry keeps a checked copy of it with the codec
 * (rd_amcache).  A struct smart_relation is what one user (a scan, the inserts
 * of one statement, a build) holds on to: its own copy of both, and the
 * backend's handle on the tree, which cannot go away under it.
 */
#ifndef SMART_AM_AM_H
#define SMART_AM_AM_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/encode.h"
#include "tree/tree.h"

/* ---- metapage (meta.c) ---- */

#define SMART_META_BLOCK   0
#define SMART_META_MAGIC   0x534d5254 /* "SMRT" */
#define SMART_META_VERSION 1

enum smart_meta_state
{
	SMART_META_EMPTY = 1, /* no tree yet: the first insert makes it */
	SMART_META_READY = 2, /* tree is the content of the index */
	SMART_META_STALE = 3  /* tree is missing entries, or has too many: it is only waiting to be replaced */
};

/* The content of the metapage; integers in the server's byte order. */
struct smart_meta
{
	uint32 magic;
	uint32 version;
	uint64 tree;         /* 0: none */
	uint64 region;       /* the region's incarnation in which the tree lives */
	uint64 encoding;     /* fingerprint of the codec: how entries are made */
	uint32 state;        /* enum smart_meta_state */
	uint32 leaf_size;    /* bytes, as the tree was made with */
	uint32 fixed_length; /* bytes of every entry, or 0 */
	uint32 database;     /* that the tree was made in: a copy of the database names it too, but may not use it */
	uint32 unused;
	uint32 crc; /* crc32c of the bytes before it */
};

StaticAssertDecl(offsetof(struct smart_meta, crc) == 52 && sizeof(struct smart_meta) == 56, "metapage format");

/*
 * Writes the metapage of an index that has none, in a fork without blocks, and
 * WAL-logs it where the fork is logged (the init fork always is).  tree 0: an
 * empty index whose tree the first insert makes.  Called last in a build: from
 * then on the tree belongs to the index.
 */
extern void smart_meta_create(Relation index, ForkNumber fork, const struct smart_codec *codec, uint64 tree);

/* The hint to rebuild an index, in an ereport(). */
extern int smart_hint_reindex(Relation index);

/* ---- the open index (relation.c) ---- */

struct smart_relation
{
	Oid index;
	struct smart_meta meta;
	struct smart_codec *codec; /* a copy of its own */
	struct smart_tree *tree;   /* NULL: the index has no tree yet, hence no entries; or it is lost */
	bool lost;                 /* opened for inserts only: tree is the one that is being built, NULL if none is */
	uint32 changes;            /* smart_changes() when all this was found out */

	/* Private to relation.c. */
	struct smart_handle *handle;
	struct smart_scan *scan;
	MemoryContextCallback release;
};

/*
 * Opens an index for use.  The result lives in CurrentMemoryContext and lets go
 * of the tree's handle when that context is reset or deleted, also after an
 * error; there is nothing to close.  Errors:
 * OBJECT_NOT_IN_PREREQUISITE_STATE (library not preloaded; the index is lost),
 * INDEX_CORRUPTED (metapage).
 */
extern struct smart_relation *smart_relation_open(Relation index);

/*
 * The same for inserts.  A lost index is opened, too, as long as its entries
 * need not be looked at: what it is given goes into the tree that is being built, or
 * nowhere, which its metapage says then.
 */
extern struct smart_relation *smart_relation_open_to_insert(Relation index);

/*
 * Is the tree still the content of the index?  An error if not.  For who reads
 * it without a snapshot that is older than self, before each look.
 */
extern void smart_relation_check_whole(struct smart_relation *self, Relation index);

/*
 * Looks at the metapage again if the index had no tree when it was opened.
 * Returns whether it has one now.
 */
extern bool smart_relation_refresh(struct smart_relation *self, Relation index);

/*
 * Makes the tree of an index that has none, unless another backend did it in
 * the meantime, under the lock of the metapage.  self->tree is set afterwards.
 */
extern void smart_relation_make_tree(struct smart_relation *self, Relation index);

/*
 * The scan that belongs to an open index, for one range at a time: made at the
 * first call, reused from then on, closed with self.  self->tree must be set.
 */
extern struct smart_scan *smart_relation_scan(struct smart_relation *self);

/*
 * As smart_tree_insert(), smart_scan_next(), smart_tree_lookup() and smart_tree_verify() with self's tree.
 * While a memory node is away they wait, if smart.on_unavailable says so, and go on when it is back.
 */
extern smart_status smart_relation_insert(struct smart_relation *self, const uint8 *entry, int key_length, int length);
extern smart_status smart_relation_next(struct smart_scan *scan, struct smart_batch *batch);
extern smart_status smart_relation_lookup(struct smart_relation *self, const uint8 *key, int key_length, bool *found);
extern smart_status smart_relation_verify(struct smart_relation *self, struct smart_verify_report *report,
										  char *message, Size message_size);

/*
 * What the planner wants to know of an index.  False: the index cannot be used
 * now (an error only if its metapage cannot be read).
 */
struct smart_glance
{
	bool ordered;        /* scans return rows in the order of the columns */
	uint32 fixed_length; /* bytes of every entry, or 0 */
	uint64 bytes;        /* that the tree's memory takes */
};

extern bool smart_relation_glance(Relation index, struct smart_glance *glance);

/* The codec of an index, as the relcache keeps it: good until the next look at a catalog. */
extern const struct smart_codec *smart_relation_codec(Relation index);

/* The tree that the metapage names, if it is of this region (it may be lost); else 0. */
extern uint64 smart_relation_tree(Relation index);

/*
 * Why the tree that the metapage names is not the content of the index: a
 * sentence, NULL if it is.  Raises an error if the metapage cannot be read.
 */
extern const char *smart_relation_loss(Relation index);

/* Raises the error that an index is lost, with what can be done about it, if it is.  NULL: nothing. */
extern void smart_relation_check_lost(Relation index);

/*
 * The tree that the metapage names is not to be used any more, whoever comes;
 * returns when the metapage says so, in WAL too.  Nothing if the index has none.
 */
extern void smart_relation_mark_stale(Relation index);

/* Drops what the relcache keeps of an index whose metapage has changed. */
extern void smart_relation_forget(Relation index);

/* ---- trees (trees.c) ---- */

/*
 * Makes an empty tree for an index in the directory of the region, owned by
 * its database, relfilenode and transaction, and opens it; *tree is good for the
 * life of CurrentMemoryContext.  Until a metapage names it, it is the caller's
 * duty to free it after an error.
 */
extern uint64 smart_am_tree_create(Relation index, const struct smart_codec *codec, struct smart_tree **tree);

/* Frees a tree that no metapage names and nobody uses; closes this backend's handle. */
extern void smart_am_tree_drop(uint64 tree);

/*
 * Frees the trees but keep (0: none is kept) that this transaction, or this
 * backend for a temporary table, made for the file that the index has now.
 */
extern void smart_am_tree_drop_older(Relation index, uint64 keep);

/* ---- size (stat.c) ---- */

/* Pages of BLCKSZ that the tree's memory would fill, and the metapage. */
extern BlockNumber smart_relation_pages(const struct smart_relation *self);

/* ---- options (options.c) ---- */

#define SMART_FILLFACTOR_MIN     10
#define SMART_FILLFACTOR_DEFAULT 100

/* rd_options of an index. */
struct smart_options
{
	int32 vl_len_; /* varlena header (do not touch directly!) */
	int leaf_size;
	int fillfactor;
	bool deduplicate_items; /* nobody asks: entries share what they have in common anyway */
};

extern void smart_options_init(void);
extern int smart_options_leaf_size(Relation index);  /* bytes, a multiple of 64 */
extern int smart_options_fillfactor(Relation index); /* percent */

/* ---- hooks, called from _PG_init ---- */

extern void smart_planner_init(void);   /* planner.c */
extern void smart_conflict_init(void);  /* conflict.c */
extern void smart_replica_init(void);   /* replica.c */
extern void smart_row_paths_init(void); /* row_paths.c */

/* ---- callbacks of IndexAmRoutine ---- */

/* options.c */
extern bytea *smart_am_options(Datum reloptions, bool validate);

/* build.c */
extern IndexBuildResult *smart_am_build(Relation heap, Relation index, struct IndexInfo *info);
extern void smart_am_build_empty(Relation index);
extern char *smart_am_build_phase_name(int64 phase);

/* insert.c */
extern bool smart_am_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
							IndexUniqueCheck check, bool unchanged, struct IndexInfo *info);

/* vacuum.c */
extern IndexBulkDeleteResult *smart_am_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												   IndexBulkDeleteCallback callback, void *callback_state);
extern IndexBulkDeleteResult *smart_am_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* scan.c */
extern IndexScanDesc smart_am_begin_scan(Relation index, int nkeys, int norderbys);
extern void smart_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool smart_am_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern int64 smart_am_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void smart_am_end_scan(IndexScanDesc scan);
extern void smart_am_mark(IndexScanDesc scan);
extern void smart_am_restore(IndexScanDesc scan);

/* shared_scan.c */
extern Size smart_am_estimate_parallel_scan(SMART_ESTIMATE_PARALLEL_SCAN_ARGUMENTS);
extern void smart_am_init_parallel_scan(void *target);
extern void smart_am_parallel_rescan(IndexScanDesc scan);

/* cost.c */
extern void smart_am_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
						  Selectivity *selectivity, double *correlation, double *pages);

/* What of the entries between the first and the last one of a path a scan reads that leaps over others. */
struct smart_skipping
{
	double fraction; /* 1: all */
	double groups;   /* of equal columns, in each of which it looks for entries; 0: it does not leap */
	double found;    /* entries in all of them */
};

/*
 * cost_estimate.c: as amcostestimate, for a path with those conditions only that the index
 * narrows down to.
 */
extern void
smart_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, const struct smart_skipping *skipping,
					Cost *startup_cost, Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages);

/* cost_skip.c */
extern void smart_cost_skip(PlannerInfo *root, const IndexPath *path, struct smart_skipping *skipping);

/*
 * as_btree.c: a description of an index as the btree that some questions of the planner want (palloc'ed), or NULL if there
 * is none of these that the index could answer.  joins: there may be some in the query; ordered: the index
 * keeps the order of its columns.
 */
extern IndexOptInfo *smart_as_btree(const IndexOptInfo *info, bool joins, bool ordered);

/* as_btree.c: tells the planner of version 15 which columns are boolean, so that "WHERE flag" can be a condition. */
extern void smart_name_booleans(IndexOptInfo *info);

/* planner.c */
extern bool smart_am_can_return(Relation index, int column);
extern bool
smart_am_property(Oid index, int column, IndexAMProperty property, const char *name, bool *result, bool *isnull);

#endif /* SMART_AM_AM_H */
