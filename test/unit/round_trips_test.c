/*
 * round_trips_test.c
 *	  What operations on a remote tree cost in round trips: exact numbers, since
 *	  each is tens to hundreds of microseconds in a real network.
 *
 * One client, on a provider without direct access; nothing else changes the
 * trees meanwhile.  Without a cache a descent costs one round trip for the root's
 * word and one per node; with one it costs nothing once the nodes are known.
 */
#include <stdio.h>
#include <string.h>

#include "support/all_nodes.h"
#include "support/check.h"
#include "support/tree_client.h"

#define ENTRY    14 /* bytes: a number, and a TID */
#define MANY     100000
#define PER_NODE 256 /* numbers below one node */
#define BATCH    64  /* blocks that a bulk load posts at a time */
#define WINDOW   256 /* leaves that a scan reads */

struct bench
{
	struct test_node *node;
	struct test_client *owner; /* of the trees */
	struct smart_tree_options options;
	fabric_address retractions; /* a word for the count of promises that were taken back, or 0: leaves are locked */
	struct tree_client *client;
};

/* ---- trees ---- */

static uint64_t
trips(const struct bench *bench)
{
	return bench->client->sim.fabric.counters.round_trips;
}

static void
make_entry(uint8_t *entry, uint64_t number)
{
	for (int i = 0; i < 4; i++)
		entry[i] = (uint8_t) (number >> (8 * (3 - i)));
	memset(entry + 4, 1, ENTRY - 4);
}

static uint64_t
dense(unsigned int i)
{
	return i;
}

static uint64_t
every_second(unsigned int i)
{
	return (uint64_t) i * 2;
}

static uint64_t
every_fourth(unsigned int i)
{
	return (uint64_t) i * 4;
}

/* Nodes full of entries, and empty ranges between them. */
static uint64_t
clusters(unsigned int i)
{
	return (uint64_t) (i / PER_NODE) * 7 * PER_NODE + i % PER_NODE;
}

/* Nodes full of entries, each with a byte in its prefix that nothing but its own entries has. */
static uint64_t
prefixes(unsigned int i)
{
	return (uint64_t) (i / PER_NODE) << 16 | 0x4200 | i % PER_NODE;
}

/* A tree with number(0) .. number(count - 1); returns the round trips that its load took. */
static uint64_t
open_tree(struct bench *bench, unsigned int count, uint64_t (*number)(unsigned int), unsigned int fill, bool shared)
{
	struct smart_load *load;
	uint8_t entry[ENTRY];
	uint64_t before;

	bench->options = (struct smart_tree_options){
		.leaf_size = SMART_LEAF_SIZE_DEFAULT,
		.fixed_length = ENTRY,
		.shared = shared,
		.retractions = bench->retractions,
	};
	bench->options.id = test_tree_create(bench->owner, &bench->options.root);
	bench->client = tree_client_open(bench->node, &bench->options, true, 1);
	before = trips(bench);
	CHECK(smart_load_begin(bench->client->tree, fill, &load) == SMART_OK);
	for (unsigned int i = 0; i < count; i++)
	{
		make_entry(entry, number(i));
		CHECK(smart_load_add(load, entry, ENTRY) == SMART_OK);
	}
	CHECK(smart_load_finish(load) == SMART_OK);
	return trips(bench) - before;
}

static void
close_tree(struct bench *bench)
{
	tree_client_close(bench->client);
	CHECK(smart_space_drop_tree(&bench->owner->client->space, bench->options.id));
}

