/*
 * compact.c
 *	  Compaction: a new run is written, and the chain begins anew.
 *
 *	1. The new run's id is claimed.
 *	2. Pages in no use are looked for, also those of a run that never came: what was written before a crash or a cancel;
 *	   and those that no run has any more are given back.
 *	3. The run is written.  If the journal is whole, from the journal itself (merge.h), up to where the chain ends then: the
 *	   cut.  It keeps pages of the run before that no operation of the chain concerns.  So what the journal says stays the
 *	   same, and the trees of standbys, which have what it says, can go on.  A tree may have more: entries whose add was
 *	   never appended, since its process or its transaction came to nothing.
 *	   A stale journal's run is written from the tree.  The cut is where the chain ended at a moment at which no process
 *	   removed entries or loaded a tree (lock.h).  What stands before it is in the tree then: an entry is added there first,
 *	   and a removal that has begun has ended.  What is seen of operations behind the cut does no harm, since they count
 *	   over the run.  That the journal was stale has been counted (meta.h), and standbys load their trees anew.
 *	4. The metapage switches to the new run and to the cut, if it still names the tree, and nothing that concerns the
 *	   journal as a whole has happened.
 *
 * What a reader needs who has read the metapage before the switch: its run, and the chain from the cut before.  On this
 * server readers have the lock of removers, and nothing is let go while one has it.  On a standby nothing keeps it.  A
 * tree that follows there needs the chain: that stays until the new one is half as long as the run (meta.h), or the next
 * compaction begins.  Only who is loading one needs the older run, and can begin anew: that is let go by the switch.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/chain.h"
#include "am/journal/compact.h"
#include "am/journal/delta.h"
#include "am/journal/due.h"
#include "am/journal/free.h"
#include "am/journal/lock.h"
#include "am/journal/merge.h"
#include "am/journal/run.h"
#include "am/journal/run_filter.h"
#include "am/journal/run_walk.h"
#include "base/assert.h"

#define LOOK_EVERY   16 /* pages */
#define BORDER_SHARE 8  /* if one page in so many may be half empty, all are written anew */

struct compaction
{
	Relation index;
	double entries;              /* of the tree, below 0: not known */
	struct smart_relation *self; /* whose tree is read */
	struct smart_meta meta;      /* when the id was claimed */
	struct smart_chain_place cut;
	struct smart_run_writer *writer;
	struct smart_run_filter *filter;    /* NULL: it has none */
	const struct smart_run_map *before; /* pages of the run before; NULL: of a stale journal, which are not read */
	const struct smart_way *way;
	bool left;   /* pages of a run that never came */
	uint64 read; /* entries of the run before that were read */
	uint64 looks;
	bool presses; /* when it was looked last, memory was too short to sleep */
};

static bool
is_due(const struct compaction *compaction, const struct smart_meta *meta)
{
	return smart_compaction_is_due(compaction->index, meta) ||
		   (meta->journal_state == SMART_JOURNAL_WHOLE && meta->run_pages > SMART_CHAIN_SHORT &&
			compaction->entries >= 0 && 2 * compaction->entries < (double) meta->run_entries);
}

/* Sleeps as VACUUM does, unless memory is too short for that.  The buffer manager has counted what pages cost. */
static void
rest(struct compaction *compaction, bool looks)
{
	CHECK_FOR_INTERRUPTS();
	if (looks)
		compaction->presses = smart_compaction_is_pressing(compaction->index);
	if (!compaction->presses)
		smart_vacuum_delay_point();
}

/* Called for each page that was written, or let go, with nothing locked; false: others want the caller's locks. */
static bool
look_around(void *argument)
{
	struct compaction *compaction = argument;
	bool looks = compaction->looks++ % LOOK_EVERY == 0;

	/* Who holds the lock of a buffer holds interrupts. */
	smart_assert(InterruptHoldoffCount == 0);
	rest(compaction, looks);
	return !looks || !compaction->way->is_awaited(compaction->way->argument);
}

