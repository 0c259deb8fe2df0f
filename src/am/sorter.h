/*
 * sorter.h
 *	  Sorts the entries of a build within a budget of memory, and beyond it in
 *	  runs on disk.
 *
 * add every entry, perform, then next until it returns NULL.  What it takes
 * belongs to the memory context and the resource owner of sorter_begin, so an
 * error needs no clean-up.
 */
#ifndef SMART_AM_SORTER_H
#define SMART_AM_SORTER_H

#include "postgres.h"

#include "base/env.h"

struct smart_sorter;

/*
 * entry_length: bytes of every entry, or 0 if they differ (up to
 * SMART_ENTRY_MAX).  memory: the budget in bytes.  expected: how many bytes of
 * it may suffice; more are taken when they do not.
 */
extern struct smart_sorter *smart_sorter_begin(int entry_length, Size memory, Size expected, struct smart_env *env);

extern void smart_sorter_add(struct smart_sorter *sorter, const uint8 *entry, int length);

/* No more entries come.  May be interrupted. */
extern void smart_sorter_perform(struct smart_sorter *sorter);

/* The next entry in ascending order, good until the next call; NULL behind the last one. */
extern const uint8 *smart_sorter_next(struct smart_sorter *sorter, int *length);

extern void smart_sorter_end(struct smart_sorter *sorter);

#endif /* SMART_AM_SORTER_H */
