/*
 * peer_chime.c
 *	  A model of CHIME (Luo et al., SOSP'24): a B+ tree whose leaves are hash tables, by its abstract and the code that its
 *	  authors publish.
 *
 * A leaf has 64 entries by hopscotch hashing: a key lies at most seven places behind its home, so a lookup READs eight
 * entries and not the leaf.  Eight entries follow each copy of what the leaf says of itself (metadata replication), so
 * that those which a lookup READs have one among them.  An entry of key and value has three bytes more, of version and
 * bitmap.
 *
 * A writer locks the leaf by a CAS, whose result tells where there is a vacancy too, READs what lies between the home and
 * that, moves entries towards it until the vacancy is near enough, and WRITEs what has changed and the free lock in one
 * batch.  If nothing can be moved the leaf is split, which READs and WRITEs it whole.  Clients of a compute node share
 * READs and combine updates of a key (SMART 4.2).
 *
 * Where the model differs: the copies in a leaf have its upper fence, which is 8 bytes more, where CHIME compares the
 * leaf's sibling with the page above.  Internal pages are Sherman's, with 54 children instead of 64.  So are the locks, in
 * the NIC's memory, for which clients of a compute node queue; CHIME's lie in the leaf, and clients that find one taken
 * try again.  Entries are compared with the key, and the bitmap is not looked at.
 *
 * Left out: speculative READs of one entry by a cache of hot keys' places, which save bytes, and no request: these READs
 * are far below the limit of the links.  Deletion; keys other than integers; torn READs.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "keys.h"
#include "peer_btree.h"
#include "random.h"
#include "sorted.h"

#define SPAN          64 /* entries of a leaf */
#define NEIGHBOURS    8  /* places where a key may lie */
#define GROUPS        (SPAN / NEIGHBOURS)
#define REPLICA_BYTES ((unsigned int) sizeof(struct replica) + 2) /* and version, and whether it is valid */
#define VALUE_MAX     128
#define LEAF_MAX      (PEER_HEAD_BYTES + GROUPS * (18 + NEIGHBOURS * (8 + VALUE_MAX + 3)))
#define FILL          62 /* percent of a leaf after inserts in random order: ln 2 of how full it is when it is split */
#define SCAN_PAGES    64

/* What a leaf says of itself. */
struct replica
{
	uint64_t high; /* keys below there; 0: no end */
	uint64_t sibling;
};

_Static_assert(sizeof(struct replica) + 2 == 18, "LEAF_MAX");

struct tree
{
	struct peer_btree btree; /* first */
	uint32_t
		stride; /* of an entry: key, value, version, bitmap, and whether it is there in the place of one of these */
};

struct page_buffer
{
	_Alignas(8) uint8_t bytes[LEAF_MAX];
};

struct scratch
{
	struct peer_inner_pages pages; /* first */
	struct page_buffer leaf;
	struct page_buffer upper;
	struct page_buffer page[SCAN_PAGES];
};

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

static struct scratch *
scratch_of(struct peer_client *client)
{
	return client->state;
}

/* ---- leaves ---- */

static uint32_t
group_bytes(const struct tree *tree)
{
	return REPLICA_BYTES + NEIGHBOURS * tree->stride;
}

static uint32_t
leaf_bytes(const struct tree *tree)
{
	return PEER_HEAD_BYTES + GROUPS * group_bytes(tree);
}

static uint32_t
replica_at(const struct tree *tree, unsigned int group)
{
	smart_assert(group < GROUPS);
	return PEER_HEAD_BYTES + group * group_bytes(tree);
}

static uint32_t
entry_at(const struct tree *tree, unsigned int place)
{
	smart_assert(place < SPAN);
	return replica_at(tree, place / NEIGHBOURS) + REPLICA_BYTES + place % NEIGHBOURS * tree->stride;
}

static struct replica
get_replica(const struct tree *tree, const uint8_t *leaf, unsigned int group)
{
	struct replica replica;

	memcpy(&replica, leaf + replica_at(tree, group), sizeof(replica));
	return replica;
}

