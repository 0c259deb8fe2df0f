/*
 * peer_canrt.c
 *	  A model of CANRT (Ying et al.): a radix tree whose clients know the way to every
 *	  data node.
 *
 * Layout (3.1, 3.2): prefix nodes, which every compute node has, lead by the first k
 * characters of a key to a data node; here a character is four bits.  A data node has a
 * word with a bitmap and a lock, and items in no order.
 *
 * Operations: a lookup READs the data node whole (3.4).  A write (3.3) adds one to the lock
 * by FAA, and tries again after a while if somebody had it; WRITEs its item with an
 * immediate to the first free place, and is over when that is posted.  The memory node sets
 * the bit, clears that of an older version, and gives the lock back.  Where no place is
 * free the memory node makes another tree of one more character (3.5, addHeight), while
 * which others read and write; compute nodes READ the prefix nodes anew.
 *
 * A WRITE with an immediate is a message of the clock here, whose core takes what polling, one
 * line of memory and making it persistent do, and no more; it is counted as a message.  The
 * core that posts it does so twice: for the client, and for the message.
 *
 * Reads may come before the memory node has set the bit: who does not find a key in a locked
 * node READs it again, since the driver asks for what has been inserted.
 *
 * Left out: addWidth, since integers have all characters; deletion; crash recovery; NVM, but for
 * what a persisted line takes; keys other than integers, for which 16 to the power of k
 * data nodes of so many beginnings do not fit into any memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "keys.h"
#include "peer.h"

#define SLOTS          40 /* of 48 that the bitmap may have: the lock counts all who ask for it, for milliseconds */
#define FULL           ((UINT64_C(1) << SLOTS) - 1) /* of the bitmap */
#define LOCKED         (UINT64_C(1) << SLOTS)
#define LOCK_MASK      (~FULL)
#define MOVED          (UINT64_C(1) << 63) /* of the lock: the node belongs to an old tree */
#define LOAD_SLOTS     30                  /* of a data node, after a load */
#define CHARACTER_BITS 4
#define HEIGHT_MAX     8
#define PREFIX_ENTRY   5 /* bytes of the prefix nodes for each beginning: a character and a data node's number */
#define SCAN_NODES     16
#define VALUE_MAX      1024
#define ITEM_HEAD      1 /* operation and validity */
#define NODE_MAX       (8 + SLOTS * (ITEM_HEAD + 8 + VALUE_MAX))
#define CLIENTS_MAX    (SIM_TIMED_CLIENTS_MAX / 2) /* each has a second one, which goes with its WRITE */

struct tree
{
	uint32_t height; /* characters that lead to a data node */
	uint32_t stride; /* of an item */
	uint64_t node_bytes;
	uint64_t items;
	struct sim_timed_lock resizing;
	fabric_address base[HEIGHT_MAX + 1][SIM_TIMED_NODES_MAX]; /* of the data nodes of each tree that there was */
	fabric_address prefixes;                                  /* of the newest one */
};

struct compute
{
	uint32_t height; /* of its prefix nodes */
	struct sim_timed_lock fetching;
};

/* A WRITE with an immediate under way. */
struct append
{
	struct peer_cluster *cluster;
	struct sim_timed_client carrier;
	struct sim_timed_lock under_way;
	uint32_t height; /* of the tree whose node it goes to */
	unsigned int slot;
	uint64_t key;
	uint64_t value;
};

struct client
{
	struct append append;
	_Alignas(8) uint8_t node[SCAN_NODES][NODE_MAX];
};

/* ---- data nodes ---- */

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

static uint64_t
nodes_of(uint32_t height)
{
	smart_assert(height <= HEIGHT_MAX);
	return UINT64_C(1) << (CHARACTER_BITS * height);
}

static uint64_t
number_of(uint64_t key, uint32_t height)
{
	smart_assert(height >= 1 && height <= HEIGHT_MAX);
	return key >> (64 - CHARACTER_BITS * height);
}

static fabric_address
node_address(const struct peer_cluster *cluster, uint32_t height, uint64_t number)
{
	const struct tree *tree = tree_of(cluster);
	unsigned int memory_nodes = cluster->options->memory_nodes;

	smart_assert(number < nodes_of(height));
	return tree->base[height][number % memory_nodes] + number / memory_nodes * tree->node_bytes;
}

static uint64_t *
node_at(const struct peer_cluster *cluster, uint32_t height, uint64_t number)
{
	return peer_memory(cluster, node_address(cluster, height, number));
}

