/*
 * peer_dex.c
 *	  A model of DEX (Lu et al., VLDB'24): a B+ tree whose pages compute nodes
 *	  cache and own.
 *
 * Layout (3, 8.1): pages of 1 KB with fences, sorted; all pages below one of level 3 lie on
 * one memory node.
 *
 * Partitions (4): each compute node owns an equal range of keys, and all that is below its
 * leaves' pages alone; pages that are shared, near the root, are changed under an RDMA lock and
 * READ with its word before and after.  A copy of one is old if a child's fences deny the key:
 * then the shared pages on the way are READ anew.
 *
 * The cache (5): pages of all levels.  Who needs a page picks two at random, or hot children
 * of them (path-aware), WRITES what is dirty and puts them into the cooling map, of a tenth of
 * the cache, in buckets of six; what falls out of a bucket, or else the oldest of any, goes.  A
 * cooling page that is used is hot again.  Pages above the leaves are always admitted, a leaf
 * one time in ten; one that is not goes at once, WRITTEN if dirty.  One client at a time fetches a page.
 *
 * Offloading (6): where a page of level 1 to 3 that is not shared is missing, a memory node
 * walks on if a moving average says that this takes less time; one time in a hundred the other
 * way.  A missing leaf is READ, and so is everything while the cache has room: table 2 has fewer
 * messages than one leaf in a hundred would make, and what is offloaded is not admitted.
 *
 * dex-onesided offloads nothing, and dex-eager admits all leaves besides (8.3).
 *
 * A client works on the partition of its key, with the owner's cache and its own node's cores
 * and NIC: how requests get to owners is no part of the paper.
 *
 * Left out: deletion; repartitioning; conflicts of optimistic locks: a write takes its page's
 * lock, a read takes none.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "keys.h"
#include "peer.h"
#include "random.h"
#include "sorted.h"

#define PAGE_BYTES      1024
#define SPAN            60 /* at least YCSB_DEX_NODES_MAX */
#define FILL            69 /* percent of a page after a load, as after inserts in random order */
#define HEIGHT_MAX      10
#define TOGETHER        3   /* level of the pages below which all is on one memory node */
#define SAMPLED         2   /* pages picked for cooling */
#define COOLING_SLOTS   6   /* of a bucket */
#define COOLING_SHARE   10  /* percent of the cache */
#define ADMITTED        10  /* percent of leaves */
#define CONTRARY        100 /* one decision of so many is the other way round */
#define SEARCH_NS       400 /* of a page in the cache: 2.3 has it as T_c */
#define CACHE_FACTOR    1.2 /* c of 6.1, "> 1" */
#define AVERAGE_OF      50  /* samples, 6.1 */
#define MEMORY_LEVEL_NS 200 /* of a memory node's core for a page: assumed */
#define CALL_BYTES      32
#define IO_PAUSE_NS     200
#define PAGE_LOCKS      4096
#define FRAMES_MORE     65536 /* pages in use, and new ones, for which no room was made */

struct page
{
	uint64_t lock; /* of shared pages */
	uint64_t low;  /* keys from here .. */
	uint64_t high; /* .. to below there; 0: no end */
	uint32_t count;
	uint32_t level; /* 0: a leaf */
	uint64_t key[SPAN];
	uint64_t word[SPAN]; /* values, or children */
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "a page holds its entries");

struct tree
{
	fabric_address root;
};

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

/* ---- pages ---- */

static bool
covers(const struct page *page, uint64_t key)
{
	return key >= page->low && (page->high == 0 || key < page->high);
}

