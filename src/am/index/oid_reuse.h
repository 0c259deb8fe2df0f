/*
 * oid_reuse.h
 *	  A database gets the OID of one that was dropped.
 */
#ifndef SMART_AM_OID_REUSE_H
#define SMART_AM_OID_REUSE_H

/*
 * From now on CREATE DATABASE gives up all trees that a former database of the new one's OID has left: metapages that its template
 * has copied from that one may name them.  From _PG_init.
 */
extern void smart_oid_reuse_init(void);

#endif /* SMART_AM_OID_REUSE_H */
