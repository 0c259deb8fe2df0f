/*
 * balance.c
 *	  Which trees have to move so that memory nodes become equally full.
 *
 * Another tree lies where there is room, in proportion to that (src/compute/allocate/placement.h).  So a tree that is loaded
 * anew leaves nodes that are fuller than others for those that are emptier, by and large, and the larger it is the more it
 * evens out.  What is chosen is noted with the tree, in the extent map, and outlives the server.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/compat.h"
#include "am/index/trees.h"
#include "am/maintenance/balance.h"
#include "am/nodes/peers.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "compute/allocate/extents.h"

#define NEARLY_EVEN 20 /* nodes are even if together they are out by no more than one part in so many */
#define FEW_PAGES   (4 * SMART_CHUNK_PAGES)

struct chosen
{
	uint64 tree;
	uint64 pages; /* on all nodes */
	bool before;  /* it is chosen now */
};

/* How many pages nodes have, and are used; nodes that are not open are left out. */
struct balance
{
	double capacity[FABRIC_NODES_MAX]; /* in pages; 0: not open */
	double used[FABRIC_NODES_MAX];
	double all_capacity;
	double all_used;
};

static void
measure(struct smart_space *space, struct balance *balance)
{
	smart_assert(smart_server.remote && smart_server.peers != NULL);
	memset(balance, 0, sizeof(*balance));
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		struct smart_node_info info;
		struct smart_peer peer;

		if (!smart_extents_node_info(space, node, &info) || info.state != SMART_NODE_ACTIVE || info.closed ||
			!smart_peer_get(smart_server.peers, node, &peer) || peer.state != SMART_PEER_UP || peer.capacity == 0)
			continue;
		balance->capacity[node] = (double) peer.capacity / SMART_PAGE_BYTES;
		balance->used[node] = (double) info.pages_used;
		balance->all_capacity += balance->capacity[node];
		balance->all_used += balance->used[node];
	}
}

/* By how many pages the nodes are out, together. */
static double
imbalance(const struct balance *balance)
{
	double sum = 0;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		double out = balance->used[node];

		if (balance->capacity[node] == 0)
			continue;
		smart_assert(balance->all_capacity >= balance->capacity[node]);
		out -= balance->all_used * balance->capacity[node] / balance->all_capacity;
		sum += out < 0 ? -out : out;
	}
	return sum;
}

/* Moves a tree with so many pages on the nodes: it goes where there is room, in proportion to that. */
static void
move_in_mind(struct balance *balance, const uint64_t pages[FABRIC_NODES_MAX])
{
	double moved = 0;
	double room;

	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (balance->capacity[node] == 0)
			continue;
		balance->used[node] -= (double) pages[node];
		moved += (double) pages[node];
	}
	room = balance->all_capacity - (balance->all_used - moved);
	for (unsigned int node = 0; node < FABRIC_NODES_MAX && room > 0; node++)
		balance->used[node] += moved * Max(balance->capacity[node] - balance->used[node], 0) / room;
}

/* qsort's: larger trees first. */
static int
compare_pages(const void *a, const void *b)
{
	const struct chosen *left = a;
	const struct chosen *right = b;

	return (left->pages < right->pages) - (left->pages > right->pages);
}

/* All trees of permanent tables that are not about to leave, the larger ones first. */
static struct chosen *
list_trees(struct smart_space *space, uint32 *count)
{
	uint32 room = 256;
	struct chosen *trees = palloc(room * sizeof(*trees));
	struct smart_tree_info info;
	uint64 cursor = 0;

	*count = 0;
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (info.lost || info.owner.backend != SMART_NO_BACKEND || smart_tree_is_followed(&info) ||
			smart_rebuild_holds_tree(info.id))
			continue;
		smart_assert(*count <= room);
		if (*count == room)
			trees = repalloc_huge(trees, (room *= 2) * sizeof(*trees));
		trees[(*count)++] =
			(struct chosen){.tree = info.id, .pages = info.pages, .before = smart_tree_is_chosen(&info)};
	}
	qsort(trees, *count, sizeof(*trees), compare_pages);
	return trees;
}

static bool
is_even(const struct balance *balance)
{
	return imbalance(balance) <= Max(balance->all_used / NEARLY_EVEN, (double) FEW_PAGES);
}

/* Would the move of a tree even out the nodes?  Then it is one in mind. */
static bool
helps(struct smart_space *space, struct balance *balance, uint64 tree)
{
	struct balance moved = *balance;
	uint64_t pages[FABRIC_NODES_MAX];

	smart_assert(tree != 0);
	if (is_even(balance) || !smart_space_tree_nodes(space, tree, pages))
		return false;
	move_in_mind(&moved, pages);
	if (imbalance(&moved) >= imbalance(balance))
		return false;
	*balance = moved;
	return true;
}

uint64
smart_balance_choose(struct smart_space *space)
{
	struct balance balance;
	uint32 count;
	struct chosen *trees = list_trees(space, &count);
	uint64 chosen = 0;

	measure(space, &balance);
	for (uint32 i = 0; i < count; i++)
	{
		bool chooses;

		CHECK_FOR_INTERRUPTS();
		chooses = helps(space, &balance, trees[i].tree);
		if (chooses != trees[i].before)
			(void) smart_space_put_note(space, trees[i].tree, SMART_NOTE_CHOSEN, chooses ? SMART_CHOSEN : 0);
		chosen += chooses;
	}
	smart_assert(chosen <= count);
	pfree(trees);
	return chosen;
}

void
smart_balance_forget(struct smart_space *space)
{
	struct smart_tree_info info;
	uint64 cursor = 0;

	smart_assert(smart_server.remote);
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (smart_tree_is_chosen(&info))
			(void) smart_space_put_note(space, info.id, SMART_NOTE_CHOSEN, 0);
	}
}
