/*
 * merge.c
 *	  All entries that a journal holds, in order: its chain's operations over its run.
 *
 * Of each entry the last operation of the chain counts, and over what the run says.  A compaction keeps pages of the run that no
 * operation concerns: they are not read here.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "am/journal/merge.h"
#include "am/journal/run_walk.h"
#include "am/server/progress.h"
#include "base/assert.h"
#include "base/bytes.h"

#define STRETCH 8 /* pages in a row, or more, are kept if no operation concerns them (src/README, J7) */

struct merge
{
	Relation index;
	const struct smart_codec *codec;
	struct smart_reader reader; /* of the run's pages */
	struct smart_run_walk *walk;
	struct smart_sorted_chain *chain;
	struct smart_last_operation last; /* of the chain's next entry */
	enum smart_found has_last;        /* SMART_FOUND: there is one */
	struct smart_run_place next;      /* the run's next page */
	enum smart_found has_next;
	uint32 waiting; /* pages without operations, which are kept if there are enough of them */
	uint32 kept;    /* pages that were kept */
	uint32 merged;  /* pages since then that were not */
	const struct smart_sink *sink;
	struct smart_run_place wait[STRETCH];
};

static void
go_on_with_chain(struct merge *merge)
{
	merge->has_last = smart_sorted_chain_next(merge->chain, &merge->last);
}

/* Takes what the chain's last operation on its next entry leaves of that: the whole entry, or nothing.  False: enough. */
static bool
take_last(struct merge *merge)
{
	const struct smart_last_operation *last = &merge->last;
	bool goes_on =
		last->operation != SMART_OPERATION_ADD || merge->sink->take(merge->sink->argument, last->entry, last->length);

	smart_assert(merge->has_last == SMART_FOUND);
	smart_assert(last->key_length > 0 && last->key_length <= last->length);
	if (goes_on)
		go_on_with_chain(merge);
	return goes_on;
}

/* Is the chain's next entry, if there is one, before the run's next page, if there is one? */
static bool
is_in_front(const struct merge *merge)
{
	return merge->has_last == SMART_FOUND &&
		   (merge->has_next != SMART_FOUND ||
			smart_compare_bytes(merge->last.entry, (Size) merge->last.key_length, merge->next.separator,
								(Size) merge->next.length) < 0);
}

/* Merges an entry of the run with the operations in front of it, and on it; false: enough was taken. */
static bool
merge_entry(struct merge *merge)
{
	const struct smart_unpacker *from = &merge->reader.unpacker;
	const struct smart_last_operation *last = &merge->last;

	smart_reader_check(&merge->reader, merge->codec, false);
	while (merge->has_last == SMART_FOUND)
	{
		/* No key is a prefix of another one: what begins with a key is its entry. */
		int order = smart_compare_bytes(last->entry, (Size) last->key_length, from->entry,
										(Size) Min(from->length, last->key_length));

		if (order > 0)
			break;
		if (!take_last(merge))
			return false;
		if (order == 0)
			return true;
	}
	return merge->sink->take(merge->sink->argument, from->entry, from->length);
}

static bool
was_last_kept(const struct merge *merge)
{
	return merge->kept > 0 && merge->merged == 0;
}

/* Merges a page of the run with its operations, of which there may be none.  SMART_FOUND_END: goes on. */
static enum smart_found
merge_page(struct merge *merge, const struct smart_run_place *page)
{
	enum smart_found found;

	if (was_last_kept(merge))
		merge->sink->go_on(merge->sink->argument, page);
	smart_assert(page->length >= 0 && page->length <= SMART_KEY_MAX);
	/* A page is mostly treated like those before it. */
	smart_reader_go_to(&merge->reader, page->block, merge->sink->keep == NULL || merge->merged >= STRETCH);
	merge->merged++;
	while ((found = smart_reader_next_of_page(&merge->reader)) == SMART_FOUND)
	{
		if (!merge_entry(merge))
			return SMART_FOUND;
		if (merge->has_last == SMART_FOUND_BEHIND)
			return SMART_FOUND_BEHIND;
	}
	return found;
}

/* The pages that wait are merged after all. */
static enum smart_found
merge_waiting(struct merge *merge)
{
	enum smart_found found = SMART_FOUND_END;

	smart_assert(merge->waiting < STRETCH);
	for (uint32 i = 0; i < merge->waiting && found == SMART_FOUND_END; i++)
		found = merge_page(merge, &merge->wait[i]);
	merge->waiting = 0;
	return found;
}

