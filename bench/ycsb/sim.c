/*
 * sim.c
 *	  A simulated cluster: memory nodes in this process, compute nodes whose
 *	  clients are coroutines, and one virtual clock (rdma/sim/timed.h).
 *
 * Every compute node has the ART cache and the local leaf locks of src/compute's
 * kind, whose use takes a core's time; blocks come from one store (store.h).
 * All that happens follows from the options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "compute/coordinate/epoch.h"
#include "compute/coordinate/rdwc.h"
#include "cluster.h"
#include "random.h"
#include "ranges.h"
#include "simulated.h"
#include "store.h"

#define TREE         1
#define BLOCKS_A_KEY 128 /* bytes, at most, with what waits for its next use */
#define BYTES_MORE   (UINT64_C(1) << 30)
#define RECORD_BYTES 32    /* of a log, at least */
#define PIECE_KEYS   256   /* that a client applies before it goes on with its own */
#define WAIT_MS      10000 /* virtual */

struct compute_node
{
	struct smart_cache *cache; /* NULL: none */
	struct sim_timed_lock lock[SMART_LOCK_LEAVES];
	struct smart_rdwc *rdwc;            /* NULL: none */
	struct smart_changes *changes;      /* NULL: none */
	struct smart_leaf_locks leaf_locks; /* with RDWC: instead of the others */
};

struct sim_client
{
	struct ycsb_simulated simulated; /* first */
	struct smart_services services;
	struct smart_services untimed;   /* those of them that take time, without it */
	struct smart_rdwc_member member; /* with RDWC */
	struct sim_cluster *sim;
	struct compute_node *compute; /* its own; of a partitioned tree, the owner of the range where it is */
	unsigned int number;          /* among those that use the compute node's tables */
	unsigned int range;
	unsigned int owner; /* that range's, a compute node */
	struct smart_turn turn;
};

#define OWNER(type, member, pointer) ((type *) (void *) ((char *) (pointer) -offsetof(type, member)))

static inline struct sim_client *
sim_client_of(struct smart_services *services)
{
	return OWNER(struct sim_client, services, services);
}

struct sim_cluster
{
	struct ycsb_cluster cluster; /* first */
	const struct ycsb_options *options;
	struct sim_timed timed;
	struct ycsb_store store;
	struct smart_epoch_shared *epoch; /* of all clients, in the order of their numbers */
	struct compute_node *compute[SIM_TIMED_NODES_MAX];
	struct ycsb_ranges ranges; /* of a partitioned tree */
};

/* ---- services ---- */

static smart_status
sim_allocate(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block)
{
	struct sim_cluster *sim = sim_client_of(services)->sim;

	/* As a server does when retired blocks wait. */
	if (ycsb_store_retired(&sim->store, class))
		smart_epoch_try_advance(sim->epoch);
	return ycsb_store_allocate(&sim->store, class, smart_epoch_now(sim->epoch), block);
}

static void
sim_retire(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block)
{
	struct sim_cluster *sim = sim_client_of(services)->sim;

	ycsb_store_retire(&sim->store, class, smart_epoch_now(sim->epoch), block);
}

static void
sim_enter(struct smart_services *services)
{
	struct sim_client *client = sim_client_of(services);

	smart_epoch_enter(client->sim->epoch, client->simulated.client.number);
}

static void
sim_leave(struct smart_services *services)
{
	struct sim_client *client = sim_client_of(services);

	smart_epoch_leave(client->sim->epoch, client->simulated.client.number);
}

static uint64_t
sim_moment(struct smart_services *services)
{
	return smart_epoch_now(sim_client_of(services)->sim->epoch);
}

static struct sim_timed_lock *
leaf_lock(struct sim_client *client, fabric_address leaf)
{
	return &client->compute->lock[smart_leaf_lock_of(leaf)];
}

static smart_status
sim_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct sim_client *client = sim_client_of(services);

	sim_timed_acquire(&client->simulated.timed, leaf_lock(client, leaf));
	return SMART_OK;
}

static void
sim_unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct sim_client *client = sim_client_of(services);

	sim_timed_release(&client->simulated.timed, leaf_lock(client, leaf));
}

/* Read delegation and write combining instead of plain locks and READs.  A client that waits looks again after a while. */
static void
init_rdwc(struct sim_client *client)
{
	smart_assert(client->compute->rdwc != NULL);
	client->member = (struct smart_rdwc_member){
		.caller = {.rdwc = client->compute->rdwc,
				   .env = &client->simulated.env.env,
				   .client = client->number,
				   .timeout_ms = WAIT_MS},
		.locks = &client->compute->leaf_locks,
		.lock_of = smart_leaf_lock_of,
	};
	smart_rdwc_services_init(&client->services, &client->member);
}

