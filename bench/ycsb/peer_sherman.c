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
#include "keys.h"
#include "peer_btree.h"
#include "sorted.h"

#define LONG_HEAD  67 /* of a leaf with long items */
#define LONG_SPAN  32
#define ITEM_SHORT 16 /* bytes of key and value up to which a leaf is a page of 1 KB */
#define SPAN_MAX   54
#define LEAF_MAX   (LONG_HEAD + LONG_SPAN * (8 + 1024 + 1))

struct tree
{
	struct peer_btree btree; /* first */
	uint32_t value_bytes;
	uint32_t span; /* entries of a leaf */
	uint32_t leaf_head;
	uint32_t stride; /* of an entry */
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
	return tree->leaf_head == PEER_HEAD_BYTES ? PEER_PAGE_BYTES : tree->leaf_head + tree->span * tree->stride;
}

static uint8_t *
entry_at(const struct tree *tree, uint8_t *leaf, unsigned int number)
{
	smart_assert(number < tree->span);
	return leaf + tree->leaf_head + number * tree->stride;
}

/* The place of a key, or -1. */
static int
find_entry(const struct tree *tree, uint8_t *leaf, uint64_t key)
{
	const struct peer_head *head = (const struct peer_head *) (const void *) leaf;

	smart_assert(head->count <= tree->span);
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

/* ---- clients ---- */

struct page_buffer
{
	_Alignas(8) uint8_t bytes[LEAF_MAX];
};

#define SCAN_PAGES 64

struct scratch
{
	struct peer_inner_pages pages; /* first */
	struct page_buffer leaf;
	struct page_buffer upper;
	struct page_buffer page[SCAN_PAGES];
};

static struct scratch *
scratch_of(struct peer_client *client)
{
	return client->state;
}

/* ---- lookup ---- */

static smart_status
read_leaf(struct peer_client *client, fabric_address address, uint8_t *leaf)
{
	const struct tree *tree = tree_of(client->cluster);
	bool optimistic = client->cluster->variant == PEER_OPTIMISTIC;
	uint64_t word;
	smart_status status = SMART_OK;

	smart_assert(address != 0);
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
	const struct peer_head *head = (const struct peer_head *) (const void *) leaf;
	uint64_t key = peer_key_of(bytes);
	fabric_address address = 0;
	bool own;
	smart_status status;

	smart_assert(length == YCSB_INTEGER_BYTES);
	peer_go_to_owner(client, key);
	status = peer_find_leaf(client, key, &address, &own);
	while (status == SMART_OK)
	{
		status = read_leaf(client, address, leaf);
		if (status != SMART_OK || peer_covers(head, key))
			break;
		smart_assert(head->sibling != 0);
		address = head->sibling;
		status = peer_refresh_above(client, key);
	}
	*found = status == SMART_OK && find_entry(tree_of(client->cluster), leaf, key) >= 0;
	return status;
}

/* ---- splits ---- */

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
	struct peer_head *head = (struct peer_head *) (void *) leaf;
	struct peer_head *upper_head = (struct peer_head *) (void *) upper;
	fabric_address upper_address = peer_allocate(client->cluster, leaf_bytes(tree));
	struct fabric_request requests[2];
	unsigned int half = head->count / 2;
	uint64_t middle;
	smart_status status;

	smart_assert(head->count == tree->span);
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
	smart_assert(head->low < middle && (upper_head->high == 0 || middle < upper_head->high));
	head->sibling = upper_address;
	if (key >= middle)
		put_entry(tree, upper, upper_head->count++, key, value);
	else
		put_entry(tree, leaf, head->count++, key, value);
	smart_assert(head->count + upper_head->count == tree->span + 1);
	requests[0] = peer_write_of(upper_address, upper, leaf_bytes(tree));
	status = fabric_execute(client->simulated.client.fabric, requests, 1);
	requests[0] = peer_write_of(address, leaf, leaf_bytes(tree));
	if (status == SMART_OK)
		status = peer_write_and_unlock(client, address, requests, 1);
	return status == SMART_OK ? peer_link_page(client, middle, upper_address, 1) : status;
}

/* ---- writes ---- */

/* An entry into its leaf; *added: the key was not there. */
static smart_status
put(struct peer_client *client, uint64_t key, uint64_t value, bool *added)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	struct peer_head *head = (struct peer_head *) (void *) leaf;
	struct fabric_request requests[3];
	fabric_address address = 0;
	unsigned int place;
	int known;
	bool own;
	smart_status status;

	peer_go_to_owner(client, key);
	status = peer_find_leaf(client, key, &address, &own);
	for (;;)
	{
		fabric_address next;

		/* A sibling has keys of no other partition, either. */
		if (status == SMART_OK)
			status = own ? peer_lock_locally(client, address, NULL, 0) : peer_lock(client, address, NULL, 0);
		if (status == SMART_OK)
			status = peer_read(client, address, leaf, leaf_bytes(tree));
		if (status != SMART_OK || peer_covers(head, key))
			break;
		next = head->sibling;
		smart_assert(next != 0);
		status = peer_write_and_unlock(client, address, requests, 0);
		address = next;
		if (status == SMART_OK)
			status = peer_refresh_above(client, key);
	}
	if (status != SMART_OK)
		return status;
	known = find_entry(tree, leaf, key);
	*added = known < 0;
	if (known < 0 && head->count == tree->span)
		return split_leaf(client, address, key, value);
	place = known < 0 ? head->count++ : (unsigned int) known;
	smart_assert(head->count <= tree->span);
	put_entry(tree, leaf, place, key, value);
	requests[0] = peer_write_of(address + (uint64_t) (entry_at(tree, leaf, place) - leaf), entry_at(tree, leaf, place),
								tree->stride);
	/* Sherman's readers see by its versions whether an entry is there; here a count tells, which costs nothing. */
	((struct peer_head *) peer_memory(client->cluster, address))->count = head->count;
	return peer_write_and_unlock(client, address, requests, 1);
}

