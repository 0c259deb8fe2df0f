/*
 * replica.h
 *	  Warnings for replica identities that a server of version 17 cannot use.
 */
#ifndef SMART_AM_REPLICA_H
#define SMART_AM_REPLICA_H

/*
 * Warns, on such a server, if a table is subscribed to and its rows are found by a smart index: its replica identity, or its
 * primary key.
 */
extern void smart_replica_look_at(Oid table);

/* Sets the hooks, from _PG_init. */
extern void smart_replica_init(void);

#endif /* SMART_AM_REPLICA_H */
