/*
 * peer_smart.c
 *	  A model of SMART (Luo et al., OSDI'23): the radix tree, with its techniques.
 *
 * Layout (4.1.1): an internal node is a reverse pointer, a header with up to six
 * bytes of the path, and slots; room for 256 is always there (4.1.2, node type
 * switch), and the type, in the header and in the slot above, says how many of
 * them a READ fetches.  A leaf is a reverse pointer, a checksum, one entry, and
 * a word at the rear with the lock; a READ fetches up to the lock: 34 bytes for
 * keys and values of eight.
 *
 * Operations (4.1.2, 4.4): insert WRITEs the leaf and CASes a slot; leaf split and
 * header split WRITE nodes and leaf together and CAS the slot above; a node type
 * switch CASes the first slot behind the node, and then both types at once; an
 * update CASes the lock and WRITEs the leaf with the lock free.  Read delegation
 * and write combining (4.2): peer_delegate; without them (no --rdwc) writers of a compute
 * node queue for a leaf.  The cache (4.3) has nodes by their key
 * prefix and gives them up first in, first out, under one lock (DEX 8.2 tells of its
 * contention).  Scan (4.4): READs of a level at a time.
 *
 * smart-partitioned is DEX's P-SMART (8.1, 8.2), of integers: who has a key works with the cache and the delegation table
 * of the compute node that it belongs to, and an update locks no leaf.
 *
 * Left out: deletion; checksums (nothing is torn here, but they are WRITTEN and READ);
 * values other than eight bytes; recovery, of which SMART has none.  A reader that
 * joins a READ under way may be given what was there before its call, as 4.2 has it.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "keys.h"
#include "peer_radix.h"

#define SLOTS       256
#define TYPES       7
#define HEADER_MAX  6 /* bytes of the path in a header */
#define FRONT       16
#define NODE_BYTES  (FRONT + SLOTS * 8)
#define VALUE_BYTES 8
#define LEAF_MAX    (16 + YCSB_KEY_MAX + 8 + VALUE_BYTES + 8)
#define FIFO_NS     100 /* of the cache's lock for each change of its queue: assumed */
#define HEIGHT_MAX  YCSB_KEY_MAX

static const unsigned int type_slots[TYPES] = {4, 8, 16, 32, 64, 128, 256};

/* ---- words ---- */

/* A slot: address in bits 0..47, type of the node 48..52, leaf 53, occupied 54, key byte 56..63. */
#define SLOT_LEAF (UINT64_C(1) << 53)
#define SLOT_USED (UINT64_C(1) << 54)

static uint64_t
make_slot(uint8_t byte, fabric_address address, bool leaf, unsigned int type)
{
	smart_assert(address >> 48 == 0 && type < TYPES);
	return (uint64_t) byte << 56 | SLOT_USED | (leaf ? SLOT_LEAF : (uint64_t) type << 48) | address;
}

static fabric_address
slot_address(uint64_t slot)
{
	return slot & ((UINT64_C(1) << 48) - 1);
}

static unsigned int
slot_type(uint64_t slot)
{
	return (unsigned int) (slot >> 48) & 31;
}

/* A header: path bytes in 0..47, depth 48..55, length of the path 56..58, type 59..63. */
static uint64_t
make_header(unsigned int depth, const uint8_t *path, unsigned int length, unsigned int type)
{
	uint64_t header = (uint64_t) depth << 48 | (uint64_t) length << 56 | (uint64_t) type << 59;

	smart_assert(length <= HEADER_MAX && depth <= YCSB_KEY_MAX);
	smart_assert(type < TYPES);
	for (unsigned int i = 0; i < length; i++)
		header |= (uint64_t) path[i] << (8 * i);
	return header;
}

static unsigned int
header_depth(uint64_t header)
{
	return (unsigned int) (header >> 48) & 0xff;
}

static unsigned int
header_length(uint64_t header)
{
	return (unsigned int) (header >> 56) & 7;
}

static unsigned int
header_type(uint64_t header)
{
	return (unsigned int) (header >> 59);
}

struct node
{
	uint64_t parent;
	uint64_t header;
	uint64_t slot[SLOTS];
};

_Static_assert(sizeof(struct node) == NODE_BYTES, "nodes have no holes");

/* Bytes of the path and where the slots' byte is in a key. */
static unsigned int
node_depth(const struct node *node)
{
	return header_depth(node->header) + header_length(node->header);
}

static uint64_t
node_bytes(unsigned int type)
{
	smart_assert(type < TYPES);
	return FRONT + type_slots[type] * UINT64_C(8);
}

/* ---- the tree ---- */

struct tree
{
	fabric_address root; /* a node that begins with byte 0 and never has a path */
	uint64_t nodes;
};

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

/* Up to the lock. */
static uint64_t
leaf_bytes(size_t key_length)
{
	return 16 + (key_length + VALUE_BYTES + 7) / 8 * 8 + 2;
}

