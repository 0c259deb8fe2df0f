/*
 * peer_art.c
 *	  A model of ART (Leis et al., ICDE'13) on memory nodes, as SMART 3 and 5.1 and
 *	  DART 2.2 port it to compare with.
 *
 * Layout (SMART 2.3): nodes of 4, 16, 48 and 256 children, with the bytes and the
 * children apart, and a header with eight bytes of the path; a longer path takes a
 * chain.  The word that leads to a node has its kind, and a READ fetches it whole
 * (DART 2.2).  A leaf is one entry.
 *
 * Operations: ROWEX (SMART 5.1): who inserts locks the node, and for another kind of
 * node or a shorter path the one above, too; readers lock nothing.  An update WRITEs a
 * new leaf and CASes the child (SMART 5.2: "update operations do not modify the partial
 * key fields and thus do not need to acquire locks"); WRITEs of new leaves go with the
 * first READ of the descent.  Locks are Sherman's (SMART 5.1: HOCL).  A cache of nodes,
 * first in, first out; with one an update marks the old leaf dead, by which readers see
 * that a copy is old.
 *
 * art-locked is the ART of DART 2.2, table 1: updates lock the node, too; the locks lie in
 * the memory nodes' memory, and who does not get one asks again at once.
 *
 * Left out: deletion; nodes that shrink; torn READs, hence checksums.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "peer_radix.h"
#include "random.h"

#define PATH_MAX_BYTES 8
#define FIFO_NS        100 /* of the cache's lock for each change of its queue: assumed, as in peer_smart.c */
#define LEAF_HEAD      8
#define VALUE_MAX      1024
#define CHAIN_MAX      (YCSB_KEY_MAX / (PATH_MAX_BYTES + 1) + 1)

enum kind
{
	NODE4,
	NODE16,
	NODE48,
	NODE256,
	KINDS,
	LEAF = KINDS
};

/* ---- words: an address in bits 0..47, and the kind of what lies there in 48..55 ---- */

static uint64_t
make_word(fabric_address address, enum kind kind)
{
	smart_assert(address >> 48 == 0);
	return (uint64_t) kind << 48 | address;
}

static fabric_address
word_address(uint64_t word)
{
	return word & ((UINT64_C(1) << 48) - 1);
}

static enum kind
word_kind(uint64_t word)
{
	smart_assert(word >> 48 <= LEAF);
	return (enum kind)(word >> 48);
}

static bool
word_is_leaf(uint64_t word)
{
	return word_kind(word) == LEAF;
}

/* ---- nodes ---- */

struct head
{
	uint8_t kind;
	uint8_t obsolete; /* another node has its place */
	uint16_t count;   /* of children */
	uint16_t depth;   /* of the byte that tells its children apart */
	uint16_t length;  /* of the path: the bytes before that one */
	uint8_t path[PATH_MAX_BYTES];
};

struct node
{
	struct head head;
	uint64_t rest[256]; /* bytes or indexes, and children */
};

static const struct
{
	unsigned int children;
	unsigned int index_bytes; /* ahead of the children */
} layout[KINDS] = {{4, 8}, {16, 16}, {48, 256}, {256, 0}};

static uint64_t
node_bytes(enum kind kind)
{
	smart_assert(kind < KINDS);
	return sizeof(struct head) + layout[kind].index_bytes + layout[kind].children * sizeof(uint64_t);
}

static uint8_t *
index_of(struct node *node)
{
	return (uint8_t *) node->rest;
}

static uint64_t *
children_of(struct node *node)
{
	smart_assert(node->head.kind < KINDS);
	return node->rest + layout[node->head.kind].index_bytes / sizeof(uint64_t);
}

/* The place of a byte's child, or -1. */
static int
find_child(struct node *node, uint8_t byte)
{
	switch (node->head.kind)
	{
		case NODE48:
			return index_of(node)[byte] - 1;
		case NODE256:
			return children_of(node)[byte] != 0 ? byte : -1;
		default:
			for (int i = 0; i < node->head.count; i++)
			{
				if (index_of(node)[i] == byte)
					return i;
			}
			return -1;
	}
}

static bool
is_full(const struct node *node)
{
	return node->head.kind != NODE256 && node->head.count == layout[node->head.kind].children;
}

/* The place of the new child. */
static unsigned int
add_child(struct node *node, uint8_t byte, uint64_t word)
{
	unsigned int place = node->head.kind == NODE256 ? byte : node->head.count;

	smart_assert(!is_full(node) && find_child(node, byte) < 0);
	smart_assert(word != 0 && place < layout[node->head.kind].children);
	if (node->head.kind == NODE48)
		index_of(node)[byte] = (uint8_t) (place + 1);
	else if (node->head.kind != NODE256)
		index_of(node)[place] = byte;
	children_of(node)[place] = word;
	node->head.count++;
	smart_assert(find_child(node, byte) == (int) place);
	return place;
}