/* The last place whose key is not above this one; -1: there is none. */
static int
find_place(const struct page *page, uint64_t key)
{
	int low = -1;
	int high = (int) page->count;

	smart_assert(page->count <= SPAN);
	while (high - low > 1)
	{
		int middle = (low + high) / 2;

		if (page->key[middle] <= key)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static bool
has_key(const struct page *leaf, uint64_t key)
{
	int place = find_place(leaf, key);

	return place >= 0 && leaf->key[place] == key;
}

/* The child for a key; the first one's key is the page's low fence. */
static fabric_address
child_of(const struct page *page, uint64_t key)
{
	int place = find_place(page, key);

	smart_assert(place >= 0);
	smart_assert(page->level > 0);
	return page->word[place];
}

/* Where the range of a place ends; 0: nowhere. */
static uint64_t
place_end(const struct page *page, int place)
{
	smart_assert(place >= 0 && place < (int) page->count);
	return place + 1 < (int) page->count ? page->key[place + 1] : page->high;
}

static void
put_entry(struct page *page, uint64_t key, uint64_t word)
{
	int place = find_place(page, key);

	if (place >= 0 && page->key[place] == key)
	{
		page->word[place] = word;
		return;
	}
	smart_assert(page->count < SPAN);
	place++;
	memmove(&page->key[place + 1], &page->key[place], (page->count - (unsigned int) place) * sizeof(uint64_t));
	memmove(&page->word[place + 1], &page->word[place], (page->count - (unsigned int) place) * sizeof(uint64_t));
	page->key[place] = key;
	page->word[place] = word;
	page->count++;
	smart_assert(place == 0 || page->key[place - 1] < key);
	smart_assert(place + 1 == (int) page->count || key < page->key[place + 1]);
}

/* The upper half becomes a page of its own. */
static void
split_page(struct page *page, struct page *upper)
{
	unsigned int half = page->count / 2;

	smart_assert(page->count == SPAN);
	memset(upper, 0, sizeof(*upper));
	upper->level = page->level;
	upper->low = page->key[half];
	upper->high = page->high;
	upper->count = page->count - half;
	memcpy(upper->key, &page->key[half], upper->count * sizeof(uint64_t));
	memcpy(upper->word, &page->word[half], upper->count * sizeof(uint64_t));
	page->count = half;
	page->high = upper->low;
	smart_assert(page->low < page->high && (upper->high == 0 || upper->low < upper->high));
}

/* On the memory node of a page below the same one of level TOGETHER, or on the next one. */
static fabric_address
allocate_page(struct peer_cluster *cluster, uint32_t level, fabric_address beside)
{
	if (level >= TOGETHER || beside == 0)
		return peer_allocate(cluster, PAGE_BYTES);
	return peer_allocate_at(cluster, fabric_node(beside), PAGE_BYTES);
}

/* ---- partitions ---- */

static bool
is_shared(const struct peer_cluster *cluster, const struct page *page)
{
	return peer_crosses_partitions(cluster, page->low, page->high);
}

/* ---- the cache of a compute node ---- */

enum state
{
	FETCHED, /* or in the hands of one client, and not admitted */
	HOT,
	COOLING
};

struct frame
{
	struct frame *next_in_bucket;
	fabric_address address;
	enum state state;
	bool admitted;
	bool dirty;
	unsigned int users;
	uint64_t number; /* among those that may be picked */
	union
	{
		struct page page;
		uint8_t bytes[PAGE_BYTES];
	} content;
};

struct cooling_bucket
{
	struct frame *slot[COOLING_SLOTS]; /* the oldest first */
	unsigned int count;
};

struct compute
{
	struct frame **bucket;
	uint64_t buckets;     /* a power of two */
	struct frame **frame; /* that are admitted */
	uint64_t frames;
	uint64_t frames_max;
	struct cooling_bucket *cooling;
	uint64_t cooling_buckets;
	uint64_t random;
	uint64_t hits;
	uint64_t misses;
	double read_ns; /* moving averages */
	double call_ns;
	struct sim_timed_lock structure; /* one client changes it at a time */
	struct sim_timed_lock lock[PAGE_LOCKS];
};

static struct frame **
find_frame(struct compute *compute, fabric_address address)
{
	struct frame **link = &compute->bucket[ycsb_mix(address) & (compute->buckets - 1)];

	while (*link != NULL && (*link)->address != address)
		link = &(*link)->next_in_bucket;
	return link;
}

static struct frame *
add_frame(struct compute *compute, fabric_address address)
{
	struct frame **bucket = &compute->bucket[ycsb_mix(address) & (compute->buckets - 1)];
	struct frame *frame = calloc(1, sizeof(*frame));

	smart_assert(address != 0 && *find_frame(compute, address) == NULL);
	if (frame == NULL)
		abort();
	frame->address = address;
	frame->next_in_bucket = *bucket;
	*bucket = frame;
	return frame;
}

static struct cooling_bucket *
cooling_bucket_of(struct compute *compute, const struct frame *frame)
{
	return &compute->cooling[ycsb_mix(frame->address + 1) % compute->cooling_buckets];
}

static void
leave_cooling(struct compute *compute, struct frame *frame)
{
	struct cooling_bucket *bucket = cooling_bucket_of(compute, frame);
	unsigned int slot = 0;

	smart_assert(frame->state == COOLING && bucket->count > 0 && bucket->count <= COOLING_SLOTS);
	while (bucket->slot[slot] != frame)
		slot++;
	smart_assert(slot < bucket->count);
	bucket->count--;
	memmove(&bucket->slot[slot], &bucket->slot[slot + 1], (bucket->count - slot) * sizeof(frame));
	frame->state = HOT;
}

static void
drop_frame(struct compute *compute, struct frame *frame)
{
	smart_assert(frame->users == 0 && !frame->dirty);
	smart_assert(!frame->admitted || (frame->number < compute->frames && compute->frame[frame->number] == frame));
	if (frame->state == COOLING)
		leave_cooling(compute, frame);
	if (frame->admitted)
	{
		compute->frame[frame->number] = compute->frame[--compute->frames];
		compute->frame[frame->number]->number = frame->number;
	}
	*find_frame(compute, frame->address) = frame->next_in_bucket;
	free(frame);
}

/* A hot page without hot children, from one on downwards: what is above is wanted more (5.3). */
static struct frame *
delegate(struct compute *compute, struct frame *frame)
{
	smart_assert(frame->state == HOT && frame->admitted);
	while (frame->content.page.level > 0)
	{
		struct frame *child = NULL;
		unsigned int first = (unsigned int) ycsb_random_below(&compute->random, frame->content.page.count);

		for (unsigned int i = 0; i < frame->content.page.count && child == NULL; i++)
		{
			child = *find_frame(compute, frame->content.page.word[(first + i) % frame->content.page.count]);
			if (child != NULL && (child->state != HOT || !child->admitted))
				child = NULL;
		}
		if (child == NULL)
			break;
		frame = child;
	}
	return frame;
}

static smart_status
write_back(struct peer_client *client, struct frame *frame)
{
	smart_assert(frame->dirty && frame->users > 0);
	frame->dirty = false;
	return peer_write(client, frame->address, &frame->content, PAGE_BYTES);
}

/* A page picked at random, or one below it, goes to the cooling map; what falls out of its bucket leaves the cache. */
static smart_status
cool_one(struct peer_client *client, struct compute *compute)
{
	struct frame *frame = compute->frame[ycsb_random_below(&compute->random, compute->frames)];
	struct cooling_bucket *bucket;
	smart_status status = SMART_OK;

	if (frame->state != HOT)
		return SMART_OK;
	frame = delegate(compute, frame);
	if (frame->users > 0)
		return SMART_OK;
	frame->users++;
	peer_cache_work(client);
	if (frame->dirty)
		status = write_back(client, frame);
	frame->users--;
	/* Somebody may have used it meanwhile, or cooled it as well, or fetched a child: what is below may be newer there. */
	if (status != SMART_OK || frame->users > 0 || frame->dirty || frame->state != HOT ||
		delegate(compute, frame) != frame)
		return status;
	bucket = cooling_bucket_of(compute, frame);
	if (bucket->count == COOLING_SLOTS)
		drop_frame(compute, bucket->slot[0]);
	smart_assert(bucket->count < COOLING_SLOTS);
	bucket->slot[bucket->count++] = frame;
	frame->state = COOLING;
	return SMART_OK;
}

/* Before a page is admitted. */
static smart_status
make_room(struct peer_client *client, struct compute *compute)
{
	smart_status status = SMART_OK;

	if (compute->frames < compute->frames_max)
		return SMART_OK;
	for (int i = 0; i < SAMPLED && status == SMART_OK; i++)
		status = cool_one(client, compute);
	peer_cache_work(client);
	for (uint64_t i = 0, begin = ycsb_random(&compute->random);
		 compute->frames >= compute->frames_max && i < compute->cooling_buckets; i++)
	{
		struct cooling_bucket *bucket = &compute->cooling[(begin + i) % compute->cooling_buckets];

		if (bucket->count > 0)
			drop_frame(compute, bucket->slot[0]);
	}
	return status;
}

/* ---- using pages ---- */

/* A client's way to a leaf. */
struct way
{
	struct compute *compute;
	struct frame *frame[HEIGHT_MAX]; /* in use, the root first */
	unsigned int frames;
	bool offloaded;
	bool found; /* by the memory node */
	smart_status status;
};

/* READs a page; a shared one with its lock word before and after. */
static smart_status
read_page(struct peer_client *client, struct frame *frame, bool shared)
{
	uint64_t word = 0;
	smart_status status = SMART_OK;

	smart_assert(frame->users > 0);
	if (shared)
		status = peer_read(client, frame->address, &word, sizeof(word));
	if (status == SMART_OK)
		status = peer_read(client, frame->address, &frame->content, PAGE_BYTES);
	if (status == SMART_OK && shared)
		status = peer_read(client, frame->address, &word, sizeof(word));
	frame->content.page.lock = 0;
	return status;
}

static smart_status
release(struct peer_client *client, struct compute *compute, struct frame *frame)
{
	smart_status status = SMART_OK;

	smart_assert(frame->users > 0);
	if (!frame->admitted && frame->dirty)
		status = write_back(client, frame);
	frame->users--;
	if (!frame->admitted && frame->users == 0)
		drop_frame(compute, frame);
	return status;
}

static void
leave(struct peer_client *client, struct way *way)
{
	while (way->frames > 0)
	{
		smart_status status = release(client, way->compute, way->frame[--way->frames]);

		way->status = way->status == SMART_OK ? status : way->status;
	}
}

static void
add_sample(double *average, uint64_t ns)
{
	*average += ((double) ns - *average) / AVERAGE_OF;
}

static void
admit(struct compute *compute, struct frame *frame)
{
	smart_assert(compute->frames < compute->frames_max + FRAMES_MORE);
	smart_assert(frame->state == FETCHED && !frame->admitted);
	frame->state = HOT;
	frame->admitted = true;
	frame->number = compute->frames;
	compute->frame[compute->frames++] = frame;
}

/* The page is not in the cache, and its frame, which nobody else may use, is new. */
static smart_status
fetch(struct peer_client *client, struct compute *compute, struct frame *frame, uint32_t level, bool shared)
{
	bool admits =
		level > 0 || client->cluster->variant == PEER_EAGER || ycsb_random_below(&compute->random, 100) < ADMITTED;
	uint64_t begin_ns;
	smart_status status = SMART_OK;

	smart_assert(frame->state == FETCHED && frame->users == 0);
	compute->misses++;
	frame->users = 1;
	if (admits)
		status = make_room(client, compute);
	begin_ns = sim_timed_now_ns(&client->cluster->timed);
	if (status == SMART_OK)
		status = read_page(client, frame, shared);
	if (!shared)
		add_sample(&compute->read_ns, sim_timed_now_ns(&client->cluster->timed) - begin_ns);
	if (!admits || status != SMART_OK)
		return status;
	peer_cache_work(client);
	admit(compute, frame);
	return SMART_OK;
}

/* ---- offloading ---- */

struct call
{
	struct peer_cluster *cluster;
	fabric_address page;
	uint64_t key;
	uint64_t value;
	bool updates;
	bool found;
	fabric_address leaf;
};

/* What a memory node does for a client, in its own memory. */
static void
serve(void *argument)
{
	struct call *call = argument;
	struct page *page = peer_memory(call->cluster, call->page);

	call->leaf = call->page;
	while (page->level > 0)
	{
		call->leaf = child_of(page, call->key);
		page = peer_memory(call->cluster, call->leaf);
	}
	call->found = has_key(page, call->key);
	if (call->found && call->updates)
		page->word[find_place(page, call->key)] = call->value;
}

static bool
deserves_call(struct peer_client *client, struct compute *compute, uint32_t level)
{
	double reads_ns = (level + 1) * (compute->read_ns + SEARCH_NS) * CACHE_FACTOR;
	bool contrary = ycsb_random_below(&compute->random, CONTRARY) == 0;

	if (client->cluster->variant != PEER_WHOLE || level == 0 || level > TOGETHER ||
		compute->frames < compute->frames_max)
		return false;
	return (compute->call_ns < reads_ns) != contrary;
}

/* The frame keeps others away from what is below; a copy of the leaf, if there is one, is an old one then. */
static void
call_memory(struct peer_client *client, struct way *way, struct frame *frame, uint32_t level, struct call *call)
{
	struct sim_timed_message message = {
		.node = fabric_node(frame->address),
		.bytes = CALL_BYTES,
		.answer_bytes = CALL_BYTES,
		.work_ns = (level + 1) * (uint64_t) MEMORY_LEVEL_NS,
		.serve = serve,
		.argument = call,
	};
	uint64_t begin_ns = sim_timed_now_ns(&client->cluster->timed);
	struct frame *leaf;

	smart_assert(frame->state == FETCHED && frame->users == 0);
	smart_assert(level >= 1 && level <= TOGETHER);
	call->cluster = client->cluster;
	call->page = frame->address;
	frame->users = 1;
	sim_timed_call(&client->simulated.timed, &message);
	add_sample(&way->compute->call_ns, sim_timed_now_ns(&client->cluster->timed) - begin_ns);
	leaf = *find_frame(way->compute, call->leaf);
	if (leaf != NULL && leaf != frame && leaf->state == COOLING && leaf->users == 0 && call->updates)
		drop_frame(way->compute, leaf);
	frame->users = 0;
	drop_frame(way->compute, frame);
	way->offloaded = true;
	way->found = call->found;
}

/* ---- descent ---- */

/*
 * Takes the page at an address into use as the way's next one; false: it was offloaded, or not to be had.  Whoever
 * fetches it first is waited for.
 */
static bool
use_page(struct peer_client *client, struct way *way, fabric_address address, uint32_t level, bool shared,
		 struct call *call)
{
	struct compute *compute = way->compute;
	struct frame *frame;

	smart_assert(way->frames < HEIGHT_MAX);
	for (;;)
	{
		peer_cache_work(client);
		frame = *find_frame(compute, address);
		if (frame == NULL || frame->state != FETCHED)
			break;
		sim_timed_pass(&client->simulated.timed, IO_PAUSE_NS);
	}
	if (frame == NULL)
	{
		frame = add_frame(compute, address);
		if (call != NULL && !shared && deserves_call(client, compute, level))
		{
			call_memory(client, way, frame, level, call);
			return false;
		}
		way->status = fetch(client, compute, frame, level, shared);
	}
	else
	{
		compute->hits++;
		if (frame->state == COOLING)
			leave_cooling(compute, frame);
		frame->users++;
	}
	smart_assert(frame->users > 0);
	way->frame[way->frames++] = frame;
	return way->status == SMART_OK;
}

/*
 * From the root to the key's leaf, which is the way's last frame; false: offloaded, or failed.  A child whose fences
 * deny the key: the copy of a shared page above is old, or a page has been split since it was looked at.
 */
static bool
descend(struct peer_client *client, struct way *way, uint64_t key, struct call *call)
{
	const struct tree *tree = tree_of(client->cluster);
	bool fresh = false;

	*way = (struct way){.compute = client->cluster->compute[peer_partition_of(client->cluster, key)].state};
	for (;;)
	{
		fabric_address address = tree->root;
		const struct page *root = peer_memory(client->cluster, address);
		uint32_t level = root->level;
		bool shared = is_shared(client->cluster, root);

		while (use_page(client, way, address, level, shared, call))
		{
			struct frame *frame = way->frame[way->frames - 1];
			struct page *page = &frame->content.page;
			int place;

			if (fresh && shared)
				way->status = read_page(client, frame, true);
			sim_timed_compute(&client->simulated.timed, client->cluster->options->model.cache_ns);
			if (way->status != SMART_OK || !covers(page, key))
				break;
			smart_assert(page->level == level);
			if (page->level == 0)
				return true;
			place = find_place(page, key);
			smart_assert(place >= 0);
			address = page->word[place];
			level = page->level - 1;
			shared = peer_crosses_partitions(client->cluster, page->key[place], place_end(page, place));
		}
		leave(client, way);
		if (way->offloaded || way->status != SMART_OK)
			return false;
		fresh = true;
	}
}

static struct page *
leaf_of(const struct way *way)
{
	smart_assert(way->frames > 0 && way->frame[way->frames - 1]->content.page.level == 0);
	return &way->frame[way->frames - 1]->content.page;
}

static uint64_t
key_of(const uint8_t *bytes)
{
	return smart_load_be64(bytes);
}

static smart_status
dex_lookup(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t key = key_of(bytes);
	struct call call = {.key = key};
	struct way way;

	smart_assert(length == YCSB_INTEGER_BYTES);
	if (!descend(client, &way, key, &call))
	{
		*found = way.found;
		return way.status;
	}
	*found = has_key(leaf_of(&way), key);
	leave(client, &way);
	return way.status;
}

/* ---- writes ---- */

/* Into the leaf at the way's end, under its lock.  False: it is full, or was split before the lock was there. */
static bool
write_entry(struct peer_client *client, struct way *way, uint64_t key, uint64_t value, bool *added)
{
	struct frame *frame = way->frame[way->frames - 1];
	struct page *leaf = &frame->content.page;
	struct sim_timed_lock *lock = &way->compute->lock[(frame->address >> 10) % PAGE_LOCKS];
	bool done;

	smart_assert(leaf->level == 0 && frame->users > 0);
	sim_timed_acquire(&client->simulated.timed, lock);
	sim_timed_compute(&client->simulated.timed, client->cluster->options->model.lock_ns);
	*added = covers(leaf, key) && !has_key(leaf, key);
	done = covers(leaf, key) && (!*added || leaf->count < SPAN);
	if (done)
	{
		put_entry(leaf, key, value);
		frame->dirty = true;
	}
	sim_timed_release(&client->simulated.timed, lock);
	return done;
}

static smart_status
dex_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t key = key_of(entry);
	uint64_t value = peer_value_of(entry, key_length, length);
	struct call call = {.key = key, .value = value, .updates = true};
	struct way way;
	bool added = false;
	bool done = false;

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	while (!done && descend(client, &way, key, &call))
	{
		done = write_entry(client, &way, key, value, &added);
		leave(client, &way);
	}
	if (way.status == SMART_OK && (added || (way.offloaded && !way.found)))
		return SMART_CORRUPT;
	return way.status;
}

/* Copies of shared pages under change: others may READ a cached one anew meanwhile. */
struct scratch
{
	struct page above;
	struct page page;
	struct page upper; /* of a split */
};

/* A page to be changed: a shared one is locked in its memory node, and READ behind that. */
static smart_status
lock_page(struct peer_client *client, struct frame *frame, bool shared, struct page *copy, struct page **page)
{
	struct fabric_request requests[2] = {
		{.verb = FABRIC_CAS, .remote = frame->address, .operand = client->simulated.client.number + 1},
		{.verb = FABRIC_READ, .length = sizeof(*copy), .remote = frame->address, .local = copy},
	};
	smart_status status;

	smart_assert(frame->users > 0);
	*page = shared ? copy : &frame->content.page;
	if (!shared)
		return SMART_OK;
	do
		status = fabric_execute(client->simulated.client.fabric, requests, 2);
	while (status == SMART_OK && requests[0].result != 0);
	copy->lock = 0;
	return status;
}

/* Where the page belongs to one compute node, it is WRITTEN when it leaves the cache. */
static smart_status
unlock_page(struct peer_client *client, struct frame *frame, struct page *page, bool changed)
{
	static const uint64_t unlocked = 0;
	smart_status status;

	smart_assert(frame->users > 0 && page->lock == 0);
	if (page == &frame->content.page)
	{
		frame->dirty |= changed;
		return SMART_OK;
	}
	status = changed ? peer_write(client, frame->address, page, sizeof(*page))
					 : peer_write(client, frame->address, &unlocked, sizeof(unlocked));
	frame->content.page = *page;
	return status;
}

/* The pages below may be newer in its owner's cache than in memory: what is above them has to be there, too (5.3). */
static void
keep_upper(struct peer_cluster *cluster, const struct page *upper, fabric_address address)
{
	struct compute *compute = cluster->compute[peer_partition_of(cluster, upper->low)].state;
	struct frame *frame = add_frame(compute, address);

	smart_assert(upper->level > 0 && !is_shared(cluster, upper));
	frame->content.page = *upper;
	admit(compute, frame);
}

/* The new page is in memory at once, and takes its time afterwards: nobody READs it before. */
static smart_status
split_below(struct peer_client *client, struct page *above, struct page *page, fabric_address beside)
{
	fabric_address address = allocate_page(client->cluster, page->level, beside);
	struct page *upper = &((struct scratch *) client->state)->upper;

	smart_assert(above->level == page->level + 1);
	smart_assert(above->count < SPAN && page->count == SPAN);
	if (address == 0)
		return SMART_NO_SPACE;
	split_page(page, upper);
	memcpy(peer_memory(client->cluster, address), upper, sizeof(*upper));
	put_entry(above, upper->low, address);
	if (upper->level > 0 && !is_shared(client->cluster, upper))
		keep_upper(client->cluster, upper, address);
	return peer_write(client, address, upper, sizeof(*upper));
}

/* A page of the way that is full, below one that is not; *done: nothing has come between. */
static smart_status
split_place(struct peer_client *client, struct way *way, unsigned int place, bool *done)
{
	struct scratch *scratch = client->state;
	struct frame *frame = way->frame[place];
	struct page *above;
	struct page *page;
	smart_status status =
		lock_page(client, way->frame[place - 1], is_shared(client->cluster, &way->frame[place - 1]->content.page),
				  &scratch->above, &above);

	smart_assert(place > 0 && place < way->frames);
	if (status == SMART_OK)
		status = lock_page(client, frame, is_shared(client->cluster, &frame->content.page), &scratch->page, &page);
	if (status != SMART_OK)
		return status;
	*done = above->count < SPAN && page->count == SPAN && covers(above, page->low) &&
			child_of(above, page->low) == frame->address;
	if (*done)
		status = split_below(client, above, page, frame->address);
	if (status == SMART_OK)
		status = unlock_page(client, frame, page, *done);
	if (status == SMART_OK)
		status = unlock_page(client, way->frame[place - 1], above, *done);
	return status;
}

/* A root above the old one, which is full. */
static smart_status
grow_root(struct peer_client *client, const struct way *way)
{
	struct tree *tree = tree_of(client->cluster);
	const struct page *old = &way->frame[0]->content.page;
	fabric_address address = allocate_page(client->cluster, old->level + 1, 0);
	struct page root;

	smart_assert(way->frames > 0 && old->count == SPAN);
	if (address == 0)
		return SMART_NO_SPACE;
	/* Of clients of several compute nodes the first one does it. */
	if (tree->root != way->frame[0]->address)
		return SMART_OK;
	root = (struct page){.level = old->level + 1, .count = 1, .word = {tree->root}};
	memcpy(peer_memory(client->cluster, address), &root, sizeof(root));
	tree->root = address;
	if (!is_shared(client->cluster, &root))
		keep_upper(client->cluster, &root, address);
	return peer_write(client, address, &root, sizeof(root));
}

/* Full pages on the way to a key are split, from above (7, insert). */
static smart_status
make_space(struct peer_client *client, uint64_t key)
{
	struct way way;
	bool whole = false;

	while (!whole && descend(client, &way, key, NULL))
	{
		whole = true;
		for (unsigned int place = 0; place < way.frames && whole && way.status == SMART_OK; place++)
		{
			if (way.frame[place]->content.page.count < SPAN)
				continue;
			whole = false;
			if (place == 0)
				way.status = grow_root(client, &way);
			else
			{
				bool done;

				way.status = split_place(client, &way, place, &done);
			}
		}
		leave(client, &way);
	}
	return way.status;
}

static smart_status
dex_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t key = key_of(entry);
	uint64_t value = peer_value_of(entry, key_length, length);
	struct way way;
	bool done = false;

	smart_assert(key_length == YCSB_INTEGER_BYTES);
	while (!done && descend(client, &way, key, NULL))
	{
		bool full;

		done = write_entry(client, &way, key, value, added);
		full = !done && leaf_of(&way)->count == SPAN;
		leave(client, &way);
		if (!full || way.status != SMART_OK)
			continue;
		sim_timed_acquire(&client->simulated.timed, &way.compute->structure);
		way.status = make_space(client, key);
		sim_timed_release(&client->simulated.timed, &way.compute->structure);
		if (way.status != SMART_OK)
			break;
	}
	return way.status;
}