static fabric_address
leaf_lock(fabric_address leaf, size_t key_length)
{
	return leaf + leaf_bytes(key_length) - 2;
}

static void
fill_leaf(uint8_t *leaf, fabric_address parent, const uint8_t *key, size_t key_length, uint64_t value)
{
	memset(leaf, 0, leaf_bytes(key_length));
	memcpy(leaf, &parent, sizeof(parent));
	memcpy(leaf + 16, key, key_length);
	memcpy(leaf + 16 + (key_length + 7) / 8 * 8, &value, sizeof(value));
}

static bool
leaf_has(const uint8_t *leaf, const uint8_t *key, size_t key_length)
{
	return memcmp(leaf + 16, key, key_length) == 0;
}

/* ---- the cache of a compute node ---- */

struct entry
{
	struct entry *next_in_bucket;
	struct entry *newer; /* in the queue */
	uint64_t hash;       /* of the prefix, and its length */
	unsigned int depth;
	unsigned int type;
	fabric_address address;
	uint64_t front[2];
	uint64_t slot[];
};

struct cache
{
	struct entry **bucket;
	uint64_t buckets; /* a power of two */
	struct entry *oldest;
	struct entry *newest;
	uint64_t bytes;
	uint64_t hits; /* look-ups that did not begin at the root */
	uint64_t misses;
	struct sim_timed_lock lock;
	struct sim_timed_lock local[PEER_PLACES]; /* of leaves, where writes are not combined */
};

static uint64_t
entry_bytes(unsigned int type)
{
	smart_assert(type < TYPES);
	return 24 + type_slots[type] * UINT64_C(8);
}

static struct entry **
find_entry(struct cache *cache, uint64_t hash, unsigned int depth)
{
	struct entry **link = &cache->bucket[hash & (cache->buckets - 1)];

	while (*link != NULL && ((*link)->hash != hash || (*link)->depth != depth))
		link = &(*link)->next_in_bucket;
	return link;
}

static void
evict_oldest(struct cache *cache)
{
	struct entry *entry = cache->oldest;
	struct entry **link = &cache->bucket[entry->hash & (cache->buckets - 1)];

	smart_assert(cache->bytes >= entry_bytes(entry->type));
	while (*link != entry && *link != NULL)
		link = &(*link)->next_in_bucket;
	if (*link == entry)
		*link = entry->next_in_bucket;
	cache->oldest = entry->newer;
	if (cache->oldest == NULL)
		cache->newest = NULL;
	cache->bytes -= entry_bytes(entry->type);
	smart_assert((cache->oldest == NULL) == (cache->bytes == 0));
	free(entry);
}

static struct entry *
make_entry(const struct node *node, fabric_address address, uint64_t hash)
{
	unsigned int type = header_type(node->header);
	struct entry *entry = malloc(sizeof(*entry) + type_slots[type] * sizeof(uint64_t));

	if (entry == NULL)
		abort();
	*entry = (struct entry){.hash = hash,
							.depth = node_depth(node),
							.type = type,
							.address = address,
							.front = {node->parent, node->header}};
	memcpy(entry->slot, node->slot, type_slots[type] * sizeof(uint64_t));
	return entry;
}

/* Puts an entry into its bucket and to the end of the queue, and makes room for it. */
static void
admit(struct cache *cache, struct entry *entry, uint64_t capacity)
{
	struct entry **bucket = &cache->bucket[entry->hash & (cache->buckets - 1)];

	smart_assert(entry_bytes(entry->type) <= capacity);
	while (cache->bytes + entry_bytes(entry->type) > capacity)
		evict_oldest(cache);
	entry->next_in_bucket = *bucket;
	*bucket = entry;
	if (cache->newest != NULL)
		cache->newest->newer = entry;
	else
		cache->oldest = entry;
	cache->newest = entry;
	cache->bytes += entry_bytes(entry->type);
	smart_assert(cache->bytes <= capacity);
}

/* A copy of a node on the way to key.  One of the same type is overwritten, and keeps its place in the queue. */
static void
cache_keep(struct peer_client *client, const struct node *node, fabric_address address, const uint8_t *key)
{
	struct cache *cache = client->compute->state;
	unsigned int depth = node_depth(node);
	unsigned int type = header_type(node->header);
	uint64_t capacity = client->cluster->options->cache_bytes;
	uint64_t hash = peer_hash(key, depth);
	struct entry **link;

	if (entry_bytes(type) > capacity)
		return;
	peer_cache_work(client);
	link = find_entry(cache, hash, depth);
	if (*link != NULL && (*link)->type == type)
	{
		(*link)->address = address;
		memcpy((*link)->front, node, FRONT);
		memcpy((*link)->slot, node->slot, type_slots[type] * sizeof(uint64_t));
		return;
	}
	sim_timed_acquire(&client->simulated.timed, &cache->lock);
	sim_timed_compute(&client->simulated.timed, FIFO_NS);
	/* One of another type leaves its bucket now, and the queue when its turn comes. */
	link = find_entry(cache, hash, depth);
	if (*link != NULL)
		*link = (*link)->next_in_bucket;
	admit(cache, make_entry(node, address, hash), capacity);
	sim_timed_release(&client->simulated.timed, &cache->lock);
}

