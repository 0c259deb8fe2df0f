/*
 * refuse.h
 *	  What is refused of ALTER TABLE and ALTER INDEX, since a smart index would stand in its way.
 */
#ifndef SMART_AM_CONSTRAINT_REFUSE_H
#define SMART_AM_CONSTRAINT_REFUSE_H

#include "nodes/parsenodes.h"

/* Raises an error (FEATURE_NOT_SUPPORTED) for such a command; the lock on the statement's relation is held. */
extern void smart_constraint_check_commands(Oid relation, const AlterTableStmt *statement);

#endif /* SMART_AM_CONSTRAINT_REFUSE_H */
