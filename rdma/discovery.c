/*
 * discovery.c
 *	  Announcements in memcached, by libmemcached.
 *
 * All places are read in one go, with their versions.  A place is taken by add, kept
 * by a compare-and-swap of the version that was read, and given back by one that lets it
 * expire; so whatever others do meanwhile, no announcement but one's own is overwritten.
 *
 * The servers of a list are chosen by consistent hashing of their names: the order
 * of the list does not matter, and one that is down takes only its own places with it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libmemcached/memcached.h>

#include "base/assert.h"
#include "base/clock.h"
#include "rdma/discovery.h"

#define MEMCACHED_PORT  "11211"
#define KEY_MAX         (DISCOVERY_CLUSTER_MAX + 16)
#define VALUE_MAX       (SESSION_HOST_MAX + SESSION_PORT_MAX + 24)
#define TRIES           3
#define LONG_AGO        ((time_t) 60 * 60 * 24 * 30 + 1) /* memcached takes more than 30 days for a date */
#define RETRY_AFTER_S   1
#define VALUE_FORMAT    "%016" PRIx64 " "
#define INCARNATION_LEN 17 /* bytes of VALUE_FORMAT */

/* What lies in a place. */
struct place
{
	bool taken;
	uint64_t version;
	struct discovery_node node; /* incarnation 0: something that is no announcement */
};

struct discovery
{
	memcached_st *memcached;
	uint64_t timeout_ns;
	uint64_t incarnation; /* of the node that is announced; 0: none */
	char key[FABRIC_NODES_MAX][KEY_MAX];
	size_t key_length[FABRIC_NODES_MAX];
	struct place place[FABRIC_NODES_MAX];
};

/* ---- addresses ---- */

static bool
copy_part(char *to, size_t size, const char *from, size_t length)
{
	if (length == 0 || length >= size)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

bool
discovery_parse_address(const char *text, const char *default_port, char host[SESSION_HOST_MAX],
						char port[SESSION_PORT_MAX])
{
	const char *host_text = text;
	const char *rest;
	size_t length;

	smart_assert(strlen(default_port) < SESSION_PORT_MAX);
	if (text[0] == '[')
	{
		host_text = text + 1;
		length = strcspn(host_text, "]");
		rest = host_text + length;
		if (*rest++ != ']')
			return false;
	}
	else
	{
		length = strcspn(text, ":");
		rest = text + length;
	}
	if (strcspn(host_text, " \t\r\n,/") < length || !copy_part(host, SESSION_HOST_MAX, host_text, length))
		return false;
	if (*rest == '\0')
		rest = default_port;
	else if (*rest++ != ':' || rest[0] == '\0' || strlen(rest) > 5 || rest[strspn(rest, "0123456789")] != '\0' ||
			 atoi(rest) > 65535)
		return false;
	return copy_part(port, SESSION_PORT_MAX, rest, strlen(rest)) || rest == default_port;
}

/* ---- opening ---- */

/* "host[:port]", or the path of a socket, separated by commas or blanks. */
static bool
add_servers(memcached_st *memcached, const char *servers, char problem[SESSION_PROBLEM_MAX])
{
	unsigned int count = 0;
	char server[SESSION_HOST_MAX + SESSION_PORT_MAX];
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];

	while (*(servers += strspn(servers, " \t,")) != '\0')
	{
		size_t length = strcspn(servers, " \t,");
		bool added = copy_part(server, sizeof(server), servers, length);

		if (added && server[0] == '/')
			added = memcached_server_add_unix_socket(memcached, server) == MEMCACHED_SUCCESS;
		else if (added)
			added = discovery_parse_address(server, MEMCACHED_PORT, host, port) &&
					memcached_server_add(memcached, host, (in_port_t) atoi(port)) == MEMCACHED_SUCCESS;
		if (!added)
		{
			snprintf(problem, SESSION_PROBLEM_MAX, "\"%.*s\" is not HOST or HOST:PORT of a memcached server",
					 length < 60 ? (int) length : 60, servers);
			return false;
		}
		servers += length;
		count++;
	}
	if (count == 0)
		snprintf(problem, SESSION_PROBLEM_MAX, "no memcached server is given");
	return count > 0;
}