/* Copies the node of a prefix; its address, or 0. */
static fabric_address
cache_copy(struct cache *cache, const uint8_t *key, unsigned int depth, struct node *node)
{
	struct entry *entry = *find_entry(cache, peer_hash(key, depth), depth);

	if (entry == NULL)
		return 0;
	memcpy(node, entry->front, FRONT);
	memcpy(node->slot, entry->slot, type_slots[entry->type] * sizeof(uint64_t));
	smart_assert(node_depth(node) == depth && header_type(node->header) == entry->type);
	return entry->address;
}

/* Copies the deepest cached node on the way to key, not deeper than so many bytes; its address, or 0. */
static fabric_address
cache_find(struct peer_client *client, const uint8_t *key, unsigned int depth, struct node *node)
{
	struct cache *cache = client->compute->state;
	fabric_address address = 0;

	peer_cache_work(client);
	for (;; depth--)
	{
		address = cache_copy(cache, key, depth, node);
		if (address != 0 || depth == 0)
			break;
	}
	if (address != 0)
		cache->hits++;
	else
		cache->misses++;
	return address;
}

/* ---- descent ---- */

/* The slot that led to a node, in the node above. */
struct way_above
{
	fabric_address node; /* 0: there is none, or it is not known */
	fabric_address slot;
	uint64_t word;
	unsigned int depth;
	unsigned int type;
};

/* A client's way to a key: the node it is at. */
struct way
{
	struct node node;
	fabric_address address;
	struct way_above above;
	bool cached; /* the copy is not of this operation */
};

/* Bytes of the node's path that the key has. */
static unsigned int
matching(const struct node *node, const uint8_t *key)
{
	unsigned int depth = header_depth(node->header);
	unsigned int length = header_length(node->header);
	unsigned int same = 0;

	while (same < length && (uint8_t) (node->header >> (8 * same)) == key[depth + same])
		same++;
	return same;
}

/* READs a node as its slot has it, and the rest if it has grown. */
static smart_status
read_node(struct peer_client *client, fabric_address address, unsigned int type, struct node *node)
{
	smart_status status = peer_read(client, address, node, node_bytes(type));
	unsigned int now;

	smart_assert(address != 0);
	if (status != SMART_OK || (now = header_type(node->header)) <= type)
		return status;
	return peer_read(client, address + node_bytes(type), &node->slot[type_slots[type]],
					 node_bytes(now) - node_bytes(type));
}

/* Goes to a node whose path begins at this depth of the key; *moved: it does not any more. */
static smart_status
go_to(struct peer_client *client, struct way *way, fabric_address address, unsigned int type, const uint8_t *key,
	  unsigned int depth, bool *moved)
{
	smart_status status = read_node(client, address, type, &way->node);

	way->address = address;
	way->cached = false;
	*moved = header_depth(way->node.header) != depth;
	/* The key's bytes name the node if it has them all. */
	if (status == SMART_OK && !*moved && matching(&way->node, key) == header_length(way->node.header))
		cache_keep(client, &way->node, address, key);
	return status;
}

/* READs the node anew at which the client is.  Its path may have become shorter, at the front. */
static smart_status
read_again(struct peer_client *client, struct way *way, const uint8_t *key)
{
	smart_status status = read_node(client, way->address, header_type(way->node.header), &way->node);

	smart_assert(way->address != 0);
	way->cached = false;
	if (status == SMART_OK)
		cache_keep(client, &way->node, way->address, key);
	return status;
}

/* To the deepest node that the cache knows, or the root. */
static smart_status
set_out(struct peer_client *client, struct way *way, const uint8_t *key, size_t length)
{
	bool moved;

	smart_assert(length > 0);
	way->above.node = 0;
	way->cached = true;
	way->address = cache_find(client, key, (unsigned int) length - 1, &way->node);
	if (way->address != 0)
		return SMART_OK;
	return go_to(client, way, tree_of(client->cluster)->root, TYPES - 1, key, 0, &moved);
}

/* The slot of a byte, or -1; *free_slot: the first one without an entry, as far as the type reaches. */
static int
find_slot(const struct node *node, uint8_t byte, unsigned int *free_slot)
{
	unsigned int slots = type_slots[header_type(node->header)];

	smart_assert(header_type(node->header) < TYPES);
	for (unsigned int i = 0; i < slots; i++)
	{
		if (!(node->slot[i] & SLOT_USED))
		{
			*free_slot = i;
			return -1;
		}
		if (node->slot[i] >> 56 == byte)
			return (int) i;
	}
	*free_slot = slots;
	return -1;
}