static uint8_t *
item_at(const struct tree *tree, void *node, unsigned int slot)
{
	smart_assert(slot < SLOTS);
	return (uint8_t *) node + sizeof(uint64_t) + slot * tree->stride + ITEM_HEAD;
}

static uint64_t
item_key(const struct tree *tree, void *node, unsigned int slot)
{
	uint64_t key;

	memcpy(&key, item_at(tree, node, slot), sizeof(key));
	return key;
}

/* The slot of a key, or -1. */
static int
find_item(const struct tree *tree, void *node, uint64_t key)
{
	uint64_t meta;

	memcpy(&meta, node, sizeof(meta));
	for (unsigned int slot = 0; slot < SLOTS; slot++)
	{
		if ((meta >> slot & 1) != 0 && item_key(tree, node, slot) == key)
			return (int) slot;
	}
	return -1;
}

static unsigned int
free_slot(uint64_t meta)
{
	smart_assert((meta & FULL) != FULL);
	return (unsigned int) __builtin_ctzll(~meta);
}

/* The item is there, and no other version of it. */
static void
put_item(struct tree *tree, uint64_t *node, unsigned int slot, uint64_t key, uint64_t value)
{
	uint8_t *item = item_at(tree, node, slot);
	int old = find_item(tree, node, key);

	smart_assert((*node >> slot & 1) == 0);
	memcpy(item, &key, sizeof(key));
	memcpy(item + sizeof(key), &value, sizeof(value));
	*node |= UINT64_C(1) << slot;
	if (old >= 0)
		*node &= ~(UINT64_C(1) << old);
	else
		tree->items++;
}

/* Data nodes for a tree of this height, and its prefix nodes; false: no space. */
static bool
allocate_tree(struct peer_cluster *cluster, uint32_t height)
{
	struct tree *tree = tree_of(cluster);
	unsigned int memory_nodes = cluster->options->memory_nodes;

	smart_assert(height >= 1 && tree->node_bytes > 0);
	if (height > HEIGHT_MAX)
		return false;
	for (unsigned int i = 0; i < memory_nodes; i++)
	{
		tree->base[height][i] = peer_allocate_at(cluster, i, (nodes_of(height) / memory_nodes + 1) * tree->node_bytes);
		if (tree->base[height][i] == 0)
			return false;
	}
	tree->prefixes = peer_allocate(cluster, nodes_of(height) * PREFIX_ENTRY);
	return tree->prefixes != 0;
}

/* ---- the memory node ---- */

/* All nodes of the newest tree for keys that begin like those of a node of an older one. */
static void
unlock_below(struct peer_cluster *cluster, uint32_t height, uint64_t number)
{
	uint32_t newest = tree_of(cluster)->height;
	uint64_t width = nodes_of(newest - height);

	smart_assert(height <= newest);
	for (uint64_t i = 0; i < width; i++)
		*node_at(cluster, newest, number * width + i) &= FULL;
}

/* An item has arrived: in a node that may have moved since the lock was taken. */
static void
serve_append(void *argument)
{
	struct append *append = argument;
	struct peer_cluster *cluster = append->cluster;
	struct tree *tree = tree_of(cluster);
	uint64_t *node = node_at(cluster, tree->height, number_of(append->key, tree->height));

	smart_assert((*node & LOCK_MASK) != 0);
	smart_assert(append->height <= tree->height && append->slot < SLOTS);
	put_item(tree, node, append->height == tree->height ? append->slot : free_slot(*node), append->key, append->value);
	unlock_below(cluster, append->height, number_of(append->key, append->height));
}

/* One node's items into those of the next tree, which stay locked while its writer is on the way. */
static void
move_node(struct peer_cluster *cluster, uint32_t height, uint64_t number)
{
	struct tree *tree = tree_of(cluster);
	uint64_t *node = node_at(cluster, height, number);
	uint64_t width = nodes_of(1);
	bool locked = (*node & LOCK_MASK) != 0 && (*node & FULL) != FULL;

	smart_assert((*node & MOVED) == 0);
	for (unsigned int slot = 0; slot < SLOTS; slot++)
	{
		const uint8_t *item = item_at(tree, node, slot);
		uint64_t *target;
		uint8_t *copy;

		if ((*node >> slot & 1) == 0)
			continue;
		target = node_at(cluster, height + 1, number_of(item_key(tree, node, slot), height + 1));
		copy = item_at(tree, target, free_slot(*target));
		memcpy(copy, item, tree->stride - ITEM_HEAD);
		*target |= UINT64_C(1) << free_slot(*target);
	}
	for (uint64_t i = 0; i < width && locked; i++)
		*node_at(cluster, height + 1, number * width + i) |= LOCKED;
	*node = (*node & FULL) | MOVED;
}

