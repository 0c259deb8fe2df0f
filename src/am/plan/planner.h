/*
 * planner.h
 *	  What the planner is told about an index: callbacks of IndexAmRoutine, and hooks.
 */
#ifndef SMART_AM_PLANNER_H
#define SMART_AM_PLANNER_H

#include "access/amapi.h"
#include "nodes/pathnodes.h"
#include "utils/rel.h"

/* Called once, when the library is loaded: sets hooks. */
extern void smart_planner_init(void);

/* Callbacks of IndexAmRoutine; the first is in cost.c */
extern void smart_am_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
						  Selectivity *selectivity, double *correlation, double *pages);
extern bool smart_am_can_return(Relation index, int column);
extern bool
smart_am_property(Oid index, int column, IndexAMProperty property, const char *name, bool *result, bool *isnull);

#endif /* SMART_AM_PLANNER_H */