/* What a descent came to. */
enum end
{
	END_LEAF,   /* a leaf is in the slot */
	END_FREE,   /* the node has no slot for the byte */
	END_PATH,   /* the node's path is not the key's */
	END_FAILED, /* status says why */
};

struct descent
{
	struct way way;
	enum end end;
	smart_status status;
	unsigned int slot; /* of the leaf, or the first free one */
	unsigned int same; /* END_PATH: bytes of the path that are the key's */
};

/* To the node that a slot leads to, or back where the path of that node has become shorter (4.1.2, header split). */
static smart_status
follow(struct peer_client *client, struct way *way, unsigned int slot, const uint8_t *key)
{
	unsigned int depth = node_depth(&way->node);
	struct way_above above = way->above;
	fabric_address address = way->address;
	unsigned int type = header_type(way->node.header);
	bool moved;
	smart_status status;

	smart_assert(slot < type_slots[type]);
	smart_assert((way->node.slot[slot] & SLOT_USED) != 0 && (way->node.slot[slot] & SLOT_LEAF) == 0);
	way->above = (struct way_above){address, address + FRONT + slot * 8, way->node.slot[slot], depth, type};
	status = go_to(client, way, slot_address(way->above.word), slot_type(way->above.word), key, depth + 1, &moved);
	if (status != SMART_OK || !moved)
		return status;
	way->above = above;
	way->address = address;
	way->node.header = make_header(0, NULL, 0, type);
	return read_again(client, way, key);
}

/* From where the client is. */
static void
descend(struct peer_client *client, struct descent *descent, const uint8_t *key)
{
	struct way *way = &descent->way;

	while (descent->status == SMART_OK)
	{
		int slot;

		descent->same = matching(&way->node, key);
		descent->end = END_PATH;
		if (descent->same < header_length(way->node.header))
			return;
		slot = find_slot(&way->node, key[node_depth(&way->node)], &descent->slot);
		if (slot < 0 && way->cached)
		{
			/* It may have come since: what the cache has says nothing of what is not there. */
			descent->status = read_again(client, way, key);
			continue;
		}
		descent->end = slot < 0 ? END_FREE : END_LEAF;
		if (slot >= 0)
			descent->slot = (unsigned int) slot;
		if (slot < 0 || (way->node.slot[slot] & SLOT_LEAF))
			return;
		descent->status = follow(client, way, (unsigned int) slot, key);
	}
	descent->end = END_FAILED;
}

/* A descent to the key's leaf, and the leaf; false: the key is not there, or the status is not SMART_OK. */
static bool
reach_leaf(struct peer_client *client, struct descent *descent, const uint8_t *key, size_t length, uint8_t *leaf)
{
	struct way *way = &descent->way;

	descent->status = set_out(client, way, key, length);
	for (;;)
	{
		descend(client, descent, key);
		if (descent->end != END_LEAF)
			return false;
		smart_assert((way->node.slot[descent->slot] & SLOT_LEAF) != 0);
		descent->status = peer_read(client, slot_address(way->node.slot[descent->slot]), leaf, leaf_bytes(length));
		if (descent->status != SMART_OK)
			descent->end = END_FAILED;
		if (descent->status != SMART_OK || leaf_has(leaf, key, length) || !way->cached)
			return descent->status == SMART_OK && leaf_has(leaf, key, length);
		/* The slot may lead elsewhere by now (4.3, type 1): the node is READ again. */
		descent->status = read_again(client, way, key);
	}
}

/* Of the keys of smart-partitioned, which are integers. */
static void
go_to_owner(struct peer_client *client, const uint8_t *key)
{
	if (client->cluster->variant == PEER_PARTITIONED)
		peer_go_to_owner(client, smart_load_be64(key));
}

/* ---- lookup ---- */

static smart_status
search(struct peer_client *client, const uint8_t *key, size_t length, uint64_t *value, bool *found)
{
	struct descent descent;
	uint8_t leaf[LEAF_MAX];

	*found = reach_leaf(client, &descent, key, length, leaf);
	if (*found)
		memcpy(value, leaf + 16 + (length + 7) / 8 * 8, sizeof(*value));
	return descent.status;
}

static smart_status
smart_lookup(struct ycsb_client *ycsb, const uint8_t *key, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	enum peer_role role = PEER_ALONE;
	uint64_t value = 0;
	smart_status status;

	go_to_owner(client, key);
	*found = true;
	if (client->compute->delegation != NULL)
		role = peer_delegate(client, key, length, false, &value);
	if (role == PEER_DELIVERED)
		return SMART_OK;
	status = search(client, key, length, &value, found);
	if (role == PEER_LEADS)
		peer_delegate_end(client, key, length, value);
	return status;
}