static struct smart_verify_report
verify(struct bench *bench, uint64_t *cost)
{
	struct smart_verify_report report = {0};
	uint64_t before = trips(bench);
	char message[256] = "";

	if (!CHECK(smart_tree_verify(bench->client->tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK))
		printf("%s\n", message);
	*cost = trips(bench) - before;
	return report;
}

static uint64_t
nodes_of(const struct smart_verify_report *report)
{
	uint64_t nodes = 0;

	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		nodes += report->nodes[kind];
	return nodes;
}

/* ---- single entries ---- */

static uint64_t
lookup(struct bench *bench, uint64_t number, bool expected)
{
	uint64_t before = trips(bench);
	uint8_t entry[ENTRY];
	bool found = !expected;

	make_entry(entry, number);
	CHECK(smart_tree_lookup(bench->client->tree, entry, ENTRY, &found) == SMART_OK && found == expected);
	return trips(bench) - before;
}

static uint64_t
insert(struct bench *bench, uint64_t number)
{
	uint64_t before = trips(bench);
	uint8_t entry[ENTRY];
	bool added = false;

	make_entry(entry, number);
	CHECK(smart_tree_insert(bench->client->tree, entry, ENTRY, ENTRY, &added) == SMART_OK && added);
	return trips(bench) - before;
}

static void
check_single(struct bench *bench, unsigned int count, unsigned int height, bool shared)
{
	uint64_t number = count - 8;
	uint64_t cost;

	open_tree(bench, count, every_fourth, 50, shared);
	CHECK(verify(bench, &cost).height == height);

	/* The root's word, the nodes, the leaf. */
	CHECK(lookup(bench, number, true) == 1 + height);
	CHECK(lookup(bench, number + 1, false) == 1 + height);
	/* One of the first makes room; then one batch more that writes the entry and publishes it, and one that locks the leaf. */
	insert(bench, number - 1);
	insert(bench, number + 1);
	CHECK(insert(bench, number + 2) == 2 + shared + height);
	CHECK(verify(bench, &cost).height == height);

	keep_all_nodes(bench->client);
	CHECK(lookup(bench, number, true) == 1 + height);
	CHECK(lookup(bench, number, true) == 1);
	CHECK(insert(bench, number + 3) == 2u + shared);
	close_tree(bench);
}

/* A path in the cache that has become wrong misleads once. */
static void
check_stale_cache(struct bench *bench)
{
	uint64_t first;

	open_tree(bench, 400, every_fourth, 100, false);
	keep_all_nodes(bench->client);
	CHECK(lookup(bench, 0, true) > 1);
	CHECK(lookup(bench, 0, true) == 1);
	for (uint64_t i = 1; i < 100; i++)
	{
		if (i % 4 != 0)
			insert(bench, i);
	}
	first = lookup(bench, 0, true);
	CHECK(first >= 1 && lookup(bench, 0, true) == 1);
	for (uint64_t i = 1; i < 100; i++)
	{
		lookup(bench, i, true);
		CHECK(lookup(bench, i, true) == 1);
	}
	close_tree(bench);
}

/* What inserts of the numbers 1, 1 + step, … below the end request. */
static struct fabric_counters
insert_between(struct bench *bench, unsigned int step, unsigned int end)
{
	struct fabric_counters before = bench->client->sim.fabric.counters;
	struct fabric_counters cost = bench->client->sim.fabric.counters;

	for (unsigned int i = 1; i < end; i += step)
		insert(bench, i);
	for (int verb = 0; verb < FABRIC_VERBS; verb++)
		cost.requests[verb] = bench->client->sim.fabric.counters.requests[verb] - before.requests[verb];
	cost.round_trips = bench->client->sim.fabric.counters.round_trips - before.round_trips;
	return cost;
}

/*
 * C5a: a leaf that was loaded with room takes an entry by a READ of it, a CAS that promises, the WRITE, and a READ of the
 * count; its block has the room already, so nothing is replaced.
 */
static void
check_promises(struct bench *bench, fabric_address word)
{
	const unsigned int count = 4000;
	const unsigned int step = 400;
	const unsigned int inserts = (2 * count - 1) / step + 1;
	struct smart_verify_report report;
	struct fabric_counters cost;
	uint64_t leaves;
	uint64_t unused;

	bench->retractions = word;
	open_tree(bench, count, every_second, 70, true);
	keep_all_nodes(bench->client);
	leaves = verify(bench, &unused).leaves;
	for (unsigned int i = 0; i < 2 * count; i += 2)
		lookup(bench, i, true);
	/* The first one READs the count before it promises, too. */
	insert(bench, 3);
	cost = insert_between(bench, step, 2 * count);
	CHECK(cost.requests[FABRIC_READ] == 2 * inserts);
	CHECK(cost.requests[FABRIC_WRITE] == inserts && cost.requests[FABRIC_CAS] == inserts);
	CHECK(cost.requests[FABRIC_FAA] == 0 && cost.round_trips == 4 * inserts);
	report = verify(bench, &unused);
	CHECK(report.leaves == leaves && report.entries == count + inserts + 1);
	close_tree(bench);
	bench->retractions = 0;
}

/* ---- ranges ---- */

/* Scans the numbers from .. from + count - 1, of which the tree has each; returns the round trips. */
static uint64_t
scan(struct bench *bench, uint64_t from, uint64_t count, bool bounded, bool backward)
{
	struct smart_scan *scan;
	struct smart_batch batch;
	uint8_t low[ENTRY];
	uint8_t high[ENTRY];
	uint64_t before = trips(bench);
	uint64_t seen = 0;
	smart_status status;

	make_entry(low, from);
	make_entry(high, from + count);
	CHECK(smart_scan_open(bench->client->tree, &scan) == SMART_OK);
	CHECK(smart_scan_seek(scan, low, bounded ? 4 : 0, high, bounded ? 4 : 0, backward) == SMART_OK);
	while ((status = smart_scan_next(scan, &batch)) == SMART_OK)
		seen += batch.count;
	CHECK(status == SMART_DONE && seen == count);
	smart_scan_close(scan);
	return trips(bench) - before;
}

/* Batches that read so many leaves, of a range without an end, in windows of 3, 5, 8, .. WINDOW. */
static uint64_t
windows(uint64_t leaves)
{
	uint64_t batches = 0;

	for (uint64_t window = 3; leaves > 0; batches++)
	{
		leaves -= leaves < window ? leaves : window;
		window = (5 * window + 1) / 3 < WINDOW ? (5 * window + 1) / 3 : WINDOW;
	}
	return batches;
}

/* A scan of all: behind the last leaf a strict descent, of the root's word and a node, has to show that nothing follows. */
static uint64_t
whole(uint64_t leaves)
{
	return windows(leaves) + 2;
}

/* The same if no node is known: a batch brings 24 of them, and to the first one they come level by level. */
static uint64_t
whole_cold(const struct smart_verify_report *report)
{
	return whole(report->leaves) + nodes_of(report) / 24 + 2 * report->height;
}

/* All the numbers that are multiples of gap, at once, in the order of the scan; returns the round trips. */
static uint64_t
scan_points(struct bench *bench, uint64_t gap, bool backward)
{
	struct smart_scan *scan;
	struct smart_batch batch;
	struct smart_point points[SMART_POINTS_MAX];
	uint8_t ends[SMART_POINTS_MAX][ENTRY];
	uint8_t low[ENTRY];
	uint8_t high[ENTRY];
	uint64_t before = trips(bench);

	for (unsigned int i = 0; i < SMART_POINTS_MAX; i++)
	{
		make_entry(ends[i], backward ? (SMART_POINTS_MAX - 1 - i) * gap + 1 : i * gap);
		points[i] = (struct smart_point){.bytes = ends[i], .length = 4};
	}
	CHECK(smart_scan_open(bench->client->tree, &scan) == SMART_OK);
	CHECK(smart_scan_points(scan, points, SMART_POINTS_MAX, backward) == SMART_OK);
	for (unsigned int i = 0; i < SMART_POINTS_MAX; i++)
	{
		uint64_t number = (backward ? SMART_POINTS_MAX - 1 - i : i) * gap;

		make_entry(low, number);
		make_entry(high, number + 1);
		CHECK(smart_scan_seek_point(scan, low, 4, high, 4, backward) == SMART_OK);
		CHECK(smart_scan_next(scan, &batch) == SMART_OK && batch.count == 1);
		CHECK(batch.prefix_length + batch.items[0].length == ENTRY &&
			  memcmp(batch.prefix, low, batch.prefix_length < 4 ? batch.prefix_length : 4) == 0);
		CHECK(smart_scan_next(scan, &batch) == SMART_DONE);
	}
	smart_scan_close(scan);
	return trips(bench) - before;
}

static void
check_points(struct bench *bench)
{
	uint64_t cost;
	uint64_t height;

	open_tree(bench, MANY, dense, 100, false);
	height = verify(bench, &cost).height;
	/* The root's word, a batch for each level of nodes, and one for the leaves. */
	CHECK(scan_points(bench, 1500, false) == 1 + height);
	CHECK(scan_points(bench, 3, false) == 1 + height);
	keep_all_nodes(bench->client);
	CHECK(scan_points(bench, 1500, true) == 1 + height);
	CHECK(scan_points(bench, 1500, true) == 1);
	CHECK(scan_points(bench, 1500, false) == 1);
	/* Each number in turn is the first or the last of its leaf. */
	CHECK(scan_points(bench, 1, true) <= 1 + height && scan_points(bench, 1, true) == 1);
	CHECK(scan_points(bench, 1, false) == 1);
	close_tree(bench);
}

/* Entries that a scan returns after smart_scan_forget() were READ after it. */
static void
check_forget(struct bench *bench)
{
	struct smart_scan *scan;
	struct smart_batch batch;
	uint64_t before;
	uint8_t low[ENTRY];
	uint8_t high[ENTRY];

	open_tree(bench, MANY, dense, 100, false);
	keep_all_nodes(bench->client);
	make_entry(low, PER_NODE);
	make_entry(high, 2 * PER_NODE - 1);
	CHECK(smart_scan_open(bench->client->tree, &scan) == SMART_OK);
	CHECK(smart_scan_seek(scan, low, 4, high, 4, false) == SMART_OK);
	CHECK(smart_scan_next(scan, &batch) == SMART_OK);
	before = trips(bench);
	CHECK(smart_scan_next(scan, &batch) == SMART_OK && trips(bench) == before);
	smart_scan_forget(scan);
	CHECK(smart_scan_next(scan, &batch) == SMART_OK && trips(bench) == before + 1);
	CHECK(smart_scan_next(scan, &batch) == SMART_OK && trips(bench) == before + 1);
	smart_scan_close(scan);
	close_tree(bench);
}

/* The READs of a scan that is given up after so many leaves. */
static uint64_t
begin_scan(struct bench *bench, uint64_t from, unsigned int leaves, bool bounded)
{
	uint64_t before = bench->client->sim.fabric.counters.requests[FABRIC_READ];
	struct smart_scan *scan;
	struct smart_batch batch;
	uint8_t low[ENTRY];
	uint8_t high[ENTRY];

	make_entry(low, from);
	make_entry(high, MANY);
	CHECK(smart_scan_open(bench->client->tree, &scan) == SMART_OK);
	CHECK(smart_scan_seek(scan, low, 4, high, bounded ? 4 : 0, false) == SMART_OK);
	for (unsigned int i = 0; i < leaves; i++)
		CHECK(smart_scan_next(scan, &batch) == SMART_OK && batch.count > 0);
	smart_scan_close(scan);
	return bench->client->sim.fabric.counters.requests[FABRIC_READ] - before;
}

/* Of a scan whose nodes are known all windows come while it is busy, but the first four, of 3, 5, 8 and 13 leaves. */
static void
check_flights(struct bench *bench, uint64_t leaves)
{
	uint64_t before = bench->client->sim.fabric.counters.flights;

	CHECK(scan(bench, 0, MANY, false, false) == whole(leaves));
	CHECK(bench->client->sim.fabric.counters.flights - before == windows(leaves) - 4);
}

static uint64_t
slow_now_ns(struct smart_env *env)
{
	static uint64_t now;

	(void) env;
	return now += 1000000;
}

/* Where a round trip takes long, windows grow fast: 3, 12, 48, 192 leaves, or 4, 16, 64. */
static void
check_far(struct bench *bench, uint64_t leaves)
{
	struct smart_env *env = &bench->client->client->thread.env;
	uint64_t (*standing_now_ns)(struct smart_env * env) = env->now_ns;
	uint64_t before = bench->client->sim.fabric.counters.flights;

	env->now_ns = slow_now_ns;
	/* Who needs no more than the first window leaves nothing under way, which the next request would have to wait for. */
	CHECK(begin_scan(bench, 0, 4, true) <= 4 && begin_scan(bench, 0, 3, false) <= 3);
	CHECK(bench->client->sim.fabric.counters.flights == before);
	CHECK(scan(bench, 0, MANY, false, false) == 4 + (leaves - 255 + WINDOW - 1) / WINDOW + 2);
	CHECK(scan(bench, PER_NODE * 100, 50 * MANY / leaves, true, false) == 3);
	/* What is READ in vain if a scan is given up. */
	for (unsigned int taken = 1; taken < 300; taken += 7)
		CHECK(begin_scan(bench, 0, taken, true) <= 16 * taken + 4 &&
			  begin_scan(bench, 0, taken, false) <= 16 * taken + 4);
	env->now_ns = standing_now_ns;
	CHECK(scan(bench, PER_NODE * 100, 50 * MANY / leaves, true, false) == 4);
	for (unsigned int taken = 1; taken < 300; taken += 7)
		CHECK(begin_scan(bench, 0, taken, true) <= 4 * taken + 8 &&
			  begin_scan(bench, 0, taken, false) <= 4 * taken + 8);
}

static void
check_ranges(struct bench *bench)
{
	struct smart_verify_report report;
	uint64_t middle = PER_NODE * 100 + 10;
	uint64_t cost;

	open_tree(bench, MANY, dense, 100, false);
	report = verify(bench, &cost);
	/* Without a cache: a strict descent, its leaf, and all the others. */
	CHECK(scan(bench, middle, 100, true, false) == 1 + report.height + 1);
	CHECK(scan(bench, middle, 100, true, true) == 1 + report.height + 1);

	keep_all_nodes(bench->client);
	/* The first scan READs nodes with the leaves before them, many at a time; so does one in the other direction. */
	CHECK(nodes_of(&report) > 300 && scan(bench, 0, MANY, false, false) <= whole_cold(&report));
	CHECK(scan(bench, 0, MANY, false, false) == whole(report.leaves));
	check_flights(bench, report.leaves);
	check_far(bench, report.leaves);
	forget_all_nodes();
	CHECK(scan(bench, 0, MANY, false, true) <= whole_cold(&report));
	CHECK(scan(bench, 0, MANY, false, true) <= whole(report.leaves) + report.height);
	/* With the nodes known: one batch, also across the edges of nodes; a second one if there are more than four leaves. */
	for (uint64_t from = 0; from < MANY - 100; from += 997)
	{
		cost = scan(bench, from, 100, true, false);
		CHECK(cost >= 1 && cost <= 2);
		cost = scan(bench, from, 100, true, true);
		CHECK(cost >= 1 && cost <= 2);
	}
	CHECK(scan(bench, middle, 100, true, false) == 1);
	CHECK(scan(bench, PER_NODE * 101 - 50, 100, true, false) == 1);
	CHECK(scan(bench, middle, 1, true, false) == 1);
	close_tree(bench);
}

/*
 * A scan that ends soon READs no more than its first window and, if they are not known, the nodes that lead there: the
 * root's word, a path, and one node behind it, each node with its header first.
 */
static void
check_begun(struct bench *bench)
{
	uint64_t cost;
	uint64_t nodes;

	open_tree(bench, MANY, dense, 100, false);
	/* As many as the path has with its leaf. */
	nodes = verify(bench, &cost).height;
	keep_all_nodes(bench->client);
	for (uint64_t from = 0; from < MANY / 2; from += 997)
	{
		forget_all_nodes();
		CHECK(begin_scan(bench, from, 1, false) <= 1 + 2 * nodes + 3);
		forget_all_nodes();
		CHECK(begin_scan(bench, from, 2, false) <= 1 + 2 * nodes + 3);
		forget_all_nodes();
		CHECK(begin_scan(bench, from, 4, true) <= 1 + 2 * nodes + 4);
	}
	close_tree(bench);
}

static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	unsigned int *every = argument;
	uint64_t number = 0;

	for (int i = 0; i < 4; i++)
		number = number << 8 | entry[i];
	return *every != 0 && number % *every == 0;
}