/* ---- services that take a core's time ---- */

/* What the client has without it, after a look at the cache or a change of it. */
static const struct smart_services *
after_cache_work(struct smart_services *services)
{
	struct sim_client *client = sim_client_of(services);

	sim_timed_compute(&client->simulated.timed, client->sim->options->model.cache_ns);
	return &client->untimed;
}

static bool
timed_cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words, uint64_t *moment)
{
	return after_cache_work(services)->cache_find(services, tree, slot, words, moment);
}

static void
timed_cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words,
				  uint64_t moment)
{
	after_cache_work(services)->cache_store(services, tree, slot, words, moment);
}

static void
timed_cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
				   uint64_t to)
{
	after_cache_work(services)->cache_update(services, tree, slot, index, from, to);
}

static bool
timed_find_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
				  struct smart_result *cached)
{
	return after_cache_work(services)->find_result(services, tree, point, length, cached);
}

static void
timed_keep_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
				  const struct smart_result *cached)
{
	after_cache_work(services)->keep_result(services, tree, point, length, cached);
}

static bool
timed_find_hint(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint)
{
	return after_cache_work(services)->find_hint(services, leaf, hint);
}

static bool
timed_find_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, bool ahead, uint8_t *copy,
				uint64_t *ticket)
{
	return after_cache_work(services)->find_leaf(services, tree, leaf, ahead, copy, ticket);
}

static void
timed_keep_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, const uint8_t *copy, uint64_t meta,
				uint64_t ticket, enum smart_keep how)
{
	after_cache_work(services)->keep_leaf(services, tree, leaf, copy, meta, ticket, how);
}

static smart_status
timed_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct sim_client *client = sim_client_of(services);

	sim_timed_compute(&client->simulated.timed, client->sim->options->model.lock_ns);
	return client->untimed.lock_leaf(services, leaf);
}

static void
timed_unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct sim_client *client = sim_client_of(services);

	sim_timed_compute(&client->simulated.timed, client->sim->options->model.lock_ns);
	client->untimed.unlock_leaf(services, leaf);
}

/* What is NULL stays so: the tree looks at that. */
static void
let_services_take_time(struct sim_client *client)
{
	struct smart_services *services = &client->services;

	client->untimed = *services;
	services->lock_leaf = timed_lock_leaf;
	services->unlock_leaf = timed_unlock_leaf;
	if (services->cache_find == NULL)
		return;
	services->cache_find = timed_cache_find;
	services->cache_store = timed_cache_store;
	services->cache_update = timed_cache_update;
	if (services->find_result == NULL)
		return;
	services->find_result = timed_find_result;
	services->keep_result = timed_keep_result;
	services->find_hint = timed_find_hint;
	services->find_leaf = timed_find_leaf;
	services->keep_leaf = timed_keep_leaf;
}

static void
init_services(struct sim_client *client)
{
	client->services = (struct smart_services){
		.allocate = sim_allocate,
		.retire = sim_retire,
		.enter = sim_enter,
		.leave = sim_leave,
		.moment = sim_moment,
		.lock_leaf = sim_lock_leaf,
		.unlock_leaf = sim_unlock_leaf,
	};
	if (client->compute->rdwc != NULL)
		init_rdwc(client);
	if (client->compute->cache != NULL)
		smart_cache_services_init(&client->services, client->compute->cache, client->number);
	let_services_take_time(client);
}

/* ---- a partitioned tree ---- */

static struct sim_client *
sim_client_of_ycsb(struct ycsb_client *client)
{
	return OWNER(struct sim_client, simulated.client, client);
}

/* The cache and the local locks of a compute node; cores and NIC stay the client's own. */
static void
work_with(struct sim_client *client, unsigned int compute)
{
	smart_assert(compute < client->sim->options->compute_nodes);
	client->owner = compute;
	client->compute = client->sim->compute[compute];
	client->services.cache = client->compute->cache;
	client->member.caller.rdwc = client->compute->rdwc;
	client->member.locks = &client->compute->leaf_locks;
}

static void
turn_to_tree(struct sim_client *client, unsigned int range, uint64_t tenure)
{
	const struct smart_range *found = ycsb_ranges_at(&client->sim->ranges, range);
	struct ycsb_client *ycsb = &client->simulated.client;

	smart_assert(tenure <= UINT32_MAX);
	client->range = range;
	smart_tree_turn(ycsb->tree, found->tree, found->root, tenure);
	client->turn = (struct smart_turn){.changes = client->compute->changes,
									   .tree = ycsb->tree,
									   .fabric = ycsb->fabric,
									   .env = ycsb->env,
									   .range = range,
									   .tenure = (uint32_t) tenure,
									   .timeout_ms = WAIT_MS};
	ycsb->turn = client->turn.changes == NULL ? NULL : &client->turn;
}

