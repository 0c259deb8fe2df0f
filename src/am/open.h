/*
 * open.h
 *	  Opening an index that an SQL function was given by name.
 */
#ifndef SMART_AM_OPEN_H
#define SMART_AM_OPEN_H

#include "am/am.h"

/*
 * Opens an index of this access method with AccessShareLock.  Errors:
 * WRONG_OBJECT_TYPE (no index, of another method, or of a partitioned table),
 * FEATURE_NOT_SUPPORTED (a temporary table of another session),
 * OBJECT_NOT_IN_PREREQUISITE_STATE (it is not valid), UNDEFINED_OBJECT.
 */
extern Relation smart_index_open(Oid index);

/* The same, valid or not; NULL if there is no such relation. */
extern Relation smart_index_try_open(Oid index);

#endif /* SMART_AM_OPEN_H */
