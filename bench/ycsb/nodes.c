/*
 * nodes.c
 *	  Sessions with running memory nodes.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/allocate/extents.h"
#include "nodes.h"

#define OWNER      UINT64_C(0x6273637974726d73)
#define TIMEOUT_MS 10000

static uint64_t
deadline_ns(const struct ycsb_nodes *nodes)
{
	return nodes->env->now_ns(nodes->env) + (uint64_t) TIMEOUT_MS * 1000000;
}

static smart_status
locate(struct fabric_nodes *shared, unsigned int node, struct fabric_location *location,
	   char problem[SESSION_PROBLEM_MAX])
{
	const struct ycsb_nodes *nodes = (const struct ycsb_nodes *) shared;

	if (node >= nodes->count)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "there is no memory node %u", node);
		return SMART_CORRUPT;
	}
	*location = nodes->location[node];
	return SMART_OK;
}

/* "host:port" or "[host]:port", length bytes of it. */
static bool
parse_place(const char *text, size_t length, struct fabric_location *location)
{
	const char *colon = memrchr(text, ':', length);
	size_t host_length = colon != NULL ? (size_t) (colon - text) : 0;
	size_t port_length = colon != NULL ? length - host_length - 1 : 0;

	if (host_length > 2 && text[0] == '[' && text[host_length - 1] == ']')
	{
		text++;
		host_length -= 2;
	}
	if (host_length == 0 || host_length >= SESSION_HOST_MAX || port_length == 0 || port_length >= SESSION_PORT_MAX)
		return false;
	memcpy(location->host, text, host_length);
	memcpy(location->port, colon + 1, port_length);
	return true;
}

static bool
parse_places(struct ycsb_nodes *nodes, const char *text, enum wire_transport transport)
{
	while (nodes->count < YCSB_NODES_MAX)
	{
		size_t length = strcspn(text, ",");
		struct fabric_location *location = &nodes->location[nodes->count];

		location->transport = transport;
		if (!parse_place(text, length, location))
			break;
		nodes->count++;
		if (text[length] == '\0')
			return true;
		text += length + 1;
	}
	fprintf(stderr, "ycsb: --nodes is a list of HOST:PORT, at most %d\n", YCSB_NODES_MAX);
	return false;
}

static smart_status
open_node(struct ycsb_nodes *nodes, unsigned int node, uint64_t extents, char problem[SESSION_PROBLEM_MAX])
{
	struct fabric_location *location = &nodes->location[node];
	const struct wire_lease lease = {.extents = extents, .transport = location->transport};
	const struct session_options options = {
		.env = nodes->env,
		.secret = &nodes->secret,
		.hello = {.owner = OWNER, .incarnation = nodes->remote.incarnation, .pid = (uint32_t) getpid()},
		.timeout_ms = TIMEOUT_MS,
	};
	smart_status status = session_open(&options, location->host, location->port, &nodes->session[node], problem);

	smart_assert(node < nodes->count);
	if (status != SMART_OK)
		return status;
	if ((session_welcome(nodes->session[node])->transports & location->transport) == 0)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "memory node %s does not offer this transport",
				 session_place(nodes->session[node]));
		return SMART_UNREACHABLE;
	}
	location->incarnation = session_welcome(nodes->session[node])->node;
	status = session_lease(nodes->session[node], &lease, deadline_ns(nodes));
	if (status != SMART_OK)
		snprintf(problem, SESSION_PROBLEM_MAX, "%s", session_problem(nodes->session[node]));
	return status;
}

bool
ycsb_nodes_open(struct ycsb_nodes *nodes, const struct ycsb_options *options, struct smart_env *env, uint64_t extents)
{
	char problem[SESSION_PROBLEM_MAX] = "";
	smart_status status = SMART_OK;

	smart_assert(extents != 0);
	memset(nodes, 0, sizeof(*nodes));
	nodes->env = env;
	nodes->shared = (struct fabric_nodes){.locate = locate, .generation = nodes->generation};
	nodes->remote = (struct smart_remote){
		.nodes = &nodes->shared,
		.secret = options->secret_file != NULL ? &nodes->secret : NULL,
		.owner = OWNER,
		.incarnation = env->random(env),
		.timeout_ms = TIMEOUT_MS,
	};
	if (!parse_places(nodes, options->nodes, options->provider == YCSB_VERBS ? WIRE_RDMA : WIRE_TCP))
		return false;
	smart_assert(nodes->count >= 1);
	if (options->secret_file != NULL)
		status = stream_secret_read(options->secret_file, &nodes->secret, problem, sizeof(problem));
	for (unsigned int i = 0; i < nodes->count && status == SMART_OK; i++)
		status = open_node(nodes, i, extents, problem);
	if (status != SMART_OK)
		fprintf(stderr, "ycsb: %s\n", problem[0] != '\0' ? problem : smart_status_text(status));
	return status == SMART_OK;
}

bool
ycsb_nodes_add(struct ycsb_nodes *nodes, struct smart_space *space)
{
	for (unsigned int i = 0; i < nodes->count; i++)
	{
		unsigned int number;

		/* A node that is in the list twice would be found to have a number already. */
		if (smart_extents_add_node(space, nodes->location[i].incarnation, &number) != SMART_OK || number != i)
		{
			fprintf(stderr, "ycsb: memory node %s is in the list twice, or the extent map is full\n",
					session_place(nodes->session[i]));
			return false;
		}
	}
	return true;
}

void
ycsb_nodes_settle(struct ycsb_nodes *nodes, struct smart_space *space)
{
	struct smart_pending_free pending;

	for (unsigned int i = 0; i < nodes->count; i++)
	{
		smart_status status = SMART_OK;

		while (status == SMART_OK && smart_pending_next(space, i, &pending))
		{
			smart_assert(nodes->session[i] != NULL);
			if (pending.kind == SMART_PENDING_GIVE_CHUNK)
				status = session_give_chunks(nodes->session[i], &pending.chunk, 1, deadline_ns(nodes));
			else
				status = session_drop_tree(nodes->session[i], pending.tree, deadline_ns(nodes));
			if (status == SMART_OK)
				smart_pending_done(space, &pending);
		}
	}
}

void
ycsb_nodes_close(struct ycsb_nodes *nodes)
{
	for (unsigned int i = 0; i < nodes->count; i++)
	{
		if (nodes->session[i] != NULL)
			session_close(nodes->session[i]);
	}
}
