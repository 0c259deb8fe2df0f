/*
 * lanes.h
 *	  What of a sequence of keys is in order already, so that it need not be sorted but only merged.
 *
 * The sequence falls into stretches within which keys ascend, and do not pass the end of a lane.  A long one goes into the
 * lane that ends nearest below it; so one lane takes what one process adds or removes in order, however much others add in
 * between.  Short ones, and those that find no lane, are loose: they have to be sorted.
 */
#ifndef SMART_TREE_LANES_H
#define SMART_TREE_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "tree/layout.h"

#define SMART_LANES       16
#define SMART_LANES_LOOSE (-1)

/* A stretch that has ended. */
struct smart_stretch
{
	uint64_t begin; /* the number of its first key in the sequence */
	uint64_t count;
	int lane; /* or SMART_LANES_LOOSE */
};

struct smart_lane_key
{
	int length;
	uint8_t bytes[SMART_KEY_MAX];
};

struct smart_lanes
{
	uint64_t shortest;           /* keys that a stretch in a lane has */
	uint64_t number;             /* of keys until now */
	uint64_t begin;              /* of the current stretch */
	int count;                   /* of lanes */
	int ceiling;                 /* the lane whose end is the lowest above the current stretch, below 0: none */
	struct smart_lane_key first; /* of the current stretch */
	struct smart_lane_key last;
	struct smart_lane_key end[SMART_LANES]; /* the last key in each lane */
};

extern void smart_lanes_begin(struct smart_lanes *lanes, uint64_t shortest);

/* The next key.  True: a new stretch begins with it; *ended is the one before, if that has any keys. */
extern bool smart_lanes_add(struct smart_lanes *lanes, const uint8_t *key, int length, struct smart_stretch *ended);

/* No more keys come: the last stretch, if it has any keys. */
extern void smart_lanes_finish(struct smart_lanes *lanes, struct smart_stretch *ended);

#endif /* SMART_TREE_LANES_H */
