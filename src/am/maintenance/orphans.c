/*
 * orphans.c
 *	  Orphans, the trees that no metapage names: which ones there are, freeing them, and
 *	  the background workers that do so without being asked.
 *
 * The order makes it right.  First the trees are listed, then the transactions that made them are
 * looked for, then a snapshot is taken, and metapages are read last.  So a tree that is found without a
 * name was there, and its maker had ended, before its name was looked for; and from then on it cannot
 * get one, since a tree is named by its maker, or by a copy of a metapage that names it already.
 *
 * What a standby has loaded, or is a delta, is named by its journal, which a metapage names as long as the index has that
 * content.
 *
 * The launcher starts the orphan collector, a process for one database, since a process can be connected
 * to one only.  The collector for InvalidOid is connected to none: it frees the trees of dropped databases
 * and requests a collection in each other database that has trees.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/trees.h"
#include "am/maintenance/orphans.h"
#include "am/maintenance/orphans_names.h"
#include "am/nodes/peers.h"
#include "am/recovery/undo.h"
#include "am/server/launcher_requests.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define ATTEMPTS_MAX  5  /* to read all metapages */
#define PAUSE_MS      10 /* before the second attempt; then twice as long each time */
#define PLENTY        4  /* memory is not scarce as long as only one part in so many is used */
#define TEMPORARY_FEW 32 /* trees of temporary tables that may be leaked in a session */

#define NAPS        10    /* of autovacuum, between two looks at all databases */
#define BETWEEN_MS  1000  /* between the starts of two collections: most of what comes in bursts is over */
#define FULL_MS     10000 /* until the next attempt, when the server had no place for one more process */
#define IDLE_MS     60000 /* when there is nothing to wait for but the latch */
#define PREPARED_MS 1000  /* between two looks at prepared transactions */

/* ---- the survey ---- */

/* Has the transaction that made a tree neither committed nor aborted? */
static bool
is_unfinished(uint64 creator)
{
	uint64 next = U64FromFullTransactionId(ReadNextFullTransactionId());

	/* One that long ago cannot be asked for; nor can one whose number a crash has taken back. */
	if (creator >= next || next - creator > MaxTransactionId / 2)
		return false;
	return TransactionIdIsInProgress(XidFromFullTransactionId(FullTransactionIdFromU64(creator)));
}

/* Was the tree made for the file of an index whose metapage cannot be read? */
static bool
was_made_for(const struct smart_tree_owner *owner, const struct smart_unread *unread)
{
	return owner->database == MyDatabaseId && owner->tablespace == unread->tablespace &&
		   owner->relation == unread->file && (owner->backend != SMART_NO_BACKEND) == unread->temporary;
}

/*
 * Does each index whose metapage cannot be read have a tree without a name that may be its own, so that what was made for
 * other indexes may be freed?  before: what could not be read in the attempt before; an index that comes and goes is
 * another one in each attempt.
 */
static bool
knows_trees_of_unread(const struct smart_survey *survey, const List *before, HTAB *names)
{
	for (int i = 0; i < list_length(survey->unread); i++)
	{
		const struct smart_unread *unread = list_nth(survey->unread, i);
		bool stays = false;
		bool has_tree = false;

		for (int k = 0; k < list_length(before) && !stays; k++)
		{
			const struct smart_unread *other = list_nth(before, k);

			stays =
				other->index == unread->index && other->tablespace == unread->tablespace && other->file == unread->file;
		}
		for (uint64 t = 0; t < survey->count && stays && !has_tree; t++)
		{
			const struct smart_tree_info *info = &survey->tree[t].info;

			has_tree = was_made_for(&info->owner, unread) && hash_search(names, &info->id, HASH_FIND, NULL) == NULL;
		}
		if (!has_tree)
			return false;
	}
	return true;
}

/*
 * Under which name a tree is looked for: its own, or, if it is a delta, or a follower of a standby or of indexes that write back,
 * that of its journal.
 */
static const uint64 *
name_of(const struct smart_tree_info *info)
{
	bool by_journal = smart_tree_is_followed(info) && (smart_server.shared->standby || smart_settings.write_back ||
													   (info->owner.flags & SMART_TREE_IS_DELTA) != 0);

	return by_journal ? &info->note[SMART_NOTE_JOURNAL] : &info->id;
}