/* ---- update ---- */

static smart_status
write_leaf(struct peer_client *client, const uint8_t *key, size_t length, uint64_t *value, bool combines)
{
	struct descent descent;
	uint8_t leaf[LEAF_MAX];
	fabric_address address;
	uint64_t held = client->cluster->variant != PEER_PARTITIONED;

	if (!reach_leaf(client, &descent, key, length, leaf))
		return descent.status != SMART_OK ? descent.status : SMART_CORRUPT;
	address = slot_address(descent.way.node.slot[descent.slot]);
	while (descent.status == SMART_OK && held != 0)
		descent.status = peer_cas(client, leaf_lock(address, length), 0, 1, &held);
	if (descent.status != SMART_OK)
		return descent.status;
	if (combines)
		peer_delegate_close(client, key, length, value);
	memcpy(leaf + 16 + (length + 7) / 8 * 8, value, sizeof(*value));
	memset(leaf + leaf_bytes(length) - 2, 0, 2);
	return peer_write(client, address, leaf, leaf_bytes(length));
}

/* Without combining the clients of a compute node queue for a leaf, as SMART's baselines do (5.1). */
static smart_status
write_alone(struct peer_client *client, const uint8_t *key, size_t length, uint64_t *value)
{
	struct cache *cache = client->compute->state;
	struct sim_timed_lock *local = &cache->local[peer_hash(key, length) % PEER_PLACES];
	smart_status status;

	sim_timed_compute(&client->simulated.timed, client->cluster->options->model.lock_ns);
	sim_timed_acquire(&client->simulated.timed, local);
	status = write_leaf(client, key, length, value, false);
	sim_timed_release(&client->simulated.timed, local);
	return status;
}

static smart_status
smart_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	struct peer_client *client = peer_client_of(ycsb);
	enum peer_role role = PEER_ALONE;
	uint64_t value = peer_value_of(entry, key_length, length);
	smart_status status;

	go_to_owner(client, entry);
	if (client->compute->delegation == NULL)
		return write_alone(client, entry, key_length, &value);
	role = peer_delegate(client, entry, key_length, true, &value);
	if (role == PEER_DELIVERED)
		return SMART_OK;
	status = write_leaf(client, entry, key_length, &value, role == PEER_LEADS);
	if (role == PEER_LEADS)
		peer_delegate_end(client, entry, key_length, value);
	return status;
}

/* ---- insert ---- */

/* A leaf of one's own and the nodes above it, to be WRITTEN together. */
struct draft
{
	struct fabric_request request[HEIGHT_MAX];
	struct node node[HEIGHT_MAX / HEADER_MAX + 2];
	uint8_t leaf[LEAF_MAX];
	fabric_address leaf_address;
	int requests;
	unsigned int nodes;
};

/* What is too large for a client's stack. */
struct scratch
{
	struct draft draft;
	struct peer_radix_scratch scan;
};

static bool
draft_leaf(struct peer_client *client, struct draft *draft, fabric_address parent, const uint8_t *key, size_t length,
		   uint64_t value)
{
	draft->nodes = 0;
	draft->requests = 1;
	draft->leaf_address = peer_allocate(client->cluster, leaf_bytes(length) + 6);
	fill_leaf(draft->leaf, parent, key, length, value);
	draft->request[0] = (struct fabric_request){.verb = FABRIC_WRITE,
												.length = (uint32_t) leaf_bytes(length),
												.remote = draft->leaf_address,
												.local = draft->leaf};
	return draft->leaf_address != 0;
}

/*
 * Nodes for bytes from .. to - 1 of the key, the last of which has two slots: the leaf of the key, and other (whose
 * byte there is other_byte).  The address of the first one, or 0.
 */
static fabric_address
draft_chain(struct peer_client *client, struct draft *draft, fabric_address parent, const uint8_t *key,
			unsigned int from, unsigned int to, uint64_t other, uint8_t other_byte)
{
	fabric_address first = 0;
	struct node *above = NULL;

	smart_assert(from <= to && draft->requests == 1 && draft->nodes == 0);
	for (;;)
	{
		struct node *node = &draft->node[draft->nodes++];
		unsigned int length = to - from < HEADER_MAX ? to - from : HEADER_MAX;
		fabric_address address = peer_allocate(client->cluster, NODE_BYTES);

		smart_assert(draft->nodes <= sizeof(draft->node) / sizeof(draft->node[0]));
		if (address == 0)
			return 0;
		memset(node, 0, node_bytes(0));
		node->parent = parent;
		node->header = make_header(from, key + from, length, 0);
		if (above != NULL)
			above->slot[0] = make_slot(key[from - 1], address, false, 0);
		else
			first = address;
		draft->request[draft->requests++] = (struct fabric_request){.verb = FABRIC_WRITE,
																	.length = (uint32_t) node_bytes(0),
																	.remote = address,
																	.local = node};
		tree_of(client->cluster)->nodes++;
		from += length;
		if (from == to)
		{
			node->slot[0] = (other & ~(UINT64_C(0xff) << 56)) | (uint64_t) other_byte << 56;
			node->slot[1] = make_slot(key[to], draft->leaf_address, true, 0);
			return first;
		}
		above = node;
		parent = address;
		from++; /* the byte of the slot */
	}
}

