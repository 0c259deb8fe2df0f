/*
 * snapshot.h
 *	  A region written to a file at a clean stop, for memory that does not
 *	  outlive the machine's.
 *
 *	  header 64     magic, version, size, bytes, and a checksum of this header
 *	  private part  as in the region
 *	  chunks        those that have an owner, in order
 *	  checksum 4    CRC-32C of all that comes before
 */
#ifndef MEMNODE_SNAPSHOT_H
#define MEMNODE_SNAPSHOT_H

#include "options.h"
#include "region.h"

/* Could a snapshot be written there, as far as can be seen now?  False: problem[] says why not. */
extern bool memnode_snapshot_possible(const char *path, char problem[MEMNODE_PROBLEM_MAX]);

/* Writes path.new and renames it to path.  False: problem[] says why. */
extern bool
memnode_snapshot_write(const struct memnode_region *region, const char *path, char problem[MEMNODE_PROBLEM_MAX]);

enum memnode_snapshot
{
	MEMNODE_SNAPSHOT_LOADED,
	MEMNODE_SNAPSHOT_NONE,   /* there is no file */
	MEMNODE_SNAPSHOT_REFUSED /* problem[] says why; the region may hold anything, but is none */
};

/*
 * Loads a snapshot into a region's memory, of region->size bytes, and leaves it unpublished
 * (memnode_region_publish) and clean.  The region may be smaller than its memory.
 */
extern enum memnode_snapshot
memnode_snapshot_load(struct memnode_region *region, const char *path, char problem[MEMNODE_PROBLEM_MAX]);

/*
 * Removes a snapshot, also from the disk: a region in use is newer.  False: it is still there, and
 * problem[] says why.
 */
extern bool memnode_snapshot_remove(const char *path, char problem[MEMNODE_PROBLEM_MAX]);

#endif /* MEMNODE_SNAPSHOT_H */
