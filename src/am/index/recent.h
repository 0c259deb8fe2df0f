/*
 * recent.h
 *	  Pages that a session reads again and again, by the buffers in which it found them last.
 */
#ifndef SMART_AM_RECENT_H
#define SMART_AM_RECENT_H

#include "storage/buf.h"
#include "utils/relcache.h"

/*
 * As ReadBuffer() of an index that is not temporary, and faster for who has read the page a moment ago: its buffer need not be
 * looked up.  Such a read does not count in pg_statio_user_indexes, as those of nbtree's metapage do not.
 */
extern Buffer smart_read_recent(Relation index, BlockNumber block);

#endif /* SMART_AM_RECENT_H */