/* ---- scan ---- */

/* Lookups of one leaf after the other (7, range query). */
static smart_status
dex_scan(struct ycsb_client *ycsb, const uint8_t *bytes, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);
	uint64_t next = key_of(bytes);
	struct way way = {.status = SMART_OK};

	smart_assert(length == YCSB_INTEGER_BYTES);
	*seen = 0;
	do
	{
		const struct page *leaf;
		int place;

		if (!descend(client, &way, next, NULL))
			return way.status;
		leaf = leaf_of(&way);
		place = find_place(leaf, next);
		if (place < 0 || leaf->key[place] < next)
			place++;
		smart_assert((unsigned int) place <= leaf->count);
		*seen += leaf->count - (unsigned int) place;
		next = leaf->high;
		leave(client, &way);
	} while (way.status == SMART_OK && *seen < wanted && next != 0);
	*seen = *seen < wanted ? *seen : wanted;
	return way.status;
}

/* ---- load ---- */

/* The rightmost page of each level, which is being filled. */
struct loading
{
	struct peer_cluster *cluster;
	fabric_address right[HEIGHT_MAX];
	uint32_t height;
	bool full; /* the memory nodes are */
};

static struct page *
right_of(const struct loading *loading, uint32_t level)
{
	smart_assert(level <= loading->height);
	return peer_memory(loading->cluster, loading->right[level]);
}

