/*
 * offload_test.c
 *	  Descents that a memory node makes where its NIC executes the verbs: the way is
 *	  the memory node's, the leaf is READ.
 */
#include "support/check.h"
#include "support/offload_bench.h"

/* One round trip for the way and one for the leaf, instead of one for each block. */
static void
test_cold(struct offload_bench *bench)
{
	uint64_t descents;
	uint64_t trips;

	bench->offload.mode = SMART_OFFLOAD_OFF;
	CHECK(offload_cost(bench, bench->deep, true, &descents) == (uint64_t) bench->height + 1 && descents == 0);
	bench->offload.mode = SMART_OFFLOAD_ON;
	/* A node that is busy is asked again; this test is about the others. */
	do
	{
		bench->offload.node[0].not_before_ns = 0;
		trips = offload_cost(bench, bench->deep, true, &descents);
	} while (bench->offload.path.count == 0);
	CHECK(trips == 2 && descents == 1);
	CHECK(!bench->offload.path.exact && bench->offload.path.end == FABRIC_PATH_LEAF);
	CHECK(bench->offload.path.count == bench->height);
	/* The way is known from now on. */
	CHECK(offload_cost(bench, bench->deep + 1, false, &descents) == 1 && descents == 0);
}

int
main(void)
{
	struct test_memnodes *nodes = test_memnodes_open_rdma(2, true);
	struct offload_bench bench;

	for (unsigned int spread = 1; spread <= 2; spread++)
	{
		offload_bench_open(&bench, nodes, spread, spread);
		if (spread == 1)
			test_cold(&bench);
		offload_check_all(&bench, SMART_OFFLOAD_ON);
		offload_check_changes(&bench, SMART_OFFLOAD_ON);
		offload_check_changes(&bench, SMART_OFFLOAD_AUTO);
		CHECK(bench.remote.fabric->counters.descents > 0);
		offload_bench_close(&bench);
	}
	test_memnodes_close(nodes);
	return check_finish();
}