struct resize
{
	struct peer_cluster *cluster;
	bool no_space;
};

static void
serve_resize(void *argument)
{
	struct resize *resize = argument;
	struct tree *tree = tree_of(resize->cluster);

	resize->no_space = !allocate_tree(resize->cluster, tree->height + 1);
	if (resize->no_space)
		return;
	for (uint64_t number = 0; number < nodes_of(tree->height); number++)
		move_node(resize->cluster, tree->height, number);
	tree->height++;
}

/* ---- lookups ---- */

static struct client *
mine_of(struct peer_client *client)
{
	return client->state;
}

static struct compute *
compute_of(struct peer_client *client)
{
	return client->compute->state;
}

/* The prefix nodes of the newest tree, if there is one; one client of a compute node READs them. */
static smart_status
refresh(struct peer_client *client, bool *newer)
{
	struct compute *compute = compute_of(client);
	struct tree *tree = tree_of(client->cluster);
	uint32_t height = compute->height;
	smart_status status = SMART_OK;

	sim_timed_acquire(&client->simulated.timed, &compute->fetching);
	if (compute->height < tree->height)
	{
		uint32_t newest = tree->height;
		uint64_t bytes = nodes_of(newest) * PREFIX_ENTRY;
		void *copy = malloc(bytes);

		status = copy == NULL ? SMART_NO_MEMORY : peer_read(client, tree->prefixes, copy, bytes);
		free(copy);
		if (status == SMART_OK)
			compute->height = newest;
	}
	smart_assert(compute->height >= height && compute->height <= tree->height);
	*newer = compute->height > height;
	sim_timed_release(&client->simulated.timed, &compute->fetching);
	return status;
}

/* The way through the prefix nodes: a step for each character. */
static fabric_address
find_node(struct peer_client *client, uint64_t key, uint32_t *height)
{
	*height = compute_of(client)->height;
	sim_timed_compute(&client->simulated.timed, *height * client->cluster->options->model.cache_ns);
	return node_address(client->cluster, *height, number_of(key, *height));
}

static smart_status
canrt_lookup(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct tree *tree = tree_of(client->cluster);
	void *node = mine_of(client)->node[0];
	uint64_t key = smart_load_be64(bytes);
	uint64_t meta;
	bool again = true;
	smart_status status = SMART_OK;

	smart_assert(length == YCSB_INTEGER_BYTES);
	while (status == SMART_OK && again)
	{
		uint32_t height;

		status = peer_read(client, find_node(client, key, &height), node, tree->node_bytes);
		memcpy(&meta, node, sizeof(meta));
		again = false;
		if (status == SMART_OK && (meta & MOVED) != 0)
			status = refresh(client, &again);
		*found = status == SMART_OK && find_item(tree, node, key) >= 0;
		again |= !*found && (meta & LOCK_MASK) != 0;
	}
	return status;
}

/* ---- writes ---- */

static void
carry(void *argument)
{
	struct append *append = argument;
	const struct sim_model *model = &append->cluster->options->model;
	const struct tree *tree = tree_of(append->cluster);
	struct sim_timed_message message = {
		.node = fabric_node(node_address(append->cluster, append->height, number_of(append->key, append->height))),
		.bytes = tree->stride,
		.work_ns = model->poll_ns + model->cache_ns + PEER_PERSIST_NS,
		.serve = serve_append,
		.argument = append,
	};

	sim_timed_acquire(&append->carrier, &append->under_way);
	sim_timed_call(&append->carrier, &message);
	sim_timed_release(&append->carrier, &append->under_way);
}

/* When all clients have their cores: it works on its client's. */
static void
open_append(struct peer_client *client, struct append *append)
{
	smart_assert(client->simulated.client.number < CLIENTS_MAX);
	append->cluster = client->cluster;
	sim_timed_client_init(&append->carrier, &client->cluster->timed, client->compute->number);
	append->carrier.core = client->simulated.timed.core;
}

/* Posts the item's WRITE, which the client does not wait for, unless the one before is still on its way. */
static void
post_append(struct peer_client *client, uint64_t key, uint64_t value, uint32_t height, unsigned int slot)
{
	const struct sim_model *model = &client->cluster->options->model;
	struct append *append = &mine_of(client)->append;

	smart_assert(slot < SLOTS);
	if (append->cluster == NULL)
		open_append(client, append);
	sim_timed_acquire(&client->simulated.timed, &append->under_way);
	sim_timed_release(&client->simulated.timed, &append->under_way);
	smart_assert(append->under_way.holder == NULL);
	append->height = height;
	append->slot = slot;
	append->key = key;
	append->value = value;
	sim_timed_start(&append->carrier, carry, append);
	client->simulated.client.fabric->counters.descents++;
	sim_timed_compute(&client->simulated.timed, model->doorbell_ns + model->request_ns);
}

