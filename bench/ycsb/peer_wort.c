/*
 * peer_wort.c
 *	  A model of WORT (Lee et al., FAST'17) behind messages, as CANRT 2.4 and 4.1
 *	  compare with it.
 *
 * Layout (CANRT 2.4; WORT's own paper for the node): a radix tree of nodes with 16 children, for four bits of a
 * key each, and a header of eight bytes with the compressed path, in the memory node.
 *
 * Operations: the client WRITEs its request with an immediate into a ring buffer; the memory node's core finds it, goes
 * down the tree, a line of memory for each node, makes what it changes persistent, and SENDs the answer.  An insert
 * persists the leaf, a new node if it takes one, and the child that leads there; an update the leaf.  WORT knows no
 * concurrency: a message after the other.  A scan is a message for each key (CANRT 4.4).
 *
 * With several memory nodes each has a tree of its own, with the keys of equal last bits.
 *
 * Left out: deletion; NVM, but for what a persisted line takes; keys other than integers.
 */
#include "base/assert.h"
#include "base/bytes.h"
#include "peer.h"
#include "sorted.h"

#define FANOUT  16
#define NIBBLES 16          /* of a key */
#define LEAF    UINT64_C(1) /* of a word: what it leads to; blocks are aligned to 64 */
#define REQUEST 16          /* bytes of a message beside its entry */

struct node
{
	uint64_t depth; /* nibbles that all keys below have in common */
	uint64_t key;   /* one of them */
	uint64_t child[FANOUT];
};

struct leaf
{
	uint64_t key;
	uint64_t value;
};

struct tree
{
	uint64_t root[SIM_TIMED_NODES_MAX]; /* words, of each memory node; 0: none */
};

/* ---- the tree of a memory node ---- */

static unsigned int
nibble_of(uint64_t key, uint64_t depth)
{
	smart_assert(depth < NIBBLES);
	return (unsigned int) (key >> (60 - 4 * depth)) & 15;
}

/* Nibbles that two keys have in common. */
static uint64_t
common(uint64_t a, uint64_t b)
{
	return a == b ? NIBBLES : (uint64_t) __builtin_clzll(a ^ b) / 4;
}

static unsigned int
home_of(const struct peer_cluster *cluster, uint64_t key)
{
	return (unsigned int) (key % cluster->options->memory_nodes);
}

static void *
block_at(const struct peer_cluster *cluster, uint64_t word)
{
	smart_assert((word & ~LEAF) != 0);
	return peer_memory(cluster, word & ~LEAF);
}

/* Where the key's leaf is, or where its way ends; what is looked at on it. */
struct way
{
	uint64_t *link; /* the word that the key's leaf, or a node above it, belongs into */
	uint64_t depth; /* nibbles in common with what is below the link; NIBBLES: the leaf itself */
	unsigned int lines;
};

static struct way
find_way(const struct peer_cluster *cluster, uint64_t key)
{
	struct tree *tree = cluster->state;
	struct way way = {.link = &tree->root[home_of(cluster, key)]};

	while (*way.link != 0)
	{
		struct node *node = block_at(cluster, *way.link);

		way.lines++;
		if ((*way.link & LEAF) != 0)
		{
			way.depth = common(key, ((struct leaf *) (void *) node)->key);
			break;
		}
		smart_assert(node->depth < NIBBLES);
		way.depth = common(key, node->key);
		if (way.depth < node->depth)
			break;
		way.link = &node->child[nibble_of(key, node->depth)];
	}
	return way;
}

static uint64_t
new_leaf(struct peer_cluster *cluster, uint64_t key, uint64_t value)
{
	fabric_address address =
		peer_allocate_at(cluster, home_of(cluster, key), sizeof(struct leaf) - 8 + cluster->options->value_bytes);

	if (address == 0)
		return 0;
	*(struct leaf *) peer_memory(cluster, address) = (struct leaf){.key = key, .value = value};
	return address | LEAF;
}

/* An entry whose key is not there; false: no space. */
static bool
add_entry(struct peer_cluster *cluster, const struct way *way, uint64_t key, uint64_t value)
{
	uint64_t leaf = new_leaf(cluster, key, value);
	uint64_t below = *way->link;
	fabric_address address;
	struct node *node;

	smart_assert(way->depth < NIBBLES);
	if (leaf == 0)
		return false;
	if (below == 0)
	{
		*way->link = leaf;
		return true;
	}
	address = peer_allocate_at(cluster, home_of(cluster, key), sizeof(*node));
	if (address == 0)
		return false;
	node = peer_memory(cluster, address);
	node->depth = way->depth;
	node->key = key;
	node->child[nibble_of(key, way->depth)] = leaf;
	/* Leaves and nodes alike tell a key that is below. */
	node->child[nibble_of((below & LEAF) != 0 ? ((struct leaf *) block_at(cluster, below))->key
											  : ((struct node *) block_at(cluster, below))->key,
						  way->depth)] = below;
	*way->link = address;
	return true;
}

