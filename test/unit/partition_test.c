/*
 * partition_test.c
 *	  Ranges and their owners: bounds, routing, turns, handing over, and what an owner that died leaves.
 */
#include <stdlib.h>
#include <string.h>

#include "base/thread_env.h"
#include "compute/partition/partition.h"
#include "rdma/local.h"
#include "support/check.h"

#define MEMORY  (1 << 20)
#define TABLE   fabric_make_address(0, 4096)
#define RANGES  100
#define CLIENTS 4

static uint8_t *memory;
static struct fabric *fabric;
static struct smart_env env;
static struct smart_range ranges[RANGES];
static struct smart_partition *one;
static struct smart_partition *other;

/* ---- what happens while a giver waits ---- */

static struct smart_partition *waited_for;
static int pauses;
static bool interrupted;
static uint64_t now_ns;

/* The third time the turn ends, of client 0. */
static void
pause_giver(struct smart_env *unused, unsigned int attempt)
{
	uint64_t tenure;

	now_ns += 1000000;
	pauses++;
	CHECK(!smart_partition_enter(waited_for, 2, 7, &tenure));
	if (pauses == 3 && waited_for != NULL)
		smart_partition_leave(waited_for, 0);
}

static uint64_t
tell_time(struct smart_env *unused)
{
	return now_ns;
}

static bool
is_interrupted(struct smart_env *unused)
{
	return interrupted;
}

/* ---- a table and two compute nodes ---- */

static uint64_t
memory_size(void *unused)
{
	return MEMORY;
}

static struct smart_partition *
open_node(uint32_t owner)
{
	struct smart_partition *node = calloc(1, smart_partition_size(RANGES, CLIENTS));

	CHECK(node != NULL);
	CHECK(smart_partition_open(node, fabric, TABLE, RANGES, CLIENTS, owner) == SMART_OK);
	return node;
}

static void
begin(void)
{
	memset(memory, 0, MEMORY);
	for (unsigned int i = 0; i < RANGES; i++)
	{
		ranges[i] = (struct smart_range){.tree = 1000 + i, .root = fabric_make_address(0, 65536 + 64 * i)};
		ranges[i].bound_length = i == 0 ? 0 : 2;
		ranges[i].bound[0] = (uint8_t) (i / 10);
		ranges[i].bound[1] = (uint8_t) (i % 10 * 20);
	}
	CHECK(smart_partition_create(fabric, TABLE, ranges, RANGES) == SMART_OK);
	one = open_node(1);
	other = open_node(2);
	pauses = 0;
	interrupted = false;
	waited_for = one;
}

static void
end(void)
{
	free(one);
	free(other);
}

static void
check_owner(unsigned int range, uint32_t owner, uint32_t tenure)
{
	uint32_t is;
	uint32_t changes;

	CHECK(smart_partition_owner(one, fabric, range, &is, &changes) == SMART_OK);
	CHECK(is == owner && changes == tenure);
}

/* ---- tests ---- */

static unsigned int
bound(const char *lower, const char *upper)
{
	return smart_range_bound((const uint8_t *) lower, strlen(lower), (const uint8_t *) upper, strlen(upper));
}

static void
test_bounds(void)
{
	CHECK(bound("a", "b") == 1);
	CHECK(bound("abc", "abd") == 3);
	CHECK(bound("ab", "abd") == 3);
	CHECK(bound("0123456789012345678901234567890123456789a", "0123456789012345678901234567890123456789b") == 0);
	/* Neither out of order nor without a beginning. */
	ranges[1].bound[1] = 250;
	CHECK(smart_partition_create(fabric, TABLE, ranges, RANGES) == SMART_UNSORTED);
	ranges[1].bound[1] = 20;
	CHECK(smart_partition_create(fabric, TABLE, ranges + 1, 5) == SMART_UNSORTED);
}