/* Asks the memory node for a tree with room, unless somebody has, and waits for it. */
static smart_status
ask_for_room(struct peer_client *client, uint32_t height)
{
	const struct sim_model *model = &client->cluster->options->model;
	struct tree *tree = tree_of(client->cluster);
	struct resize resize = {.cluster = client->cluster};
	struct sim_timed_message message = {
		.bytes = sizeof(uint64_t),
		.work_ns = tree->items * (model->cache_ns + PEER_PERSIST_NS),
		.serve = serve_resize,
		.argument = &resize,
	};
	bool newer;

	smart_assert(height <= tree->height);
	sim_timed_acquire(&client->simulated.timed, &tree->resizing);
	if (tree->height == height)
		sim_timed_call(&client->simulated.timed, &message);
	sim_timed_release(&client->simulated.timed, &tree->resizing);
	return resize.no_space ? SMART_NO_SPACE : refresh(client, &newer);
}

/* Algorithm 1. */
static smart_status
write_item(struct peer_client *client, uint64_t key, uint64_t value)
{
	struct smart_env *env = client->simulated.client.env;
	smart_status status = SMART_OK;

	for (unsigned int attempt = 0; status == SMART_OK; attempt++)
	{
		uint32_t height;
		bool newer = false;
		struct fabric_request lock = {.verb = FABRIC_FAA, .operand = LOCKED};

		lock.remote = find_node(client, key, &height);
		status = fabric_execute(client->simulated.client.fabric, &lock, 1);
		if (status != SMART_OK)
			break;
		if ((lock.result & LOCK_MASK) == 0 && (lock.result & FULL) != FULL)
		{
			post_append(client, key, value, height, free_slot(lock.result));
			break;
		}
		if ((lock.result & LOCK_MASK) == 0)
			status = ask_for_room(client, height);
		else if ((lock.result & MOVED) != 0)
			status = refresh(client, &newer);
		if ((lock.result & LOCK_MASK) != 0 && !newer)
			env->pause(env, attempt);
	}
	return status;
}

static smart_status
canrt_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	smart_assert(key_length == YCSB_INTEGER_BYTES);
	*added = true;
	return write_item(peer_client_of(ycsb), smart_load_be64(entry), peer_value_of(entry, key_length, length));
}

static smart_status
canrt_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	smart_assert(key_length == YCSB_INTEGER_BYTES);
	return write_item(peer_client_of(ycsb), smart_load_be64(entry), peer_value_of(entry, key_length, length));
}

/* ---- scan: READs of data nodes one behind the other in the order of their prefixes (4.4) ---- */

static smart_status
read_nodes(struct peer_client *client, uint32_t height, uint64_t first, unsigned int count, bool *moved)
{
	struct tree *tree = tree_of(client->cluster);
	struct client *mine = mine_of(client);
	struct fabric_request requests[SCAN_NODES];
	smart_status status;

	smart_assert(count > 0 && count <= SCAN_NODES);
	smart_assert(first + count <= nodes_of(height));
	for (unsigned int i = 0; i < count; i++)
		requests[i] = (struct fabric_request){.verb = FABRIC_READ,
											  .length = (uint32_t) tree->node_bytes,
											  .remote = node_address(client->cluster, height, first + i),
											  .local = mine->node[i]};
	status = fabric_execute(client->simulated.client.fabric, requests, (int) count);
	*moved = false;
	for (unsigned int i = 0; i < count && status == SMART_OK && !*moved; i++)
	{
		uint64_t meta;

		memcpy(&meta, mine->node[i], sizeof(meta));
		if ((meta & MOVED) != 0)
			status = refresh(client, moved);
	}
	return status;
}

static uint64_t
count_from(const struct tree *tree, uint8_t *node, uint64_t key)
{
	uint64_t count = 0;
	uint64_t meta;

	memcpy(&meta, node, sizeof(meta));
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		count += (meta >> slot & 1) != 0 && item_key(tree, node, slot) >= key;
	return count;
}

