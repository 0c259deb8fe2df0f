/*
 * ycsb_shared.c
 *	  Memory that the processes of a benchmark share.
 */
#include <sys/mman.h>

#include "ycsb_shared.h"

#define ALIGNMENT 128

bool
ycsb_shared_open(struct ycsb_shared *shared, size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return false;
	*shared = (struct ycsb_shared){.base = base, .size = bytes};
	return true;
}

void *
ycsb_shared_allocate(struct ycsb_shared *shared, size_t bytes)
{
	size_t taken = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	uint8_t *place = shared->base + shared->used;

	if (taken > shared->size - shared->used)
		return NULL;
	shared->used += taken;
	return place;
}

void
ycsb_shared_close(struct ycsb_shared *shared)
{
	munmap(shared->base, shared->size);
}