/* The CAS of a word's type from what it was, which may have grown since; again until it has at least the new one. */
static smart_status
grow_header(struct peer_client *client, fabric_address address, uint64_t header, unsigned int type)
{
	smart_status status = SMART_OK;

	smart_assert(type < TYPES);
	while (status == SMART_OK && header_type(header) < type)
	{
		uint64_t grown = (header & ~(UINT64_C(31) << 59)) | (uint64_t) type << 59;
		uint64_t found;

		status = peer_cas(client, address, header, grown, &found);
		header = found == header ? grown : found;
	}
	return status;
}

/* Node type switch: the types in the header and, if its place is known, in the slot above, at once. */
static smart_status
grow(struct peer_client *client, const struct way *way, unsigned int type)
{
	uint64_t header = way->node.header;
	struct fabric_request requests[2] = {
		{.verb = FABRIC_CAS,
		 .remote = way->address + 8,
		 .compare = header,
		 .operand = (header & ~(UINT64_C(31) << 59)) | (uint64_t) type << 59},
		{.verb = FABRIC_CAS,
		 .remote = way->above.slot,
		 .compare = way->above.word,
		 .operand = (way->above.word & ~(UINT64_C(31) << 48)) | (uint64_t) type << 48},
	};
	smart_status status = fabric_execute(client->simulated.client.fabric, requests, way->above.node != 0 ? 2 : 1);

	smart_assert(type < TYPES && type == header_type(header) + 1);
	if (status != SMART_OK || requests[0].result == header)
		return status;
	return grow_header(client, way->address + 8, requests[0].result, type);
}

/*
 * Into the first free slot, or the first behind the node; the next one if another client was there before with
 * another byte.  *again: with the same byte, or the node is full and about to grow.
 */
static smart_status
insert_into_slot(struct peer_client *client, struct descent *descent, uint64_t mine, bool *again)
{
	struct way *way = &descent->way;
	unsigned int type = header_type(way->node.header);
	uint64_t found = 0;
	smart_status status;

	smart_assert(descent->end == END_FREE && descent->slot <= type_slots[type]);
	do
	{
		if (descent->slot == SLOTS)
			return SMART_CORRUPT;
		status = peer_cas(client, way->address + FRONT + descent->slot * 8, 0, mine, &found);
	} while (status == SMART_OK && found != 0 && found >> 56 != mine >> 56 && ++descent->slot <= type_slots[type]);
	*again = found != 0;
	if (status != SMART_OK || found != 0 || descent->slot < type_slots[type])
		return status;
	return grow(client, way, type + 1);
}

/* Puts a chain of nodes between the slot above and what it led to. */
static smart_status
replace_slot(struct peer_client *client, struct draft *draft, fabric_address slot, uint64_t old, fabric_address first,
			 bool *again)
{
	uint64_t found;
	smart_status status;

	smart_assert(slot != 0 && (old & SLOT_USED) != 0);
	if (first == 0)
		return SMART_NO_SPACE;
	status = fabric_execute(client->simulated.client.fabric, draft->request, draft->requests);
	if (status == SMART_OK)
		status = peer_cas(client, slot, old, make_slot((uint8_t) (old >> 56), first, false, 0), &found);
	*again = status == SMART_OK && found != old;
	return status;
}

static smart_status
split_leaf(struct peer_client *client, struct descent *descent, struct draft *draft, const uint8_t *key,
		   const uint8_t *other, bool *again)
{
	struct way *way = &descent->way;
	unsigned int from = node_depth(&way->node) + 1;
	unsigned int to = from;
	uint64_t old = way->node.slot[descent->slot];

	smart_assert(descent->end == END_LEAF && (old & SLOT_LEAF) != 0);
	while (key[to] == other[to])
		to++;
	return replace_slot(client, draft, way->address + FRONT + descent->slot * 8, old,
						draft_chain(client, draft, way->address, key, from, to, old, other[to]), again);
}

