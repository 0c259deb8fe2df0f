/*
 * rebuild_fill.h
 *	  How a rebuild gets its entries.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_REBUILD_FILL_H
#define SMART_AM_REBUILD_FILL_H

#include "am/collector.h"

/* Prepares the rebuild of an index, with the codec, by which the caller makes trees. */
extern void smart_filling_begin(struct smart_collector *rows, Relation heap, Relation index);

/*
 * Serves interrupts.  Errors: LOCK_NOT_AVAILABLE if somebody waits for a lock of the
 * table that he cannot have because of us; OBJECT_NOT_IN_PREREQUISITE_STATE if
 * somebody has left out an entry.
 */
extern void smart_filling_look_around(const struct smart_collector *rows);

/* The second of these errors. */
extern void smart_filling_report_spoiled(const struct smart_collector *rows) __attribute__((noreturn));

/* Reads the table, all rows that anybody may see, and sorts their entries. */
extern void smart_filling_collect(struct smart_collector *rows);

/* Puts them into a tree that nobody else sees.  UNIQUE_VIOLATION. */
extern void smart_filling_load(struct smart_collector *rows, struct smart_tree *tree);

/* Puts the entries of one tree, which gets no new ones, into another one, where they may be already. */
extern void smart_filling_copy(struct smart_collector *rows, struct smart_tree *from, struct smart_tree *to);

#endif /* SMART_AM_REBUILD_FILL_H */