static uint64_t
bulk_delete(struct bench *bench, unsigned int every, uint64_t expected)
{
	uint64_t before = trips(bench);
	uint64_t visited;
	uint64_t removed;

	CHECK(smart_tree_bulk_delete(bench->client->tree, &(struct smart_victims){.dead = is_dead, .argument = &every},
								 NULL, &visited, &removed) == SMART_OK);
	CHECK(removed == expected);
	return trips(bench) - before;
}

/* Blocks are used again all the time, as far as anybody is told. */
static uint64_t
rising_moment(struct smart_services *services)
{
	static uint64_t moment;

	(void) services;
	return ++moment;
}

/*
 * Empty ranges between the leaves are no reason to descend again.  Nodes that were READ while the scan was busy show them only if no block
 * can have been used again meanwhile.
 */
static void
check_gaps(struct bench *bench)
{
	uint64_t (*moment)(struct smart_services * services);
	struct smart_verify_report report;
	uint64_t cost;

	open_tree(bench, 20000, clusters, 100, false);
	report = verify(bench, &cost);
	keep_all_nodes(bench->client);
	scan(bench, 0, 20000, false, false);
	CHECK(scan(bench, 0, 20000, false, false) == whole(report.leaves));
	moment = bench->client->services.moment;
	bench->client->services.moment = rising_moment;
	CHECK(scan(bench, 0, 20000, false, false) > whole(report.leaves));
	bench->client->services.moment = moment;
	CHECK(scan(bench, 0, 20000, false, false) == whole(report.leaves));
	close_tree(bench);
}

