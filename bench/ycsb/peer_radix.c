/*
 * peer_radix.c
 *	  Scans of radix trees.
 */
#include "base/assert.h"
#include "peer_radix.h"

struct scan
{
	struct peer_client *client;
	const struct peer_radix *radix;
	struct peer_radix_scratch *scratch;
	const uint8_t *key;
	size_t length;
	uint64_t wanted;
	unsigned int count; /* of items */
};

/* One that is wholly below the scan's beginning is left out.  False: no room for more. */
static bool
append(const struct scan *scan, struct peer_subtree *items, unsigned int *count, const struct peer_subtree *item)
{
	size_t length = item->known < scan->length ? item->known : scan->length;

	smart_assert(item->known <= YCSB_KEY_MAX && *count <= PEER_RADIX_ITEMS);
	if (memcmp(item->prefix, scan->key, length) < 0)
		return true;
	if (*count == PEER_RADIX_ITEMS)
		return false;
	items[(*count)++] = *item;
	return true;
}

/* The nodes among the first items that so many leaves may be below, in one batch; how many. */
static unsigned int
gather_nodes(struct scan *scan)
{
	struct peer_radix_scratch *scratch = scan->scratch;
	unsigned int nodes = 0;
	uint64_t leaves = 0;

	smart_assert(scan->count <= PEER_RADIX_ITEMS);
	for (unsigned int i = 0; i < scan->count && leaves < scan->wanted && nodes < PEER_RADIX_BATCH; i++)
	{
		uint64_t word = scratch->item[i].word;
		bool is_leaf = scan->radix->is_leaf(word);

		/* A node has two leaves at least. */
		leaves += is_leaf ? 1 : 2;
		if (!is_leaf)
			scratch->request[nodes] =
				(struct fabric_request){.verb = FABRIC_READ,
										.length =
											(uint32_t) scan->radix->bytes(scan->client->cluster, word, scan->length),
										.remote = scan->radix->address(word),
										.local = scratch->node[nodes]};
		nodes += !is_leaf;
	}
	smart_assert(nodes <= scan->count && nodes <= PEER_RADIX_BATCH);
	return nodes;
}

/* READs those of the nodes that the cache does not have, and what they have grown by. */
static smart_status
read_nodes(struct scan *scan, unsigned int nodes, bool fresh)
{
	struct peer_radix_scratch *scratch = scan->scratch;
	struct fabric_request *request = scratch->request;
	bool caches = !fresh && scan->radix->find_copy != NULL;
	unsigned int read = 0;
	smart_status status = SMART_OK;

	smart_assert(nodes > 0 && nodes <= PEER_RADIX_BATCH);
	for (unsigned int i = 0, node = 0; node < nodes && i < scan->count; i++)
	{
		const struct peer_subtree *item = &scratch->item[i];

		if (scan->radix->is_leaf(item->word))
			continue;
		if (!caches || !scan->radix->find_copy(scan->client, item, scratch->node[node]))
			request[read++] = request[node];
		node++;
	}
	smart_assert(read <= nodes);
	peer_cache_work(scan->client);
	if (read > 0)
		status = fabric_execute(scan->client->simulated.client.fabric, request, (int) read);
	for (unsigned int i = 0; i < read && status == SMART_OK && scan->radix->bytes_now != NULL; i++)
	{
		uint64_t now = scan->radix->bytes_now(request[i].local);

		smart_assert(now <= PEER_RADIX_NODE_MAX);
		if (now > request[i].length)
			status = peer_read(scan->client, request[i].remote + request[i].length,
							   (char *) request[i].local + request[i].length, now - request[i].length);
	}
	return status;
}