/* The child of each byte; 0: there is none. */
static void
list_children(struct node *node, uint64_t words[256])
{
	memset(words, 0, 256 * sizeof(words[0]));
	for (unsigned int byte = 0; byte < 256; byte++)
	{
		int place = node->head.kind == NODE4 || node->head.kind == NODE16 ? -1 : find_child(node, (uint8_t) byte);

		if (place >= 0)
			words[byte] = children_of(node)[place];
	}
	for (unsigned int i = 0; i < node->head.count && node->head.kind <= NODE16; i++)
		words[index_of(node)[i]] = children_of(node)[i];
}

/* A node of the next kind with the same children and path. */
static void
make_larger(struct node *node, struct node *larger)
{
	uint64_t words[256];

	smart_assert(node->head.kind < NODE256);
	list_children(node, words);
	memset(larger, 0, sizeof(*larger));
	larger->head = node->head;
	larger->head.kind++;
	larger->head.count = 0;
	for (unsigned int byte = 0; byte < 256; byte++)
	{
		if (words[byte] != 0)
			add_child(larger, (uint8_t) byte, words[byte]);
	}
}

/* ---- the tree, and leaves: head, key, value ---- */

struct tree
{
	fabric_address root; /* a node of 256 children for byte 0 */
};

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

struct leaf
{
	uint64_t dead; /* an update has put another leaf into its place */
	uint8_t bytes[YCSB_KEY_MAX + VALUE_MAX];
};

static uint64_t
leaf_bytes(const struct peer_cluster *cluster, size_t key_length)
{
	return LEAF_HEAD + (key_length + 7) / 8 * 8 + cluster->options->value_bytes;
}

static void
fill_leaf(struct leaf *leaf, const uint8_t *key, size_t length, uint64_t value)
{
	memset(leaf, 0, LEAF_HEAD + YCSB_KEY_MAX + sizeof(value));
	memcpy(leaf->bytes, key, length);
	memcpy(leaf->bytes + (length + 7) / 8 * 8, &value, sizeof(value));
}

/* ---- the cache of a compute node: copies of nodes by their addresses ---- */

struct copy
{
	struct copy *next_in_bucket;
	struct copy *newer; /* in the queue */
	fabric_address address;
	enum kind kind;
	uint64_t words[];
};

#define BUCKETS (UINT64_C(1) << 16)

struct cache
{
	struct copy *bucket[BUCKETS];
	struct copy *oldest;
	struct copy *newest;
	uint64_t bytes;
	uint64_t hits;
	uint64_t misses;
	struct sim_timed_lock lock;
};

static struct copy **
find_copy(struct cache *cache, fabric_address address)
{
	struct copy **link = &cache->bucket[ycsb_mix(address) % BUCKETS];

	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next_in_bucket;
	return link;
}

static void
evict_oldest(struct cache *cache)
{
	struct copy *copy = cache->oldest;
	struct copy **link = find_copy(cache, copy->address);

	smart_assert(cache->bytes >= node_bytes(copy->kind));
	smart_assert(*link == copy);
	*link = copy->next_in_bucket;
	cache->oldest = copy->newer;
	if (cache->oldest == NULL)
		cache->newest = NULL;
	cache->bytes -= node_bytes(copy->kind);
	smart_assert((cache->oldest == NULL) == (cache->bytes == 0));
	free(copy);
}

static void
admit(struct cache *cache, const struct node *node, fabric_address address, uint64_t capacity)
{
	uint64_t bytes = node_bytes(node->head.kind);
	struct copy **bucket = &cache->bucket[ycsb_mix(address) % BUCKETS];
	struct copy *copy = malloc(sizeof(*copy) + bytes);

	smart_assert(bytes <= capacity);
	if (copy == NULL)
		abort();
	while (cache->bytes + bytes > capacity)
		evict_oldest(cache);
	*copy = (struct copy){.next_in_bucket = *bucket, .address = address, .kind = node->head.kind};
	memcpy(copy->words, node, bytes);
	*bucket = copy;
	if (cache->newest != NULL)
		cache->newest->newer = copy;
	else
		cache->oldest = copy;
	cache->newest = copy;
	cache->bytes += bytes;
	smart_assert(cache->bytes <= capacity);
}

/* A node's kind never changes where it is: a copy of it is overwritten, and keeps its place in the queue. */
static void
cache_keep(struct peer_client *client, const struct node *node, fabric_address address)
{
	struct cache *cache = client->compute->state;
	uint64_t capacity = client->cluster->options->cache_bytes;
	struct copy *copy;

	smart_assert(!node->head.obsolete);
	if (node_bytes(node->head.kind) > capacity)
		return;
	peer_cache_work(client);
	copy = *find_copy(cache, address);
	if (copy == NULL)
	{
		sim_timed_acquire(&client->simulated.timed, &cache->lock);
		sim_timed_compute(&client->simulated.timed, FIFO_NS);
		if (*find_copy(cache, address) == NULL)
			admit(cache, node, address, capacity);
		sim_timed_release(&client->simulated.timed, &cache->lock);
		return;
	}
	smart_assert(copy->kind == node->head.kind);
	memcpy(copy->words, node, node_bytes(copy->kind));
}

