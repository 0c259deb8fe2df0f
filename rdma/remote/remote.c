/*
 * remote.c
 *	  The provider for memory nodes on other hosts.
 *
 * A call goes through three steps: a good link to every memory node of the
 * batch, then the verbs on all links, then their completions.  So the nodes work
 * at the same time, and nothing is under way anywhere while a connection is made.
 *
 * Generations are read when the call begins (remote.h).  That is early enough: verbs
 * that another client gives up later belong to a call that has not returned when
 * this one begins, and the two may take effect in any order.
 *
 * READs that are given up change nothing, so they raise no generation; and when
 * their connection is lost they are tried once more, since the node may have closed
 * it only because another client raised the generation.  Not those of a flight: its
 * owner does that, if it still wants what they would have brought.
 *
 * Progress: a call ends at its time limit, or soon after an interrupt.
 */
#include <stdio.h>
#include <string.h>

#include "rdma/descent.h"
#include "rdma/remote/remote.h"
#include "rdma/wait.h"

#define NODE_WORDS    (FABRIC_NODES_MAX / 64)
#define IDLE_LIMIT_NS UINT64_C(1000000) /* a link unused for longer is looked at before it is used */

/* The way to one memory node. */
struct remote_path
{
	struct grace grace; /* first: of the interrupts of the present call */
	struct fabric_nodes *nodes;
	unsigned int node;
	struct fabric_link *link; /* NULL: none yet */
	uint32_t generation;      /* that the link was made with */
	uint64_t used_ns;
};

/* One try of a batch. */
struct attempt
{
	struct fabric_request *requests;
	int count;
	uint64_t deadline_ns;
	uint64_t nodes[NODE_WORDS];  /* bit set of memory nodes */
	uint64_t posted[NODE_WORDS]; /* of these, where the verbs are under way */
	bool changes;                /* some verbs are not READs */
	bool broken;                 /* a link failed that verbs had been posted on */
};

struct fabric_remote
{
	struct fabric fabric; /* first */
	struct fabric_remote_options options;
	struct stream_secret no_secret;
	unsigned int failed;   /* the node that the last failure was about */
	struct attempt flight; /* under way, if there is one */
	struct remote_path path[FABRIC_NODES_MAX];
};

/* The first node of the set that is not below from; FABRIC_NODES_MAX: none. */
static unsigned int
next_node(const uint64_t *nodes, unsigned int from)
{
	while (from < FABRIC_NODES_MAX)
	{
		uint64_t word = nodes[from / 64] >> (from % 64);

		if (word != 0)
			return from + (unsigned int) __builtin_ctzll(word);
		from = (from / 64 + 1) * 64;
	}
	return FABRIC_NODES_MAX;
}

/* ---- generations ---- */

/* Pairs with the CAS in raise_generation: a client that comes after one that gave up sees what that one raised. */
static uint32_t
load_generation(const struct fabric_remote *remote, unsigned int node)
{
	return __atomic_load_n(&remote->options.nodes->generation[node], __ATOMIC_SEQ_CST);
}

