/*
 * kept.h
 *	  Memory of a region, or of a book's own part, that belongs to no tree: pieces of
 *	  64 KiB that stay where they are for as long as the region lives.
 *
 * They outlive a clean restart and the death of the server, and nobody but their
 * user looks at what is in them; recovery leaves their bytes alone.
 */
#ifndef SMART_COMPUTE_KEPT_H
#define SMART_COMPUTE_KEPT_H

#include "compute/space.h"

#define SMART_KEPT_BYTES (UINT32_C(64) << 10)
#define SMART_KEPT_MAX   1024u

/*
 * Makes piece number piece (below SMART_KEPT_MAX), zeros, unless there is one by that number.  Takes the directory's
 * lock.  SMART_NO_SPACE, SMART_DISK_FULL, SMART_UNREACHABLE (the region's file).
 */
extern smart_status smart_space_keep(struct smart_space *space, unsigned int piece);

/* The piece's bytes at a multiple of a page, or NULL if it was never made.  Wait-free, no lock. */
extern void *smart_kept_piece(const struct smart_region *region, unsigned int piece);

/* Calls run() for every run of pages that the pieces take, until it does not say SMART_OK: for who counts pages. */
typedef smart_status (*smart_kept_fn)(void *argument, uint32_t page, unsigned int order);

extern smart_status smart_kept_runs(const struct smart_region *region, smart_kept_fn run, void *argument);

#endif /* SMART_COMPUTE_KEPT_H */
