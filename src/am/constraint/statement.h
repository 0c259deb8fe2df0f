/*
 * statement.h
 *	  Gives PRIMARY KEY and UNIQUE constraints smart indexes.
 */
#ifndef SMART_AM_CONSTRAINT_STATEMENT_H
#define SMART_AM_CONSTRAINT_STATEMENT_H

/* Sets the hook, from _PG_init. */
extern void smart_constraint_init(void);

#endif /* SMART_AM_CONSTRAINT_STATEMENT_H */