/* smart_look, while the chain is read. */
static void
rest_from_reading(void *argument)
{
	rest(argument, true);
}

/* ---- the steps ---- */

static bool
is_behind(const struct smart_chain_place *a, const struct smart_chain_place *b)
{
	return a->serial > b->serial || (a->serial == b->serial && a->offset > b->offset);
}

/* Lets go the run before, and what the chain had before the cut.  The caller has the lock of removers. */
static void
let_go(struct smart_meta *meta)
{
	/* Serials begin with 1. */
	if (meta->cut.serial > 0)
		meta->let_go += (uint32) (meta->cut.serial - Max(meta->previous_serial, 1));
	meta->previous_run = 0;
	meta->previous_serial = meta->cut.serial;
}

/* Step 1; false: it cannot be done now, or need not be. */
static bool
begin(struct compaction *compaction)
{
	Relation index = compaction->index;
	struct smart_meta *meta = &compaction->meta;
	uint64 run;
	Buffer buffer;

	compaction->self = smart_relation_try_open(index);
	if (compaction->self == NULL && !smart_relation_can_answer(index))
		return false;
	/* A whole journal's run needs no tree. */
	if (compaction->self == NULL)
		compaction->self = smart_relation_open_bare(index);
	if (compaction->self->meta.tree == 0)
		return false;
	smart_chain_end(index, &compaction->self->tail, &compaction->cut);
	/* Before the lock: is_due() may read the metapage itself. */
	smart_meta_read(index, meta);
	run = meta->run;
	if (!is_due(compaction, meta))
		return false;
	/* Of a whole journal it is taken later. */
	buffer = smart_meta_lock(index, meta);
	/* The tail may have been lost a moment ago: then a new chain begins behind this place. */
	if (meta->tree != compaction->self->meta.tree || meta->state != SMART_META_READY || meta->run != run ||
		is_behind(&meta->cut, &compaction->cut))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	/* A run that never came has left pages. */
	compaction->left = meta->last_run > meta->run;
	meta->last_run++;
	let_go(meta);
	(void) smart_meta_change(index, buffer, meta);
	return true;
}

/* smart_sink.take: writes the next entry; false: others want the caller's locks. */
static bool
write_entry(void *argument, const uint8 *entry, int length)
{
	struct compaction *compaction = argument;

	smart_assert(length > 0 && length <= SMART_ENTRY_MAX);
	smart_run_filter_add(compaction->filter, entry, length);
	return !smart_run_add(compaction->writer, entry, length) || look_around(compaction);
}

/* smart_sink.keep */
static bool
keep_page(void *argument, const struct smart_run_place *page)
{
	struct compaction *compaction = argument;

	smart_assert(compaction->before != NULL);
	smart_run_keep(compaction->writer, page);
	return smart_run_filter_keep(compaction->filter, page->block) && look_around(compaction);
}

/* smart_sink.go_on */
static void
go_on_behind_kept(void *argument, const struct smart_run_place *page)
{
	const struct compaction *compaction = argument;

	smart_assert(compaction->before != NULL);
	smart_run_go_on(compaction->writer, page);
}

/* Step 3 of a stale journal; false as above. */
static bool
write_tree(struct compaction *compaction)
{
	struct smart_scan *scan = smart_relation_scan(compaction->self);
	uint8 entry[SMART_ENTRY_MAX];
	struct smart_batch batch;
	smart_status status;

	smart_assert(compaction->meta.journal_state == SMART_JOURNAL_STALE && compaction->before == NULL);
	smart_check_status(smart_scan_seek(scan, NULL, 0, NULL, 0, false), compaction->index);
	while ((status = smart_relation_next(scan, &batch)) == SMART_OK)
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < batch.count; i++)
		{
			if (!write_entry(compaction, entry, smart_batch_entry(&batch, i, entry)))
				return false;
		}
	}
	if (status != SMART_DONE)
		smart_report_status(status, compaction->index);
	return true;
}

