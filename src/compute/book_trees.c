/*
 * book_trees.c
 *	  Trees of a book: the record is in the book, the root slot on a memory node.
 *
 * The record is made first, since a memory node must not have a tree of which the
 * book knows nothing, unless a request was given up.  Then a record without a tree is a duty to
 * drop what the node may have made.  Each memory node that is asked is asked for another id,
 * so that such a duty never meets the tree that was made at last.
 */
#include "compute/book_parts.h"

struct wish
{
	const struct smart_tree_owner *owner;
	uint64_t id;
	fabric_address root;
};

/* One more, or one less, record that refers to a memory node; false: the node is not active. */
static bool
count_tree(struct smart_space *space, unsigned int node, bool more)
{
	struct smart_book_node *entry = smart_book_node_at(space->region, node);
	bool active;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	active = entry->state == SMART_NODE_ACTIVE;
	if (!more)
	{
		smart_assert(entry->trees > 0);
		entry->trees--;
		smart_book_release_node(space->region, node);
	}
	else if (active)
		entry->trees++;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return active;
}

static bool
is_active(struct smart_space *space, unsigned int node)
{
	bool active;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	active = smart_book_node_at(space->region, node)->state == SMART_NODE_ACTIVE;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return active;
}

void
smart_book_forget_tree(struct smart_space *space, uint32_t number)
{
	unsigned int node = smart_record_at(space->region, number)->node;

	smart_record_free(space, number);
	(void) count_tree(space, node, false);
}

void
smart_book_tree_dropped(struct smart_space *space, uint32_t number, uint64_t id)
{
	struct smart_record *record = smart_record_at(space->region, number);
	struct smart_book_node *entry = smart_book_node_at(space->region, record->node);

	smart_assert(record->id == 0 && record->slabs == 0);
	/* smart_book_lose_node() looks at dropping records under the directory's lock after it has changed the node's state. */
	if (!is_active(space, record->node))
	{
		smart_book_forget_tree(space, number);
		return;
	}
	record->dropped = id;
	smart_record_set_state(record, SMART_RECORD_DROPPING);
	record->next = entry->dropping;
	entry->dropping = number;
}

/* A record for a tree that is to have its root slot on the node. */
static smart_status
reserve(struct smart_space *space, const struct smart_tree_owner *owner, unsigned int node, uint32_t *number)
{
	smart_status status;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	if (!count_tree(space, node, true))
		status = SMART_UNREACHABLE;
	else
	{
		status = smart_record_make(space, owner, SMART_RECORD_MAKING, node, number);
		if (status != SMART_OK)
			(void) count_tree(space, node, false);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return status;
}

/* The record comes out of its bucket without having been a tree. */
static void
unmake(struct smart_space *space, uint32_t number, bool nothing_made)
{
	struct smart_record *record = smart_record_at(space->region, number);
	uint64_t id = record->id;

	(void) smart_record_unlink(space, id);
	__atomic_store_n(&record->id, 0, __ATOMIC_RELEASE);
	if (nothing_made)
		smart_book_forget_tree(space, number);
	else
		smart_book_tree_dropped(space, number, id);
}

/* What the memory node has answered. */
static smart_status
conclude(struct smart_space *space, uint32_t number, fabric_address root, smart_status answer)
{
	struct smart_region_header *header = smart_region_header(space->region);
	struct smart_record *record = smart_record_at(space->region, number);

	if (answer == SMART_OK && (fabric_node(root) != record->node || root == 0 || root % SMART_UNIT != 0))
		answer = SMART_CORRUPT;
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	if (answer == SMART_OK && !is_active(space, record->node))
		answer = SMART_UNREACHABLE;
	if (answer == SMART_OK)
	{
		__atomic_store_n(&record->root_address, root, __ATOMIC_RELAXED);
		smart_record_set_state(record, SMART_RECORD_PLAIN);
		__atomic_store_n(&header->trees, header->trees + 1, __ATOMIC_RELAXED);
	}
	else
		unmake(space, number, answer == SMART_NO_SPACE);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return answer;
}

static smart_status
make_on(struct smart_space *space, unsigned int node, void *argument)
{
	struct wish *wish = argument;
	fabric_address root = 0;
	uint32_t number;
	uint64_t id;
	smart_status status = reserve(space, wish->owner, node, &number);

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

smart_status
smart_book_create_tree(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id,
					   fabric_address *root)
{
	struct smart_env *env = space->supply->env;
	uint64_t deadline = env->now_ns(env) + (uint64_t) space->supply->timeout_ms * 1000000;
	struct wish wish = {.owner = owner};
	smart_status status =
		smart_book_ask(space, &smart_region_header(space->region)->tree_turn, deadline, make_on, &wish);

	if (status != SMART_OK)
		return status;
	*id = wish.id;
	*root = wish.root;
	return SMART_OK;
}
