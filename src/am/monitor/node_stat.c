/*
 * node_stat.c
 *	  What can be asked about memory nodes: smart_memory_nodes(), and
 *	  smart_index_nodes() for those of an index.
 *
 * Addresses, and problems since they may name one, are for members of
 * pg_read_all_stats, as in pg_stat_replication.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/journal/carry.h"
#include "am/monitor/stat_row.h"
#include "am/nodes/peers.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#define ROOT_BYTES 64 /* of the root slot, which may be on another node than anything else of the tree */

PG_FUNCTION_INFO_V1(smart_memory_nodes);
PG_FUNCTION_INFO_V1(smart_index_nodes);

static bool
may_see_addresses(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/* ---- smart_memory_nodes() ---- */

/* What a row of smart_memory_nodes() tells. */
struct node
{
	int node; /* -1: has none */
	const char *address;
	const char *transport; /* NULL: not known */
	const char *state;
	bool sized; /* the four that follow are known */
	uint64 capacity;
	uint64 allocated;
	uint64 used;
	uint64 trees;
	uint64 round_trip_ns; /* 0: not known */
	TimestampTz since;    /* 0: not known */
	const char *problem;
};

static void
put_node(struct smart_row *row, const struct node *node)
{
	bool visible = may_see_addresses();

	smart_assert(node->node < FABRIC_NODES_MAX && node->address != NULL && node->state != NULL &&
				 node->problem != NULL);
	smart_assert(row->columns == 0);
	smart_row_value(row, Int32GetDatum(node->node), node->node >= 0);
	smart_row_text(row, visible && node->address[0] != '\0' ? node->address : NULL);
	smart_row_text(row, node->transport);
	smart_row_text(row, node->state);
	smart_row_value(row, Int64GetDatum((int64) node->capacity), node->sized);
	smart_row_value(row, Int64GetDatum((int64) node->allocated), node->sized);
	smart_row_value(row, Int64GetDatum((int64) node->used), node->sized);
	smart_row_value(row, Int64GetDatum((int64) node->trees), node->sized);
	smart_row_value(row, Float8GetDatum((double) node->round_trip_ns / 1e6), node->round_trip_ns != 0);
	smart_row_time(row, node->since);
	smart_row_text(row, visible && node->problem[0] != '\0' ? node->problem : NULL);
	smart_rows_add(row);
}

static void
put_embedded(struct smart_row *row)
{
	struct node described = {.address = "embedded",
							 .transport = "local",
							 .state = "down",
							 .problem = smart_server.problem};
	struct smart_space_usage usage;

	smart_assert(!smart_server.remote);
	if (smart_server_available())
	{
		smart_space_usage(&smart_backend_client()->space, &usage);
		described.state = "up";
		described.sized = true;
		described.capacity = usage.max_size;
		described.allocated = usage.size;
		described.used = usage.used;
		described.trees = usage.trees;
	}
	put_node(row, &described);
}

static void
put_peer(struct smart_row *row, int node, const struct smart_peer *peer, uint64 trees)
{
	char address[SMART_ADDRESS_MAX] = "";
	struct smart_node_info info;
	struct node described = {
		.node = node,
		.address = address,
		/* Sessions that are connected go on. */
		.state = smart_peer_state_name(peer->shut ? SMART_PEER_REFUSED : peer->state),
		.capacity = peer->capacity,
		.allocated = peer->allocated,
		.trees = trees,
		.sized = peer->capacity != 0,
		.round_trip_ns = peer->round_trip_ns,
		.since = peer->since,
		.problem = peer->problem,
	};

	smart_assert(node < FABRIC_NODES_MAX && row->columns == 0);
	if (peer->host[0] != '\0')
		smart_peer_address(peer->host, peer->port, address);
	if (peer->transport != 0)
		described.transport = peer->transport == WIRE_TCP ? "tcp" : "verbs";
	if (node >= 0 && !smart_server_recovers() &&
		smart_extents_node_info(&smart_backend_client()->space, (unsigned int) node, &info))
	{
		described.used = info.pages_used * SMART_PAGE_BYTES;
		if (info.closed && peer->state == SMART_PEER_UP)
			described.state = info.chunks == 0 && info.trees == 0 ? "retired" : "retiring";
	}
	put_node(row, &described);
}

/*
 * One row per memory node, or per address where none was found yet; the embedded one is number 0.  What is on them is not known
 * before startup recovery.
 */
PGDLLEXPORT Datum
smart_memory_nodes(PG_FUNCTION_ARGS)
{
	struct smart_row row;
	struct smart_peer peer;
	struct smart_tree_info info;
	uint64 trees[FABRIC_NODES_MAX] = {0};
	uint64 cursor = 0;

	if (smart_server.shared == NULL)
		smart_server_require();
	smart_rows_begin(&row, fcinfo);
	if (smart_server.peers == NULL)
		put_embedded(&row);
	else
	{
		smart_server_require();
		/* By the node that their root is on. */
		while (!smart_server_recovers() && smart_space_next_tree(&smart_backend_client()->space, &cursor, &info))
			trees[fabric_node(info.root)]++;
		for (int place = 0; place < SMART_PEER_PLACES; place++)
		{
			bool numbered = place < FABRIC_NODES_MAX;

			if (smart_peer_get(smart_server.peers, (unsigned int) place, &peer))
				put_peer(&row, numbered ? place : -1, &peer, numbered ? trees[place] : 0);
		}
	}
	PG_RETURN_NULL();
}

/* ---- smart_index_nodes() ---- */

/* On which memory nodes an index lies, also one that is lost; no row if it has no tree, or that is not known yet, or was dropped. */
PGDLLEXPORT Datum
smart_index_nodes(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_try_open(PG_GETARG_OID(0));
	struct smart_row row;
	struct smart_space *space;
	struct smart_tree_info info;
	uint64_t pages[FABRIC_NODES_MAX];
	uint64 tree;

	smart_server_require();
	smart_rows_begin(&row, fcinfo);
	if (index == NULL)
		PG_RETURN_NULL();
	if (smart_server_recovers())
	{
		relation_close(index, AccessShareLock);
		PG_RETURN_NULL();
	}
	space = &smart_backend_client()->space;
	tree = smart_carry_tree(index);
	if (tree == 0)
		tree = smart_relation_tree(index);
	relation_close(index, AccessShareLock);
	if (tree == 0 || !smart_space_tree_info(space, tree, &info) || !smart_space_tree_nodes(space, tree, pages))
		PG_RETURN_NULL();
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		uint64 root = node == fabric_node(info.root) ? ROOT_BYTES : 0;
		char address[SMART_ADDRESS_MAX] = "embedded";
		struct smart_peer peer;
		bool known = true;

		if (pages[node] == 0 && root == 0)
			continue;
		if (smart_server.peers != NULL)
		{
			known = smart_peer_get(smart_server.peers, node, &peer) && peer.host[0] != '\0';
			smart_peer_address(peer.host, peer.port, address);
		}
		smart_row_value(&row, Int32GetDatum((int32) node), true);
		smart_row_text(&row, known && may_see_addresses() ? address : NULL);
		smart_row_count(&row, pages[node] * SMART_PAGE_BYTES + root);
		smart_rows_add(&row);
	}
	PG_RETURN_NULL();
}
