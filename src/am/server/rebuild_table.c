/*
 * rebuild_table.c
 *	  The table of indexes to rebuild, in shared memory under a lock of its own.
 *
 * It is small and seldom used: an index that has its tree is not in it, or only as one that has been rebuilt, or moves.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "am/server/launcher_requests.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

#define TRANCHE "smart_rebuild"
#define PLACES  256

struct rebuild_table
{
	uint32 nrunning;                    /* by atomics, changed under the lock */
	uint32 hastened;                    /* times */
	struct smart_rebuild place[PLACES]; /* state 0: free */
};

static struct rebuild_table *table;
static LWLock *lock;

void
smart_rebuild_table_request(void)
{
	RequestAddinShmemSpace(sizeof(struct rebuild_table));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
smart_rebuild_table_make(void)
{
	table = smart_shared_make("smart rebuilds", sizeof(*table));
	lock = &GetNamedLWLockTranche(TRANCHE)->lock;
}

/* ---- indexes; the lock is held ---- */

static inline void
check_table(void)
{
	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE));
	smart_assert(table->nrunning <= PLACES);
}

static inline void
check_place(const struct smart_rebuild *place)
{
	check_table();
	smart_assert(place->state <= SMART_REBUILD_DONE && (!place->damaged || place->state == SMART_REBUILD_WAITING));
	if (place->state == SMART_REBUILD_RUNNING)
	{
		smart_assert(OidIsValid(place->index) && table->nrunning > 0 && place->runner != 0);
		smart_assert(place->base != 0 && place->side != place->base);
		smart_assert(place->tree == place->side || place->tree == place->base);
		smart_assert(!place->spoiled || !place->sealed);
		smart_assert(place->older_leaf_size == 0 || (place->side == 0 && place->older != 0));
	}
	else
		smart_assert(place->tree == 0 && place->side == 0 && place->base == 0 && !place->spoiled && !place->sealed &&
					 place->runner == 0);
}

static struct smart_rebuild *
find(Oid database, Oid index)
{
	smart_assert(LWLockHeldByMe(lock));
	for (int i = 0; i < PLACES; i++)
	{
		struct smart_rebuild *place = &table->place[i];

		if (place->state != 0 && place->database == database && place->index == index)
			return place;
	}
	return NULL;
}

/* Locks the table; returns the place of an index, or NULL. */
static struct smart_rebuild *
lock_and_find(Oid database, Oid index)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	return find(database, index);
}

/* The same, of one that this process loads or rebuilds. */
static struct smart_rebuild *
lock_and_find_running(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	smart_assert(place != NULL && place->state == SMART_REBUILD_RUNNING && place->runner == MyProcPid);
	check_place(place);
	return place;
}

/* May another index have this place?  The older ones go first. */
static bool
is_dispensable(const struct smart_rebuild *place)
{
	return place->worker == 0 &&
		   (place->state == SMART_REBUILD_DONE || (place->state == SMART_REBUILD_WAITING && place->due == DT_NOEND));
}

/* The place of an index, a free one, or the oldest of those that can be spared.  NULL: the table is full. */
static struct smart_rebuild *
take_place(Oid database, Oid index)
{
	struct smart_rebuild *best = find(database, index);

	check_table();
	if (best != NULL)
		return best;
	for (int i = 0; i < PLACES; i++)
	{
		struct smart_rebuild *place = &table->place[i];

		if (place->state == 0)
		{
			best = place;
			break;
		}
		if (is_dispensable(place) && (best == NULL || place->since < best->since))
			best = place;
	}
	if (best != NULL)
	{
		smart_assert(best->state != SMART_REBUILD_RUNNING && best->worker == 0);
		*best = (struct smart_rebuild){.database = database, .index = index};
	}
	return best;
}

