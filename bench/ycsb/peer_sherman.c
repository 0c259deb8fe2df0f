/*
 * peer_sherman.c
 *	  A model of Sherman (Wang et al., SIGMOD'22), the B+ tree that SMART, DEX and
 *	  DART compare with, as those papers describe it.
 *
 * Layout (SMART 2.2, 3.1.1): pages of 1 KB with fences, a sibling, and unsorted
 * entries of key, value and versions (18 bytes for keys and values of eight); for
 * longer items 32 of them to a leaf, with 67 bytes of its own and one byte of
 * versions each.  A lookup READs the whole leaf.  A writer locks the leaf's word in
 * a lock table of the memory node by CAS, READs the leaf, and WRITEs one entry and
 * the free lock in one batch; a split WRITEs both pages whole.
 *
 * Compute nodes (SMART 2.2): the clients of one queue for a local lock first, and
 * hand the remote lock on, four times at most (HOCL).  They cache internal pages;
 * who finds a leaf that does not cover the key goes on to its sibling, and READs the
 * page above anew.
 *
 * sherman-optimistic is what DEX 8.1 made of it: a reader READs the lock word, the
 * leaf, and the lock word again, one after the other.
 *
 * sherman-partitioned is DEX's P-Sherman (8.1, 8.2): who has a key works with the cache of the compute node that it belongs to,
 * and nobody locks a leaf of one partition in its memory node.
 *
 * The lock table lies in the memory of the memory node's NIC (on-chip memory).
 *
 * Left out: deletion; keys other than integers; torn READs, hence the
 * versions are READ and WRITTEN but not looked at.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "keys.h"
#include "peer.h"
#include "random.h"
#include "sorted.h"

#define PAGE_BYTES 1024
#define HEAD_BYTES 48 /* of a page of 1 KB */
#define LONG_HEAD  67 /* of a leaf with long items */
#define LONG_SPAN  32
#define ITEM_SHORT 16 /* bytes of key and value up to which a leaf is a page of 1 KB */
#define INNER_SPAN 54
#define SPAN_MAX   54
#define LEAF_MAX   (LONG_HEAD + LONG_SPAN * (8 + 1024 + 1))
#define FILL       69 /* percent of a page after inserts in random order: ln 2 */
#define HEIGHT_MAX 12

struct head
{
	uint64_t low;  /* keys from here .. */
	uint64_t high; /* .. to below there; 0: no end */
	uint64_t sibling;
	uint32_t count;
	uint32_t level; /* 0: a leaf */
};

struct inner
{
	struct head head;
	uint64_t key[INNER_SPAN]; /* ascending; of the child's low fence */
	uint64_t child[INNER_SPAN];
};

_Static_assert(sizeof(struct head) <= HEAD_BYTES && sizeof(struct inner) <= PAGE_BYTES, "a page holds its entries");

struct tree
{
	fabric_address root;
	uint32_t height; /* level of the root */
	uint32_t value_bytes;
	uint32_t span; /* entries of a leaf */
	uint32_t leaf_head;
	uint32_t stride;          /* of an entry */
	fabric_address root_word; /* the word that names the root, in a memory node's memory */
};

/* ---- leaves ---- */

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

static uint32_t
leaf_bytes(const struct tree *tree)
{
	return tree->leaf_head == HEAD_BYTES ? PAGE_BYTES : tree->leaf_head + tree->span * tree->stride;
}

static uint8_t *
entry_at(const struct tree *tree, uint8_t *leaf, unsigned int number)
{
	return leaf + tree->leaf_head + number * tree->stride;
}

/* The place of a key, or -1. */
static int
find_entry(const struct tree *tree, uint8_t *leaf, uint64_t key)
{
	const struct head *head = (const struct head *) (const void *) leaf;

	for (unsigned int i = 0; i < head->count; i++)
	{
		uint64_t mine;

		memcpy(&mine, entry_at(tree, leaf, i), sizeof(mine));
		if (mine == key)
			return (int) i;
	}
	return -1;
}

