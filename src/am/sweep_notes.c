/*
 * sweep_notes.c
 *	  When there may be something to sweep: what a transaction notes, and tells
 *	  the background worker when it has ended.
 *
 * A note too many costs one look.  So it is enough to see that an index of some
 * access method that is not built in was dropped, or a database.
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

#include "am/shared.h"
#include "am/sweep_worker.h"
#include "am/worker.h"

static object_access_hook_type previous_access_hook;
static bool if_committed = false;
static bool if_aborted = false;

void
smart_sweep_wishes_init(struct smart_sweep_wishes *wishes)
{
	SpinLockInit(&wishes->lock);
	wishes->all = true; /* an earlier start of the server may have left something */
	wishes->ever = 0;
	wishes->count = wishes->nprepared = 0;
}

void
smart_sweep_wish(Oid database)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;
	int place = 0;

	SpinLockAcquire(&wishes->lock);
	wishes->ever++;
	while (place < wishes->count && wishes->database[place] != database)
		place++;
	if (place == SMART_SWEEP_WISHES)
		wishes->all = true;
	else if (place == wishes->count)
		wishes->database[wishes->count++] = database;
	SpinLockRelease(&wishes->lock);
	smart_worker_wake();
}

/* ---- prepared transactions ---- */

void
smart_sweep_watch(TransactionId xid, Oid database)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;
	int place = 0;

	SpinLockAcquire(&wishes->lock);
	while (place < wishes->nprepared && wishes->prepared[place].xid != xid)
		place++;
	if (place == wishes->nprepared && place < SMART_SWEEP_PREPARED)
		wishes->prepared[wishes->nprepared++] = (struct smart_sweep_prepared){.xid = xid, .database = database};
	SpinLockRelease(&wishes->lock);
}

static void
unwatch(TransactionId xid)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;

	SpinLockAcquire(&wishes->lock);
	for (int i = 0; i < wishes->nprepared; i++)
	{
		if (wishes->prepared[i].xid == xid)
		{
			wishes->prepared[i] = wishes->prepared[--wishes->nprepared];
			break;
		}
	}
	SpinLockRelease(&wishes->lock);
}

bool
smart_sweep_look_at_prepared(void)
{
	struct smart_sweep_wishes *wishes = &smart_server.shared->sweep;
	struct smart_sweep_prepared prepared[SMART_SWEEP_PREPARED];
	int count;
	int ended = 0;

	SpinLockAcquire(&wishes->lock);
	count = wishes->nprepared;
	memcpy(prepared, wishes->prepared, count * sizeof(prepared[0]));
	SpinLockRelease(&wishes->lock);
	for (int i = 0; i < count; i++)
	{
		/* They were looked at a second ago, so that the commit log has them. */
		if (!TransactionIdDidCommit(prepared[i].xid) && !TransactionIdDidAbort(prepared[i].xid))
			continue;
		unwatch(prepared[i].xid);
		smart_sweep_wish(prepared[i].database);
		ended++;
	}
	return ended < count;
}

/* ---- notes ---- */

void
smart_sweep_note(enum smart_sweep_when when)
{
	if (when == SMART_SWEEP_IF_COMMITTED)
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
	if (wish && smart_server_available() && OidIsValid(MyDatabaseId))
		smart_sweep_wish(MyDatabaseId);
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	/* The tree may have been made in the part that is rolled back. */
	if (event == SUBXACT_EVENT_ABORT_SUB && if_aborted)
		if_committed = true;
}

static bool
is_foreign_index(Oid relation)
{
	HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool foreign = false;

	if (HeapTupleIsValid(row))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

		foreign = class->relkind == RELKIND_INDEX && class->relam >= FirstNormalObjectId &&
				  class->relpersistence != RELPERSISTENCE_TEMP;
		ReleaseSysCache(row);
	}
	return foreign;
}

static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int part, void *argument)
{
	if (previous_access_hook)
		previous_access_hook(access, class, object, part, argument);
	if (access != OAT_DROP || part != 0)
		return;
	if (class == DatabaseRelationId || (class == RelationRelationId && is_foreign_index(object)))
		smart_sweep_note(SMART_SWEEP_IF_COMMITTED);
}

void
smart_sweep_notes_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	previous_access_hook = object_access_hook;
	object_access_hook = at_object_access;
}