static bool
cache_find(struct peer_client *client, fabric_address address, struct node *node)
{
	struct cache *cache = client->compute->state;
	struct copy *copy;

	if (client->cluster->options->cache_bytes == 0)
		return false;
	peer_cache_work(client);
	copy = *find_copy(cache, address);
	if (copy == NULL)
	{
		cache->misses++;
		return false;
	}
	cache->hits++;
	memcpy(node, copy->words, node_bytes(copy->kind));
	return true;
}

/* ---- descent ---- */

/* What is too large for a client's stack. */
struct scratch
{
	struct node node;
	struct node above;
	struct node larger;
	struct node chain[CHAIN_MAX];
	struct leaf leaf; /* that was READ */
	struct leaf mine; /* to be WRITTEN */
	uint64_t mine_word;
	struct fabric_request write; /* of mine, with the next READ */
	bool unwritten;
	struct peer_radix_scratch scan;
};

static struct scratch *
scratch_of(struct peer_client *client)
{
	return client->state;
}

enum end
{
	END_LEAF,  /* a leaf is in the child's place */
	END_FREE,  /* the node has no child for the byte */
	END_PATH,  /* the node's path is not the key's */
	END_MOVED, /* a node was replaced, or its path has become shorter */
	END_FAILED
};

/* A client's way to a key: the node it is at, whose copy is scratch's, and the place that led to it. */
struct way
{
	fabric_address address;
	fabric_address above; /* 0: it is at the root */
	enum kind above_kind;
	unsigned int above_place; /* of the word that led to the node */
	uint64_t above_word;
	unsigned int begins; /* where the node's path ought to begin */
	bool cached;         /* the copy is not of this operation */
	enum end end;
	unsigned int place; /* of the leaf */
	unsigned int same;  /* END_PATH: bytes of the path that are the key's */
	smart_status status;
};

/* A READ, and the WRITE that waits for one. */
static smart_status
read_along(struct peer_client *client, fabric_address remote, void *local, uint64_t bytes)
{
	struct scratch *scratch = scratch_of(client);
	struct fabric_request requests[2] = {
		{.verb = FABRIC_READ, .length = (uint32_t) bytes, .remote = remote, .local = local},
		scratch->write,
	};
	int count = scratch->unwritten ? 2 : 1;

	smart_assert(bytes > 0 && bytes <= UINT32_MAX);
	scratch->unwritten = false;
	return fabric_execute(client->simulated.client.fabric, requests, count);
}

static smart_status
write_mine(struct peer_client *client)
{
	struct scratch *scratch = scratch_of(client);

	if (!scratch->unwritten)
		return SMART_OK;
	scratch->unwritten = false;
	return fabric_execute(client->simulated.client.fabric, &scratch->write, 1);
}

static fabric_address
child_address(fabric_address node, enum kind kind, unsigned int place)
{
	smart_assert(place < layout[kind].children);
	return node + sizeof(struct head) + layout[kind].index_bytes + place * sizeof(uint64_t);
}

/* The node at way->address, from the cache unless it has to be as it is now. */
static void
get_node(struct peer_client *client, struct way *way, enum kind kind, bool fresh)
{
	struct node *node = &scratch_of(client)->node;

	smart_assert(way->address != 0 && kind < KINDS);
	way->cached = !fresh && cache_find(client, way->address, node);
	if (!way->cached)
	{
		way->status = read_along(client, way->address, node, node_bytes(kind));
		if (way->status != SMART_OK)
		{
			way->end = END_FAILED;
			return;
		}
		if (!node->head.obsolete)
			cache_keep(client, node, way->address);
	}
	smart_assert(node->head.kind == kind);
	smart_assert(node->head.length <= PATH_MAX_BYTES && node->head.length <= node->head.depth);
	way->end = node->head.obsolete || node->head.depth - node->head.length != (int) way->begins ? END_MOVED : END_FREE;
}

/* From the node at which the client is, which has been got. */
static void
descend(struct peer_client *client, struct way *way, const uint8_t *key, bool fresh)
{
	struct node *node = &scratch_of(client)->node;

	while (way->end == END_FREE)
	{
		uint64_t word;
		int place;

		for (way->same = 0; way->same < node->head.length; way->same++)
		{
			if (node->head.path[way->same] != key[way->begins + way->same])
			{
				way->end = END_PATH;
				return;
			}
		}
		place = find_child(node, key[node->head.depth]);
		if (place < 0)
			return;
		word = children_of(node)[place];
		way->place = (unsigned int) place;
		if (word_is_leaf(word))
		{
			way->end = END_LEAF;
			return;
		}
		way->above = way->address;
		way->above_kind = node->head.kind;
		way->above_place = way->place;
		way->above_word = word;
		way->begins = node->head.depth + 1u;
		way->address = word_address(word);
		get_node(client, way, word_kind(word), fresh);
	}
}