static void
test_routing(void)
{
	const uint8_t low[] = {0, 0};
	const uint8_t edge[] = {3, 40, 0};
	const uint8_t below[] = {3, 39, 255};
	const uint8_t part[] = {3};
	const uint8_t high[] = {255, 255};

	begin();
	CHECK(smart_partition_ranges(one) == RANGES);
	CHECK(smart_partition_find(one, low, 2) == 0);
	CHECK(smart_partition_find(one, edge, 3) == 32);
	CHECK(smart_partition_find(one, edge, 2) == 32);
	CHECK(smart_partition_find(one, below, 3) == 31);
	CHECK(smart_partition_find(one, part, 1) == 29);
	CHECK(smart_partition_find(one, high, 2) == RANGES - 1);
	CHECK(smart_partition_range(other, 32)->tree == 1032 && smart_partition_range(other, 32)->root == ranges[32].root);
	CHECK(smart_partition_open(other, fabric, TABLE, RANGES - 1, CLIENTS, 2) == SMART_CORRUPT);
	end();
}

static void
test_owners(void)
{
	uint64_t tenure;
	bool mine;

	begin();
	CHECK(!smart_partition_enter(one, 0, 7, &tenure));
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && mine);
	check_owner(7, 1, 1);
	CHECK(smart_partition_take(other, fabric, 7, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && !mine);
	CHECK(smart_partition_enter(one, 0, 7, &tenure) && tenure == 1);
	CHECK(!smart_partition_enter(other, 0, 7, &tenure));
	CHECK(!smart_partition_enter(one, 1, 8, &tenure));
	smart_partition_leave(one, 0);
	CHECK(smart_partition_give(other, fabric, &env, 7, 1, 10, NULL) == SMART_STALE);
	CHECK(smart_partition_give(one, fabric, &env, 7, 2, 10, NULL) == SMART_OK && pauses == 0);
	check_owner(7, 2, 2);
	/* Not by itself: the new owner takes what it was given. */
	CHECK(!smart_partition_enter(one, 0, 7, &tenure) && !smart_partition_enter(other, 0, 7, &tenure));
	CHECK(smart_partition_take(other, fabric, 7, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && mine);
	CHECK(smart_partition_enter(other, 3, 7, &tenure) && tenure == 2);
	smart_partition_leave(other, 3);
	/* And back. */
	CHECK(smart_partition_give(other, fabric, &env, 7, 1, 10, NULL) == SMART_OK);
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && mine);
	CHECK(smart_partition_enter(one, 0, 7, &tenure) && tenure == 3);
	end();
}

/* P2: the owner's word changes when the turn has ended, and not before. */
static void
test_waiting(void)
{
	uint64_t tenure;
	bool mine;

	begin();
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && mine);
	CHECK(smart_partition_take(one, fabric, 8, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && mine);
	CHECK(smart_partition_enter(one, 0, 7, &tenure) && smart_partition_enter(one, 1, 8, &tenure));
	CHECK(smart_partition_give(one, fabric, &env, 7, 2, 10, NULL) == SMART_OK && pauses == 3);
	check_owner(7, 2, 2);
	/* A turn that does not end: the range stays. */
	waited_for = other;
	CHECK(smart_partition_give(one, fabric, &env, 8, 2, 10, NULL) == SMART_TIMEOUT);
	check_owner(8, 1, 1);
	interrupted = true;
	CHECK(smart_partition_give(one, fabric, &env, 8, 2, 10, NULL) == SMART_INTERRUPTED);
	CHECK(smart_partition_enter(one, 0, 8, &tenure) && tenure == 1);
	end();
}

/* P3: an owner that died, with a turn under way, and has been fenced. */
static void
test_death(void)
{
	struct smart_partition *again;
	uint64_t tenure;
	bool mine;

	begin();
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, NULL, &mine) == SMART_OK && mine);
	CHECK(smart_partition_enter(one, 0, 7, &tenure));
	CHECK(smart_partition_take(other, fabric, 7, 3, NULL, &mine) == SMART_OK && !mine);
	CHECK(smart_partition_take(other, fabric, 7, 1, NULL, &mine) == SMART_OK && mine);
	check_owner(7, 2, 2);
	CHECK(smart_partition_enter(other, 0, 7, &tenure) && tenure == 2);
	/* The dead one comes back under another number, and owns nothing. */
	again = open_node(4);
	CHECK(smart_partition_take(again, fabric, 7, 1, NULL, &mine) == SMART_OK && !mine);
	CHECK(!smart_partition_enter(again, 0, 7, &tenure));
	free(again);
	end();
}

