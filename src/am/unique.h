/*
 * unique.h
 *	  Inserts into unique indexes.
 */
#ifndef SMART_AM_UNIQUE_H
#define SMART_AM_UNIQUE_H

#include "postgres.h"

#include "access/genam.h"

#include "am/am.h"

/* A row that wants into a unique index. */
struct smart_candidate
{
	struct smart_relation *relation;
	Relation heap;
	Relation index;
	const Datum *values;
	const bool *isnull;
	ItemPointer tid;
	const uint8 *entry;
	int key_length;
	int length;
	IndexUniqueCheck check;
	bool nulls_equal; /* NULLS NOT DISTINCT */
	bool others;      /* the row may be of another transaction */
};

/*
 * Checks that no live row has the candidate's columns and adds its entry, as
 * the kind of check says; waits for transactions that have not decided yet.
 * Returns false if the check is UNIQUE_CHECK_PARTIAL and there may be a
 * conflict, which the caller has to look at later.  UNIQUE_VIOLATION.
 */
extern bool smart_insert_unique(const struct smart_candidate *candidate);

#endif /* SMART_AM_UNIQUE_H */
