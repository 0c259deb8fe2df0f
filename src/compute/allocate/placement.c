/*
 * placement.c
 *	  On which memory nodes the blocks of a tree lie.
 *
 * A small tree lies on one memory node, its home, so that the loss of another one is not its own.  A large tree is
 * spread, so that its size and its load are shared: its home moves on with every few pages.
 *
 * Homes of new trees, and the next homes of large ones, are chosen in proportion to the nodes' room, equal ones in
 * turn: each time every node gets as much credit as it has room, and the one with the most credit pays what all got.
 * So no node gets all of what is made at a time, as one would that had the most room.
 *
 * A large tree leaves the home that it has, unless that has more credit than the others by all that a choice pays:
 * trees that grow by turns would else each come to the same nodes again and again.  Credits stay small all the same,
 * so that the pages of all trees are in proportion to the room.
 *
 * Room is what a node said last (smart_extents_set_room), less the chunks that were taken since, with those that are
 * leaving since, and the free pages of the chunks that the extent map has there.  Other servers may have taken it
 * meanwhile: a node that turns out to be full, or does not answer, is passed over, and the one that has pages instead
 * becomes the home.
 *
 * A home is a hint.  Whatever it is, a tree finds its blocks; so it is stored without its record's locks, and recovery
 * leaves it.
 */
#include "compute/allocate/placement.h"

static uint64_t
room_of(const struct smart_extents_node *entry)
{
	uint64_t chunks = entry->capacity != 0 ? entry->room : SMART_ROOM_UNKNOWN;

	/* One more: where all are full, they take turns, too. */
	return chunks * SMART_CHUNK_PAGES + entry->pages_free + 1;
}

bool
smart_placement_is_usable(const struct smart_region *extents, unsigned int node)
{
	return smart_extents_node_is_active(extents, node) &&
		   !smart_extents_node_is_barred(smart_extents_node_at(extents, node));
}

/* Every node that may be used gets as much credit as it has room; the sum of that. */
static int64_t
give_credit(const struct smart_region *extents, enum smart_node_choice choice)
{
	int64_t total = 0;

	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		struct smart_extents_node *entry = smart_extents_node_at(extents, i);

		if (entry == NULL || !smart_placement_is_usable(extents, i))
			continue;
		entry->credit[choice] += (int64_t) room_of(entry);
		total += (int64_t) room_of(entry);
	}
	return total;
}

/*
 * One of the nodes that may be used, in proportion to their room; FABRIC_NODES_MAX: there is none.  left: the home that
 * the tree has had, or FABRIC_NODES_MAX.
 */
static unsigned int
choose(const struct smart_region *extents, enum smart_node_choice choice, unsigned int left)
{
	int64_t total = give_credit(extents, choice);
	unsigned int best = FABRIC_NODES_MAX;
	int64_t most = 0;

	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		const struct smart_extents_node *entry = smart_extents_node_at(extents, i);
		int64_t credit;

		if (entry == NULL || !smart_placement_is_usable(extents, i))
			continue;
		credit = entry->credit[choice] - (i == left ? total : 0);
		if (best == FABRIC_NODES_MAX || credit > most)
		{
			best = i;
			most = credit;
		}
	}
	if (best < FABRIC_NODES_MAX)
		smart_extents_node_at(extents, best)->credit[choice] -= total;
	return best;
}

/* Is a tree of so many pages to stay on this node? */
static bool
is_small(const struct smart_space *space, unsigned int home, uint32_t pages)
{
	uint32_t capacity = smart_extents_node_at(space->region, home)->capacity;

	return pages < space->small_pages &&
		   (capacity == 0 || pages < (uint64_t) capacity * SMART_CHUNK_PAGES / SMART_SMALL_TREE_PART);
}

static uint32_t
pages_of(const struct smart_record *record)
{
	return (uint32_t) __atomic_load_n(&record->pages, __ATOMIC_RELAXED);
}

/* Atomic: a client that uses an older tree of this record may still be about to move that. */
static void
set_home(struct smart_record *record, unsigned int node, uint32_t pages)
{
	smart_assert(node < FABRIC_NODES_MAX);
	__atomic_store_n(&record->home, node + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&record->moves_at, pages + SMART_SPREAD_PAGES, __ATOMIC_RELAXED);
}

void
smart_placement_begin(struct smart_record *record, unsigned int node)
{
	set_home(record, node, 0);
}

void
smart_placement_move(const struct smart_space *space, uint32_t number, unsigned int node)
{
	struct smart_record *record = smart_record_at(space->region, number);

	set_home(record, node, pages_of(record));
}

unsigned int
smart_placement_home(const struct smart_space *space, uint32_t number)
{
	const struct smart_record *record = smart_record_at(space->region, number);
	uint32_t home = __atomic_load_n(&record->home, __ATOMIC_RELAXED);
	uint32_t moves_at = __atomic_load_n(&record->moves_at, __ATOMIC_RELAXED);
	uint32_t pages = pages_of(record);
	unsigned int node;

	/* A large tree stays until it has grown by a few pages; one that has shrunk since moves at once. */
	if (home != 0 && smart_placement_is_usable(space->region, home - 1) &&
		(is_small(space, home - 1, pages) || moves_at - pages - 1 < SMART_SPREAD_PAGES))
		return home - 1;
	node = choose(space->region, SMART_NODE_SPREAD, home == 0 ? FABRIC_NODES_MAX : home - 1);
	if (node < FABRIC_NODES_MAX)
		smart_placement_move(space, number, node);
	return node;
}

/* The greater, the earlier a node is asked. */
static uint64_t
rank_of(const struct smart_region *extents, unsigned int node, unsigned int first)
{
	if (node == first)
		return UINT64_MAX;
	return smart_placement_is_usable(extents, node) ? room_of(smart_extents_node_at(extents, node)) : 0;
}

unsigned int
smart_placement_order(const struct smart_space *space, uint32_t number, uint8_t nodes[FABRIC_NODES_MAX])
{
	const struct smart_region *extents = space->region;
	unsigned int first =
		number != 0 ? smart_placement_home(space, number) : choose(extents, SMART_NODE_HOME, FABRIC_NODES_MAX);
	unsigned int count = 0;

	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		unsigned int place = count;

		if (!smart_extents_node_is_open(extents, i))
			continue;
		for (; place > 0 && rank_of(extents, nodes[place - 1], first) < rank_of(extents, i, first); place--)
			nodes[place] = nodes[place - 1];
		nodes[place] = (uint8_t) i;
		count++;
	}
	smart_assert(first == FABRIC_NODES_MAX || (count > 0 && nodes[0] == first));
	return count;
}