static smart_status
split_header(struct peer_client *client, struct descent *descent, struct draft *draft, const uint8_t *key, bool *again)
{
	struct way *way = &descent->way;
	uint64_t header = way->node.header;
	unsigned int depth = header_depth(header);
	unsigned int cut = descent->same + 1;
	uint8_t path[HEADER_MAX];
	uint64_t found = header;
	smart_status status;

	smart_assert(descent->end == END_PATH && descent->same < header_length(header));
	for (unsigned int i = 0; i < HEADER_MAX; i++)
		path[i] = (uint8_t) (header >> (8 * i));
	status = replace_slot(client, draft, way->above.slot, way->above.word,
						  draft_chain(client, draft, way->address, key, depth, depth + descent->same, way->above.word,
									  path[descent->same]),
						  again);
	if (status != SMART_OK || *again)
		return status;
	/* The node may grow meanwhile; nobody else changes its path. */
	do
	{
		header = found;
		status =
			peer_cas(client, way->address + 8, header,
					 make_header(depth + cut, path + cut, header_length(header) - cut, header_type(header)), &found);
	} while (status == SMART_OK && found != header);
	return status;
}

/* The slot above is not what the cache says it is: its node is READ, so that the next attempt finds it. */
static smart_status
read_above(struct peer_client *client, struct way *way, const uint8_t *key)
{
	smart_assert(way->above.node != 0);
	way->address = way->above.node;
	way->node.header = make_header(way->above.depth, NULL, 0, way->above.type);
	return read_again(client, way, key);
}

/* One attempt; *again: something has changed under way. */
static smart_status
try_insert(struct peer_client *client, const uint8_t *key, size_t length, uint64_t value, bool *again, bool *added)
{
	struct draft *draft = &((struct scratch *) client->state)->draft;
	struct descent descent;
	uint8_t leaf[LEAF_MAX];
	smart_status status;

	*again = false;
	*added = !reach_leaf(client, &descent, key, length, leaf);
	if (descent.status != SMART_OK || !*added)
		return descent.status;
	if (!draft_leaf(client, draft, descent.way.address, key, length, value))
		return SMART_NO_SPACE;
	smart_assert(descent.end != END_PATH || descent.way.above.node != 0);
	if (descent.end == END_PATH)
	{
		status = split_header(client, &descent, draft, key, again);
		return status == SMART_OK && *again ? read_above(client, &descent.way, key) : status;
	}
	if (descent.end == END_LEAF)
		return split_leaf(client, &descent, draft, key, leaf + 16, again);
	status = fabric_execute(client->simulated.client.fabric, draft->request, 1);
	if (status == SMART_OK)
		status = insert_into_slot(client, &descent,
								  make_slot(key[node_depth(&descent.way.node)], draft->leaf_address, true, 0), again);
	return status;
}

static smart_status
smart_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t value = peer_value_of(entry, key_length, length);
	smart_status status;
	bool again;

	go_to_owner(client, entry);
	do
		status = try_insert(client, entry, key_length, value, &again, added);
	while (status == SMART_OK && again);
	return status;
}

/* ---- scan ---- */

static bool
slot_is_leaf(uint64_t slot)
{
	return (slot & SLOT_LEAF) != 0;
}

/* Keys of different lengths have leaves of different lengths: their READs are as long as that of the first key. */
static uint64_t
slot_bytes(const struct peer_cluster *cluster, uint64_t slot, size_t key_length)
{
	return slot_is_leaf(slot) ? leaf_bytes(key_length) : node_bytes(slot_type(slot));
}

static uint64_t
bytes_now(const void *node)
{
	return node_bytes(header_type(((const struct node *) node)->header));
}

static bool
find_copy(struct peer_client *client, const struct peer_subtree *subtree, void *node)
{
	return cache_copy(client->compute->state, subtree->prefix, subtree->known, node) == slot_address(subtree->word);
}

static int
compare_slots(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a;
	uint64_t right = *(const uint64_t *) b;

	return left < right ? -1 : left > right;
}

/* -1: the path has become shorter under way, or since the cache knew it. */
static int
children_of(const void *copy, const struct peer_subtree *subtree, struct peer_subtree *children)
{
	const struct node *node = copy;
	unsigned int slots = type_slots[header_type(node->header)];
	struct peer_subtree child = *subtree;
	uint64_t sorted[SLOTS] = {0};
	unsigned int used = 0;

	smart_assert(subtree->known == subtree->depth);
	if (header_depth(node->header) != subtree->depth)
		return -1;
	for (unsigned int i = 0; i < header_length(node->header); i++)
		child.prefix[child.known++] = (uint8_t) (node->header >> (8 * i));
	while (used < slots && (node->slot[used] & SLOT_USED))
	{
		sorted[used] = node->slot[used];
		used++;
	}
	qsort(sorted, used, sizeof(sorted[0]), compare_slots);
	smart_assert(child.known < YCSB_KEY_MAX);
	child.depth = ++child.known;
	for (unsigned int i = 0; i < used; i++)
	{
		child.word = sorted[i];
		child.prefix[child.known - 1] = (uint8_t) (sorted[i] >> 56);
		children[i] = child;
	}
	return (int) used;
}

static const uint8_t *
leaf_key(const void *leaf)
{
	return (const uint8_t *) leaf + 16;
}

