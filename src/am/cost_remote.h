/*
 * cost_remote.h
 *	  What it costs, in the planner's unit, to wait for memory nodes.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_COST_REMOTE_H
#define SMART_AM_COST_REMOTE_H

/* A round trip to a memory node: smart.round_trip_cost, or what was measured.  Does not wait for anything. */
extern double smart_round_trip_price(void);

/* How many of them it takes to READ the leaves of some ranges of entries, as many in each, at least one. */
extern double smart_round_trips_of_ranges(double ranges, double leaves);

/* The same for groups of entries that are found one behind the other: where each begins, and then the leaves in it. */
extern double smart_round_trips_of_groups(double groups, double leaves);

#endif /* SMART_AM_COST_REMOTE_H */
