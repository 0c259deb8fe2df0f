/*
 * wal.h
 *	  What is in WAL, made durable.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_WAL_H
#define SMART_AM_WAL_H

/*
 * Flushes all of WAL that anybody has written up to now.  A removal in the
 * region survives a crash at once, so what allows it has to survive, too.
 */
extern void smart_wal_flush(void);

#endif /* SMART_AM_WAL_H */
