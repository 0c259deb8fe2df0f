/*
 * settings.c
 *	  The server's settings, smart.*, and which values they may have.
 *
 * Whether the indexes live on memory nodes or in a region of the server's own is decided when the server starts;
 * which memory nodes there are may change with a reload.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "am/compat.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/region.h"
#include "rdma/discovery.h"

#define MAX_SIZE_MB               65536
#define SPREAD_ABOVE_DEFAULT_MB   64
#define SPREAD_ABOVE_MAX_MB       1048576
#define CACHE_DEFAULT_MB          64
#define CACHE_MAX_MB              65536
#define NODE_DOWN_AFTER_DEFAULT_S 2
#define NODE_DOWN_AFTER_MAX_S     86400
#define NODE_LOST_AFTER_DEFAULT_S 60
#define TIMEOUT_DEFAULT_MS        10000
#define TIMEOUT_MIN_MS            100
#define TIMEOUT_MAX_MS            600000
#define RDMA_NUMBER_MAX           255

#define ROUND_TRIP_COST_MEASURED -1.0
#define ROUND_TRIP_COST_MAX      1e6

struct smart_settings smart_settings;

/* ---- lists of addresses ---- */

bool
smart_settings_next_address(const char **list, char host[SESSION_HOST_MAX], char port[SESSION_PORT_MAX])
{
	const char *from = *list + strspn(*list, " \t\n,");
	size_t length = strcspn(from, ",");
	char element[SESSION_HOST_MAX + SESSION_PORT_MAX + 4];

	if (*from == '\0')
	{
		*list = from;
		return false;
	}
	smart_assert(length > 0);
	*list = from + length;
	while (length > 0 && isspace((unsigned char) from[length - 1]))
		length--;
	snprintf(element, sizeof(element), "%.*s", (int) length, from);
	if (length < sizeof(element) && discovery_parse_address(element, DISCOVERY_PORT, host, port))
		return true;
	*list = NULL;
	return false;
}

static bool
check_addresses(const char *list)
{
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
	unsigned int count = 0;

	while (smart_settings_next_address(&list, host, port))
		count++;
	if (list == NULL)
	{
		GUC_check_errdetail("Element %u of the list is not an address.", count + 1);
		GUC_check_errhint("Write host:port, separated by commas; an IPv6 address in brackets: [::1]:7471.");
		return false;
	}
	if (count > FABRIC_NODES_MAX)
		GUC_check_errdetail("There can be %u addresses at most.", (unsigned int) FABRIC_NODES_MAX);
	return count <= FABRIC_NODES_MAX;
}

/* The parts of smart.rdma_device. */
bool
smart_settings_rdma_device(const char *value, char device[SMART_RDMA_NAME_MAX], int *port, int *gid_index)
{
	size_t length = strcspn(value, ":");
	const char *at = value + length;
	int number[2] = {0, -1};

	for (int i = 0; i < (int) lengthof(number) && *at == ':'; i++)
	{
		size_t digits = strspn(at + 1, "0123456789");

		if (digits > 3)
			return false;
		if (digits > 0)
			number[i] = atoi(at + 1);
		if (number[i] > RDMA_NUMBER_MAX)
			return false;
		at += 1 + digits;
	}
	if (*at != '\0' || length >= SMART_RDMA_NAME_MAX)
		return false;
	strlcpy(device, value, length + 1);
	smart_assert(number[0] >= 0 && number[0] <= RDMA_NUMBER_MAX);
	smart_assert(number[1] >= -1 && number[1] <= RDMA_NUMBER_MAX);
	*port = number[0];
	*gid_index = number[1];
	return true;
}

static bool
check_rdma_device(char **value, void **extra, GucSource source)
{
	char device[SMART_RDMA_NAME_MAX];
	int port;
	int gid_index;

	if (smart_settings_rdma_device(*value, device, &port, &gid_index))
		return true;
	GUC_check_errhint("Write device, device:port or device:port:gid_index, or \"%s\". The numbers are at most %d.",
					  SMART_RDMA_NONE, RDMA_NUMBER_MAX);
	return false;
}