static void
descend_from_root(struct peer_client *client, struct way *way, const uint8_t *key, bool fresh)
{
	*way = (struct way){.address = tree_of(client->cluster)->root};
	get_node(client, way, NODE256, fresh);
	descend(client, way, key, fresh);
}

/*
 * A descent to the key's leaf, and the leaf; false: the key is not there, or the status is not SMART_OK.  What a
 * cached copy denies the node itself is asked; where that has been replaced, all nodes are READ.
 */
static bool
reach_leaf(struct peer_client *client, struct way *way, const uint8_t *key, size_t length)
{
	struct scratch *scratch = scratch_of(client);
	bool found = false;

	descend_from_root(client, way, key, false);
	for (;;)
	{
		if (way->end == END_LEAF)
		{
			uint64_t word = children_of(&scratch->node)[way->place];

			smart_assert(word_is_leaf(word));
			way->status = read_along(client, word_address(word), &scratch->leaf, leaf_bytes(client->cluster, length));
			found = way->status == SMART_OK && memcmp(scratch->leaf.bytes, key, length) == 0;
			if (way->status != SMART_OK)
				way->end = END_FAILED;
			if (found && (!way->cached || !scratch->leaf.dead))
				return true;
		}
		if (way->end == END_FAILED)
			return false;
		if (way->end == END_MOVED)
			descend_from_root(client, way, key, true);
		else if (!way->cached)
			return false;
		else
		{
			get_node(client, way, scratch->node.head.kind, true);
			descend(client, way, key, true);
		}
	}
}

static smart_status
art_lookup(struct ycsb_client *ycsb, const uint8_t *key, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct way way;

	scratch_of(client)->unwritten = false;
	*found = reach_leaf(client, &way, key, length);
	return way.status;
}

/* A leaf of one's own, to be WRITTEN with the first READ. */
static smart_status
draft_leaf(struct peer_client *client, const uint8_t *key, size_t length, uint64_t value)
{
	struct scratch *scratch = scratch_of(client);
	uint64_t bytes = leaf_bytes(client->cluster, length);
	fabric_address address = peer_allocate(client->cluster, bytes);

	if (address == 0)
		return SMART_NO_SPACE;
	fill_leaf(&scratch->mine, key, length, value);
	scratch->mine_word = make_word(address, LEAF);
	scratch->write = peer_write_of(address, &scratch->mine, bytes);
	scratch->unwritten = true;
	return SMART_OK;
}

/* ---- update ---- */

/*
 * The CAS of the child, and behind it whether the node has been replaced: what comes before its owner says so is in
 * the new node.  *again: it was too late.
 */
static smart_status
swap_leaf(struct peer_client *client, const struct way *way, uint64_t old, bool *again)
{
	static const uint64_t dead = 1;
	struct head head = {0};
	struct fabric_request requests[2] = {
		{.verb = FABRIC_CAS,
		 .remote = child_address(way->address, scratch_of(client)->node.head.kind, way->place),
		 .compare = old,
		 .operand = scratch_of(client)->mine_word},
		{.verb = FABRIC_READ, .length = sizeof(head), .remote = way->address, .local = &head},
	};
	smart_status status = fabric_execute(client->simulated.client.fabric, requests, 2);

	smart_assert(way->end == END_LEAF && word_is_leaf(old));
	*again = status == SMART_OK && (requests[0].result != old || head.obsolete);
	if (status != SMART_OK || *again || client->cluster->options->cache_bytes == 0)
		return status;
	children_of(&scratch_of(client)->node)[way->place] = scratch_of(client)->mine_word;
	cache_keep(client, &scratch_of(client)->node, way->address);
	return peer_write(client, word_address(old), &dead, sizeof(dead));
}

/* With the node locked: three round trips more than the search.  A leaf's place has leaves of its key, until a node takes it. */
static smart_status
swap_leaf_locked(struct peer_client *client, const struct way *way, bool *again)
{
	struct node *node = &scratch_of(client)->node;
	struct head head = {0};
	uint64_t word = 0;
	fabric_address child = child_address(way->address, node->head.kind, way->place);
	struct fabric_request reads[2] = {
		{.verb = FABRIC_READ, .length = sizeof(word), .remote = child, .local = &word},
		{.verb = FABRIC_READ, .length = sizeof(head), .remote = way->address, .local = &head},
	};
	struct fabric_request unlock[1];
	smart_status status = peer_lock(client, way->address, reads, 2);

	smart_assert(way->end == END_LEAF && client->cluster->variant == PEER_LOCKED);
	if (status != SMART_OK)
		return status;
	*again = head.obsolete || !word_is_leaf(word);
	if (!*again)
		status = peer_write(client, child, &scratch_of(client)->mine_word, sizeof(word));
	return status == SMART_OK ? peer_write_and_unlock(client, way->address, unlock, 0) : status;
}

