/*
 * sweep.h
 *	  Trees that no metapage names: which ones there are, and freeing them.
 *
 * A tree belongs to the index whose metapage names it.  DROP, TRUNCATE, REINDEX,
 * a rewrite of the table and so on take the metapage away and leave the tree,
 * since only the end of the transaction tells whether it is not needed any
 * more, and sometimes not even that: an index may get a new OID and keep its file, or a
 * new file with a copy of the metapage.  So nothing is concluded from what a
 * statement does; somebody looks later.
 *
 * A tree is leaked if
 *
 *	  - the transaction that made it has ended (a prepared one has not), and
 *	    after that no metapage of its database names it; or
 *	  - its database is gone; or
 *	  - it is of a temporary table, and its backend has gone, or is this one and
 *	    names it no more.
 *
 * What a statement that is under way replaces or drops is named until its
 * transaction has ended; who could still use it has the index locked.  So whoever
 * takes the name from a tree while others may have it open makes his transaction
 * its creator first (smart_space_set_owner), and stays in it until they have closed it.
 *
 * An index whose metapage stays unreadable names nobody knows which tree, and a session may
 * still use that one.  What was made for the index's file is kept then; and if there is nothing
 * like that, as the index has got its file by SET TABLESPACE, all that would be
 * leaked is kept.  A file may have more trees than one, by a rebuild that puts
 * another tree in the place of the first.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_SWEEP_H
#define SMART_AM_SWEEP_H

#include "postgres.h"

#include "compute/space.h"

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
	bool undecided;  /* because of them nobody knows of any tree of this database that has no name */
};

/*
 * All trees of the region, or those of this backend's temporary tables only, and
 * what is to become of them; in CurrentMemoryContext.  Inside a transaction, whose
 * own changes do not count: it may roll them back.  A process without a
 * database takes all trees of databases that exist for trees of elsewhere.
 */
extern void smart_survey(struct smart_survey *survey, bool temporary_only);

/* Tells, if there is something to tell, which indexes' metapages a survey could not read; level: LOG or WARNING. */
extern void smart_survey_report(const struct smart_survey *survey, int level);

struct smart_swept
{
	uint64 trees;
	uint64 bytes;
};

/* Frees the trees that a survey has found leaked, and adds to *swept what they were. */
extern void smart_sweep_surveyed(const struct smart_survey *survey, struct smart_swept *swept);

/*
 * Frees what dropped temporary tables of this backend have left, which nobody else
 * can tell from what is in use; returns how many trees of temporary tables it has then.
 */
extern uint64 smart_sweep_temporary(void);

/*
 * A tree is about to be made: sweeps this database first, if something was dropped since this session
 * did so last and memory is scarce.  Inside a transaction, with nothing of a tree in hand.
 */
extern void smart_sweep_if_scarce(void);

#endif /* SMART_AM_SWEEP_H */
