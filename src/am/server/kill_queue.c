/*
 * kill_queue.c
 *	  Entries of dead rows that sessions have met, on their way to the process that removes them.
 *
 * A hot key whose dead entries are met a thousand times a second must neither fill the queue nor make its sessions wait
 * for a lock.  So a session looks first, without the lock, whether the key was handed over since the queue was read
 * last; a mistake there costs a key that comes twice, or later.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "am/server/kill_queue.h"
#include "am/server/launcher_requests.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define TRANCHE     "smart_kill_queue"
#define QUEUE_BYTES (256 * 1024)
#define MANY_BYTES  (6 * 1024) /* of keys that do not wait for the worker's next round: some hundreds */
#define RECENT      4096       /* a power of two */

/* What comes before each key. */
struct head
{
	Oid database;
	Oid index;
	uint32 length;
};

struct kill_queue
{
	uint32 used;           /* bytes */
	Latch *worker;         /* of the process that removes; NULL: there is none */
	uint32 recent[RECENT]; /* hashes of keys that were handed over, each in its own place; 0: none */
	uint8 bytes[QUEUE_BYTES];
};

static struct kill_queue *queue;
static LWLock *lock; /* of all but looks at recent and used that may be wrong */

void
smart_kill_queue_request(void)
{
	RequestAddinShmemSpace(sizeof(struct kill_queue));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
smart_kill_queue_make(void)
{
	queue = smart_shared_make("smart kill queue", sizeof(*queue));
	lock = &GetNamedLWLockTranche(TRANCHE)->lock;
}

/* ---- sessions ---- */

/* Who is to be woken after keys were handed over. */
struct waking
{
	Latch *worker;
	bool launcher;
};

/* Puts a key into the queue, which is locked; false: there is no room. */
static bool
put_key(const struct head *head, const uint8 *key, struct waking *waking)
{
	uint32 used = queue->used + (uint32) sizeof(*head) + head->length;

	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE) && queue->used <= QUEUE_BYTES);
	if (used > QUEUE_BYTES)
		return false;
	if (queue->used == 0 && queue->worker == NULL)
		waking->launcher = true;
	if (queue->used < MANY_BYTES && used >= MANY_BYTES)
		waking->worker = queue->worker;
	memcpy(queue->bytes + queue->used, head, sizeof(*head));
	memcpy(queue->bytes + queue->used + sizeof(*head), key, head->length);
	queue->used = used;
	return true;
}

void
smart_kill_queue_put(Oid database, Oid index, const uint8 *bytes, const uint32 *start, uint32 count)
{
	struct waking waking = {NULL, false};
	bool locked = false;

	smart_assert(OidIsValid(database) && OidIsValid(index));
	for (uint32 i = 0; queue != NULL && i < count; i++)
	{
		const struct head head = {.database = database, .index = index, .length = start[i + 1] - start[i]};
		uint32 hash = hash_combine(hash_bytes(bytes + start[i], (int) head.length), index) | 1;
		uint32 *recent = &queue->recent[(hash >> 1) % RECENT];

		smart_assert(head.length > 0 && head.length <= SMART_KILL_LIST_BYTES);
		if (__atomic_load_n(recent, __ATOMIC_RELAXED) == hash)
			continue;
		if (!locked && __atomic_load_n(&queue->used, __ATOMIC_RELAXED) + sizeof(head) + head.length > QUEUE_BYTES)
			break;
		if (!locked)
			LWLockAcquire(lock, LW_EXCLUSIVE);
		locked = true;
		if (!put_key(&head, bytes + start[i], &waking))
			break;
		*recent = hash;
	}
	if (locked)
		LWLockRelease(lock);
	/* A latch of a process that has ended meanwhile may be set: it lies in shared memory. */
	if (waking.worker != NULL)
		SetLatch(waking.worker);
	if (waking.launcher)
		smart_launcher_wake();
}

void
smart_kill_queue_hurry(void)
{
	Latch *worker = queue == NULL ? NULL : __atomic_load_n(&queue->worker, __ATOMIC_RELAXED);

	/* As above. */
	if (worker != NULL)
		SetLatch(worker);
}

bool
smart_kill_queue_has_room(void)
{
	return queue != NULL && __atomic_load_n(&queue->used, __ATOMIC_RELAXED) < QUEUE_BYTES / 2;
}

/* ---- those who remove ---- */

bool
smart_kill_queue_next(Oid last, Oid *database)
{
	struct head head = {0};
	Oid found = InvalidOid;

	if (queue == NULL || __atomic_load_n(&queue->used, __ATOMIC_RELAXED) == 0)
		return false;
	LWLockAcquire(lock, LW_SHARED);
	for (uint32 at = 0; at < queue->used && (!OidIsValid(found) || found == last); at += sizeof(head) + head.length)
	{
		memcpy(&head, queue->bytes + at, sizeof(head));
		smart_assert(head.length > 0 && at + sizeof(head) + head.length <= queue->used);
		found = head.database;
	}
	LWLockRelease(lock);
	*database = found;
	return OidIsValid(found);
}

/* Takes keys of a database out of the queue: into the list, if there is one, those of one index as far as it has room. */
static void
take(Oid database, struct smart_kill_list *list)
{
	struct head head;
	uint32 kept = 0;

	smart_assert(OidIsValid(database));
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (uint32 at = 0; at < queue->used; at += sizeof(head) + head.length)
	{
		bool taken;

		memcpy(&head, queue->bytes + at, sizeof(head));
		smart_assert(head.length > 0 && at + sizeof(head) + head.length <= queue->used);
		taken = head.database == database;
		if (taken && list != NULL)
		{
			taken = (list->count == 0 || list->index == head.index) && list->count < SMART_KILL_LIST_KEYS &&
					list->start[list->count] + head.length <= SMART_KILL_LIST_BYTES;
			if (taken)
			{
				uint32 begin = list->start[list->count++];

				list->index = head.index;
				memcpy(list->bytes + begin, queue->bytes + at + sizeof(head), head.length);
				list->start[list->count] = begin + head.length;
			}
		}
		if (taken)
			continue;
		memmove(queue->bytes + kept, queue->bytes + at, sizeof(head) + head.length);
		kept += sizeof(head) + head.length;
	}
	smart_assert(kept <= queue->used);
	/* What was taken may be handed over again. */
	if (kept < queue->used)
		memset(queue->recent, 0, sizeof(queue->recent));
	queue->used = kept;
	LWLockRelease(lock);
}

bool
smart_kill_queue_take(Oid database, struct smart_kill_list *list)
{
	list->index = InvalidOid;
	list->count = 0;
	list->start[0] = 0;
	if (__atomic_load_n(&queue->used, __ATOMIC_RELAXED) == 0)
		return false;
	take(database, list);
	smart_assert((list->count > 0) == OidIsValid(list->index));
	smart_assert(list->count <= SMART_KILL_LIST_KEYS && list->start[list->count] <= SMART_KILL_LIST_BYTES);
	return list->count > 0;
}

/* before_shmem_exit()'s: what is left in the queue, or comes from now on, is the next worker's. */
static void
stop_attending(int code, Datum argument)
{
	bool left;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	queue->worker = NULL;
	left = queue->used > 0;
	LWLockRelease(lock);
	if (left)
		smart_launcher_wake();
}

void
smart_kill_queue_attend(void)
{
	before_shmem_exit(stop_attending, (Datum) 0);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	queue->worker = MyLatch;
	LWLockRelease(lock);
}

void
smart_kill_queue_forget(Oid database)
{
	take(database, NULL);
}
