/*
 * local.c
 *	  The provider for regions that this process has mapped.
 *
 * Progress: wait-free.  A batch runs in order, each verb on its own: atomics
 * are sequentially consistent, so they order everything around them; READ and
 * WRITE move whole aligned words with acquire and release, so that verbs of one
 * client take effect in the order of the batch and a word is never torn.
 */
#include <string.h>

#include "rdma/local.h"

struct fabric_local
{
	struct fabric fabric; /* first */
	struct smart_env *env;
	unsigned int count;
	struct fabric_local_region region[];
};

/* Words and bytes are loaded one by one, since others may store to them meanwhile (their reader checks a crc). */
static void
local_read(uint8_t *to, const uint8_t *from, size_t length)
{
	while (length > 0 && ((uintptr_t) from & 7) != 0)
	{
		*to++ = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
		length--;
	}
	for (; length >= 8; to += 8, from += 8, length -= 8)
	{
		uint64_t word = __atomic_load_n((const uint64_t *) from, __ATOMIC_ACQUIRE);

		memcpy(to, &word, sizeof(word));
	}
	while (length-- > 0)
		*to++ = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
}

static void
local_write(uint8_t *to, const uint8_t *from, size_t length)
{
	while (length > 0 && ((uintptr_t) to & 7) != 0)
	{
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
		length--;
	}
	for (; length >= 8; to += 8, from += 8, length -= 8)
	{
		uint64_t word;

		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *) to, word, __ATOMIC_RELEASE);
	}
	while (length-- > 0)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
}

static smart_status
local_execute_one(struct fabric *fabric, struct fabric_request *request)
{
	bool atomic = fabric_is_atomic(request);
	size_t length = fabric_bytes(request);
	void *memory = fabric_direct(fabric, request->remote, length);

	if (memory == NULL || (atomic && (request->remote & 7) != 0))
		return SMART_CORRUPT;
	smart_assert(length > 0 && (atomic || request->local != NULL));
	switch (request->verb)
	{
		case FABRIC_READ:
			local_read(request->local, memory, length);
			break;
		case FABRIC_WRITE:
			local_write(memory, request->local, length);
			break;
		case FABRIC_CAS:
			/* Sequentially consistent: a verb on a queue pair is one, too. */
			request->result = request->compare;
			__atomic_compare_exchange_n((uint64_t *) memory, &request->result, request->operand, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
			break;
		case FABRIC_FAA:
			request->result = __atomic_fetch_add((uint64_t *) memory, request->operand, __ATOMIC_SEQ_CST);
			break;
		default:
			smart_assert(!"a verb");
			return SMART_CORRUPT;
	}
	fabric_count(fabric, request);
	return SMART_OK;
}

static smart_status
local_execute(struct fabric *fabric, struct fabric_request *requests, int count)
{
	uint64_t seen[FABRIC_NODES_MAX / 64] = {0};

	smart_assert(fabric->direct && count > 0);
	/* A doorbell per memory node of the batch. */
	for (int i = 0; i < count; i++)
	{
		unsigned int node = fabric_node(requests[i].remote);
		uint64_t bit = UINT64_C(1) << (node % 64);

		fabric->counters.doorbells += (seen[node / 64] & bit) == 0;
		seen[node / 64] |= bit;
	}
	fabric->counters.round_trips++;
	for (int i = 0; i < count; i++)
	{
		smart_status status = local_execute_one(fabric, &requests[i]);

		if (status != SMART_OK)
			return status;
	}
	return SMART_OK;
}

/* The region may have grown; what lies behind its size now is never touched. */
static void *
local_extend(struct fabric *fabric, fabric_address address, size_t length)
{
	struct fabric_local *local = (struct fabric_local *) fabric;
	unsigned int node = fabric_node(address);
	struct fabric_window *window = &fabric->window[node];

	if (node >= local->count)
		return NULL;
	smart_assert(window->base == NULL || window->base == local->region[node].base);
	window->base = local->region[node].base;
	window->size = local->region[node].size(local->region[node].argument);
	smart_assert(window->base != NULL && window->size <= FABRIC_OFFSET_MASK + 1);
	if (fabric_offset(address) + length > window->size)
		return NULL;
	return window->base + fabric_offset(address);
}

static void
local_close(struct fabric *fabric)
{
	struct fabric_local *local = (struct fabric_local *) fabric;

	local->env->release(local->env, local);
}

static const struct fabric_provider local_provider = {
	.execute = local_execute,
	.extend = local_extend,
	.close = local_close,
};

smart_status
fabric_local_open(struct smart_env *env, const struct fabric_local_region *regions, unsigned int count,
				  struct fabric **fabric)
{
	size_t bytes = sizeof(struct fabric_local) + count * sizeof(*regions);
	struct fabric_local *local;

	smart_assert(count >= 1 && count <= FABRIC_NODES_MAX);
	local = env->allocate(env, bytes);
	if (local == NULL)
		return SMART_NO_MEMORY;
	memset(local, 0, sizeof(*local));
	local->fabric.provider = &local_provider;
	local->fabric.direct = true;
	local->env = env;
	local->count = count;
	memcpy(local->region, regions, count * sizeof(*regions));
	*fabric = &local->fabric;
	return SMART_OK;
}