/* ---- owners with logs ---- */

static void
sim_look(struct ycsb_client *ycsb, unsigned int looks)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);

	sim_timed_compute(&client->simulated.timed, (uint64_t) looks * client->sim->options->model.cache_ns);
}

/* A turn with a range's owner. */
static smart_status
take_turn(struct sim_client *client, unsigned int range)
{
	struct ycsb_client *ycsb = &client->simulated.client;
	unsigned int compute;
	uint64_t tenure;
	smart_status status =
		ycsb_ranges_enter(&client->sim->ranges, ycsb->fabric, ycsb->env, ycsb->number, range, &compute, &tenure);

	if (status != SMART_OK)
		return status;
	work_with(client, compute);
	turn_to_tree(client, range, tenure);
	return SMART_OK;
}

/* In a range that is the client's compute node's, whether in a turn or as its giver. */
static smart_status
apply_here(struct sim_client *client, size_t most)
{
	unsigned int count = 0;
	smart_status status = smart_changes_apply(&client->turn, most, &count);

	smart_assert(client->turn.changes != NULL);
	/* Each key is looked for, sorted, and taken out. */
	sim_look(&client->simulated.client, 3 * count);
	return status == SMART_OK ? smart_changes_release(client->turn.changes, client->turn.fabric, client->turn.env)
							  : status;
}

static smart_status
apply_some(struct sim_client *client, unsigned int range, size_t most)
{
	smart_status status = take_turn(client, range);

	if (status != SMART_OK)
		return status;
	status = apply_here(client, most);
	ycsb_ranges_leave(&client->sim->ranges, client->owner, client->simulated.client.number);
	return status;
}

static smart_status
apply_range(void *argument, unsigned int range)
{
	return apply_some(argument, range, SMART_CHANGES_ALL);
}

static smart_status
sim_relieve(struct ycsb_client *ycsb, bool full)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);
	unsigned int range;

	smart_assert(client->turn.changes != NULL);
	if (smart_changes_due(client->turn.changes, full, &range))
		return apply_some(client, range, PIECE_KEYS);
	/* A scan may have applied what filled the log. */
	return full ? smart_changes_release(client->turn.changes, ycsb->fabric, ycsb->env) : SMART_OK;
}

static smart_status
sim_apply_all(struct ycsb_client *ycsb)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);
	smart_status status = SMART_OK;

	for (unsigned int range = 0; range < client->sim->ranges.count && status == SMART_OK; range++)
		status = apply_range(client, range);
	return status;
}

static smart_status
flush_given(void *argument, unsigned int range, uint32_t tenure)
{
	struct sim_client *client = argument;

	smart_assert(client->sim->ranges.owner[range] >= 1);
	work_with(client, client->sim->ranges.owner[range] - 1);
	turn_to_tree(client, range, tenure);
	return apply_here(client, SMART_CHANGES_ALL);
}

/* No owner dies here. */
static smart_status
settle_nothing(void *argument, unsigned int range, uint32_t owner, uint32_t tenure, uint32_t now)
{
	return SMART_CORRUPT;
}

static smart_status
move_ranges(struct sim_client *client)
{
	const struct smart_handover handover = {.settle = settle_nothing, .flush = flush_given, .argument = client};
	const struct ycsb_ranges_logs logs = {.handover = client->compute->changes == NULL ? NULL : &handover,
										  .ahead = apply_range,
										  .client = client};
	struct ycsb_client *ycsb = &client->simulated.client;

	return ycsb_ranges_move(&client->sim->ranges, ycsb->fabric, ycsb->env, &logs);
}

