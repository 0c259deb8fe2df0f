/*
 * leaving_table.c
 *	  The table of trees that leave, in shared memory under a lock of its own, which is the last one that anybody takes.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "am/server/leaving_table.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define TRANCHE "smart_leaving"
#define PLACES  256

struct leaving_table
{
	uint32 count;
	uint32 reserved; /* places, two for each rebuild that runs */
	struct smart_leaving_tree place[PLACES];
};

static struct leaving_table *table;
static LWLock *lock;

void
smart_leaving_table_request(void)
{
	RequestAddinShmemSpace(sizeof(struct leaving_table));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
smart_leaving_table_make(void)
{
	table = smart_shared_make("smart leaving trees", sizeof(*table));
	lock = &GetNamedLWLockTranche(TRANCHE)->lock;
}

static inline void
check_table(void)
{
	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE));
	smart_assert(table->reserved % 2 == 0 && table->count + table->reserved <= PLACES);
}

/* ---- who gives trees up ---- */

/* There is room; the lock is held. */
static void
put(Oid database, Oid index, uint64 tree)
{
	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE) && tree != 0);
	smart_assert(table->count < PLACES);
	table->place[table->count++] = (struct smart_leaving_tree){.database = database, .index = index, .tree = tree};
}

bool
smart_leaving_add(Oid database, Oid index, uint64 tree)
{
	bool room;

	smart_assert(tree != 0 && OidIsValid(index));
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	room = table->count + table->reserved < PLACES;
	if (room)
		put(database, index, tree);
	LWLockRelease(lock);
	return room;
}

bool
smart_leaving_reserve_two(void)
{
	bool room;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	room = table->count + table->reserved + 2 <= PLACES;
	if (room)
		table->reserved += 2;
	LWLockRelease(lock);
	return room;
}

void
smart_leaving_add_two(Oid database, Oid index, uint64 one, uint64 other)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	smart_assert(table->reserved >= 2);
	table->reserved -= 2;
	if (one != 0)
		put(database, index, one);
	if (other != 0)
		put(database, index, other);
	check_table();
	LWLockRelease(lock);
}

/* ---- who frees them ---- */

List *
smart_leaving_due(void)
{
	List *databases = NIL;

	LWLockAcquire(lock, LW_SHARED);
	smart_assert(table->count <= PLACES);
	for (uint32 i = 0; i < table->count; i++)
		databases = list_append_unique_oid(databases, table->place[i].database);
	LWLockRelease(lock);
	return databases;
}

int
smart_leaving_trees(Oid database, struct smart_leaving_tree *trees, int max)
{
	int count = 0;

	smart_assert(OidIsValid(database) && max > 0);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	for (uint32 i = 0; i < table->count && count < max; i++)
	{
		struct smart_leaving_tree *leaving = &table->place[i];

		if (leaving->database != database || (leaving->worker != 0 && leaving->worker != MyProcPid))
			continue;
		leaving->worker = MyProcPid;
		trees[count++] = *leaving;
	}
	LWLockRelease(lock);
	smart_assert(count <= max);
	return count;
}

void
smart_leaving_release(void)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	for (uint32 i = 0; i < table->count; i++)
	{
		if (table->place[i].worker == MyProcPid)
			table->place[i].worker = 0;
	}
	LWLockRelease(lock);
}

void
smart_leaving_done(uint64 tree)
{
	smart_assert(tree != 0);
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	for (uint32 i = 0; i < table->count; i++)
	{
		if (table->place[i].tree == tree)
		{
			table->place[i] = table->place[--table->count];
			break;
		}
	}
	LWLockRelease(lock);
}

void
smart_leaving_forget_database(Oid database)
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
	check_table();
	for (uint32 i = 0; i < table->count;)
	{
		if (table->place[i].database == database)
			table->place[i] = table->place[--table->count];
		else
			i++;
	}
	LWLockRelease(lock);
}

/* ---- questions ---- */

int
smart_leaving_trees_of(Oid database, Oid index, uint64 *trees, int max)
{
	int count = 0;

	smart_assert(OidIsValid(index) && max > 0);
	LWLockAcquire(lock, LW_SHARED);
	for (uint32 i = 0; i < table->count && count < max; i++)
	{
		if (table->place[i].database == database && table->place[i].index == index)
			trees[count++] = table->place[i].tree;
	}
	LWLockRelease(lock);
	return count;
}

bool
smart_leaving_has(uint64 tree)
{
	bool found = false;

	smart_assert(tree != 0);
	LWLockAcquire(lock, LW_SHARED);
	for (uint32 i = 0; i < table->count && !found; i++)
		found = table->place[i].tree == tree;
	LWLockRelease(lock);
	return found;
}

bool
smart_leaving_is_empty(void)
{
	bool empty;

	LWLockAcquire(lock, LW_SHARED);
	empty = table->count == 0;
	LWLockRelease(lock);
	return empty;
}