static void
put_entry(const struct tree *tree, uint8_t *leaf, unsigned int number, uint64_t key, uint64_t value)
{
	uint8_t *entry = entry_at(tree, leaf, number);

	memset(entry, 0, tree->stride);
	memcpy(entry, &key, sizeof(key));
	memcpy(entry + sizeof(key), &value, sizeof(value));
}

static bool
covers(const struct head *head, uint64_t key)
{
	return key >= head->low && (head->high == 0 || key < head->high);
}

/* The child that covers a key. */
static unsigned int
child_of(const struct inner *inner, uint64_t key)
{
	unsigned int low = 0;
	unsigned int high = inner->head.count;

	smart_assert(high > 0);
	while (high - low > 1)
	{
		unsigned int middle = (low + high) / 2;

		if (inner->key[middle] <= key)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- the cache of a compute node: copies of internal pages ---- */

struct copy
{
	struct copy *next;
	fabric_address address;
	struct inner inner;
};

#define BUCKETS 65536

struct compute
{
	struct copy *bucket[BUCKETS];
	uint64_t bytes;
	uint64_t random;
	uint64_t hits;
	uint64_t misses;
};

static struct copy **
find_copy(struct compute *compute, fabric_address address)
{
	struct copy **link = &compute->bucket[ycsb_mix(address) % BUCKETS];

	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

static void
drop_copy(struct compute *compute, struct copy **link)
{
	struct copy *copy = *link;

	*link = copy->next;
	compute->bytes -= PAGE_BYTES;
	free(copy);
}

/* Any page right above the leaves. */
static bool
drop_any(struct compute *compute)
{
	uint64_t begin = ycsb_random(&compute->random);

	for (uint64_t i = 0; i < BUCKETS; i++)
	{
		struct copy **link = &compute->bucket[(begin + i) % BUCKETS];

		while (*link != NULL && (*link)->inner.head.level > 1)
			link = &(*link)->next;
		if (*link != NULL)
		{
			drop_copy(compute, link);
			return true;
		}
	}
	return false;
}

static void
keep_copy(struct peer_client *client, fabric_address address, const struct inner *inner)
{
	struct compute *compute = client->compute->state;
	struct copy **link;
	struct copy *copy;

	peer_cache_work(client);
	copy = *find_copy(compute, address);
	if (copy == NULL)
	{
		while (compute->bytes + PAGE_BYTES > client->cluster->options->cache_bytes)
		{
			if (!drop_any(compute))
				return;
		}
		copy = malloc(sizeof(*copy));
		if (copy == NULL)
			abort();
		link = &compute->bucket[ycsb_mix(address) % BUCKETS];
		*copy = (struct copy){.next = *link, .address = address};
		*link = copy;
		compute->bytes += PAGE_BYTES;
	}
	copy->inner = *inner;
}

/* An internal page, from the cache if it may be an old one. */
static smart_status
get_inner(struct peer_client *client, fabric_address address, bool fresh, struct inner *inner)
{
	struct compute *compute = client->compute->state;
	struct copy *copy;
	smart_status status;

	peer_cache_work(client);
	copy = fresh ? NULL : *find_copy(compute, address);
	if (copy != NULL)
	{
		compute->hits++;
		*inner = copy->inner;
		return SMART_OK;
	}
	compute->misses++;
	status = peer_read(client, address, inner, PAGE_BYTES);
	if (status == SMART_OK)
		keep_copy(client, address, inner);
	return status;
}

/* ---- descent ---- */

struct page_buffer
{
	_Alignas(8) uint8_t bytes[LEAF_MAX];
};

#define SCAN_PAGES 64

/* What is too large for a client's stack. */
struct scratch
{
	union
	{
		struct inner inner;
		uint8_t bytes[PAGE_BYTES];
	} inner;
	union
	{
		struct inner inner;
		uint8_t bytes[PAGE_BYTES];
	} other;
	struct page_buffer leaf;
	struct page_buffer upper;
	struct page_buffer page[SCAN_PAGES];
};

static struct scratch *
scratch_of(struct peer_client *client)
{
	return client->state;
}

/* A page has been split since the cache knew it: READ anew it may cover the key, or its sibling does. */
static smart_status
go_right(struct peer_client *client, uint64_t key, fabric_address above, fabric_address *address)
{
	struct inner *inner = &scratch_of(client)->inner.inner;
	smart_status status = get_inner(client, *address, true, inner);

	if (status != SMART_OK || covers(&inner->head, key))
		return status;
	*address = inner->head.sibling;
	return above != 0 ? get_inner(client, above, true, inner) : SMART_OK;
}

/* The page of a level, above the leaves, that covers the key, into scratch's inner. */
static smart_status
find_inner(struct peer_client *client, uint64_t key, uint32_t level, fabric_address *address)
{
	struct inner *inner = &scratch_of(client)->inner.inner;
	fabric_address above = 0;
	smart_status status;

	*address = tree_of(client->cluster)->root;
	for (;;)
	{
		status = get_inner(client, *address, false, inner);
		if (status != SMART_OK)
			return status;
		if (!covers(&inner->head, key))
		{
			status = go_right(client, key, above, address);
			if (status != SMART_OK)
				return status;
			continue;
		}
		if (inner->head.level == level)
			return SMART_OK;
		above = *address;
		*address = inner->child[child_of(inner, key)];
	}
}

/* The page above a leaf that does not cover the key any more. */
static smart_status
refresh_above(struct peer_client *client, uint64_t key)
{
	fabric_address above;
	smart_status status = find_inner(client, key, 1, &above);

	return status == SMART_OK ? get_inner(client, above, true, &scratch_of(client)->inner.inner) : status;
}

/* The leaf that the cache names for a key; *own: all keys that it may have are of the key's partition. */
static smart_status
find_leaf(struct peer_client *client, uint64_t key, fabric_address *leaf, bool *own)
{
	const struct inner *inner = &scratch_of(client)->inner.inner;
	fabric_address above;
	smart_status status = find_inner(client, key, 1, &above);

	*own = false;
	if (status == SMART_OK)
	{
		unsigned int place = child_of(inner, key);
		uint64_t end = place + 1 < inner->head.count ? inner->key[place + 1] : inner->head.high;

		*leaf = inner->child[place];
		*own = client->cluster->variant == PEER_PARTITIONED &&
			   !peer_crosses_partitions(client->cluster, inner->key[place], end);
	}
	return status;
}

static uint64_t
key_of(const uint8_t *bytes)
{
	return smart_load_be64(bytes);
}

/* ---- lookup ---- */

static smart_status
read_leaf(struct peer_client *client, fabric_address address, uint8_t *leaf)
{
	const struct tree *tree = tree_of(client->cluster);
	bool optimistic = client->cluster->variant == PEER_OPTIMISTIC;
	uint64_t word;
	smart_status status = SMART_OK;

	if (optimistic)
		status = peer_read(client, peer_lock_word(client->cluster, address), &word, sizeof(word));
	if (status == SMART_OK)
		status = peer_read(client, address, leaf, leaf_bytes(tree));
	if (status == SMART_OK && optimistic)
		status = peer_read(client, peer_lock_word(client->cluster, address), &word, sizeof(word));
	return status;
}

static smart_status
sherman_lookup(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	const struct head *head = (const struct head *) (const void *) leaf;
	uint64_t key = key_of(bytes);
	fabric_address address = 0;
	bool own;
	smart_status status;

	peer_go_to_owner(client, key);
	status = find_leaf(client, key, &address, &own);
	while (status == SMART_OK)
	{
		status = read_leaf(client, address, leaf);
		if (status != SMART_OK || covers(head, key))
			break;
		address = head->sibling;
		status = refresh_above(client, key);
	}
	*found = status == SMART_OK && find_entry(tree_of(client->cluster), leaf, key) >= 0;
	return status;
}

/* ---- splits ---- */

static void
insert_child(struct inner *inner, uint64_t key, fabric_address child)
{
	unsigned int place = child_of(inner, key) + 1;

	smart_assert(inner->head.count < INNER_SPAN);
	memmove(&inner->key[place + 1], &inner->key[place], (inner->head.count - place) * sizeof(uint64_t));
	memmove(&inner->child[place + 1], &inner->child[place], (inner->head.count - place) * sizeof(uint64_t));
	inner->key[place] = key;
	inner->child[place] = child;
	inner->head.count++;
}

/* The upper half of a full internal page becomes a page of its own. */
static void
split_inner(struct inner *inner, struct inner *upper, fabric_address upper_address)
{
	unsigned int half = inner->head.count / 2;

	memset(upper, 0, PAGE_BYTES);
	upper->head = inner->head;
	upper->head.low = inner->key[half];
	upper->head.count = inner->head.count - half;
	memcpy(upper->key, &inner->key[half], upper->head.count * sizeof(uint64_t));
	memcpy(upper->child, &inner->child[half], upper->head.count * sizeof(uint64_t));
	inner->head.count = half;
	inner->head.high = upper->head.low;
	inner->head.sibling = upper_address;
}

/* A root above the old one and its new sibling: one CAS of the word that names it.  *grown: nobody else did that first. */
static smart_status
grow_root(struct peer_client *client, uint64_t key, fabric_address child, uint32_t level, bool *grown)
{
	struct tree *tree = tree_of(client->cluster);
	struct inner *root = &scratch_of(client)->other.inner;
	fabric_address address = peer_allocate(client->cluster, PAGE_BYTES);
	fabric_address old = tree->root;
	uint64_t found = 0;
	smart_status status;

	if (address == 0)
		return SMART_NO_SPACE;
	memset(root, 0, PAGE_BYTES);
	root->head.level = level;
	root->head.count = 2;
	root->child[0] = old;
	root->key[1] = key;
	root->child[1] = child;
	status = peer_write(client, address, root, PAGE_BYTES);
	if (status == SMART_OK)
		status = peer_cas(client, tree->root_word, old, address, &found);
	*grown = found == old;
	if (status == SMART_OK && *grown)
	{
		tree->root = address;
		tree->height = level;
	}
	return status;
}

/* One attempt at the page of a level that covers the key; *split: it was full, and has been split at *key. */
static smart_status
link_here(struct peer_client *client, uint64_t *key, fabric_address *child, uint32_t level, bool *split)
{
	struct scratch *scratch = scratch_of(client);
	struct inner *inner = &scratch->inner.inner;
	struct inner *upper = &scratch->other.inner;
	struct fabric_request requests[3];
	fabric_address address = 0;
	fabric_address upper_address = 0;
	smart_status status = find_inner(client, *key, level, &address);

	for (;;)
	{
		fabric_address next;

		if (status == SMART_OK)
			status = peer_lock(client, address, NULL, 0);
		if (status == SMART_OK)
			status = peer_read(client, address, inner, PAGE_BYTES);
		if (status != SMART_OK || covers(&inner->head, *key))
			break;
		next = inner->head.sibling;
		status = peer_write_and_unlock(client, address, requests, 0);
		address = next;
	}
	*split = status == SMART_OK && inner->head.count == INNER_SPAN;
	if (*split)
	{
		upper_address = peer_allocate(client->cluster, PAGE_BYTES);
		split_inner(inner, upper, upper_address);
	}
	if (status != SMART_OK || (*split && upper_address == 0))
		return status != SMART_OK ? status : SMART_NO_SPACE;
	insert_child(*split && *key >= upper->head.low ? upper : inner, *key, *child);
	if (*split)
	{
		requests[0] = peer_write_of(upper_address, upper, PAGE_BYTES);
		status = fabric_execute(client->simulated.client.fabric, requests, 1);
		*key = upper->head.low;
		*child = upper_address;
	}
	requests[0] = peer_write_of(address, inner, PAGE_BYTES);
	keep_copy(client, address, inner);
	return status == SMART_OK ? peer_write_and_unlock(client, address, requests, 1) : status;
}

/* The pages above learn of a new page, up to the first one that has room. */
static smart_status
link_page(struct peer_client *client, uint64_t key, fabric_address child, uint32_t level)
{
	bool split = true;
	smart_status status = SMART_OK;

	for (; status == SMART_OK && split; level++)
	{
		bool grown = false;

		if (level > tree_of(client->cluster)->height)
			status = grow_root(client, key, child, level, &grown);
		if (status != SMART_OK || grown)
			return status;
		/* The new root may be on its way. */
		while (level > tree_of(client->cluster)->height)
			client->simulated.env.env.pause(&client->simulated.env.env, 0);
		status = link_here(client, &key, &child, level, &split);
	}
	return status;
}

static int
compare_entries(const void *a, const void *b)
{
	uint64_t left;
	uint64_t right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return left < right ? -1 : left > right;
}

/* The full leaf, which is locked, and a new one for its upper half; both are WRITTEN whole. */
static smart_status
split_leaf(struct peer_client *client, fabric_address address, uint64_t key, uint64_t value)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	uint8_t *upper = scratch_of(client)->upper.bytes;
	struct head *head = (struct head *) (void *) leaf;
	struct head *upper_head = (struct head *) (void *) upper;
	fabric_address upper_address = peer_allocate(client->cluster, leaf_bytes(tree));
	struct fabric_request requests[2];
	unsigned int half = head->count / 2;
	uint64_t middle;
	smart_status status;

	if (upper_address == 0)
		return SMART_NO_SPACE;
	qsort(entry_at(tree, leaf, 0), head->count, tree->stride, compare_entries);
	memcpy(&middle, entry_at(tree, leaf, half), sizeof(middle));
	memset(upper, 0, leaf_bytes(tree));
	*upper_head = *head;
	upper_head->low = middle;
	upper_head->count = head->count - half;
	memcpy(entry_at(tree, upper, 0), entry_at(tree, leaf, half), upper_head->count * tree->stride);
	head->count = half;
	head->high = middle;
	head->sibling = upper_address;
	if (key >= middle)
		put_entry(tree, upper, upper_head->count++, key, value);
	else
		put_entry(tree, leaf, head->count++, key, value);
	requests[0] = peer_write_of(upper_address, upper, leaf_bytes(tree));
	status = fabric_execute(client->simulated.client.fabric, requests, 1);
	requests[0] = peer_write_of(address, leaf, leaf_bytes(tree));
	if (status == SMART_OK)
		status = peer_write_and_unlock(client, address, requests, 1);
	return status == SMART_OK ? link_page(client, middle, upper_address, 1) : status;
}

/* ---- writes ---- */

/* An entry into its leaf; *added: the key was not there. */
static smart_status
put(struct peer_client *client, uint64_t key, uint64_t value, bool *added)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	struct head *head = (struct head *) (void *) leaf;
	struct fabric_request requests[3];
	fabric_address address = 0;
	unsigned int place;
	int known;
	bool own;
	smart_status status;

	peer_go_to_owner(client, key);
	status = find_leaf(client, key, &address, &own);
	for (;;)
	{
		fabric_address next;

		/* A sibling has keys of no other partition, either. */
		if (status == SMART_OK)
			status = own ? peer_lock_locally(client, address, NULL, 0) : peer_lock(client, address, NULL, 0);
		if (status == SMART_OK)
			status = peer_read(client, address, leaf, leaf_bytes(tree));
		if (status != SMART_OK || covers(head, key))
			break;
		next = head->sibling;
		status = peer_write_and_unlock(client, address, requests, 0);
		address = next;
		if (status == SMART_OK)
			status = refresh_above(client, key);
	}
	if (status != SMART_OK)
		return status;
	known = find_entry(tree, leaf, key);
	*added = known < 0;
	if (known < 0 && head->count == tree->span)
		return split_leaf(client, address, key, value);
	place = known < 0 ? head->count++ : (unsigned int) known;
	put_entry(tree, leaf, place, key, value);
	requests[0] = peer_write_of(address + (uint64_t) (entry_at(tree, leaf, place) - leaf), entry_at(tree, leaf, place),
								tree->stride);
	/* Sherman's readers see by its versions whether an entry is there; here a count tells, which costs nothing. */
	((struct head *) peer_memory(client->cluster, address))->count = head->count;
	return peer_write_and_unlock(client, address, requests, 1);
}

static smart_status
sherman_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	return put(peer_client_of(ycsb), key_of(entry), peer_value_of(entry, key_length, length), added);
}

