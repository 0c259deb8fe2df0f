/*
 * local_test.c
 *	  The local provider: what every provider must do, and the growing window.
 */
#include <stdlib.h>

#include "rdma/local.h"
#include "support/check.h"
#include "support/conformance.h"
#include "support/env_thread.h"

#define NODES       2
#define REGION_SIZE ((uint64_t) 128 << 10)

static struct env_thread thread;
static struct env_thread other_threads[8];
static unsigned int others;
static uint64_t sizes[NODES];
static struct fabric_local_region regions[NODES];

static uint64_t
size_of(void *argument)
{
	return __atomic_load_n((uint64_t *) argument, __ATOMIC_ACQUIRE);
}

static struct fabric *
open_other(struct conformance *conformance)
{
	struct env_thread *mine = &other_threads[__atomic_fetch_add(&others, 1, __ATOMIC_RELAXED)];
	struct fabric *fabric = NULL;

	env_thread_init(mine, 1);
	CHECK(fabric_local_open(&mine->env, regions, conformance->nodes, &fabric) == SMART_OK);
	return fabric;
}

/* The memory exists from the start; the client that grows it says so by the size only. */
static void
test_growth(void)
{
	struct fabric *fabric;
	uint64_t word = 0;
	struct fabric_request request = {.verb = FABRIC_READ,
									 .remote = fabric_make_address(1, 65536),
									 .local = &word,
									 .length = 8};

	sizes[1] = 65536;
	CHECK(fabric_local_open(&thread.env, regions, NODES, &fabric) == SMART_OK);
	CHECK(fabric_execute(fabric, &request, 1) == SMART_CORRUPT);
	CHECK(fabric_direct(fabric, fabric_make_address(1, 65536 - 8), 8) != NULL);
	sizes[1] = REGION_SIZE;
	CHECK(fabric_execute(fabric, &request, 1) == SMART_OK);
	CHECK(fabric_direct(fabric, request.remote, 8) == regions[1].base + 65536);
	CHECK(fabric_direct(fabric, fabric_make_address(1, REGION_SIZE), 1) == NULL);
	fabric->provider->close(fabric);
	CHECK(thread.allocations == 0);
}

static void
test_no_memory(void)
{
	struct fabric *fabric = NULL;

	thread.fail_one_in = 1;
	CHECK(fabric_local_open(&thread.env, regions, NODES, &fabric) == SMART_NO_MEMORY && fabric == NULL);
	thread.fail_one_in = 0;
}

int
main(void)
{
	struct conformance conformance = {.nodes = NODES,
									  .offset = 4096,
									  .bytes = 65536,
									  .outside = REGION_SIZE,
									  .open = open_other};

	env_thread_init(&thread, 1);
	for (unsigned int i = 0; i < NODES; i++)
	{
		sizes[i] = REGION_SIZE;
		regions[i] = (struct fabric_local_region){aligned_alloc(4096, REGION_SIZE), size_of, &sizes[i]};
	}
	test_no_memory();
	test_growth();
	CHECK(fabric_local_open(&thread.env, regions, NODES, &conformance.fabric) == SMART_OK);
	conformance_check(&conformance);
	conformance.fabric->provider->close(conformance.fabric);
	CHECK(thread.allocations == 0);
	for (unsigned int i = 0; i < NODES; i++)
		free(regions[i].base);
	return check_finish();
}
