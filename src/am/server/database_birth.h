/*
 * database_birth.h
 *	  Tells a database from another one that had its OID before.
 */
#ifndef SMART_AM_DATABASE_BIRTH_H
#define SMART_AM_DATABASE_BIRTH_H

/*
 * A number that was made with the directory of the database to which this process is connected, and stays the same until
 * that is copied to another place; 0: it is connected to none.  Errors: those of files.
 *
 * A database that was copied has its template's metapages, with the ids of journals, and its files have the same numbers.  The
 * OID is different, but it may have been that of another copy, which was dropped: by CREATE DATABASE ... OID, which a standby
 * replays, or when OIDs begin again.
 */
extern uint64 smart_database_birth(void);

#endif /* SMART_AM_DATABASE_BIRTH_H */
