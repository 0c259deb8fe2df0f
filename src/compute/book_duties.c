/*
 * book_duties.c
 *	  What memory nodes have yet to be told, and what the book knows of theirs.
 *
 * Duties are kept where their subject was: a chunk's head, a tree's record.  So one more never
 * needs room.
 */
#include <string.h>

#include "compute/book_parts.h"

static bool
next_chunk(struct smart_space *space, unsigned int node, struct smart_duty *duty)
{
	const struct smart_region *book = space->region;
	const struct smart_book_node *entry = smart_book_node_at(book, node);
	struct smart_env *env = space->supply->env;
	struct smart_chunk *chunk;
	uint32_t number;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	number = entry->leaving;
	if (number != 0)
	{
		chunk = smart_chunk_at(book, number - 1);
		duty->kind = SMART_DUTY_GIVE_CHUNK;
		duty->incarnation = entry->incarnation;
		duty->number = chunk->duty;
		duty->chunk = chunk->place;
		duty->entry = number - 1;
		chunk->told = true;
		smart_region_header(book)->told_ns = env->now_ns(env);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return number != 0;
}

static bool
next_tree(struct smart_space *space, unsigned int node, struct smart_duty *duty)
{
	const struct smart_region *book = space->region;
	const struct smart_book_node *entry = smart_book_node_at(book, node);
	uint32_t number;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	number = entry->dropping;
	if (number != 0)
	{
		duty->kind = SMART_DUTY_DROP_TREE;
		duty->incarnation = entry->incarnation;
		duty->tree = duty->number = smart_record_at(book, number)->dropped;
		duty->entry = number;
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return number != 0;
}

bool
smart_book_next_duty(struct smart_space *space, unsigned int node, struct smart_duty *duty)
{
	if (smart_book_node_at(space->region, node) == NULL)
		return false;
	memset(duty, 0, sizeof(*duty));
	duty->node = node;
	return next_chunk(space, node, duty) || next_tree(space, node, duty);
}

static void
chunk_given(struct smart_space *space, const struct smart_duty *duty)
{
	const struct smart_chunk *chunk = smart_chunk_at(space->region, duty->entry);

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	/* The number may have served again since, and the chunk even be leaving again. */
	if (chunk->state == SMART_CHUNK_LEAVING && chunk->duty == duty->number)
		smart_book_chunk_left(space->region, duty->entry);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
}

static void
tree_dropped(struct smart_space *space, const struct smart_duty *duty)
{
	const struct smart_region *book = space->region;
	uint32_t *link = &smart_book_node_at(book, duty->node)->dropping;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	while (*link != 0 && (*link != duty->entry || smart_record_at(book, *link)->dropped != duty->tree))
		link = &smart_record_at(book, *link)->next;
	if (*link != 0)
	{
		*link = smart_record_at(book, duty->entry)->next;
		smart_book_forget_tree(space, duty->entry);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
}

void
smart_book_duty_done(struct smart_space *space, const struct smart_duty *duty)
{
	if (duty->kind == SMART_DUTY_GIVE_CHUNK)
		chunk_given(space, duty);
	else
		tree_dropped(space, duty);
}

/* ---- reconciling ---- */

/*
 * A chunk that a client is about to get may be on the way, hence it counts as known while one is asked for from
 * the node.  One that is leaving is known until its duty is done, so that nobody gives it back twice: the
 * second time it could be in use again.
 */
bool
smart_book_has_chunk(struct smart_space *space, unsigned int node, uint32_t chunk)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	bool known;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	known = header->growing && header->growing_node == node;
	known = known || (chunk < SMART_PLACES && smart_book_chunk_at(space->region, node, chunk) != 0);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return known;
}

/* A tree that is being made is known, too. */
bool
smart_book_has_tree(struct smart_space *space, uint64_t id)
{
	bool known;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	known = smart_record_exists(space, id);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return known;
}
