/*
 * run_walk.h
 *	  Which pages a run has: by its fence pages, without reading the pages themselves.
 */
#ifndef SMART_AM_JOURNAL_RUN_WALK_H
#define SMART_AM_JOURNAL_RUN_WALK_H

#include "am/journal/read.h"
#include "am/journal/run.h"

struct smart_run_walk;

/* Begins with the run that this metapage tells of; there may be none.  The walk lives in CurrentMemoryContext. */
extern struct smart_run_walk *smart_run_walk_begin(Relation index, const struct smart_meta *meta);

/*
 * The next page, in the order of entries.  In front of the first one's separator there may be entries, too.  Results and errors
 * as of smart_reader_next_entry().
 */
extern enum smart_found smart_run_walk_next(struct smart_run_walk *walk, struct smart_run_place *page);

extern void smart_run_walk_end(struct smart_run_walk *walk);

/* The blocks of a run's pages, fence pages left out, as a set.  NULL: the reader was left behind.  Errors likewise. */
struct smart_run_map
{
	BlockNumber blocks; /* what is not below is not in the run */
	uint8 bits[FLEXIBLE_ARRAY_MEMBER];
};

extern struct smart_run_map *smart_run_map_make(Relation index, const struct smart_meta *meta);

static inline bool
smart_run_map_has(const struct smart_run_map *map, BlockNumber block)
{
	return block < map->blocks && (map->bits[block / 8] >> block % 8 & 1) != 0;
}

#endif /* SMART_AM_JOURNAL_RUN_WALK_H */