/* Nor are prefixes that the cursor has to be led past, into a node and behind it: they come with the leaves, if there is room. */
static void
check_prefixes(struct bench *bench)
{
	struct smart_verify_report report;
	uint64_t cost;

	open_tree(bench, 20000, prefixes, 100, false);
	report = verify(bench, &cost);
	CHECK(nodes_of(&report) > 4 * whole(report.leaves));
	keep_all_nodes(bench->client);
	for (int backward = 0; backward < 2; backward++)
	{
		CHECK(scan(bench, 0, 20000, false, backward) <= 2 * whole(report.leaves));
		CHECK(scan(bench, 0, 20000, false, backward) <= whole(report.leaves) + 3);
	}
	close_tree(bench);
}

/* ---- whole trees ---- */

static void
check_whole(struct bench *bench)
{
	uint64_t loaded = open_tree(bench, MANY, dense, 100, false);
	uint64_t walked;
	struct smart_verify_report report = verify(bench, &walked);
	uint64_t nodes = nodes_of(&report);

	CHECK(report.entries == MANY && report.leaves > 2000 && nodes > 300);
	/* A load writes its blocks in full batches, neighbouring nodes as one; the root's word comes last. */
	CHECK(loaded <= (report.leaves + nodes) / BATCH + 2);
	/*
	 * A check READs the nodes above the leaves 32 at a time at least, and their leaves together.  It begins anew after 256
	 * leaves, by the root's word and one batch of the nodes on its way.
	 */
	CHECK(walked <= nodes / 32 + (report.leaves / 256 + 1) * 6);

	keep_all_nodes(bench->client);
	bulk_delete(bench, 0, 0);
	CHECK(bulk_delete(bench, 0, 0) == whole(report.leaves));
	/* A leaf that changes: its READ, a strict one of its node, two CASes, and the batch that ends the change. */
	CHECK(bulk_delete(bench, MANY / 100, 100) <= whole(report.leaves) + 100 * 5);
	close_tree(bench);
}

