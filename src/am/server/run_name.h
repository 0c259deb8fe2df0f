/*
 * run_name.h
 *	  How the run of a journal is named in shared memory (index/meta.h tells an index's).
 */
#ifndef SMART_AM_RUN_NAME_H
#define SMART_AM_RUN_NAME_H

#include "datatype/timestamp.h"

#include "am/compat.h"

/*
 * Runs with the same name have the same content.  A database that was copied has the journals' ids of its template; one
 * that was dropped may have left its OID, and so the names of its files, to another copy.
 */
struct smart_run_name
{
	smart_file file;
	uint64 journal;
	uint64 run; /* its id, or 0: there is none */
	TimestampTz made;
};

#endif /* SMART_AM_RUN_NAME_H */
