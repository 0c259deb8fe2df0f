/*
 * key_memory.c
 *	  The memory for what is known of single keys of runs (src/README, J16 and J17).
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "storage/shmem.h"

#include "am/server/key_memory.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define TRANCHE      "smart_key_memory"
#define BEHIND_NODES 8 /* with memory nodes the share of smart.cache_size, besides */
#define CLEARED_MAX  (UINT64CONST(64) * 1024 * 1024 / SMART_KEY_UNIT) /* units on each side: others wait for the lock */

struct unit
{
	uint64 word[SMART_KEY_UNIT / sizeof(uint64)];
};

/* Changed with the lock held, and loaded without it as the version tells. */
struct key_memory
{
	uint64 units;
	uint64 version;              /* odd: left is being changed */
	struct smart_key_piece left; /* the cache's */
};

static struct key_memory *shared;
static struct unit *memory;
static LWLock *lock;

static Size
memory_size(void)
{
	Size bytes = (Size) smart_settings.cache_size_mb << 20;

	return smart_server.remote ? bytes / BEHIND_NODES : bytes;
}

void
smart_key_memory_request(void)
{
	RequestAddinShmemSpace(sizeof(struct key_memory));
	RequestAddinShmemSpace(memory_size() + PG_CACHE_LINE_SIZE);
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
smart_key_memory_make(void)
{
	bool found;

	shared = smart_shared_make("smart key memory", sizeof(*shared));
	shared->units = memory_size() / sizeof(struct unit);
	lock = &GetNamedLWLockTranche(TRANCHE)->lock;
	/* It begins with zeros, as the kernel gives it, and memory that nobody needs is not touched. */
	memory =
		(struct unit *) CACHELINEALIGN(ShmemInitStruct("smart key units", memory_size() + PG_CACHE_LINE_SIZE, &found));
	shared->left.count = shared->units;
}

uint64
smart_key_memory_units(void)
{
	return shared == NULL ? 0 : shared->units;
}

void *
smart_key_memory_unit(uint64 unit)
{
	smart_assert(unit < shared->units);
	return &memory[unit];
}

LWLock *
smart_key_memory_lock(void)
{
	return lock;
}

/* Relaxed stores: somebody may look who does not know yet that it is not his any more. */
static void
clear(uint64 first, uint64 end)
{
	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE) && first <= end && end <= shared->units);
	for (uint64 i = first; i < end; i++)
	{
		for (size_t word = 0; word < lengthof(memory[i].word); word++)
			__atomic_store_n(&memory[i].word[word], 0, __ATOMIC_RELAXED);
	}
}

/* As much of a piece as is to be cleared at once. */
static struct smart_key_piece
limit(const struct smart_key_piece *piece, const struct smart_key_piece *before)
{
	uint64 end = piece->first + piece->count;
	uint64 first_of_both = Max(piece->first, Min(before->first, end));
	uint64 end_of_both = Max(first_of_both, Min(before->first + before->count, end));
	uint64 first = first_of_both - Min(first_of_both - piece->first, CLEARED_MAX);

	smart_assert(first >= piece->first && first <= end);
	return (struct smart_key_piece){.first = first, .count = Min(end, end_of_both + CLEARED_MAX) - first};
}

void
smart_key_memory_leave(const struct smart_key_piece *piece)
{
	const struct smart_key_piece before = shared->left;
	const struct smart_key_piece left = limit(piece, &before);
	uint64 end = left.first + left.count;

	smart_assert(LWLockHeldByMeInMode(lock, LW_EXCLUSIVE) && shared->version % 2 == 0 && end <= shared->units);
	if (left.first == before.first && left.count == before.count)
		return;
	__atomic_store_n(&shared->version, shared->version + 1, __ATOMIC_RELAXED);
	/* Who sees what is stored from now on, also by whoever gets the other units, sees the odd version, or a later one. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* What both have keeps its records: each of them says what it is of. */
	clear(left.first, Min(end, Max(left.first, before.first)));
	clear(Max(left.first, Min(end, before.first + before.count)), end);
	__atomic_store_n(&shared->left.first, left.first, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->left.count, left.count, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->version, shared->version + 1, __ATOMIC_RELEASE);
}

bool
smart_key_memory_look(struct smart_key_piece *piece, uint64 *version)
{
	if (shared == NULL)
		return false;
	/* Acquire, partner of the last store of smart_key_memory_leave(): what is loaded next is no older than the version. */
	*version = __atomic_load_n(&shared->version, __ATOMIC_ACQUIRE);
	piece->first = __atomic_load_n(&shared->left.first, __ATOMIC_RELAXED);
	piece->count = __atomic_load_n(&shared->left.count, __ATOMIC_RELAXED);
	return *version % 2 == 0 && smart_key_memory_is_left(*version);
}

bool
smart_key_memory_is_left(uint64 version)
{
	smart_assert(version % 2 == 0);
	/* What was loaded comes before this look; the partner is the fence of smart_key_memory_leave(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&shared->version, __ATOMIC_RELAXED) == version;
}
