/*
 * run_filter.c
 *	  The filter of a run that is being written.
 *
 * Keys are put in by the dozen: each lies somewhere else in memory, and the processor can fetch several at a time.
 *
 * A new filter lacks what is on pages that are kept, which a compaction does not read.  They are read for it, once: the next run goes
 * on with the filter.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/journal/read.h"
#include "am/journal/run_filter.h"
#include "am/server/key_filter.h"
#include "base/assert.h"

#define AT_ONCE 32

struct smart_run_filter
{
	const struct smart_codec *codec;
	struct smart_key_filter *filter;
	struct smart_reader *kept; /* of the run before; NULL: the filter has its keys, or it has no pages */
	int waiting;
	uint64 hash[AT_ONCE];
};

struct smart_run_filter *
smart_run_filter_begin(Relation index, const struct smart_codec *codec, const struct smart_meta *before, double entries,
					   double more)
{
	const struct smart_run_name name = before == NULL ? (struct smart_run_name){.file = smart_relation_locator(index)}
													  : smart_meta_run_name(&smart_relation_locator(index), before);
	struct smart_run_filter *self;
	bool continued;

	if (!index->rd_index->indisunique)
		return NULL;
	self = palloc0(sizeof(*self));
	self->codec = codec;
	self->filter = smart_key_filter_begin(&name, entries, more, &continued);
	if (self->filter == NULL)
		return NULL;
	if (!continued && before != NULL)
	{
		self->kept = palloc(sizeof(*self->kept));
		smart_reader_begin_run(self->kept, index, before, true);
	}
	return self;
}

static void
add_waiting(struct smart_run_filter *self)
{
	smart_assert(self->waiting >= 0 && self->waiting <= AT_ONCE);
	for (int i = 0; i < self->waiting; i++)
		smart_key_filter_prefetch(self->filter, self->hash[i]);
	for (int i = 0; i < self->waiting; i++)
		smart_key_filter_add(self->filter, self->hash[i]);
	self->waiting = 0;
}

void
smart_run_filter_add(struct smart_run_filter *self, const uint8 *entry, int length)
{
	int key_length;

	if (self == NULL)
		return;
	key_length = smart_codec_key_length(self->codec, entry, length);
	smart_assert(key_length > 0 && key_length <= length);
	smart_assert(self->waiting < AT_ONCE);
	self->hash[self->waiting++] =
		smart_key_filter_hash(entry, smart_entry_columns_length(self->codec, entry, key_length));
	if (self->waiting == AT_ONCE)
		add_waiting(self);
}

bool
smart_run_filter_keep(struct smart_run_filter *self, BlockNumber block)
{
	struct smart_reader *kept = self == NULL ? NULL : self->kept;
	enum smart_found found;

	if (kept == NULL)
		return true;
	smart_reader_go_to(kept, block, true);
	while ((found = smart_reader_next_of_page(kept)) == SMART_FOUND)
	{
		smart_reader_check(kept, self->codec, false);
		smart_run_filter_add(self, kept->unpacker.entry, kept->unpacker.length);
	}
	return found == SMART_FOUND_END;
}

void
smart_run_filter_end(struct smart_run_filter *self, Relation index, const struct smart_run *run)
{
	const struct smart_run_name name = {.file = smart_relation_locator(index),
										.journal = run->journal,
										.run = run->id,
										.made = run->made};

	if (self == NULL)
		return;
	add_waiting(self);
	smart_key_filter_end(self->filter, run->pages > 0 ? &name : NULL);
}
