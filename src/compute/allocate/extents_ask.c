/*
 * extents_ask.c
 *	  What the extent map asks of memory nodes: chunks, and roots of trees.
 *
 * Which nodes are asked, and in which order, placement.c says.  They are never asked while a lock is held.
 *
 * Chunks.  One client at a time asks for a chunk; the other clients wait until it is done, and look again.  Those that
 * wanted it from the same node first take over the reason of its failure, so that not each of them waits for a memory
 * node that does not reply.  A chunk that is leaving, and whose node has not heard of that, is taken back.  While a
 * chunk may be on its way to its node, nodes that are full are asked again.
 *
 * Trees.  The record is in the extent map, the root slot on a memory node.  The record is made first, so that a memory
 * node has no tree of which the extent map knows nothing.  If a request is given up, the record becomes a pending free
 * to drop what the node may have made.  Each memory node is asked for another id, so that such a pending free never
 * meets the tree that was made at last.
 *
 * Progress: a client that waits is blocked by the client that asks, whose request has a time limit; an interrupt ends
 * either.  A client that is interrupted leaves the growth to another one.
 */
#include <stdio.h>
#include <string.h>

#include "compute/allocate/extents_parts.h"
#include "compute/allocate/placement.h"

#define CLEAR_AT_ONCE (1u << (SMART_PAGE_ORDERS - 1)) /* WRITEs of a batch */
#define ON_ITS_WAY_NS UINT64_C(1000000000)
#define SLEEP         1000 /* an attempt at which env->pause() sleeps */

typedef smart_status (*question_fn)(struct smart_space *space, unsigned int node, void *argument);

void
smart_extents_explain(struct smart_space *space, const char *problem)
{
	struct fabric *fabric = space->supply->fabric;

	snprintf(fabric->problem, sizeof(fabric->problem), "%s", problem);
}

/*
 * Puts a question to memory nodes, in this order, until one replies SMART_OK; nodes that are full or fail are passed
 * over.  SMART_NO_SPACE: all are full; SMART_INTERRUPTED, SMART_NO_MEMORY at once; SMART_TIMEOUT after the deadline;
 * else the failure of a node, SMART_UNREACHABLE if there is none.
 */
static smart_status
ask(struct smart_space *space, const uint8_t *nodes, unsigned int count, uint64_t deadline_ns, question_fn question,
	void *argument)
{
	struct smart_supply *supply = space->supply;
	struct smart_env *env = supply->env;
	smart_status result = SMART_NO_SPACE;

	if (count == 0)
	{
		smart_extents_explain(space, "no memory node has been connected yet, or all were lost or are to be taken away");
		return SMART_UNREACHABLE;
	}
	for (unsigned int i = 0; i < count; i++)
	{
		smart_status status = SMART_UNREACHABLE;

		if (env->interrupted(env))
			return SMART_INTERRUPTED;
		if (i > 0 && env->now_ns(env) >= deadline_ns)
			return SMART_TIMEOUT;
		if (supply->reachable(supply, nodes[i]))
			status = question(space, nodes[i], argument);
		if (status == SMART_OK || status == SMART_INTERRUPTED || status == SMART_NO_MEMORY)
			return status;
		/* A node that may have room some day is more of a reason than those that are full. */
		if (status != SMART_NO_SPACE)
			result = status;
	}
	if (result == SMART_NO_SPACE)
		smart_extents_explain(space, "all memory nodes are full");
	return result;
}

/* ---- chunks ---- */

/* Sees to it that any one place of the node can be mapped.  Errors of smart_pages_take_home. */
static smart_status
prepare_map(struct smart_space *space, unsigned int node)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_extents_node *entry = smart_extents_node_at(space->region, node);
	smart_status status = SMART_OK;
	uint32_t page;

	/* The client that grows is the only one that changes these two. */
	smart_assert(header->growing);
	if (entry->map == 0)
	{
		status = smart_pages_take_home(space, 0, &page);
		if (status == SMART_OK)
			__atomic_store_n(&entry->map, page, __ATOMIC_RELEASE);
	}
	if (status == SMART_OK && header->map_reserve == 0)
		status = smart_pages_take_home(space, 0, &header->map_reserve);
	return status;
}

/* What a client that grows the extent map wants. */
struct want
{
	uint32_t record; /* of the tree */
	unsigned int order;
};

/* The node has what is wanted already, or a chunk that is leaving it; under the page allocator's lock. */
static bool
find_there(struct smart_space *space, unsigned int node, const struct want *want)
{
	return smart_pages_available(space, node, want->order) ||
		   (smart_placement_is_usable(space->region, node) && smart_chunk_take_back(space->region, node));
}