/* The fate of a tree whose transaction has ended; names: the trees that have a name, or NULL. */
static enum smart_tree_fate
fate_of(const struct smart_survey *survey, const struct smart_tree_info *info, HTAB *names)
{
	const struct smart_tree_owner *owner = &info->owner;
	bool temporary = owner->backend != SMART_NO_BACKEND;

	smart_assert(info->id != 0);
	if (!list_member_oid(survey->databases, owner->database))
		return SMART_TREE_LEAKED;
	if (temporary && (owner->incarnation != smart_server_incarnation() || !smart_backend_runs(owner->backend)))
		return SMART_TREE_LEAKED;
	if (temporary && owner->backend != smart_my_backend())
		return SMART_TREE_TEMPORARY;
	if (owner->database != MyDatabaseId)
		return SMART_TREE_ELSEWHERE;
	if (smart_tree_is_followed(info) && owner->incarnation != smart_follower_incarnation(owner->flags))
		return SMART_TREE_LEAKED;
	if (names == NULL)
		return SMART_TREE_UNDECIDED;
	/* A standby is making it at this moment. */
	if (*name_of(info) == 0)
		return SMART_TREE_UNFINISHED;
	if (hash_search(names, name_of(info), HASH_FIND, NULL) != NULL)
		return temporary ? SMART_TREE_TEMPORARY : SMART_TREE_USED;
	for (int i = 0; i < list_length(survey->unread); i++)
	{
		if (was_made_for(owner, list_nth(survey->unread, i)))
			return SMART_TREE_UNDECIDED;
	}
	/* Asked last: a rebuild has its trees in hand before it names them and until they have no user. */
	return smart_rebuild_holds_tree(info->id) ? SMART_TREE_UNFINISHED : SMART_TREE_LEAKED;
}

/* Everything that decides about trees; returns the set of those that have a name, in CurrentMemoryContext. */
static HTAB *
look_at_all(struct smart_survey *survey, bool temporary_only)
{
	HASHCTL control = {.keysize = sizeof(uint64), .entrysize = sizeof(uint64), .hcxt = CurrentMemoryContext};
	HTAB *names = hash_create("smart named trees", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	struct smart_trees_cursor cursor = {0};
	struct smart_tree_info info;
	Snapshot snapshot;
	uint64 room = 64;

	survey->count = 0;
	survey->tree = palloc(room * sizeof(struct smart_surveyed_tree));
	while (smart_trees_next(&cursor, &info))
	{
		if (temporary_only &&
			(info.owner.backend != smart_my_backend() || info.owner.incarnation != smart_server_incarnation()))
			continue;
		smart_assert(survey->count <= room);
		if (survey->count == room)
		{
			room *= 2;
			survey->tree = repalloc_huge(survey->tree, room * sizeof(struct smart_surveyed_tree));
		}
		survey->tree[survey->count++] = (struct smart_surveyed_tree){.info = info};
	}
	for (uint64 i = 0; i < survey->count; i++)
	{
		struct smart_surveyed_tree *tree = &survey->tree[i];

		tree->fate = is_unfinished(tree->info.owner.creator) ? SMART_TREE_UNFINISHED : SMART_TREE_UNDECIDED;
	}
	/* A new snapshot, which does not see what its own transaction has done. */
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	smart_assert(snapshot->copied);
	snapshot->curcid = FirstCommandId;
	survey->databases = smart_names_databases(snapshot, SMART_DATABASES_ALL);
	survey->unread = OidIsValid(MyDatabaseId) ? smart_names_collect(snapshot, temporary_only, names) : NIL;
	UnregisterSnapshot(snapshot);
	return names;
}

void
smart_survey(struct smart_survey *survey, bool temporary_only)
{
	List *before = NIL; /* what could not be read in the attempt before */
	HTAB *names;

	smart_assert(IsTransactionState());
	names = look_at_all(survey, temporary_only);
	/* Another attempt may see why. */
	for (int attempt = 1; survey->unread != NIL && attempt < ATTEMPTS_MAX; attempt++)
	{
		before = survey->unread;
		hash_destroy(names);
		pfree(survey->tree);
		list_free(survey->databases);
		CHECK_FOR_INTERRUPTS();
		pg_usleep((PAUSE_MS * 1000L) << (attempt - 1));
		names = look_at_all(survey, temporary_only);
	}
	survey->undecided = !knows_trees_of_unread(survey, before, names);
	smart_assert(!survey->undecided || survey->unread != NIL);
	for (uint64 i = 0; i < survey->count; i++)
	{
		struct smart_surveyed_tree *tree = &survey->tree[i];

		if (tree->fate != SMART_TREE_UNFINISHED)
			tree->fate = fate_of(survey, &tree->info, OidIsValid(MyDatabaseId) && !survey->undecided ? names : NULL);
	}
	hash_destroy(names);
}

void
smart_survey_report(const struct smart_survey *survey, int level)
{
	smart_assert(level == LOG || level == WARNING);
	for (int i = 0; i < list_length(survey->unread); i++)
	{
		const struct smart_unread *unread = list_nth(survey->unread, i);

		ereport(level, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("the metapage of index %u cannot be read", unread->index),
				survey->undecided
					? errdetail("It is not known which trees of database %u are in use, and none is freed.",
								MyDatabaseId)
					: errdetail("What was made for it is kept."),
				errhint("Rebuild or drop that index."));
	}
}

/* ---- freeing ---- */

uint64
smart_orphans_free(const struct smart_survey *survey, uint64 *bytes)
{
	uint64 freed = 0;

	for (uint64 i = 0; i < survey->count; i++)
	{
		const struct smart_tree_info *info = &survey->tree[i].info;

		if (survey->tree[i].fate != SMART_TREE_LEAKED)
			continue;
		smart_assert(info->id != 0);
		/* An asynchronous commit could still be lost, and the index be there again. */
		if (freed == 0 && !RecoveryInProgress())
			smart_wal_flush();
		smart_am_tree_drop(info->id);
		freed++;
		*bytes += info->bytes;
		CHECK_FOR_INTERRUPTS();
	}
	smart_assert(freed <= survey->count);
	return freed;
}

/* Surveys and frees what is leaked; returns how many of the trees that were looked at are left. */
static uint64
collect(bool temporary_only)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart orphans", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_survey survey;
	uint64 bytes = 0;
	uint64 left;

	smart_survey(&survey, temporary_only);
	left = survey.count - smart_orphans_free(&survey, &bytes);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return left;
}

