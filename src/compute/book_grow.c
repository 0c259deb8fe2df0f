/*
 * book_grow.c
 *	  A book gets another chunk.
 *
 * One client at a time asks memory nodes, without a lock; the others wait until
 * it is done and look again.  They take over why it failed, so that a memory node
 * that does not answer is not waited for by each of them in turn.
 *
 * Progress: a client that waits is blocked by the one that asks, whose request
 * is bounded by its time limit; either ends at an interrupt.  A client that is
 * interrupted leaves the growth to another one.
 *
 * A chunk that is leaving, and whose node has not heard of it, is taken back.  While
 * one may be on its way to its node, nodes that are full are asked again.
 */
#include "compute/book_parts.h"

#define ON_ITS_WAY_NS UINT64_C(1000000000)
#define SLEEP         1000 /* an attempt at which env->pause() sleeps */

enum claim
{
	CLAIM_MINE,  /* this client grows the book */
	CLAIM_OTHER, /* somebody else does */
	CLAIM_NEEDLESS
};

static enum claim
claim(struct smart_space *space, unsigned int order, uint64_t *growths)
{
	struct smart_region_header *header = smart_region_header(space->region);
	enum claim result = CLAIM_OTHER;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	*growths = header->growths;
	if (smart_pages_available(space, SMART_PAGES_BLOCKS, order))
		result = CLAIM_NEEDLESS;
	else if (!header->growing)
	{
		header->growing = true;
		header->growing_node = FABRIC_NODES_MAX;
		result = CLAIM_MINE;
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return result;
}

static void
end_growth(struct smart_space *space, smart_status status)
{
	struct smart_region_header *header = smart_region_header(space->region);

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	smart_assert(header->growing);
	header->growing = false;
	__atomic_store_n(&header->growth_status, (uint32_t) status, __ATOMIC_RELAXED);
	/* Release: who sees the number sees the status.  Partner: wait_for_growth. */
	__atomic_store_n(&header->growths, header->growths + 1, __ATOMIC_RELEASE);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

/* Waits for the growth that began when so many had ended. */
static smart_status
wait_for_growth(struct smart_space *space, uint64_t growths, uint64_t deadline_ns)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	struct smart_env *env = space->supply->env;
	smart_status status;

	for (unsigned int attempt = 0; __atomic_load_n(&header->growths, __ATOMIC_ACQUIRE) == growths; attempt++)
	{
		if (env->interrupted(env))
			return SMART_INTERRUPTED;
		if (env->now_ns(env) >= deadline_ns)
		{
			smart_book_explain(space, "another session asks the memory nodes for memory and has no answer yet");
			return SMART_TIMEOUT;
		}
		env->pause(env, attempt);
	}
	status = (smart_status) __atomic_load_n(&header->growth_status, __ATOMIC_RELAXED);
	/* What stopped the other client does not stop this one. */
	if (status == SMART_INTERRUPTED || status == SMART_NO_MEMORY)
		return SMART_OK;
	if (status != SMART_OK)
		smart_book_explain(space, "another session asked the memory nodes for memory and got none");
	return status;
}

/* Room in the book's file for the head of one more chunk. */
static smart_status
prepare_head(struct smart_space *space)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	smart_status status = SMART_OK;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (header->unused_chunk == 0 && header->remote_chunks == header->heads)
		status = smart_region_extend_heads(space->region);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return status;
}

/* Takes a chunk from one memory node.  All that could fail on our side is done before it is asked. */
static smart_status
grow_from(struct smart_space *space, unsigned int node, void *argument)
{
	struct smart_region_header *header = smart_region_header(space->region);
	smart_status status = smart_book_prepare_map(space, node);
	uint64_t incarnation;
	uint32_t place;

	if (status != SMART_OK)
		return status;
	/* From here on until it is in the map the chunk is unknown to the book, but not to be freed (smart_book_has_chunk). */
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	header->growing_node = node;
	incarnation = smart_book_node_at(space->region, node)->incarnation;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	status = space->supply->take_chunk(space->supply, node, &place);
	if (status != SMART_OK)
		return status;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	status = smart_book_add_chunk(space->region, node, incarnation, place);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return status;
}

static bool
take_back(struct smart_space *space)
{
	bool taken;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	taken = smart_book_take_back(space->region);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return taken;
}

/* Full as they said they are, may the nodes have room in a moment? */
static bool
is_on_its_way(struct smart_space *space, uint64_t deadline_ns)
{
	struct smart_env *env = space->supply->env;
	uint64_t now_ns = env->now_ns(env);
	uint64_t told_ns;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	told_ns = smart_region_header(space->region)->told_ns;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	/* A time of before a restart of the host may lie ahead: then the difference is very large. */
	return now_ns < deadline_ns && now_ns - told_ns < ON_ITS_WAY_NS;
}

/* A chunk that is leaving, or else one of a memory node. */
static smart_status
grow(struct smart_space *space, uint64_t deadline_ns)
{
	uint32_t *turn = &smart_region_header(space->region)->chunk_turn;
	struct smart_env *env = space->supply->env;

	for (unsigned int attempt = 0;; attempt++)
	{
		smart_status status;

		if (take_back(space))
			return SMART_OK;
		status = smart_book_ask(space, turn, deadline_ns, grow_from, NULL);
		if (status != SMART_NO_SPACE || !is_on_its_way(space, deadline_ns))
			return status;
		env->pause(env, SLEEP + attempt);
	}
}

smart_status
smart_book_grow(struct smart_space *space, unsigned int order, uint64_t deadline_ns)
{
	smart_status status;
	uint64_t growths;

	switch (claim(space, order, &growths))
	{
		case CLAIM_NEEDLESS:
			return SMART_OK;
		case CLAIM_OTHER:
			return wait_for_growth(space, growths, deadline_ns);
		case CLAIM_MINE:
			break;
	}
	status = prepare_head(space);
	if (status == SMART_OK)
		status = grow(space, deadline_ns);
	end_growth(space, status);
	return status;
}
