/*
 * ycsb_shared.h
 *	  Memory that the processes of a benchmark share.
 *
 * It is mapped before they part, hence at one place in all of them, and nothing
 * of it is given back before the end.
 */
#ifndef YCSB_SHARED_H
#define YCSB_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ycsb_shared
{
	uint8_t *base;
	size_t size;
	size_t used;
};

/* At most so many bytes; what is not used takes none.  False: the system has no room. */
extern bool ycsb_shared_open(struct ycsb_shared *shared, size_t bytes);

/* Zeroed, aligned to 128.  NULL: no more room. */
extern void *ycsb_shared_allocate(struct ycsb_shared *shared, size_t bytes);

extern void ycsb_shared_close(struct ycsb_shared *shared);

#endif /* YCSB_SHARED_H */
