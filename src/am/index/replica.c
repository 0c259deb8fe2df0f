/*
 * replica.c
 *	  A warning for replica identities that a server of version 17 cannot use.
 *
 * Its apply worker finds the row that a message of UPDATE or DELETE is about by the replica identity of the
 * subscriber's table, and knows the equality operator of btree and hash only: there it fails with each such message.
 * The versions before take our operator, which has btree's number, and those after it ask for it.  A table that is
 * only published may have any identity.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_index.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/index/replica.h"

static object_access_hook_type previous_access_hook;

/* As of the last command. */
static bool
was_replica_identity(Oid index)
{
	HeapTuple row = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	bool was = false;

	if (HeapTupleIsValid(row))
	{
		was = ((Form_pg_index) GETSTRUCT(row))->indisreplident;
		ReleaseSysCache(row);
	}
	return was;
}

/* As this command has left it, though others cannot see it yet. */
static bool
is_replica_identity(Oid index)
{
	Relation catalog = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;
	bool is;

	ScanKeyInit(&key, Anum_pg_index_indexrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(index));
	scan = systable_beginscan(catalog, IndexRelidIndexId, true, SnapshotSelf, 1, &key);
	row = systable_getnext(scan);
	is = HeapTupleIsValid(row) && ((Form_pg_index) GETSTRUCT(row))->indisreplident;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return is;
}

static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int part, void *argument)
{
	Relation index;

	if (previous_access_hook)
		previous_access_hook(access, class, object, part, argument);
	if (access != OAT_POST_ALTER || class != IndexRelationId || was_replica_identity(object) ||
		!is_replica_identity(object))
		return;
	index = index_open(object, AccessShareLock);
	if (smart_is_our_index(index))
		ereport(WARNING, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a subscriber cannot find rows by replica identity \"%s\"", RelationGetRelationName(index)),
				errdetail("In PostgreSQL 17 it applies UPDATE and DELETE by btree and hash indexes only."),
				errhint("If this table is a subscriber's, choose a btree index."));
	index_close(index, AccessShareLock);
}

void
smart_replica_init(void)
{
	if (!SMART_REPLICA_IDENTITY_FAILS)
		return;
	previous_access_hook = object_access_hook;
	object_access_hook = at_object_access;
}
