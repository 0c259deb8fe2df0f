/*
 * orphans_names.c
 *	  Which trees the metapages of this database name, and which databases
 *	  there are.
 *
 * Metapages are read without a lock on the index, so as not to wait for a session that drops or
 * rebuilds it.  What the snapshot sees is good enough: as long as that transaction runs, the old file
 * is there and names the old tree; when it has ended the file is gone, and the reader sees that.
 *
 * Without the lock the page must not get into the buffers: it would stay there when the file goes, for
 * the next file that gets this number.  A page that is not in the buffers is read from the file, where
 * it is up to date then.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "am/compat.h"
#include "am/index/meta.h"
#include "am/maintenance/orphans_names.h"
#include "base/assert.h"

#define HANDLER   "smart_handler" /* the C function that makes an access method ours, whatever its name */
#define LOOKS_MAX 1000            /* at a page that comes and goes, a millisecond apart */

/* ---- pages ---- */

/* The buffer that has block 0 of a file, and perhaps has it no more; InvalidBuffer: none. */
static Buffer
find_buffer(SMgrRelation file)
{
	if (SmgrIsTemp(file))
		return PrefetchLocalBuffer(file, MAIN_FORKNUM, SMART_META_BLOCK).recent_buffer;
	return PrefetchSharedBuffer(file, MAIN_FORKNUM, SMART_META_BLOCK).recent_buffer;
}

enum look
{
	LOOK_READ,
	LOOK_ABSENT, /* the file has no such block (any more) */
	LOOK_AGAIN   /* the page came into the buffers, or went, meanwhile */
};

/* The file may go between two of these calls, and that is no error.  No lock and no pin is held where they raise one. */
static enum look
look_at_page(SMgrRelation file, smart_file number, char *copy)
{
	MemoryContext context = CurrentMemoryContext;
	volatile enum look look = LOOK_ABSENT;

	PG_TRY();
	{
		Buffer buffer = find_buffer(file);

		if (BufferIsValid(buffer) && !ReadRecentBuffer(number, MAIN_FORKNUM, SMART_META_BLOCK, buffer))
			look = LOOK_AGAIN;
		else if (BufferIsValid(buffer))
		{
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			memcpy(copy, BufferGetPage(buffer), BLCKSZ);
			UnlockReleaseBuffer(buffer);
			look = LOOK_READ;
		}
		else if (smgrexists(file, MAIN_FORKNUM) && smgrnblocks(file, MAIN_FORKNUM) > SMART_META_BLOCK)
		{
			smgrread(file, MAIN_FORKNUM, SMART_META_BLOCK, copy);
			/* What is in the buffers now may be newer than what was read. */
			look = BufferIsValid(find_buffer(file)) ? LOOK_AGAIN : LOOK_READ;
		}
	}
	PG_CATCH();
	{
		int code = geterrcode();

		if (code != ERRCODE_UNDEFINED_FILE && code != ERRCODE_DATA_CORRUPTED)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		look = LOOK_ABSENT;
	}
	PG_END_TRY();
	return look;
}

