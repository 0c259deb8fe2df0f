/*
 * replica.h
 *	  A warning for replica identities that a server of version 17 cannot use.
 */
#ifndef SMART_AM_REPLICA_H
#define SMART_AM_REPLICA_H

/* Sets the hook, from _PG_init. */
extern void smart_replica_init(void);

#endif /* SMART_AM_REPLICA_H */
