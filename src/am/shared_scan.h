/*
 * shared_scan.h
 *	  A scan that several processes share, and the leaves that one of them has taken.
 */
#ifndef SMART_AM_SHARED_SCAN_H
#define SMART_AM_SHARED_SCAN_H

#include "postgres.h"

#include "access/relscan.h"

#include "am/am.h"
#include "am/ranges.h"

/* Where the next one goes on. */
struct smart_shared_place
{
	bool started;                  /* false: at the beginning of the first range */
	uint32 points[INDEX_MAX_KEYS]; /* of the range */
	uint32 length;
	uint8 key[SMART_KEY_MAX + 1]; /* behind this entry; before it if the scan goes backward */
};

/*
 * Waits for its turn to take leaves, and copies out where they begin.  False: there are no more.
 * After true, and nothing but an error in between, give or finish has to be called.
 */
extern bool smart_shared_scan_take(IndexScanDesc scan, struct smart_shared_place *place);

/* The next one goes on there. */
extern void smart_shared_scan_give(IndexScanDesc scan, const struct smart_shared_place *place);

/* Nobody finds any more. */
extern void smart_shared_scan_finish(IndexScanDesc scan);

/* ---- leaves that were taken ---- */

#define SMART_PIECES_MAX 16

/* Copies of batches, in the order in which they were read. */
struct smart_pieces
{
	MemoryContext parent;
	MemoryContext context; /* of the copies; NULL: there has been none */
	uint32 wanted;         /* at the next take: few at first, since the scan may end early */
	uint32 count;
	uint32 next;
	struct smart_batch batches[SMART_PIECES_MAX];
};

/* Copies will live in a child of CurrentMemoryContext. */
extern void smart_pieces_init(struct smart_pieces *pieces);

/* Forgets all copies. */
extern void smart_pieces_clear(struct smart_pieces *pieces);

extern void smart_pieces_add(struct smart_pieces *pieces, const struct smart_batch *batch);

/* The next copy, good until they are cleared.  False: there is none. */
extern bool smart_pieces_next(struct smart_pieces *pieces, struct smart_batch *batch);

#endif /* SMART_AM_SHARED_SCAN_H */
