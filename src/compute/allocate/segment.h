/*
 * segment.h
 *	  Persistent segments: memory of a region, or of an extent map's own part, that belongs to no tree.
 *
 * A segment has 64 KiB and stays where it is for as long as the region lives.  Segments outlive a clean restart and the
 * death of the server.  Only their user looks at what is in them; recovery leaves their bytes alone.
 */
#ifndef SMART_COMPUTE_SEGMENT_H
#define SMART_COMPUTE_SEGMENT_H

#include "compute/allocate/space.h"

#define SMART_SEGMENT_BYTES (UINT32_C(64) << 10)
#define SMART_SEGMENT_MAX   1024u

/*
 * Makes segment number segment (below SMART_SEGMENT_MAX), zeros, unless there is one by that number.  Takes the
 * directory's lock.  SMART_NO_SPACE, SMART_DISK_FULL, SMART_UNREACHABLE (the region's file).
 */
extern smart_status smart_space_segment(struct smart_space *space, unsigned int piece);

/* The segment's bytes at a multiple of a page, or NULL if it was never made.  Wait-free, no lock. */
extern void *smart_segment(const struct smart_region *region, unsigned int piece);

/* Calls run() for every run of pages that the segments take, until it does not say SMART_OK: to count pages. */
typedef smart_status (*smart_segment_fn)(void *argument, uint32_t page, unsigned int order);

extern smart_status smart_segment_runs(const struct smart_region *region, smart_segment_fn run, void *argument);

#endif /* SMART_COMPUTE_SEGMENT_H */
