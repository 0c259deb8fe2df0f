/*
 * recover_parts.h
 *	  What the parts of recovery offer to each other; not for others (they use
 *	  recover.h).
 *
 *	  recover         the course of it, and what is trusted
 *	  recover_pages   chunks' maps, counts and lists
 *	  recover_trees   the directory
 *	  recover_slabs   blocks, and the slabs that they prove
 *	  recover_book    memory nodes, remote chunks, duties
 *
 * Nobody else uses the region, so none of them takes a lock.
 */
#ifndef SMART_COMPUTE_RECOVER_PARTS_H
#define SMART_COMPUTE_RECOVER_PARTS_H

#include "compute/book_parts.h"
#include "compute/recover.h"

struct recover
{
	struct smart_space *space;
	struct smart_region *region;
	struct fabric *fabric;
	struct smart_env *env;
	struct smart_recovery *recovery;
	uint32_t record;      /* of the tree that is being marked */
	uint64_t pages_found; /* for progress */
	uint64_t pages_before;
};

/* SMART_CORRUPT, and what is wrong. */
extern smart_status smart_recover_fault(struct recover *recover, const char *what, uint64_t where);

/* ---- recover_pages ---- */

/* No page is in use, and no slab anywhere; chunks are in no list.  Remote chunks: those whose state says so. */
extern void smart_recover_clear_chunks(struct recover *recover);

/* A run of pages is in use.  SMART_CORRUPT: there is no such run, or part of it is in use already. */
extern smart_status smart_recover_claim(struct recover *recover, uint32_t page, unsigned int order);

/* The opposite. */
extern void smart_recover_release(struct recover *recover, uint32_t page, unsigned int order);

/* Counts pages, and puts every chunk in use into its list. */
extern void smart_recover_list_chunks(struct recover *recover);

/* ---- recover_trees ---- */

/* Claims the pages of the directory, and makes its table and lists from the records; trees have no slabs then. */
extern smart_status smart_recover_directory(struct recover *recover);

/* ---- recover_slabs ---- */

/* Marks the blocks of the tree in a record; a tree that leads to a lost memory node becomes lost itself. */
extern smart_status smart_recover_tree(struct recover *recover, uint32_t record);

/* Puts every slab into its tree's lists; those of lost trees go. */
extern void smart_recover_list_slabs(struct recover *recover);

/* ---- recover_book ---- */

/* Before the directory: memory nodes and the map; each remote chunk is in use, leaving, or its number unused. */
extern smart_status smart_recover_nodes(struct recover *recover);

/* A record that is in use, or has been, by its state: it stays a tree, it is a duty now (true), or it is free (false). */
extern bool smart_recover_duty(struct recover *recover, uint32_t record);
extern smart_status smart_recover_remote_tree(struct recover *recover, uint32_t record);

/* After all: wholly free chunks beyond a few leave, and lost nodes that nothing refers to are forgotten. */
extern void smart_recover_end_nodes(struct recover *recover);

#endif /* SMART_COMPUTE_RECOVER_PARTS_H */