static void
put_replicas(const struct tree *tree, uint8_t *leaf, struct replica replica)
{
	for (unsigned int group = 0; group < GROUPS; group++)
		memcpy(leaf + replica_at(tree, group), &replica, sizeof(replica));
}

static unsigned int
home_of(uint64_t key)
{
	return (unsigned int) (ycsb_mix(key) % SPAN);
}

/* From one place to another, upwards, round the end. */
static unsigned int
distance(unsigned int from, unsigned int to)
{
	smart_assert(from < SPAN && to < SPAN);
	return (to + SPAN - from) % SPAN;
}

static uint8_t *
there(const struct tree *tree, uint8_t *leaf, unsigned int place)
{
	return leaf + entry_at(tree, place) + tree->stride - 1;
}

static uint64_t
key_at(const struct tree *tree, const uint8_t *leaf, unsigned int place)
{
	uint64_t key;

	memcpy(&key, leaf + entry_at(tree, place), sizeof(key));
	return key;
}

static void
put_entry(const struct tree *tree, uint8_t *leaf, unsigned int place, uint64_t key, uint64_t value)
{
	uint8_t *entry = leaf + entry_at(tree, place);

	smart_assert(distance(home_of(key), place) < NEIGHBOURS);
	memset(entry, 0, tree->stride);
	memcpy(entry, &key, sizeof(key));
	memcpy(entry + sizeof(key), &value, sizeof(value));
	*there(tree, leaf, place) = 1;
}

/* The place of a key, or -1. */
static int
find_entry(const struct tree *tree, uint8_t *leaf, uint64_t key)
{
	unsigned int home = home_of(key);

	for (unsigned int i = 0; i < NEIGHBOURS; i++)
	{
		unsigned int place = (home + i) % SPAN;

		if (*there(tree, leaf, place) && key_at(tree, leaf, place) == key)
			return (int) place;
	}
	return -1;
}

/* How far from a place the next vacancy is; SPAN: there is none. */
static unsigned int
find_vacancy(const struct tree *tree, uint8_t *leaf, unsigned int from)
{
	unsigned int far = 0;

	smart_assert(from < SPAN);
	while (far < SPAN && *there(tree, leaf, (from + far) % SPAN))
		far++;
	return far;
}

/* Moves the vacancy towards the home, until it is a neighbour.  False: nothing can be moved. */
static bool
hop(const struct tree *tree, uint8_t *leaf, unsigned int home, unsigned int *vacancy)
{
	smart_assert(home < SPAN && *vacancy < SPAN && !*there(tree, leaf, *vacancy));
	while (distance(home, *vacancy) >= NEIGHBOURS)
	{
		unsigned int back = NEIGHBOURS - 1;
		unsigned int place;

		while (back > 0 &&
			   distance(home_of(key_at(tree, leaf, (*vacancy + SPAN - back) % SPAN)), *vacancy) >= NEIGHBOURS)
			back--;
		if (back == 0)
			return false;
		place = (*vacancy + SPAN - back) % SPAN;
		memcpy(leaf + entry_at(tree, *vacancy), leaf + entry_at(tree, place), tree->stride);
		*there(tree, leaf, place) = 0;
		*vacancy = place;
	}
	return true;
}

/* An entry into a leaf all of which is there.  False: it is full, for this key. */
static bool
add_entry(const struct tree *tree, uint8_t *leaf, uint64_t key, uint64_t value)
{
	unsigned int home = home_of(key);
	unsigned int far = find_vacancy(tree, leaf, home);
	unsigned int vacancy = (home + far) % SPAN;

	smart_assert(find_entry(tree, leaf, key) < 0);
	if (far == SPAN || !hop(tree, leaf, home, &vacancy))
		return false;
	put_entry(tree, leaf, vacancy, key, value);
	return true;
}

/* ---- parts of leaves ---- */

/* Where the entries from a place on begin; of a READ, with the replica in front of a group. */
static uint32_t
begin_of(const struct tree *tree, enum fabric_verb verb, unsigned int place)
{
	bool with_replica = verb == FABRIC_READ && place % NEIGHBOURS == 0;

	return with_replica ? replica_at(tree, place / NEIGHBOURS) : entry_at(tree, place);
}

