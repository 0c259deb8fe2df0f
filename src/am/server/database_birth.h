/*
 * database_birth.h
 *	  Tells a database from another one that had its OID before.
 */
#ifndef SMART_AM_DATABASE_BIRTH_H
#define SMART_AM_DATABASE_BIRTH_H

/*
 * A number that was made with the database to which this process is connected, and stays the same as long as the directory is in its
 * place; 0: it is connected to none.  A database that was copied has the journals' ids and the numbers of files of its template.  If
 * its OID was that of another copy, which was dropped, they are all that is seen of the two in shared memory; CREATE DATABASE ... OID
 * needs no more, and a standby replays it.  Errors: those of files.
 */
extern uint64 smart_database_birth(void);

#endif /* SMART_AM_DATABASE_BIRTH_H */
