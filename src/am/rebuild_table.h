/*
 * rebuild_table.h
 *	  What the processes of a server tell each other about indexes that have lost
 *	  their trees: which are to be rebuilt, which are being rebuilt, and which
 *	  trees wait until nobody uses them any more.
 *
 * All of it is in shared memory and begins empty with the server: what an index
 * is, its metapage and the region say.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_REBUILD_TABLE_H
#define SMART_AM_REBUILD_TABLE_H

#include "datatype/timestamp.h"

#include "base/assert.h"

#define SMART_REBUILD_ERROR_MAX 256

enum smart_rebuild_state
{
	SMART_REBUILD_WAITING = 1, /* lost, and to be rebuilt when its time has come */
	SMART_REBUILD_RUNNING,     /* inserts go into its new tree */
	SMART_REBUILD_DONE         /* kept for those who ask, as long as there is room */
};

struct smart_rebuild
{
	Oid database;
	Oid index; /* InvalidOid: WAITING for a look at all indexes of the database */
	enum smart_rebuild_state state;
	uint32 failures;                     /* attempts that failed since it was lost */
	uint32 waits;                        /* attempts that gave way since then */
	uint64 tree;                         /* RUNNING: what is inserted goes here, first side and then base */
	uint64 side;                         /* RUNNING: leaves in the end */
	uint64 base;                         /* RUNNING: what the index will be; leaves if it comes to nothing */
	uint64 older;                        /* RUNNING: what the metapage named, or 0; leaves if all goes well */
	bool spoiled;                        /* RUNNING: it cannot succeed any more */
	bool sealed;                         /* RUNNING: it will */
	TimestampTz since;                   /* when it came into this state */
	TimestampTz due;                     /* WAITING: not before */
	char error[SMART_REBUILD_ERROR_MAX]; /* of the last attempt that failed, or empty */
};

/* A tree that its index does not name any more, or never did. */
struct smart_leaving_tree
{
	Oid database;
	Oid index; /* who has it open may still use the tree */
	uint64 tree;
};

/* Asks the server for memory and a lock (shmem_request_hook), and makes the table (shmem_startup_hook). */
extern void smart_rebuild_table_request(void);
extern void smart_rebuild_table_make(void);

/* ---- changes ---- */

/*
 * How often the tree of any index was lost, given up or replaced.  Who has seen
 * the same number since an index was looked at, need not look again.  0 without
 * shared memory.
 */
extern uint32 smart_changes(void);

/* One more, after everything that others shall see. */
extern void smart_changes_announce(void);

/* ---- indexes ---- */

/* False if there is nothing about it. */
extern bool smart_rebuild_find(Oid database, Oid index, struct smart_rebuild *found);

/* The tree that takes in what is inserted into a lost index, 0: there is none. */
extern uint64 smart_rebuild_tree(Oid database, Oid index);

/* The index was found to be lost, and is to be rebuilt.  Nothing if that is known; nothing if the table is full. */
extern void smart_rebuild_want(Oid database, Oid index);

/*
 * From now on inserts go into the tree side; base will be what the index has; older: what the
 * metapage names, 0 if that is nowhere.  False: the table is full.
 */
extern bool smart_rebuild_begin(Oid database, Oid index, uint64 side, uint64 base, uint64 older);

/* From now on inserts go into the tree base. */
extern void smart_rebuild_use_base(Oid database, Oid index);

/*
 * It has come to nothing: again after so many milliseconds.  error NULL: it only
 * gave way to others.  Its trees leave.
 */
extern void smart_rebuild_end_failed(Oid database, Oid index, const char *error, int delay_ms);

/*
 * Something could not be inserted into the side tree or the base, and is nowhere: the
 * rebuild will come to nothing.  False: it is not running with this tree, or too
 * near to its end.
 */
extern bool smart_rebuild_spoil(Oid database, Oid index, uint64 tree);

/* Has that happened?  seal: if it has not, it cannot happen any more. */
extern bool smart_rebuild_is_spoiled(Oid database, Oid index, bool seal);

/* The metapage names the base; the others leave. */
extern void smart_rebuild_end(Oid database, Oid index);

/* It needs no rebuild (any more); with index InvalidOid: nobody need look at the database. */
extern void smart_rebuild_forget(Oid database, Oid index);

/* Forgets all that waits of a database that is gone. */
extern void smart_rebuild_forget_database(Oid database);

/*
 * Databases with something that is due, each once: at most max of them; returns
 * how many.  The trees that leave a database are due, too.
 */
extern int smart_rebuild_due(Oid *databases, int max);

/* Nothing waits, runs or leaves; who changes that by smart_rebuild_want() wakes the launcher. */
extern bool smart_rebuild_is_idle(void);

/* The indexes of a database that wait, due or not; at most max. */
extern int smart_rebuild_waiting(Oid database, Oid *indexes, int max);

/* ---- trees that leave ---- */

/* At most max of those of a database; returns how many. */
extern int smart_leaving_trees(Oid database, struct smart_leaving_tree *trees, int max);

/* The tree is free. */
extern void smart_leaving_done(uint64 tree);

/* May somebody use this tree although no metapage names it?  Then nobody else may free it. */
extern bool smart_rebuild_holds_tree(uint64 tree);

/* ---- the launcher ---- */

/* What smart_rebuild_want() wakes: the caller's latch, or nothing. */
extern void smart_rebuild_set_launcher(bool here);

#endif /* SMART_AM_REBUILD_TABLE_H */
