/*
 * memory.c
 *	  Memory nodes in this process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "compute/allocate/space.h"
#include "rdma/local.h"
#include "support/memory.h"
#include "support/must.h"
#include "tree/layout.h"

#define CHUNK_BYTES (UINT64_C(2) << 20)
#define ROOT_BYTES  64

struct memory_fabric
{
	struct fabric fabric; /* first */
	struct test_memory *memory;
	struct smart_env *env;
	struct fabric *local; /* does the work */
};

struct test_memory *
test_memory_open(unsigned int count, uint32_t chunks)
{
	struct test_memory *memory = calloc(1, sizeof(*memory));

	must(memory != NULL && count <= TEST_MEMORY_NODES && chunks >= 2, "test_memory_open");
	pthread_mutex_init(&memory->mutex, NULL);
	memory->count = count;
	for (unsigned int i = 0; i < count; i++)
	{
		struct test_memory_node *node = &memory->node[i];

		node->incarnation = UINT64_C(0xabcdef00) + i;
		node->chunks = chunks;
		node->taken = calloc(chunks, 1);
		node->base = mmap(NULL, chunks * CHUNK_BYTES, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		must(node->taken != NULL && node->base != MAP_FAILED, "memory of a node");
		node->taken[0] = 1;
	}
	return memory;
}

void
test_memory_close(struct test_memory *memory)
{
	for (unsigned int i = 0; i < memory->count; i++)
	{
		munmap(memory->node[i].base, memory->node[i].chunks * CHUNK_BYTES);
		free(memory->node[i].taken);
	}
	pthread_mutex_destroy(&memory->mutex);
	free(memory);
}

/* ---- verbs ---- */

static bool
roll(const struct test_memory *memory, struct smart_env *env)
{
	return memory->fail_one_in != 0 && env->random(env) % memory->fail_one_in == 0;
}

static bool
handed_out(const struct test_memory *memory, const struct fabric_request *request)
{
	const struct test_memory_node *node = &memory->node[fabric_node(request->remote)];
	uint64_t length = request->verb == FABRIC_READ || request->verb == FABRIC_WRITE ? request->length : 8;
	uint64_t first = fabric_offset(request->remote) / CHUNK_BYTES;
	uint64_t last = (fabric_offset(request->remote) + length - 1) / CHUNK_BYTES;

	return last < node->chunks && node->taken[first] && node->taken[last];
}

/* Whatever the batch comes to is decided before its verbs. */
static smart_status
admit(struct memory_fabric *mine, const struct fabric_request *requests, int count)
{
	struct test_memory *memory = mine->memory;
	smart_status status = roll(memory, mine->env) ? SMART_UNREACHABLE : SMART_OK;

	pthread_mutex_lock(&memory->mutex);
	for (int i = 0; i < count && status == SMART_OK; i++)
	{
		const struct test_memory_node *node = &memory->node[fabric_node(requests[i].remote)];

		if (fabric_node(requests[i].remote) >= memory->count || node->down)
			status = SMART_UNREACHABLE;
		else if (node->silent)
			status = SMART_TIMEOUT;
		else if (!handed_out(memory, &requests[i]))
		{
			memory->outside++;
			status = SMART_CORRUPT;
		}
	}
	pthread_mutex_unlock(&memory->mutex);
	return status;
}

static smart_status
memory_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	struct memory_fabric *mine = (struct memory_fabric *) fabric;
	smart_status status = admit(mine, requests, count);

	return status == SMART_OK ? fabric_execute(mine->local, requests, count) : status;
}

static void
memory_fabric_close(struct fabric *fabric)
{
	struct memory_fabric *mine = (struct memory_fabric *) fabric;

	mine->local->provider->close(mine->local);
	mine->env->release(mine->env, mine);
}

static const struct fabric_provider memory_provider = {
	.execute = memory_execute,
	.close = memory_fabric_close,
};

static uint64_t
node_size(void *node)
{
	return ((struct test_memory_node *) node)->chunks * CHUNK_BYTES;
}

struct fabric *
test_memory_fabric(struct test_memory *memory, struct smart_env *env)
{
	struct memory_fabric *mine = env->allocate(env, sizeof(*mine));
	struct fabric_local_region regions[TEST_MEMORY_NODES] = {0};

	must(mine != NULL, "test_memory_fabric");
	memset(mine, 0, sizeof(*mine));
	for (unsigned int i = 0; i < memory->count; i++)
		regions[i] = (struct fabric_local_region){memory->node[i].base, node_size, &memory->node[i]};
	/* Without a memory node nothing is ever executed. */
	must(fabric_local_open(env, regions, memory->count > 0 ? memory->count : 1, &mine->local) == SMART_OK,
		 "fabric_local_open");
	mine->fabric.provider = &memory_provider;
	mine->memory = memory;
	mine->env = env;
	return &mine->fabric;
}

