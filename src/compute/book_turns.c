/*
 * book_turns.c
 *	  Whose turn it is: chunks and trees go to the memory nodes one after another,
 *	  so that all of them fill alike.
 */
#include <stdio.h>

#include "compute/book_parts.h"

void
smart_book_explain(struct smart_space *space, const char *problem)
{
	struct fabric *fabric = space->supply->fabric;

	snprintf(fabric->problem, sizeof(fabric->problem), "%s", problem);
}

/* The active memory nodes, the one whose turn it is first; the turn goes on to the next. */
static unsigned int
take_turn(struct smart_space *space, uint32_t *turn, uint8_t nodes[FABRIC_NODES_MAX])
{
	const struct smart_region *book = space->region;
	unsigned int count = 0;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	for (unsigned int i = 0; i < FABRIC_NODES_MAX; i++)
	{
		unsigned int node = (*turn + i) % FABRIC_NODES_MAX;
		const struct smart_book_node *entry = smart_book_node_at(book, node);

		if (entry != NULL && entry->state == SMART_NODE_ACTIVE)
			nodes[count++] = (uint8_t) node;
	}
	if (count > 0)
		*turn = (nodes[0] + 1u) % FABRIC_NODES_MAX;
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return count;
}

static smart_status
ask_one(struct smart_space *space, unsigned int node, smart_book_question question, void *argument)
{
	struct smart_supply *supply = space->supply;

	return supply->reachable(supply, node) ? question(space, node, argument) : SMART_UNREACHABLE;
}

smart_status
smart_book_ask(struct smart_space *space, uint32_t *turn, uint64_t deadline_ns, smart_book_question question,
			   void *argument)
{
	struct smart_env *env = space->supply->env;
	uint8_t nodes[FABRIC_NODES_MAX];
	unsigned int count = take_turn(space, turn, nodes);
	smart_status result = SMART_NO_SPACE;

	if (count == 0)
	{
		smart_book_explain(space, "no memory node has been connected yet, or all were lost");
		return SMART_UNREACHABLE;
	}
	for (unsigned int i = 0; i < count; i++)
	{
		smart_status status;

		if (env->interrupted(env))
			return SMART_INTERRUPTED;
		if (i > 0 && env->now_ns(env) >= deadline_ns)
			return SMART_TIMEOUT;
		status = ask_one(space, nodes[i], question, argument);
		if (status == SMART_OK || status == SMART_INTERRUPTED || status == SMART_NO_MEMORY)
			return status;
		/* A node that may have room some day is more of a reason than those that are full. */
		if (status != SMART_NO_SPACE)
			result = status;
	}
	if (result == SMART_NO_SPACE)
		smart_book_explain(space, "all memory nodes are full");
	return result;
}
