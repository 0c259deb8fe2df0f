/*
 * rebuild_table.h
 *	  What the processes of a server tell each other about indexes that have lost their trees, or whose trees have to
 *	  move: which are to be rebuilt or moved, and which are.
 *
 * All of it is in shared memory and begins empty with the server: what an index is, its metapage and the region say.
 */
#ifndef SMART_AM_REBUILD_TABLE_H
#define SMART_AM_REBUILD_TABLE_H

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"

#define SMART_REBUILD_ERROR_MAX 256

enum smart_rebuild_state
{
	SMART_REBUILD_WAITING = 1, /* lost, and to be rebuilt when its time has come */
	SMART_REBUILD_RUNNING,     /* inserts go into its new tree */
	SMART_REBUILD_DONE         /* kept to be asked for, as long as there is room */
};

struct smart_rebuild
{
	Oid database;
	Oid index; /* InvalidOid: WAITING for a search of the database for lost indexes */
	enum smart_rebuild_state state;
	uint32 failures;                     /* attempts that failed since it was lost */
	uint32 waits;                        /* attempts that gave way since then */
	uint64 tree;                         /* RUNNING: what is inserted goes here, first side and then base */
	uint64 side;                         /* RUNNING: leaves in the end; 0: none, the index is loaded (load.h) */
	uint64 base;                         /* RUNNING: what the index will be; leaves if it comes to nothing */
	uint64 older;                        /* RUNNING: what the metapage named, or 0; leaves if all goes well */
	uint32 older_leaf_size;              /* RUNNING: of a move (smart_rebuild_begin_move); else 0 */
	bool moves;                          /* its tree has to move; it is not lost */
	bool damaged;                        /* WAITING: who has read its journal has found it damaged */
	bool spoiled;                        /* RUNNING: invalidated, has to fail */
	bool sealed;                         /* RUNNING: it will succeed */
	TimestampTz since;                   /* when it came into this state */
	TimestampTz due;                     /* WAITING: not before; DT_NOEND: as long as smart.auto_rebuild is off */
	uint64 wants;                        /* bytes of memory that those are to leave to it that may do without a tree */
	int worker;                          /* the pid of the worker that is at it, or 0 */
	int runner;                          /* RUNNING: the pid of the process that loads or rebuilds it */
	uint32 hastened;                     /* how often all had been hastened when the worker claimed it */
	char error[SMART_REBUILD_ERROR_MAX]; /* of the last attempt that failed, or empty */
};

/* Asks the server for memory and a lock (shmem_request_hook), and makes the table (shmem_startup_hook). */
extern void smart_rebuild_table_request(void);
extern void smart_rebuild_table_make(void);

/* ---- indexes ---- */

/* Copies what the table has about an index; false: nothing. */
extern bool smart_rebuild_find(Oid database, Oid index, struct smart_rebuild *found);

/*
 * The tree that takes in what is inserted into a lost index, 0: there is none.  Every insert into an index that has no tree
 * asks: it is cheap as long as nothing is loaded, rebuilt or moved.
 */
extern uint64 smart_rebuild_tree(Oid database, Oid index);

/* Registers a lost index for a rebuild, unless it is registered already or the table is full. */
extern void smart_rebuild_want(Oid database, Oid index);

/* The same for one whose journal was found to be damaged: it is rebuilt from its table. */
extern void smart_rebuild_want_anew(Oid database, Oid index);

/*
 * A rebuild begins: from now on inserts go into the tree side; base will be the index's tree; older is the tree that the
 * metapage names, 0 if that does not exist.  Or, without side, a loading: at first inserts go into no tree.  False: the
 * table is full.
 */
extern bool smart_rebuild_begin(Oid database, Oid index, uint64 side, uint64 base, uint64 older);

/*
 * A move begins: the index goes on with the tree older, of this leaf size, until smart_rebuild_end(), whatever its metapage
 * says; then it has the tree base.  False: the table is full.
 */
extern bool smart_rebuild_begin_move(Oid database, Oid index, uint64 base, uint64 older, uint32 older_leaf_size);