/* ---- chunks and trees ---- */

static struct test_memory *
memory_of(struct smart_supply *supply)
{
	return ((struct memory_fabric *) supply->fabric)->memory;
}

static bool
memory_reachable(struct smart_supply *supply, unsigned int node)
{
	struct test_memory *memory = memory_of(supply);
	bool down;

	pthread_mutex_lock(&memory->mutex);
	down = memory->node[node].down;
	pthread_mutex_unlock(&memory->mutex);
	return !down;
}

static smart_status
take(struct test_memory_node *node, uint32_t *chunk)
{
	for (uint32_t i = 1; i < node->chunks; i++)
		if (!node->taken[i])
		{
			*chunk = i;
			node->taken[i] = 1;
			node->taken_count++;
			memset(node->base + i * CHUNK_BYTES, 0, CHUNK_BYTES);
			return SMART_OK;
		}
	return SMART_NO_SPACE;
}

static smart_status
make(struct test_memory_node *node, unsigned int number, uint64_t id, fabric_address *root)
{
	unsigned int place = 1; /* no root slot has the address 0 */

	while (place < TEST_MEMORY_ROOTS && node->tree[place] != 0)
		place++;
	if (place == TEST_MEMORY_ROOTS)
		return SMART_NO_SPACE;
	node->tree[place] = id;
	node->tree_count++;
	*(uint64_t *) (node->base + place * ROOT_BYTES) = smart_slot_make_empty(0, 255);
	*root = fabric_make_address(number, (uint64_t) place * ROOT_BYTES);
	return SMART_OK;
}

/* A request: id 0 for a chunk.  It fails before or after it was executed. */
static smart_status
ask(struct smart_supply *supply, unsigned int number, uint64_t id, uint64_t *result)
{
	struct test_memory *memory = memory_of(supply);
	struct test_memory_node *node = &memory->node[number];
	bool lost_before = roll(memory, supply->env);
	bool lost_after = roll(memory, supply->env);
	smart_status status = SMART_UNREACHABLE;
	uint32_t chunk = 0;

	if (memory->asked != NULL)
		memory->asked(memory, number);
	pthread_mutex_lock(&memory->mutex);
	node->requests++;
	if (!node->down && !lost_before)
	{
		status = id != 0 ? make(node, number, id, result) : take(node, &chunk);
		if (id == 0)
			*result = chunk;
	}
	if (node->silent || (lost_after && !lost_before))
		status = SMART_TIMEOUT;
	pthread_mutex_unlock(&memory->mutex);
	return status;
}

static smart_status
memory_take_chunk(struct smart_supply *supply, unsigned int node, uint32_t *chunk)
{
	uint64_t result;
	smart_status status = ask(supply, node, 0, &result);

	if (status == SMART_OK)
		*chunk = (uint32_t) result;
	return status;
}

static smart_status
memory_make_tree(struct smart_supply *supply, unsigned int node, uint64_t id, const struct smart_tree_owner *owner,
				 fabric_address *root)
{
	must(owner != NULL && id != 0, "make_tree");
	return ask(supply, node, id, root);
}

void
test_memory_supply(struct test_memory *memory, struct smart_env *env, struct fabric *fabric,
				   struct smart_supply *supply)
{
	must(((struct memory_fabric *) fabric)->memory == memory, "test_memory_supply");
	*supply = (struct smart_supply){
		.env = env,
		.fabric = fabric,
		.timeout_ms = 10000,
		.reachable = memory_reachable,
		.take_chunk = memory_take_chunk,
		.make_tree = memory_make_tree,
	};
}

bool
test_memory_give_chunk(struct test_memory *memory, unsigned int number, uint32_t chunk)
{
	struct test_memory_node *node = &memory->node[number];
	bool given = false;

	pthread_mutex_lock(&memory->mutex);
	if (!node->down && chunk > 0 && chunk < node->chunks && node->taken[chunk])
	{
		node->taken[chunk] = 0;
		node->taken_count--;
		memset(node->base + chunk * CHUNK_BYTES, 0xa5, CHUNK_BYTES);
		given = true;
	}
	pthread_mutex_unlock(&memory->mutex);
	return given;
}

bool
test_memory_drop_tree(struct test_memory *memory, unsigned int number, uint64_t id)
{
	struct test_memory_node *node = &memory->node[number];
	bool reached;

	pthread_mutex_lock(&memory->mutex);
	reached = !node->down;
	for (unsigned int i = 0; i < TEST_MEMORY_ROOTS && reached; i++)
		if (node->tree[i] == id)
		{
			node->tree[i] = 0;
			node->tree_count--;
			memset(node->base + i * ROOT_BYTES, 0xa5, ROOT_BYTES);
		}
	pthread_mutex_unlock(&memory->mutex);
	return reached;
}