/* ---- owners with logs ---- */

struct handed
{
	int settled;
	int flushed;
	uint32_t owner; /* whose log was settled, of which tenure, */
	uint32_t tenure;
	uint32_t now;
	smart_status status; /* what both come to */
};

static smart_status
note_settle(void *argument, unsigned int range, uint32_t owner, uint32_t tenure, uint32_t now)
{
	struct handed *handed = argument;

	handed->settled++;
	handed->owner = owner;
	handed->tenure = tenure;
	handed->now = now;
	CHECK(range == 7);
	return handed->status;
}

static smart_status
note_flush(void *argument, unsigned int range, uint32_t tenure)
{
	struct handed *handed = argument;

	handed->flushed++;
	handed->tenure = tenure;
	CHECK(range == 7);
	return handed->status;
}

/* L4: what is given away needs no log; L3: what a dead owner leaves does, until it has been settled. */
static void
test_logs(void)
{
	struct handed handed = {.status = SMART_OK};
	const struct smart_handover handover = {.settle = note_settle, .flush = note_flush, .argument = &handed};
	uint64_t tenure;
	bool mine;

	begin();
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, &handover, &mine) == SMART_OK && mine);
	CHECK(smart_partition_give(one, fabric, &env, 7, 2, 10, &handover) == SMART_OK);
	CHECK(handed.flushed == 1 && handed.tenure == 1);
	CHECK(smart_partition_take(other, fabric, 7, SMART_OWNER_NONE, &handover, &mine) == SMART_OK && mine);
	CHECK(handed.settled == 0);
	/* The second owner dies.  The first one takes the range, and fails to settle it. */
	handed.status = SMART_UNREACHABLE;
	CHECK(smart_partition_take(one, fabric, 7, 2, &handover, &mine) == SMART_UNREACHABLE && !mine);
	CHECK(!smart_partition_enter(one, 0, 7, &tenure));
	check_owner(7, 1, 3);
	handed.status = SMART_OK;
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, &handover, &mine) == SMART_OK && mine);
	CHECK(handed.settled == 2 && handed.owner == 2 && handed.tenure == 2 && handed.now == 3);
	CHECK(smart_partition_enter(one, 0, 7, &tenure) && tenure == 3);
	smart_partition_leave(one, 0);
	/* What cannot be flushed is not given, and goes on with what its log has. */
	handed.status = SMART_UNREACHABLE;
	CHECK(smart_partition_give(one, fabric, &env, 7, 2, 10, &handover) == SMART_UNREACHABLE);
	check_owner(7, 1, 3);
	CHECK(smart_partition_take(one, fabric, 7, SMART_OWNER_NONE, &handover, &mine) == SMART_OK && mine);
	CHECK(handed.settled == 2 && handed.flushed == 2);
	CHECK(smart_partition_enter(one, 0, 7, &tenure) && tenure == 3);
	end();
}

int
main(void)
{
	struct fabric_local_region region;

	memory = aligned_alloc(4096, MEMORY);
	CHECK(memory != NULL);
	region = (struct fabric_local_region){memory, memory_size, NULL};
	env = smart_thread_env;
	env.pause = pause_giver;
	env.now_ns = tell_time;
	env.interrupted = is_interrupted;
	CHECK(fabric_local_open(&env, &region, 1, &fabric) == SMART_OK);
	test_routing();
	test_bounds();
	test_owners();
	test_waiting();
	test_death();
	test_logs();
	fabric->provider->close(fabric);
	free(memory);
	return check_finish();
}
