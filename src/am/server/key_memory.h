/*
 * key_memory.h
 *	  The memory for what is known of single keys of runs: filters (key_filter.h), and what runs have under keys that are
 *	  often looked up (key_cache.h).
 *
 * It is smart.cache_size, or an eighth of that besides where there are memory nodes.  Filters take what they need, and the
 * cache has the largest piece that they leave, as long as they do.
 */
#ifndef SMART_AM_KEY_MEMORY_H
#define SMART_AM_KEY_MEMORY_H

#include "storage/lwlock.h"

#define SMART_KEY_UNIT 128 /* bytes */

/* Units of the memory. */
struct smart_key_piece
{
	uint64 first;
	uint64 count;
};

/* In shared memory: asks the server for it (shmem_request_hook), and makes it (shmem_startup_hook). */
extern void smart_key_memory_request(void);
extern void smart_key_memory_make(void);

/* How many units there are; 0: there is no shared memory, too. */
extern uint64 smart_key_memory_units(void);

extern void *smart_key_memory_unit(uint64 unit);

/* Who changes what belongs to whom has it, exclusive; who writes to the cache, shared. */
extern LWLock *smart_key_memory_lock(void);

/*
 * The cache has this piece from now on, or less of it, as what it did not have before has to be cleared.  Whoever gets
 * other units may write to them after this; the lock is held, exclusive.
 */
extern void smart_key_memory_leave(const struct smart_key_piece *piece);

/*
 * The cache's piece, without the lock: what is loaded from it counts if smart_key_memory_is_left() says so afterwards, with
 * this version.  False: it is being changed.  With the lock it stays.
 */
extern bool smart_key_memory_look(struct smart_key_piece *piece, uint64 *version);
extern bool smart_key_memory_is_left(uint64 version);

#endif /* SMART_AM_KEY_MEMORY_H */
