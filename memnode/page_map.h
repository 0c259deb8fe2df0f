/*
 * page_map.h
 *	  Who has most of a node's memory, and a map of it.
 */
#ifndef MEMNODE_PAGE_MAP_H
#define MEMNODE_PAGE_MAP_H

#include "report.h"

/* So many owners have a colour of their own; the others share one, which is the last. */
#define MEMNODE_COLOURS 8

struct memnode_rank
{
	uint32_t owner;
	uint64_t used; /* bytes */
};

/* Owners of whom anything is known, those with the most memory first. */
struct memnode_ranking
{
	uint32_t count;
	struct memnode_rank rank[MEMNODE_OWNERS];
	uint8_t colour[MEMNODE_OWNERS]; /* by number of the owner's record: 0..MEMNODE_COLOURS */
};

extern void memnode_ranking_make(const struct memnode_report *report, struct memnode_ranking *ranking);

/* An <svg> of all chunks that can be handed out, in a bounded number of squares, and what they mean. */
extern void memnode_page_map_write(const struct memnode_report *report, const struct memnode_ranking *ranking,
								   struct memnode_text *text);

#endif /* MEMNODE_PAGE_MAP_H */
