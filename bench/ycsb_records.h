/*
 * ycsb_records.h
 *	  Which records a tree has: those below a number that rises as inserts end.
 *
 * Inserts take numbers in order, but end in any order; a record may be asked for
 * when it and all before it are there.
 */
#ifndef YCSB_RECORDS_H
#define YCSB_RECORDS_H

#include "base/env.h"

#define YCSB_WINDOW (1u << 16) /* records that an insert may be behind another one */

struct ycsb_records
{
	uint64_t next;              /* taken so far */
	uint64_t present;           /* all below are there */
	uint64_t beside;            /* entries that were inserted beside them, or are about to be */
	uint32_t advancing;         /* a client raises it */
	uint8_t ended[YCSB_WINDOW]; /* by number: the insert has ended, and present is not yet above it */
};

/* The number of a record to insert.  Waits for an insert that is too far behind. */
extern uint64_t ycsb_records_take(struct ycsb_records *records, struct smart_env *env);

/* Acquire: who sees the number finds the entries.  Partner: ycsb_records_end. */
static inline uint64_t
ycsb_records_present(const struct ycsb_records *records)
{
	return __atomic_load_n(&records->present, __ATOMIC_ACQUIRE);
}

/* The number of an entry to insert beside a record. */
static inline uint64_t
ycsb_records_take_beside(struct ycsb_records *records)
{
	return __atomic_fetch_add(&records->beside, 1, __ATOMIC_RELAXED);
}

/* Its insert has ended. */
extern void ycsb_records_end(struct ycsb_records *records, uint64_t record);

#endif /* YCSB_RECORDS_H */