/* Verbs of this generation may still come: no client of the compute node uses the node with it any more. */
static void
raise_generation(struct fabric_remote *remote, unsigned int node, uint32_t given_up)
{
	uint32_t *generation = &remote->options.nodes->generation[node];
	uint32_t seen = load_generation(remote, node);

	while (seen <= given_up &&
		   !__atomic_compare_exchange_n(generation, &seen, given_up + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		continue;
	smart_assert(load_generation(remote, node) > given_up);
}

/* ---- links ---- */

/* struct grace's is_over. */
static bool
is_missed(const struct grace *grace)
{
	const struct remote_path *path = (const struct remote_path *) grace;

	return path->nodes->is_missed(path->nodes, path->node);
}

static void
close_path(struct fabric_remote *remote, unsigned int node)
{
	struct fabric_link *link = remote->path[node].link;
	struct session *session;

	if (link == NULL)
		return;
	smart_assert(link->session != NULL && link->node == node);
	session = link->session;
	link->kind->close(link);
	session_close(session);
	remote->path[node].link = NULL;
}

/* A session of the present generation.  One that rises meanwhile makes HELLO stale, and then the next one is tried. */
static smart_status
open_session(struct fabric_remote *remote, unsigned int node, const struct fabric_location *location,
			 uint64_t deadline_ns, uint32_t *generation, struct session **session)
{
	struct fabric_remote_options *mine = &remote->options;
	struct session_options options = {
		.env = mine->env,
		.grace = &remote->path[node].grace,
		.secret = mine->secret != NULL ? mine->secret : &remote->no_secret,
		.hello = {.owner = mine->owner,
				  .system = mine->system,
				  .incarnation = mine->incarnation,
				  .client = mine->client,
				  .pid = mine->pid},
	};
	smart_status status;

	options.hello.verbs = true;
	do
	{
		*generation = load_generation(remote, node);
		options.hello.generation = *generation;
		options.timeout_ms = wait_remaining_ms(mine->env, deadline_ns);
		status = session_open(&options, location->host, location->port, session, remote->fabric.problem);
	} while (status == SMART_STALE && load_generation(remote, node) != *generation);
	/* No client here raised it as far as the node says: its other clients are not of this compute node. */
	return status == SMART_STALE ? SMART_UNREACHABLE : status;
}

/* Connects to a memory node that there is no link to. */
static smart_status
open_path(struct fabric_remote *remote, unsigned int node, uint64_t deadline_ns)
{
	struct remote_path *path = &remote->path[node];
	char *problem = remote->fabric.problem;
	struct fabric_location location;
	struct session *session;
	const char *fault = NULL;
	smart_status status = remote->options.nodes->locate(remote->options.nodes, node, &location, problem);

	smart_assert(path->link == NULL);
	if (status == SMART_OK)
		status = open_session(remote, node, &location, deadline_ns, &path->generation, &session);
	if (status != SMART_OK)
		return status;
	/* Is the session with the memory that the addresses mean, and can it carry the verbs? */
	if (session_welcome(session)->node != location.incarnation)
		fault = "its memory is not the one that was there";
	else if ((session_welcome(session)->transports & location.transport) == 0)
		fault = location.transport == WIRE_RDMA ? "it does not offer RDMA" : "it does not offer verbs over TCP";
	if (fault != NULL)
	{
		snprintf(problem, FABRIC_PROBLEM_MAX, "memory node %.100s:%s: %s", location.host, location.port, fault);
		status = SMART_UNREACHABLE;
	}
	else
		status = (location.transport == WIRE_RDMA ? verbs_link_open : tcp_link_open)(session, remote->options.env, node,
																					 deadline_ns, &path->link, problem);
	if (status != SMART_OK)
	{
		session_close(session);
		return status;
	}
	smart_assert(path->link != NULL && path->link->session == session && path->link->node == node);
	path->link->grace = &path->grace;
	remote->fabric.counters.connections++;
	return SMART_OK;
}

/* A link of the present generation that nothing is under way on. */
static smart_status
prepare_path(struct fabric_remote *remote, unsigned int node, uint64_t deadline_ns)
{
	struct remote_path *path = &remote->path[node];
	uint64_t now = remote->options.env->now_ns(remote->options.env);
	smart_status status = SMART_OK;

	path->grace.until_ns = 0;
	if (path->link != NULL && (path->generation != load_generation(remote, node) ||
							   (now > path->used_ns + IDLE_LIMIT_NS && session_is_lost(path->link->session))))
		close_path(remote, node);
	path->used_ns = now;
	if (path->link == NULL)
		status = open_path(remote, node, deadline_ns);
	if (status != SMART_OK)
		remote->failed = node;
	smart_assert((status == SMART_OK) == (path->link != NULL));
	/* Generations never fall. */
	smart_assert(status != SMART_OK || path->generation <= load_generation(remote, node));
	return status;
}

/* ---- batches ---- */

/* A link failed with verbs of the batch on it. */
static void
fail(struct fabric_remote *remote, struct attempt *attempt, unsigned int node, smart_status status)
{
	struct remote_path *path = &remote->path[node];

	smart_assert(status != SMART_OK && path->link != NULL);
	memcpy(remote->fabric.problem, path->link->problem, sizeof(remote->fabric.problem));
	if (status == SMART_CORRUPT)
	{
		/* That is an answer: no verbs are under way any more.  But a queue pair does not survive it. */
		if (path->link->broken)
			close_path(remote, node);
		return;
	}
	/* No client may see the node as long as the verbs can still come. */
	remote->failed = node;
	if (attempt->changes)
		raise_generation(remote, node, path->generation);
	close_path(remote, node);
	attempt->broken = true;
	smart_assert(path->link == NULL);
}

/* A link to each node of the batch, and the verbs on them: some may be under way, whatever the status. */
static smart_status
post_all(struct fabric_remote *remote, struct attempt *attempt)
{
	smart_status status = SMART_OK;
	unsigned int node;

	memset(attempt->posted, 0, sizeof(attempt->posted));
	for (node = next_node(attempt->nodes, 0); node < FABRIC_NODES_MAX; node = next_node(attempt->nodes, node + 1))
	{
		status = prepare_path(remote, node, attempt->deadline_ns);
		if (status != SMART_OK)
			return status;
	}
	for (node = next_node(attempt->nodes, 0); node < FABRIC_NODES_MAX && status == SMART_OK;
		 node = next_node(attempt->nodes, node + 1))
	{
		struct fabric_link *link = remote->path[node].link;

		status = link->kind->post(link, attempt->requests, attempt->count);
		if (status == SMART_OK)
			attempt->posted[node / 64] |= UINT64_C(1) << (node % 64);
		else
			fail(remote, attempt, node, status);
	}
	return status;
}

/* What is under way somewhere is waited for even if another node has failed.  status: so far. */
static smart_status
finish_all(struct fabric_remote *remote, struct attempt *attempt, smart_status status)
{
	for (unsigned int node = next_node(attempt->posted, 0); node < FABRIC_NODES_MAX;
		 node = next_node(attempt->posted, node + 1))
	{
		struct fabric_link *link = remote->path[node].link;
		smart_status other = link->kind->finish(link, attempt->deadline_ns);

		if (other != SMART_OK)
			fail(remote, attempt, node, other);
		if (status == SMART_OK)
			status = other;
	}
	return status;
}

static smart_status
try_all(struct fabric_remote *remote, struct attempt *attempt)
{
	return finish_all(remote, attempt, post_all(remote, attempt));
}

static void
count_failure(struct fabric_remote *remote, smart_status status)
{
	if (status == SMART_TIMEOUT)
		remote->fabric.counters.timeouts++;
	else if (status != SMART_OK && status != SMART_CORRUPT)
		remote->fabric.counters.failures++;
}

/* A batch that begins now. */
static void
begin(struct fabric_remote *remote, struct fabric_request *requests, int count, struct attempt *attempt)
{
	struct fabric *fabric = &remote->fabric;

	*attempt = (struct attempt){
		.requests = requests,
		.count = count,
		.deadline_ns = smart_deadline_ns(remote->options.env, remote->options.timeout_ms),
	};
	fabric->problem[0] = '\0';
	for (int i = 0; i < count; i++)
	{
		unsigned int node = fabric_node(requests[i].remote);
		uint64_t bit = UINT64_C(1) << (node % 64);

		smart_assert(fabric_is_atomic(&requests[i]) || (requests[i].length > 0 && requests[i].local != NULL));
		fabric->counters.doorbells += (attempt->nodes[node / 64] & bit) == 0;
		attempt->nodes[node / 64] |= bit;
		attempt->changes |= requests[i].verb != FABRIC_READ;
		fabric_count(fabric, &requests[i]);
	}
	fabric->counters.round_trips++;
}

static smart_status
remote_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	struct attempt attempt;
	smart_status status;

	begin(remote, requests, count, &attempt);
	status = try_all(remote, &attempt);
	if (status == SMART_UNREACHABLE && attempt.broken && !attempt.changes)
		status = try_all(remote, &attempt);
	count_failure(remote, status);
	return status;
}

static smart_status
remote_depart(struct fabric *fabric, struct fabric_request *reads, int count)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	struct attempt *flight = &remote->flight;
	smart_status status;

	begin(remote, reads, count, flight);
	smart_assert(!flight->changes);
	status = post_all(remote, flight);
	if (status != SMART_OK)
	{
		status = finish_all(remote, flight, status);
		count_failure(remote, status);
	}
	return status;
}

