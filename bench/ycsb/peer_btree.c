/*
 * peer_btree.c
 *	  Internal pages of the papers' B+ trees.
 *
 * A full page is split under its lock, and WRITTEN whole.  A root grows by one CAS of the word that names it.  The
 * cache drops pages right above the leaves, any of them, when it is full.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "peer_btree.h"
#include "random.h"

static struct peer_btree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

static struct peer_inner_pages *
pages_of(struct peer_client *client)
{
	return client->state;
}

/* The child that covers a key. */
static unsigned int
child_of(const struct peer_inner *inner, uint64_t key)
{
	unsigned int low = 0;
	unsigned int high = inner->head.count;

	smart_assert(high > 0);
	smart_assert(high <= PEER_INNER_SPAN);
	while (high - low > 1)
	{
		unsigned int middle = (low + high) / 2;

		if (inner->key[middle] <= key)
			low = middle;
		else
			high = middle;
	}
	smart_assert(low < inner->head.count && (low == 0 || inner->key[low] <= key));
	return low;
}

/* ---- the cache of a compute node: copies of internal pages ---- */

struct peer_page_copy
{
	struct peer_page_copy *next;
	fabric_address address;
	struct peer_inner inner;
};

static struct peer_page_copy **
find_copy(struct peer_pages *pages, fabric_address address)
{
	struct peer_page_copy **link = &pages->bucket[ycsb_mix(address) % PEER_PAGE_BUCKETS];

	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

static void
drop_copy(struct peer_pages *pages, struct peer_page_copy **link)
{
	struct peer_page_copy *copy = *link;

	smart_assert(pages->bytes >= PEER_PAGE_BYTES);
	*link = copy->next;
	pages->bytes -= PEER_PAGE_BYTES;
	free(copy);
}

/* Any page right above the leaves. */
static bool
drop_any(struct peer_pages *pages)
{
	uint64_t begin = ycsb_random(&pages->random);

	for (uint64_t i = 0; i < PEER_PAGE_BUCKETS; i++)
	{
		struct peer_page_copy **link = &pages->bucket[(begin + i) % PEER_PAGE_BUCKETS];

		while (*link != NULL && (*link)->inner.head.level > 1)
			link = &(*link)->next;
		if (*link != NULL)
		{
			drop_copy(pages, link);
			return true;
		}
	}
	return false;
}

static void
keep_copy(struct peer_client *client, fabric_address address, const struct peer_inner *inner)
{
	struct peer_pages *pages = client->compute->state;
	struct peer_page_copy **link;
	struct peer_page_copy *copy;

	smart_assert(address != 0 && inner->head.level > 0 && inner->head.count > 0);
	peer_cache_work(client);
	copy = *find_copy(pages, address);
	if (copy == NULL)
	{
		while (pages->bytes + PEER_PAGE_BYTES > client->cluster->options->cache_bytes)
		{
			if (!drop_any(pages))
				return;
		}
		copy = malloc(sizeof(*copy));
		if (copy == NULL)
			abort();
		link = &pages->bucket[ycsb_mix(address) % PEER_PAGE_BUCKETS];
		*copy = (struct peer_page_copy){.next = *link, .address = address};
		*link = copy;
		pages->bytes += PEER_PAGE_BYTES;
		smart_assert(pages->bytes <= client->cluster->options->cache_bytes);
	}
	copy->inner = *inner;
}

/* An internal page, from the cache if it may be an old one. */
static smart_status
get_inner(struct peer_client *client, fabric_address address, bool fresh, struct peer_inner *inner)
{
	struct peer_pages *pages = client->compute->state;
	struct peer_page_copy *copy;
	smart_status status;

	smart_assert(address != 0);
	peer_cache_work(client);
	copy = fresh ? NULL : *find_copy(pages, address);
	if (copy != NULL)
	{
		pages->hits++;
		*inner = copy->inner;
		return SMART_OK;
	}
	pages->misses++;
	status = peer_read(client, address, inner, PEER_PAGE_BYTES);
	if (status == SMART_OK)
		keep_copy(client, address, inner);
	return status;
}

/* ---- descent ---- */

/* A page has been split since the cache knew it: READ anew it may cover the key, or its sibling does. */
static smart_status
go_right(struct peer_client *client, uint64_t key, fabric_address above, fabric_address *address)
{
	struct peer_inner *inner = &pages_of(client)->inner.inner;
	smart_status status = get_inner(client, *address, true, inner);

	if (status != SMART_OK || peer_covers(&inner->head, key))
		return status;
	smart_assert(key >= inner->head.low && inner->head.sibling != 0);
	*address = inner->head.sibling;
	return above != 0 ? get_inner(client, above, true, inner) : SMART_OK;
}

/* The page of a level, above the leaves, that covers the key, into the client's inner. */
static smart_status
find_inner(struct peer_client *client, uint64_t key, uint32_t level, fabric_address *address)
{
	struct peer_inner *inner = &pages_of(client)->inner.inner;
	fabric_address above = 0;
	smart_status status;

	smart_assert(level >= 1);
	*address = tree_of(client->cluster)->root;
	for (;;)
	{
		status = get_inner(client, *address, false, inner);
		if (status != SMART_OK)
			return status;
		if (!peer_covers(&inner->head, key))
		{
			status = go_right(client, key, above, address);
			if (status != SMART_OK)
				return status;
			continue;
		}
		smart_assert(inner->head.level >= level);
		if (inner->head.level == level)
			return SMART_OK;
		above = *address;
		*address = inner->child[child_of(inner, key)];
	}
}

/* The page above a leaf that does not cover the key any more. */
smart_status
peer_refresh_above(struct peer_client *client, uint64_t key)
{
	fabric_address above;
	smart_status status = find_inner(client, key, 1, &above);

	return status == SMART_OK ? get_inner(client, above, true, &pages_of(client)->inner.inner) : status;
}

/* The leaf that the cache names for a key; *own: all keys that it may have are of the key's partition. */
smart_status
peer_find_leaf(struct peer_client *client, uint64_t key, fabric_address *leaf, bool *own)
{
	const struct peer_inner *inner = &pages_of(client)->inner.inner;
	fabric_address above;
	smart_status status = find_inner(client, key, 1, &above);

	*own = false;
	if (status == SMART_OK)
	{
		unsigned int place = child_of(inner, key);
		uint64_t end = place + 1 < inner->head.count ? inner->key[place + 1] : inner->head.high;

		smart_assert(inner->head.level == 1);
		smart_assert(inner->key[place] <= key && (end == 0 || key < end));
		*leaf = inner->child[place];
		*own = client->cluster->variant == PEER_PARTITIONED &&
			   !peer_crosses_partitions(client->cluster, inner->key[place], end);
	}
	return status;
}

smart_status
peer_find_leaves(struct peer_client *client, uint64_t key, fabric_address *leaves, unsigned int *count)
{
	const struct peer_inner *inner = &pages_of(client)->inner.inner;
	fabric_address above;
	unsigned int first;
	smart_status status = find_inner(client, key, 1, &above);

	smart_assert(*count > 0);
	if (status != SMART_OK)
		return status;
	first = child_of(inner, key);
	*count = *count < inner->head.count - first ? *count : inner->head.count - first;
	smart_assert(*count > 0 && first + *count <= inner->head.count);
	memcpy(leaves, &inner->child[first], *count * sizeof(*leaves));
	return SMART_OK;
}

/* ---- splits ---- */

static void
insert_child(struct peer_inner *inner, uint64_t key, fabric_address child)
{
	unsigned int place = child_of(inner, key) + 1;

	smart_assert(inner->head.count < PEER_INNER_SPAN);
	smart_assert(inner->key[place - 1] < key);
	smart_assert(place == inner->head.count || key < inner->key[place]);
	memmove(&inner->key[place + 1], &inner->key[place], (inner->head.count - place) * sizeof(uint64_t));
	memmove(&inner->child[place + 1], &inner->child[place], (inner->head.count - place) * sizeof(uint64_t));
	inner->key[place] = key;
	inner->child[place] = child;
	inner->head.count++;
}

/* The upper half of a full internal page becomes a page of its own. */
static void
split_inner(struct peer_inner *inner, struct peer_inner *upper, fabric_address upper_address)
{
	unsigned int half = inner->head.count / 2;

	smart_assert(inner->head.count == PEER_INNER_SPAN);
	memset(upper, 0, PEER_PAGE_BYTES);
	upper->head = inner->head;
	upper->head.low = inner->key[half];
	upper->head.count = inner->head.count - half;
	memcpy(upper->key, &inner->key[half], upper->head.count * sizeof(uint64_t));
	memcpy(upper->child, &inner->child[half], upper->head.count * sizeof(uint64_t));
	inner->head.count = half;
	inner->head.high = upper->head.low;
	smart_assert(inner->head.low < upper->head.low);
	smart_assert(upper->head.high == 0 || upper->head.low < upper->head.high);
	inner->head.sibling = upper_address;
}

/* A root above the old one and its new sibling: one CAS of the word that names it.  *grown: nobody else did that first. */
static smart_status
grow_root(struct peer_client *client, uint64_t key, fabric_address child, uint32_t level, bool *grown)
{
	struct peer_btree *tree = tree_of(client->cluster);
	struct peer_inner *root = &pages_of(client)->other.inner;
	fabric_address address = peer_allocate(client->cluster, PEER_PAGE_BYTES);
	fabric_address old = tree->root;
	uint64_t found = 0;
	smart_status status;

	smart_assert(child != 0 && level == tree->height + 1);
	if (address == 0)
		return SMART_NO_SPACE;
	memset(root, 0, PEER_PAGE_BYTES);
	root->head.level = level;
	root->head.count = 2;
	root->child[0] = old;
	root->key[1] = key;
	root->child[1] = child;
	status = peer_write(client, address, root, PEER_PAGE_BYTES);
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
	struct peer_inner_pages *scratch = pages_of(client);
	struct peer_inner *inner = &scratch->inner.inner;
	struct peer_inner *upper = &scratch->other.inner;
	struct fabric_request requests[3];
	fabric_address address = 0;
	fabric_address upper_address = 0;
	smart_status status = find_inner(client, *key, level, &address);

	smart_assert(level <= tree_of(client->cluster)->height);
	for (;;)
	{
		fabric_address next;

		if (status == SMART_OK)
			status = peer_lock(client, address, NULL, 0);
		if (status == SMART_OK)
			status = peer_read(client, address, inner, PEER_PAGE_BYTES);
		if (status != SMART_OK || peer_covers(&inner->head, *key))
			break;
		next = inner->head.sibling;
		status = peer_write_and_unlock(client, address, requests, 0);
		address = next;
	}
	smart_assert(status != SMART_OK || inner->head.level == level);
	*split = status == SMART_OK && inner->head.count == PEER_INNER_SPAN;
	if (*split)
	{
		upper_address = peer_allocate(client->cluster, PEER_PAGE_BYTES);
		split_inner(inner, upper, upper_address);
	}
	if (status != SMART_OK || (*split && upper_address == 0))
		return status != SMART_OK ? status : SMART_NO_SPACE;
	insert_child(*split && *key >= upper->head.low ? upper : inner, *key, *child);
	if (*split)
	{
		requests[0] = peer_write_of(upper_address, upper, PEER_PAGE_BYTES);
		status = fabric_execute(client->simulated.client.fabric, requests, 1);
		*key = upper->head.low;
		*child = upper_address;
	}
	requests[0] = peer_write_of(address, inner, PEER_PAGE_BYTES);
	keep_copy(client, address, inner);
	return status == SMART_OK ? peer_write_and_unlock(client, address, requests, 1) : status;
}

/* The pages above learn of a new page, up to the first one that has room. */
smart_status
peer_link_page(struct peer_client *client, uint64_t key, fabric_address child, uint32_t level)
{
	bool split = true;
	smart_status status = SMART_OK;

	smart_assert(level >= 1 && child != 0);
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

/* ---- loading ---- */

static void *
new_right(struct peer_loading *loading, uint32_t level, uint64_t low)
{
	fabric_address address = peer_allocate(loading->cluster, level == 0 ? loading->leaf_bytes : PEER_PAGE_BYTES);
	struct peer_head *head;

	smart_assert(level < PEER_HEIGHT_MAX);
	if (address == 0)
	{
		loading->full = true;
		return NULL;
	}
	if (loading->right[level] != 0)
	{
		head = peer_memory(loading->cluster, loading->right[level]);
		smart_assert(head->low < low);
		head->high = low;
		head->sibling = address;
	}
	loading->right[level] = address;
	head = peer_memory(loading->cluster, address);
	*head = (struct peer_head){.low = low, .level = level};
	return head;
}

/* A page with this low fence has been begun, the second one of the level below or a later one. */
static void
load_child(struct peer_loading *loading, uint32_t level, uint64_t key, fabric_address child)
{
	struct peer_inner *inner;

	smart_assert(level < PEER_HEIGHT_MAX);
	smart_assert(level >= 1 && child != 0);
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
	if (inner->head.count >= PEER_INNER_SPAN * PEER_FILL / 100)
	{
		inner = new_right(loading, level, key);
		if (inner == NULL)
			return;
		load_child(loading, level + 1, key, loading->right[level]);
	}
	smart_assert(inner->head.count < PEER_INNER_SPAN);
	smart_assert(inner->head.count == 0 || inner->key[inner->head.count - 1] < key);
	inner->key[inner->head.count] = key;
	inner->child[inner->head.count++] = child;
}

void
peer_loading_begin(struct peer_loading *loading, struct peer_cluster *cluster, uint64_t leaf_bytes)
{
	const struct peer_btree *tree = tree_of(cluster);
	const struct peer_inner *root = peer_memory(cluster, tree->root);

	smart_assert(tree->height == 1 && root->head.level == 1 && root->head.count == 1);
	*loading = (struct peer_loading){.cluster = cluster, .leaf_bytes = leaf_bytes, .height = 1};
	loading->first[0] = loading->right[0] = root->child[0];
	loading->first[1] = loading->right[1] = tree->root;
}

void *
peer_loading_leaf(struct peer_loading *loading, uint64_t low)
{
	void *leaf = new_right(loading, 0, low);

	if (leaf != NULL)
		load_child(loading, 1, low, loading->right[0]);
	return loading->full ? NULL : leaf;
}

void
peer_loading_end(const struct peer_loading *loading)
{
	struct peer_btree *tree = tree_of(loading->cluster);

	smart_assert(!loading->full && loading->height < PEER_HEIGHT_MAX && loading->right[loading->height] != 0);
	tree->root = loading->right[loading->height];
	tree->height = loading->height;
	memcpy(peer_memory(loading->cluster, tree->root_word), &tree->root, sizeof(tree->root));
}

/* ---- opening and closing ---- */

void
peer_btree_open(struct peer_cluster *cluster, uint64_t leaf_bytes)
{
	struct peer_btree *tree = tree_of(cluster);
	struct peer_inner *root;

	tree->root_word = peer_allocate(cluster, sizeof(tree->root));
	tree->root = peer_allocate(cluster, PEER_PAGE_BYTES);
	tree->height = 1;
	root = peer_memory(cluster, tree->root);
	root->head.level = 1;
	root->head.count = 1;
	root->child[0] = peer_allocate(cluster, leaf_bytes);
	smart_assert(tree->root_word != 0 && tree->root != 0 && root->child[0] != 0);
	memcpy(peer_memory(cluster, tree->root_word), &tree->root, sizeof(tree->root));
}

bool
peer_pages_open(struct peer_compute *node)
{
	struct peer_pages *pages = node->state;

	pages->random = ycsb_mix(node->cluster->options->seed) + node->number;
	return true;
}

void
peer_pages_close(struct peer_compute *node)
{
	struct peer_pages *pages = node->state;

	for (uint64_t i = 0; i < PEER_PAGE_BUCKETS; i++)
	{
		while (pages->bucket[i] != NULL)
			drop_copy(pages, &pages->bucket[i]);
	}
}

void
peer_pages_use(struct peer_compute *node, struct ycsb_cache_use *use)
{
	const struct peer_pages *pages = node->state;

	use->hits += pages->hits;
	use->misses += pages->misses;
	use->node_bytes += pages->bytes;
}
