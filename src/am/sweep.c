/*
 * sweep.c
 *	  Trees that no metapage names: which ones there are, and freeing them.
 *
 * The order makes it right.  First the trees are listed, then the transactions
 * that made them are looked for, then a snapshot is taken, and metapages are read last.
 * So a tree that is found without a name was there, and its maker had ended,
 * before anybody looked for its name; and from then on nobody can name it, since
 * trees are named by who makes them, or by a copy of a metapage that names
 * them already.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "am/compat.h"
#include "am/rebuild_table.h"
#include "am/server.h"
#include "am/sweep.h"
#include "am/sweep_names.h"
#include "am/wal.h"
#include "base/assert.h"

#define ATTEMPTS_MAX 5  /* to read all metapages */
#define PAUSE_MS     10 /* before the second attempt; then twice as long each time */

/* ---- the survey ---- */

static bool
is_mine(const struct smart_tree_owner *owner)
{
	return owner->backend == smart_my_backend() && owner->incarnation == smart_server_incarnation();
}

static void
list_trees(struct smart_survey *survey, bool temporary_only)
{
	struct smart_space *space = &smart_backend_client()->space;
	struct smart_tree_info info;
	uint64 cursor = 0;
	uint64 room = 64;

	survey->count = 0;
	survey->tree = palloc(room * sizeof(struct smart_surveyed_tree));
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (temporary_only && !is_mine(&info.owner))
			continue;
		if (survey->count == room)
		{
			room *= 2;
			survey->tree = repalloc_huge(survey->tree, room * sizeof(struct smart_surveyed_tree));
		}
		survey->tree[survey->count++] = (struct smart_surveyed_tree){.info = info};
	}
}

/* Has the transaction that made a tree neither committed nor aborted? */
static bool
is_unfinished(uint64 creator)
{
	uint64 next = U64FromFullTransactionId(ReadNextFullTransactionId());

	/* Transactions that long ago cannot even be asked for; nor can one be that a crash has taken back, number and all. */
	if (creator >= next || next - creator > MaxTransactionId / 2)
		return false;
	return TransactionIdIsInProgress(XidFromFullTransactionId(FullTransactionIdFromU64(creator)));
}

static void
look_for_creators(struct smart_survey *survey)
{
	for (uint64 i = 0; i < survey->count; i++)
	{
		struct smart_surveyed_tree *tree = &survey->tree[i];

		tree->fate = is_unfinished(tree->info.owner.creator) ? SMART_TREE_UNFINISHED : SMART_TREE_UNDECIDED;
	}
}

/* ---- indexes whose metapages cannot be read ---- */

/* Was the tree made for the file of such an index? */
static bool
was_made_for(const struct smart_tree_owner *owner, const struct smart_unread *unread)
{
	return owner->database == MyDatabaseId && owner->tablespace == unread->tablespace &&
		   owner->relation == unread->file && (owner->backend != SMART_NO_BACKEND) == unread->temporary;
}

static bool
may_be_unread(const struct smart_survey *survey, const struct smart_tree_owner *owner)
{
	for (int i = 0; i < list_length(survey->unread); i++)
	{
		if (was_made_for(owner, list_nth(survey->unread, i)))
			return true;
	}
	return false;
}

/* Is there one without a name that may be the index's? */
static bool
has_tree(const struct smart_survey *survey, const struct smart_unread *unread, HTAB *names)
{
	for (uint64 i = 0; i < survey->count; i++)
	{
		const struct smart_tree_info *info = &survey->tree[i].info;

		if (was_made_for(&info->owner, unread) && hash_search(names, &info->id, HASH_FIND, NULL) == NULL)
			return true;
	}
	return false;
}

/* An index that comes and goes is another one in each attempt. */
static bool
stays_unread(const List *before, const struct smart_unread *unread)
{
	for (int i = 0; i < list_length(before); i++)
	{
		const struct smart_unread *other = list_nth(before, i);

		if (other->index == unread->index && other->tablespace == unread->tablespace && other->file == unread->file)
			return true;
	}
	return false;
}

static bool
knows_trees_of_unread(const struct smart_survey *survey, const List *before, HTAB *names)
{
	for (int i = 0; i < list_length(survey->unread); i++)
	{
		const struct smart_unread *unread = list_nth(survey->unread, i);

		if (!stays_unread(before, unread) || !has_tree(survey, unread, names))
			return false;
	}
	return true;
}

/* ---- fates ---- */

