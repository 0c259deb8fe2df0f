/*
 * pending_frees.c
 *	  Pending frees, and what the extent map knows of a memory node's chunks and trees.
 */
#include <string.h>

#include "compute/allocate/extents_parts.h"

/* ---- trees that go ---- */

bool
smart_extents_count_tree(struct smart_space *space, unsigned int node, bool more)
{
	struct smart_extents_node *entry = smart_extents_node_at(space->region, node);
	bool open;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	open = smart_extents_node_is_open(space->region, node);
	if (!more)
	{
		smart_assert(entry->trees > 0);
		entry->trees--;
		smart_extents_release_node(space->region, node);
	}
	else if (open)
	{
		smart_assert(entry->incarnation != 0);
		entry->trees++;
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return open;
}

void
smart_extents_forget_tree(struct smart_space *space, uint32_t number)
{
	unsigned int node = smart_record_at(space->region, number)->node;

	smart_assert(node < FABRIC_NODES_MAX && smart_record_at(space->region, number)->id == 0);
	smart_record_free(space, number);
	(void) smart_extents_count_tree(space, node, false);
}

void
smart_extents_tree_dropped(struct smart_space *space, uint32_t number, uint64_t id)
{
	struct smart_record *record = smart_record_at(space->region, number);
	struct smart_extents_node *entry = smart_extents_node_at(space->region, record->node);

	smart_assert(record->id == 0 && record->slabs == 0 && id != 0);
	/* Either this sees the node lost, or smart_extents_lose_node, which changes its state first, sees this record. */
	if (!smart_extents_node_is_active(space->region, record->node))
	{
		smart_extents_forget_tree(space, number);
		return;
	}
	smart_assert(entry->trees > 0);
	record->dropped = id;
	smart_record_set_state(record, SMART_RECORD_DROPPING);
	record->next = entry->dropping;
	entry->dropping = number;
}

/* ---- pending frees ---- */

bool
smart_pending_next(struct smart_space *space, unsigned int node, struct smart_pending_free *pending)
{
	const struct smart_region *extents = space->region;
	const struct smart_extents_node *entry = smart_extents_node_at(extents, node);
	struct smart_env *env = space->supply->env;
	uint32_t number;

	if (entry == NULL)
		return false;
	memset(pending, 0, sizeof(*pending));
	pending->node = node;
	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	number = entry->leaving;
	pending->incarnation = entry->incarnation;
	if (number != 0)
	{
		struct smart_chunk *chunk = smart_chunk_at(extents, number - 1);

		smart_assert(chunk->state == SMART_CHUNK_LEAVING && chunk->node == node);
		pending->kind = SMART_PENDING_GIVE_CHUNK;
		pending->number = chunk->pending;
		pending->chunk = chunk->place;
		pending->entry = number - 1;
		chunk->told = true;
		smart_region_header(extents)->told_ns = env->now_ns(env);
	}
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	if (number != 0)
		return true;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	number = entry->dropping;
	if (number != 0)
	{
		const struct smart_record *record = smart_record_at(extents, number);

		smart_assert(record->state == SMART_RECORD_DROPPING && record->node == node && record->id == 0);
		pending->kind = SMART_PENDING_DROP_TREE;
		pending->incarnation = entry->incarnation;
		pending->tree = pending->number = record->dropped;
		pending->entry = number;
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return number != 0;
}

void
smart_pending_done(struct smart_space *space, const struct smart_pending_free *pending)
{
	struct smart_region *extents = space->region;
	uint32_t *link = &smart_extents_node_at(extents, pending->node)->dropping;

	if (pending->kind == SMART_PENDING_GIVE_CHUNK)
	{
		const struct smart_chunk *chunk = smart_chunk_at(extents, pending->entry);

		space->locks->acquire(space->locks, SMART_LOCK_PAGES);
		/* The number may have served again since, and the chunk even be leaving again. */
		if (chunk->state == SMART_CHUNK_LEAVING && chunk->pending == pending->number)
			smart_chunk_left(extents, pending->entry);
		space->locks->release(space->locks, SMART_LOCK_PAGES);
		return;
	}
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	while (*link != 0 && (*link != pending->entry || smart_record_at(extents, *link)->dropped != pending->tree))
		link = &smart_record_at(extents, *link)->next;
	if (*link != 0)
	{
		smart_assert(smart_record_at(extents, *link)->state == SMART_RECORD_DROPPING);
		*link = smart_record_at(extents, pending->entry)->next;
		smart_extents_forget_tree(space, pending->entry);
	}
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
}

/* ---- reconciling ---- */

/*
 * A chunk that a client is about to get may be on the way, hence it counts as known while one is asked for from the
 * node.  One that is leaving is known until its pending free is done, so that no client gives it back twice: the
 * second time it could be in use again.
 */
bool
smart_extents_has_chunk(struct smart_space *space, unsigned int node, uint32_t chunk)
{
	const struct smart_region_header *header = smart_region_header(space->region);
	bool known;

	space->locks->acquire(space->locks, SMART_LOCK_PAGES);
	known = header->growing && header->growing_node == node;
	known = known || (chunk < SMART_PLACES && smart_extents_chunk_at(space->region, node, chunk) != 0);
	space->locks->release(space->locks, SMART_LOCK_PAGES);
	return known;
}

/* A tree that is being made is known, too. */
bool
smart_extents_has_tree(struct smart_space *space, uint64_t id)
{
	bool known;

	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	known = smart_record_exists(space, id);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return known;
}
