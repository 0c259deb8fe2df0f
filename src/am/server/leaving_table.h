/*
 * leaving_table.h
 *	  Trees that their indexes do not name any more, or never did, and that wait until they have no users.
 *
 * All of it is in shared memory and begins empty with the server: the collection of orphans finds what it would have had.
 */
#ifndef SMART_AM_LEAVING_TABLE_H
#define SMART_AM_LEAVING_TABLE_H

#include "nodes/pg_list.h"

struct smart_leaving_tree
{
	Oid database;
	Oid index;  /* a session that has it open may still use the tree */
	int worker; /* the pid of the process that frees it, or 0 */
	uint64 tree;
};

/* Asks the server for memory and a lock (shmem_request_hook), and makes the table (shmem_startup_hook). */
extern void smart_leaving_table_request(void);
extern void smart_leaving_table_make(void);

/* A tree of an index is to leave.  False: there is no room for it now. */
extern bool smart_leaving_add(Oid database, Oid index, uint64 tree);

/* However a rebuild ends, two trees have to leave: room for them.  smart_leaving_add_two() has to follow.  False: there is none. */
extern bool smart_leaving_reserve_two(void);

/* They leave; 0: it is none, after all. */
extern void smart_leaving_add_two(Oid database, Oid index, uint64 one, uint64 other);

/* Databases that trees leave, each once. */
extern List *smart_leaving_due(void);

/* At most max of those of a database that no other process has got; returns how many.  They are this process's now. */
extern int smart_leaving_trees(Oid database, struct smart_leaving_tree *trees, int max);

/* This process exits: other ones have to see to its leaving trees. */
extern void smart_leaving_release(void);

/* The tree was freed. */
extern void smart_leaving_done(uint64 tree);

/* Those of a database that was dropped are left to the collection of orphans, since no session can be connected to it. */
extern void smart_leaving_forget_database(Oid database);

/* At most max of those of an index, whoever frees them; returns how many. */
extern int smart_leaving_trees_of(Oid database, Oid index, uint64 *trees, int max);

extern bool smart_leaving_has(uint64 tree);
extern bool smart_leaving_is_empty(void);

#endif /* SMART_AM_LEAVING_TABLE_H */
