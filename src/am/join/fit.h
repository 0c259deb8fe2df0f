/*
 * fit.h
 *	  Which nested loops may look ahead.
 */
#ifndef SMART_AM_JOIN_FIT_H
#define SMART_AM_JOIN_FIT_H

#include "nodes/plannodes.h"

/*
 * May the outer side of the join be asked for rows before their turn, and does its inner side search a smart index, forward,
 * for values of columns of these rows, or of constants and parameters?  Then the plan's node for that index is returned (an
 * index scan or index-only scan, perhaps below nodes that pass on, cut off or join its rows together); else NULL.
 */
extern const Scan *smart_join_fits(const PlannedStmt *statement, const NestLoop *join);

/* The column of the join's outer side whose value a parameter of its inner side has; 0: it is another parameter. */
extern AttrNumber smart_join_source(const NestLoop *join, const Param *parameter);

/* What is compared with a column in an index condition: a Param, or NULL. */
extern const Param *smart_join_parameter(const Expr *value);

#endif /* SMART_AM_JOIN_FIT_H */