/* An entry of a level; a page that has as many as it should gets a right neighbour. */
static void
load_entry(struct loading *loading, uint32_t level, uint64_t key, uint64_t word, bool breaks)
{
	struct page *page = right_of(loading, level);
	fabric_address address;
	struct page *next;

	if (page->count > 0 && (page->count >= SPAN * FILL / 100 || breaks))
	{
		/* Within a page of level TOGETHER its first descendant's memory node. */
		address =
			level < TOGETHER && !(loading->height > level && right_of(loading, level + 1)->count >= SPAN * FILL / 100)
				? peer_allocate_at(loading->cluster, fabric_node(loading->right[level]), PAGE_BYTES)
				: peer_allocate(loading->cluster, PAGE_BYTES);
		if (address == 0)
		{
			loading->full = true;
			return;
		}
		next = peer_memory(loading->cluster, address);
		*next = (struct page){.low = key, .level = level};
		page->high = key;
		if (level == loading->height)
		{
			fabric_address root = peer_allocate(loading->cluster, PAGE_BYTES);

			smart_assert(level + 1 < HEIGHT_MAX);
			loading->right[++loading->height] = root;
			*right_of(loading, level + 1) =
				(struct page){.level = level + 1, .count = 1, .word = {loading->right[level]}};
		}
		loading->right[level] = address;
		load_entry(loading, level + 1, key, address, false);
		page = next;
	}
	smart_assert(page->count < SPAN);
	smart_assert(page->count == 0 || page->key[page->count - 1] < key);
	page->key[page->count] = page->count == 0 && level > 0 ? page->low : key;
	page->word[page->count++] = word;
}

