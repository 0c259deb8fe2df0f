/*
 * rebuild_table.c
 *	  The table of indexes to rebuild, in shared memory under a lock of its own.
 *
 * It is small and seldom used: an index that has its tree is not in it, or only
 * as one that has been rebuilt.  What every statement asks, whether anything has
 * changed, is a counter outside the lock.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "am/rebuild_table.h"

#define TRANCHE     "smart_rebuild"
#define PLACES      256
#define LEAVING_MAX 256

struct rebuild_table
{
	uint32 changes;  /* by atomics */
	Latch *launcher; /* NULL: none runs */
	uint32 nleaving;
	uint32 nrunning;
	struct smart_rebuild place[PLACES]; /* state 0: free */
	struct smart_leaving_tree leaving[LEAVING_MAX];
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
	bool found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	table = ShmemInitStruct("smart rebuilds", sizeof(struct rebuild_table), &found);
	memset(table, 0, sizeof(*table));
	lock = &GetNamedLWLockTranche(TRANCHE)->lock;
	LWLockRelease(AddinShmemInitLock);
}

/* ---- changes ---- */

uint32
smart_changes(void)
{
	/* Acquire: who sees the number sees what it stands for.  Partner: smart_changes_announce. */
	return table == NULL ? 0 : __atomic_load_n(&table->changes, __ATOMIC_ACQUIRE);
}

void
smart_changes_announce(void)
{
	/*
	 * A full barrier, also before the locks and holds that the caller looks at
	 * next: who took his after that sees the number.
	 */
	if (table != NULL)
		__atomic_fetch_add(&table->changes, 1, __ATOMIC_SEQ_CST);
}

/* ---- indexes; the lock is held ---- */

static struct smart_rebuild *
find(Oid database, Oid index)
{
	for (int i = 0; i < PLACES; i++)
	{
		struct smart_rebuild *place = &table->place[i];

		if (place->state != 0 && place->database == database && place->index == index)
			return place;
	}
	return NULL;
}

/* A place for an index that has none: a free one, or the oldest of those that are only kept.  NULL: the table is full. */
static struct smart_rebuild *
take_place(Oid database, Oid index)
{
	struct smart_rebuild *best = NULL;

	for (int i = 0; i < PLACES; i++)
	{
		struct smart_rebuild *place = &table->place[i];

		if (place->state == 0)
		{
			best = place;
			break;
		}
		if (place->state == SMART_REBUILD_DONE && (best == NULL || place->since < best->since))
			best = place;
	}
	if (best != NULL)
		*best = (struct smart_rebuild){.database = database, .index = index};
	return best;
}

static void
enter_state(struct smart_rebuild *place, enum smart_rebuild_state state)
{
	table->nrunning += (state == SMART_REBUILD_RUNNING) - (place->state == SMART_REBUILD_RUNNING);
	if (place->state != state)
		place->since = GetCurrentTimestamp();
	place->state = state;
	if (state != SMART_REBUILD_RUNNING)
		place->tree = place->side = place->base = place->older = 0;
	place->spoiled = place->sealed = false;
}

/* There is room: smart_rebuild_begin() has seen to it. */
static void
let_leave(Oid database, Oid index, uint64 tree)
{
	smart_assert(table->nleaving < LEAVING_MAX);
	table->leaving[table->nleaving++] = (struct smart_leaving_tree){.database = database, .index = index, .tree = tree};
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
	LWLockRelease(lock);
	return place != NULL;
}

uint64
smart_rebuild_tree(Oid database, Oid index)
{
	struct smart_rebuild rebuild;

	return smart_rebuild_find(database, index, &rebuild) && rebuild.state == SMART_REBUILD_RUNNING ? rebuild.tree : 0;
}

void
smart_rebuild_want(Oid database, Oid index)
{
	struct smart_rebuild known;
	struct smart_rebuild *place;

	if (table == NULL || (smart_rebuild_find(database, index, &known) && known.state != SMART_REBUILD_DONE))
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	if (place == NULL)
		place = take_place(database, index);
	if (place != NULL && place->state != SMART_REBUILD_WAITING && place->state != SMART_REBUILD_RUNNING)
	{
		enter_state(place, SMART_REBUILD_WAITING);
		place->due = place->since;
		place->failures = place->waits = 0;
		place->error[0] = '\0';
		if (table->launcher != NULL)
			SetLatch(table->launcher);
	}
	LWLockRelease(lock);
}

bool
smart_rebuild_begin(Oid database, Oid index, uint64 side, uint64 base, uint64 older)
{
	struct smart_rebuild *place = NULL;

	smart_assert(side != 0 && base != 0);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	/* However they end, two trees have to leave for each that runs. */
	if (table->nleaving + 2 * table->nrunning + 2 <= LEAVING_MAX)
	{
		place = find(database, index);
		if (place == NULL)
			place = take_place(database, index);
	}
	if (place != NULL)
	{
		enter_state(place, SMART_REBUILD_RUNNING);
		place->tree = place->side = side;
		place->base = base;
		place->older = older;
	}
	LWLockRelease(lock);
	return place != NULL;
}