/* A request for so many entries that do not go round the end. */
static struct fabric_request
stretch(const struct tree *tree, enum fabric_verb verb, fabric_address address, uint8_t *leaf, unsigned int from,
		unsigned int count)
{
	uint32_t begin = begin_of(tree, verb, from);

	smart_assert(count > 0 && from + count <= SPAN);
	return (struct fabric_request){.verb = verb,
								   .length = entry_at(tree, from + count - 1) + tree->stride - begin,
								   .remote = address + begin,
								   .local = leaf + begin};
}

/* One request, or two for what goes round the end: first for what lies there, where entries move to. */
static int
part(const struct tree *tree, enum fabric_verb verb, fabric_address address, uint8_t *leaf, unsigned int from,
	 unsigned int count, struct fabric_request *requests)
{
	unsigned int over = from + count > SPAN ? from + count - SPAN : 0;
	int number = 0;

	smart_assert(count > 0 && count <= SPAN);
	smart_assert(from < SPAN);
	if (over > 0)
		requests[number++] = stretch(tree, verb, address, leaf, 0, over);
	requests[number++] = stretch(tree, verb, address, leaf, from, count - over);
	return number;
}

static smart_status
read_part(struct peer_client *client, fabric_address address, uint8_t *leaf, unsigned int from, unsigned int count)
{
	struct fabric_request requests[2];
	int number = part(tree_of(client->cluster), FABRIC_READ, address, leaf, from, count, requests);

	return fabric_execute(client->simulated.client.fabric, requests, number);
}

/* Of the entries from a place on, a neighbourhood at least, one that has been READ. */
static struct replica
replica_of_part(const struct tree *tree, const uint8_t *leaf, unsigned int from)
{
	return get_replica(tree, leaf, (from + NEIGHBOURS - 1) / NEIGHBOURS % GROUPS);
}

static bool
ends_before(struct replica replica, uint64_t key)
{
	return replica.high != 0 && key >= replica.high;
}

static struct fabric_request
whole(const struct tree *tree, enum fabric_verb verb, fabric_address address, uint8_t *leaf)
{
	return (struct fabric_request){.verb = verb,
								   .length = GROUPS * group_bytes(tree),
								   .remote = address + PEER_HEAD_BYTES,
								   .local = leaf + PEER_HEAD_BYTES};
}

/* ---- lookup ---- */

static smart_status
search(struct peer_client *client, uint64_t key, bool *found)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	unsigned int home = home_of(key);
	unsigned int reads = home + NEIGHBOURS > SPAN ? 2 : 1; /* between two parts an entry may hop */
	fabric_address address = 0;
	bool own;
	smart_status status = peer_find_leaf(client, key, &address, &own);

	*found = false;
	while (status == SMART_OK && !*found && reads > 0)
	{
		struct replica replica;

		status = read_part(client, address, leaf, home, NEIGHBOURS);
		replica = replica_of_part(tree, leaf, home);
		if (status != SMART_OK)
			break;
		if (ends_before(replica, key))
		{
			smart_assert(replica.sibling != 0);
			address = replica.sibling;
			status = peer_refresh_above(client, key);
			continue;
		}
		*found = find_entry(tree, leaf, key) >= 0;
		reads--;
	}
	return status;
}

static smart_status
chime_lookup(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	enum peer_role role = PEER_ALONE;
	uint64_t value = 0;
	smart_status status;

	smart_assert(length == YCSB_INTEGER_BYTES);
	*found = true;
	if (client->compute->delegation != NULL)
		role = peer_delegate(client, bytes, length, false, &value);
	if (role == PEER_DELIVERED)
		return SMART_OK;
	status = search(client, peer_key_of(bytes), found);
	if (role == PEER_LEADS)
		peer_delegate_end(client, bytes, length, value);
	return status;
}

/* ---- splits ---- */

static int
compare_keys(const void *a, const void *b)
{
	uint64_t left;
	uint64_t right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return left < right ? -1 : left > right;
}

