/*
 * check_journal.c
 *	  Does an index's tree have all that its journal tells of?  And is the run whole?
 *
 * What run and chain hold is compared with the tree in order, so that a tree on memory nodes is read by many leaves at a time.  A tree
 * has an entry before the journal has it, and nobody removes entries meanwhile (lock.h).  So what the scan of the tree did not
 * come by is looked for once more: it may have been added when the scan had passed.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/lock.h"
#include "am/journal/merge.h"
#include "am/monitor/check_entries.h"
#include "am/monitor/check_journal.h"
#include "am/monitor/check_run.h"
#include "base/assert.h"
#include "base/bytes.h"

struct journal_check
{
	struct smart_relation *self;
	Relation index;
	struct smart_scan *scan; /* of the tree */
	struct smart_batch batch;
	uint32 next;
	bool ended;
	int length;
	uint8 entry[SMART_ENTRY_MAX]; /* where the scan is */
	uint64 missing;               /* entries that are not in the tree */
	ItemPointerData tid;          /* of the first one */
};

/* ---- the tree ---- */

static void
advance(struct journal_check *check)
{
	struct smart_batch *batch = &check->batch;

	smart_assert(!check->ended && check->next <= batch->count);
	if (check->next == batch->count)
	{
		smart_status status = smart_relation_next(check->scan, batch);

		check->next = 0;
		check->ended = status == SMART_DONE;
		if (check->ended)
			return;
		smart_check_status(status, check->index);
	}
	check->length = smart_batch_entry(batch, check->next++, check->entry);
}

/* Does the scan of the tree come by an entry of this key, which is behind the one before? */
static bool
comes_by(struct journal_check *check, const uint8 *key, int key_length)
{
	int order = 1;

	/* No key is a prefix of another one: what begins with a key is its entry. */
	while (!check->ended && (order = smart_compare_bytes(check->entry, (Size) Min(check->length, key_length), key,
														 (Size) key_length)) < 0)
		advance(check);
	return !check->ended && order == 0;
}

/* ---- the journal ---- */

/* smart_sink.take */
static bool
look_for_entry(void *argument, const uint8 *entry, int length)
{
	struct journal_check *check = argument;
	const struct smart_codec *codec = check->self->codec;
	int key_length = smart_codec_key_length(codec, entry, length);
	bool found = comes_by(check, entry, key_length);

	if (!found)
		smart_check_status(smart_relation_lookup(check->self, entry, key_length, &found), check->index);
	if (!found && check->missing++ == 0)
		smart_entry_tid(codec, entry + key_length, &check->tid);
	return true;
}

static void
compare_all(struct journal_check *check, const struct smart_meta *meta)
{
	const struct smart_sink sink = {.take = look_for_entry, .argument = check};
	struct smart_merged merged;

	smart_assert(meta->journal != 0);
	check->scan = smart_relation_scan(check->self);
	smart_check_status(smart_scan_seek(check->scan, NULL, 0, NULL, 0, false), check->index);
	advance(check);
	/* A compaction that would let go these pages has to wait for this process. */
	if (smart_journal_merge(check->index, check->self->codec, meta, &smart_look_for_interrupts, &sink, &merged) !=
		SMART_FOUND_END)
		smart_check_report_used_anew(check->index);
}

/*
 * Entries that came after the tree was left behind, or given up, are in the journal alone.  That is noted before the first of them
 * is added.  Only a loader clears the note, and it waits for this check (lock.h).
 */
static bool
has_been_left(uint64 tree)
{
	struct smart_chain_place place;
	uint32 losses;

	return smart_tree_is_given_up(tree) || smart_tree_is_behind(tree, &place, &losses);
}

static void
report_missing(const struct journal_check *check)
{
	if (check->missing > 0 && !has_been_left(check->self->meta.tree))
		ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("the journal of index \"%s\" has " UINT64_FORMAT " entries that the index does not have",
					   RelationGetRelationName(check->index), check->missing),
				errdetail("One of them is that of row (%u,%u).", ItemPointerGetBlockNumberNoCheck(&check->tid),
						  ItemPointerGetOffsetNumberNoCheck(&check->tid)),
				smart_hint_reindex(check->index));
}

void
smart_check_journal(struct smart_relation *self, Relation index)
{
	struct journal_check *check;
	struct smart_meta meta;

	if (self->tree == NULL || self->meta.journal == 0 || RecoveryInProgress())
		return;
	check = palloc0(sizeof(*check));
	check->self = self;
	check->index = index;
	smart_journal_lock(index, SMART_LOCK_REMOVE);
	/* Nor does another tree become this index's from now on; it may have been moved a moment ago. */
	(void) smart_relation_follow(self, index);
	smart_meta_read(index, &meta);
	smart_assert(meta.journal == self->meta.journal);
	/* A tree that was given up a moment ago may have less. */
	if (smart_meta_is_loadable(&meta) && smart_relation_loss(index) == SMART_LOSS_NONE)
	{
		smart_check_run(index, self->codec, &meta);
		compare_all(check, &meta);
	}
	report_missing(check);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	pfree(check);
}

uint64
smart_check_pages(struct smart_relation *self, Relation index)
{
	struct smart_meta meta;

	smart_assert(self->view != NULL);
	smart_journal_lock(index, SMART_LOCK_REMOVE);
	smart_meta_read(index, &meta);
	if (smart_meta_is_loadable(&meta))
		smart_check_run(index, self->codec, &meta);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	return meta.run_entries + meta.adds;
}