static void
enter_state(struct smart_rebuild *place, enum smart_rebuild_state state)
{
	uint32 nrunning = table->nrunning + (state == SMART_REBUILD_RUNNING) - (place->state == SMART_REBUILD_RUNNING);

	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE) && OidIsValid(place->database));
	smart_assert(place->state != SMART_REBUILD_RUNNING || table->nrunning > 0);
	/* Release: who sees that a move has ended sees the change that was announced before.  Partner: is_idle. */
	__atomic_store_n(&table->nrunning, nrunning, __ATOMIC_RELEASE);
	if (place->state != state)
		place->since = GetCurrentTimestamp();
	place->state = state;
	place->runner = state == SMART_REBUILD_RUNNING ? MyProcPid : 0;
	if (state != SMART_REBUILD_RUNNING)
		place->tree = place->side = place->base = place->older = 0;
	place->older_leaf_size = 0;
	place->spoiled = place->sealed = false;
	/* The damaged journal has been given up. */
	if (state != SMART_REBUILD_WAITING)
		place->damaged = false;
	if (state != SMART_REBUILD_RUNNING)
		check_place(place);
}

/* ---- indexes ---- */

bool
smart_rebuild_find(Oid database, Oid index, struct smart_rebuild *found)
{
	const struct smart_rebuild *place;

	if (table == NULL)
		return false;
	LWLockAcquire(lock, LW_SHARED);
	place = find(database, index);
	if (place != NULL)
		*found = *place;
	smart_assert(place == NULL || place->state <= SMART_REBUILD_DONE);
	LWLockRelease(lock);
	return place != NULL;
}

/* Is nothing being loaded, rebuilt or moved?  An index of which that is said here may begin to be so at any moment. */
static inline bool
is_idle(void)
{
	/* Acquire: partner enter_state. */
	return table == NULL || likely(__atomic_load_n(&table->nrunning, __ATOMIC_ACQUIRE) == 0);
}

uint64
smart_rebuild_tree(Oid database, Oid index)
{
	struct smart_rebuild rebuild;

	return !is_idle() && smart_rebuild_find(database, index, &rebuild) && rebuild.state == SMART_REBUILD_RUNNING
			   ? rebuild.tree
			   : 0;
}

static void
want(Oid database, Oid index, bool damaged)
{
	struct smart_rebuild *place;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = take_place(database, index);
	if (place != NULL && place->state != SMART_REBUILD_WAITING && place->state != SMART_REBUILD_RUNNING)
	{
		enter_state(place, SMART_REBUILD_WAITING);
		place->due = place->since;
		place->failures = place->waits = 0;
		place->error[0] = '\0';
		place->damaged = false;
		smart_launcher_wake();
	}
	if (place != NULL && place->state == SMART_REBUILD_WAITING)
		place->damaged |= damaged;
	LWLockRelease(lock);
}

void
smart_rebuild_want(Oid database, Oid index)
{
	struct smart_rebuild known;

	if (table != NULL && (!smart_rebuild_find(database, index, &known) || known.state == SMART_REBUILD_DONE))
		want(database, index, false);
}

void
smart_rebuild_want_anew(Oid database, Oid index)
{
	if (table != NULL)
		want(database, index, true);
}

static bool
begin(Oid database, Oid index, uint64 side, uint64 base, uint64 older, uint32 older_leaf_size)
{
	struct smart_rebuild *place = NULL;

	smart_assert(base != 0 && side != base);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (smart_leaving_reserve_two())
	{
		place = take_place(database, index);
		if (place == NULL)
			smart_leaving_add_two(database, index, 0, 0);
	}
	if (place != NULL)
	{
		smart_assert(place->state != SMART_REBUILD_RUNNING);
		enter_state(place, SMART_REBUILD_RUNNING);
		place->tree = place->side = side;
		place->base = base;
		place->older = older;
		place->older_leaf_size = older_leaf_size;
		check_place(place);
	}
	LWLockRelease(lock);
	return place != NULL;
}

bool
smart_rebuild_begin(Oid database, Oid index, uint64 side, uint64 base, uint64 older)
{
	return begin(database, index, side, base, older, 0);
}

bool
smart_rebuild_begin_move(Oid database, Oid index, uint64 base, uint64 older, uint32 older_leaf_size)
{
	smart_assert(older != 0 && base != older && older_leaf_size != 0);
	return begin(database, index, 0, base, older, older_leaf_size);
}

bool
smart_rebuild_find_move(Oid database, Oid index, struct smart_rebuild *move)
{
	return !is_idle() && smart_rebuild_find(database, index, move) && move->state == SMART_REBUILD_RUNNING &&
		   move->older_leaf_size != 0;
}