static smart_status
sherman_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	bool added;

	return put(peer_client_of(ycsb), key_of(entry), peer_value_of(entry, key_length, length), &added);
}

/* ---- scan ---- */

/* Entries of a leaf from a key on. */
static uint64_t
count_from(const struct tree *tree, uint8_t *leaf, uint64_t key)
{
	const struct head *head = (const struct head *) (const void *) leaf;
	uint64_t count = 0;

	for (unsigned int i = 0; i < head->count; i++)
	{
		uint64_t mine;

		memcpy(&mine, entry_at(tree, leaf, i), sizeof(mine));
		count += mine >= key;
	}
	return count;
}

/* READs as many leaves from that of a key on as the wanted entries fill, of those below one internal page. */
static smart_status
read_leaves(struct peer_client *client, uint64_t key, uint64_t wanted, unsigned int *pages)
{
	const struct tree *tree = tree_of(client->cluster);
	struct scratch *scratch = scratch_of(client);
	const struct inner *inner = &scratch->inner.inner;
	struct fabric_request requests[SCAN_PAGES];
	fabric_address above;
	unsigned int first;
	smart_status status = find_inner(client, key, 1, &above);

	if (status != SMART_OK)
		return status;
	first = child_of(inner, key);
	*pages = (unsigned int) (wanted * 100 / (tree->span * FILL)) + 1;
	*pages = *pages < SCAN_PAGES ? *pages : SCAN_PAGES;
	*pages = *pages < inner->head.count - first ? *pages : inner->head.count - first;
	for (unsigned int i = 0; i < *pages; i++)
		requests[i] = (struct fabric_request){.verb = FABRIC_READ,
											  .length = leaf_bytes(tree),
											  .remote = inner->child[first + i],
											  .local = scratch->page[i].bytes};
	return fabric_execute(client->simulated.client.fabric, requests, (int) *pages);
}

