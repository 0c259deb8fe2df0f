/*
 * shared.c
 *	  Shared memory and locks.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "am/settings.h"
#include "am/shared.h"

#define SPACE_TRANCHE  "smart_space"
#define LEAVES_TRANCHE "smart_leaf"
#define SPACE_LOCKS    SMART_LOCK_LEAF(0)

/* Every part begins with a cache line of its own, and with the next one's, which the processor fetches too. */
#define PART_ALIGNMENT 128

struct smart_server smart_server;

/* ---- locks ---- */

static LWLock *
lock_of(unsigned int lock)
{
	smart_assert(lock < SMART_LOCK_COUNT);
	return lock < SPACE_LOCKS ? &smart_server.space_locks[lock].lock
							  : &smart_server.leaf_locks[lock - SPACE_LOCKS].lock;
}

static void
acquire_lock(struct smart_lock_table *table, unsigned int lock)
{
	LWLockAcquire(lock_of(lock), LW_EXCLUSIVE);
}

static void
release_lock(struct smart_lock_table *table, unsigned int lock)
{
	LWLockRelease(lock_of(lock));
}

static struct smart_lock_table lock_table = {acquire_lock, release_lock};

/* ---- shared memory ---- */

/* Where the parts lie in it. */
struct layout
{
	Size epoch;
	Size interlock;
	Size peers;
	Size leaf_locks;
	Size rdwc;
	Size cache; /* last: it sets itself up, and is large */
	Size end;
};

static Size
add_part(Size *end, Size bytes)
{
	Size from = TYPEALIGN(PART_ALIGNMENT, *end);

	*end = from + bytes;
	return from;
}

static Size
cache_bytes(void)
{
	return (Size) smart_settings.cache_size_mb << 20;
}

static struct layout
lay_out(void)
{
	struct layout layout = {.end = sizeof(struct smart_shared)};

	layout.epoch = add_part(&layout.end, smart_epoch_size(MaxBackends));
	layout.interlock = add_part(&layout.end, smart_interlock_size(MaxBackends));
	if (smart_server.remote)
	{
		layout.peers = add_part(&layout.end, sizeof(struct smart_peers));
		layout.leaf_locks = add_part(&layout.end, sizeof(struct smart_leaf_locks));
		layout.rdwc = add_part(&layout.end, smart_rdwc_size(SMART_RDWC_PLACES, MaxBackends));
	}
	layout.cache = add_part(&layout.end, 0);
	if (smart_server.remote && cache_bytes() > 0)
		layout.cache = add_part(&layout.end, smart_cache_size(cache_bytes(), MaxBackends));
	return layout;
}

void
smart_shared_request(void)
{
	RequestAddinShmemSpace(lay_out().end + PART_ALIGNMENT);
	RequestNamedLWLockTranche(SPACE_TRANCHE, SPACE_LOCKS);
	RequestNamedLWLockTranche(LEAVES_TRANCHE, SMART_LOCK_LEAVES);
	if (smart_server.remote)
		smart_peers_request();
}

void
smart_shared_make(uint64 epoch)
{
	struct layout layout = lay_out();
	struct smart_compute *compute = &smart_server.compute;
	struct smart_shared *shared;
	bool found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = (struct smart_shared *) TYPEALIGN(PART_ALIGNMENT,
											   ShmemInitStruct("smart", layout.end + PART_ALIGNMENT, &found));
	memset(shared, 0, layout.cache);
	smart_server.shared = shared;
	smart_server.space_locks = GetNamedLWLockTranche(SPACE_TRANCHE);
	smart_server.leaf_locks = GetNamedLWLockTranche(LEAVES_TRANCHE);
	compute->region = &smart_server.region;
	compute->locks = &lock_table;
	compute->epoch = (struct smart_epoch_shared *) ((char *) shared + layout.epoch);
	compute->interlock = (struct smart_interlock_shared *) ((char *) shared + layout.interlock);
	do
		shared->server_incarnation = pg_prng_uint64(&pg_global_prng_state);
	while (shared->server_incarnation == 0);
	smart_gate_init(&shared->gate);
	smart_rdwc_base_init(&shared->rdwc);
	ConditionVariableInit(&shared->interlock_wait);
	smart_fabric_totals_init(&shared->fabric);
	smart_sweep_wishes_init(&shared->sweep);
	smart_epoch_init(compute->epoch, MaxBackends, epoch);
	smart_interlock_init(compute->interlock, MaxBackends);
	if (smart_server.remote)
	{
		smart_server.peers = (struct smart_peers *) ((char *) shared + layout.peers);
		smart_peers_init(smart_server.peers);
		compute->leaf_locks = (struct smart_leaf_locks *) ((char *) shared + layout.leaf_locks);
		compute->rdwc = (struct smart_rdwc *) ((char *) shared + layout.rdwc);
		smart_rdwc_init(compute->rdwc, SMART_RDWC_PLACES, MaxBackends);
	}
	if (layout.end > layout.cache)
	{
		compute->cache = (struct smart_cache *) ((char *) shared + layout.cache);
		smart_cache_init(compute->cache, cache_bytes(), MaxBackends, shared->server_incarnation);
	}
	LWLockRelease(AddinShmemInitLock);
}
