/*
 * recover.c
 *	  The course of recovery, and what it trusts.
 *
 * A process can be killed between any two of its stores.  What it had stored
 * before is in the file, in the order of its instructions; and at a release, or
 * where it let go of a lock, all that its source has before is.  So each structure
 * is either trusted, because one store with release made it what it is, or
 * made anew from what is trusted:
 *
 *	  trusted                                  why
 *	  region's size, number of chunks          raised when the room is there, under the lock that those who use it take
 *	  last tree's number                       raised before the id that it makes is stored
 *	  list of the records' pages               a page is linked by one store, behind its own link
 *	  a record with an id: owner, root         the id is stored last, and taken away first
 *	  a record's state, its duty               the state is stored last
 *	  trees                                    every change is one CAS (src/README)
 *	  kept pieces: which there are             stored when they are zeros
 *	  chunk: which pages may hold other        set before anybody has them
 *	      than zeros
 *	  remote chunk: its node and place         its state is stored last, and taken away first
 *	  memory node: its region's incarnation    its state is stored last
 *
 *	  made anew
 *	  directory's table, list of free records  from the records
 *	  slabs: tree, class, free blocks          from the trees: a block that a slot leads to is in use, and
 *	                                           says by its class how its slab lies
 *	  retired blocks                           none: all who could have seen them are dead
 *	  chunks' maps, counts and lists           from slabs, records, kept pieces and tables
 *	  map of places, nodes' counts and lists   from the remote chunks and the records
 *	  growth in hand                           none: reconciling finds a chunk that was on its way
 *
 * Slabs' descriptors serve as mark bits: they begin without a slab, and a block that
 * is met takes its bit away from the free ones.  So a second call, or one after a
 * second crash, starts from the same words as the first.
 *
 * What a slot does not lead to is free: blocks that were allocated and not linked, and retired ones.  Free leaves of
 * this region get their lock word back, whose holder is dead; a lock word of a linked leaf is passed by those who
 * meet it (FORWARD).  In exclusive mode there are none: the locks are in memory that is new.
 */
#include <stdio.h>
#include <string.h>

#include "compute/kept.h"
#include "compute/recover_parts.h"

smart_status
smart_recover_fault(struct recover *recover, const char *what, uint64_t where)
{
	snprintf(recover->recovery->message, sizeof(recover->recovery->message), "%s (%llx)", what,
			 (unsigned long long) where);
	return SMART_CORRUPT;
}

static smart_status
claim_kept(void *argument, uint32_t page, unsigned int order)
{
	return smart_recover_claim(argument, page, order);
}

static smart_status
recover_trees(struct recover *recover)
{
	smart_status status = SMART_OK;
	uint32_t number = 0;

	while (status == SMART_OK && (number = smart_record_next(recover->region, number)) != 0)
	{
		const struct smart_record *record = smart_record_at(recover->region, number);

		if (record->id == 0)
			continue;
		recover->recovery->trees++;
		if (smart_record_state(record) == SMART_RECORD_PLAIN)
			status = smart_recover_tree(recover, number);
		recover->recovery->lost += status == SMART_OK && smart_record_state(record) == SMART_RECORD_LOST;
	}
	return status;
}

static uint64_t
pages_in_use(const struct smart_region *region)
{
	return (uint64_t) smart_region_header(region)->home.used + smart_region_header(region)->blocks.used;
}

static void
begin(struct recover *recover)
{
	struct smart_recovery *recovery = recover->recovery;

	recovery->trees = recovery->lost = recovery->nodes = recovery->leaves = 0;
	recovery->used_pages = recovery->gained = 0;
	recovery->message[0] = '\0';
	memset(recover->space->recent, 0, sizeof(recover->space->recent));
	recover->space->retired = 0;
}

smart_status
smart_space_recover(struct smart_space *space, struct fabric *fabric, struct smart_env *env,
					struct smart_recovery *recovery)
{
	struct recover recover = {
		.space = space,
		.region = space->region,
		.fabric = fabric,
		.env = env,
		.recovery = recovery,
		.pages_before = pages_in_use(space->region),
	};
	smart_status status = SMART_OK;
	uint64_t pages;

	begin(&recover);
	if (space->region->book)
		status = smart_recover_nodes(&recover);
	else
		smart_recover_clear_chunks(&recover);
	if (status == SMART_OK)
		status = smart_kept_runs(space->region, claim_kept, &recover);
	if (status == SMART_OK)
		status = smart_recover_directory(&recover);
	if (status == SMART_OK)
		status = recover_trees(&recover);
	if (status != SMART_OK)
		return status;
	smart_recover_list_slabs(&recover);
	smart_recover_list_chunks(&recover);
	if (space->region->book)
		smart_recover_end_nodes(&recover);
	pages = pages_in_use(space->region);
	recovery->gained = recover.pages_before > pages ? recover.pages_before - pages : 0;
	return SMART_OK;
}