static smart_status
sherman_scan(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	const struct tree *tree = tree_of(client->cluster);
	uint64_t next = key_of(bytes);
	smart_status status = SMART_OK;

	peer_go_to_owner(client, next);
	*seen = 0;
	do
	{
		unsigned int pages;

		status = read_leaves(client, next, wanted - *seen, &pages);
		for (unsigned int i = 0; i < pages && status == SMART_OK && *seen < wanted; i++)
		{
			uint8_t *leaf = scratch_of(client)->page[i].bytes;
			const struct head *head = (const struct head *) (const void *) leaf;

			/* Split since the cache knew of it: what the page above says now leads on. */
			if (!covers(head, next))
			{
				status = refresh_above(client, next);
				break;
			}
			*seen += count_from(tree, leaf, next);
			next = head->high;
			if (next == 0)
				break;
		}
	} while (status == SMART_OK && *seen < wanted && next != 0);
	*seen = *seen < wanted ? *seen : wanted;
	return status;
}

/* ---- load ---- */

/* The first page of each level, and the rightmost one, which is being filled. */
struct loading
{
	struct peer_cluster *cluster;
	fabric_address first[HEIGHT_MAX];
	fabric_address right[HEIGHT_MAX];
	uint32_t height;
	bool full; /* the memory nodes are */
};