/* Step 3 of a whole journal; false as above. */
static bool
write_journal(struct compaction *compaction)
{
	const struct smart_look look = {.around = rest_from_reading, .argument = compaction};
	const struct smart_meta *meta = &compaction->meta;
	const struct smart_sink sink = {.take = write_entry,
									.keep = meta->run_borders <= meta->run_pages / BORDER_SHARE ? keep_page : NULL,
									.go_on = go_on_behind_kept,
									.argument = compaction};
	struct smart_merged merged;

	smart_assert(meta->journal_state == SMART_JOURNAL_WHOLE && compaction->before != NULL);
	if (smart_journal_merge(compaction->index, compaction->self->codec, meta, &look, &sink, &merged) != SMART_FOUND_END)
		return false;
	compaction->cut = merged.place;
	compaction->read = merged.read;
	return true;
}

/* Step 3; false as above. */
static bool
write_run(struct compaction *compaction, struct smart_run *run)
{
	const struct smart_meta *meta = &compaction->meta;
	bool done;

	if (meta->journal_state == SMART_JOURNAL_WHOLE)
	{
		compaction->before = smart_run_map_make(compaction->index, meta);
		if (compaction->before == NULL)
			return false;
	}
	compaction->writer = smart_run_begin(compaction->index, meta, meta->last_run, compaction->before);
	/* Who inserts into an index that has a tree asks that. */
	if (meta->tree == SMART_TREE_NOWHERE)
		compaction->filter = smart_run_filter_begin(compaction->index, compaction->self->codec, meta,
													(double) (meta->run_entries + meta->adds), (double) meta->adds);
	if (meta->journal_state == SMART_JOURNAL_STALE)
		done = compaction->self->tree != NULL && write_tree(compaction);
	else
		done = write_journal(compaction);
	if (!done)
		return false;
	smart_run_finish(compaction->writer, run);
	smart_assert(run->id == meta->last_run && run->journal == meta->journal);
	smart_assert(run->kept == 0 || compaction->before != NULL);
	/* And those on pages that were kept. */
	if (run->kept > 0)
		run->entries += meta->run_entries - compaction->read;
	return true;
}

/* What the metapage says of the run. */
static void
name_run(struct smart_meta *meta, const struct smart_run *run)
{
	smart_assert(run->kept <= run->pages);
	smart_assert(run->pages > 0 || run->root == InvalidBlockNumber);
	meta->let_go += meta->run_pages + meta->run_fences - run->kept;
	meta->run_borders = run->kept > 0 ? meta->run_borders + run->borders : 0;
	if (run->kept == 0)
		meta->run_kept = run->pages > 0 ? run->id : 0;
	meta->run = run->pages > 0 ? run->id : 0;
	meta->run_pages = run->pages;
	meta->run_root = run->root;
	meta->run_fences = run->fences;
	meta->run_entries = run->entries;
	meta->run_made = run->made;
}

/*
 * Step 4; false: it must not be done, since the run may lack what is in no chain any more.  alone: nobody on this server
 * reads the run before.
 */
static bool
switch_runs(struct compaction *compaction, const struct smart_run *run, bool alone)
{
	const struct smart_meta *before = &compaction->meta;
	struct smart_meta meta;
	Buffer buffer;

	if (before->journal_state == SMART_JOURNAL_STALE && smart_relation_loss(compaction->index) != SMART_LOSS_NONE)
		return false;
	buffer = smart_meta_lock(compaction->index, &meta);
	smart_assert(meta.journal == before->journal && meta.run == before->run && meta.last_run == before->last_run);
	if (meta.tree != before->tree || meta.state != SMART_META_READY || meta.journal_state != before->journal_state ||
		meta.cut.serial != before->cut.serial || meta.cut.offset != before->cut.offset)
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	smart_assert(meta.adds >= before->adds && meta.removals >= before->removals);
	smart_assert(!is_behind(&meta.cut, &compaction->cut));
	meta.previous_run = alone ? 0 : meta.run;
	meta.previous_kept = alone ? 0 : meta.run_kept;
	name_run(&meta, run);
	meta.cut = compaction->cut;
	/* Some that came since, and lie before the cut, are counted once more. */
	meta.adds -= before->adds;
	meta.removals -= before->removals;
	meta.journal_state = SMART_JOURNAL_WHOLE;
	(void) smart_meta_change(compaction->index, buffer, &meta);
	compaction->meta = meta;
	return true;
}

