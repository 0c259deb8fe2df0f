/*
 * predicate.h
 *	  What a serializable transaction has read of an index, and what it writes.
 */
#ifndef SMART_AM_PREDICATE_H
#define SMART_AM_PREDICATE_H

#include "utils/rel.h"
#include "utils/snapshot.h"

#include "am/scan/ranges.h"

/*
 * Before a scan reads anything: locks all its ranges against what others add there, if this transaction is
 * serializable.  Leaves ranges at no range.
 */
extern void smart_predicate_lock(Relation index, Snapshot snapshot, struct smart_ranges *ranges);

/* After the insertion of an entry with this key: an error if serializable transactions cannot be put in order. */
extern void smart_predicate_check(Relation index, const uint8 *key, int key_length);

#endif /* SMART_AM_PREDICATE_H */