static void *
new_right(struct loading *loading, uint32_t level, uint64_t low)
{
	const struct tree *tree = tree_of(loading->cluster);
	fabric_address address = peer_allocate(loading->cluster, level == 0 ? leaf_bytes(tree) : PAGE_BYTES);
	struct head *head;

	if (address == 0)
	{
		loading->full = true;
		return NULL;
	}
	if (loading->right[level] != 0)
	{
		head = peer_memory(loading->cluster, loading->right[level]);
		head->high = low;
		head->sibling = address;
	}
	loading->right[level] = address;
	head = peer_memory(loading->cluster, address);
	*head = (struct head){.low = low, .level = level};
	return head;
}

/* A page with this low fence has been begun, the second one of the level below or a later one. */
static void
load_child(struct loading *loading, uint32_t level, uint64_t key, fabric_address child)
{
	struct inner *inner;

	smart_assert(level < HEIGHT_MAX);
	if (loading->right[level] == 0)
	{
		inner = new_right(loading, level, 0);
		if (inner == NULL)
			return;
		loading->first[level] = loading->right[level];
		loading->height = level;
		inner->child[inner->head.count++] = loading->first[level - 1];
	}
	inner = peer_memory(loading->cluster, loading->right[level]);
	if (inner->head.count >= INNER_SPAN * FILL / 100)
	{
		inner = new_right(loading, level, key);
		if (inner == NULL)
			return;
		load_child(loading, level + 1, key, loading->right[level]);
	}
	inner->key[inner->head.count] = key;
	inner->child[inner->head.count++] = child;
}

