/*
 * scankey.h
 *	  Turns scan keys into the byte ranges that they select.
 */
#ifndef SMART_AM_SCANKEY_H
#define SMART_AM_SCANKEY_H

#include "am/scan/ranges.h"

/* Room for the conditions of scans with this codec, in CurrentMemoryContext. */
extern struct smart_ranges *smart_ranges_make(const struct smart_codec *codec);

/* Takes new conditions; allocates only what it had no room for before.  PROGRAM_LIMIT_EXCEEDED: too many elements. */
extern void smart_ranges_set(struct smart_ranges *ranges, ScanKey keys, int nkeys);

#endif /* SMART_AM_SCANKEY_H */
