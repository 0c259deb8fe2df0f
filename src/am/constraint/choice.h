/*
 * choice.h
 *	  Which constraints get smart indexes.
 */
#ifndef SMART_AM_CONSTRAINT_CHOICE_H
#define SMART_AM_CONSTRAINT_CHOICE_H

#include "nodes/pg_list.h"

/* The access method's OID, InvalidOid where the extension has not been created. */
extern Oid smart_constraint_method(void);

/*
 * Is a PRIMARY KEY or UNIQUE constraint of a table to have a smart index?  types are those of its key columns
 * (InvalidOid: not known, which the server has to complain of).  *options, its WITH clause, has option "smart"
 * afterwards if the answer is yes, and not otherwise.  UNDEFINED_OBJECT, FEATURE_NOT_SUPPORTED: the option asks for what
 * cannot be.
 */
extern bool smart_constraint_choose(Oid table, const List *types, List **options);

/* Raises an error (FEATURE_NOT_SUPPORTED) if no unique smart index can be on a table because it is partitioned. */
extern void smart_constraint_check_table(Oid table);

#endif /* SMART_AM_CONSTRAINT_CHOICE_H */