static smart_status
load_record(void *argument, const uint8_t *bytes, size_t length, uint64_t record)
{
	struct loading *loading = argument;
	const struct tree *tree = tree_of(loading->cluster);
	struct head *head = peer_memory(loading->cluster, loading->right[0]);
	uint64_t key = key_of(bytes);

	if (head->count >= tree->span * FILL / 100)
	{
		head = new_right(loading, 0, key);
		if (head != NULL)
			load_child(loading, 1, key, loading->right[0]);
	}
	if (loading->full)
		return SMART_NO_SPACE;
	put_entry(tree, (uint8_t *) head, head->count++, key, record);
	return SMART_OK;
}

static smart_status
sherman_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_cluster *cluster = peer_client_of(ycsb)->cluster;
	struct tree *tree = tree_of(cluster);
	const struct inner *root = peer_memory(cluster, tree->root);
	struct loading loading = {.cluster = cluster, .height = 1};
	smart_status status;

	loading.first[0] = loading.right[0] = root->child[0];
	loading.first[1] = loading.right[1] = tree->root;
	status = ycsb_sorted(options->key_type, options->keys, ycsb->env, load_record, &loading);
	if (status != SMART_OK)
		return status;
	tree->root = loading.right[loading.height];
	tree->height = loading.height;
	memcpy(peer_memory(cluster, tree->root_word), &tree->root, sizeof(tree->root));
	return SMART_OK;
}

