/*
 * free.h
 *	  Pages of an index's file that are not in use.
 *
 * The metapage alone tells which pages are in use; the free space map only proposes.  In use are
 *
 *	  of runs    those with the id of the current one, or of the one before it unless that was let go; those that are being
 *	             written, or were until the writer died, with the id that was claimed last; and run pages, but no fence
 *	             pages, with any id from the least on that the run has kept, or the one before
 *	  log pages  from a serial on: of the current run's chain, or of that before
 *
 * Compaction lets go what a switch of runs makes superfluous (compact.c): the run before at once, the chain before when
 * the chain has become long again; and both when the next one begins.  Never while a loader on this server reads them
 * (lock.h).  A standby may be left behind, and loads its tree anew.
 *
 * A run page of one before may be in the run, or not: its fence pages tell.  One that is not is given back by the collection: it
 * becomes a free page (page.h), and says so itself from then on.
 *
 * A copy of the metapage may be old: what was free by it stays free until the page itself says otherwise, since ids and
 * serials only grow.
 */
#ifndef SMART_AM_JOURNAL_FREE_H
#define SMART_AM_JOURNAL_FREE_H

#include "storage/buf.h"
#include "storage/bufpage.h"

#include "am/index/meta.h"

/* Is this page in no use, as far as this content of the metapage, which may be old, tells?  The page is locked. */
extern bool smart_page_is_free(Page page, const struct smart_meta *meta);

/*
 * Looks at all pages, and proposes those that are not in use, also such as a process left behind that died; gives back run pages
 * that the run does not have.  If the file is large, and few pages have been let go since that was done last, does nothing, unless
 * it has to.  Called by the compaction, with what the metapage says since there is no run before.  around is called for each page,
 * with nothing locked; false: stop here.
 */
extern bool
smart_free_collect(Relation index, const struct smart_meta *meta, bool has_to, bool (*around)(void *), void *argument);

/*
 * A page that is not in use, locked exclusively, with whatever content; the file is extended if none is known.  No other
 * page may be locked.  Errors: those of extending a file (DISK_FULL).
 */
extern Buffer smart_page_take(Relation index, const struct smart_meta *meta);

/* Writes and WAL-logs the content of one that was taken, or given back; unlocks and releases it. */
extern void smart_page_put(Relation index, Buffer buffer, Page page);

/* Gives back one that was taken and not used: unlocks and releases it, and proposes it to others. */
extern void smart_page_give_back(Relation index, Buffer buffer);

/*
 * Free pages that a process has looked out beforehand, so that it does not come to a full disk half-way.  They are not
 * locked, and others may use them after all.
 */
struct smart_reserve
{
	struct smart_meta meta;
	uint32 count;
	uint32 next; /* the first that has not been used */
	BlockNumber *blocks;
};

/* Errors as of smart_page_take(). */
extern void smart_reserve_begin(Relation index, struct smart_reserve *reserve, uint32 count);

/*
 * The next page, locked; InvalidBuffer: there is none, and the caller has to take one.  unlock: it was used
 * (InvalidBuffer), or was not.
 */
extern Buffer smart_reserve_lock(Relation index, struct smart_reserve *reserve);
extern void smart_reserve_unlock(Relation index, struct smart_reserve *reserve, Buffer buffer);

/* Gives back the pages that were not used. */
extern void smart_reserve_end(Relation index, struct smart_reserve *reserve);

#endif /* SMART_AM_JOURNAL_FREE_H */