static smart_status
open_log(struct sim_cluster *sim, unsigned int number, struct fabric *fabric)
{
	const struct ycsb_options *options = sim->options;
	struct smart_changes_options changes = {
		.place = {.copies = options->log_copies, .bytes = options->log_bytes, .owner = number + 1},
		.flights = options->log_flights,
		.ranges = options->partitions,
		.buckets = 1,
		.values = options->values,
	};

	smart_assert(number < options->compute_nodes && sim->compute[number]->changes == NULL);
	smart_assert(options->log_copies <= SMART_LOG_COPIES_MAX);
	/* As many as there are records to a range if all are short. */
	while (changes.buckets * options->partitions / options->compute_nodes * RECORD_BYTES < options->log_bytes)
		changes.buckets *= 2;
	for (unsigned int copy = 0; copy < options->log_copies; copy++)
	{
		changes.place.address[copy] = ycsb_store_reserve(&sim->store, (number + copy) % options->memory_nodes,
														 SMART_LOG_HEAD_BYTES + options->log_bytes);
		if (changes.place.address[copy] == 0)
			return SMART_NO_SPACE;
	}
	sim->compute[number]->changes = ycsb_allocate_table(smart_changes_size(&changes));
	return sim->compute[number]->changes == NULL ? SMART_NO_MEMORY
												 : smart_changes_open(sim->compute[number]->changes, fabric, &changes);
}

static bool
open_logs(struct sim_cluster *sim)
{
	smart_status status = SMART_OK;

	if (sim->options->log_bytes == 0)
		return true;
	sim->cluster.look = sim_look;
	sim->cluster.relieve = sim_relieve;
	sim->cluster.apply_all = sim_apply_all;
	for (unsigned int i = 0; i < sim->options->compute_nodes && status == SMART_OK; i++)
		status = open_log(sim, i, sim->cluster.client[0]->fabric);
	return status == SMART_OK || ycsb_complain("logs", status);
}

/* ---- turns ---- */

/* Routing takes a look at local memory that others use, too. */
static smart_status
sim_enter_range(struct ycsb_client *ycsb, const uint8_t *key, size_t length)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);
	unsigned int range = ycsb_ranges_find(&client->sim->ranges, key, length);
	smart_status status = move_ranges(client);

	if (status != SMART_OK)
		return status;
	sim_look(ycsb, 1);
	return take_turn(client, range);
}

static void
sim_leave_range(struct ycsb_client *ycsb)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);

	smart_assert(client->owner < client->sim->options->compute_nodes);
	ycsb_ranges_leave(&client->sim->ranges, client->owner, ycsb->number);
}

static bool
sim_next_range(struct ycsb_client *ycsb, const uint8_t **key, size_t *length)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);
	const struct smart_range *next;

	smart_assert(client->range < client->sim->ranges.count);
	if (client->range + 1 == client->sim->ranges.count)
		return false;
	next = ycsb_ranges_at(&client->sim->ranges, client->range + 1);
	*key = next->bound;
	*length = next->bound_length;
	return true;
}

static bool
sim_turn_to(struct ycsb_client *ycsb, unsigned int range)
{
	struct sim_client *client = sim_client_of_ycsb(ycsb);

	if (range >= client->sim->ranges.count)
		return false;
	/* Nothing is known of a tenure that never comes: all is READ. */
	turn_to_tree(client, range, UINT32_MAX);
	return true;
}

static bool
open_ranges(struct sim_cluster *sim)
{
	struct ycsb_client *first = sim->cluster.client[0];

	smart_assert(sim->options->partitions > 0);
	sim->cluster.enter = sim_enter_range;
	sim->cluster.leave = sim_leave_range;
	sim->cluster.next_range = sim_next_range;
	sim->cluster.turn_to = sim_turn_to;
	sim->cluster.moves = &sim->ranges.moves;
	return open_logs(sim) && ycsb_ranges_open(&sim->ranges, sim->options, &sim->store, first->fabric, first->env);
}

static const struct ycsb_index *
index_of(const struct ycsb_options *options)
{
	if (options->partitions > 0)
		return options->values ? &ycsb_partitioned_values_index : &ycsb_partitioned_index;
	return options->values ? &ycsb_values_index : &ycsb_tree_index;
}

/* ---- opening and closing ---- */

static void
sim_cache_use(struct ycsb_cluster *cluster, struct ycsb_cache_use *use)
{
	struct sim_cluster *sim = (struct sim_cluster *) cluster;
	struct smart_cache_stat stat;

	*use = (struct ycsb_cache_use){.hits = 0};
	for (unsigned int i = 0; i < sim->options->compute_nodes && sim->compute[i]->cache != NULL; i++)
	{
		smart_cache_stat(sim->compute[i]->cache, &stat);
		ycsb_cache_use_add(use, &stat);
	}
}

static void
close_compute_node(struct compute_node *node)
{
	free(node->cache);
	free(node->rdwc);
	free(node->changes);
	free(node);
}

