/*
 * purge.c
 *	  Removing spent tombstones.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/trees.h"
#include "am/journal/delta_entry.h"
#include "am/journal/delta.h"
#include "am/journal/follow.h"
#include "am/journal/lock.h"
#include "am/journal/purge.h"
#include "am/journal/spent.h"
#include "base/assert.h"

#define LOOKS   100 /* at the pins, before it is left for the next time */
#define LOOK_US 100 /* between two of them */

/* Under the delta's lock, which others wait for. */
static void
turn_on(uint64 delta, uint64 follower)
{
	struct smart_chain_place place;
	struct smart_chain_place come;

	smart_assert(delta != 0 && follower != 0);
	smart_follow_lock(delta);
	if (smart_follow_place(delta, &place) && smart_follow_place(follower, &come))
		smart_spent_turn_on(delta, &place, &come);
	smart_follow_unlock(delta);
}

/* Most who read do so for microseconds, but a cursor may stay. */
static bool
is_over(uint64 delta)
{
	for (int i = 0; i < LOOKS; i++)
	{
		if (smart_spent_is_over(delta))
			return true;
		pg_usleep(LOOK_US);
	}
	return false;
}

/* smart_dead_fn */
static bool
is_spent(void *argument, const uint8_t *bytes, size_t length)
{
	smart_assert(length > 0);
	return bytes[length - 1] == *(const uint8 *) argument;
}

/* smart_pause_fn */
static bool
pause_point(void *argument)
{
	CHECK_FOR_INTERRUPTS();
	return true;
}

/* Whoever adds an entry anew meanwhile changes its mark. */
static void
remove_spent(Relation index, const struct smart_relation *delta)
{
	uint64 tree = delta->meta.tree;
	uint8 mark = SMART_DELTA_SPENT + (1 - smart_spent_turn(tree));
	const struct smart_victims victims = {.dead = is_spent, .tail = 1, .argument = &mark};
	uint64_t visited = 0;
	uint64_t removed = 0;
	smart_status status = smart_tree_bulk_delete(delta->tree, &victims, pause_point, &visited, &removed);

	smart_assert(mark == SMART_DELTA_SPENT || mark == SMART_DELTA_SPENT + 1);
	/* Without room they stay. */
	if (status == SMART_NO_SPACE || status == SMART_DISK_FULL)
		return;
	smart_check_status(status, index);
	ereport(DEBUG1,
			errmsg_internal("removed " UINT64_FORMAT
							" spent tombstones from the delta of index \"%s\", which has " UINT64_FORMAT " entries now",
							removed, RelationGetRelationName(index), visited - removed));
	smart_spent_removed(tree, visited - removed);
}

/* Of the delta that was found, unless it has left meanwhile. */
static void
purge(Relation index, const struct smart_meta *meta, uint64 tree)
{
	const struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	struct smart_pin_ticket pin;
	struct smart_relation *delta = smart_delta_find(index, codec, meta, &pin);

	if (delta == NULL)
		return;
	if (delta->meta.tree == tree)
		remove_spent(index, delta);
	smart_pin_leave(&pin);
}

bool
smart_purge(Relation index, const struct smart_meta *meta, uint64 follower)
{
	struct smart_tree_info delta;

	if (!smart_tree_of_delta(index, meta, &delta) || smart_tree_is_lean(delta.id) ||
		!smart_journal_try_lock(index, SMART_LOCK_DELTA)) /* one process at a time */
		return false;
	turn_on(delta.id, follower);
	if (is_over(delta.id))
	{
		purge(index, meta, delta.id);
		/* Others have been spent meanwhile. */
		turn_on(delta.id, follower);
	}
	smart_journal_unlock(index, SMART_LOCK_DELTA);
	return smart_spent_are_in_the_way(delta.id);
}
