/*
 * ycsb_real.c
 *	  Compute nodes that are processes: on memory of this program, or on running
 *	  memory nodes.
 *
 * The first process leads: it makes the tree, tells the others when to open it
 * and what to run, and waits until they have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ycsb_member.h"
#include "ycsb_team.h"

struct real_cluster
{
	struct ycsb_cluster cluster; /* first */
	struct ycsb_member member;
	struct ycsb_team team;
	uint64_t tree;               /* id, 0: not yet made */
	struct ycsb_cache_use cache; /* of the other processes' caches, as they told last */
};

enum order_kind
{
	ORDER_OPEN, /* the tree is there */
	ORDER_RUN
};

/* What the first process tells the others, and what they answer when it is done. */
struct order
{
	enum order_kind kind;
	uint64_t tree;
	fabric_address root;
	unsigned int clients;
	ycsb_body body;
	void *argument;
};

struct answer
{
	bool done;
	struct ycsb_cache_use cache;
};

/* ---- the leader ---- */

static void
tell_all(struct real_cluster *real, const struct order *order)
{
	if (!ycsb_team_tell(&real->team, order, sizeof(*order)))
	{
		fprintf(stderr, "ycsb: a compute node's process has ended\n");
		exit(1);
	}
}

/* All have done what they were told; false: one could not, and has said why. */
static bool
await_all(struct real_cluster *real)
{
	real->cache = (struct ycsb_cache_use){.hits = 0};
	for (unsigned int i = 1; i < real->team.size; i++)
	{
		struct answer answer;

		if (!ycsb_team_answer(&real->team, i, &answer, sizeof(answer)))
		{
			fprintf(stderr, "ycsb: a compute node's process has ended\n");
			exit(1);
		}
		if (!answer.done)
			return false;
		ycsb_cache_use_merge(&real->cache, &answer.cache);
	}
	return true;
}

static void
real_run(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument)
{
	struct real_cluster *real = (struct real_cluster *) cluster;
	const struct order order = {.kind = ORDER_RUN, .clients = clients, .body = body, .argument = argument};

	tell_all(real, &order);
	ycsb_member_run(&real->member, clients, body, argument);
	(void) await_all(real); /* running is always done; what failed is in the argument */
}

/* The other processes' as they were after the last run. */
static void
real_cache_use(struct ycsb_cluster *cluster, struct ycsb_cache_use *use)
{
	struct real_cluster *real = (struct real_cluster *) cluster;

	ycsb_member_cache_use(&real->member, use);
	ycsb_cache_use_merge(use, &real->cache);
}

/* The first process makes the tree, and all open it. */
static bool
make_tree(struct real_cluster *real)
{
	static const struct smart_tree_owner owner = {.backend = -1};
	struct order order = {.kind = ORDER_OPEN};
	smart_status status = smart_space_create_tree(ycsb_member_space(&real->member), &owner, &real->tree, &order.root);

	if (status != SMART_OK)
		return ycsb_complain("making a tree", status);
	order.tree = real->tree;
	tell_all(real, &order);
	return ycsb_member_open_tree(&real->member, order.tree, order.root) && await_all(real);
}

static void
real_close(struct ycsb_cluster *cluster)
{
	struct real_cluster *real = (struct real_cluster *) cluster;

	ycsb_team_dismiss(&real->team);
	if (real->tree != 0)
		smart_space_drop_tree(ycsb_member_space(&real->member), real->tree);
	if (real->tree != 0 && real->member.nodes != NULL)
		ycsb_nodes_settle(real->member.nodes, ycsb_member_space(&real->member));
	ycsb_member_close(&real->member);
	ycsb_member_release(&real->member);
	free(real);
}

/* ---- the other processes ---- */

static bool
obey(struct real_cluster *real, const struct order *order)
{
	if (order->kind == ORDER_OPEN)
		return ycsb_member_open_tree(&real->member, order->tree, order->root);
	ycsb_member_run(&real->member, order->clients, order->body, order->argument);
	return true;
}

static _Noreturn void
serve(struct real_cluster *real)
{
	struct order order;
	struct answer answer = {.done = ycsb_member_open(&real->member)};

	while (answer.done && ycsb_team_listen(&real->team, &order, sizeof(order)))
	{
		answer.done = obey(real, &order);
		real_cache_use(&real->cluster, &answer.cache);
		if (!ycsb_team_reply(&real->team, &answer, sizeof(answer)))
			break;
	}
	ycsb_member_close(&real->member);
	fflush(NULL);
	_exit(answer.done ? 0 : 1);
}

/* ---- opening ---- */

static bool
open_all(struct real_cluster *real)
{
	struct ycsb_member *member = &real->member;

	if (!ycsb_member_prepare(member) || !ycsb_team_part(&real->team, member->options->compute_nodes))
		return false;
	member->self = real->team.self;
	if (member->self != 0)
		serve(real);
	if (!ycsb_member_open(member))
		return false;
	if (member->nodes != NULL && !ycsb_nodes_add(member->nodes, ycsb_member_space(member)))
		return false;
	real->cluster.client = member->client;
	return make_tree(real);
}

struct ycsb_cluster *
ycsb_real_open(const struct ycsb_options *options, struct ycsb_shared *shared)
{
	struct real_cluster *real = calloc(1, sizeof(*real));

	if (real == NULL)
	{
		ycsb_complain("the compute node", SMART_NO_MEMORY);
		return NULL;
	}
	real->cluster = (struct ycsb_cluster){
		.clients = options->clients * options->compute_nodes,
		.run = real_run,
		.cache_use = real_cache_use,
		.close = real_close,
	};
	real->member = (struct ycsb_member){.options = options, .shared = shared, .cluster = &real->cluster};
	if (open_all(real))
		return &real->cluster;
	real_close(&real->cluster);
	return NULL;
}