/* The tree and the journal that the metapage in a file names (0: none); false: it could not be read. */
static bool
read_name(smart_file number, int backend, uint64 *tree, uint64 *journal)
{
	SMgrRelation file = smgropen(number, backend);
	PGAlignedBlock copy;

	for (int looks = 0; looks < LOOKS_MAX; looks++)
	{
		enum look look = look_at_page(file, number, copy.data);

		if (look != LOOK_AGAIN)
			return look == LOOK_READ && smart_meta_named_tree(copy.data, tree, journal);
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
	return false;
}

/* ---- catalogs, as the snapshot sees them ---- */

static SysScanDesc
begin_scan(Relation *catalog, Oid oid, Snapshot snapshot)
{
	*catalog = table_open(oid, AccessShareLock);
	return systable_beginscan(*catalog, InvalidOid, false, snapshot, 0, NULL);
}

static void
end_scan(SysScanDesc scan, Relation catalog)
{
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
}

/* A copy of the row with this OID, by the index of its column; NULL: none. */
static HeapTuple
copy_row(Oid catalog_oid, Oid index, AttrNumber column, Oid oid, Snapshot snapshot)
{
	Relation catalog = table_open(catalog_oid, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;

	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	scan = systable_beginscan(catalog, index, true, snapshot, 1, &key);
	row = systable_getnext(scan);
	row = HeapTupleIsValid(row) ? heap_copytuple(row) : NULL;
	end_scan(scan, catalog);
	return row;
}

/* The access methods that are this one. */
static List *
our_methods(Snapshot snapshot)
{
	Relation catalog;
	SysScanDesc scan = begin_scan(&catalog, AccessMethodRelationId, snapshot);
	List *methods = NIL;
	HeapTuple row;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_am method = (Form_pg_am) GETSTRUCT(row);
		HeapTuple handler = NULL;
		Datum name = 0;
		bool isnull = true;

		if (method->amtype == AMTYPE_INDEX)
			handler = copy_row(ProcedureRelationId, ProcedureOidIndexId, Anum_pg_proc_oid, method->amhandler, snapshot);
		if (handler != NULL && ((Form_pg_proc) GETSTRUCT(handler))->prolang == ClanguageId)
			name = SysCacheGetAttr(PROCOID, handler, Anum_pg_proc_prosrc, &isnull);
		if (!isnull && strcmp(TextDatumGetCString(name), HANDLER) == 0)
			methods = lappend_oid(methods, method->oid);
	}
	end_scan(scan, catalog);
	return methods;
}

/* Adds the name that an index has, or the index to *unread. */
static void
add_name(Form_pg_class index, Snapshot snapshot, HTAB *trees, List **unread)
{
	struct smart_unread place = {
		.index = index->oid,
		.tablespace = OidIsValid(index->reltablespace) ? index->reltablespace : MyDatabaseTableSpace,
		.file = index->relfilenode,
		.temporary = index->relpersistence == RELPERSISTENCE_TEMP,
	};
	uint64 tree;
	uint64 journal;

	if (read_name(smart_make_file(place.tablespace, MyDatabaseId, place.file),
				  place.temporary ? smart_my_backend() : SMART_NO_BACKEND, &tree, &journal))
	{
		if (tree != 0)
			(void) hash_search(trees, &tree, HASH_ENTER, NULL);
		if (journal != 0)
			(void) hash_search(trees, &journal, HASH_ENTER, NULL);
	}
	else
	{
		HeapTuple row = copy_row(IndexRelationId, IndexRelidIndexId, Anum_pg_index_indexrelid, index->oid, snapshot);
		struct smart_unread *copy;

		/* An index that a concurrent build has not got to yet, or never will, may be without a metapage. */
		if (row != NULL && !((Form_pg_index) GETSTRUCT(row))->indisready)
			return;
		copy = palloc(sizeof(place));
		*copy = place;
		*unread = lappend(*unread, copy);
	}
}

List *
smart_names_collect(Snapshot snapshot, bool temporary_only, HTAB *trees)
{
	List *methods = our_methods(snapshot);
	Relation catalog;
	SysScanDesc scan;
	HeapTuple row;
	List *unread = NIL;

	smart_assert(OidIsValid(MyDatabaseId));
	if (methods == NIL)
		return NIL;
	scan = begin_scan(&catalog, RelationRelationId, snapshot);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

		CHECK_FOR_INTERRUPTS();
		if (class->relkind != RELKIND_INDEX || !list_member_oid(methods, class->relam))
			continue;
		/* In recovery an unlogged one has its init fork only. */
		if (class->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
			continue;
		/* Only the session that has a temporary table can read its metapages. */
		if (class->relpersistence == RELPERSISTENCE_TEMP ? isTempNamespace(class->relnamespace) : !temporary_only)
			add_name(class, snapshot, trees, &unread);
	}
	end_scan(scan, catalog);
	list_free(methods);
	return unread;
}

List *
smart_names_databases(Snapshot snapshot, enum smart_databases which)
{
	Relation catalog;
	SysScanDesc scan = begin_scan(&catalog, DatabaseRelationId, snapshot);
	List *databases = NIL;
	HeapTuple row;

	smart_assert(which <= SMART_DATABASES_USED);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(row);

		if ((which >= SMART_DATABASES_VALID && smart_database_is_invalid(database)) ||
			(which >= SMART_DATABASES_OPEN && !database->datallowconn) ||
			(which >= SMART_DATABASES_USED && database->datistemplate))
			continue;
		databases = lappend_oid(databases, database->oid);
	}
	end_scan(scan, catalog);
	return databases;
}

bool
smart_names_try_databases(enum smart_databases which, List **databases)
{
	MemoryContext context = CurrentMemoryContext;
	bool found;

	smart_assert(!IsTransactionState());
	StartTransactionCommand();
	found = ConditionalLockRelationOid(DatabaseRelationId, AccessShareLock);
	if (found)
	{
		List *list = smart_names_databases(NULL, which);

		MemoryContextSwitchTo(context);
		*databases = list_copy(list);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return found;
}

bool
smart_names_has_database(enum smart_databases which, Oid database)
{
	List *databases;

	smart_assert(OidIsValid(database));
	return !smart_names_try_databases(which, &databases) || list_member_oid(databases, database);
}
