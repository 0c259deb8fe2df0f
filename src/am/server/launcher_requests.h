/*
 * launcher_requests.h
 *	  What the processes of a server tell its launcher (launcher.h): that there is something to do, and in which
 *	  databases orphans may have come to be, trees that no index names (orphans.h).
 *
 * A transaction that may leave an orphan behind notes so, and requests a collection in its database when it has
 * ended.  What a prepared transaction leaves is there when it ends, maybe after another start of the server, when no
 * session's note is left; so each collection registers the prepared transactions of its database, and the launcher
 * requests the next collection when one of them has ended.  As notes can be missed all the same, all databases are
 * looked at from time to time, too.
 *
 * And that trees may have to move to other memory nodes (moves.h).
 */
#ifndef SMART_AM_LAUNCHER_REQUESTS_H
#define SMART_AM_LAUNCHER_REQUESTS_H

/* Sets the hooks that note what transactions do.  Once, while the library is being preloaded. */
extern void smart_orphans_notes_init(void);

/* ---- the launcher ---- */

/* This process is the launcher (true), or is not any more. */
extern void smart_launcher_set(bool here);

/* There may be something for the launcher to do.  Nothing if it does not run: it looks at everything when it begins. */
extern void smart_launcher_wake(void);

/* ---- in any backend ---- */

enum smart_orphans_when
{
	SMART_ORPHANS_IF_COMMITTED, /* the transaction takes the name from a tree */
	SMART_ORPHANS_IF_ABORTED    /* it makes a tree */
};

/* Requests a collection at the end of this transaction, if it ends like that. */
extern void smart_orphans_note(enum smart_orphans_when when);

/* Requests one now. */
extern void smart_orphans_request(Oid database);

/* Requests one in each database. */
extern void smart_orphans_request_all(void);

/* Does a request wait?  *ever: how many there have been since the server's start. */
extern bool smart_orphans_is_requested(uint64 *ever);

/* Requests one when this prepared transaction has ended. */
extern void smart_orphans_watch(TransactionId xid, Oid database);

/* Trees may have to move from now on. */
extern void smart_moves_request(void);

/* ---- in the launcher ---- */

/* Has anybody said so since the last call? */
extern bool smart_moves_take_request(void);

/* Requests collections whose prepared transaction has ended; returns whether other prepared transactions are left. */
extern bool smart_orphans_look_at_prepared(void);

/*
 * Takes what is to be looked at next: a database, or InvalidOid for the round of all.  round: that one is due even if
 * nobody has requested it; database_first: where both wait, take a database.  False: nothing.
 */
extern bool smart_orphans_take_request(bool round, bool database_first, Oid *database);

#endif /* SMART_AM_LAUNCHER_REQUESTS_H */