/* ---- opening and closing ---- */

/* A root with one empty leaf. */
static bool
open_tree(struct peer_cluster *cluster)
{
	const struct ycsb_options *options = cluster->options;
	struct tree *tree = tree_of(cluster);
	struct inner *root;

	tree->value_bytes = options->value_bytes;
	tree->stride = 8 + tree->value_bytes + 2;
	tree->leaf_head = HEAD_BYTES;
	tree->span = (PAGE_BYTES - HEAD_BYTES) / tree->stride;
	if (8 + tree->value_bytes > ITEM_SHORT)
	{
		tree->stride--;
		tree->leaf_head = LONG_HEAD;
		tree->span = LONG_SPAN;
	}
	smart_assert(tree->span <= SPAN_MAX && leaf_bytes(tree) <= LEAF_MAX);
	tree->root_word = peer_allocate(cluster, sizeof(tree->root));
	tree->root = peer_allocate(cluster, PAGE_BYTES);
	tree->height = 1;
	root = peer_memory(cluster, tree->root);
	root->head.level = 1;
	root->head.count = 1;
	root->child[0] = peer_allocate(cluster, leaf_bytes(tree));
	memcpy(peer_memory(cluster, tree->root_word), &tree->root, sizeof(tree->root));
	return true;
}

static bool
open_compute(struct peer_compute *node)
{
	((struct compute *) node->state)->random = ycsb_mix(node->cluster->options->seed) + node->number;
	return true;
}

static void
close_compute(struct peer_compute *node)
{
	struct compute *compute = node->state;

	for (uint64_t i = 0; i < BUCKETS; i++)
	{
		while (compute->bucket[i] != NULL)
			drop_copy(compute, &compute->bucket[i]);
	}
}

static void
use_of_cache(struct peer_compute *node, struct ycsb_cache_use *use)
{
	const struct compute *compute = node->state;

	use->hits += compute->hits;
	use->misses += compute->misses;
	use->node_bytes += compute->bytes;
}

const struct peer peer_sherman = {
	.index =
		{
			.load = sherman_load,
			.lookup = sherman_lookup,
			.insert = sherman_insert,
			.update = sherman_update,
			.scan = sherman_scan,
		},
	.locks = true,
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = sizeof(struct compute),
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.open_compute = open_compute,
	.close_compute = close_compute,
	.cache_use = use_of_cache,
};
