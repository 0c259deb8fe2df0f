/*
 * dead_rows.h
 *	  Rows that scans have found dead for all transactions, remembered until VACUUM comes.
 *
 * An entry of a dead row stays until it may be removed: its row's death has to be durable, and a worker has to come by.
 * Until then a scan that meets it again need not look at the table: what is dead for all transactions stays so, and its
 * place serves no other row before VACUUM frees it.  This is what nbtree's killed items are.
 *
 * What is remembered is volatile, lossy and of this server alone.  It counts for a scan only if no VACUUM has gone
 * through the index between the beginning of the scan that found the row dead, or of the scan that asks,
 * whichever began first, and the question:
 *
 *	1. A scan takes the index's generation before it reads the tree, or before its view is brought up to date.  What it
 *	   remembers, and what it asks for, has this generation.
 *	2. VACUUM raises the generation when the entries of all rows whose places it is about to free are gone from the
 *	   tree, and before it frees any (smart_am_bulk_delete).
 *	3. Whoever asks compares the generation after it has read what is remembered.
 *
 * So who remembers a row of a place that VACUUM frees took the generation before the raise, as its entry was in the tree
 * afterwards; and nobody who asks when the place may serve another row finds the generation unchanged.  In which tree
 * the entry was counts, too: an index that is moved leaves a tree behind from which VACUUM removes nothing.
 *
 * All that is of the index's file.  Trees' ids are never used again, but a database that was copied has the journals' ids of
 * its template, with rows of its own, and may have the OID of another copy (database_birth.h); and who exchanges the files of two
 * tables (pg_repack) leaves each index with its file, and each file with the rows that its entries lead to, whatever OID the table
 * has.
 */
#ifndef SMART_AM_DEAD_ROWS_H
#define SMART_AM_DEAD_ROWS_H

#include "access/htup_details.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "am/compat.h"

#define SMART_DEAD_ROWS_WORDS ((MaxHeapTuplesPerPage + 63) / 64)

/* In shared memory.  Indexes share one by chance. */
struct smart_dead_rows_generation
{
	uint64 now;
	uint64 noted; /* now, if rows were remembered since it was raised */
};

/* What a scan knows of the dead rows to which entries of an index lead. */
struct smart_dead_rows
{
	smart_file file; /* the index's */
	uint64 tree;     /* 0: nothing is known, or to be remembered */
	uint64 name;     /* the tree's; in another database that had this OID it has another one */
	uint64 generation;
	uint32 hash;                                    /* of the tree */
	const struct smart_dead_rows_generation *place; /* of the file's generation */

	/* The page that it was about last. */
	BlockNumber block; /* or InvalidBlockNumber */
	bool noted;        /* rows of it are known to this scan alone */
	bool vacant;       /* if so: no rows of another page are forgotten for it */
	uint64 bits[SMART_DEAD_ROWS_WORDS];
};

/* Asks the server for memory (shmem_request_hook), and makes the memory of dead rows (shmem_startup_hook). */
extern void smart_dead_rows_request(void);
extern void smart_dead_rows_make(void);

/* Takes the generation of an index, before its tree is read, or the view of an index without one is brought up to date. */
extern void smart_dead_rows_begin(struct smart_dead_rows *self, Relation index);

/* Which tree that is, or the journal that the view reads; 0: nothing is to be known. */
extern void smart_dead_rows_choose(struct smart_dead_rows *self, uint64 tree);

/* Is any row remembered, perhaps? */
static inline bool
smart_dead_rows_any(const struct smart_dead_rows *self)
{
	return self->tree != 0 && __atomic_load_n(&self->place->noted, __ATOMIC_RELAXED) == self->generation;
}

/* Reads what is remembered of a page. */
extern void smart_dead_rows_read(struct smart_dead_rows *self, BlockNumber block);

/*
 * For many rows smart_dead_rows_has() in two steps: is each remembered, and does what was remembered of all of them count?  (Rule 3.
 * Acquire: what was read stays ahead of the generation.)
 */
static inline bool
smart_dead_rows_tells(struct smart_dead_rows *self, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32 bit = (uint32) ItemPointerGetOffsetNumberNoCheck(tid) - FirstOffsetNumber;

	if (unlikely(block != self->block))
		smart_dead_rows_read(self, block);
	return bit < MaxHeapTuplesPerPage && (self->bits[bit / 64] >> (bit % 64) & 1) != 0;
}

static inline bool
smart_dead_rows_counts(const struct smart_dead_rows *self)
{
	return __atomic_load_n(&self->place->now, __ATOMIC_ACQUIRE) == self->generation;
}

/* Is the row, to which an entry leads that was read from the tree since the beginning, dead for all transactions? */
static inline bool
smart_dead_rows_has(struct smart_dead_rows *self, const ItemPointerData *tid)
{
	return smart_dead_rows_tells(self, tid) && smart_dead_rows_counts(self);
}

/*
 * Remembers a row, to which an entry led that was read from the tree since the beginning; perhaps not.  False: rows of another
 * page may be forgotten for it, as this one will be for others.  Others know of it when this one comes to another page, or
 * has ended.
 */
extern bool smart_dead_rows_note(struct smart_dead_rows *self, const ItemPointerData *tid);

/* Tells others of the rows that were noted of the last page: smart_dead_rows_end() calls it if there are some. */
extern void smart_dead_rows_publish(struct smart_dead_rows *self);

static inline void
smart_dead_rows_end(struct smart_dead_rows *self)
{
	if (unlikely(self->noted))
		smart_dead_rows_publish(self);
}

/*
 * Forgets what is remembered for the index of this file.  VACUUM calls it when it has removed the entries of dead rows, before it frees
 * their places; and whoever drops its tree.
 */
extern void smart_dead_rows_forget(const smart_file *file);

#endif /* SMART_AM_DEAD_ROWS_H */
