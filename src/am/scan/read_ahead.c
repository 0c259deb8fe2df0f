/*
 * read_ahead.c
 *	  What a scan is going to be asked for.
 *
 * A leaf may be READ long before its turn, but not before the scan begins (src/README, Reading).  A search with an MVCC
 * snapshot wants what its snapshot sees, and that was in the tree when the snapshot was taken: so leaves that were READ at any
 * time since will do.  Any other snapshot sees rows that come meanwhile.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "am/index/relation.h"
#include "am/scan/position_source.h"
#include "am/scan/predicate.h"
#include "am/scan/ranges.h"
#include "am/scan/read_ahead.h"
#include "am/scan/scankey.h"
#include "am/server/shared.h"
#include "base/assert.h"

/* Adds where the ranges of these keys begin, unless the results are cached.  False: there are enough. */
static bool
add_ranges(struct smart_position *self, struct smart_tree *tree, struct smart_ranges *ranges, ScanKey keys, int nkeys)
{
	struct smart_ahead_ranges *ahead = &self->prefetch.to_come;
	struct smart_result cached = {.ticket = 0};

	smart_ranges_set(ranges, keys, nkeys);
	if (!smart_ranges_first(ranges, false) || smart_ahead_ranges_ends_with(ahead, ranges))
		return true;
	if (smart_ranges_are_points(ranges) && smart_tree_result(tree, ranges->from, ranges->from_length, &cached))
		return true;
	/* As for any other READ, the lock comes first. */
	smart_predicate_lock(self->scan->indexRelation, self->scan->xs_snapshot, ranges);
	return smart_ranges_first(ranges, false) &&
		   smart_ahead_ranges_add(ahead, self->prefetch.context, ranges, cached.ticket);
}

/* Reads the leaves for several sets of keys, under a pin.  False: nothing was to be read, or could be. */
static bool
read_ahead(struct smart_position *self, ScanKey keys, int nkeys, int sets)
{
	struct smart_ahead_ranges *ahead = &self->prefetch.to_come;
	struct smart_relation *read;
	smart_status status;

	smart_assert(sets >= 2 && ahead->count == 0);
	smart_position_begin_pin(self);
	/* It may have gone on in pages with a new pin. */
	read = smart_position_tree(self);
	if (read == NULL)
		return false;
	if (self->expected == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(self->prefetch.context);

		self->expected = smart_ranges_make();
		smart_ranges_use(self->expected, self->relation->codec);
		MemoryContextSwitchTo(old);
	}
	for (int i = 0; i < sets; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!add_ranges(self, read->tree, self->expected, keys + i * nkeys, nkeys))
			break;
	}
	if (ahead->count < 2)
		return false;
	/* Whatever the matter is, the searches will meet it, and know what to do. */
	status = smart_ahead_ranges_read(ahead, smart_relation_scan(read));
	if (status != SMART_OK)
		smart_scan_forget(smart_relation_scan(read));
	return status == SMART_OK;
}

bool
smart_read_ahead(struct smart_position *self, ScanKey keys, int nkeys, int sets)
{
	bool read;

	self->prefetch.to_come.count = 0;
	read = sets >= 2 && smart_server.remote && smart_position_tree(self) != NULL &&
		   IsMVCCSnapshot(self->scan->xs_snapshot) && read_ahead(self, keys, nkeys, sets);
	if (!read)
	{
		self->prefetch.to_come.count = 0;
		smart_position_rest(self);
	}
	return read;
}
