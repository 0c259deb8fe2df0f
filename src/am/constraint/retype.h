/*
 * retype.h
 *	  ALTER TABLE ... ALTER COLUMN ... TYPE, where the column belongs to a constraint with a smart index.
 */
#ifndef SMART_AM_CONSTRAINT_RETYPE_H
#define SMART_AM_CONSTRAINT_RETYPE_H

#include "nodes/parsenodes.h"

/*
 * Adds to a statement about a table, whose lock is held, the commands that make such constraints anew.  The result is
 * to be given to smart_constraint_describe() when the statement has been carried out.  FEATURE_NOT_SUPPORTED: a
 * foreign key refers to one, or a table that inherits the column has one.
 */
extern List *smart_constraint_make_anew(Oid table, AlterTableStmt *statement);

/* Gives the new constraints and indexes the comments that the old ones had. */
extern void smart_constraint_describe(Oid table, const List *renewed);

#endif /* SMART_AM_CONSTRAINT_RETYPE_H */