void
smart_rebuild_use_base(Oid database, Oid index)
{
	struct smart_rebuild *place;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	smart_assert(place != NULL && place->state == SMART_REBUILD_RUNNING);
	place->tree = place->base;
	LWLockRelease(lock);
}

bool
smart_rebuild_spoil(Oid database, Oid index, uint64 tree)
{
	struct smart_rebuild *place;
	bool done;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	done = place != NULL && place->state == SMART_REBUILD_RUNNING && !place->sealed &&
		   (place->side == tree || place->base == tree);
	if (done)
		place->spoiled = true;
	LWLockRelease(lock);
	return done;
}

bool
smart_rebuild_is_spoiled(Oid database, Oid index, bool seal)
{
	struct smart_rebuild *place;
	bool spoiled;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	smart_assert(place != NULL && place->state == SMART_REBUILD_RUNNING);
	spoiled = place->spoiled;
	place->sealed = seal && !spoiled;
	LWLockRelease(lock);
	return spoiled;
}

void
smart_rebuild_end_failed(Oid database, Oid index, const char *error, int delay_ms)
{
	struct smart_rebuild *place;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	if (place == NULL)
		place = take_place(database, index);
	if (place != NULL)
	{
		if (place->state == SMART_REBUILD_RUNNING)
		{
			let_leave(database, index, place->side);
			let_leave(database, index, place->base);
		}
		enter_state(place, SMART_REBUILD_WAITING);
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
}

void
smart_rebuild_end(Oid database, Oid index)
{
	struct smart_rebuild *place;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	smart_assert(place != NULL && place->state == SMART_REBUILD_RUNNING);
	let_leave(database, index, place->side);
	if (place->older != 0)
		let_leave(database, index, place->older);
	enter_state(place, SMART_REBUILD_DONE);
	LWLockRelease(lock);
}

void
smart_rebuild_forget(Oid database, Oid index)
{
	struct smart_rebuild *place;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find(database, index);
	if (place != NULL && place->state == SMART_REBUILD_WAITING)
		memset(place, 0, sizeof(*place));
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
	for (uint32 i = 0; i < table->nleaving;)
	{
		/* Its trees are the sweeper's: nobody can be connected to the database. */
		if (table->leaving[i].database == database)
			table->leaving[i] = table->leaving[--table->nleaving];
		else
			i++;
	}
	LWLockRelease(lock);
}

static int
add_once(Oid *oids, int count, int max, Oid oid)
{
	for (int i = 0; i < count; i++)
	{
		if (oids[i] == oid)
			return count;
	}
	if (count < max)
		oids[count++] = oid;
	return count;
}

bool
smart_rebuild_is_idle(void)
{
	bool idle;

	LWLockAcquire(lock, LW_SHARED);
	idle = table->nleaving == 0;
	for (int i = 0; i < PLACES && idle; i++)
		idle = table->place[i].state != SMART_REBUILD_WAITING && table->place[i].state != SMART_REBUILD_RUNNING;
	LWLockRelease(lock);
	return idle;
}

int
smart_rebuild_due(Oid *databases, int max)
{
	TimestampTz now = GetCurrentTimestamp();
	int count = 0;

	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < PLACES; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		if (place->state == SMART_REBUILD_WAITING && place->due <= now)
			count = add_once(databases, count, max, place->database);
	}
	for (uint32 i = 0; i < table->nleaving; i++)
		count = add_once(databases, count, max, table->leaving[i].database);
	LWLockRelease(lock);
	return count;
}

int
smart_rebuild_waiting(Oid database, Oid *indexes, int max)
{
	int count = 0;

	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < PLACES && count < max; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		if (place->state == SMART_REBUILD_WAITING && place->database == database)
			indexes[count++] = place->index;
	}
	LWLockRelease(lock);
	return count;
}

/* ---- trees that leave ---- */

int
smart_leaving_trees(Oid database, struct smart_leaving_tree *trees, int max)
{
	int count = 0;

	LWLockAcquire(lock, LW_SHARED);
	for (uint32 i = 0; i < table->nleaving && count < max; i++)
	{
		if (table->leaving[i].database == database)
			trees[count++] = table->leaving[i];
	}
	LWLockRelease(lock);
	return count;
}

void
smart_leaving_done(uint64 tree)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < table->nleaving; i++)
	{
		if (table->leaving[i].tree == tree)
		{
			table->leaving[i] = table->leaving[--table->nleaving];
			break;
		}
	}
	LWLockRelease(lock);
}

bool
smart_rebuild_holds_tree(uint64 tree)
{
	bool holds = false;

	LWLockAcquire(lock, LW_SHARED);
	for (uint32 i = 0; i < table->nleaving; i++)
		holds |= table->leaving[i].tree == tree;
	for (int i = 0; i < PLACES; i++)
	{
		const struct smart_rebuild *place = &table->place[i];

		holds |= place->state == SMART_REBUILD_RUNNING &&
				 (place->side == tree || place->base == tree || place->older == tree);
	}
	LWLockRelease(lock);
	return holds;
}

/* ---- the launcher ---- */

void
smart_rebuild_set_launcher(bool here)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	table->launcher = here ? MyLatch : NULL;
	LWLockRelease(lock);
}