/* The first nodes are replaced by their children.  False: one of them has moved. */
static bool
replace_nodes(struct scan *scan, unsigned int nodes)
{
	struct peer_radix_scratch *scratch = scan->scratch;
	unsigned int done = 0;
	unsigned int next = 0;
	bool room = true;

	smart_assert(nodes > 0 && nodes <= PEER_RADIX_BATCH);
	for (unsigned int i = 0; i < scan->count && room; i++)
	{
		const struct peer_subtree *item = &scratch->item[i];
		int children;

		if (scan->radix->is_leaf(item->word) || done == nodes)
		{
			room = append(scan, scratch->next, &next, item);
			continue;
		}
		children = scan->radix->children(scratch->node[done++], item, scratch->child);
		if (children < 0)
			return false;
		smart_assert(children <= PEER_RADIX_FANOUT);
		for (int child = 0; child < children && room; child++)
			room = append(scan, scratch->next, &next, &scratch->child[child]);
	}
	smart_assert(done <= nodes && next <= PEER_RADIX_ITEMS);
	memcpy(scratch->item, scratch->next, next * sizeof(scratch->item[0]));
	scan->count = next;
	return true;
}

/* The leaves in order, as items; *moved: what the cache has, or what has changed under way, does not lead there. */
static smart_status
find_leaves(struct scan *scan, uint64_t root, bool fresh, bool *moved)
{
	smart_status status = SMART_OK;
	unsigned int nodes;

	scan->count = 1;
	scan->scratch->item[0] = (struct peer_subtree){.word = root};
	*moved = false;
	while (status == SMART_OK && !*moved && (nodes = gather_nodes(scan)) > 0)
	{
		status = read_nodes(scan, nodes, fresh);
		if (status == SMART_OK)
			*moved = !replace_nodes(scan, nodes);
	}
	return status;
}

/* READs leaves in batches; a key below the beginning is not counted. */
static smart_status
read_leaves(struct scan *scan, uint64_t *seen)
{
	struct peer_radix_scratch *scratch = scan->scratch;
	smart_status status = SMART_OK;
	unsigned int number;

	smart_assert(*seen == 0 && scan->count <= PEER_RADIX_ITEMS);
	for (unsigned int first = 0; first < scan->count && *seen < scan->wanted && status == SMART_OK; first += number)
	{
		number = scan->count - first < PEER_RADIX_BATCH ? scan->count - first : PEER_RADIX_BATCH;
		number = number < scan->wanted - *seen ? number : (unsigned int) (scan->wanted - *seen);
		for (unsigned int i = 0; i < number; i++)
		{
			uint64_t word = scratch->item[first + i].word;

			/* A node that is left stands behind all that was wanted. */
			if (!scan->radix->is_leaf(word))
				number = i;
			else
				scratch->request[i] =
					(struct fabric_request){.verb = FABRIC_READ,
											.length = (uint32_t) scan->radix->bytes(scan->client->cluster, word,
																					scan->length),
											.remote = scan->radix->address(word),
											.local = scratch->leaf[i]};
		}
		if (number == 0)
			return SMART_OK;
		status = fabric_execute(scan->client->simulated.client.fabric, scratch->request, (int) number);
		for (unsigned int i = 0; i < number && status == SMART_OK; i++)
			*seen += memcmp(scan->radix->leaf_key(scratch->leaf[i]), scan->key, scan->length) >= 0;
	}
	smart_assert(*seen <= scan->wanted);
	return status;
}

smart_status
peer_radix_scan(struct peer_client *client, const struct peer_radix *radix, struct peer_radix_scratch *scratch,
				uint64_t root, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct scan scan = {
		.client = client,
		.radix = radix,
		.scratch = scratch,
		.key = key,
		.length = length,
		.wanted = wanted,
	};
	bool moved;
	smart_status status = find_leaves(&scan, root, false, &moved);

	smart_assert(length <= YCSB_KEY_MAX && wanted > 0);
	*seen = 0;
	while (status == SMART_OK && moved)
		status = find_leaves(&scan, root, true, &moved);
	return status == SMART_OK ? read_leaves(&scan, seen) : status;
}