static smart_status
art_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	struct peer_client *client = peer_client_of(ycsb);
	bool locks = client->cluster->variant == PEER_LOCKED;
	smart_status status = draft_leaf(client, entry, key_length, peer_value_of(entry, key_length, length));
	bool again = true;
	struct way way;

	while (status == SMART_OK && again)
	{
		uint64_t old;

		if (!reach_leaf(client, &way, entry, key_length))
			return way.status != SMART_OK ? way.status : SMART_CORRUPT;
		old = children_of(&scratch_of(client)->node)[way.place];
		status = locks ? swap_leaf_locked(client, &way, &again) : swap_leaf(client, &way, old, &again);
		/* What the cache has is what has just failed. */
		if (again && status == SMART_OK)
			get_node(client, &way, scratch_of(client)->node.head.kind, true);
		if (again && status == SMART_OK && way.end == END_MOVED)
			descend_from_root(client, &way, entry, true);
	}
	return status;
}

/* ---- insert ---- */

/* Locks a node, and READs it behind that. */
static smart_status
lock_and_read(struct peer_client *client, fabric_address address, enum kind kind, struct node *node)
{
	struct fabric_request read = {.verb = FABRIC_READ,
								  .length = (uint32_t) node_bytes(kind),
								  .remote = address,
								  .local = node};

	return peer_lock(client, address, &read, 1);
}

static smart_status
unlock(struct peer_client *client, fabric_address address)
{
	struct fabric_request none[1];

	return peer_write_and_unlock(client, address, none, 0);
}

/* Is the locked node where the way has it, and with the same path? */
static bool
still_there(const struct node *node, const struct node *known)
{
	return !node->head.obsolete && node->head.depth == known->head.depth && node->head.length == known->head.length;
}

/* The leaf into a node that has room, whose copy is not older than the lock. */
static smart_status
put_into_node(struct peer_client *client, const struct way *way, struct node *node, uint8_t byte)
{
	struct fabric_request requests[4];
	enum kind kind = node->head.kind;
	unsigned int place = add_child(node, byte, scratch_of(client)->mine_word);
	unsigned int index = kind == NODE48 ? byte : place;
	int count = 0;

	smart_assert(place < layout[kind].children);
	requests[count++] =
		peer_write_of(child_address(way->address, kind, place), &children_of(node)[place], sizeof(uint64_t));
	if (kind != NODE256)
		requests[count++] = peer_write_of(way->address + sizeof(struct head) + index, &index_of(node)[index], 1);
	requests[count++] = peer_write_of(way->address, &node->head, sizeof(node->head));
	smart_assert(count < (int) (sizeof(requests) / sizeof(requests[0])));
	cache_keep(client, node, way->address);
	return peer_write_and_unlock(client, way->address, requests, count);
}

static smart_status
insert_into_node(struct peer_client *client, struct way *way, const uint8_t *key, bool *again)
{
	struct scratch *scratch = scratch_of(client);
	struct node *node = &scratch->larger;
	smart_status status = lock_and_read(client, way->address, scratch->node.head.kind, node);

	smart_assert(way->end == END_FREE);
	if (status != SMART_OK)
		return status;
	*again = !still_there(node, &scratch->node) || find_child(node, key[node->head.depth]) >= 0 || is_full(node);
	if (!*again)
		return put_into_node(client, way, node, key[node->head.depth]);
	return unlock(client, way->address);
}

/* Locks a node and the one above it, in an order that all clients have; one word may stand for both. */
static smart_status
lock_both(struct peer_client *client, const struct way *way)
{
	struct scratch *scratch = scratch_of(client);
	fabric_address mine = peer_lock_word(client->cluster, way->address);
	fabric_address above = peer_lock_word(client->cluster, way->above);
	enum kind kind = scratch->node.head.kind;
	smart_status status = SMART_OK;

	smart_assert(way->above != 0 && way->above != way->address);
	if (above < mine)
		status = lock_and_read(client, way->above, way->above_kind, &scratch->above);
	if (status == SMART_OK)
		status = lock_and_read(client, way->address, kind, &scratch->larger);
	if (status == SMART_OK && above > mine)
		status = lock_and_read(client, way->above, way->above_kind, &scratch->above);
	if (status == SMART_OK && above == mine)
		status = peer_read(client, way->above, &scratch->above, node_bytes(way->above_kind));
	return status;
}

