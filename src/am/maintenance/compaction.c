/*
 * compaction.c
 *	  The launcher's job for journals whose chain has become long, and the background worker that compacts those of one
 *	  database (errand_worker.h).  VACUUM calls it, too, where it has removed much from an index whose pages answer.
 */
#include "postgres.h"

#include "access/relation.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "utils/guc.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/compact.h"
#include "am/journal/delta.h"
#include "am/journal/view.h"
#include "am/maintenance/compaction.h"
#include "am/maintenance/errand_worker.h"
#include "base/assert.h"

#define LOOK_MS 500 /* between two looks at the requests */

/* ---- the launcher's job ---- */

long
smart_compaction_tend(void)
{
	return smart_errand_tend(SMART_ERRAND_COMPACT, "smart compaction", "smart_compaction_worker_main", LOOK_MS);
}

/* ---- the worker ---- */

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
compact(struct smart_errand_index *opened)
{
	enum smart_compacted compacted;

	limit_costs();
	/* A request that comes meanwhile is for what follows: the chain may have become long again. */
	do
		compacted = smart_journal_compact(opened->index, count_entries(opened->index), smart_errand_gives_way, opened);
	while (compacted == SMART_COMPACTED);
	bring_delta_up_to_date(opened->index);
	return compacted == SMART_COMPACT_LATER ? SMART_ERRAND_GAVE_WAY_MS : SMART_ERRAND_NOT_AGAIN;
}

/* What could not be read of a journal is replaced by a run from the tree: at once. */
static int
condemn(Oid index)
{
	Relation relation = try_relation_open(index, RowExclusiveLock);
	struct smart_meta meta;
	Buffer buffer;

	if (relation == NULL)
		return SMART_ERRAND_NOT_AGAIN;
	buffer = smart_meta_lock(relation, &meta);
	smart_meta_lose_journal(&meta);
	(void) smart_meta_change(relation, buffer, &meta);
	relation_close(relation, RowExclusiveLock);
	return 0;
}

void
smart_compaction_worker_main(Datum argument)
{
	static const struct smart_errand_work work = {.kind = SMART_ERRAND_COMPACT, .perform = compact, .condemn = condemn};

	smart_errand_worker_run(DatumGetObjectId(argument), &work);
}
