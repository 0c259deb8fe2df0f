/*
 * collector.h
 *	  What a build or a rebuild takes from the table, or one process's part of it, and
 *	  puts into a tree: the sorted entries.
 */
#ifndef SMART_AM_COLLECTOR_H
#define SMART_AM_COLLECTOR_H

#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"

#include "tree/layout.h"

struct smart_codec;
struct smart_duplicates;
struct smart_run_filter;
struct smart_run_writer;
struct smart_sorter;
struct smart_tree;

struct smart_collector
{
	Relation heap;
	Relation index;
	struct smart_codec *codec;
	struct smart_sorter *sorter;
	struct smart_duplicates *duplicates; /* of a unique index, else NULL */
	double rows;                         /* of the table that were read */
	double entries;

	/* Where the entries are put down, too, as they are loaded; NULL: nowhere. */
	struct smart_run_writer *run;
	struct smart_run_filter *filter; /* of the run; NULL: it has none */
	bool may_leave; /* with a run: where the tree has no room any more, the rest goes into that alone */
	bool left;      /* that has happened, and the tree is of no use */

	/* Set before the table is read, if other processes read it, too, by pages: the chunks that are taken; else NULL. */
	pg_atomic_uint32 *chunks;

	/*
	 * Both are set before the table is read.  all_versions: read also the rows that a transaction has not yet
	 * committed, since no writer is locked out.  look_around: called now and then, to serve more than interrupts; or NULL.
	 */
	bool all_versions;
	void (*look_around)(const struct smart_collector *self);
	uint8 entry[SMART_ENTRY_MAX];
};

/*
 * Prepares the build of an index by so many processes, each with its part of maintenance_work_mem.  Memory comes from
 * CurrentMemoryContext.
 */
extern void smart_collector_begin(struct smart_collector *self, Relation heap, Relation index, const IndexInfo *info,
								  int processes);

/* Reads all rows that scan gives, or, if it is NULL, all of the table; sets info->ii_BrokenHotChain if there is one. */
extern void smart_collector_read(struct smart_collector *self, IndexInfo *info, TableScanDesc scan, bool progress);

/*
 * When the sorter has been told to perform: puts all entries into a tree that no other process sees (NULL: into none).
 * UNIQUE_VIOLATION.
 */
extern void smart_collector_load(struct smart_collector *self, struct smart_tree *tree);

#endif /* SMART_AM_COLLECTOR_H */
