/*
 * launcher_requests.c
 *	  What the processes of a server tell its launcher.
 *
 * An unnecessary request costs one look.  So it is enough to notice that an index of an access method that is not built
 * in was dropped, or a database.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/syscache.h"

#include "am/server/launcher_requests.h"
#include "am/server/shared.h"
#include "base/assert.h"

static object_access_hook_type previous_access_hook;
static bool if_committed = false;
static bool if_aborted = false;

/* ---- the launcher ---- */

void
smart_launcher_set(bool here)
{
	smart_assert(here != (smart_server.shared->launcher_latch != NULL));
	smart_server.shared->launcher_latch = here ? MyLatch : NULL;
}

void
smart_launcher_wake(void)
{
	Latch *latch = smart_server.shared == NULL ? NULL : smart_server.shared->launcher_latch;

	/* A launcher that has just exited left its latch to another process, which a wake-up does not harm. */
	if (latch != NULL)
		SetLatch(latch);
}

void
smart_moves_request(void)
{
	/* Behind the marks.  Partner: smart_moves_take_request(). */
	pg_write_barrier();
	pg_atomic_write_u32(&smart_server.shared->moves_requested, 1);
	smart_launcher_wake();
}

bool
smart_moves_take_request(void)
{
	/* A full barrier: the marks that were set before are seen afterwards. */
	return pg_atomic_exchange_u32(&smart_server.shared->moves_requested, 0) != 0;
}

/* ---- requests ---- */

void
smart_orphans_request(Oid database)
{
	struct smart_orphans_requests *requests = &smart_server.shared->orphans;
	int place = 0;

	smart_assert(OidIsValid(database));
	SpinLockAcquire(&requests->lock);
	requests->ever++;
	while (place < requests->count && requests->database[place] != database)
		place++;
	if (place == SMART_ORPHANS_REQUESTS)
		requests->all = true;
	else if (place == requests->count)
		requests->database[requests->count++] = database;
	smart_assert(requests->count >= 0 && requests->count <= SMART_ORPHANS_REQUESTS);
	SpinLockRelease(&requests->lock);
	smart_launcher_wake();
}

void
smart_orphans_request_all(void)
{
	struct smart_orphans_requests *requests = &smart_server.shared->orphans;

	SpinLockAcquire(&requests->lock);
	requests->ever++;
	requests->all = true;
	SpinLockRelease(&requests->lock);
	smart_launcher_wake();
}

bool
smart_orphans_is_requested(uint64 *ever)
{
	struct smart_orphans_requests *requests = &smart_server.shared->orphans;
	bool requested;

	SpinLockAcquire(&requests->lock);
	smart_assert(requests->count <= SMART_ORPHANS_REQUESTS && requests->nprepared <= SMART_ORPHANS_PREPARED);
	requested = requests->all || requests->count > 0;
	*ever = requests->ever;
	SpinLockRelease(&requests->lock);
	return requested;
}

bool
smart_orphans_take_request(bool round, bool database_first, Oid *database)
{
	struct smart_orphans_requests *requests = &smart_server.shared->orphans;
	bool found;

	SpinLockAcquire(&requests->lock);
	round |= requests->all;
	found = round || requests->count > 0;
	smart_assert(requests->count >= 0 && requests->count <= SMART_ORPHANS_REQUESTS);
	if (requests->count > 0 && (database_first || !round))
	{
		/* The oldest: who requests again and again keeps nobody waiting. */
		*database = requests->database[0];
		requests->count--;
		memmove(&requests->database[0], &requests->database[1], requests->count * sizeof(requests->database[0]));
	}
	else if (round)
	{
		requests->all = false;
		*database = InvalidOid;
	}
	SpinLockRelease(&requests->lock);
	smart_assert(!found || round || OidIsValid(*database));
	return found;
}

/* ---- prepared transactions ---- */

void
smart_orphans_watch(TransactionId xid, Oid database)
{
	struct smart_orphans_requests *requests = &smart_server.shared->orphans;
	int place = 0;

	smart_assert(TransactionIdIsNormal(xid) && OidIsValid(database));
	SpinLockAcquire(&requests->lock);
	while (place < requests->nprepared && requests->prepared[place].xid != xid)
		place++;
	if (place == requests->nprepared && place < SMART_ORPHANS_PREPARED)
		requests->prepared[requests->nprepared++] = (struct smart_orphans_prepared){.xid = xid, .database = database};
	smart_assert(requests->nprepared >= 0 && requests->nprepared <= SMART_ORPHANS_PREPARED);
	SpinLockRelease(&requests->lock);
}

bool
smart_orphans_look_at_prepared(void)
{
	struct smart_orphans_requests *requests = &smart_server.shared->orphans;
	struct smart_orphans_prepared prepared[SMART_ORPHANS_PREPARED];
	int count;
	int ended = 0;

	SpinLockAcquire(&requests->lock);
	count = requests->nprepared;
	memcpy(prepared, requests->prepared, count * sizeof(prepared[0]));
	SpinLockRelease(&requests->lock);
	smart_assert(count <= SMART_ORPHANS_PREPARED);
	for (int i = 0; i < count; i++)
	{
		/* They were looked at a second ago, so that the commit log has them. */
		if (!TransactionIdDidCommit(prepared[i].xid) && !TransactionIdDidAbort(prepared[i].xid))
			continue;
		SpinLockAcquire(&requests->lock);
		for (int place = 0; place < requests->nprepared; place++)
		{
			if (requests->prepared[place].xid == prepared[i].xid)
			{
				requests->prepared[place] = requests->prepared[--requests->nprepared];
				break;
			}
		}
		SpinLockRelease(&requests->lock);
		smart_orphans_request(prepared[i].database);
		ended++;
	}
	return ended < count;
}

/* ---- notes ---- */

void
smart_orphans_note(enum smart_orphans_when when)
{
	smart_assert(IsTransactionState());
	if (when == SMART_ORPHANS_IF_COMMITTED)
		if_committed = true;
	else
		if_aborted = true;
}

static void
at_transaction_end(XactEvent event, void *argument)
{
	bool request;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	request = (event != XACT_EVENT_ABORT && if_committed) || (event != XACT_EVENT_COMMIT && if_aborted);
	if_committed = if_aborted = false;
	if (request && smart_server.shared != NULL && OidIsValid(MyDatabaseId))
		smart_orphans_request(MyDatabaseId);
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	/* The tree may have been made in the part that is rolled back. */
	if (event == SUBXACT_EVENT_ABORT_SUB && if_aborted)
		if_committed = true;
}

/* Is an index of an access method that is not built in, or a database, about to be dropped? */
static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int part, void *argument)
{
	HeapTuple row = NULL;
	bool foreign = class == DatabaseRelationId;

	if (previous_access_hook)
		previous_access_hook(access, class, object, part, argument);
	if (access != OAT_DROP || part != 0)
		return;
	if (class == RelationRelationId)
		row = SearchSysCache1(RELOID, ObjectIdGetDatum(object));
	if (HeapTupleIsValid(row))
	{
		Form_pg_class relation = (Form_pg_class) GETSTRUCT(row);

		foreign = relation->relkind == RELKIND_INDEX && relation->relam >= FirstNormalObjectId &&
				  relation->relpersistence != RELPERSISTENCE_TEMP;
		ReleaseSysCache(row);
	}
	if (foreign)
		smart_orphans_note(SMART_ORPHANS_IF_COMMITTED);
}

void
smart_orphans_notes_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	previous_access_hook = object_access_hook;
	object_access_hook = at_object_access;
}