void
smart_rebuild_use_base(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find_running(database, index);

	smart_assert(place->tree == place->side && !place->sealed);
	place->tree = place->base;
	LWLockRelease(lock);
}

void
smart_rebuild_cancel(Oid database, Oid index)
{
	struct smart_rebuild known;

	if (smart_rebuild_find(database, index, &known) && known.state == SMART_REBUILD_RUNNING)
		smart_rebuild_end_failed(database, index, NULL, 0);
}

bool
smart_rebuild_invalidate(Oid database, Oid index, uint64 tree)
{
	struct smart_rebuild *place = lock_and_find(database, index);
	bool done;

	done = place != NULL && place->state == SMART_REBUILD_RUNNING && !place->sealed &&
		   (place->side == tree || place->base == tree);
	if (done)
		place->spoiled = true;
	LWLockRelease(lock);
	return done;
}

bool
smart_rebuild_is_invalid(Oid database, Oid index, bool seal)
{
	struct smart_rebuild *place = lock_and_find_running(database, index);
	bool spoiled;

	smart_assert(!place->sealed);
	spoiled = place->spoiled;
	place->sealed = seal && !spoiled;
	check_place(place);
	LWLockRelease(lock);
	return spoiled;
}

void
smart_rebuild_end_failed(Oid database, Oid index, const char *error, int delay_ms)
{
	struct smart_rebuild *place;

	smart_assert(OidIsValid(index) && delay_ms >= 0);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = take_place(database, index);
	/* A worker that finds the table locked leaves alone the session that has locked it, and loads. */
	if (place != NULL && (place->state != SMART_REBUILD_RUNNING || place->runner == MyProcPid))
	{
		if (place->state == SMART_REBUILD_RUNNING)
		{
			check_place(place);
			smart_leaving_add_two(database, index, place->side, place->base);
		}
		enter_state(place, SMART_REBUILD_WAITING);
		place->wants = 0;
		/* A session that rebuilds has claimed nothing. */
		if (place->worker == MyProcPid && place->hastened != table->hastened)
			delay_ms = 0;
		place->due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay_ms);
		if (error == NULL)
			place->waits++;
		else
		{
			place->failures++;
			strlcpy(place->error, error, sizeof(place->error));
		}
	}
	LWLockRelease(lock);
	smart_changes_announce();
}

void
smart_rebuild_put_off(Oid database, Oid index, int delay_ms)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	smart_assert(delay_ms >= 0);
	if (place != NULL && place->state == SMART_REBUILD_WAITING)
		place->due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay_ms);
	LWLockRelease(lock);
}

void
smart_rebuild_hasten(void)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	table->hastened++;
	for (int i = 0; i < PLACES; i++)
	{
		struct smart_rebuild *place = &table->place[i];

		if (place->state == SMART_REBUILD_WAITING && place->due != DT_NOEND)
		{
			place->due = Min(place->due, GetCurrentTimestamp());
			/* What it waited for so long is not what it would wait for next. */
			place->waits = 0;
		}
	}
	LWLockRelease(lock);
	smart_launcher_wake();
}

void
smart_rebuild_end(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find_running(database, index);

	smart_assert(place->sealed && place->tree == place->base);
	smart_leaving_add_two(database, index, place->side, place->older);
	/* Before the move is seen to have ended: nobody uses the new tree with the old number (src/README, J11). */
	if (place->older_leaf_size != 0)
		smart_changes_announce();
	place->moves = false;
	place->wants = 0;
	place->error[0] = '\0';
	enter_state(place, SMART_REBUILD_DONE);
	LWLockRelease(lock);
}

void
smart_rebuild_forget(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	if (place != NULL && place->state == SMART_REBUILD_WAITING)
		memset(place, 0, sizeof(*place));
	LWLockRelease(lock);
}

void
smart_rebuild_leave_alone(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	if (place != NULL && place->state == SMART_REBUILD_WAITING)
	{
		place->due = DT_NOEND;
		place->wants = 0;
	}
	LWLockRelease(lock);
}