int
main(void)
{
	struct bench bench = {.node = test_node_open(8, 64 << 20)};
	fabric_address block;
	fabric_address root;
	uint64_t id;

	bench.owner = test_client_open(bench.node, 1);
	/* Verbs reach the region as large as it is when a handle is opened: let it grow first. */
	id = test_tree_create(bench.owner, &root);
	for (int i = 0; i < 2000; i++)
		CHECK(smart_space_allocate(&bench.owner->client->space, id, SMART_CLASS_LEAF(127), &block) == SMART_OK);
	CHECK(smart_space_drop_tree(&bench.owner->client->space, id));
	id = test_tree_create(bench.owner, &root);
	CHECK(smart_space_allocate(&bench.owner->client->space, id, SMART_CLASS_LEAF(1), &block) == SMART_OK);

	for (int shared = 0; shared < 2; shared++)
	{
		check_single(&bench, 20, 1, shared);
		check_single(&bench, 60, 2, shared);
		check_single(&bench, 400, 3, shared);
	}
	check_stale_cache(&bench);
	check_promises(&bench, block);
	check_points(&bench);
	check_forget(&bench);
	check_ranges(&bench);
	check_begun(&bench);
	check_gaps(&bench);
	check_prefixes(&bench);
	check_whole(&bench);
	test_client_close(bench.owner);
	test_node_close(bench.node);
	return check_finish();
}
