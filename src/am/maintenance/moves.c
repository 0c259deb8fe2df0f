/*
 * moves.c
 *	  The launcher's job for trees that have to move.
 *
 * A tree has to move when it has a part on a memory node that is closed, which is said in the extent map and outlives the
 * server.  The directory does not name the indexes, so the launcher has the databases of such trees searched, as for lost
 * indexes (rebuild_worker.c).  A tree that no index has, which a crash has left, say, does not move: it is for the orphan
 * collector, who may have come too early the last time, so that it is asked to come again.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/trees.h"
#include "am/maintenance/moves.h"
#include "am/server/launcher_requests.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#define LOOK_MS 1000  /* between two looks at the trees, while some have to move */
#define IDLE_MS 60000 /* else; who changes that wakes the launcher */

#define COLLECT_MS 10000 /* between two requests to collect orphans */

/* Has the databases searched whose trees have to move, unless that is under way; returns whether there are any. */
static bool
want_moves(struct smart_space *space)
{
	static TimestampTz next_collection = 0;
	TimestampTz now = GetCurrentTimestamp();
	bool collects = now >= next_collection;
	struct smart_tree_info info;
	uint64 cursor = 0;
	Oid last = InvalidOid;
	bool found = false;

	while (smart_space_next_tree(space, &cursor, &info))
	{
		smart_assert(info.id != 0);
		CHECK_FOR_INTERRUPTS();
		if ((found && info.owner.database == last) || info.owner.backend != SMART_NO_BACKEND ||
			!smart_tree_has_to_move(&info))
			continue;
		found = true;
		last = info.owner.database;
		if (smart_rebuild_holds_tree(info.id))
			continue;
		if (!smart_rebuild_is_busy(last))
			smart_rebuild_want(last, InvalidOid);
		if (collects)
		{
			smart_orphans_request(last);
			next_collection = TimestampTzPlusMilliseconds(now, COLLECT_MS);
		}
	}
	return found;
}

/* Is anything left on a memory node that shall be taken away? */
static bool
has_closed_node(struct smart_space *space)
{
	struct smart_node_info info;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (smart_space_node_is_closed(space, node) && smart_extents_node_info(space, node, &info) &&
			(info.chunks > 0 || info.trees > 0))
			return true;
	}
	return false;
}

long
smart_moves_tend(struct smart_job *job)
{
	static TimestampTz next = 0;
	static bool some = true; /* trees that have to move were found at the last look */
	TimestampTz now = GetCurrentTimestamp();
	struct smart_space *space;

	if (IsBinaryUpgrade || RecoveryInProgress() || !smart_server.remote || !smart_server_available() ||
		smart_server_recovers())
		return IDLE_MS;
	space = &smart_backend_client()->space;
	if (smart_moves_take_request())
		some = true;
	if (!some && !has_closed_node(space))
		return IDLE_MS;
	if (now >= next)
	{
		some = want_moves(space);
		next = TimestampTzPlusMilliseconds(now, LOOK_MS);
	}
	return LOOK_MS;
}
