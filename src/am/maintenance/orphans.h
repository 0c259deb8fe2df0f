/*
 * orphans.h
 *	  Trees that no metapage names: which ones there are, and freeing them.
 *
 * A tree belongs to the index whose metapage names it.  DROP, TRUNCATE, REINDEX, a rewrite of the
 * table and so on take the metapage away and leave the tree, since only the end of the transaction
 * tells whether the tree is still needed, and sometimes not even that: an index may get a new OID and
 * keep its file, or a new file with a copy of the metapage.  So nothing is concluded from what a
 * statement does; a collection looks later.
 *
 * A tree is leaked if
 *
 *   - the transaction that made it has ended (a prepared one has not), and after that no metapage of
 *     its database names it; or
 *   - its database is gone; or
 *   - it is of a temporary table, and its backend has gone, or is this one and names it no more.
 *
 * What a statement replaces or drops is named until its transaction has ended; a session that could
 * still use it has the index locked.  Only a rebuild takes the name from a tree while others may have
 * it open; that tree is in the table of rebuilds until they have closed it (smart_rebuild_holds_tree).
 *
 * While the metapage of an index stays unreadable, the tree that it names is not known, and a session
 * may still use that tree.  Then all trees are kept that were made for the index's file.  If there is
 * none, since the index got its file by SET TABLESPACE, all trees are kept that would be leaked.  A file
 * may have several trees, by a rebuild that puts another tree in the place of the first.
 */
#ifndef SMART_AM_ORPHANS_H
#define SMART_AM_ORPHANS_H

#include "nodes/pg_list.h"

#include "am/maintenance/worker.h"
#include "compute/allocate/space.h"

enum smart_tree_fate
{
	SMART_TREE_USED,       /* a metapage of this database names it */
	SMART_TREE_UNFINISHED, /* the transaction that made it runs, or is prepared */
	SMART_TREE_TEMPORARY,  /* of a temporary table whose session runs */
	SMART_TREE_ELSEWHERE,  /* of another database, which has to look itself */
	SMART_TREE_UNDECIDED,  /* it may be that of an index of this database whose metapage cannot be read */
	SMART_TREE_LEAKED
};

struct smart_surveyed_tree
{
	struct smart_tree_info info;
	enum smart_tree_fate fate;
};

struct smart_survey
{
	struct smart_surveyed_tree *tree;
	uint64 count;
	List *databases; /* OIDs of those that exist */
	List *unread;    /* indexes whose metapages cannot be read (struct smart_unread) */
	bool undecided;  /* because of them no tree of this database can be said to be leaked */
};

/*
 * All trees of the region, or those of this backend's temporary tables only, and their fates; in CurrentMemoryContext.
 * Inside a transaction, whose own changes do not count: it may roll them back.  For a process without a database all
 * trees of existing databases are elsewhere.
 */
extern void smart_survey(struct smart_survey *survey, bool temporary_only);

/* Reports each index whose metapage a survey could not read; level: LOG or WARNING. */
extern void smart_survey_report(const struct smart_survey *survey, int level);

/* Frees the trees that a survey has found leaked; returns how many, and adds their bytes to *bytes. */
extern uint64 smart_orphans_free(const struct smart_survey *survey, uint64 *bytes);

/*
 * Sets what others call when they may leave trees behind (launcher_requests.h) and before they
 * make one (trees.h).  Once, while the library is being preloaded.
 */
extern void smart_orphans_init(void);

/* The launcher's job: starts an orphan collector, if that is requested or due, and none runs; and what that does. */
extern long smart_orphans_tend(struct smart_job *job);
extern void smart_orphans_serve(const struct smart_job *job);

#endif /* SMART_AM_ORPHANS_H */
