/*
 * sweep_names.h
 *	  Which trees the metapages of this database name, and which databases
 *	  there are.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_SWEEP_NAMES_H
#define SMART_AM_SWEEP_NAMES_H

#include "postgres.h"

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
 * Adds the ids of all trees that are named by the metapages of those smart
 * indexes of this database that the snapshot sees to trees, a hash set of
 * uint64.  Of temporary tables only those of this session are looked at,
 * and nothing else if temporary_only.  Returns those whose metapages could not be read, each
 * a struct smart_unread: nobody knows what they name.  They may have been dropped or
 * moved since the snapshot was taken.
 *
 * No index is locked, so that one that another transaction holds, for however
 * long, is no obstacle.
 */
extern List *smart_names_collect(Snapshot snapshot, bool temporary_only, HTAB *trees);

/* The OIDs of all databases that the snapshot sees, in CurrentMemoryContext; valid_only: that one can connect to. */
extern List *smart_names_databases(Snapshot snapshot, bool valid_only);

#endif /* SMART_AM_SWEEP_NAMES_H */
