/*
 * reference.h
 *	  Foreign keys that refer to smart indexes, on servers that look for btrees.
 */
#ifndef SMART_AM_CONSTRAINT_REFERENCE_H
#define SMART_AM_CONSTRAINT_REFERENCE_H

#include "nodes/parsenodes.h"

/* Is the server to have help with the foreign keys that the statement adds? */
extern bool smart_references_come_from(const AlterTableStmt *statement);

/*
 * Raises an error (FEATURE_NOT_SUPPORTED) if the statement, about a table whose lock is held, has the server make foreign
 * keys to smart indexes anew where it cannot.
 */
extern void smart_references_check(Oid table, const AlterTableStmt *statement);

/* Between these two the server takes smart's operator classes for btree's. */
extern List *smart_references_begin(void);
extern void smart_references_end(List *held);

#endif /* SMART_AM_CONSTRAINT_REFERENCE_H */
