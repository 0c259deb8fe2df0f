/*
 * wishes.c
 *	  What the processes of a server tell its launcher.
 *
 * An unnecessary wish costs one look.  So it is enough to notice that an index of an access method that is not built
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

#include "am/server/shared.h"
#include "am/server/wishes.h"
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
smart_moves_wish(void)
{
	/* Behind the marks.  Partner: smart_moves_take_wish(). */
	pg_write_barrier();
	pg_atomic_write_u32(&smart_server.shared->moves_wished, 1);
	smart_launcher_wake();
}

bool
smart_moves_take_wish(void)
{
	/* A full barrier: the marks that were set before are seen afterwards. */
	return pg_atomic_exchange_u32(&smart_server.shared->moves_wished, 0) != 0;
}

/* ---- wishes ---- */

void
smart_orphans_wish(Oid database)
{
	struct smart_orphans_wishes *wishes = &smart_server.shared->orphans;
	int place = 0;

	smart_assert(OidIsValid(database));
	SpinLockAcquire(&wishes->lock);
	wishes->ever++;
	while (place < wishes->count && wishes->database[place] != database)
		place++;
	if (place == SMART_ORPHANS_WISHES)
		wishes->all = true;
	else if (place == wishes->count)
		wishes->database[wishes->count++] = database;
	SpinLockRelease(&wishes->lock);
	smart_launcher_wake();
}

bool
smart_orphans_is_wished(uint64 *ever)
{
	struct smart_orphans_wishes *wishes = &smart_server.shared->orphans;
	bool wished;

	SpinLockAcquire(&wishes->lock);
	smart_assert(wishes->count <= SMART_ORPHANS_WISHES && wishes->nprepared <= SMART_ORPHANS_PREPARED);
	wished = wishes->all || wishes->count > 0;
	*ever = wishes->ever;
	SpinLockRelease(&wishes->lock);
	return wished;
}

bool
smart_orphans_take_wish(bool round, bool database_first, Oid *database)
{
	struct smart_orphans_wishes *wishes = &smart_server.shared->orphans;
	bool found;

	SpinLockAcquire(&wishes->lock);
	round |= wishes->all;
	found = round || wishes->count > 0;
	smart_assert(wishes->count >= 0 && wishes->count <= SMART_ORPHANS_WISHES);
	if (wishes->count > 0 && (database_first || !round))
		*database = wishes->database[--wishes->count];
	else if (round)
	{
		wishes->all = false;
		*database = InvalidOid;
	}
	SpinLockRelease(&wishes->lock);
	return found;
}

/* ---- prepared transactions ---- */

void
smart_orphans_watch(TransactionId xid, Oid database)
{
	struct smart_orphans_wishes *wishes = &smart_server.shared->orphans;
	int place = 0;

	smart_assert(TransactionIdIsNormal(xid) && OidIsValid(database));
	SpinLockAcquire(&wishes->lock);
	while (place < wishes->nprepared && wishes->prepared[place].xid != xid)
		place++;
	if (place == wishes->nprepared && place < SMART_ORPHANS_PREPARED)
		wishes->prepared[wishes->nprepared++] = (struct smart_orphans_prepared){.xid = xid, .database = database};
	SpinLockRelease(&wishes->lock);
}

bool
smart_orphans_look_at_prepared(void)
{
	struct smart_orphans_wishes *wishes = &smart_server.shared->orphans;
	struct smart_orphans_prepared prepared[SMART_ORPHANS_PREPARED];
	int count;
	int ended = 0;

	SpinLockAcquire(&wishes->lock);
	count = wishes->nprepared;
	memcpy(prepared, wishes->prepared, count * sizeof(prepared[0]));
	SpinLockRelease(&wishes->lock);
	smart_assert(count <= SMART_ORPHANS_PREPARED);
	for (int i = 0; i < count; i++)
	{
		/* They were looked at a second ago, so that the commit log has them. */
		if (!TransactionIdDidCommit(prepared[i].xid) && !TransactionIdDidAbort(prepared[i].xid))
			continue;
		SpinLockAcquire(&wishes->lock);
		for (int place = 0; place < wishes->nprepared; place++)
		{
			if (wishes->prepared[place].xid == prepared[i].xid)
			{
				wishes->prepared[place] = wishes->prepared[--wishes->nprepared];
				break;
			}
		}
		SpinLockRelease(&wishes->lock);
		smart_orphans_wish(prepared[i].database);
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
	bool wish;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	wish = (event != XACT_EVENT_ABORT && if_committed) || (event != XACT_EVENT_COMMIT && if_aborted);
	if_committed = if_aborted = false;
	if (wish && smart_server.shared != NULL && OidIsValid(MyDatabaseId))
		smart_orphans_wish(MyDatabaseId);
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
