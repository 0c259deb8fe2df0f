/*
 * gather.c
 *	  WRITEs that wait for one another and are posted together.
 *
 * A bulk load makes blocks that no client sees before the root is linked, so none
 * of them is urgent: they are copied here and posted in batches, a round trip
 * each.  A WRITE that begins where the one before it ends becomes part of it.
 *
 * Order: all that was gathered is complete when the flush returns; before that
 * nothing may be linked that leads to it.
 */
#include "tree/block/gather.h"

#define REQUESTS_MAX 64
#define BYTES_MAX    (256 * 1024)

_Static_assert(BYTES_MAX >= SMART_LEAF_BYTES_MAX, "every block finds room when all others have been posted");

struct smart_gather
{
	smart_status status; /* of the first batch that failed: nothing is posted after it */
	int count;
	uint32_t used;
	struct fabric_request requests[REQUESTS_MAX];
	uint8_t bytes[BYTES_MAX];
};

struct smart_gather *
smart_gather_open(struct smart_env *env)
{
	struct smart_gather *gather = env->allocate(env, sizeof(*gather));

	if (gather == NULL)
		return NULL;
	gather->status = SMART_OK;
	gather->count = 0;
	gather->used = 0;
	return gather;
}

bool
smart_await(struct smart_tree *tree, smart_status status, uint64_t *since_ns)
{
	struct smart_services *services = tree->services;

	smart_assert(!tree->entered && tree->locked == 0);
	return status != SMART_OK && services->await != NULL && services->await(services, status, since_ns);
}

smart_status
smart_gather_flush(struct smart_tree *tree, struct smart_gather *gather)
{
	uint64_t since_ns = 0;

	if (gather->status == SMART_OK && gather->count > 0)
	{
		/* The same bytes once more do no harm. */
		do
			gather->status = fabric_execute(tree->fabric, gather->requests, gather->count);
		while (smart_await(tree, gather->status, &since_ns));
	}
	gather->count = 0;
	gather->used = 0;
	return gather->status;
}

smart_status
smart_gather_write(struct smart_tree *tree, struct smart_gather *gather, fabric_address remote, const void *bytes,
				   size_t length)
{
	struct fabric_request *last;

	smart_assert(length > 0 && length <= SMART_LEAF_BYTES_MAX && !tree->entered);
	if (gather->count == REQUESTS_MAX || gather->used + length > BYTES_MAX)
		smart_gather_flush(tree, gather);
	if (gather->status != SMART_OK)
		return gather->status;
	memcpy(gather->bytes + gather->used, bytes, length);
	last = gather->count > 0 ? &gather->requests[gather->count - 1] : NULL;
	if (last != NULL && last->remote + last->length == remote)
		last->length += (uint32_t) length;
	else
		gather->requests[gather->count++] = (struct fabric_request){.verb = FABRIC_WRITE,
																	.remote = remote,
																	.local = gather->bytes + gather->used,
																	.length = (uint32_t) length};
	gather->used += (uint32_t) length;
	smart_assert(gather->count <= REQUESTS_MAX && gather->used <= BYTES_MAX);
	return SMART_OK;
}
