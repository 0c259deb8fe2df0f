/*
 * sweep_worker.h
 *	  Sweeping (sweep.h) without being asked: when, where, and by whom.
 *
 * A transaction that may leave a tree behind notes so, and when it has ended wishes for a
 * sweep of its database.  The background worker (worker.c) starts a process for
 * one database after another, since a process can be connected to one only.  What
 * a prepared transaction leaves is there when it ends, maybe after another start of the
 * server, and no session's note is left then; so each sweep puts down which ones its database has, and
 * the worker wishes for the next one when one of them has ended.  As notes can be
 * missed all the same, all databases are swept from time to time, too.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_SWEEP_WORKER_H
#define SMART_AM_SWEEP_WORKER_H

#include "postgres.h"

#include "storage/s_lock.h"

#define SMART_SWEEP_WISHES   32 /* databases; if there are more, all are swept */
#define SMART_SWEEP_PREPARED 64 /* transactions; the others are left to the round of all databases */

struct smart_sweep_prepared
{
	TransactionId xid;
	Oid database;
};

/* In shared memory. */
struct smart_sweep_wishes
{
	slock_t lock; /* of all that follows */
	bool all;
	uint64 ever; /* wishes since the server's start */
	int count;
	Oid database[SMART_SWEEP_WISHES];
	int nprepared;
	struct smart_sweep_prepared prepared[SMART_SWEEP_PREPARED];
};

/* Defines smart.sweep_interval and sets hooks.  Once, while the library is being preloaded. */
extern void smart_sweep_init(void);

/* ---- in any backend (sweep_notes.c) ---- */

extern void smart_sweep_wishes_init(struct smart_sweep_wishes *wishes);
extern void smart_sweep_notes_init(void);

enum smart_sweep_when
{
	SMART_SWEEP_IF_COMMITTED, /* the transaction takes the name from a tree */
	SMART_SWEEP_IF_ABORTED    /* it makes a tree */
};

/* Wishes for a sweep at the end of this transaction, if it ends like that. */
extern void smart_sweep_note(enum smart_sweep_when when);

/* Wishes for one now. */
extern void smart_sweep_wish(Oid database);

/* Wishes for one when this prepared transaction has ended. */
extern void smart_sweep_watch(TransactionId xid, Oid database);

/* Wishes for those of which that is true now; returns whether others are left.  In the background worker. */
extern bool smart_sweep_look_at_prepared(void);

/* ---- in the background worker (sweep_worker.c) ---- */

/* Starts a sweep if one is wished for or due, and none runs. */
extern void smart_sweeper_tend(void);

/* Milliseconds until it has to be called again; earlier if the process's latch is set. */
extern long smart_sweeper_rest_ms(void);

/* What a process that sweeps runs; the argument is the OID of the database, or InvalidOid: see there. */
extern PGDLLEXPORT void smart_sweeper_main(Datum argument);

#endif /* SMART_AM_SWEEP_WORKER_H */