/* Leaves end where partitions do. */
static smart_status
load_record(void *argument, const uint8_t *bytes, size_t length, uint64_t record)
{
	struct loading *loading = argument;
	const struct page *leaf = right_of(loading, 0);
	uint64_t key = key_of(bytes);
	unsigned int partition = peer_partition_of(loading->cluster, key);
	bool breaks = leaf->count > 0 && peer_partition_of(loading->cluster, leaf->key[leaf->count - 1]) != partition;

	smart_assert(length == YCSB_INTEGER_BYTES);
	load_entry(loading, 0, key, record, breaks);
	return loading->full ? SMART_NO_SPACE : SMART_OK;
}

static smart_status
dex_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_cluster *cluster = peer_client_of(ycsb)->cluster;
	struct loading loading = {.cluster = cluster};
	smart_status status;

	loading.right[0] = peer_allocate(cluster, PAGE_BYTES);
	status = ycsb_sorted(options->key_type, options->keys, ycsb->env, load_record, &loading);
	if (status == SMART_OK)
		tree_of(cluster)->root = loading.right[loading.height];
	return status;
}

/* ---- opening and closing ---- */

/* A root with an empty leaf for each partition. */
static bool
open_tree(struct peer_cluster *cluster)
{
	struct tree *tree = tree_of(cluster);
	unsigned int partitions = cluster->options->compute_nodes;
	uint64_t share = peer_partition_keys(cluster);
	struct page *root;

	tree->root = allocate_page(cluster, 1, 0);
	root = peer_memory(cluster, tree->root);
	smart_assert(partitions <= SPAN);
	*root = (struct page){.level = 1, .count = partitions};
	for (unsigned int i = 0; i < partitions; i++)
	{
		root->key[i] = i * share;
		root->word[i] = allocate_page(cluster, 0, tree->root);
		*(struct page *) peer_memory(cluster, root->word[i]) = (struct page){
			.low = root->key[i],
			.high = i + 1 < partitions ? (i + 1) * share : 0,
		};
	}
	return true;
}

