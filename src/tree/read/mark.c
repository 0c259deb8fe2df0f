/*
 * mark.c
 *	  Walks a tree that stands still by its slots.
 *
 * Links to nodes that were met and not yet READ are on a stack; some of the
 * topmost are READ in one batch, and what they lead to goes on the stack in
 * their place.  So the stack has no more than what a batch brings for each level.
 */
#include <stdio.h>
#include <string.h>

#include "tree/block/handle.h"
#include "tree/read/mark.h"

/* Nodes of one batch: they hide the round trip well enough, and their copies take 33 KiB. */
#define NODES_AT_ONCE 16

#define STACK_FIRST 1024

struct walk
{
	const struct smart_mark *mark;
	smart_slot *stack;
	size_t count;
	size_t capacity;
	uint64_t words[NODES_AT_ONCE][SMART_NODE_WORDS_MAX];
};

static smart_status
corrupt(const struct walk *walk, const char *what, fabric_address where)
{
	snprintf(walk->mark->message, walk->mark->message_size, "%s (%llx)", what, (unsigned long long) where);
	return SMART_CORRUPT;
}

static unsigned int
slots_of(const struct walk *walk, unsigned int kind)
{
	unsigned int tiny = walk->mark->tiny_nodes;

	smart_assert(kind >= 1 && kind <= SMART_NODE_KINDS);
	return tiny != 0 && kind <= SMART_NODE_62 ? tiny + kind - 1 : smart_kind_slots(kind);
}

/* What a slot leads to, if anything. */
static smart_status
follow(struct walk *walk, smart_slot slot)
{
	smart_status status;

	slot &= ~SMART_SLOT_FROZEN;
	if (!smart_slot_used(slot) || smart_slot_is_empty(slot))
		return SMART_OK;
	if (smart_slot_is_node(slot) && (smart_slot_size(slot) < 1 || smart_slot_size(slot) > SMART_NODE_KINDS))
		return corrupt(walk, "a slot leads to a node of no kind", smart_slot_address(slot));
	status = walk->mark->mark(walk->mark->argument, slot);
	if (status != SMART_OK || !smart_slot_is_node(slot))
		return status;
	if (walk->count == walk->capacity)
	{
		struct smart_env *env = walk->mark->env;
		size_t capacity = walk->capacity == 0 ? STACK_FIRST : 2 * walk->capacity;
		smart_slot *stack = env->allocate(env, capacity * sizeof(*stack));

		if (stack == NULL)
			return SMART_NO_MEMORY;
		if (walk->stack != NULL)
		{
			memcpy(stack, walk->stack, walk->count * sizeof(*stack));
			env->release(env, walk->stack);
		}
		walk->stack = stack;
		walk->capacity = capacity;
	}
	smart_assert(walk->count < walk->capacity);
	walk->stack[walk->count++] = slot;
	return SMART_OK;
}

static smart_status
follow_node(struct walk *walk, smart_slot link, const uint64_t *words)
{
	unsigned int kind = smart_slot_size(link);
	unsigned int slots = slots_of(walk, kind);
	enum smart_block_state state = smart_node_state(words[0]);
	smart_status status = SMART_OK;

	if (smart_node_kind(words[0]) != kind || (state != SMART_NEW && state != SMART_LIVE))
		return corrupt(walk, "a slot leads to what is no node of the tree", smart_slot_address(link));
	if (SMART_FAULT(missmark))
	{
		while (slots > 0 && !smart_slot_used(words[SMART_NODE_HEAD_WORDS + slots - 1]))
			slots--;
		slots -= slots > 0;
	}
	for (unsigned int i = 0; i < slots && status == SMART_OK; i++)
		status = follow(walk, words[SMART_NODE_HEAD_WORDS + i]);
	return status;
}

static smart_status
follow_some(struct walk *walk)
{
	struct fabric_request requests[NODES_AT_ONCE];
	smart_slot links[NODES_AT_ONCE];
	unsigned int count = 0;
	smart_status status;

	memset(requests, 0, sizeof(requests));
	for (; count < NODES_AT_ONCE && walk->count > 0; count++)
	{
		links[count] = walk->stack[--walk->count];
		smart_assert(smart_slot_is_node(links[count]));
		requests[count].verb = FABRIC_READ;
		requests[count].remote = smart_slot_address(links[count]);
		requests[count].local = walk->words[count];
		requests[count].length =
			(SMART_NODE_HEAD_WORDS + slots_of(walk, smart_slot_size(links[count]))) * (uint32_t) sizeof(uint64_t);
	}
	status = fabric_execute(walk->mark->fabric, requests, (int) count);
	if (status == SMART_CORRUPT)
		return corrupt(walk, "a slot leads out of the region", smart_slot_address(links[0]));
	for (unsigned int i = 0; i < count && status == SMART_OK; i++)
		status = follow_node(walk, links[i], walk->words[i]);
	return status;
}

smart_status
smart_tree_mark(const struct smart_mark *mark)
{
	struct smart_env *env = mark->env;
	struct walk *walk = env->allocate(env, sizeof(*walk));
	smart_slot root = 0;
	struct fabric_request request = {.verb = FABRIC_READ, .remote = mark->root, .local = &root, .length = sizeof(root)};
	smart_status status;

	if (walk == NULL)
		return SMART_NO_MEMORY;
	walk->mark = mark;
	walk->stack = NULL;
	walk->count = walk->capacity = 0;
	status = fabric_execute(mark->fabric, &request, 1);
	if (status == SMART_OK && (!smart_slot_used(root) || smart_slot_frozen(root)))
		status = corrupt(walk, "a tree has no root", mark->root);
	if (status == SMART_OK)
		status = follow(walk, root);
	while (status == SMART_OK && walk->count > 0)
		status = env->interrupted(env) ? SMART_INTERRUPTED : follow_some(walk);
	if (walk->stack != NULL)
		env->release(env, walk->stack);
	env->release(env, walk);
	return status;
}