/* Takes a chunk from one memory node.  All that could fail on our side is done before it is asked. */
static smart_status
take_chunk(struct smart_space *space, unsigned int node, uint64_t *incarnation, uint32_t *place)
{
	struct smart_region_header *header = smart_region_header(space->region);
	smart_status status = prepare_map(space, node);

	if (status != SMART_OK)
		return status;
	/* From here on until the chunk is mapped, the extent map does not know it; smart_extents_has_chunk keeps it meanwhile. */
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	header->growing_node = node;
	*incarnation = smart_extents_node_at(space->region, node)->incarnation;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return space->supply->take_chunk(space->supply, node, place);
}

/* Pages on one memory node, which becomes the tree's home then. */
static smart_status
ask_for_pages(struct smart_space *space, unsigned int node, void *argument)
{
	const struct want *want = argument;
	smart_status status = SMART_OK;
	uint64_t incarnation;
	uint32_t place;
	bool found;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	found = find_there(space, node, want);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	if (!found)
		status = take_chunk(space, node, &incarnation, &place);
	if (status != SMART_OK)
		return status;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (!found)
		status = smart_chunk_add_remote(space->region, node, incarnation, place);
	if (status == SMART_OK && smart_placement_home(space, want->record) != node)
		smart_placement_move(space, want->record, node);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return status;
}

/* Sees to it that there are pages for a tree, on its home if that has room; by the client that grows. */
static smart_status
get_pages(struct smart_space *space, struct want *want, uint64_t deadline_ns)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_env *env = space->supply->env;
	smart_status status = SMART_OK;

	/* Room in the extent map's file for a chunk's head comes first. */
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	if (header->unused_chunk == 0 && header->remote_chunks == header->heads)
		status = smart_region_extend_heads(space->region);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	for (unsigned int attempt = 0; status == SMART_OK; attempt++)
	{
		uint8_t nodes[FABRIC_NODES_MAX];
		unsigned int count;
		uint64_t told_ns;
		uint64_t now_ns;

		space->locks->acquire(space->locks, SMART_LOCK_PAGES);
		count = smart_placement_order(space, want->record, nodes);
		space->locks->release(space->locks, SMART_LOCK_PAGES);
		status = ask(space, nodes, count, deadline_ns, ask_for_pages, want);
		if (status != SMART_NO_SPACE)
			break;
		/*
		 * The nodes said that they are full, but may have room in a moment.  A time from before a restart of the host may
		 * lie ahead: then the difference is very large.
		 */
		space->locks->acquire(space->locks, SMART_LOCK_PAGES);
		told_ns = header->told_ns;
		space->locks->release(space->locks, SMART_LOCK_PAGES);
		now_ns = env->now_ns(env);
		if (now_ns >= deadline_ns || now_ns - told_ns >= ON_ITS_WAY_NS)
			break;
		env->pause(env, SLEEP + attempt);
		status = SMART_OK;
	}
	return status;
}

/* Waits for the growth that began when so many had ended; home: where this client wants its pages from first. */
static smart_status
wait_for_growth(struct smart_space *space, uint64_t growths, unsigned int home, uint64_t deadline_ns)
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
			smart_extents_explain(space, "another session asks the memory nodes for memory and has no reply yet");
			return SMART_TIMEOUT;
		}
		env->pause(env, attempt);
	}
	status = (smart_status) __atomic_load_n(&header->growth_status, __ATOMIC_RELAXED);
	/* What stopped the other client need not stop this one. */
	if (status == SMART_INTERRUPTED || status == SMART_NO_MEMORY ||
		__atomic_load_n(&header->growth_home, __ATOMIC_RELAXED) != home)
		return SMART_OK;
	if (status != SMART_OK)
		smart_extents_explain(space, "another session asked the memory nodes for memory and got none");
	return status;
}

/* As smart_storage.grow: takes a chunk from a memory node, or waits for the client that does. */
static smart_status
grow(struct smart_space *space, uint32_t record, unsigned int order, uint64_t *deadline_ns)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct want want = {.record = record, .order = order};
	unsigned int home;
	smart_status status;
	uint64_t growths;
	bool needless;
	bool mine;

	if (*deadline_ns == 0)
		*deadline_ns = smart_deadline_ns(space->supply->env, space->supply->timeout_ms);
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	growths = header->growths;
	home = smart_placement_home(space, record);
	needless = smart_pages_available(space, home, order);
	mine = !needless && !header->growing;
	if (mine)
	{
		header->growing = true;
		header->growing_node = FABRIC_NODES_MAX;
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	if (needless)
		return SMART_OK;
	if (!mine)
		return wait_for_growth(space, growths, home, *deadline_ns);
	/* No other client grows the extent map from here on until this one has ended. */
	smart_assert(header->growing);
	status = get_pages(space, &want, *deadline_ns);

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	smart_assert(header->growing && header->growths == growths);
	header->growing = false;
	__atomic_store_n(&header->growth_status, (uint32_t) status, __ATOMIC_RELAXED);
	__atomic_store_n(&header->growth_home, home, __ATOMIC_RELAXED);
	/* Release: a client that sees the number sees the status.  Partner: wait_for_growth. */
	__atomic_store_n(&header->growths, header->growths + 1, __ATOMIC_RELEASE);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return status;
}