/* Of a tree whose transaction has ended; names: the trees that have one, or NULL. */
static enum smart_tree_fate
fate_of(const struct smart_survey *survey, const struct smart_tree_info *info, HTAB *names)
{
	const struct smart_tree_owner *owner = &info->owner;
	bool temporary = owner->backend != SMART_NO_BACKEND;

	if (!list_member_oid(survey->databases, owner->database))
		return SMART_TREE_LEAKED;
	if (temporary && (owner->incarnation != smart_server_incarnation() || !smart_backend_runs(owner->backend)))
		return SMART_TREE_LEAKED;
	if (temporary && owner->backend != smart_my_backend())
		return SMART_TREE_TEMPORARY;
	if (owner->database != MyDatabaseId)
		return SMART_TREE_ELSEWHERE;
	if (names == NULL)
		return SMART_TREE_UNDECIDED;
	if (hash_search(names, &info->id, HASH_FIND, NULL) != NULL)
		return temporary ? SMART_TREE_TEMPORARY : SMART_TREE_USED;
	if (may_be_unread(survey, owner))
		return SMART_TREE_UNDECIDED;
	/* Asked last: a rebuild has its trees in hand before it names them and until nobody uses them. */
	return smart_rebuild_holds_tree(info->id) ? SMART_TREE_UNFINISHED : SMART_TREE_LEAKED;
}

static void
decide_fates(struct smart_survey *survey, HTAB *names)
{
	for (uint64 i = 0; i < survey->count; i++)
	{
		struct smart_surveyed_tree *tree = &survey->tree[i];

		if (tree->fate != SMART_TREE_UNFINISHED)
			tree->fate = fate_of(survey, &tree->info, names);
	}
}

/* A new one that does not see what its own transaction has done. */
static Snapshot
take_snapshot(void)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());

	smart_assert(snapshot->copied);
	snapshot->curcid = FirstCommandId;
	return snapshot;
}

static HTAB *
make_name_set(void)
{
	HASHCTL control = {.keysize = sizeof(uint64), .entrysize = sizeof(uint64), .hcxt = CurrentMemoryContext};

	return hash_create("smart named trees", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Everything that decides about trees; names: those that have one. */
static void
look_at_all(struct smart_survey *survey, bool temporary_only, HTAB *names)
{
	Snapshot snapshot;

	list_trees(survey, temporary_only);
	look_for_creators(survey);
	snapshot = take_snapshot();
	survey->databases = smart_names_databases(snapshot, false);
	survey->unread = OidIsValid(MyDatabaseId) ? smart_names_collect(snapshot, temporary_only, names) : NIL;
	UnregisterSnapshot(snapshot);
}

void
smart_survey(struct smart_survey *survey, bool temporary_only)
{
	List *before = NIL; /* what could not be read in the attempt before */
	HTAB *names = make_name_set();

	look_at_all(survey, temporary_only, names);
	/* Another attempt may see why. */
	for (int attempt = 1; survey->unread != NIL && attempt < ATTEMPTS_MAX; attempt++)
	{
		before = survey->unread;
		hash_destroy(names);
		pfree(survey->tree);
		list_free(survey->databases);
		CHECK_FOR_INTERRUPTS();
		pg_usleep((PAUSE_MS * 1000L) << (attempt - 1));
		names = make_name_set();
		look_at_all(survey, temporary_only, names);
	}
	survey->undecided = !knows_trees_of_unread(survey, before, names);
	decide_fates(survey, OidIsValid(MyDatabaseId) && !survey->undecided ? names : NULL);
	hash_destroy(names);
}

void
smart_survey_report(const struct smart_survey *survey, int level)
{
	for (int i = 0; i < list_length(survey->unread); i++)
	{
		const struct smart_unread *unread = list_nth(survey->unread, i);

		ereport(level,
				(errcode(ERRCODE_INDEX_CORRUPTED), errmsg("the metapage of index %u cannot be read", unread->index),
				 survey->undecided
					 ? errdetail("Nobody knows which trees of database %u are in use, and none is freed.", MyDatabaseId)
					 : errdetail("What was made for it is kept."),
				 errhint("Rebuild or drop that index.")));
	}
}

/* ---- freeing ---- */

void
smart_sweep_surveyed(const struct smart_survey *survey, struct smart_swept *swept)
{
	bool flushed = false;

	for (uint64 i = 0; i < survey->count; i++)
	{
		const struct smart_tree_info *info = &survey->tree[i].info;

		if (survey->tree[i].fate != SMART_TREE_LEAKED)
			continue;
		/* A commit that nobody waits for could still be lost, and the index be there again. */
		if (!flushed)
			smart_wal_flush();
		flushed = true;
		smart_am_tree_drop(info->id);
		swept->trees++;
		swept->bytes += info->bytes;
		CHECK_FOR_INTERRUPTS();
	}
}

uint64
smart_sweep_temporary(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart sweep", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_survey survey;
	struct smart_swept swept = {0};
	uint64 left;

	smart_survey(&survey, true);
	smart_sweep_surveyed(&survey, &swept);
	left = survey.count - swept.trees;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return left;
}