static smart_status
canrt_scan(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t key = smart_load_be64(bytes);
	uint32_t height = compute_of(client)->height;
	uint64_t next = number_of(key, height);
	smart_status status = SMART_OK;

	smart_assert(length == YCSB_INTEGER_BYTES);
	*seen = 0;
	while (status == SMART_OK && *seen < wanted && next < nodes_of(height))
	{
		uint64_t left = nodes_of(height) - next;
		uint64_t some = (wanted - *seen) / (SLOTS / 4) + 1;
		unsigned int count = (unsigned int) (some < SCAN_NODES ? some : SCAN_NODES);
		bool moved;

		count = left < count ? (unsigned int) left : count;
		status = read_nodes(client, height, next, count, &moved);
		if (status == SMART_OK && moved)
		{
			height = compute_of(client)->height;
			next = number_of(key, height);
			*seen = 0;
			continue;
		}
		for (unsigned int i = 0; i < count && status == SMART_OK; i++)
			*seen += count_from(tree_of(client->cluster), mine_of(client)->node[i], key);
		next += count;
	}
	if (*seen > wanted)
		*seen = wanted;
	return status;
}

/* ---- load ---- */

/* Does a tree of this height leave room in all of its nodes? */
static bool
is_high_enough(const struct peer_keys *keys, uint32_t height)
{
	uint64_t number = 0;
	unsigned int count = 0;

	for (uint64_t i = 0; i < keys->count; i++)
	{
		uint64_t mine = number_of(smart_load_be64(peer_key_at(keys, i)), height);

		count = mine == number ? count + 1 : 1;
		number = mine;
		if (count > LOAD_SLOTS)
			return false;
	}
	return true;
}

static smart_status
canrt_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct peer_cluster *cluster = client->cluster;
	struct tree *tree = tree_of(cluster);
	struct peer_keys keys;
	smart_status status = peer_keys_collect(&keys, client, options);

	smart_assert(tree->items == 0);
	while (status == SMART_OK && tree->height < HEIGHT_MAX && !is_high_enough(&keys, tree->height))
		tree->height++;
	if (status == SMART_OK && !allocate_tree(cluster, tree->height))
		status = SMART_NO_SPACE;
	for (uint64_t i = 0; i < keys.count && status == SMART_OK; i++)
	{
		uint64_t key = smart_load_be64(peer_key_at(&keys, i));
		uint64_t *node = node_at(cluster, tree->height, number_of(key, tree->height));

		if ((*node & FULL) == FULL)
			status = SMART_NO_SPACE;
		else
			put_item(tree, node, free_slot(*node), key, keys.value[i]);
	}
	smart_assert(status != SMART_OK || tree->items == keys.count);
	for (unsigned int i = 0; i < options->compute_nodes; i++)
		((struct compute *) cluster->compute[i].state)->height = tree->height;
	peer_keys_free(&keys);
	return status;
}

/* ---- opening and closing ---- */

static bool
open_tree(struct peer_cluster *cluster)
{
	const struct ycsb_options *options = cluster->options;
	struct tree *tree = tree_of(cluster);

	if (options->clients * options->compute_nodes > CLIENTS_MAX)
	{
		fprintf(stderr, "ycsb: canrt has room for %d clients\n", CLIENTS_MAX);
		return false;
	}
	/* What a message takes is told with each. */
	cluster->timed.options.model.message_ns = 0;
	tree->height = 1;
	tree->stride = ITEM_HEAD + 8 + options->value_bytes;
	tree->node_bytes = (sizeof(uint64_t) + SLOTS * tree->stride + 7) / 8 * 8;
	smart_assert(tree->node_bytes <= NODE_MAX);
	return allocate_tree(cluster, tree->height);
}

static bool
open_compute(struct peer_compute *node)
{
	((struct compute *) node->state)->height = tree_of(node->cluster)->height;
	return true;
}

static void
close_client(struct peer_client *client)
{
	if (mine_of(client)->append.cluster != NULL)
		sim_timed_client_close(&mine_of(client)->append.carrier);
}

static void
use_of_cache(struct peer_compute *node, struct ycsb_cache_use *use)
{
	const struct compute *compute = node->state;

	use->node_bytes += nodes_of(compute->height) * PREFIX_ENTRY;
}

const struct peer peer_canrt = {
	.index =
		{
			.load = canrt_load,
			.lookup = canrt_lookup,
			.insert = canrt_insert,
			.update = canrt_update,
			.scan = canrt_scan,
		},
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = sizeof(struct compute),
	.client_bytes = sizeof(struct client),
	.open = open_tree,
	.open_compute = open_compute,
	.close_client = close_client,
	.cache_use = use_of_cache,
};