/* What is WRITTEN to the node above is its new child; what to the node is its head. */
static smart_status
unlock_both(struct peer_client *client, const struct way *way, const uint64_t *word, const struct head *head)
{
	struct fabric_request requests[3];
	bool one = peer_lock_word(client->cluster, way->above) == peer_lock_word(client->cluster, way->address);
	int count = 0;
	smart_status status = SMART_OK;

	if (word != NULL)
		requests[count++] =
			peer_write_of(child_address(way->above, way->above_kind, way->above_place), word, sizeof(*word));
	if (!one)
	{
		status = peer_write_and_unlock(client, way->above, requests, count);
		count = 0;
	}
	if (head != NULL)
		requests[count++] = peer_write_of(way->address, head, sizeof(*head));
	smart_assert(count < (int) (sizeof(requests) / sizeof(requests[0])));
	return status == SMART_OK ? peer_write_and_unlock(client, way->address, requests, count) : status;
}

static bool
both_still_there(struct scratch *scratch, const struct way *way)
{
	return !scratch->above.head.obsolete && children_of(&scratch->above)[way->above_place] == way->above_word &&
		   still_there(&scratch->larger, &scratch->node);
}

/* A full node gets a successor of the next kind, with the leaf; nobody changes a child any more once it is obsolete. */
static smart_status
replace_node(struct peer_client *client, const struct way *way, const uint8_t *key, bool *again)
{
	struct scratch *scratch = scratch_of(client);
	struct node *node = &scratch->larger;
	uint64_t bytes = node_bytes(scratch->node.head.kind);
	fabric_address address = peer_allocate(client->cluster, node_bytes(scratch->node.head.kind + 1));
	struct fabric_request requests[2];
	struct head obsolete;
	uint64_t word;
	smart_status status = address == 0 ? SMART_NO_SPACE : lock_both(client, way);

	smart_assert(way->end == END_FREE);
	if (status != SMART_OK)
		return status;
	*again = !both_still_there(scratch, way) || find_child(node, key[node->head.depth]) >= 0 || !is_full(node);
	if (*again)
		return unlock_both(client, way, NULL, NULL);
	obsolete = node->head;
	obsolete.obsolete = 1;
	requests[0] = peer_write_of(way->address, &obsolete, sizeof(obsolete));
	requests[1] = (struct fabric_request){.verb = FABRIC_READ,
										  .length = (uint32_t) bytes,
										  .remote = way->address,
										  .local = &scratch->node};
	status = fabric_execute(client->simulated.client.fabric, requests, 2);
	scratch->node.head.obsolete = 0;
	make_larger(&scratch->node, node);
	add_child(node, key[node->head.depth], scratch->mine_word);
	word = make_word(address, node->head.kind);
	if (status == SMART_OK)
		status = peer_write(client, address, node, node_bytes(node->head.kind));
	return status == SMART_OK ? unlock_both(client, way, &word, NULL) : status;
}

/* A node of four for a place of the key, with the bytes before it from begins on as its path. */
static void
draft_node(struct node *node, const uint8_t *key, unsigned int begins, unsigned int depth)
{
	smart_assert(depth - begins <= PATH_MAX_BYTES);
	memset(node, 0, sizeof(*node));
	node->head.kind = NODE4;
	node->head.depth = (uint16_t) depth;
	node->head.length = (uint16_t) (depth - begins);
	memcpy(node->head.path, key + begins, node->head.length);
}

/* The path of a node is not the key's: a node of four comes above it, with the leaf. */
static smart_status
split_path(struct peer_client *client, const struct way *way, const uint8_t *key, bool *again)
{
	struct scratch *scratch = scratch_of(client);
	struct node *node = &scratch->chain[0];
	fabric_address address = peer_allocate(client->cluster, node_bytes(NODE4));
	uint64_t word = make_word(address, NODE4);
	unsigned int cut = way->same + 1;
	struct head head;
	smart_status status = address == 0 ? SMART_NO_SPACE : lock_both(client, way);

	smart_assert(way->end == END_PATH);
	if (status != SMART_OK)
		return status;
	*again = !both_still_there(scratch, way);
	if (*again)
		return unlock_both(client, way, NULL, NULL);
	head = scratch->larger.head;
	smart_assert(way->same < head.length);
	draft_node(node, key, way->begins, way->begins + way->same);
	add_child(node, head.path[way->same], way->above_word);
	add_child(node, key[way->begins + way->same], scratch->mine_word);
	head.length = (uint16_t) (head.length - cut);
	memmove(head.path, head.path + cut, head.length);
	status = peer_write(client, address, node, node_bytes(NODE4));
	return status == SMART_OK ? unlock_both(client, way, &word, &head) : status;
}

