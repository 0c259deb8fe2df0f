/*
 * rebuild_fill.h
 *	  How a rebuild gets its entries.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_REBUILD_FILL_H
#define SMART_AM_REBUILD_FILL_H

#include "am/am.h"

struct smart_sorter;
struct smart_duplicates;

/* The rebuild of an index. */
struct smart_filling
{
	Relation heap;
	Relation index;
	struct smart_codec *codec;
	struct smart_sorter *sorter;
	struct smart_duplicates *duplicates; /* of a unique index, else NULL */
	int64 entries;                       /* collected, and loaded later on */
	uint8 entry[SMART_ENTRY_MAX];
};

/*
 * Serves interrupts.  Errors: LOCK_NOT_AVAILABLE if somebody waits for a lock of the
 * table that he cannot have because of us; OBJECT_NOT_IN_PREREQUISITE_STATE if
 * somebody has left out an entry.
 */
extern void smart_filling_look_around(const struct smart_filling *self);

/* The second of these errors. */
extern void smart_filling_report_spoiled(const struct smart_filling *self) __attribute__((noreturn));

/* Reads the table, all rows that anybody may see, and sorts their entries. */
extern void smart_filling_collect(struct smart_filling *self);

/* Puts them into a tree that nobody else sees.  UNIQUE_VIOLATION. */
extern void smart_filling_load(struct smart_filling *self, struct smart_tree *tree);

/* Puts the entries of one tree, which gets no new ones, into another one, where they may be already. */
extern void smart_filling_copy(struct smart_filling *self, struct smart_tree *from, struct smart_tree *to);

#endif /* SMART_AM_REBUILD_FILL_H */