/* ---- before a tree is made ---- */

/* smart_make_room_hook */
static void
make_room(bool temporary)
{
	static uint64 made = 0; /* for temporary tables, since this session looked for their trees */
	static uint64 limit = TEMPORARY_FEW;
	static uint64 seen = 0; /* requests when this session collected last */
	uint64 ever;
	struct smart_space_usage usage;
	uint64 reachable;

	if (IsInParallelMode())
	{
		made += temporary;
		return;
	}
	/*
	 * A session may live for long and drop many temporary tables, whose trees no other process can tell from what is
	 * in use: it looks for them when as many were made as were left the last time, and some.
	 */
	if (temporary && ++made >= limit)
	{
		made = 0;
		limit = collect(true) + TEMPORARY_FEW;
	}
	/*
	 * A tree that is being filled cannot wait for a collection: the catalogs cannot be read from within it.  So what
	 * was dropped a moment ago is freed before.  That reads all metapages of the database, hence only if something was
	 * dropped since this session did so last, and only if memory is well used.
	 */
	(void) smart_orphans_is_requested(&ever);
	if (ever == seen || !OidIsValid(MyDatabaseId) || smart_server_recovers())
		return;
	smart_space_usage(&smart_backend_client()->space, &usage);
	reachable = usage.max_size;
	if (smart_server.remote)
	{
		uint64 capacity = 0;
		uint64 allocated = 0;
		struct smart_peer peer;

		for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
		{
			if (!smart_peer_get(smart_server.peers, node, &peer) || peer.state != SMART_PEER_UP)
				continue;
			capacity += peer.capacity;
			allocated += peer.allocated;
		}
		/* On memory nodes this server's trees can have what others have left.  What the nodes say may be a second old. */
		reachable = allocated > usage.size ? capacity - (allocated - usage.size) : capacity;
	}
	if (usage.used <= reachable / PLENTY)
		return;
	(void) collect(false);
	seen = ever;
}

/* ---- without being asked ---- */

/* The prepared transactions of this database. */
#define PREPARED                                               \
	"SELECT p.transaction FROM pg_catalog.pg_prepared_xacts p" \
	" WHERE p.database OPERATOR(pg_catalog.=) pg_catalog.current_database()"

