/*
 * shared_scan.h
 *	  A scan that several processes share, and the leaves that one of them has taken.
 */
#ifndef SMART_AM_SHARED_SCAN_H
#define SMART_AM_SHARED_SCAN_H

#include "access/relscan.h"

#include "am/compat.h"
#include "tree/tree.h"

/* Callbacks of IndexAmRoutine */
extern Size smart_am_estimate_parallel_scan(SMART_ESTIMATE_PARALLEL_SCAN_ARGUMENTS);
extern void smart_am_init_parallel_scan(void *target);
extern void smart_am_parallel_rescan(IndexScanDesc scan);

/* Where the next process goes on. */
struct smart_shared_place
{
	bool started;                  /* false: at the beginning of the first range */
	uint32 points[INDEX_MAX_KEYS]; /* of the range */
	uint32 length;
	uint8 key[SMART_KEY_MAX + 1]; /* behind this entry; before it if the scan goes backward */
};

/*
 * Waits for this process's turn to take leaves, and returns where they begin; NULL: there are no more.  The place
 * belongs to this process until it gives, which it has to do, if no error comes.
 */
extern struct smart_shared_place *smart_shared_scan_take(IndexScanDesc scan);

/* The next process goes on at the place, or (more false) no process finds any more. */
extern void smart_shared_scan_give(IndexScanDesc scan, bool more);

/* ---- leaves that were taken ---- */

#define SMART_PIECES_MAX 16

/* Copies of batches, in the order in which they were read. */
struct smart_pieces
{
	MemoryContext parent;  /* set by the user; the rest is zero at first, but for wanted */
	MemoryContext context; /* of the copies; NULL: there has been none */
	uint32 wanted;         /* at the next take: few at first, since the scan may end early */
	uint32 count;
	uint32 next; /* to be gone through */
	struct smart_batch batches[SMART_PIECES_MAX];
};

/* Forgets all copies. */
extern void smart_pieces_clear(struct smart_pieces *pieces);

/* Adds a copy, good until they are cleared. */
extern void smart_pieces_add(struct smart_pieces *pieces, const struct smart_batch *batch);

#endif /* SMART_AM_SHARED_SCAN_H */
