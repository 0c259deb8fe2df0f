/*
 * loading.h
 *	  Loading an index in the background, as others see it, and as it sees others.
 */
#ifndef SMART_AM_LOADING_H
#define SMART_AM_LOADING_H

#include "storage/lockdefs.h"

#include "am/codec/encode.h"
#include "am/journal/fill.h"
#include "tree/tree.h"

/* smart_journal_load() on a primary, smart_follow_load() on a standby. */
typedef enum smart_loaded (*smart_load_fn)(Relation index, const struct smart_look *look, uint64 *entries);

/*
 * Loads the index of a table, shows in pg_stat_progress_create_index how far that is, and tells the log when it is done.
 * Returns what load() does; errors as its.
 */
extern bool smart_load_and_tell(Relation heap, Relation index, smart_load_fn load, const struct smart_look *look);

/* Tells pg_stat_progress_create_index that the index of a table is being made. */
extern void smart_tell_begin(Relation heap, Relation index);

/*
 * Waits until all transactions have ended that have written to a table, looking around meanwhile.  LOCK_NOT_AVAILABLE: they
 * have not after so long; what look raises.
 */
extern void smart_wait_for_writers(Relation heap, long patience_ms, const struct smart_look *look);

/* Adds all entries of a batch to a tree of the index, which may have them already.  entry: room for one. */
extern void smart_add_batch(Relation index, const struct smart_codec *codec, struct smart_tree *tree,
							const struct smart_batch *batch, uint8 entry[SMART_ENTRY_MAX]);

#endif /* SMART_AM_LOADING_H */