/* "", or the name, "@" and the list of servers. */
static bool
check_cluster(const char *cluster)
{
	size_t length = strspn(cluster, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
	const char *servers = cluster + length + 1;

	if (cluster[0] == '\0')
		return true;
	if (length == 0 || length >= DISCOVERY_CLUSTER_MAX || cluster[length] != '@' || servers[0] == '\0')
	{
		GUC_check_errdetail("The name of a cluster is made of at most %d letters, digits, \"-\" and \"_\".",
							DISCOVERY_CLUSTER_MAX - 1);
		GUC_check_errhint("Write name@host:port, with the memcached servers separated by commas.");
		return false;
	}
	return check_addresses(servers);
}

/* smart.memory_nodes: addresses of nodes, and a cluster, whose servers are the rest of the list. */
struct memory_nodes
{
	char *cluster; /* behind the addresses, in the same memory */
	char addresses[FLEXIBLE_ARRAY_MEMBER];
};

static bool
check_memory_nodes(char **value, void **extra, GucSource source)
{
	const char *at = strchr(*value, '@');
	const char *cluster = at == NULL ? *value + strlen(*value) : at;
	struct memory_nodes *nodes = smart_guc_allocate(offsetof(struct memory_nodes, addresses) + strlen(*value) + 2);
	size_t length;

	if (nodes == NULL)
		return false;
	while (at != NULL && cluster > *value && cluster[-1] != ',')
		cluster--;
	length = (size_t) (cluster - *value);
	smart_assert(cluster >= *value && length <= strlen(*value));
	memcpy(nodes->addresses, *value, length);
	nodes->addresses[length] = '\0';
	nodes->cluster = nodes->addresses + length + 1;
	strcpy(nodes->cluster, cluster + strspn(cluster, " \t\n"));
	if (check_addresses(nodes->addresses) && check_cluster(nodes->cluster))
	{
		*extra = nodes;
		return true;
	}
	smart_guc_free(nodes);
	return false;
}

static void
assign_memory_nodes(const char *value, void *extra)
{
	const struct memory_nodes *nodes = extra;

	smart_settings.memory_nodes = nodes->addresses;
	smart_settings.cluster = nodes->cluster;
}

/* A client takes these over when it begins (backend.c), and is told here of each change. */
static void
assign_fabric_timeout(int value, void *extra)
{
	smart_assert(value >= TIMEOUT_MIN_MS && value <= TIMEOUT_MAX_MS);
	if (smart_server.client != NULL)
		smart_client_set_timeout(smart_server.client, (uint32) value);
}

static void
assign_spread_above(int value, void *extra)
{
	smart_assert(value >= 0 && value <= SPREAD_ABOVE_MAX_MB);
	if (smart_server.client != NULL)
		smart_client_set_spread(smart_server.client, (uint32) value * SMART_PAGES_A_MB);
}

/* ---- definitions ---- */

/* Where indexes are, and how they are reached. */
static void
define_places(void)
{
	static char *memory_nodes;

	DefineCustomStringVariable(
		"smart.embedded_path", "Directory of the region that holds smart indexes.",
		"Empty: shared memory, if smart.embedded_max_size is at most half of it, else \"" SMART_DIRECTORY
		"\" below the data directory.",
		&smart_settings.embedded_path, "", PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("smart.embedded_max_size", "Greatest size of the region that holds smart indexes.",
							"Address space of this size is reserved; memory is taken as it is needed. Without effect "
							"when there are memory nodes.",
							&smart_settings.embedded_max_size_mb, MAX_SIZE_MB, 16, (int) (SMART_REGION_SIZE_MAX >> 20),
							PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);

	/* Whom one could connect to is for superusers and pg_read_all_settings, as in primary_conninfo. */
	DefineCustomStringVariable("smart.memory_nodes", "Addresses of the memory nodes that hold smart indexes.",
							   "host:port, separated by commas; at the end also name@host:port, …: the memcached "
							   "servers with which others announce themselves under that name. If it is empty when the "
							   "server starts, smart indexes are in a region of the server's own.",
							   &memory_nodes, "", PGC_SIGHUP, GUC_LIST_INPUT | GUC_SUPERUSER_ONLY, check_memory_nodes,
							   assign_memory_nodes, NULL);
	DefineCustomStringVariable("smart.secret_file", "File with the key that memory nodes and this server share.",
							   "A line of hexadecimal digits, closed to other users. Empty: no key, and no encryption.",
							   &smart_settings.secret_file, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);

	DefineCustomStringVariable(
		"smart.rdma_device", "RDMA device of this server, its port, and the index of its address (GID).",
		"device:port:gid_index, of which each part may be left out. Empty: RDMA if both sides have a device, else TCP; "
		"\"" SMART_RDMA_NONE "\": TCP only; everything else: RDMA only.",
		&smart_settings.rdma_device, "", PGC_POSTMASTER, 0, check_rdma_device, NULL, NULL);
	/* For superusers: giving up early closes the connections of all sessions to that memory node. */
	DefineCustomIntVariable("smart.fabric_timeout", "Longest wait for a memory node's reply.",
							"A statement that waits longer fails.", &smart_settings.fabric_timeout_ms,
							TIMEOUT_DEFAULT_MS, TIMEOUT_MIN_MS, TIMEOUT_MAX_MS, PGC_SUSET, GUC_UNIT_MS, NULL,
							assign_fabric_timeout, NULL);
	DefineCustomIntVariable(
		"smart.node_down_after", "How long a memory node may be away until statements do without the indexes on it.",
		"Those with a journal are loaded on others, if these are up. 0: statements fail until it is "
		"back, or given up.",
		&smart_settings.node_down_after_s, NODE_DOWN_AFTER_DEFAULT_S, 0, NODE_DOWN_AFTER_MAX_S, PGC_SIGHUP, GUC_UNIT_S,
		NULL, NULL, NULL);
	DefineCustomIntVariable("smart.node_lost_after",
							"How long a memory node may be away until it is given up, if others are up.",
							"Its indexes are loaded, or rebuilt, on the others. 0: it is never given up.",
							&smart_settings.node_lost_after_s, NODE_LOST_AFTER_DEFAULT_S, 0, INT_MAX / 1000, PGC_SIGHUP,
							GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("smart.spread_above", "Size from which on an index is spread over all memory nodes.",
							"A smaller one lies on one of them, so that it does not depend on the others. An eighth of "
							"that node's memory, if this is less. 0: every index is spread.",
							&smart_settings.spread_above_mb, SPREAD_ABOVE_DEFAULT_MB, 0, SPREAD_ABOVE_MAX_MB,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, assign_spread_above, NULL);
	DefineCustomIntVariable(
		"smart.cache_size", "Shared memory for what is cached of indexes.",
		"Copies of inner nodes on memory nodes; and, for indexes that answer from their pages, keys "
		"that are often looked up, and filters of the keys of unique indexes. With memory nodes, "
		"these take an eighth of the size besides; without, all of it. 0: nothing is cached.",
		&smart_settings.cache_size_mb, CACHE_DEFAULT_MB, 0, CACHE_MAX_MB, PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL,
		NULL);
}

void
smart_settings_init(void)
{
	define_places();

	DefineCustomBoolVariable("smart.batching",
							 "Statements insert entries in batches, and read those on memory nodes in batches.",
							 "Nested loops look rows ahead, and read the entries for several of them together; inserts "
							 "collect entries of indexes that are not unique, and send them together.",
							 &smart_settings.batching, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("smart.wait_timeout",
							"How long a statement waits for an index that it needs and that cannot be used now.",
							"Because it is being loaded, or its changes have no room, or a memory node is down. -1: a "
							"minute, but not for a memory node.",
							&smart_settings.wait_timeout_ms, -1, -1, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL,
							NULL);
	DefineCustomRealVariable(
		"smart.round_trip_cost", "The planner's estimate of the cost of a round trip to a memory node.",
		"In the unit of seq_page_cost. -1: what is measured. Without effect if there are no memory nodes.",
		&smart_settings.round_trip_cost, ROUND_TRIP_COST_MEASURED, ROUND_TRIP_COST_MEASURED, ROUND_TRIP_COST_MAX,
		PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable(
		"smart.answer_from_pages", "An index that is being loaded answers from the pages of its journal.",
		"off: statements that need it wait, and others are planned without it. An index that is carried "
		"to memory nodes is read there, even where shared buffers have the page.",
		&smart_settings.answer_from_pages, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("smart.write_back", "Who writes to an index on memory nodes does not wait for them.",
							 "What is inserted and removed is in the journal and in the server's memory, and a worker "
							 "carries it to the memory nodes. Without effect if there are none.",
							 &smart_settings.write_back, true, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("smart.carry_above",
							"Indexes that write back and are larger than this are carried to memory nodes.",
							"The others are read from their pages. -1: an eighth of shared_buffers.",
							&smart_settings.carry_above_mb, -1, -1, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomBoolVariable("smart.auto_rebuild",
							 "Rebuild smart indexes that have lost their content and cannot be loaded.",
							 "In the background; off: they wait for REINDEX. The setting of each database counts.",
							 &smart_settings.auto_rebuild, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("smart.constraints", "Gives new PRIMARY KEY and UNIQUE constraints smart indexes.",
							 "A constraint's own option WITH (smart = on) or WITH (smart = off) counts before it.",
							 &smart_settings.constraints, false, PGC_USERSET, 0, NULL, NULL, NULL);
}
