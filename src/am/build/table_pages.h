/*
 * table_pages.h
 *	  Reading a table for the build of an index, a page at a time.
 */
#ifndef SMART_AM_TABLE_PAGES_H
#define SMART_AM_TABLE_PAGES_H

#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"

/* What to read, and whom to give the rows. */
struct smart_table_pages
{
	Relation heap;
	Relation index;
	IndexInfo *info;
	pg_atomic_uint32
		*chunks;       /* how many chunks of the table processes have taken: all that build together have the same */
	bool all_versions; /* as anyvisible of table_index_build_range_scan() */
	bool progress;     /* report it */
	IndexBuildCallback add;
	void *state;
};

/* Can the table be read so?  Not if it is no heap; and CONCURRENTLY has one snapshot for all of it. */
extern bool smart_table_has_pages(Relation heap, const IndexInfo *info);

/*
 * Reads what other processes do not read of a table, as table_index_build_range_scan() does; returns the number of its rows that
 * were read.  Sets info->ii_BrokenHotChain if there is one.
 */
extern double smart_table_pages_read(const struct smart_table_pages *pages);

#endif /* SMART_AM_TABLE_PAGES_H */
