/*
 * replica.c
 *	  Warnings for replica identities that a server of version 17 cannot use.
 *
 * Its apply worker finds the row that a message of UPDATE or DELETE is about by the replica identity of the
 * subscriber's table, or by its primary key, and knows the equality operator of btree and hash only: there it fails with
 * each such message.  The versions before take our operator, which has btree's number, and those after it ask for it.
 * A table that is only published may have any identity.  So an index that is chosen as identity is warned of at once,
 * a primary key, which is there for other reasons, when its table is subscribed to.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_index.h"
#include "catalog/pg_subscription.h"
#include "catalog/pg_subscription_rel.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/index/replica.h"
#include "base/assert.h"

static object_access_hook_type previous_access_hook;
static ProcessUtility_hook_type previous_utility_hook;

static void
warn(Relation index)
{
	ereport(WARNING, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a subscriber cannot find rows by replica identity \"%s\"", RelationGetRelationName(index)),
			errdetail("In PostgreSQL 17 it applies UPDATE and DELETE by btree and hash indexes only."),
			errhint("If this table is a subscriber's, choose a btree index."));
}

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
		warn(index);
	index_close(index, AccessShareLock);
}

/* ---- tables that are subscribed to ---- */

/* Warns if a subscriber would find the rows of a table by a smart index. */
static void
look_at_table(Oid oid)
{
	Relation table = try_table_open(oid, AccessShareLock);
	Relation index;
	Oid identity;

	if (table == NULL)
		return;
	identity = RelationGetReplicaIndex(table);
	/* It has been found with the identity. */
	if (!OidIsValid(identity))
		identity = table->rd_pkindex;
	if (OidIsValid(identity))
	{
		index = index_open(identity, AccessShareLock);
		if (smart_is_our_index(index))
			warn(index);
		index_close(index, AccessShareLock);
	}
	table_close(table, AccessShareLock);
}

/* Looks at the tables of a subscription; or at one table, if it belongs to any. */
static void
look_at_subscribed(Oid subscription, Oid table)
{
	Relation catalog = table_open(SubscriptionRelRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	HeapTuple row;

	smart_assert(OidIsValid(subscription) != OidIsValid(table));
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_subscription_rel form = (Form_pg_subscription_rel) GETSTRUCT(row);

		if (OidIsValid(table) ? form->srrelid == table : form->srsubid == subscription)
			look_at_table(form->srrelid);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
}

void
smart_replica_look_at(Oid table)
{
	if (SMART_REPLICA_IDENTITY_FAILS)
		look_at_subscribed(InvalidOid, table);
}

static void
at_utility(PlannedStmt *planned, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		   QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	ProcessUtility_hook_type run = previous_utility_hook != NULL ? previous_utility_hook : standard_ProcessUtility;
	const Node *statement = planned->utilityStmt;
	const char *name = NULL;
	Oid subscription;

	if (IsA(statement, CreateSubscriptionStmt))
		name = pstrdup(((const CreateSubscriptionStmt *) statement)->subname);
	else if (IsA(statement, AlterSubscriptionStmt))
		name = pstrdup(((const AlterSubscriptionStmt *) statement)->subname);
	run(planned, query, read_only, context, params, environment, destination, completion);
	if (name == NULL)
		return;
	CommandCounterIncrement();
	subscription = GetSysCacheOid2(SUBSCRIPTIONNAME, Anum_pg_subscription_oid, ObjectIdGetDatum(MyDatabaseId),
								   CStringGetDatum(name));
	if (OidIsValid(subscription))
		look_at_subscribed(subscription, InvalidOid);
}

void
smart_replica_init(void)
{
	if (!SMART_REPLICA_IDENTITY_FAILS)
		return;
	smart_assert(object_access_hook != at_object_access && ProcessUtility_hook != at_utility);
	previous_access_hook = object_access_hook;
	object_access_hook = at_object_access;
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = at_utility;
}
