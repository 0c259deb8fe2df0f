/*
 * recent.h
 *	  Pages in shared buffers: those that a session reads again and again, and whether one is there.
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

/*
 * Is this page of an index that is not temporary in shared buffers?  Reads nothing, and does not pin it: it may leave a moment later.
 */
extern bool smart_page_is_buffered(Relation index, BlockNumber block);

#endif /* SMART_AM_RECENT_H */
