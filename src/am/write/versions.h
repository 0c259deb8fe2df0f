/*
 * versions.h
 *	  Entries of dead versions of a row, which whoever inserts another version removes.
 */
#ifndef SMART_AM_VERSIONS_H
#define SMART_AM_VERSIONS_H

#include "storage/itemptr.h"
#include "utils/relcache.h"

#include "am/codec/encode.h"
#include "tree/tree.h"

struct smart_candidate;

#define SMART_VERSIONS_LISTED 1024

/* Rows with the same key that were found dead for all transactions. */
struct smart_versions
{
	uint32 dead;
	uint32 fresh; /* so many of these were not known to be dead before */
	uint32 listed;
	ItemPointerData rows[SMART_VERSIONS_LISTED];
};

static inline void
smart_versions_init(struct smart_versions *versions)
{
	versions->dead = versions->fresh = versions->listed = 0;
}

/* Adds a row. */
static inline void
smart_versions_add(struct smart_versions *versions, const ItemPointerData *row, bool fresh)
{
	versions->dead++;
	versions->fresh += fresh;
	if (versions->listed < SMART_VERSIONS_LISTED)
		versions->rows[versions->listed++] = *row;
}

/* The TID of entry i of a batch of entries that have these columns.  Some of it may lie in the prefix. */
static inline void
smart_versions_tid(const struct smart_codec *codec, uint32 columns_length, const struct smart_batch *batch, uint32 i,
				   ItemPointer tid)
{
	uint32 shared = batch->prefix_length > columns_length ? batch->prefix_length - columns_length : 0;
	uint32 skipped = columns_length > batch->prefix_length ? columns_length - batch->prefix_length : 0;
	/* A little more than there may be: SMART_BATCH_SLACK. */
	uint64 bytes = smart_load_be64(batch->bytes + batch->items[i].offset + skipped);

	smart_assert(shared <= SMART_TID_LONGEST && batch->prefix_length + batch->items[i].length > columns_length);
	if (shared > 0)
		bytes =
			bytes >> (8 * shared) | (smart_load_be64(batch->prefix + columns_length) & ~(UINT64_MAX >> (8 * shared)));
	smart_entry_tid_at(codec, bytes, tid);
}

/*
 * Removes the entries of rows that the check of a unique index has found dead, when there are enough; or tells the worker
 * that does so, where that takes round trips.  The caller has neither the key's lock nor a vacuum pin.  Errors of the
 * table's pages and of WAL.
 */
extern void smart_versions_after_check(const struct smart_candidate *candidate, const struct smart_versions *versions);

/*
 * The candidate is a new version of a row whose columns of this index, which is not unique, have not changed: now and then
 * looks for dead versions nearby, and removes their entries.  Errors as above, and of reading the tree.
 */
extern void smart_versions_after_insert(const struct smart_candidate *candidate);

#endif /* SMART_AM_VERSIONS_H */
