/*
 * kill_queue.h
 *	  Entries of dead rows that sessions have met, on their way to the process that removes them (kill_worker.h).
 *
 * The queue is bounded.  What finds no room is forgotten; it is in the index still, and the next scan meets it again.
 */
#ifndef SMART_AM_KILL_QUEUE_H
#define SMART_AM_KILL_QUEUE_H

#define SMART_KILL_LIST_KEYS  1024
#define SMART_KILL_LIST_BYTES (64 * 1024) /* of keys */

/* Keys of entries of one index: key i lies from start[i] to start[i + 1]. */
struct smart_kill_list
{
	Oid index;
	uint32 count;
	uint32 start[SMART_KILL_LIST_KEYS + 1];
	uint8 bytes[SMART_KILL_LIST_BYTES];
};

/* Asks the server for memory and a lock (shmem_request_hook), and makes the queue (shmem_startup_hook). */
extern void smart_kill_queue_request(void);
extern void smart_kill_queue_make(void);

/*
 * Hands keys over, those that were not a moment ago, as far as there is room; key i lies from start[i] to start[i + 1].  May
 * wake the launcher, or who removes.
 */
extern void smart_kill_queue_put(Oid database, Oid index, const uint8 *bytes, const uint32 *start, uint32 count);

/* What waits is to be removed at once, if there is a worker. */
extern void smart_kill_queue_hurry(void);

/* Is the queue far from being full? */
extern bool smart_kill_queue_has_room(void);

/* A database for which keys wait, another one than last if there is one.  False: none waits. */
extern bool smart_kill_queue_next(Oid last, Oid *database);

/* Takes keys of an index of this database, in the order in which they came.  False: none waits. */
extern bool smart_kill_queue_take(Oid database, struct smart_kill_list *list);

/* From now on, until it ends, this process is woken when many keys wait, and the launcher is not. */
extern void smart_kill_queue_attend(void);

/* Forgets the keys of a database. */
extern void smart_kill_queue_forget(Oid database);

#endif /* SMART_AM_KILL_QUEUE_H */
