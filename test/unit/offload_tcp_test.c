/*
 * offload_tcp_test.c
 *	  Descents that a memory node makes, over TCP: what a cold lookup costs in round
 *	  trips with and without them, that the cache learns the way, and that the answers
 *	  are the same.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/offload_bench.h"

/* ---- one memory node ---- */

/* A cold lookup takes one round trip instead of one for the root, each node and the leaf. */
static void
test_cold(struct offload_bench *bench)
{
	uint64_t descents;

	bench->offload.mode = SMART_OFFLOAD_OFF;
	CHECK(offload_cost(bench, bench->deep, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	bench->offload.mode = SMART_OFFLOAD_ON;
	CHECK(offload_cost(bench, bench->deep, true, &descents) == 1 && descents == 1);
	/* The way is known from now on: its neighbour needs its leaf, and no descent. */
	CHECK(offload_cost(bench, bench->deep, false, &descents) == 1 && descents == 0);
	CHECK(offload_cost(bench, bench->deep + 1, false, &descents) == 1 && descents == 0);
	/* Another part of the tree, of which the cache has the root: from there on. */
	CHECK(offload_cost(bench, 0, false, &descents) == 1 && descents == 1);
	CHECK(offload_cost(bench, 1, false, &descents) == 1 && descents == 0);
}

/* The node's word about what is not there is as good as a strict descent's. */
static void
test_absent(struct offload_bench *bench)
{
	const struct fabric_counters *counters = &bench->remote.fabric->counters;
	uint8_t entry[OFFLOAD_ENTRY];
	uint64_t trips;

	offload_make_entry(entry, 7);
	entry[OFFLOAD_ENTRY - 1] = 1;
	offload_forget_cache(bench);
	trips = counters->round_trips;
	CHECK(!offload_look_up(bench, entry) && counters->round_trips - trips == 1);
	/* In no leaf's range. */
	CHECK(counters->descents_stopped == 0);
}

/* A scan of what begins with an entry's first bytes; returns its entries, *trips what it cost. */
static unsigned int
scan(struct offload_bench *bench, struct smart_scan *scan, const uint8_t *from, size_t length, uint64_t *trips)
{
	uint64_t before = bench->remote.fabric->counters.round_trips;
	struct smart_batch batch;
	uint8_t to[OFFLOAD_ENTRY];
	unsigned int count = 0;
	smart_status status;

	memcpy(to, from, length);
	length = smart_successor(to, length);
	CHECK(smart_scan_seek(scan, from, length, to, length, false) == SMART_OK);
	while ((status = smart_scan_next(scan, &batch)) == SMART_OK)
		count += batch.count;
	CHECK(status == SMART_DONE);
	*trips = bench->remote.fabric->counters.round_trips - before;
	return count;
}

/* Where a scan begins it finds its way likewise: one round trip for a point, there or not. */
static void
test_scans(struct offload_bench *bench, enum smart_offload_mode mode)
{
	struct smart_scan *handle;
	uint8_t entry[OFFLOAD_ENTRY];
	uint64_t trips;

	bench->offload.mode = mode;
	CHECK(smart_scan_open(bench->tree, &handle) == SMART_OK);
	for (unsigned int i = 0; i < OFFLOAD_ENTRIES; i += 11)
	{
		offload_make_entry(entry, i);
		offload_forget_cache(bench);
		CHECK(scan(bench, handle, entry, OFFLOAD_ENTRY, &trips) == 1 && (mode != SMART_OFFLOAD_ON || trips == 1));
		CHECK(mode != SMART_OFFLOAD_OFF || trips >= bench->height);
		offload_forget_cache(bench);
		CHECK(scan(bench, handle, entry, 2, &trips) == OFFLOAD_ENTRIES / OFFLOAD_VALUES / OFFLOAD_VALUES);
		entry[0]++;
		offload_forget_cache(bench);
		CHECK(scan(bench, handle, entry, OFFLOAD_ENTRY, &trips) == 0 && (mode != SMART_OFFLOAD_ON || trips == 1));
	}
	smart_scan_close(handle);
}

/* ---- the rule ---- */

/* What it does follows from what was measured; here it is told what that was. */
static void
test_rule(struct offload_bench *bench)
{
	struct smart_offload_node *node = &bench->offload.node[0];
	uint64_t descents;

	smart_offload_init(&bench->offload, SMART_OFFLOAD_AUTO);
	/* Nothing is known of READs: they are measured first, then a descent is. */
	CHECK(offload_cost(bench, 5, true, &descents) >= 2 && node->trip_ns > 0);
	CHECK(offload_cost(bench, 5, true, &descents) == 1 && descents == 1 && node->descent_ns > 0);
	*node = (struct smart_offload_node){.trip_ns = 1000000000, .descent_ns = 1500000000};
	CHECK(offload_cost(bench, 5, true, &descents) == 1 && descents == 1);
	*node = (struct smart_offload_node){.trip_ns = 1, .descent_ns = UINT64_C(1) << 50};
	CHECK(offload_cost(bench, 5, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	/* It was busy a moment ago. */
	bench->offload.mode = SMART_OFFLOAD_ON;
	node->not_before_ns = UINT64_MAX;
	CHECK(offload_cost(bench, 5, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	node->not_before_ns = 1;
	CHECK(offload_cost(bench, 5, true, &descents) == 1 && descents == 1 && node->not_before_ns == 0);
}

/* A memory node that does not go on costs the limit; one that closed the connection costs a READ more. */
static void
test_failures(struct offload_bench *bench)
{
	struct fabric *fabric = bench->remote.fabric;
	uint32_t generation = bench->nodes->generation[0];
	uint8_t entry[OFFLOAD_ENTRY];
	bool found;

	smart_offload_init(&bench->offload, SMART_OFFLOAD_ON);
	offload_make_entry(entry, 9);
	offload_forget_cache(bench);
	test_memnode_freeze(bench->nodes, 0);
	fabric_remote_set_timeout(fabric, 150);
	CHECK(smart_tree_lookup(bench->tree, entry, OFFLOAD_ENTRY, &found) == SMART_TIMEOUT);
	test_memnode_thaw(bench->nodes, 0);
	fabric_remote_set_timeout(fabric, OFFLOAD_TIMEOUT_MS);
	/* Nothing can have changed, so no other client has to connect again. */
	CHECK(bench->nodes->generation[0] == generation);
	CHECK(offload_look_up(bench, entry));
}

int
main(void)
{
	struct test_memnodes *nodes = test_memnodes_open(2, true);
	struct offload_bench bench;

	offload_bench_open(&bench, nodes, 1, 1);
	test_cold(&bench);
	test_absent(&bench);
	offload_check_all(&bench, SMART_OFFLOAD_ON);
	CHECK(bench.remote.fabric->counters.descents_stopped == 0);
	offload_check_all(&bench, SMART_OFFLOAD_AUTO);
	test_scans(&bench, SMART_OFFLOAD_ON);
	test_scans(&bench, SMART_OFFLOAD_OFF);
	offload_check_changes(&bench, SMART_OFFLOAD_ON);
	test_rule(&bench);
	test_failures(&bench);
	offload_bench_close(&bench);

	/* Blocks on two memory nodes in turn: walks end where the other one's begin. */
	offload_bench_open(&bench, nodes, 2, 2);
	offload_check_all(&bench, SMART_OFFLOAD_ON);
	CHECK(bench.remote.fabric->counters.descents_stopped > 0);
	offload_check_changes(&bench, SMART_OFFLOAD_ON);
	offload_bench_close(&bench);
	test_memnodes_close(nodes);
	return check_finish();
}
