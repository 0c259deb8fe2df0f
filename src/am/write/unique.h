/*
 * unique.h
 *	  Does another row have the key of a row that is being inserted?
 */
#ifndef SMART_AM_UNIQUE_H
#define SMART_AM_UNIQUE_H

#include "access/genam.h"
#include "storage/itemptr.h"
#include "utils/timestamp.h"

#include "am/write/versions.h"

struct smart_relation;

/* A row that is to be inserted. */
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
	int columns_length; /* of the entry, without TID; where it is asked for */
	uint32 hash;        /* of these columns; 0: nobody checks for them */
	int length;
	IndexUniqueCheck check;
	bool nulls_equal; /* NULLS NOT DISTINCT */
	bool others;      /* the row may be of another transaction: CREATE INDEX CONCURRENTLY */
	SubTransactionId subtransaction;
	TimestampTz until; /* how long to wait for a memory node; 0: it has not been away yet */
};

enum smart_verdict
{
	SMART_NO_CONFLICT,
	SMART_MAYBE_CONFLICT, /* another row has the key, or may have it soon */
	SMART_WAIT_FOR,       /* it depends on another transaction */
	SMART_CANDIDATE_GONE, /* the candidate itself is dead: nothing matters any more */
	SMART_CONFLICT,
	SMART_ASK_AGAIN /* pages that answered have gone, since the index has its tree again; or a memory node does not answer */
};

/* What was found out about a candidate. */
struct smart_finding
{
	bool own_entry;    /* the candidate's own TID is in the index */
	TransactionId xid; /* to wait for */
	uint32 token;      /* of its speculative insertion, or 0 */
	struct smart_versions versions;
};

/*
 * Looks at all entries with the candidate's columns.  The caller has the key's lock (key_locks.h) and a vacuum pin of the
 * index's tree, or view.  waits: a memory node that does not answer is no error.  Errors: of the tree, and of reading the table.
 */
extern enum smart_verdict
smart_unique_judge(const struct smart_candidate *candidate, bool waits, struct smart_finding *finding);

#endif /* SMART_AM_UNIQUE_H */
