/*
 * paged_delete.h
 *	  VACUUM's removals from an index that answers from the pages of its journal (src/am/journal/view.h).
 *
 * The removals are operations in the chain, and nothing else: views have a delta that follows the chain.  In WAL they stand
 * behind what made their rows removable, and before what gives their TIDs to other rows.  So a crash takes back neither alone.
 */
#ifndef SMART_AM_PAGED_DELETE_H
#define SMART_AM_PAGED_DELETE_H

#include "access/genam.h"

struct smart_dead_tids;

struct smart_paged_delete
{
	IndexBulkDeleteCallback callback;
	void *argument;
	const struct smart_dead_tids *dead; /* what callback says, if that is known; else NULL */
	uint64 visited;                     /* entries */
	uint64 removed;
};

/*
 * Removes the entries of dead rows.  Who looks at them by now is not waited for.  False: the index does not answer so, or not any
 * more; nothing was removed that is not in the journal.  Errors: those of view.h, of WAL, and what callback raises.
 */
extern bool smart_paged_delete(Relation index, struct smart_paged_delete *paged);

#endif /* SMART_AM_PAGED_DELETE_H */
