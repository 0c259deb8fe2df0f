/*
 * wal.c
 *	  What is in WAL, made durable.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"

#include "am/wal.h"

/*
 * The end of what has been put into WAL.  The insert position is one behind the
 * header of the next page when the last record ended with its page; nobody can
 * flush up to there.
 */
static XLogRecPtr
wal_end(void)
{
	XLogRecPtr position = GetXLogInsertRecPtr();

	if (XLogSegmentOffset(position, wal_segment_size) == SizeOfXLogLongPHD)
		position -= SizeOfXLogLongPHD;
	else if (position % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		position -= SizeOfXLogShortPHD;
	return position;
}

void
smart_wal_flush(void)
{
	XLogFlush(wal_end());
}
