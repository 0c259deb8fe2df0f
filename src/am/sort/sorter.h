/*
 * sorter.h
 *	  Sorts the entries of a build within a budget of memory, and beyond it in
 *	  runs on disk.
 *
 * Add every entry, perform, then call next until it returns NULL.  The sorter belongs to the memory context
 * and the resource owner of smart_sorter_begin(), so an error needs no clean-up.
 *
 * Several processes can share a sort.  Each worker calls share, adds its entries, hands them over, and
 * ends.  The leader takes them over between its own last add and perform; the set of files has to last
 * until its end.
 */
#ifndef SMART_AM_SORTER_H
#define SMART_AM_SORTER_H

#include "storage/buffile.h"
#include "storage/sharedfileset.h"

#include "base/env.h"
#include "tree/layout.h"

/* Bytes of an entry, which may have some more than those of a tree. */
#define SMART_SORTER_MAX (SMART_ENTRY_MAX + 16)

struct smart_sorter;

/*
 * entry_length: bytes of every entry, or 0 if they differ (up to SMART_SORTER_MAX).  memory: the budget in bytes.
 * expected: how many bytes of it may suffice; more are taken when they do not.
 */
extern struct smart_sorter *smart_sorter_begin(int entry_length, Size memory, Size expected, struct smart_env *env);

/* Before the first add: the worker of this number will hand its entries over in one of these files. */
extern void smart_sorter_share(struct smart_sorter *sorter, SharedFileSet *files, int worker);

extern void smart_sorter_add(struct smart_sorter *sorter, const uint8 *entry, int length);

/*
 * The worker writes all entries to the file, and a description of them to notes, which the leader reads.  memory: bytes
 * that the leader need not leave to the worker any more.
 */
extern void smart_sorter_hand_over(struct smart_sorter *sorter, BufFile *notes);
extern void
smart_sorter_take_over(struct smart_sorter *sorter, SharedFileSet *files, int worker, BufFile *notes, Size memory);

/* Sorts what is in memory.  perform does it too; so it may be done while other processes are not ready yet. */
extern void smart_sorter_prepare(struct smart_sorter *sorter);

/* No more entries come.  May be interrupted. */
extern void smart_sorter_perform(struct smart_sorter *sorter);

/* The next entry in ascending order, good until the next call; NULL behind the last one. */
extern const uint8 *smart_sorter_next(struct smart_sorter *sorter, int *length);

extern void smart_sorter_end(struct smart_sorter *sorter);

#endif /* SMART_AM_SORTER_H */