static const struct peer_radix radix = {
	.is_leaf = slot_is_leaf,
	.bytes = slot_bytes,
	.address = slot_address,
	.bytes_now = bytes_now,
	.find_copy = find_copy,
	.children = children_of,
	.leaf_key = leaf_key,
};

static smart_status
smart_scan(struct ycsb_client *ycsb, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct scratch *scratch = client->state;

	go_to_owner(client, key);
	return peer_radix_scan(client, &radix, &scratch->scan,
						   make_slot(0, tree_of(client->cluster)->root, false, TYPES - 1), key, length, wanted, seen);
}

/* ---- load ---- */

static fabric_address
load_leaf(const struct peer_keys *keys, uint64_t number, fabric_address parent)
{
	size_t length = keys->begin[number + 1] - keys->begin[number];
	fabric_address address = peer_allocate(keys->cluster, leaf_bytes(length) + 6);

	if (address != 0)
		fill_leaf(peer_memory(keys->cluster, address), parent, peer_key_at(keys, number), length, keys->value[number]);
	return address;
}

static unsigned int
fitting_type(unsigned int slots)
{
	unsigned int type = 0;

	smart_assert(slots > 0 && slots <= SLOTS);
	while (type_slots[type] < slots)
		type++;
	return type;
}

/* The slot for keys low .. high - 1, which have so many bytes in common at least; 0: no space. */
static uint64_t
load_subtree(const struct peer_keys *keys, uint64_t low, uint64_t high, unsigned int depth, fabric_address parent,
			 bool root)
{
	const uint8_t *first = peer_key_at(keys, low);
	const uint8_t *last = peer_key_at(keys, high - 1);
	unsigned int path = 0;
	unsigned int slots = 0;
	fabric_address address;
	struct node *node;

	smart_assert(low < high && (root || depth > 0));
	if (high - low == 1 && !root)
		return make_slot(first[depth - 1], load_leaf(keys, low, parent), true, 0);
	while (!root && path < HEADER_MAX && first[depth + path] == last[depth + path])
		path++;
	address = root ? tree_of(keys->cluster)->root : peer_allocate(keys->cluster, NODE_BYTES);
	if (address == 0)
		return 0;
	node = peer_memory(keys->cluster, address);
	tree_of(keys->cluster)->nodes++;
	node->parent = parent;
	for (uint64_t next = low; low < high; low = next)
	{
		while (next < high && peer_key_at(keys, next)[depth + path] == peer_key_at(keys, low)[depth + path])
			next++;
		smart_assert(slots < SLOTS);
		node->slot[slots] = load_subtree(keys, low, next, depth + path + 1, address, false);
		if (slot_address(node->slot[slots++]) == 0)
			return 0;
	}
	node->header = make_header(depth, first + depth, path, root ? TYPES - 1 : fitting_type(slots));
	return make_slot(depth > 0 ? first[depth - 1] : 0, address, false, header_type(node->header));
}

static smart_status
smart_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_keys keys;
	smart_status status = peer_keys_collect(&keys, peer_client_of(ycsb), options);

	if (status == SMART_OK && load_subtree(&keys, 0, options->keys, 0, 0, true) == 0)
		status = SMART_NO_SPACE;
	peer_keys_free(&keys);
	return status;
}

/* ---- opening and closing ---- */

#define BUCKETS (UINT64_C(1) << 18)

static bool
open_tree(struct peer_cluster *cluster)
{
	struct node *root;

	tree_of(cluster)->root = peer_allocate(cluster, NODE_BYTES);
	smart_assert(tree_of(cluster)->root != 0);
	root = peer_memory(cluster, tree_of(cluster)->root);
	root->header = make_header(0, NULL, 0, TYPES - 1);
	return true;
}

static bool
open_cache(struct peer_compute *compute)
{
	struct cache *cache = compute->state;

	cache->buckets = BUCKETS;
	cache->bucket = calloc(cache->buckets, sizeof(*cache->bucket));
	return cache->bucket != NULL;
}

static void
close_cache(struct peer_compute *compute)
{
	struct cache *cache = compute->state;

	while (cache->oldest != NULL)
		evict_oldest(cache);
	smart_assert(cache->newest == NULL && cache->bytes == 0);
	free(cache->bucket);
}

static void
use_of_cache(struct peer_compute *compute, struct ycsb_cache_use *use)
{
	const struct cache *cache = compute->state;

	use->hits += cache->hits;
	use->misses += cache->misses;
	use->node_bytes += cache->bytes;
}

const struct peer peer_smart = {
	.index =
		{
			.load = smart_load,
			.lookup = smart_lookup,
			.insert = smart_insert,
			.update = smart_update,
			.scan = smart_scan,
		},
	.delegates = true,
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = sizeof(struct cache),
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.open_compute = open_cache,
	.close_compute = close_cache,
	.cache_use = use_of_cache,
};