/* The entries of the leaf on both sides of a middle key, into leaves that were empty, each where it was. */
static void
divide(const struct tree *tree, uint8_t *from, uint64_t middle, uint8_t *lower, uint8_t *upper)
{
	for (unsigned int place = 0; place < SPAN; place++)
	{
		uint8_t *to = key_at(tree, from, place) >= middle ? upper : lower;

		if (*there(tree, from, place))
			memcpy(to + entry_at(tree, place), from + entry_at(tree, place), tree->stride);
	}
}

static uint64_t
middle_of(const struct tree *tree, uint8_t *leaf)
{
	uint64_t keys[SPAN];
	unsigned int count = 0;

	for (unsigned int place = 0; place < SPAN; place++)
	{
		if (*there(tree, leaf, place))
			keys[count++] = key_at(tree, leaf, place);
	}
	smart_assert(count >= 2);
	qsort(keys, count, sizeof(*keys), compare_keys);
	smart_assert(keys[0] < keys[count / 2]);
	return keys[count / 2];
}

/*
 * A leaf without room for the key, which is locked, and a new one for its upper half; both are WRITTEN whole.  *fits: the
 * key had room in its half; else it is to be tried again.
 */
static smart_status
split_leaf(struct peer_client *client, fabric_address address, uint64_t key, uint64_t value, bool *fits)
{
	const struct tree *tree = tree_of(client->cluster);
	struct scratch *scratch = scratch_of(client);
	uint8_t *old = scratch->page[0].bytes;
	uint8_t *lower = scratch->leaf.bytes;
	uint8_t *upper = scratch->upper.bytes;
	fabric_address upper_address = peer_allocate(client->cluster, leaf_bytes(tree));
	struct fabric_request requests[2] = {whole(tree, FABRIC_READ, address, old)};
	uint64_t middle;
	smart_status status;

	if (upper_address == 0)
		return SMART_NO_SPACE;
	status = fabric_execute(client->simulated.client.fabric, requests, 1);
	if (status != SMART_OK)
		return status;
	middle = middle_of(tree, old);
	smart_assert(!ends_before(get_replica(tree, old, 0), middle));
	memset(lower, 0, leaf_bytes(tree));
	memset(upper, 0, leaf_bytes(tree));
	put_replicas(tree, upper, get_replica(tree, old, 0));
	put_replicas(tree, lower, (struct replica){.high = middle, .sibling = upper_address});
	divide(tree, old, middle, lower, upper);
	*fits = add_entry(tree, key >= middle ? upper : lower, key, value);
	requests[0] = whole(tree, FABRIC_WRITE, upper_address, upper);
	status = fabric_execute(client->simulated.client.fabric, requests, 1);
	requests[0] = whole(tree, FABRIC_WRITE, address, lower);
	if (status == SMART_OK)
		status = peer_write_and_unlock(client, address, requests, 1);
	return status == SMART_OK ? peer_link_page(client, middle, upper_address, 1) : status;
}

/* ---- writes ---- */

/*
 * Locks the leaf of the key and READs the neighbourhood of its home; of a leaf that gets an entry, up to the vacancy that
 * the lock's word told of.  *far: how far from the home that is; SPAN: there is none.
 */
static smart_status
lock_leaf(struct peer_client *client, uint64_t key, bool adds, fabric_address *address, unsigned int *far)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	unsigned int home = home_of(key);
	bool own;
	smart_status status = peer_find_leaf(client, key, address, &own);

	while (status == SMART_OK)
	{
		struct fabric_request none[1];
		struct replica replica;

		status = peer_lock(client, *address, NULL, 0);
		if (status != SMART_OK)
			break;
		*far = adds ? find_vacancy(tree, peer_memory(client->cluster, *address), home) : 0;
		status = read_part(client, *address, leaf, home, *far < NEIGHBOURS || *far == SPAN ? NEIGHBOURS : *far + 1);
		replica = replica_of_part(tree, leaf, home);
		if (status != SMART_OK || !ends_before(replica, key))
			break;
		smart_assert(replica.sibling != 0);
		status = peer_write_and_unlock(client, *address, none, 0);
		*address = replica.sibling;
		if (status == SMART_OK)
			status = peer_refresh_above(client, key);
	}
	return status;
}