static smart_status
sherman_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	smart_assert(key_length == YCSB_INTEGER_BYTES);
	return put(peer_client_of(ycsb), peer_key_of(entry), peer_value_of(entry, key_length, length), added);
}

static smart_status
sherman_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	bool added;

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	return put(peer_client_of(ycsb), peer_key_of(entry), peer_value_of(entry, key_length, length), &added);
}

/* ---- scan ---- */

/* Entries of a leaf from a key on. */
static uint64_t
count_from(const struct tree *tree, uint8_t *leaf, uint64_t key)
{
	const struct peer_head *head = (const struct peer_head *) (const void *) leaf;
	uint64_t count = 0;

	smart_assert(head->count <= tree->span);
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
	struct fabric_request requests[SCAN_PAGES];
	fabric_address leaves[SCAN_PAGES];
	smart_status status;

	smart_assert(wanted > 0);
	*pages = (unsigned int) (wanted * 100 / (tree->span * PEER_FILL)) + 1;
	*pages = *pages < SCAN_PAGES ? *pages : SCAN_PAGES;
	status = peer_find_leaves(client, key, leaves, pages);
	if (status != SMART_OK)
		return status;
	smart_assert(*pages > 0 && *pages <= SCAN_PAGES);
	for (unsigned int i = 0; i < *pages; i++)
		requests[i] = (struct fabric_request){.verb = FABRIC_READ,
											  .length = leaf_bytes(tree),
											  .remote = leaves[i],
											  .local = scratch->page[i].bytes};
	return fabric_execute(client->simulated.client.fabric, requests, (int) *pages);
}

static smart_status
sherman_scan(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	const struct tree *tree = tree_of(client->cluster);
	uint64_t next = peer_key_of(bytes);
	smart_status status = SMART_OK;

	smart_assert(length == YCSB_INTEGER_BYTES);
	peer_go_to_owner(client, next);
	*seen = 0;
	do
	{
		unsigned int pages;

		status = read_leaves(client, next, wanted - *seen, &pages);
		for (unsigned int i = 0; i < pages && status == SMART_OK && *seen < wanted; i++)
		{
			uint8_t *leaf = scratch_of(client)->page[i].bytes;
			const struct peer_head *head = (const struct peer_head *) (const void *) leaf;

			/* Split since the cache knew of it: what the page above says now leads on. */
			if (!peer_covers(head, next))
			{
				status = peer_refresh_above(client, next);
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

static smart_status
load_record(void *argument, const uint8_t *bytes, size_t length, uint64_t record)
{
	struct peer_loading *loading = argument;
	const struct tree *tree = tree_of(loading->cluster);
	struct peer_head *head = peer_memory(loading->cluster, loading->right[0]);
	uint64_t key = peer_key_of(bytes);

	smart_assert(length == YCSB_INTEGER_BYTES);
	if (head->count >= tree->span * PEER_FILL / 100)
		head = peer_loading_leaf(loading, key);
	if (head == NULL)
		return SMART_NO_SPACE;
	put_entry(tree, (uint8_t *) head, head->count++, key, record);
	return SMART_OK;
}

static smart_status
sherman_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_cluster *cluster = peer_client_of(ycsb)->cluster;
	struct peer_loading loading;
	smart_status status;

	peer_loading_begin(&loading, cluster, leaf_bytes(tree_of(cluster)));
	status = ycsb_sorted(options->key_type, options->keys, ycsb->env, load_record, &loading);
	if (status == SMART_OK)
		peer_loading_end(&loading);
	return status;
}

/* ---- opening and closing ---- */

/* A root with one empty leaf. */
static bool
open_tree(struct peer_cluster *cluster)
{
	const struct ycsb_options *options = cluster->options;
	struct tree *tree = tree_of(cluster);

	tree->value_bytes = options->value_bytes;
	tree->stride = 8 + tree->value_bytes + 2;
	tree->leaf_head = PEER_HEAD_BYTES;
	tree->span = (PEER_PAGE_BYTES - PEER_HEAD_BYTES) / tree->stride;
	if (8 + tree->value_bytes > ITEM_SHORT)
	{
		tree->stride--;
		tree->leaf_head = LONG_HEAD;
		tree->span = LONG_SPAN;
	}
	smart_assert(tree->span <= SPAN_MAX && leaf_bytes(tree) <= LEAF_MAX);
	peer_btree_open(cluster, leaf_bytes(tree));
	return true;
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
	.compute_bytes = sizeof(struct peer_pages),
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.open_compute = peer_pages_open,
	.close_compute = peer_pages_close,
	.cache_use = peer_pages_use,
};
