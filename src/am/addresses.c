/*
 * addresses.c
 *	  Where memory nodes may be: the settings' list, and those announced in
 *	  memcached.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "am/addresses.h"
#include "am/settings.h"
#include "base/assert.h"
#include "rdma/discovery.h"

#define DISCOVERY_TIMEOUT_MS 200
#define DISCOVERY_PERIOD_MS  1000 /* between two questions */

/* What memcached said last, and how it is asked. */
static struct discovery_node announced[FABRIC_NODES_MAX];
static unsigned int announced_count = 0;
static struct discovery *discovery = NULL;
static char *discovery_servers = NULL;
static char *discovery_cluster = NULL;
static bool silent = false; /* the last question failed: it is in the log */

static void
add_address(struct smart_address *addresses, unsigned int *count, const char *host, const char *port)
{
	for (unsigned int i = 0; i < *count; i++)
	{
		if (strcmp(addresses[i].host, host) == 0 && strcmp(addresses[i].port, port) == 0)
			return;
	}
	if (*count == FABRIC_NODES_MAX)
		return;
	strlcpy(addresses[*count].host, host, sizeof(addresses->host));
	strlcpy(addresses[*count].port, port, sizeof(addresses->port));
	(*count)++;
}

/* ---- memcached ---- */

static void
end_discovery(void)
{
	if (discovery != NULL)
		discovery_close(discovery);
	free(discovery_servers);
	free(discovery_cluster);
	discovery = NULL;
	discovery_servers = discovery_cluster = NULL;
	announced_count = 0;
	silent = false;
}

/* Once when it begins, once when it is over. */
static void
log_silence(bool now, const char *problem)
{
	if (now && !silent)
		ereport(LOG, (errmsg("could not ask memcached for memory nodes: %s", problem),
					  errdetail("Those that it named before are used.")));
	if (!now && silent)
		ereport(LOG, (errmsg("memcached answers again")));
	silent = now;
}

/* A handle for the settings as they are now, or NULL. */
static struct discovery *
current_discovery(void)
{
	char problem[SESSION_PROBLEM_MAX] = "smart.memcached is empty";
	smart_status status = SMART_CORRUPT;

	if (discovery_cluster != NULL && (strcmp(discovery_cluster, smart_settings.cluster) != 0 ||
									  strcmp(discovery_servers, smart_settings.memcached) != 0))
		end_discovery();
	if (discovery != NULL || smart_settings.cluster[0] == '\0')
		return discovery;
	if (discovery_cluster == NULL)
	{
		discovery_cluster = strdup(smart_settings.cluster);
		discovery_servers = strdup(smart_settings.memcached);
		if (discovery_cluster == NULL || discovery_servers == NULL)
			ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	}
	if (smart_settings.memcached[0] != '\0')
		status = discovery_open(discovery_servers, discovery_cluster, DISCOVERY_TIMEOUT_MS, &discovery, problem);
	if (status != SMART_OK)
		log_silence(true, status == SMART_NO_MEMORY ? "out of memory" : problem);
	return discovery;
}

static void
ask_memcached(void)
{
	static TimestampTz last = 0;
	struct discovery *asked = current_discovery();
	struct discovery_node nodes[FABRIC_NODES_MAX];
	char problem[SESSION_PROBLEM_MAX] = "";
	unsigned int count;
	smart_status status;

	/* The worker may come here more often: every answer of a memory node wakes it. */
	if (asked == NULL || !TimestampDifferenceExceeds(last, GetCurrentTimestamp(), DISCOVERY_PERIOD_MS))
		return;
	last = GetCurrentTimestamp();
	status = discovery_find(asked, nodes, &count, problem);
	log_silence(status != SMART_OK, problem[0] != '\0' ? problem : smart_status_text(status));
	if (status != SMART_OK)
		return;
	smart_assert(count <= FABRIC_NODES_MAX);
	memcpy(announced, nodes, count * sizeof(nodes[0]));
	announced_count = count;
}

/* ---- all of them ---- */

unsigned int
smart_addresses_find(struct smart_address addresses[FABRIC_NODES_MAX])
{
	const char *list = smart_settings.memory_nodes;
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
	unsigned int count = 0;

	while (smart_settings_next_address(&list, host, port))
		add_address(addresses, &count, host, port);
	ask_memcached();
	for (unsigned int i = 0; i < announced_count; i++)
		add_address(addresses, &count, announced[i].host, announced[i].port);
	return count;
}
