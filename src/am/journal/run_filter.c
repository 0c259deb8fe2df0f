/*
 * run_filter.c
 *	  The filter of a run that is being written.
 *
 * Keys are put in by the dozen: each lies somewhere else in memory, and the processor can fetch several at a time.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/journal/run_filter.h"
#include "am/server/key_filter.h"
#include "base/assert.h"

#define AT_ONCE 32

struct smart_run_filter
{
	const struct smart_codec *codec;
	struct smart_key_filter *filter;
	bool continued;
	int waiting;
	uint64 hash[AT_ONCE];
};

struct smart_run_filter *
smart_run_filter_begin(Relation index, const struct smart_codec *codec, const struct smart_meta *before, double entries,
					   double more)
{
	const struct smart_key_filter_name name = {.file = smart_relation_locator(index),
											   .journal = before == NULL ? 0 : before->journal,
											   .run = before == NULL ? 0 : before->run};
	struct smart_run_filter *self;

	if (!index->rd_index->indisunique)
		return NULL;
	self = palloc0(sizeof(*self));
	self->codec = codec;
	self->filter = smart_key_filter_begin(&name, entries, more, &self->continued);
	return self->filter == NULL ? NULL : self;
}

static void
add_waiting(struct smart_run_filter *self)
{
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
	self->hash[self->waiting++] =
		smart_key_filter_hash(entry, smart_entry_columns_length(self->codec, entry, key_length));
	if (self->waiting == AT_ONCE)
		add_waiting(self);
}

void
smart_run_filter_end(struct smart_run_filter *self, Relation index, const struct smart_run *run)
{
	const struct smart_key_filter_name name = {.file = smart_relation_locator(index),
											   .journal = run->journal,
											   .run = run->id};

	if (self == NULL)
		return;
	add_waiting(self);
	/* What is on the pages that were kept was not added: one that goes on has it from before. */
	smart_key_filter_end(self->filter, run->pages > 0 && (run->kept == 0 || self->continued) ? &name : NULL);
}