/* Takes the operations in front of the run's next page. */
static enum smart_found
merge_rest(struct merge *merge)
{
	while (is_in_front(merge))
	{
		if (!take_last(merge))
			return SMART_FOUND;
	}
	return merge->has_last == SMART_FOUND_BEHIND ? SMART_FOUND_BEHIND : SMART_FOUND_END;
}

/* A page that operations concern, or which is not to be kept. */
static enum smart_found
merge_with_waiting(struct merge *merge, const struct smart_run_place *page)
{
	enum smart_found found = merge_waiting(merge);

	if (found == SMART_FOUND_END)
		found = merge_page(merge, page);
	return found == SMART_FOUND_END ? merge_rest(merge) : found;
}

/* SMART_FOUND: that is enough. */
static enum smart_found
keep(struct merge *merge, const struct smart_run_place *page)
{
	smart_assert(merge->sink->keep != NULL && page->length <= SMART_KEY_MAX);
	merge->kept++;
	merge->merged = 0;
	return merge->sink->keep(merge->sink->argument, page) ? SMART_FOUND_END : SMART_FOUND;
}

/* A page without operations is kept, if the ones beside it are; or waits. */
static enum smart_found
keep_or_wait(struct merge *merge, const struct smart_run_place *page)
{
	enum smart_found found = SMART_FOUND_END;

	smart_assert(merge->waiting < STRETCH && (merge->waiting == 0 || !was_last_kept(merge)));
	if (was_last_kept(merge))
		return keep(merge, page);
	smart_run_place_copy(&merge->wait[merge->waiting++], page);
	if (merge->waiting < STRETCH)
		return found;
	for (uint32 i = 0; i < STRETCH && found == SMART_FOUND_END; i++)
		found = keep(merge, &merge->wait[i]);
	merge->waiting = 0;
	return found;
}

/* Merges run and chain; SMART_FOUND: enough was taken. */
static enum smart_found
merge_all(struct merge *merge)
{
	enum smart_found found = SMART_FOUND_END;
	struct smart_run_place page;

	go_on_with_chain(merge);
	merge->has_next = smart_run_walk_next(merge->walk, &merge->next);
	while (found == SMART_FOUND_END && merge->has_next == SMART_FOUND)
	{
		smart_run_place_copy(&page, &merge->next);
		merge->has_next = smart_run_walk_next(merge->walk, &merge->next);
		if (merge->sink->keep != NULL && merge->has_next != SMART_FOUND_BEHIND && !is_in_front(merge))
			found = keep_or_wait(merge, &page);
		else
			found = merge_with_waiting(merge, &page);
	}
	if (found == SMART_FOUND_END)
		found = merge_waiting(merge);
	if (found == SMART_FOUND_END)
		found = merge_rest(merge);
	if (found == SMART_FOUND_END && merge->has_next == SMART_FOUND_BEHIND)
		found = SMART_FOUND_BEHIND;
	if (found == SMART_FOUND_END)
	{
		smart_assert(merge->has_last == SMART_FOUND_END && merge->waiting == 0);
		smart_reader_check_all(&merge->reader, merge->kept);
	}
	return found;
}

enum smart_found
smart_journal_merge(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					const struct smart_look *look, const struct smart_sink *sink, struct smart_merged *merged)
{
	struct merge *merge = palloc0(sizeof(*merge));
	enum smart_found found;

	smart_assert(meta->journal != 0);
	smart_assert(sink->keep == NULL || sink->go_on != NULL);
	merge->index = index;
	merge->codec = codec;
	merge->sink = sink;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_JOURNAL);
	found = smart_sorted_chain_begin(index, codec, meta, look, NULL, &merge->chain, &merged->place);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_LOAD);
	if (found == SMART_FOUND_END)
	{
		smart_reader_begin_run(&merge->reader, index, meta, true);
		merge->walk = smart_run_walk_begin(index, meta);
		found = merge_all(merge);
		merged->read = merge->reader.entries;
		smart_run_walk_end(merge->walk);
		smart_sorted_chain_end(merge->chain);
	}
	pfree(merge);
	return found;
}
