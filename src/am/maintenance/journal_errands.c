/*
 * journal_errands.c
 *	  What is done to the journal of an index that was requested (errands.h), by the worker of errand_worker.h.
 *
 * Its chain has become long: it is compacted.  VACUUM asks for that, too, where it has removed much from an index whose pages
 * answer.  Who reads a long chain for want of a delta (journal/chain_range.c) requests that: it is made.  And the chain of an
 * index that writes back is carried to memory nodes.  The worker for that stays as long as there is something to be carried, and
 * looks at each index some times a second: what has come together until then goes in one batch.
 */
#include "postgres.h"

#include "access/relation.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/carry.h"
#include "am/journal/compact.h"
#include "am/journal/delta.h"
#include "am/journal/view.h"
#include "am/maintenance/journal_errands.h"
#include "am/server/rebuild_table.h"
#include "base/assert.h"

#define BATCH_MS 200 /* in which operations to be carried come together */
#define HURRY_MS 2   /* where scans pass by many entries that have come and gone, and for a while after that */
#define HURRIES  50

/* Does another session wait for a lock that an inserter's keeps out, or for this transaction to end? */
static bool
is_in_the_way(void *opened)
{
	return smart_opened_is_awaited(opened, RowExclusiveLock);
}

/* ---- compaction ---- */

/* How many entries the index has, as its journal tells: after a compaction, what the run has. */
static double
count_entries(Relation index)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	return Max(0, (double) meta.run_entries + (double) meta.adds - (double) meta.removals);
}

/* Of an index whose pages answer: removals are applied to the delta that it has, so that the next statement need not do it. */
static void
bring_delta_up_to_date(Relation index)
{
	struct smart_relation *self = NULL;
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	if (smart_relation_can_answer(index) && smart_delta_is_there(index, &meta))
		self = smart_view_open(index, true);
	if (self != NULL)
		(void) smart_view_catch_up(self, index, false);
}

/* Gives a setting of VACUUM's the value that autovacuum's has, for this transaction. */
static void
take_over(const char *name, const char *of_autovacuum)
{
	(void) set_config_option(name, GetConfigOption(of_autovacuum, false, false), PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

/* Compaction may cost what an autovacuum may, whose own settings stand for VACUUM's if they are not set. */
static void
limit_costs(void)
{
	if (autovacuum_vac_cost_delay >= 0)
		take_over("vacuum_cost_delay", "autovacuum_vacuum_cost_delay");
	if (autovacuum_vac_cost_limit > 0)
		take_over("vacuum_cost_limit", "autovacuum_vacuum_cost_limit");
	smart_begin_vacuum_delays();
}

static int
compact(struct smart_opened *opened)
{
	const struct smart_way way = {.is_awaited = is_in_the_way, .argument = opened};
	enum smart_compacted compacted;

	limit_costs();
	/* A request that comes meanwhile is for what follows: the chain may have become long again. */
	do
		compacted = smart_journal_compact(opened->index, count_entries(opened->index), &way);
	while (compacted == SMART_COMPACTED);
	bring_delta_up_to_date(opened->index);
	return compacted == SMART_COMPACT_LATER ? SMART_ERRAND_GAVE_WAY_MS : SMART_ERRAND_NOT_AGAIN;
}

/* What could not be read of a journal is replaced by a run from the tree: at once. */
static int
lose_journal(Oid index)
{
	Relation relation = try_relation_open(index, RowExclusiveLock);
	struct smart_meta meta;
	Buffer buffer;

	smart_assert(OidIsValid(index));
	if (relation == NULL)
		return SMART_ERRAND_NOT_AGAIN;
	buffer = smart_meta_lock(relation, &meta);
	smart_meta_lose_journal(&meta);
	(void) smart_meta_change(relation, buffer, &meta);
	relation_close(relation, RowExclusiveLock);
	return 0;
}

/* ---- deltas ---- */

/* smart_look. */
static void
look_around(void *argument)
{
	smart_opened_give_way(argument, RowExclusiveLock, "delta build");
}

/* If it has no room, who needs it waits for a compaction. */
static int
make_delta(struct smart_opened *opened)
{
	const struct smart_look look = {.around = look_around, .argument = opened};

	if (smart_relation_can_answer(opened->index))
		smart_delta_prepare(opened->index, &look);
	return SMART_ERRAND_NOT_AGAIN;
}

/* The journal is damaged. */
static int
rebuild(Oid index)
{
	smart_rebuild_want_anew(MyDatabaseId, index);
	return SMART_ERRAND_NOT_AGAIN;
}

/* ---- carrying ---- */

static int
carry(struct smart_opened *opened)
{
	const struct smart_way way = {.is_awaited = is_in_the_way, .argument = opened};
	static int hurries = 0;

	smart_assert(hurries >= 0 && hurries <= HURRIES);
	/* What the catalogs were read with is a snapshot, which would keep VACUUM from removing and freezing rows. */
	InvalidateCatalogSnapshot();
	switch (smart_carry(opened->index, &way))
	{
		case SMART_CARRIED_HURRY:
			hurries = HURRIES;
			return HURRY_MS;
		case SMART_CARRIED_SOME:
			if (hurries == 0)
				return BATCH_MS;
			hurries--;
			return HURRY_MS;
		case SMART_CARRIED_LATER:
			return SMART_ERRAND_GAVE_WAY_MS;
		default:
			return SMART_ERRAND_NOT_AGAIN;
	}
}

/* Another follower is loaded.  If it is the journal that is damaged, who loads it finds that, too, and the index is rebuilt. */
static int
load_anew(Oid index)
{
	smart_rebuild_want(MyDatabaseId, index);
	return SMART_ERRAND_NOT_AGAIN;
}

/* ---- all ---- */

const struct smart_errand_work smart_errand_works[SMART_ERRAND_KINDS] = {
	[SMART_ERRAND_COMPACT] = {.kind = SMART_ERRAND_COMPACT,
							  .look_ms = 500,
							  .perform = compact,
							  .condemn = lose_journal},
	[SMART_ERRAND_DELTA] = {.kind = SMART_ERRAND_DELTA, .look_ms = 500, .perform = make_delta, .condemn = rebuild},
	[SMART_ERRAND_CARRY] =
		{.kind = SMART_ERRAND_CARRY, .look_ms = 100, .stays_ms = BATCH_MS, .perform = carry, .condemn = load_anew},
};
