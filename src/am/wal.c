/*
 * wal.c
 *	  What is in WAL, made durable.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"

#include "am/shared.h"
#include "am/wal.h"

/*
 * The insert position is one behind the header of the next page when the last
 * record ended with its page; nobody can flush up to there.
 */
XLogRecPtr
smart_wal_end(void)
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
	XLogRecPtr end = smart_wal_end();

	XLogFlush(end);
	smart_wal_is_durable(end);
}

void
smart_wal_is_durable(XLogRecPtr end)
{
	uint64 *durable = &smart_region_header(&smart_server.region)->durable;
	uint64 known = __atomic_load_n(durable, __ATOMIC_RELAXED);

	while (known < end && !__atomic_compare_exchange_n(durable, &known, end, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}
