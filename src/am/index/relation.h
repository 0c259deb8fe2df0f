/*
 * relation.h
 *	  The open index of a backend.
 *
 * An index has three representations of itself.  The metapage, block 0 of the main fork, is WAL-logged and the only
 * authority on which tree the index uses.  The relcache entry keeps a checked copy of it with the codec
 * (rd_amcache).  A struct smart_relation belongs to one user (a scan, the inserts of one statement, a build): its own
 * copy of both, and a reference to the backend's handle on the tree, which cannot go away under it.
 */
#ifndef SMART_AM_RELATION_H
#define SMART_AM_RELATION_H

#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "am/index/report_loss.h"
#include "am/index/state.h"
#include "am/recovery/undo.h"
#include "base/assert.h"
#include "tree/tree.h"

/* ---- of any index ---- */

/* Is this an index, perhaps of a partitioned table, of this access method, whatever that is called? */
extern bool smart_is_our_index(Relation index);

/*
 * Opens an index of this access method with AccessShareLock.  Errors: WRONG_OBJECT_TYPE (no index, of another method,
 * or of a partitioned table), FEATURE_NOT_SUPPORTED (a temporary table of another session),
 * OBJECT_NOT_IN_PREREQUISITE_STATE (it is not valid), UNDEFINED_OBJECT.
 */
extern Relation smart_index_open(Oid index);

/* The same, valid or not; NULL if there is no such relation. */
extern Relation smart_index_try_open(Oid index);

/* ---- an open one ---- */

struct smart_view;

struct smart_relation
{
	Oid index;
	struct smart_meta meta;
	struct smart_codec *codec; /* a copy of its own */
	struct smart_tree *tree;   /* NULL: the index has no tree yet, hence no entries; or it is lost */
	bool lost;                 /* opened for inserts only: tree is the one that is being built, NULL if none is */
	struct smart_view *view;   /* lost, and it answers from its journal (src/am/journal/view.h); or NULL */
	bool standby;              /* opened in recovery: tree is what this server has loaded (src/am/journal/follow.h) */
	uint32 changes;            /* smart_changes() when all this was read */
	struct smart_tail tail;    /* of the journal's chain, as far as it is known */
	uint64 also_id;            /* the tree that it moves to, once that takes adds, too; or 0 */
	uint32 also_leaf_size;     /* opened for inserts only: of that tree */
	struct smart_tree *also;   /* likewise: the tree; NULL: none, or it has gone */
	uint32 rows;               /* likewise: for as many rows it was used so far */
	bool asks_again;           /* likewise: its view cannot go on, and it has to be opened again */

	/* Private to relation.c. */
	struct smart_handle *handle;
	struct smart_handle *also_handle;
	struct smart_scan *scan;
	MemoryContextCallback release;
};

/*
 * Opens an index for use.  The result lives in CurrentMemoryContext, and its reference to the tree's handle ends when
 * that context is reset or deleted, also after an error; there is nothing to close.  Errors:
 * OBJECT_NOT_IN_PREREQUISITE_STATE (library not preloaded; the index is lost), INDEX_CORRUPTED (metapage).
 */
extern struct smart_relation *smart_relation_open(Relation index);

/* The same, but NULL for an index that is lost. */
extern struct smart_relation *smart_relation_try_open(Relation index);

/* The same, but without its tree for an index that is lost: *lost tells. */
extern struct smart_relation *smart_relation_open_any(Relation index, bool *lost);

/* The same, but without its tree, as a lost one. */
extern struct smart_relation *smart_relation_open_bare(Relation index);

/*
 * An index that was opened so, and has a view, is given its tree, if it has one by now that can be read; the view is left then.
 * False: it has none.  Errors: its entries are made otherwise now.
 */
extern bool smart_relation_arrive(struct smart_relation *self, Relation index);

/*
 * The other way round: an index that was opened with its tree, or was empty, has lost that, and its pages can answer.  Self is as if
 * it had been opened so.  What was read from the tree is still there, but its scans are not.  Errors as above.
 */
extern void smart_relation_lose(struct smart_relation *self, Relation index);

/*
 * The same for inserts.  A lost index is opened, too, unless it is unique and the caller cannot ask it by a view
 * (journal/view.h): what is inserted goes into the tree that is being loaded or built, or into the journal alone, or nowhere,
 * which its metapage says then.
 */
extern struct smart_relation *smart_relation_open_to_insert(Relation index, bool asks_view);

/*
 * Has the index another tree by now?  Then self has that from now on: what was read from the older one is still there, but
 * its scans are not.  Called before each read by an operation that needs what is in the index at that moment, or is
 * protected by a pin.  True, too, if the index has lost its tree, and pages can answer: self keeps that, to be given a view
 * (smart_view_replace_tree()).  Errors: the index is lost, or its entries are made otherwise now.
 */