static void
set_behavior(memcached_st *memcached, uint32_t timeout_ms)
{
	const struct
	{
		memcached_behavior_t behavior;
		uint64_t value;
	} behaviors[] = {
		{MEMCACHED_BEHAVIOR_KETAMA, 1},
		{MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1},
		{MEMCACHED_BEHAVIOR_TCP_NODELAY, 1},
		{MEMCACHED_BEHAVIOR_NO_BLOCK, 1},
		{MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, timeout_ms},
		{MEMCACHED_BEHAVIOR_POLL_TIMEOUT, timeout_ms},
		{MEMCACHED_BEHAVIOR_SND_TIMEOUT, timeout_ms * UINT64_C(1000)},
		{MEMCACHED_BEHAVIOR_RCV_TIMEOUT, timeout_ms * UINT64_C(1000)},
		{MEMCACHED_BEHAVIOR_RETRY_TIMEOUT, RETRY_AFTER_S},
	};

	for (size_t i = 0; i < sizeof(behaviors) / sizeof(behaviors[0]); i++)
		memcached_behavior_set(memcached, behaviors[i].behavior, behaviors[i].value);
}

static bool
name_places(struct discovery *discovery, const char *cluster)
{
	size_t length = strlen(cluster);

	for (size_t i = 0; i < length; i++)
	{
		if (!isalnum((unsigned char) cluster[i]) && cluster[i] != '-' && cluster[i] != '_')
			return false;
	}
	if (length == 0 || length > DISCOVERY_CLUSTER_MAX)
		return false;
	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		discovery->key_length[i] = (size_t) snprintf(discovery->key[i], KEY_MAX, "smart.%s.%u", cluster, i);
		smart_assert(discovery->key_length[i] < KEY_MAX);
	}
	return true;
}

smart_status
discovery_open(const char *servers, const char *cluster, uint32_t timeout_ms, struct discovery **discovery,
			   char problem[SESSION_PROBLEM_MAX])
{
	struct discovery *opened = calloc(1, sizeof(*opened));
	smart_status status = SMART_OK;

	smart_assert(timeout_ms > 0);
	if (opened != NULL)
		opened->memcached = memcached_create(NULL);
	if (opened == NULL || opened->memcached == NULL)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "no memory");
		status = SMART_NO_MEMORY;
	}
	else if (!name_places(opened, cluster))
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "a cluster's name has 1 to %d letters, digits, '-' and '_'",
				 DISCOVERY_CLUSTER_MAX);
		status = SMART_CORRUPT;
	}
	else
	{
		opened->timeout_ns = timeout_ms * UINT64_C(1000000);
		set_behavior(opened->memcached, timeout_ms);
		if (!add_servers(opened->memcached, servers, problem))
			status = SMART_CORRUPT;
	}
	if (status == SMART_OK)
		*discovery = opened;
	else if (opened != NULL)
		discovery_close(opened);
	return status;
}

void
discovery_close(struct discovery *discovery)
{
	if (discovery->memcached != NULL)
		memcached_free(discovery->memcached);
	free(discovery);
}

/* ---- reading ---- */

/* "INCARNATION HOST:PORT"; false: something else. */
static bool
parse_value(const char *bytes, size_t length, struct discovery_node *node)
{
	char value[VALUE_MAX];
	char *end;

	if (!copy_part(value, sizeof(value), bytes, length) || length <= INCARNATION_LEN)
		return false;
	node->incarnation = strtoull(value, &end, 16);
	return end == value + INCARNATION_LEN - 1 && *end == ' ' && node->incarnation != 0 &&
		   discovery_parse_address(value + INCARNATION_LEN, DISCOVERY_PORT, node->host, node->port);
}

/* The number at the end of a place's key. */
static unsigned int
place_of(const char *key, size_t length)
{
	unsigned int number = 0;
	size_t at = length;

	while (at > 0 && isdigit((unsigned char) key[at - 1]))
		at--;
	for (; at < length && number < FABRIC_NODES_MAX; at++)
		number = number * 10 + (unsigned int) (key[at] - '0');
	return number;
}

/* Reads all places.  SMART_UNREACHABLE: not one server has answered. */
static smart_status
read_places(struct discovery *discovery, char problem[SESSION_PROBLEM_MAX])
{
	memcached_st *memcached = discovery->memcached;
	const char *keys[FABRIC_NODES_MAX];
	memcached_return_t asked;
	memcached_return_t fetched;
	memcached_result_st *result;

	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
		keys[i] = discovery->key[i];
	memset(discovery->place, 0, sizeof(discovery->place));
	asked = memcached_mget(memcached, keys, discovery->key_length, FABRIC_NODES_MAX);
	if (asked != MEMCACHED_SUCCESS && asked != MEMCACHED_SOME_ERRORS)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "memcached does not answer: %s",
				 memcached_last_error_message(memcached));
		memcached_quit(memcached);
		return SMART_UNREACHABLE;
	}
	while ((result = memcached_fetch_result(memcached, NULL, &fetched)) != NULL)
	{
		unsigned int number = place_of(memcached_result_key_value(result), memcached_result_key_length(result));
		struct place *place = &discovery->place[number % FABRIC_NODES_MAX];

		place->taken = true;
		place->version = memcached_result_cas(result);
		if (!parse_value(memcached_result_value(result), memcached_result_length(result), &place->node))
			place->node.incarnation = 0;
		memcached_result_free(result);
	}
	if (fetched == MEMCACHED_END || fetched == MEMCACHED_NOTFOUND || fetched == MEMCACHED_SUCCESS)
		return SMART_OK;
	snprintf(problem, SESSION_PROBLEM_MAX, "memcached does not answer: %s", memcached_strerror(memcached, fetched));
	memcached_quit(memcached);
	return SMART_UNREACHABLE;
}

