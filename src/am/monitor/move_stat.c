/*
 * move_stat.c
 *	  SQL functions about trees that move to other memory nodes: smart_retire_node(), smart_rebalance() and smart_moves().
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "am/index/backend.h"
#include "am/index/trees.h"
#include "am/maintenance/balance.h"
#include "am/monitor/stat_row.h"
#include "am/nodes/endpoint.h"
#include "am/nodes/peers.h"
#include "am/server/launcher_requests.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#define ROOT_BYTES 64 /* of the root slot, which may be on another node than anything else of the tree */

PG_FUNCTION_INFO_V1(smart_retire_node);
PG_FUNCTION_INFO_V1(smart_rebalance);
PG_FUNCTION_INFO_V1(smart_moves);

/* The space of a server with memory nodes.  FEATURE_NOT_SUPPORTED: it has none; READ_ONLY_SQL_TRANSACTION: a standby. */
static struct smart_space *
require_nodes(const char *function)
{
	smart_server_require();
	PreventCommandDuringRecovery(function);
	if (!smart_server.remote)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this server has no memory nodes"),
				errhint("Its indexes are in its own memory.  Set smart.memory_nodes to change that."));
	return &smart_backend_client()->space;
}

/* ---- taking a node away ---- */

static bool
is_in_use(struct smart_space *space, unsigned int node, struct smart_node_info *info)
{
	return smart_extents_node_info(space, node, info) && info->state == SMART_NODE_ACTIVE;
}

/* The number of the node in use at an address, as smart_memory_nodes shows it.  UNDEFINED_OBJECT: there is none. */
static unsigned int
find_node(struct smart_space *space, const char *wanted)
{
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		char address[SMART_ADDRESS_MAX];
		struct smart_node_info info;
		struct smart_peer peer;

		if (!is_in_use(space, node, &info) || !smart_peer_get(smart_server.peers, node, &peer) || peer.host[0] == '\0')
			continue;
		smart_peer_address(peer.host, peer.port, address);
		if (strcmp(address, wanted) == 0)
			return node;
	}
	ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no memory node in use at \"%s\"", wanted),
			errhint("The view smart_memory_nodes shows the addresses."));
}

/* Is there another node that what is on this one could move to? */
static bool
has_other(struct smart_space *space, unsigned int node)
{
	struct smart_node_info info;

	smart_assert(node < FABRIC_NODES_MAX);
	for (unsigned int other = 0; other < FABRIC_NODES_MAX; other++)
	{
		if (other != node && is_in_use(space, other, &info) && !info.closed)
			return true;
	}
	return false;
}

static void
retire(struct smart_space *space, unsigned int node, const char *address)
{
	smart_assert(smart_server.remote && node < FABRIC_NODES_MAX);
	if (!has_other(space, node))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("no memory node is left that what is on \"%s\" could move to", address),
				errhint("Add one to smart.memory_nodes first."));
	smart_extents_set_note(space, node, 0);
	smart_space_close_node(space, node, true);
	smart_moves_request();
	ereport(LOG, errmsg("memory node %u at %s is retired", node, address));
}

static void
cancel_retirement(struct smart_space *space, unsigned int node, const char *address)
{
	smart_assert(smart_server.remote && node < FABRIC_NODES_MAX);
	smart_space_close_node(space, node, false);
	ereport(LOG, errmsg("memory node %u at %s stays in use", node, address));
}

/*
 * smart_retire_node(address text, cancel boolean)
 *
 * The memory node is going to be taken away: nothing new is put there, and what is on it moves to the others, in the
 * background.  With cancel it stays in use, with what has not moved yet.  Errors: those of require_nodes(),
 * UNDEFINED_OBJECT, OBJECT_NOT_IN_PREREQUISITE_STATE (no other one is left).
 */
PGDLLEXPORT Datum
smart_retire_node(PG_FUNCTION_ARGS)
{
	struct smart_space *space = require_nodes("smart_retire_node()");
	const char *address = text_to_cstring(PG_GETARG_TEXT_PP(0));
	unsigned int node = find_node(space, address);

	if (PG_GETARG_BOOL(1))
		cancel_retirement(space, node, address);
	else
		retire(space, node, address);
	PG_RETURN_VOID();
}