extern bool smart_relation_follow(struct smart_relation *self, Relation index);

/* Looks at the metapage again if the index had no tree when it was opened.  Returns whether it has one now. */
extern bool smart_relation_refresh(struct smart_relation *self, Relation index);

/*
 * Makes the tree of an index that has none, unless another backend has done so in the meantime (the lock of the metapage
 * decides), and sets self->tree.  Or it is to have none, since there is no room: then it has to be opened again.
 */
extern void smart_relation_make_tree(struct smart_relation *self, Relation index);

/*
 * The scan that belongs to an open index, for one range at a time: made at the first call, reused from then on,
 * closed with self.  self->tree must be set.
 */
extern struct smart_scan *smart_relation_scan(struct smart_relation *self);

/*
 * As smart_tree_insert(), smart_tree_insert_many(), smart_scan_next(), smart_scan_points() (forward),
 * smart_tree_lookup_uncached() and smart_tree_verify() with self's tree.  While a memory node is away they wait, for
 * smart.wait_timeout at most, and go on when it is back.
 */
extern smart_status smart_relation_insert(struct smart_relation *self, const uint8 *entry, int key_length, int length);
extern smart_status smart_relation_try_insert(struct smart_relation *self, const uint8 *entry, int key_length,
											  int length); /* does not wait */
extern smart_status smart_relation_try_insert_many(struct smart_relation *self, struct smart_addition *additions,
												   uint32 count); /* nor does this */
extern smart_status smart_relation_next(struct smart_scan *scan, struct smart_batch *batch);
extern smart_status smart_relation_points(struct smart_scan *scan, const struct smart_point *points, uint32 count);
extern smart_status smart_relation_lookup(struct smart_relation *self, const uint8 *key, int key_length, bool *found);
extern smart_status smart_relation_verify(struct smart_relation *self, struct smart_verify_report *report,
										  char *message, Size message_size);

/*
 * What the planner wants to know of an index.  False: the index cannot be used now (an error only if its metapage
 * cannot be read).
 */
struct smart_glance
{
	bool ordered;        /* scans return rows in the order of the columns */
	uint32 fixed_length; /* bytes of every entry, or 0 */
	uint64 bytes;        /* that the tree's memory takes, or the run's pages */
	bool paged;          /* it is lost, and answers from the pages of its journal */
	bool unsettled;      /* a worker has to see to it: it is lost, or to be paged and is not */
	bool missed;         /* it cannot be used, but is not lost: a memory node is away */
};

extern bool smart_relation_glance(Relation index, struct smart_glance *glance);

/* The tree that the metapage names, if it is of this region (it may be lost), or SMART_TREE_NOWHERE; else 0. */
extern uint64 smart_relation_tree(Relation index);

/* Bytes of memory that the tree takes, 0 without one; and the pages of BLCKSZ that it would fill with the metapage. */
extern uint64 smart_relation_bytes(const struct smart_relation *self);
extern BlockNumber smart_relation_pages(const struct smart_relation *self);

/*
 * To be called before an entry goes into self's tree, or (also) into the one that the index moves to: what has to be
 * removed again if the server dies before its row is durable (undo.h).  others: the row may be of another transaction.
 */
static inline smart_status
smart_undo_note(const struct smart_relation *self, Relation index, const uint8 *entry, int key_length, bool also,
				bool others)
{
	struct smart_undo undo = {.tree = also ? self->also_id : self->meta.tree,
							  .leaf_size = (uint16) (also ? self->also_leaf_size : self->meta.leaf_size),
							  .fixed_length = (uint16) self->meta.fixed_length,
							  .key_length = (uint16) key_length,
							  .key = entry};

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX && undo.tree != 0);
	return smart_undo_write(index, &undo, others);
}

/*
 * Makes an empty tree for an index in the directory of the region, owned by its database, relfilenode and
 * transaction, and opens it; *tree is good for the life of CurrentMemoryContext.  Until a metapage names it, the
 * caller has to free it after an error.
 */
extern uint64 smart_am_tree_create(Relation index, const struct smart_codec *codec, struct smart_tree **tree);

/* Opens the tree that a metapage, or what was made of one, names; NULL if it is not there.  As long as the above. */
extern struct smart_tree *
smart_am_tree_open(Relation index, const struct smart_codec *codec, const struct smart_meta *meta);

/* The same as an open index, for scans. */
extern struct smart_relation *
smart_relation_open_tree(Relation index, const struct smart_codec *codec, const struct smart_meta *meta);

#endif /* SMART_AM_RELATION_H */