smart_status
discovery_find(struct discovery *discovery, struct discovery_node *nodes, unsigned int *count,
			   char problem[SESSION_PROBLEM_MAX])
{
	smart_status status = read_places(discovery, problem);
	unsigned int found = 0;

	if (status != SMART_OK)
		return status;
	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		const struct discovery_node *node = &discovery->place[i].node;
		unsigned int known = 0;

		while (known < found && nodes[known].incarnation != node->incarnation)
			known++;
		if (node->incarnation != 0 && known == found)
			nodes[found++] = *node;
	}
	smart_assert(found <= FABRIC_NODES_MAX);
	*count = found;
	return SMART_OK;
}

/* ---- writing ---- */

/* Keeps a place that was read: true unless it has changed, or the server is gone. */
static bool
keep_place(struct discovery *discovery, unsigned int number, const char *value, time_t expiration)
{
	smart_assert(number < FABRIC_NODES_MAX && discovery->place[number].taken);
	return memcached_cas(discovery->memcached, discovery->key[number], discovery->key_length[number], value,
						 strlen(value), expiration, 0, discovery->place[number].version) == MEMCACHED_SUCCESS;
}

/* Takes the first free place.  SMART_NO_SPACE: there is none; SMART_UNREACHABLE. */
static smart_status
take_place(struct discovery *discovery, const char *value, uint32_t ttl_s, char problem[SESSION_PROBLEM_MAX])
{
	uint64_t deadline_ns = smart_clock_ns() + discovery->timeout_ns;
	smart_status status = SMART_NO_SPACE;

	smart_assert(discovery->incarnation != 0);
	snprintf(problem, SESSION_PROBLEM_MAX, "all %d places of the cluster are taken", FABRIC_NODES_MAX);
	for (unsigned int i = 0; i < FABRIC_NODES_MAX && smart_clock_ns() < deadline_ns; i++)
	{
		memcached_return_t result;

		if (discovery->place[i].taken)
			continue;
		result = memcached_add(discovery->memcached, discovery->key[i], discovery->key_length[i], value, strlen(value),
							   ttl_s, 0);
		if (result == MEMCACHED_SUCCESS)
			return SMART_OK;
		if (result == MEMCACHED_NOTSTORED)
			continue;
		status = SMART_UNREACHABLE;
		snprintf(problem, SESSION_PROBLEM_MAX, "memcached does not take it: %s",
				 memcached_strerror(discovery->memcached, result));
	}
	return status;
}

smart_status
discovery_announce(struct discovery *discovery, const struct discovery_node *node, uint32_t ttl_s,
				   char problem[SESSION_PROBLEM_MAX])
{
	bool bracketed = strchr(node->host, ':') != NULL;
	char value[VALUE_MAX];

	smart_assert(ttl_s > 0 && ttl_s < LONG_AGO);
	smart_assert(node->incarnation != 0);
	discovery->incarnation = node->incarnation;
	snprintf(value, sizeof(value), VALUE_FORMAT "%s%s%s:%s", node->incarnation, bracketed ? "[" : "", node->host,
			 bracketed ? "]" : "", node->port);
	smart_assert(strlen(value) < sizeof(value) - 1);
	for (unsigned int try = 0; try < TRIES; try++)
	{
		smart_status status = read_places(discovery, problem);
		unsigned int mine = 0;

		if (status != SMART_OK)
			return status;
		while (mine < FABRIC_NODES_MAX && discovery->place[mine].node.incarnation != node->incarnation)
			mine++;
		if (mine == FABRIC_NODES_MAX)
			return take_place(discovery, value, ttl_s, problem);
		if (keep_place(discovery, mine, value, ttl_s))
			return SMART_OK;
	}
	snprintf(problem, SESSION_PROBLEM_MAX, "memcached does not keep the place");
	return SMART_UNREACHABLE;
}

void
discovery_withdraw(struct discovery *discovery)
{
	char problem[SESSION_PROBLEM_MAX];

	if (discovery->incarnation == 0 || read_places(discovery, problem) != SMART_OK)
		return;
	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		if (discovery->place[i].node.incarnation == discovery->incarnation)
			keep_place(discovery, i, "", LONG_AGO);
	}
	discovery->incarnation = 0;
}
