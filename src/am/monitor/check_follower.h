/*
 * check_follower.h
 *	  smart_index_check() of an index that writes back: its tree on memory nodes.
 */
#ifndef SMART_AM_MONITOR_CHECK_FOLLOWER_H
#define SMART_AM_MONITOR_CHECK_FOLLOWER_H

#include "utils/relcache.h"

/*
 * If pages answer, and there is a follower (src/am/journal/carry.h): is that whole, and does it tell, with the delta, what the
 * pages tell?  INDEX_CORRUPTED: it does not; it is given up then, and loaded anew.
 */
extern void smart_check_follower(Relation index);

#endif /* SMART_AM_MONITOR_CHECK_FOLLOWER_H */
