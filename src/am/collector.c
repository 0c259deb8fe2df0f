/*
 * collector.c
 *	  What a build takes from the table: rows become entries for the sorter.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/collector.h"
#include "am/environment.h"

#define ROWS_PER_PAGE 300 /* at least as many as fit on a page of a heap */

void
smart_collector_begin(struct smart_collector *self, Relation heap, Relation index, const IndexInfo *info, int processes)
{
	Size memory = (Size) maintenance_work_mem * 1024 / (Size) processes;
	Size width;
	Size expected;

	memset(self, 0, offsetof(struct smart_collector, entry));
	self->heap = heap;
	self->index = index;
	self->codec = smart_codec_make(index, CurrentMemoryContext);
	width = self->codec->fixed_length > 0 ? (Size) self->codec->fixed_length + 32 : (Size) BLCKSZ / 64;
	expected = (Size) RelationGetNumberOfBlocks(heap) / (Size) processes * ROWS_PER_PAGE * width;
	smart_environment_init();
	self->sorter = smart_sorter_begin(self->codec->fixed_length, memory, expected, &smart_environment);
	if (info->ii_Unique)
		self->duplicates = smart_duplicates_begin(heap, index, self->codec, info->ii_NullsNotDistinct);
}

/* Called for every row that has an entry. */
static void
add_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	struct smart_collector *self = state;
	int key_length;
	int length;

	length = smart_codec_encode(self->codec, values, isnull, tid, self->entry, &key_length);
	smart_sorter_add(self->sorter, self->entry, length);
	if (!alive && self->duplicates != NULL)
		smart_duplicates_add_dead(self->duplicates, tid);
	self->entries++;
}

void
smart_collector_read(struct smart_collector *self, IndexInfo *info, TableScanDesc scan, bool progress)
{
	self->rows = table_index_build_scan(self->heap, self->index, info, true, progress, add_row, self, scan);
}
