/*
 * scankey.h
 *	  Turns scan keys into the byte ranges that they select.
 */
#ifndef SMART_AM_SCANKEY_H
#define SMART_AM_SCANKEY_H

#include "am/scan/ranges.h"

/* Room for the conditions of scans, in CurrentMemoryContext. */
extern struct smart_ranges *smart_ranges_make(void);

/* From now on they are for a scan with this codec. */
extern void smart_ranges_use(struct smart_ranges *ranges, const struct smart_codec *codec);

/* The scan is over: gives back what its conditions took.  Returns whether the room is as small as it was made. */
extern bool smart_ranges_rest(struct smart_ranges *ranges);

/* Takes new conditions; allocates only what it had no room for before.  PROGRAM_LIMIT_EXCEEDED: too many elements. */
extern void smart_ranges_set(struct smart_ranges *ranges, ScanKey keys, int nkeys);

#endif /* SMART_AM_SCANKEY_H */
