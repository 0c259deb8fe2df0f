/*
 * swept.c
 *	  VACUUM's removals from a tree that is swept: tree and journal in one walk.
 */
#include "postgres.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/index/relation.h"
#include "am/journal/chain.h"
#include "am/journal/staging.h"
#include "am/recovery/undo.h"
#include "am/write/removal.h"
#include "am/write/swept.h"
#include "base/assert.h"

/* Entries after which WAL is flushed and the note taken away: some 200 ms, but for interrupts, which are served at once. */
#define WINDOW 250000

/* A packed key takes so many more bytes than its entry does in a leaf, where it has 2 at least: 3 for each of these. */
#define PACKED_FACTOR 3

/* The first key of a batch is not shortened.  If a longer one meets a full disk, the tree is given up, and loaded anew. */
#define FIRST_KEY 1024

bool
smart_swept_fits(const struct smart_relation *relation)
{
	return !VacuumCostActive && smart_tree_is_swept(relation->tree);
}

void
smart_swept_begin(struct smart_swept *swept, struct smart_relation *relation, Relation index)
{
	swept->relation = relation;
	swept->index = index;
	swept->open = swept->out_of_memory = false;
	swept->count = 0;
	swept->most = PACKED_FACTOR * relation->meta.leaf_size + FIRST_KEY;
	smart_batches_begin(&swept->batches, CurrentMemoryContext);
	smart_assert(relation->tree != NULL && relation->meta.journal_state != SMART_JOURNAL_NONE);
}

void
smart_swept_end(struct smart_swept *swept)
{
	smart_assert(!swept->open);
	smart_batches_end(&swept->batches);
}

static void
take_note_away(struct smart_swept *swept)
{
	if (swept->count > 0)
		smart_wal_flush();
	smart_removal_note(swept->relation, false);
}

/*
 * Does a step without serving an interrupt.  After an error the note is taken away if the journal has all that the tree
 * has lost; else the tree is given up.
 */
static void
carry_out(struct smart_swept *swept, void (*step)(struct smart_swept *))
{
	HOLD_INTERRUPTS();
	PG_TRY();
	{
		step(swept);
	}
	PG_CATCH();
	{
		/* An error has ended the hold. */
		HOLD_INTERRUPTS();
		if (swept->batches.count == 0 && !swept->out_of_memory)
			take_note_away(swept);
		else
			smart_removal_give_up(swept->relation, swept->index);
		swept->open = false;
		RESUME_INTERRUPTS();
		PG_RE_THROW();
	}
	PG_END_TRY();
	RESUME_INTERRUPTS();
}

/* Bytes of the batch that is begun. */
static Size
begun(const struct smart_swept *swept)
{
	uint32 count = swept->batches.count;

	return count == 0 ? 0 : swept->batches.packed[count - 1].length;
}

/*
 * Looks out pages for the batch that is begun and what one leaf adds to it, if the tail has no room for them: so a disk
 * that is full is found before anything has happened.
 */
static void
reserve(struct smart_swept *swept)
{
	uint32 pages = 0;

	swept->room = smart_chain_room(swept->index, &swept->relation->tail);
	if (begun(swept) + swept->most > swept->room)
	{
		/* A batch fills a page, and the next one begins on another. */
		pages = 1 + (uint32) ((swept->most + SMART_PAGE_ROOM - 1) / SMART_PAGE_ROOM);
		swept->room = SMART_PAGE_ROOM + swept->most;
	}
	smart_reserve_begin(swept->index, &swept->reserve, pages);
}

static void
begin(struct smart_swept *swept)
{
	smart_assert(!swept->open);
	smart_removal_note(swept->relation, true);
	smart_staging_write_out(swept->index, &swept->relation->tail, true);
	reserve(swept);
}

void
smart_swept_open(struct smart_swept *swept)
{
	if (swept->open)
		return;
	swept->count = 0;
	carry_out(swept, begin);
	swept->open = true;
}

void
smart_swept_add(struct smart_swept *swept, const uint8 *key, int length)
{
	smart_assert(swept->open);
	smart_assert(length > 0 && length <= SMART_KEY_MAX);
	swept->count++;
	if (!smart_batches_add(&swept->batches, key, length))
		swept->out_of_memory = true;
}

/* To the journal with all that was removed. */
static void
append(struct smart_swept *swept)
{
	smart_assert(swept->open);
	if (swept->out_of_memory)
		ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
				errdetail("Failed to pack the removals from index \"%s\" for its journal.",
						  RelationGetRelationName(swept->index)));
	for (uint32 i = 0; i < swept->batches.count; i++)
		smart_chain_remove_batch(swept->index, &swept->relation->tail, &swept->reserve, &swept->batches.packed[i]);
	smart_batches_clear(&swept->batches);
	smart_reserve_end(swept->index, &swept->reserve);
}

static void
go_on(struct smart_swept *swept)
{
	append(swept);
	reserve(swept);
}

static void
finish(struct smart_swept *swept)
{
	append(swept);
	take_note_away(swept);
}

void
smart_swept_pause(struct smart_swept *swept)
{
	if (swept->open && (swept->count >= WINDOW || InterruptPending || ConfigReloadPending))
		smart_swept_close(swept);
	else if (swept->open &&
			 (swept->batches.count > 1 || begun(swept) + swept->most > swept->room || swept->out_of_memory))
		carry_out(swept, go_on);
}

void
smart_swept_close(struct smart_swept *swept)
{
	if (!swept->open)
		return;
	carry_out(swept, finish);
	swept->open = false;
}
