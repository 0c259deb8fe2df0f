/*
 * wal.h
 *	  What is in WAL, made durable.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_WAL_H
#define SMART_AM_WAL_H

#include "access/xlogdefs.h"

/*
 * Flushes all of WAL that anybody has written up to now.  A removal in the
 * region survives a crash at once, so what allows it has to survive, too.
 */
extern void smart_wal_flush(void);

/* The end of what has been put into WAL, up to which it can be flushed. */
extern XLogRecPtr smart_wal_end(void);

/*
 * WAL is durable up to here: the region is told before anything is forgotten or removed
 * for that reason.  A data directory whose WAL ends earlier is not the region's.
 */
extern void smart_wal_is_durable(XLogRecPtr end);

#endif /* SMART_AM_WAL_H */