/*
 * What the table has about the move of an index; false: it is not being moved.  Cheap as long as nothing is loaded, rebuilt or
 * moved.  It is in force if smart_changes() is the same afterwards as it was before.
 */
extern bool smart_rebuild_find_move(Oid database, Oid index, struct smart_rebuild *move);

/* From now on inserts go into the tree base; where an index is moved, into both trees. */
extern void smart_rebuild_use_base(Oid database, Oid index);

/*
 * The rebuild has failed, and is tried again after so many milliseconds.  error NULL: it only gave way to others.  Its
 * trees leave, and all backends check again before they insert.  Nothing while another process loads or rebuilds it.
 */
extern void smart_rebuild_end_failed(Oid database, Oid index, const char *error, int delay_ms);

/* It waits, and is tried again in so many milliseconds. */
extern void smart_rebuild_put_off(Oid database, Oid index, int delay_ms);

/*
 * What made attempts fail may be over: those that wait are due now, and one that is under way, and fails, is tried again
 * at once.  Wakes the launcher.
 */
extern void smart_rebuild_hasten(void);

/* A rebuild, or loading, that this process was at is not running any more, and will be tried again.  Its trees leave. */
extern void smart_rebuild_cancel(Oid database, Oid index);

/*
 * Invalidates a rebuild: an entry could be inserted neither into the side tree nor into the base, so the rebuild has to
 * fail.  False: it is not running with this tree, or is sealed.
 */
extern bool smart_rebuild_invalidate(Oid database, Oid index, uint64 tree);

/* Was the rebuild invalidated?  seal: if not, it cannot be invalidated any more. */
extern bool smart_rebuild_is_invalid(Oid database, Oid index, bool seal);

/* The rebuild is done: the metapage names the base, and the other trees leave.  The change is announced, if it is a move. */
extern void smart_rebuild_end(Oid database, Oid index);

/* The index needs no rebuild (any more); with InvalidOid: the search of the database for lost indexes is done. */
extern void smart_rebuild_forget(Oid database, Oid index);

/* The same for all indexes of the database but these; a search of the database stays due. */
extern void smart_rebuild_forget_others(Oid database, const List *indexes);

/* It is lost, and can only be rebuilt, which is not to be: it stays in the table, but is not due. */
extern void smart_rebuild_leave_alone(Oid database, Oid index);

/*
 * This process, a worker, is going to see to a lost index: false, another one is at it.  Until it disclaims that, which it
 * does also when it exits.
 */
extern bool smart_rebuild_claim(Oid database, Oid index);
extern void smart_rebuild_disclaim(Oid database, Oid index);

/*
 * An index must have a tree, and wants so much memory for it: those that may do without are to leave it, until an attempt fails, or
 * comes to an end.
 */
extern void smart_rebuild_want_memory(Oid database, Oid index, uint64 bytes);

/* What all these want. */
extern uint64 smart_rebuild_wanted_memory(void);

/* Is anything of a database loaded, rebuilt or moved, or does it wait for that? */
extern bool smart_rebuild_is_busy(Oid database);

/* The index that this process has claimed is not lost: its tree has to move. */
extern void smart_rebuild_say_move(Oid database, Oid index);

/* How many indexes are being moved, and, *error, what an index of which that failed said last, or an empty string. */
extern uint32 smart_rebuild_moves(char error[SMART_REBUILD_ERROR_MAX]);

/* Forgets what waits in a database that was dropped. */
extern void smart_rebuild_forget_database(Oid database);

/* Databases with something that is due and that no worker is at, each once. */
extern List *smart_rebuild_due(void);

/* Nothing waits, runs or leaves; smart_rebuild_want(), which changes that, wakes the launcher. */
extern bool smart_rebuild_is_idle(void);

/* May a session use this tree although no metapage names it?  Then only the rebuild worker may free it. */
extern bool smart_rebuild_holds_tree(uint64 tree);

#endif /* SMART_AM_REBUILD_TABLE_H */