/* Its time limit counts from here: the client may have been busy, or idle, for long. */
static smart_status
remote_land(struct fabric *fabric, struct fabric_request *reads, int count)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	struct attempt *flight = &remote->flight;
	smart_status status;

	smart_assert(flight->requests == reads && flight->count == count);
	fabric->problem[0] = '\0';
	flight->deadline_ns = smart_deadline_ns(remote->options.env, remote->options.timeout_ms);
	for (unsigned int node = next_node(flight->posted, 0); node < FABRIC_NODES_MAX;
		 node = next_node(flight->posted, node + 1))
		remote->path[node].grace.until_ns = 0;
	status = finish_all(remote, flight, SMART_OK);
	count_failure(remote, status);
	return status;
}

/*
 * A descent changes nothing, so one that is given up raises no generation.  Its link has to be made
 * anew all the same: the answer may still come.
 */
static smart_status
remote_descend(struct fabric *fabric, unsigned int node, const struct fabric_descent *descent, struct fabric_path *path)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	uint64_t deadline_ns = smart_deadline_ns(remote->options.env, remote->options.timeout_ms);
	uint8_t request[FABRIC_DESCENT_BYTES_MAX];
	struct session *session;
	const uint8_t *answer;
	uint32_t length;
	smart_status status;

	fabric->problem[0] = '\0';
	status = prepare_path(remote, node, deadline_ns);
	if (status == SMART_OK)
	{
		session = remote->path[node].link->session;
		status = session_call(session, WIRE_DESCEND, request, fabric_descent_put(request, descent), deadline_ns,
							  &answer, &length);
		if (status == SMART_OK && !fabric_path_get(answer, length, path))
			status = session_disbelieve(session);
		if (status != SMART_OK)
		{
			memcpy(fabric->problem, session_problem(session), sizeof(fabric->problem));
			remote->failed = node;
			close_path(remote, node);
		}
	}
	count_failure(remote, status);
	return status;
}