/* Nodes of four for the bytes that a leaf and the new one have in common, and for the one that tells them apart. */
static smart_status
write_chain(struct peer_client *client, const uint8_t *key, unsigned int begins, uint64_t other, uint64_t *word)
{
	struct scratch *scratch = scratch_of(client);
	const uint8_t *theirs = scratch->leaf.bytes;
	struct fabric_request requests[CHAIN_MAX];
	unsigned int apart = begins;
	int count = 0;
	uint64_t *link = word;

	while (key[apart] == theirs[apart])
		apart++;
	for (;;)
	{
		struct node *node = &scratch->chain[count];
		unsigned int depth = apart - begins <= PATH_MAX_BYTES ? apart : begins + PATH_MAX_BYTES;
		fabric_address address = peer_allocate(client->cluster, node_bytes(NODE4));

		smart_assert(count < CHAIN_MAX);
		if (address == 0)
			return SMART_NO_SPACE;
		draft_node(node, key, begins, depth);
		*link = make_word(address, NODE4);
		requests[count++] = peer_write_of(address, node, node_bytes(NODE4));
		if (depth == apart)
		{
			add_child(node, theirs[apart], other);
			add_child(node, key[apart], scratch->mine_word);
			return fabric_execute(client->simulated.client.fabric, requests, count);
		}
		link = &children_of(node)[add_child(node, key[depth], UINT64_MAX)];
		begins = depth + 1;
	}
}

static smart_status
split_leaf(struct peer_client *client, const struct way *way, const uint8_t *key, bool *again)
{
	struct scratch *scratch = scratch_of(client);
	struct node *node = &scratch->node;
	uint64_t old = children_of(node)[way->place];
	uint64_t found = 0;
	uint64_t word;
	struct head head = {0};
	struct fabric_request read = {.verb = FABRIC_READ, .length = sizeof(head), .remote = way->address, .local = &head};
	smart_status status = write_chain(client, key, node->head.depth + 1u, old, &word);

	smart_assert(way->end == END_LEAF && word_is_leaf(old));
	if (status == SMART_OK)
		status = peer_lock(client, way->address, &read, 1);
	if (status != SMART_OK)
		return status;
	/* An update swaps a leaf without the lock. */
	if (!head.obsolete)
		status = peer_cas(client, child_address(way->address, node->head.kind, way->place), old, word, &found);
	*again = found != old;
	if (!*again)
	{
		children_of(node)[way->place] = word;
		cache_keep(client, node, way->address);
	}
	return status == SMART_OK ? unlock(client, way->address) : status;
}

static smart_status
art_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	struct peer_client *client = peer_client_of(ycsb);
	smart_status status = draft_leaf(client, entry, key_length, peer_value_of(entry, key_length, length));
	bool again = true;
	struct way way;

	while (status == SMART_OK && again)
	{
		*added = !reach_leaf(client, &way, entry, key_length);
		status = way.status;
		if (status == SMART_OK)
			status = write_mine(client);
		if (status != SMART_OK || !*added)
			return status;
		if (way.end == END_PATH)
			status = split_path(client, &way, entry, &again);
		else if (way.end == END_LEAF)
			status = split_leaf(client, &way, entry, &again);
		else if (is_full(&scratch_of(client)->node))
			status = replace_node(client, &way, entry, &again);
		else
			status = insert_into_node(client, &way, entry, &again);
		/* The cache may have what is not so any more. */
		if (status == SMART_OK && again)
			descend_from_root(client, &way, entry, true);
	}
	return status;
}

/* ---- scan ---- */

static uint64_t
word_bytes(const struct peer_cluster *cluster, uint64_t word, size_t key_length)
{
	return word_is_leaf(word) ? leaf_bytes(cluster, key_length) : node_bytes(word_kind(word));
}

static bool
copy_node(struct peer_client *client, const struct peer_subtree *subtree, void *node)
{
	return cache_find(client, word_address(subtree->word), node);
}

static int
list_subtrees(const void *copy, const struct peer_subtree *subtree, struct peer_subtree *children)
{
	struct node *node = (struct node *) (uintptr_t) copy;
	struct peer_subtree child = *subtree;
	uint64_t words[256];
	int count = 0;

	smart_assert(subtree->known == subtree->depth);
	if (node->head.obsolete || node->head.depth - node->head.length != subtree->depth)
		return -1;
	memcpy(child.prefix + child.known, node->head.path, node->head.length);
	child.known = child.depth = (uint16_t) (node->head.depth + 1);
	smart_assert(node->head.depth < YCSB_KEY_MAX);
	list_children(node, words);
	for (unsigned int byte = 0; byte < 256; byte++)
	{
		child.word = words[byte];
		child.prefix[node->head.depth] = (uint8_t) byte;
		if (words[byte] != 0)
			children[count++] = child;
	}
	return count;
}

static const uint8_t *
leaf_key(const void *leaf)
{
	return ((const struct leaf *) leaf)->bytes;
}

