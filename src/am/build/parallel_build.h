/*
 * parallel_build.h
 *	  A build that several processes share: all read the table and sort, one loads the tree.
 */
#ifndef SMART_AM_PARALLEL_BUILD_H
#define SMART_AM_PARALLEL_BUILD_H

#include "am/build/collector.h"

struct smart_parallel_build;

/*
 * Starts workers to build an index with, if the server has some to spare, and enters parallel mode; NULL: it has none.
 */
extern struct smart_parallel_build *smart_parallel_build_begin(Relation heap, Relation index, const IndexInfo *info);

/* How many processes share the build, this one included. */
extern int smart_parallel_build_processes(const struct smart_parallel_build *self);

/*
 * Reads this process's part of the table and waits for the others.  Afterwards
 * collector and info have what all have found; the sorter is to be performed.
 * Raises the error of a process that failed.
 */
extern void
smart_parallel_build_read(struct smart_parallel_build *self, struct smart_collector *collector, IndexInfo *info);

/* When the sorter has given all entries: leaves parallel mode. */
extern void smart_parallel_build_end(struct smart_parallel_build *self);

#endif /* SMART_AM_PARALLEL_BUILD_H */