static void
remote_close(struct fabric *fabric)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;

	/* Nobody waits for a flight that is still under way. */
	if (fabric->flight != NULL)
		*fabric->flight = (struct fabric_flight){.status = SMART_UNREACHABLE};
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
		close_path(remote, node);
	remote->options.env->release(remote->options.env, remote);
}

static const struct fabric_provider remote_provider = {
	.execute = remote_execute,
	.depart = remote_depart,
	.land = remote_land,
	.descend = remote_descend,
	.close = remote_close,
};

smart_status
fabric_remote_open(const struct fabric_remote_options *options, struct fabric **fabric)
{
	struct fabric_remote *remote = options->env->allocate(options->env, sizeof(*remote));

	if (remote == NULL)
		return SMART_NO_MEMORY;
	memset(remote, 0, sizeof(*remote));
	remote->fabric.provider = &remote_provider;
	remote->options = *options;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		remote->path[node].nodes = options->nodes;
		remote->path[node].node = node;
		remote->path[node].grace.is_over = options->nodes->is_missed != NULL ? is_missed : NULL;
	}
	*fabric = &remote->fabric;
	return SMART_OK;
}

void
fabric_remote_set_timeout(struct fabric *fabric, uint32_t timeout_ms)
{
	((struct fabric_remote *) fabric)->options.timeout_ms = timeout_ms;
}

bool
fabric_remote_await(struct fabric *fabric, smart_status status, uint64_t *since_ns)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	struct fabric_nodes *nodes = remote->options.nodes;

	return (status == SMART_UNREACHABLE || status == SMART_TIMEOUT) && fabric->problem[0] != '\0' &&
		   nodes->await != NULL && nodes->await(nodes, remote->failed, since_ns);
}

bool
fabric_remote_is_up(struct fabric *fabric, unsigned int node)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	struct fabric_location location;
	bool up;

	smart_assert(node < FABRIC_NODES_MAX);
	up = remote->options.nodes->locate(remote->options.nodes, node, &location, fabric->problem) == SMART_OK;
	if (!up)
		remote->failed = node;
	return up;
}

smart_status
fabric_remote_session(struct fabric *fabric, unsigned int node, struct session **session)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;
	smart_status status;

	smart_assert(node < FABRIC_NODES_MAX);
	fabric_land(fabric);
	fabric->problem[0] = '\0';
	status = prepare_path(remote, node, smart_deadline_ns(remote->options.env, remote->options.timeout_ms));
	if (status == SMART_OK)
		*session = remote->path[node].link->session;
	return status;
}

void
fabric_remote_drop(struct fabric *fabric, unsigned int node)
{
	struct fabric_remote *remote = (struct fabric_remote *) fabric;

	smart_assert(node < FABRIC_NODES_MAX && fabric->flight == NULL);
	remote->failed = node;
	if (remote->path[node].link == NULL)
		return;
	/* The request may still come, as a verb may; a chunk that is given back twice is another owner's by then. */
	raise_generation(remote, node, remote->path[node].generation);
	close_path(remote, node);
}