static const struct peer_radix radix = {
	.is_leaf = word_is_leaf,
	.bytes = word_bytes,
	.address = word_address,
	.find_copy = copy_node,
	.children = list_subtrees,
	.leaf_key = leaf_key,
};

/* A leaf that a copy leads to may be an old one, with the value that was there when the copy was made. */
static smart_status
art_scan(struct ycsb_client *ycsb, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);

	return peer_radix_scan(client, &radix, &scratch_of(client)->scan,
						   make_word(tree_of(client->cluster)->root, NODE256), key, length, wanted, seen);
}

/* ---- load ---- */

static uint64_t
load_leaf(const struct peer_keys *keys, uint64_t number)
{
	size_t length = peer_key_length(keys, number);
	fabric_address address = peer_allocate(keys->cluster, leaf_bytes(keys->cluster, length));

	if (address == 0)
		return 0;
	fill_leaf(peer_memory(keys->cluster, address), peer_key_at(keys, number), length, keys->value[number]);
	return make_word(address, LEAF);
}

static enum kind
fitting_kind(unsigned int children)
{
	enum kind kind = NODE4;

	smart_assert(children > 0 && children <= layout[NODE256].children);
	while (layout[kind].children < children)
		kind++;
	return kind;
}

/* How many different bytes keys low .. high - 1 have at a place. */
static unsigned int
count_bytes(const struct peer_keys *keys, uint64_t low, uint64_t high, unsigned int depth)
{
	unsigned int count = 1;

	smart_assert(low < high && high <= keys->count);
	for (uint64_t i = low + 1; i < high; i++)
		count += peer_key_at(keys, i)[depth] != peer_key_at(keys, i - 1)[depth];
	return count;
}

/* The word for keys low .. high - 1, which have so many bytes in common at least; 0: no space. */
static uint64_t
load_subtree(const struct peer_keys *keys, uint64_t low, uint64_t high, unsigned int begins, bool root)
{
	const uint8_t *first = peer_key_at(keys, low);
	const uint8_t *last = peer_key_at(keys, high - 1);
	unsigned int depth = begins;
	fabric_address address;
	struct node *node;
	enum kind kind;

	smart_assert(low < high && high <= keys->count);
	if (high - low == 1 && !root)
		return load_leaf(keys, low);
	while (!root && depth - begins < PATH_MAX_BYTES && first[depth] == last[depth])
		depth++;
	kind = root ? NODE256 : fitting_kind(count_bytes(keys, low, high, depth));
	address = root ? tree_of(keys->cluster)->root : peer_allocate(keys->cluster, node_bytes(kind));
	if (address == 0)
		return 0;
	node = peer_memory(keys->cluster, address);
	node->head =
		(struct head){.kind = (uint8_t) kind, .depth = (uint16_t) depth, .length = (uint16_t) (depth - begins)};
	memcpy(node->head.path, first + begins, node->head.length);
	for (uint64_t next = low; low < high; low = next)
	{
		uint64_t word;

		while (next < high && peer_key_at(keys, next)[depth] == peer_key_at(keys, low)[depth])
			next++;
		word = load_subtree(keys, low, next, depth + 1, false);
		if (word == 0)
			return 0;
		add_child(node, peer_key_at(keys, low)[depth], word);
	}
	return make_word(address, kind);
}

static smart_status
art_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_keys keys;
	smart_status status = peer_keys_collect(&keys, peer_client_of(ycsb), options);

	if (status == SMART_OK && load_subtree(&keys, 0, options->keys, 0, true) == 0)
		status = SMART_NO_SPACE;
	peer_keys_free(&keys);
	return status;
}

/* ---- opening and closing ---- */

static bool
open_tree(struct peer_cluster *cluster)
{
	struct node *root;

	tree_of(cluster)->root = peer_allocate(cluster, node_bytes(NODE256));
	smart_assert(tree_of(cluster)->root != 0);
	root = peer_memory(cluster, tree_of(cluster)->root);
	root->head.kind = NODE256;
	return true;
}

static void
close_cache(struct peer_compute *compute)
{
	struct cache *cache = compute->state;

	while (cache->oldest != NULL)
		evict_oldest(cache);
	smart_assert(cache->newest == NULL && cache->bytes == 0);
}

static void
use_of_cache(struct peer_compute *compute, struct ycsb_cache_use *use)
{
	const struct cache *cache = compute->state;

	use->hits += cache->hits;
	use->misses += cache->misses;
	use->node_bytes += cache->bytes;
}

const struct peer peer_art = {
	.index =
		{
			.load = art_load,
			.lookup = art_lookup,
			.insert = art_insert,
			.update = art_update,
			.scan = art_scan,
		},
	.locks = true,
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = sizeof(struct cache),
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.close_compute = close_cache,
	.cache_use = use_of_cache,
};
