/*
 * errands.h
 *	  Whose journals are to be compacted, whose chains are to be carried to memory nodes, and whose deltas are to be made: what the
 *	  processes of a server tell its launcher.
 *
 * Who appends a page to a chain that has become long requests a compaction, and does so again with each further page; who
 * appends anything to the chain of an index that writes back requests that it is carried; who reads a chain for want of a delta
 * requests that each time.  So nothing is lost with a request that
 * finds no room, or with the server: all of it is in shared memory and begins empty.
 */
#ifndef SMART_AM_ERRANDS_H
#define SMART_AM_ERRANDS_H

enum smart_errand_kind
{
	SMART_ERRAND_COMPACT,
	SMART_ERRAND_CARRY,
	SMART_ERRAND_DELTA,
	SMART_ERRAND_KINDS
};

/*
 * Requests that this is done to an index's journal; a request that is known keeps its time.  While it is being done: that it is
 * done once more.
 */
extern void smart_errand_request(enum smart_errand_kind kind, Oid database, Oid index);

/* The same, and if it would come in a moment anyway it comes sooner; not what failed, or gave way. */
extern void smart_errand_hurry(enum smart_errand_kind kind, Oid database, Oid index);

/* How often it was requested since it was not known; 0: it is not, as there was no room. */
extern uint32 smart_errand_requests(enum smart_errand_kind kind, Oid database, Oid index);

/*
 * In the launcher: a database with a request that is due, whose requests are now for a worker; InvalidOid: none.  *waiting:
 * are there any requests?
 */
extern Oid smart_errand_call(enum smart_errand_kind kind, bool *waiting);

/*
 * In the launcher, if no worker was started: those requests wait for so many milliseconds; below 0: they are forgotten, as the
 * database has gone.
 */
extern void smart_errand_call_off(enum smart_errand_kind kind, Oid database, int again_ms);

/*
 * In the worker: the next index of its database, InvalidOid: none.  smart_errand_end() has to follow.  *rest_ms: until another one
 * is due; below 0: none waits.  *others: do other databases wait?
 */
extern Oid smart_errand_begin(enum smart_errand_kind kind, Oid database, long *rest_ms, bool *others);

/* again_ms: it failed or gave way, and is to be tried again after so many milliseconds; below 0: it is not. */
extern void smart_errand_end(enum smart_errand_kind kind, Oid database, Oid index, int again_ms);

#endif /* SMART_AM_ERRANDS_H */
