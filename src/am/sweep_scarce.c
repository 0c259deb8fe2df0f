/*
 * sweep_scarce.c
 *	  Sweeping before a tree is made, where there might be no room for it as long
 *	  as what was dropped a moment ago is there.
 *
 * A tree that is being filled cannot wait for a sweep: the catalogs cannot be read from
 * within it.  So it is done before.  It reads all metapages of the database, hence only
 * if somebody has dropped something since, and only if memory is well used.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/memutils.h"

#include "am/server.h"
#include "am/shared.h"
#include "am/sweep.h"
#include "am/sweep_worker.h"

#define PLENTY 4 /* as long as only one part in so many is used */

/* Bytes that this server's trees can have, on memory nodes those that others have left. */
static uint64
reachable_bytes(const struct smart_space_usage *usage)
{
	uint64 capacity = 0;
	uint64 allocated = 0;
	struct smart_peer peer;

	if (!smart_server_is_remote())
		return usage->max_size;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (!smart_peer_get(smart_server.peers, node, &peer) || peer.state != SMART_PEER_UP)
			continue;
		capacity += peer.capacity;
		allocated += peer.allocated;
	}
	/* What the nodes say may be a second old. */
	return allocated > usage->size ? capacity - (allocated - usage->size) : capacity;
}

static bool
is_scarce(void)
{
	struct smart_space_usage usage;

	smart_space_usage(&smart_backend_client()->space, &usage);
	return usage.used > reachable_bytes(&usage) / PLENTY;
}

/* How often something was dropped. */
static uint64
count_wishes(void)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;
	uint64 ever;

	SpinLockAcquire(&wishes->lock);
	ever = wishes->ever;
	SpinLockRelease(&wishes->lock);
	return ever;
}

static void
sweep(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart sweep", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_survey survey;
	struct smart_swept swept = {0};

	smart_survey(&survey, false);
	smart_sweep_surveyed(&survey, &swept);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

void
smart_sweep_if_scarce(void)
{
	static uint64 seen = 0;
	uint64 ever = count_wishes();

	if (ever == seen || IsInParallelMode() || !OidIsValid(MyDatabaseId) || !is_scarce())
		return;
	sweep();
	seen = ever;
}
