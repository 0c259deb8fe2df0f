/*
 * memory.h
 *	  What backs a region: POSIX shared memory, huge pages, a file or a DAX device.
 */
#ifndef MEMNODE_MEMORY_H
#define MEMNODE_MEMORY_H

#include "options.h"
#include "region.h"

struct memnode_memory
{
	int descriptor; /* locked, so that no other node uses the region */
	int place;      /* a socket whose name is made of the label: no other node uses this place; -1: it has none */
	uint8_t *base;
	uint64_t size;
	enum memnode_region_kind kind; /* MEMNODE_REGION_NONE or _SAME */
	bool zeroed;                   /* it holds zeros only */
	bool is_file;                  /* what is behind a region in it are zeros, too */
	bool lasting;                  /* it is found again by the next process */
	char label[PATH_MAX];          /* for the operator: where it is */
};

/*
 * Finds or makes the memory that the options name, all of it allocated, and maps it.  port
 * names shared memory that has no name.  False: problem[] says why not, and what to do.
 */
extern bool memnode_memory_open(struct memnode_memory *memory, const struct memnode_options *options, const char *port,
								char problem[MEMNODE_PROBLEM_MAX]);

/* Has somebody removed it?  Then the next process will not find it. */
extern bool memnode_memory_is_removed(const struct memnode_memory *memory);

/* Writes what is in the memory to storage that has it, or fails: then the region is not clean. */
extern bool memnode_memory_sync(const struct memnode_memory *memory);

/* Unmaps it; the memory itself stays where the next process finds it. */
extern void memnode_memory_close(struct memnode_memory *memory);

#endif /* MEMNODE_MEMORY_H */
