/*
 * orphans_names.h
 *	  Which trees the metapages of this database name, and which databases
 *	  there are.
 */
#ifndef SMART_AM_ORPHANS_NAMES_H
#define SMART_AM_ORPHANS_NAMES_H

#include "nodes/pg_list.h"
#include "utils/hsearch.h"
#include "utils/snapshot.h"

/* An index whose metapage cannot be read, and its file. */
struct smart_unread
{
	Oid index;
	Oid tablespace;
	Oid file; /* relfilenode */
	bool temporary;
};

/*
 * Adds to trees, a hash set of uint64, the ids of all trees and journals that the metapages of this database's
 * smart indexes name, as far as the snapshot sees these.  Of temporary tables only those of this
 * session are looked at, and nothing else if temporary_only.  Returns a struct smart_unread for each
 * index whose metapage could not be read; it may have been dropped or moved since the snapshot.
 *
 * No index is locked, so that one that another transaction has locked is no obstacle.
 */
extern List *smart_names_collect(Snapshot snapshot, bool temporary_only, HTAB *trees);

/* Which databases; each kind is a part of the one before. */
enum smart_databases
{
	SMART_DATABASES_ALL,
	SMART_DATABASES_VALID, /* not such as are half dropped */
	SMART_DATABASES_OPEN,  /* that can be connected to */
	SMART_DATABASES_USED   /* and are no templates */
};

/* Their OIDs, as the snapshot sees them (NULL: as they are now), in CurrentMemoryContext. */
extern List *smart_names_databases(Snapshot snapshot, enum smart_databases which);

/* The same as they are now, outside of transactions; false: pg_database is locked, and the launcher waits for no lock. */
extern bool smart_names_try_databases(enum smart_databases which, List **databases);

/* Is this one of them?  Outside of transactions; also true if pg_database is locked. */
extern bool smart_names_has_database(enum smart_databases which, Oid database);

#endif /* SMART_AM_ORPHANS_NAMES_H */