/* ---- evening out ---- */

/*
 * smart_rebalance(cancel boolean) returns bigint
 *
 * Has so many trees moved that no memory node in use is much fuller than the others, in the background; returns how many.
 * With cancel, trees that have not moved yet stay where they are: returns 0.  Errors: those of require_nodes().
 */
PGDLLEXPORT Datum
smart_rebalance(PG_FUNCTION_ARGS)
{
	struct smart_space *space = require_nodes("smart_rebalance()");
	uint64 chosen = 0;

	if (PG_GETARG_BOOL(0))
		smart_balance_forget(space);
	else
	{
		chosen = smart_balance_choose(space);
		smart_moves_request();
	}
	PG_RETURN_INT64((int64) chosen);
}

/* ---- how far it is ---- */

/* What is left to move: by node that is closed, and, last, of the trees that were chosen. */
struct left
{
	uint64 trees[FABRIC_NODES_MAX + 1];
	uint64 bytes[FABRIC_NODES_MAX + 1];
};

static void
count_tree(struct smart_space *space, const struct smart_tree_info *info, struct left *left)
{
	uint64_t pages[FABRIC_NODES_MAX];

	smart_assert(info->id != 0);
	if (smart_tree_is_chosen(info))
	{
		left->trees[FABRIC_NODES_MAX]++;
		left->bytes[FABRIC_NODES_MAX] += info->bytes;
	}
	if (info->lost || !smart_space_tree_nodes(space, info->id, pages))
		return;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		uint64 root = node == fabric_node(info->root) ? ROOT_BYTES : 0;

		left->trees[node] += pages[node] != 0 || root != 0;
		left->bytes[node] += pages[node] * SMART_PAGE_BYTES + root;
	}
}

static void
put_row(struct smart_row *row, int node, const char *reason, uint64 trees, uint64 bytes)
{
	char error[SMART_REBUILD_ERROR_MAX];
	char address[SMART_ADDRESS_MAX];
	struct smart_peer peer;
	bool visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	bool known = node >= 0 && smart_peer_get(smart_server.peers, (unsigned int) node, &peer) && peer.host[0] != '\0';
	uint32 running = smart_rebuild_moves(error);

	smart_assert(node < FABRIC_NODES_MAX && row->columns == 0);
	if (known)
		smart_peer_address(peer.host, peer.port, address);
	smart_row_value(row, Int32GetDatum(node), node >= 0);
	smart_row_text(row, known && visible ? address : NULL);
	smart_row_text(row, reason);
	smart_row_count(row, trees);
	smart_row_count(row, bytes);
	smart_row_count(row, running);
	smart_row_text(row, visible && trees > 0 && error[0] != '\0' ? error : NULL);
	smart_rows_add(row);
}

/* A row for each memory node that is to be taken away, and one if trees are to be moved to even out the others. */
PGDLLEXPORT Datum
smart_moves(PG_FUNCTION_ARGS)
{
	struct left *left = palloc0(sizeof(*left));
	struct smart_space *space;
	struct smart_row row;
	struct smart_node_info node_info;
	struct smart_tree_info info;
	uint64 cursor = 0;

	smart_server_require();
	smart_rows_begin(&row, fcinfo);
	if (!smart_server.remote)
		PG_RETURN_NULL();
	space = &smart_backend_client()->space;
	while (smart_space_next_tree(space, &cursor, &info))
		count_tree(space, &info, left);
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (is_in_use(space, node, &node_info) && node_info.closed)
			put_row(&row, (int) node, node_info.note == SMART_NODE_UNNAMED ? "not named" : "retired", left->trees[node],
					left->bytes[node]);
	}
	if (left->trees[FABRIC_NODES_MAX] > 0)
		put_row(&row, -1, "rebalance", left->trees[FABRIC_NODES_MAX], left->bytes[FABRIC_NODES_MAX]);
	PG_RETURN_NULL();
}