/* The lowest key from a key on, below a word; false: there is none. */
static bool
find_next(const struct peer_cluster *cluster, uint64_t word, uint64_t key, uint64_t *next)
{
	const struct node *node = word == 0 ? NULL : block_at(cluster, word);
	uint64_t shared;

	if (node == NULL)
		return false;
	if ((word & LEAF) != 0)
	{
		*next = ((const struct leaf *) (const void *) node)->key;
		return *next >= key;
	}
	shared = common(key, node->key);
	if (shared < node->depth && node->key < key)
		return false;
	for (unsigned int i = shared < node->depth ? 0 : nibble_of(key, node->depth); i < FANOUT; i++)
	{
		if (find_next(cluster, node->child[i], key, next))
			return true;
	}
	return false;
}

/* ---- messages ---- */

struct call
{
	struct peer_cluster *cluster;
	uint64_t key;
	uint64_t value;
	bool writes;
	bool found;
	bool no_space;
};

static void
serve(void *argument)
{
	struct call *call = argument;
	struct way way = find_way(call->cluster, call->key);

	call->found = *way.link != 0 && way.depth == NIBBLES;
	if (call->writes && call->found)
		((struct leaf *) block_at(call->cluster, *way.link))->value = call->value;
	else if (call->writes)
		call->no_space = !add_entry(call->cluster, &way, call->key, call->value);
}

/* What is persisted is what the tree has now: the answer may find it one node higher. */
static void
call_memory(struct peer_client *client, struct call *call)
{
	const struct ycsb_options *options = client->cluster->options;
	struct way way = find_way(client->cluster, call->key);
	unsigned int persists = !call->writes ? 0 : *way.link == 0 ? 2 : way.depth == NIBBLES ? 1 : 3;
	struct sim_timed_message message = {
		.node = home_of(client->cluster, call->key),
		.bytes = REQUEST + sizeof(call->key) + (call->writes ? options->value_bytes : 0),
		.answer_bytes = sizeof(uint64_t) + (call->writes ? 0 : options->value_bytes),
		.work_ns = way.lines * options->model.cache_ns + persists * PEER_PERSIST_NS,
		.serve = serve,
		.argument = call,
	};

	call->cluster = client->cluster;
	sim_timed_call(&client->simulated.timed, &message);
}

static smart_status
wort_lookup(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, bool *found)
{
	struct call call = {.key = smart_load_be64(bytes)};

	smart_assert(length == YCSB_INTEGER_BYTES);
	call_memory(peer_client_of(ycsb), &call);
	*found = call.found;
	return SMART_OK;
}

static smart_status
wort_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	struct call call = {.key = smart_load_be64(entry),
						.value = peer_value_of(entry, key_length, length),
						.writes = true};

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	call_memory(peer_client_of(ycsb), &call);
	*added = !call.found;
	return call.no_space ? SMART_NO_SPACE : SMART_OK;
}

static smart_status
wort_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	bool added;
	smart_status status = wort_insert(ycsb, entry, key_length, length, &added);

	return status == SMART_OK && added ? SMART_CORRUPT : status;
}

/* The client knows the keys that it asks for, one after the other. */
static smart_status
wort_scan(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	const struct tree *tree = client->cluster->state;
	uint64_t key = smart_load_be64(bytes);

	smart_assert(length == YCSB_INTEGER_BYTES);
	for (*seen = 0; *seen < wanted; (*seen)++)
	{
		struct call call = {.key = UINT64_MAX};
		uint64_t next;
		bool any = false;

		for (unsigned int i = 0; i < client->cluster->options->memory_nodes; i++)
		{
			if (!find_next(client->cluster, tree->root[i], key, &next))
				continue;
			call.key = next < call.key ? next : call.key;
			any = true;
		}
		if (!any)
			break;
		call_memory(client, &call);
		key = call.key + 1;
	}
	return SMART_OK;
}

/* ---- load ---- */

static smart_status
load_key(void *argument, const uint8_t *key, size_t key_length, uint64_t record)
{
	struct peer_cluster *cluster = argument;
	uint64_t integer = smart_load_be64(key);
	struct way way = find_way(cluster, integer);

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	return add_entry(cluster, &way, integer, record) ? SMART_OK : SMART_NO_SPACE;
}

static smart_status
wort_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	return ycsb_sorted(options->key_type, options->keys, ycsb->env, load_key, peer_client_of(ycsb)->cluster);
}

static bool
open_tree(struct peer_cluster *cluster)
{
	return true;
}

static void
use_of_cache(struct peer_compute *node, struct ycsb_cache_use *use)
{
}

const struct peer peer_wort = {
	.index =
		{
			.load = wort_load,
			.lookup = wort_lookup,
			.insert = wort_insert,
			.update = wort_update,
			.scan = wort_scan,
		},
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = 1,
	.client_bytes = 1,
	.open = open_tree,
	.cache_use = use_of_cache,
};
