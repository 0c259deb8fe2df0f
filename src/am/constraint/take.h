/*
 * take.h
 *	  ALTER TABLE ... ADD CONSTRAINT ... USING INDEX, where the index is smart.
 */
#ifndef SMART_AM_CONSTRAINT_TAKE_H
#define SMART_AM_CONSTRAINT_TAKE_H

#include "nodes/parsenodes.h"

/*
 * Rewrites the commands of a statement about a table, whose lock is held, that make smart indexes its constraints'; is
 * there one?
 * WRONG_OBJECT_TYPE, OBJECT_NOT_IN_PREREQUISITE_STATE: an index cannot be one's.
 */
extern bool smart_constraint_take_indexes(Oid table, AlterTableStmt *statement, const char *query);

#endif /* SMART_AM_CONSTRAINT_TAKE_H */