/* Step 4, and the run before is let go, unless somebody reads it. */
static bool
finish(struct compaction *compaction, const struct smart_run *run)
{
	bool alone = smart_journal_try_lock(compaction->index, SMART_LOCK_REMOVE);
	bool switched = switch_runs(compaction, run, alone);

	if (alone)
		smart_journal_unlock(compaction->index, SMART_LOCK_REMOVE);
	if (switched)
	{
		smart_run_filter_end(compaction->filter, compaction->index, run);
		smart_delta_leave(compaction->index, smart_relation_loss(compaction->index) == SMART_LOSS_NONE);
	}
	/* If the new run keeps pages, the others are given back when the next one begins: a standby may read the old run until then. */
	if (switched && alone && run->kept == 0)
		(void) smart_free_collect(compaction->index, &compaction->meta, false, look_around, compaction);
	return switched;
}

static bool
compact(struct compaction *compaction)
{
	struct smart_run run;
	bool begun;

	/* VACUUM holds it for its whole walk, and a session that waits for it would end an autovacuum. */
	if (!smart_journal_try_lock(compaction->index, SMART_LOCK_REMOVE))
		return false;
	begun = begin(compaction);
	smart_journal_unlock(compaction->index, SMART_LOCK_REMOVE);
	return begun &&
		   smart_free_collect(compaction->index, &compaction->meta, compaction->left, look_around, compaction) &&
		   write_run(compaction, &run) && finish(compaction, &run);
}

/* Lets go what the chain had before the cut; false: somebody may be reading it. */
static bool
release(struct compaction *compaction)
{
	Relation index = compaction->index;
	struct smart_meta *meta = &compaction->meta;
	Buffer buffer;
	bool due;

	if (!smart_journal_try_lock(index, SMART_LOCK_REMOVE))
		return false;
	buffer = smart_meta_lock(index, meta);
	due = smart_meta_wants_release(meta);
	if (due)
	{
		let_go(meta);
		(void) smart_meta_change(index, buffer, meta);
	}
	else
		UnlockReleaseBuffer(buffer);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	/* Where this gives way to others, the next compaction finds the rest. */
	if (due)
		(void) smart_free_collect(index, meta, false, look_around, compaction);
	return true;
}

/*
 * Has the index lost its tree, and is it to have one first?  Not if its pages answer meanwhile: they may do so for long, and
 * what the chain has is in memory, too.
 */
static bool
is_waited_for(Relation index)
{
	return smart_relation_loss(index) != SMART_LOSS_NONE && !smart_relation_can_answer(index);
}

enum smart_compacted
smart_journal_compact(Relation index, double entries, const struct smart_way *way)
{
	struct compaction compaction = {.index = index, .entries = entries, .way = way};
	MemoryContext context;
	MemoryContext old;
	struct smart_meta meta;
	bool due;
	bool done;

	smart_assert(!RecoveryInProgress());
	smart_meta_read(index, &meta);
	due = is_due(&compaction, &meta);
	/* Who loads or rebuilds a lost index sees to this. */
	if ((!due && !smart_meta_wants_release(&meta)) || is_waited_for(index))
		return SMART_COMPACTED_NOT;
	if (!smart_journal_try_lock(index, SMART_LOCK_COMPACT))
		return SMART_COMPACT_LATER;
	/* The open index goes with it. */
	context = AllocSetContextCreate(CurrentMemoryContext, "smart compaction", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	done = due ? compact(&compaction) : release(&compaction);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	smart_journal_unlock(index, SMART_LOCK_COMPACT);
	if (!done)
		return SMART_COMPACT_LATER;
	return due ? SMART_COMPACTED : SMART_COMPACTED_NOT;
}