/* WRITEs so many entries of the client's leaf from a place on, and unlocks. */
static smart_status
write_part(struct peer_client *client, fabric_address address, unsigned int from, unsigned int count)
{
	struct fabric_request requests[3];
	int number =
		part(tree_of(client->cluster), FABRIC_WRITE, address, scratch_of(client)->leaf.bytes, from, count, requests);

	return peer_write_and_unlock(client, address, requests, number);
}

/* One attempt; *done: the entry is there.  If not, its leaf was split, and it had no room in its half either. */
static smart_status
try_insert(struct peer_client *client, uint64_t key, uint64_t value, bool *done, bool *added)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	unsigned int home = home_of(key);
	unsigned int vacancy;
	unsigned int place;
	unsigned int far;
	fabric_address address = 0;
	int known;
	smart_status status = lock_leaf(client, key, true, &address, &far);

	*done = true;
	if (status != SMART_OK)
		return status;
	known = find_entry(tree, leaf, key);
	*added = known < 0;
	if (known >= 0)
	{
		put_entry(tree, leaf, (unsigned int) known, key, value);
		return write_part(client, address, (unsigned int) known, 1);
	}
	vacancy = place = (home + far) % SPAN;
	if (far == SPAN || !hop(tree, leaf, home, &place))
		return split_leaf(client, address, key, value, done);
	put_entry(tree, leaf, place, key, value);
	return write_part(client, address, place, distance(place, vacancy) + 1);
}

static smart_status
chime_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t value = peer_value_of(entry, key_length, length);
	bool done;
	smart_status status;

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	do
		status = try_insert(client, peer_key_of(entry), value, &done, added);
	while (status == SMART_OK && !done);
	return status;
}

/* leads: the newest value that clients of the compute node have handed in. */
static smart_status
overwrite(struct peer_client *client, const uint8_t *bytes, size_t length, uint64_t *value, bool leads)
{
	const struct tree *tree = tree_of(client->cluster);
	uint8_t *leaf = scratch_of(client)->leaf.bytes;
	uint64_t key = peer_key_of(bytes);
	unsigned int far;
	fabric_address address = 0;
	int known;
	smart_status status = lock_leaf(client, key, false, &address, &far);

	if (status != SMART_OK)
		return status;
	if (leads)
		peer_delegate_close(client, bytes, length, value);
	known = find_entry(tree, leaf, key);
	if (known < 0)
		return SMART_CORRUPT;
	put_entry(tree, leaf, (unsigned int) known, key, *value);
	return write_part(client, address, (unsigned int) known, 1);
}

static smart_status
chime_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	struct peer_client *client = peer_client_of(ycsb);
	enum peer_role role = PEER_ALONE;
	uint64_t value = peer_value_of(entry, key_length, length);
	smart_status status;

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	if (client->compute->delegation != NULL)
		role = peer_delegate(client, entry, key_length, true, &value);
	if (role == PEER_DELIVERED)
		return SMART_OK;
	status = overwrite(client, entry, key_length, &value, role == PEER_LEADS);
	if (role == PEER_LEADS)
		peer_delegate_end(client, entry, key_length, value);
	return status;
}

/* ---- scan ---- */

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
	*pages = (unsigned int) (wanted * 100 / (SPAN * FILL)) + 1;
	*pages = *pages < SCAN_PAGES ? *pages : SCAN_PAGES;
	status = peer_find_leaves(client, key, leaves, pages);
	if (status != SMART_OK)
		return status;
	smart_assert(*pages > 0 && *pages <= SCAN_PAGES);
	for (unsigned int i = 0; i < *pages; i++)
		requests[i] = whole(tree, FABRIC_READ, leaves[i], scratch->page[i].bytes);
	return fabric_execute(client->simulated.client.fabric, requests, (int) *pages);
}

/* Entries of a leaf from a key on. */
static uint64_t
count_from(const struct tree *tree, uint8_t *leaf, uint64_t key)
{
	uint64_t count = 0;

	for (unsigned int place = 0; place < SPAN; place++)
		count += *there(tree, leaf, place) && key_at(tree, leaf, place) >= key;
	return count;
}

