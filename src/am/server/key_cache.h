/*
 * key_cache.h
 *	  What runs have under single keys: a lookup need not read the pages of the run for what was read of late (src/README, J17).
 *
 * A run never changes, so what is kept here of one is true as long as the run has its name.  It is of this server alone,
 * and may go at any moment: then the run is read.
 */
#ifndef SMART_AM_KEY_CACHE_H
#define SMART_AM_KEY_CACHE_H

#include "am/server/run_name.h"

#define SMART_CACHED_ENTRIES 15  /* of a key */
#define SMART_CACHED_BYTES   115 /* of a key: its columns, and what its entries have behind them */

/* What a run has under a key: entries in their order, each without the columns that they begin with. */
struct smart_cached_key
{
	int count;
	int bytes;                          /* used */
	uint8 length[SMART_CACHED_ENTRIES]; /* of each; at least 1 */
	uint8 byte[SMART_CACHED_BYTES];
};

/* As those of key_memory.h. */
extern void smart_key_cache_request(void);
extern void smart_key_cache_make(void);

/* A run's number: no other run has or will have it.  0: it cannot be asked for.  Waits for a lock. */
extern uint32 smart_key_cache_number(const struct smart_run_name *name);

/* Adds an entry; false: there are too many, or they are too long together. */
extern bool smart_cached_key_add(struct smart_cached_key *key, int columns_length, const uint8 *rest, int length);

/* Has it this entry? */
extern bool smart_cached_key_has(const struct smart_cached_key *key, const uint8 *rest, int length);

/*
 * What the run of this number has under these columns, which are all key columns of an index, and at most
 * SMART_CACHED_BYTES bytes.  False: it is not known.
 */
extern bool smart_key_cache_find(uint32 run, const uint8 *columns, int length, struct smart_cached_key *key);

/* Has the processor fetch what smart_key_cache_find() will look at. */
extern void smart_key_cache_prefetch(uint32 run, const uint8 *columns, int length);

/* Keeps it, where nobody is in the way. */
extern void smart_key_cache_keep(uint32 run, const uint8 *columns, int length, const struct smart_cached_key *key);

#endif /* SMART_AM_KEY_CACHE_H */
