/*
 * view.h
 *	  An index without a tree that answers from the pages of its journal: those of its run, and over them the delta, which
 *	  has what happened since (delta.h).
 *
 * An entry that a view returns may be that of a row that has gone, whose TID may serve another row by then.
 * That row is too new for an MVCC snapshot that was taken before the view was brought up to date; other readers have it under
 * a pin (src/README, J13).
 */
#ifndef SMART_AM_JOURNAL_VIEW_H
#define SMART_AM_JOURNAL_VIEW_H

#include "datatype/timestamp.h"

#include "am/index/relation.h"
#include "am/journal/read.h"

struct smart_view;

/*
 * Opens an index for reading from its pages: a relation with a view and no tree, in CurrentMemoryContext.  Returns NULL if the
 * delta has no room, or if the pages cannot answer any more.  alone: they answer also where there is a tree on memory nodes that
 * could be read in the place of the run (carry.h), since that takes round trips.  Errors: see delta.h.
 */
extern struct smart_relation *smart_view_open(Relation index, bool alone);

/*
 * Adds a view to a relation that was opened without a tree, for a scan whose snapshot was taken before.  False: as NULL above.
 */
extern bool smart_view_open_for_scan(struct smart_relation *self, Relation index);

/* Adds a view to a relation that was opened to insert into a lost index, to look for duplicates.  False: as NULL above. */
extern bool smart_view_attach(struct smart_relation *self, Relation index, bool alone);

/*
 * Nobody uses the relation's view any more: its pin ends, which holds the delta's memory back.  It ends with the memory context, too,
 * but for what smart_view_will_be_closed() tells of.
 */
extern void smart_view_close(struct smart_relation *self);

/*
 * Brings the view up to date: it has all that a snapshot sees which was taken before this call.  all: and whatever any transaction
 * has inserted; the caller holds an inserter's lock of the index then.  Entries that were read ahead are read again.  Returns
 * false if the view cannot go on.  Errors: as above.
 */
extern bool smart_view_catch_up(struct smart_relation *self, Relation index, bool all);

/* The same, and whatever any transaction has inserted of a key of a unique index (staging.h). */
struct smart_staged_key;

extern bool smart_view_catch_up_key(struct smart_relation *self, Relation index, const struct smart_staged_key *key);

/*
 * The same for a scan that has locked what it is going to read, if its transaction is serializable: all, since it has to be told of
 * rows that others have not committed yet, by the table.  It waits as below.
 */
extern void smart_view_catch_up_serializable(struct smart_relation *self, Relation index);

/*
 * Before each search of a scan, after its snapshot was taken: the view is brought up to date.  Or the index has its tree again:
 * then self has that, and its view is NULL.  It waits for the tree if the view cannot go on.  Errors: as above, and those of
 * await.h.
 */
extern void smart_view_refresh(struct smart_relation *self, Relation index);

/*
 * Waits until the index has its tree: self has that afterwards, and its view is NULL.  Or it is to have none, and the view is up
 * to date.  Errors as above.
 */
extern void smart_view_leave(struct smart_relation *self, Relation index);

/*
 * An index that was opened with its tree, or was empty, may have lost that by now: then self has a view, if its pages can answer.
 * Errors as above.  Returns whether it has been so; smart_relation_follow() or smart_relation_refresh() tells the rest.
 */
extern bool smart_view_replace_tree(struct smart_relation *self, Relation index);

/*
 * A read of an index that was opened with its tree came to this status, and *until is 0 before the first time.  True: it is to be done
 * again, since self has a view now, or the memory node may answer.  Not on a standby, nor if no pages could answer; nor
 * after smart.fabric_timeout.  Errors as above.
 */
extern bool
smart_view_after_failure(struct smart_relation *self, Relation index, smart_status status, TimestampTz *until);

/* What a pin is for that keeps VACUUM waiting until nobody looks at what this view has returned: its journal's id. */
extern uint64 smart_view_pinned(const struct smart_view *view);

/* As smart_scan_seek(), with keys of at most SMART_KEY_MAX bytes. */
extern void smart_view_seek(struct smart_view *view, const uint8 *from, uint32 from_length, const uint8 *to,
							uint32 to_length, bool backward);

/*
 * Right after a seek: who reads the range goes on to its end, or to a seek, or closes the view, but after an error.  So what a long
 * chain says of a large range may lie in files meanwhile (sorted_chain.h), and need not wait for a delta.
 */
extern void smart_view_will_be_closed(struct smart_view *view);

/*
 * Right after a seek: the range has the entries with the same columns, all key columns and without a NULL, and begins with
 * these.  If it is known what the run has of them, it is not read (server/key_filter.h, server/key_cache.h).
 */
extern void smart_view_is_one_key(struct smart_view *view);

/* Right after a seek: so much is read that it needs a delta. */
extern void smart_view_wants_delta(struct smart_view *view);

/* What has not been returned is sought anew, the next time. */
extern void smart_view_forget(struct smart_view *view);

/*
 * The tree on memory nodes that the view reads in the place of the run (carry.h), or NULL; *renewals is raised when it is another one.
 * Right after a seek the caller may say that he has positioned its scan on the range, or that this batch is all that it has there.
 * stay_alone: it is not to be read from now on.  take_near: nor for this range, if the page of the run that it lies on is in shared
 * buffers; returns whether it is so.
 */
enum smart_view_told
{
	SMART_VIEW_NOTHING,
	SMART_VIEW_POSITIONED,
	SMART_VIEW_GIVEN
};

extern struct smart_relation *smart_view_follower(const struct smart_view *view, uint64 *renewals);
extern void smart_view_tell(struct smart_view *view, enum smart_view_told told, const struct smart_batch *batch);
extern void smart_view_stay_alone(struct smart_view *view);
extern bool smart_view_take_near(struct smart_view *view);

/*
 * The next batch, as smart_scan_next() returns it.  Where pages of the run are used anew meanwhile, the scan goes on in the run
 * that is in its place.  SMART_FOUND_BEHIND: that cannot answer, mostly since the index has its tree again; what has not been
 * returned is in the range that smart_view_rest() tells.
 */
extern enum smart_found smart_view_next(struct smart_view *view, struct smart_batch *batch);

struct smart_view_range
{
	uint32 from_length;
	uint32 to_length; /* 0: no end */
	uint8 from[SMART_KEY_MAX + 1];
	uint8 to[SMART_KEY_MAX + 1];
};

extern const struct smart_view_range *smart_view_rest(struct smart_view *view);

#endif /* SMART_AM_JOURNAL_VIEW_H */