static bool collects = true;

void
smart_orphans_init(void)
{
#ifdef SMART_ASSERTIONS
	/* For tests that look at what is left. */
	DefineCustomBoolVariable("smart.debug_collect_orphans", "Frees what dropped indexes have left.",
							 "off: only smart_collect_orphans() does.", &collects, true, PGC_SIGHUP,
							 GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL, NULL, NULL, NULL);
#endif
	smart_orphans_notes_init();
	smart_make_room_hook = make_room;
}

static TimestampTz next_start = 0; /* not before that */
static TimestampTz next_round = 0; /* when all databases are due */
static bool round_was_last = false;

/*
 * The next request: a database, or InvalidOid for the round of all; false: there is none.  One that was dropped in the meantime has
 * nothing to be looked at, and no process can be connected to it; what it has left is freed from any other.
 */
static bool
take_request(bool round, Oid *database)
{
	/* If both a database and the round of all are requested, they take turns. */
	while (smart_orphans_take_request(round, round_was_last, database))
	{
		if (!OidIsValid(*database) || smart_names_has_database(SMART_DATABASES_VALID, *database))
			return true;
	}
	return false;
}

long
smart_orphans_tend(struct smart_job *job)
{
	TimestampTz now = GetCurrentTimestamp();
	bool some_prepared; /* that have not ended */
	Oid database;
	uint64 ever;
	long rest_ms;

	if (!collects || !smart_server.shared->made || smart_server_recovers())
		return IDLE_MS;
	some_prepared = smart_orphans_look_at_prepared();
	if (now >= next_start && !smart_child_runs(&job->child) && take_request(now >= next_round, &database))
	{
		bool round = !OidIsValid(database);
		bool started = smart_child_start(job, database, &job->child);

		next_start = TimestampTzPlusMilliseconds(now, started ? BETWEEN_MS : FULL_MS);
		round_was_last = round;
		if (round)
			next_round =
				started ? TimestampTzPlusMilliseconds(now, NAPS * (int64) autovacuum_naptime * 1000) : next_start;
		else if (!started)
			smart_orphans_request(database);
	}
	rest_ms =
		TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
										smart_orphans_is_requested(&ever) ? next_start : Max(next_round, next_start));
	/* The latch is set when the process that runs ends, but not reliably. */
	rest_ms = job->child != NULL ? Max(rest_ms, BETWEEN_MS) : Min(rest_ms, IDLE_MS);
	smart_assert(rest_ms >= 0);
	return some_prepared ? Min(rest_ms, PREPARED_MS) : rest_ms;
}

void
smart_orphans_serve(const struct smart_job *job)
{
	struct smart_survey survey;
	uint64 bytes = 0;
	uint64 freed;

	smart_assert(job->connects_anywhere && !IsTransactionState());
	smart_assert(smart_server.shared->made);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, "collecting orphaned trees");
	/* Before the survey: a prepared transaction that ends in between is seen by the survey, or by the launcher. */
	if (OidIsValid(MyDatabaseId))
	{
		SPI_connect();
		if (SPI_execute(PREPARED, true, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not list the prepared transactions of database %u", MyDatabaseId);
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool isnull;
			Datum xid = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

			smart_orphans_watch(DatumGetTransactionId(xid), MyDatabaseId);
		}
		SPI_finish();
	}
	smart_survey(&survey, false);
	freed = smart_orphans_free(&survey, &bytes);
	if (!OidIsValid(MyDatabaseId))
	{
		List *valid = smart_names_databases(NULL, SMART_DATABASES_VALID);
		List *requested = NIL;

		/* Request a collection in each database that has trees which only a process of its own can look at. */
		for (uint64 i = 0; i < survey.count; i++)
		{
			Oid other = survey.tree[i].info.owner.database;

			if (survey.tree[i].fate != SMART_TREE_ELSEWHERE || !list_member_oid(valid, other) ||
				list_member_oid(requested, other))
				continue;
			requested = lappend_oid(requested, other);
			smart_orphans_request(other);
		}
	}
	smart_survey_report(&survey, LOG);
	if (freed > 0)
		ereport(DEBUG1,
				errmsg_internal("smart freed " UINT64_FORMAT " orphaned trees, " UINT64_FORMAT " bytes", freed, bytes));
	PopActiveSnapshot();
	CommitTransactionCommand();
}
