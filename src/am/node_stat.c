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
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "am/open.h"
#include "am/report.h"
#include "am/shared.h"
#include "base/assert.h"
#include "compute/book.h"

#define NODES_COLUMNS       11
#define INDEX_NODES_COLUMNS 3
#define ROOT_BYTES          64 /* of the root slot, which may be on another node than anything else of the tree */

PG_FUNCTION_INFO_V1(smart_memory_nodes);
PG_FUNCTION_INFO_V1(smart_index_nodes);

static bool
may_see_addresses(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

static void
begin_rows(FunctionCallInfo fcinfo, int columns)
{
	InitMaterializedSRF(fcinfo, 0);
	if (((ReturnSetInfo *) fcinfo->resultinfo)->setDesc->natts != columns)
		elog(ERROR, "function %u is declared with other columns than this library returns", fcinfo->flinfo->fn_oid);
}

static void
put_row(FunctionCallInfo fcinfo, Datum *values, bool *isnull)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

/* ---- smart_memory_nodes() ---- */

/* A row of smart_memory_nodes(). */
struct node_row
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
put_node(FunctionCallInfo fcinfo, const struct node_row *row)
{
	Datum values[NODES_COLUMNS] = {0};
	bool isnull[NODES_COLUMNS] = {false};
	bool visible = may_see_addresses();
	int column = 0;

	isnull[column] = row->node < 0;
	values[column++] = Int32GetDatum(row->node);
	isnull[column] = row->address[0] == '\0' || !visible;
	values[column++] = CStringGetTextDatum(row->address);
	isnull[column] = row->transport == NULL;
	values[column++] = row->transport == NULL ? 0 : CStringGetTextDatum(row->transport);
	values[column++] = CStringGetTextDatum(row->state);
	for (int i = 0; i < 4; i++)
		isnull[column + i] = !row->sized;
	values[column++] = Int64GetDatum((int64) row->capacity);
	values[column++] = Int64GetDatum((int64) row->allocated);
	values[column++] = Int64GetDatum((int64) row->used);
	values[column++] = Int64GetDatum((int64) row->trees);
	isnull[column] = row->round_trip_ns == 0;
	values[column++] = Float8GetDatum((double) row->round_trip_ns / 1e6);
	isnull[column] = row->since == 0;
	values[column++] = TimestampTzGetDatum(row->since);
	isnull[column] = row->problem[0] == '\0' || !visible;
	values[column++] = CStringGetTextDatum(row->problem);
	smart_assert(column == NODES_COLUMNS);
	put_row(fcinfo, values, isnull);
}

static void
put_embedded(FunctionCallInfo fcinfo)
{
	struct node_row row = {.address = "embedded",
						   .transport = "local",
						   .state = "down",
						   .problem = smart_server.problem};
	struct smart_space_usage usage;

	if (smart_server_available())
	{
		smart_space_usage(&smart_backend_client()->space, &usage);
		row.state = "up";
		row.sized = true;
		row.capacity = usage.max_size;
		row.allocated = usage.size;
		row.used = usage.used;
		row.trees = usage.trees;
	}
	put_node(fcinfo, &row);
}

/* The trees of this server by the node that their root is on. */
static void
count_trees(uint64 trees[FABRIC_NODES_MAX])
{
	struct smart_tree_info info;
	uint64 cursor = 0;

	memset(trees, 0, FABRIC_NODES_MAX * sizeof(trees[0]));
	while (smart_space_next_tree(&smart_backend_client()->space, &cursor, &info))
		trees[fabric_node(info.root)]++;
}

static void
put_peer(FunctionCallInfo fcinfo, int node, const struct smart_peer *peer, uint64 trees)
{
	char address[SMART_ADDRESS_MAX] = "";
	struct smart_node_info info;
	struct node_row row = {
		.node = node,
		.address = address,
		.state = smart_peer_state_name(peer->state),
		.capacity = peer->capacity,
		.allocated = peer->allocated,
		.trees = trees,
		.sized = peer->capacity != 0,
		.round_trip_ns = peer->round_trip_ns,
		.since = peer->since,
		.problem = peer->problem,
	};

	if (peer->host[0] != '\0')
		smart_peer_address(peer->host, peer->port, address);
	if (peer->transport != 0)
		row.transport = peer->transport == WIRE_TCP ? "tcp" : "verbs";
	if (node >= 0 && smart_book_node_info(&smart_backend_client()->space, (unsigned int) node, &info))
		row.used = info.pages_used * SMART_PAGE_BYTES;
	put_node(fcinfo, &row);
}

/* One row per memory node, or per address where none was found yet; the embedded one is number 0. */
PGDLLEXPORT Datum
smart_memory_nodes(PG_FUNCTION_ARGS)
{
	struct smart_peer peer;
	uint64 trees[FABRIC_NODES_MAX];

	if (smart_server.shared == NULL)
		smart_server_require();
	begin_rows(fcinfo, NODES_COLUMNS);
	if (smart_server.peers == NULL)
		put_embedded(fcinfo);
	else
	{
		smart_server_require();
		count_trees(trees);
		for (int place = 0; place < SMART_PEER_PLACES; place++)
		{
			bool numbered = place < FABRIC_NODES_MAX;

			if (smart_peer_get(smart_server.peers, (unsigned int) place, &peer))
				put_peer(fcinfo, numbered ? place : -1, &peer, numbered ? trees[place] : 0);
		}
	}
	PG_RETURN_NULL();
}

/* ---- smart_index_nodes() ---- */

static void
put_index_node(FunctionCallInfo fcinfo, int node, uint64 bytes)
{
	Datum values[INDEX_NODES_COLUMNS];
	bool isnull[INDEX_NODES_COLUMNS] = {false};
	char address[SMART_ADDRESS_MAX] = "embedded";
	struct smart_peer peer;

	values[0] = Int32GetDatum(node);
	if (smart_server.peers != NULL)
	{
		isnull[1] = !smart_peer_get(smart_server.peers, (unsigned int) node, &peer) || peer.host[0] == '\0';
		smart_peer_address(peer.host, peer.port, address);
	}
	isnull[1] |= !may_see_addresses();
	values[1] = CStringGetTextDatum(address);
	values[2] = Int64GetDatum((int64) bytes);
	put_row(fcinfo, values, isnull);
}

/* On which memory nodes an index lies, also one that is lost; no row if it has no tree, or was dropped a moment ago. */
PGDLLEXPORT Datum
smart_index_nodes(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_try_open(PG_GETARG_OID(0));
	struct smart_space *space;
	struct smart_tree_info info;
	uint64_t pages[FABRIC_NODES_MAX];
	uint64 tree;

	smart_server_require();
	space = &smart_backend_client()->space;
	begin_rows(fcinfo, INDEX_NODES_COLUMNS);
	if (index == NULL)
		PG_RETURN_NULL();
	tree = smart_relation_tree(index);
	relation_close(index, AccessShareLock);
	if (tree == 0 || !smart_space_tree_info(space, tree, &info) || !smart_space_tree_nodes(space, tree, pages))
		PG_RETURN_NULL();
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		uint64 root = node == fabric_node(info.root) ? ROOT_BYTES : 0;

		if (pages[node] != 0 || root != 0)
			put_index_node(fcinfo, (int) node, pages[node] * SMART_PAGE_BYTES + root);
	}
	PG_RETURN_NULL();
}
