/*
 * sorter_runs.h
 *	  Sorted runs of entries in temporary files, and their merge.
 *
 * Private to the sorter.
 */
#ifndef SMART_AM_SORTER_RUNS_H
#define SMART_AM_SORTER_RUNS_H

#include "storage/buffile.h"
#include "storage/sharedfileset.h"

#include "am/sort/sorter.h"

struct smart_runs;

/*
 * entry_length as for the sorter.  The merge may take memory bytes for its buffers, or more_memory if it is told so.
 * files: for the run that the worker of this number will hand over; else NULL.
 */
extern struct smart_runs *
smart_runs_begin(int entry_length, Size memory, Size more_memory, SharedFileSet *files, int worker);

/* Writes a run: start, the entries in ascending order, finish. */
extern void smart_runs_start(struct smart_runs *runs);
extern void smart_runs_write(struct smart_runs *runs, const uint8 *entry, int length);
extern void smart_runs_finish(struct smart_runs *runs);

/*
 * As smart_sorter_hand_over() and smart_sorter_take_over().  The sorter has given up its own memory when it hands over;
 * it takes over before anything is merged.
 */
extern void smart_runs_hand_over(struct smart_runs *runs, BufFile *notes);
extern void
smart_runs_take_over(struct smart_runs *runs, SharedFileSet *files, int worker, BufFile *notes, Size memory);

/* Can all runs be read in one go with the lesser memory? */
extern bool smart_runs_fit(const struct smart_runs *runs);

/* Merges until what is left can be read in one go, and prepares that. */
extern void smart_runs_merge(struct smart_runs *runs, bool take_more_memory);

/* The next entry of all runs, good until the next call; NULL behind the last one. */
extern const uint8 *smart_runs_next(struct smart_runs *runs, int *length);

extern void smart_runs_end(struct smart_runs *runs);

#endif /* SMART_AM_SORTER_RUNS_H */