/* ---- trees ---- */

struct wish
{
	const struct smart_tree_owner *owner;
	uint64_t id;
	fabric_address root;
};

/* The memory node has replied: the record is a tree now, or comes out of its bucket without having been one. */
static smart_status
conclude(struct smart_space *space, uint32_t number, fabric_address root, smart_status reply)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_record *record = smart_record_at(space->region, number);
	uint64_t id = record->id;

	if (reply == SMART_OK && (fabric_node(root) != record->node || root == 0 || root % SMART_UNIT != 0))
		reply = SMART_CORRUPT;
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	smart_assert(id != 0 && record->state == SMART_RECORD_MAKING && record->slabs == 0);
	/* Lost or closed since it was asked. */
	if (reply == SMART_OK && !smart_extents_node_is_open(space->region, record->node))
		reply = SMART_UNREACHABLE;
	if (reply == SMART_OK)
	{
		__atomic_store_n(&record->root_address, root, __ATOMIC_RELAXED);
		smart_record_set_state(record, SMART_RECORD_PLAIN);
		__atomic_store_n(&header->trees, header->trees + 1, __ATOMIC_RELAXED);
	}
	else
	{
		(void) smart_record_unlink(space, id);
		__atomic_store_n(&record->id, 0, __ATOMIC_RELEASE);
		/* Only a node that was full has certainly made nothing. */
		if (reply == SMART_NO_SPACE)
			smart_extents_forget_tree(space, number);
		else
			smart_extents_tree_dropped(space, number, id);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return reply;
}

static smart_status
ask_for_tree(struct smart_space *space, unsigned int node, void *argument)
{
	struct wish *wish = argument;
	fabric_address root = 0;
	uint32_t number;
	uint64_t id;
	smart_status status = SMART_UNREACHABLE;

	/* A record for a tree that is to have its root slot on the node. */
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	if (smart_extents_count_tree(space, node, true))
	{
		status = smart_record_make(space, wish->owner, SMART_RECORD_MAKING, node, &number);
		if (status != SMART_OK)
			(void) smart_extents_count_tree(space, node, false);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	if (status != SMART_OK)
		return status;
	id = smart_record_at(space->region, number)->id;
	status = space->supply->make_tree(space->supply, node, id, wish->owner, &root);
	status = conclude(space, number, root, status);
	if (status == SMART_OK)
	{
		wish->id = id;
		wish->root = root;
	}
	return status;
}

static smart_status
create_tree(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id, fabric_address *root)
{
	struct wish wish = {.owner = owner};
	uint64_t deadline_ns = smart_deadline_ns(space->supply->env, space->supply->timeout_ms);
	uint8_t nodes[FABRIC_NODES_MAX];
	unsigned int count;
	smart_status status;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	count = smart_placement_order(space, 0, nodes);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	status = ask(space, nodes, count, deadline_ns, ask_for_tree, &wish);
	if (status != SMART_OK)
		return status;
	smart_assert(wish.id != 0 && wish.root != 0);
	*id = wish.id;
	*root = wish.root;
	return SMART_OK;
}

/* ---- the rest of what a space asks of its storage ---- */

/* By WRITEs. */
static smart_status
clear(struct smart_space *space, uint32_t page, unsigned int order)
{
	static uint8_t zeros[SMART_PAGE_BYTES];
	struct fabric_request requests[CLEAR_AT_ONCE];
	int count = 1 << order;

	smart_assert(order < SMART_PAGE_ORDERS);
	memset(requests, 0, sizeof(requests));
	for (int i = 0; i < count; i++)
	{
		requests[i].verb = FABRIC_WRITE;
		requests[i].length = SMART_PAGE_BYTES;
		requests[i].remote = smart_page_address(space, page + (uint32_t) i);
		requests[i].local = zeros;
	}
	return fabric_execute(space->supply->fabric, requests, count);
}

static void
usage(const struct smart_region *extents, struct smart_space_usage *usage)
{
	const struct smart_region_header *header = smart_region_header(extents);

	usage->size = (uint64_t) header->blocks.chunks * SMART_CHUNK_BYTES;
	usage->max_size = (uint64_t) SMART_REMOTE_CHUNKS_MAX * SMART_CHUNK_BYTES;
	usage->used = (uint64_t) header->blocks.used * SMART_PAGE_BYTES;
	usage->own = header->size + (uint64_t) header->heads * SMART_HEAD_BYTES;
}

const struct smart_storage smart_extents_storage = {
	.page_of = smart_extents_page_of,
	.clear = clear,
	.grow = grow,
	.create_tree = create_tree,
	.tree_dropped = smart_extents_tree_dropped,
	.usage = usage,
};
