/*
 * arena.c
 *	  Memory of the simulated processes: what a dead client leaves is gone with
 *	  the history.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

#define ARENA_BYTES (64 * 1024 * 1024)
#define CLASSES     32

/* In front of every allocation. */
struct header
{
	unsigned int class; /* 16 << class bytes */
	struct header *next;
};

static char *arena;
static size_t used;
static struct header *free_lists[CLASSES];

void
arena_reset(void)
{
	used = 0;
	memset(free_lists, 0, sizeof(free_lists));
}

void *
arena_allocate(size_t bytes)
{
	unsigned int class = 0;
	struct header *header;

	while (((size_t) 16 << class) < bytes)
		class ++;
	smart_assert(class < CLASSES);
	header = free_lists[class];
	if (header != NULL)
	{
		free_lists[class] = header->next;
		return header + 1;
	}
	if (arena == NULL && (arena = aligned_alloc(64, ARENA_BYTES)) == NULL)
		abort();
	if (used + sizeof(*header) + ((size_t) 16 << class) > ARENA_BYTES)
		return NULL;
	header = (struct header *) (void *) (arena + used);
	header->class = class;
	used += sizeof(*header) + ((size_t) 16 << class);
	return header + 1;
}

void
arena_release(void *memory)
{
	struct header *header = (struct header *) memory - 1;

	header->next = free_lists[header->class];
	free_lists[header->class] = header;
}