bool
smart_rebuild_claim(Oid database, Oid index)
{
	struct smart_rebuild *place;
	bool claimed;

	smart_assert(OidIsValid(index));
	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = take_place(database, index);
	if (place != NULL && place->state == 0)
	{
		enter_state(place, SMART_REBUILD_WAITING);
		place->due = place->since;
	}
	claimed = place == NULL || place->worker == 0;
	if (place != NULL && claimed)
	{
		place->worker = MyProcPid;
		place->hastened = table->hastened;
	}
	LWLockRelease(lock);
	return claimed;
}

void
smart_rebuild_disclaim(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	if (place != NULL && place->worker == MyProcPid)
		place->worker = 0;
	LWLockRelease(lock);
}

void
smart_rebuild_forget_others(Oid database, const List *indexes)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < PLACES; i++)
	{
		struct smart_rebuild *place = &table->place[i];

		if (place->state == SMART_REBUILD_WAITING && place->worker == 0 && place->database == database &&
			OidIsValid(place->index) && !list_member_oid(indexes, place->index))
			memset(place, 0, sizeof(*place));
	}
	LWLockRelease(lock);
}

void
smart_rebuild_forget_database(Oid database)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < PLACES; i++)
	{
		if (table->place[i].database == database && table->place[i].state != SMART_REBUILD_RUNNING)
			memset(&table->place[i], 0, sizeof(table->place[i]));
	}
	smart_leaving_forget_database(database);
	LWLockRelease(lock);
}

bool
smart_rebuild_is_idle(void)
{
	bool idle;

	LWLockAcquire(lock, LW_SHARED);
	idle = smart_leaving_is_empty();
	for (int i = 0; i < PLACES && idle; i++)
		idle = table->place[i].state != SMART_REBUILD_RUNNING &&
			   (table->place[i].state != SMART_REBUILD_WAITING || table->place[i].due == DT_NOEND);
	smart_assert(!idle || table->nrunning == 0);
	LWLockRelease(lock);
	return idle;
}

List *
smart_rebuild_due(void)
{
	TimestampTz now = GetCurrentTimestamp();
	List *databases = NIL;

	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < PLACES; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		if (place->state == SMART_REBUILD_WAITING && place->worker == 0 && place->due <= now)
			databases = list_append_unique_oid(databases, place->database);
	}
	LWLockRelease(lock);
	return databases;
}

void
smart_rebuild_want_memory(Oid database, Oid index, uint64 bytes)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	if (place != NULL)
		place->wants = bytes;
	LWLockRelease(lock);
}

uint64
smart_rebuild_wanted_memory(void)
{
	uint64 bytes = 0;

	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < PLACES; i++)
		bytes += table->place[i].wants;
	LWLockRelease(lock);
	return bytes;
}

bool
smart_rebuild_is_busy(Oid database)
{
	bool busy = false;

	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < PLACES && !busy; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		busy = place->database == database && (place->worker != 0 || place->state == SMART_REBUILD_RUNNING ||
											   (place->state == SMART_REBUILD_WAITING && place->due != DT_NOEND));
	}
	LWLockRelease(lock);
	return busy;
}

void
smart_rebuild_say_move(Oid database, Oid index)
{
	struct smart_rebuild *place = lock_and_find(database, index);

	smart_assert(place == NULL || place->worker == MyProcPid);
	if (place != NULL)
		place->moves = true;
	LWLockRelease(lock);
}

uint32
smart_rebuild_moves(char error[SMART_REBUILD_ERROR_MAX])
{
	TimestampTz last = 0;
	uint32 count = 0;

	error[0] = '\0';
	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < PLACES; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		count += place->state == SMART_REBUILD_RUNNING && place->older_leaf_size != 0;
		if (place->moves && place->error[0] != '\0' && place->since > last)
		{
			last = place->since;
			strlcpy(error, place->error, SMART_REBUILD_ERROR_MAX);
		}
	}
	smart_assert(count <= table->nrunning);
	LWLockRelease(lock);
	return count;
}

bool
smart_rebuild_holds_tree(uint64 tree)
{
	bool found;

	smart_assert(tree != 0);
	LWLockAcquire(lock, LW_SHARED);
	found = smart_leaving_has(tree);
	for (int i = 0; i < PLACES; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		found |= place->state == SMART_REBUILD_RUNNING &&
				 (place->side == tree || place->base == tree || place->older == tree);
	}
	LWLockRelease(lock);
	return found;
}
