/*
 * skip.h
 *	  Over entries that the conditions on later columns rule out.
 */
#ifndef SMART_AM_SKIP_H
#define SMART_AM_SKIP_H

#include "am/ranges.h"

/*
 * Where a scan may go on behind an entry (backward: before it) of the current range: key, with
 * room for SMART_KEY_MAX + 1 bytes, at or behind which (before which) the next entry lies that
 * satisfies the conditions on later columns.  Returns how many bytes from its beginning on
 * the entry shares with those that are left out, or -1 if it satisfies the conditions itself.
 * *length 0: there is none in this range.
 */
extern int smart_skip(const struct smart_ranges *ranges, const uint8 *entry, int entry_length, bool backward,
					  uint8 *key, uint32 *length);

#endif /* SMART_AM_SKIP_H */