static bool
open_compute(struct peer_compute *node)
{
	struct compute *compute = node->state;
	uint64_t frames = node->cluster->options->cache_bytes / PAGE_BYTES;

	compute->frames_max = frames > HEIGHT_MAX ? frames : HEIGHT_MAX;
	compute->buckets = 1024;
	while (compute->buckets < compute->frames_max)
		compute->buckets *= 2;
	compute->cooling_buckets = compute->frames_max * COOLING_SHARE / 100 / COOLING_SLOTS + 1;
	compute->bucket = calloc(compute->buckets, sizeof(*compute->bucket));
	compute->cooling = calloc(compute->cooling_buckets, sizeof(*compute->cooling));
	compute->frame = calloc(compute->frames_max + FRAMES_MORE, sizeof(struct frame *));
	compute->random = ycsb_mix(node->cluster->options->seed) + node->number;
	compute->read_ns = compute->call_ns = (double) node->cluster->options->model.round_trip_ns;
	return compute->bucket != NULL && compute->cooling != NULL && compute->frame != NULL;
}

static void
close_compute(struct peer_compute *node)
{
	struct compute *compute = node->state;

	for (uint64_t i = 0; i < compute->frames; i++)
		free(compute->frame[i]);
	free(compute->bucket);
	free(compute->cooling);
	free(compute->frame);
}

static void
use_of_cache(struct peer_compute *node, struct ycsb_cache_use *use)
{
	const struct compute *compute = node->state;

	use->hits += compute->hits;
	use->misses += compute->misses;
	use->node_bytes += compute->frames * PAGE_BYTES;
}

const struct peer peer_dex = {
	.index =
		{
			.load = dex_load,
			.lookup = dex_lookup,
			.insert = dex_insert,
			.update = dex_update,
			.scan = dex_scan,
		},
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = sizeof(struct compute),
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.open_compute = open_compute,
	.close_compute = close_compute,
	.cache_use = use_of_cache,
};
