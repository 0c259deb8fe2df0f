/*
 * key_filter.h
 *	  Filters of the keys that runs of unique indexes hold: a check need not read the run for a key that it lacks (src/README, J16).
 *
 * A filter has the name of a run, and never lacks a key of it; it may seem to have one that the run does not have.  It is
 * volatile, of this server alone, and may be thrown away at any moment: then the run is read.
 *
 * Who writes a run begins a filter for it, or goes on with that of the run before, and puts in the keys of all entries that
 * he writes.  When the metapage names the run, he gives the filter that name.  A key is never taken out.
 *
 * It is a split block Bloom filter: Putze, Sanders and Singler, Cache-, Hash- and Space-Efficient Bloom Filters, 2007,
 * section 3.  Each key sets a bit in each word of one block, which is half a cache line.
 */
#ifndef SMART_AM_KEY_FILTER_H
#define SMART_AM_KEY_FILTER_H

#include "am/server/run_name.h"

#define SMART_KEY_FILTERS 64

/* As those of key_memory.h. */
extern void smart_key_filter_request(void);
extern void smart_key_filter_make(void);

/* The hash of length bytes of a key's columns. */
extern uint64 smart_key_filter_hash(const uint8 *columns, int length);

/* Does the run of this name lack the key with this hash?  False: it may have it, or it has no filter. */
extern bool smart_key_filter_lacks(const struct smart_run_name *name, uint64 hash);

/* The bytes of that run's filter, or 0. */
extern uint64 smart_key_filter_bytes(const struct smart_run_name *name);

/* The files of all filters, one for each of them; returns how many there are. */
extern int smart_key_filter_files(smart_file files[SMART_KEY_FILTERS]);

/*
 * Throws away the filters of these files to which nobody adds.  Gives the cache more of what filters leave, if it has not all.
 */
extern void smart_key_filter_forget(const smart_file *files, int count);

/* ---- who writes a run ---- */

struct smart_key_filter;

/*
 * A filter for so many keys, to be added to: that of the run before, if it has one with room for more of them; else a new
 * one.  *continued tells.  before: its run is 0 if there is none.  NULL: there is no room.  It ends with
 * smart_key_filter_end() or with CurrentMemoryContext.
 */
extern struct smart_key_filter *
smart_key_filter_begin(const struct smart_run_name *before, double keys, double more, bool *continued);

extern void smart_key_filter_add(struct smart_key_filter *filter, uint64 hash);

/* Has the processor fetch what will be changed. */
extern void smart_key_filter_prefetch(const struct smart_key_filter *filter, uint64 hash);

/*
 * It has all keys of the run of this name, which the metapage names.  NULL: it may lack some, and is thrown away; one that was
 * continued stays that of the run before.
 */
extern void smart_key_filter_end(struct smart_key_filter *filter, const struct smart_run_name *name);

#endif /* SMART_AM_KEY_FILTER_H */