static smart_status
chime_scan(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	const struct tree *tree = tree_of(client->cluster);
	uint64_t next = peer_key_of(bytes);
	bool more = true;
	smart_status status = SMART_OK;

	smart_assert(length == YCSB_INTEGER_BYTES);
	*seen = 0;
	while (status == SMART_OK && *seen < wanted && more)
	{
		unsigned int pages = 0;

		status = read_leaves(client, next, wanted - *seen, &pages);
		for (unsigned int i = 0; i < pages && status == SMART_OK && *seen < wanted && more; i++)
		{
			uint8_t *leaf = scratch_of(client)->page[i].bytes;
			const struct replica replica = get_replica(tree, leaf, 0);

			/* Split since the cache knew of it: what the page above says now leads on. */
			if (ends_before(replica, next))
			{
				status = peer_refresh_above(client, next);
				break;
			}
			*seen += count_from(tree, leaf, next);
			next = replica.high;
			more = next != 0;
		}
	}
	*seen = *seen < wanted ? *seen : wanted;
	return status;
}

/* ---- load ---- */

struct load
{
	struct peer_loading loading; /* first */
	unsigned int count;          /* of the last leaf's entries */
};

/* The replicas of a leaf say what its head says. */
static void
finish_leaf(struct peer_cluster *cluster, fabric_address address)
{
	uint8_t *leaf = peer_memory(cluster, address);
	struct peer_head head;

	memcpy(&head, leaf, sizeof(head));
	put_replicas(tree_of(cluster), leaf, (struct replica){.high = head.high, .sibling = head.sibling});
}

static smart_status
load_record(void *argument, const uint8_t *bytes, size_t length, uint64_t record)
{
	struct load *load = argument;
	struct peer_cluster *cluster = load->loading.cluster;
	const struct tree *tree = tree_of(cluster);
	fabric_address last = load->loading.right[0];
	uint8_t *leaf = peer_memory(cluster, last);
	uint64_t key = peer_key_of(bytes);

	smart_assert(length == YCSB_INTEGER_BYTES && load->count <= SPAN * FILL / 100);
	if (load->count < SPAN * FILL / 100 && add_entry(tree, leaf, key, record))
	{
		load->count++;
		return SMART_OK;
	}
	leaf = peer_loading_leaf(&load->loading, key);
	if (leaf == NULL)
		return SMART_NO_SPACE;
	finish_leaf(cluster, last);
	load->count = 1;
	return add_entry(tree, leaf, key, record) ? SMART_OK : SMART_NO_SPACE;
}

static smart_status
chime_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_cluster *cluster = peer_client_of(ycsb)->cluster;
	struct load load = {.count = 0};
	smart_status status;

	peer_loading_begin(&load.loading, cluster, leaf_bytes(tree_of(cluster)));
	status = ycsb_sorted(options->key_type, options->keys, ycsb->env, load_record, &load);
	if (status != SMART_OK)
		return status;
	finish_leaf(cluster, load.loading.right[0]);
	peer_loading_end(&load.loading);
	return SMART_OK;
}

/* ---- opening and closing ---- */

static bool
open_tree(struct peer_cluster *cluster)
{
	struct tree *tree = tree_of(cluster);

	if (cluster->options->value_bytes > VALUE_MAX)
		return ycsb_complain("values of CHIME's model have at most 128 bytes", SMART_TOO_LONG);
	tree->stride = 8 + cluster->options->value_bytes + 3;
	smart_assert(leaf_bytes(tree) <= LEAF_MAX);
	peer_btree_open(cluster, leaf_bytes(tree));
	return true;
}

const struct peer peer_chime = {
	.index =
		{
			.load = chime_load,
			.lookup = chime_lookup,
			.insert = chime_insert,
			.update = chime_update,
			.scan = chime_scan,
		},
	.delegates = true,
	.locks = true,
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = sizeof(struct peer_pages),
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.open_compute = peer_pages_open,
	.close_compute = peer_pages_close,
	.cache_use = peer_pages_use,
};