static void
sim_close(struct ycsb_cluster *cluster)
{
	struct sim_cluster *sim = (struct sim_cluster *) cluster;

	smart_assert(sim->timed.running == NULL);
	for (unsigned int i = 0; i < cluster->clients; i++)
	{
		struct sim_client *client = (struct sim_client *) cluster->client[i];

		if (client->simulated.client.tree != NULL)
			smart_tree_close(client->simulated.client.tree);
		ycsb_simulated_close(&client->simulated);
		free(client);
	}
	free(cluster->client);
	for (unsigned int i = 0; i < sim->options->compute_nodes && sim->compute[i] != NULL; i++)
		close_compute_node(sim->compute[i]);
	ycsb_ranges_close(&sim->ranges);
	ycsb_store_close(&sim->store);
	sim_timed_close(&sim->timed);
	free(sim->epoch);
	free(sim);
}

/* NULL: not enough memory. */
static struct compute_node *
open_compute_node(const struct ycsb_options *options, unsigned int number)
{
	struct compute_node *node = calloc(1, sizeof(*node));
	unsigned int clients = options->partitions > 0 ? options->clients * options->compute_nodes : options->clients;

	smart_assert(number < options->compute_nodes);
	if (node == NULL)
		return NULL;
	if (ycsb_open_tables(options, clients, ycsb_mix(options->seed) + number, &node->cache, &node->rdwc))
		return node;
	close_compute_node(node);
	return NULL;
}

static bool
open_client(struct sim_cluster *sim, unsigned int number)
{
	const struct ycsb_options *options = sim->options;
	struct sim_client *client = calloc(1, sizeof(*client));
	struct smart_tree_options tree = ycsb_tree_options(options);

	if (client == NULL)
		return false;
	smart_assert(sim->cluster.clients == number);
	sim->cluster.client[sim->cluster.clients++] = &client->simulated.client;
	if (smart_epoch_claim(sim->epoch, number + 1) != number)
		return false;
	client->sim = sim;
	client->compute = sim->compute[number % options->compute_nodes];
	client->number = options->partitions > 0 ? number : number / options->compute_nodes;
	ycsb_simulated_init(&client->simulated, &sim->cluster, &sim->timed, options, number);
	client->simulated.client.index = index_of(options);
	init_services(client);
	tree.id = TREE;
	tree.root = ycsb_store_root();
	tree.retractions = options->promises ? ycsb_store_root() + sizeof(smart_slot) : 0;
	return smart_tree_open(client->simulated.client.fabric, &client->simulated.env.env, &client->services, &tree,
						   &client->simulated.client.tree) == SMART_OK;
}

static bool
open_all(struct sim_cluster *sim)
{
	const struct ycsb_options *options = sim->options;
	unsigned int clients = options->clients * options->compute_nodes;
	uint64_t bytes = ((options->keys + options->operations) * BLOCKS_A_KEY + BYTES_MORE) / SMART_UNIT * SMART_UNIT;
	struct sim_timed_options timed = {
		.memory_nodes = options->memory_nodes,
		.compute_nodes = options->compute_nodes,
		.bytes = bytes,
		.copies = options->copies,
		.colocated = options->colocated,
		.model = options->model,
	};

	smart_assert(clients >= 1 && clients <= SIM_TIMED_CLIENTS_MAX);
	if (!ycsb_store_open(&sim->store, options->memory_nodes, bytes))
		return false;
	memcpy(timed.base, sim->store.base, sizeof(timed.base));
	if (!sim_timed_init(&sim->timed, &timed))
		return false;
	sim->cluster.client = calloc(clients, sizeof(*sim->cluster.client));
	sim->epoch = ycsb_allocate_table(smart_epoch_size(clients));
	if (sim->cluster.client == NULL || sim->epoch == NULL)
		return false;
	smart_epoch_init(sim->epoch, clients, 0);
	for (unsigned int i = 0; i < options->compute_nodes; i++)
	{
		sim->compute[i] = open_compute_node(options, i);
		if (sim->compute[i] == NULL)
			return false;
	}
	for (unsigned int i = 0; i < clients; i++)
	{
		if (!open_client(sim, i))
			return false;
	}
	return options->partitions == 0 || open_ranges(sim);
}

struct ycsb_cluster *
ycsb_sim_open(const struct ycsb_options *options)
{
	struct sim_cluster *sim = calloc(1, sizeof(*sim));

	if (sim != NULL)
	{
		sim->options = options;
		sim->cluster.run = ycsb_simulated_run;
		sim->cluster.work = ycsb_simulated_work;
		sim->cluster.cache_use = sim_cache_use;
		sim->cluster.close = sim_close;
		if (open_all(sim))
			return &sim->cluster;
		sim_close(&sim->cluster);
	}
	fprintf(stderr, "ycsb: there is not enough memory for this cluster\n");
	return NULL;
}
