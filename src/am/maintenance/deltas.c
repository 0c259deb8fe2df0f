/*
 * deltas.c
 *	  The launcher's job for indexes whose pages answer without a delta, and the background worker that makes it
 *	  (errand_worker.h).
 *
 * Who reads a long chain for want of a delta (journal/chain_range.c) requests it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "am/index/relation.h"
#include "am/journal/delta.h"
#include "am/maintenance/deltas.h"
#include "am/maintenance/errand_worker.h"
#include "am/server/rebuild_table.h"

#define LOOK_MS 500 /* between two looks at the requests */

/* ---- the launcher's job ---- */

long
smart_deltas_tend(void)
{
	return smart_errand_tend(SMART_ERRAND_DELTA, "smart delta", "smart_deltas_worker_main", LOOK_MS);
}

/* ---- the worker ---- */

/* smart_look. */
static void
look_around(void *argument)
{
	const struct smart_errand_index *opened = argument;

	CHECK_FOR_INTERRUPTS();
	if (smart_errand_gives_way(argument))
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("the delta of index \"%s\" is not made, as others wait for the index",
					   RelationGetRelationName(opened->index)));
}

/* If it has no room, who needs it waits for a compaction. */
static int
make_delta(struct smart_errand_index *opened)
{
	const struct smart_look look = {.around = look_around, .argument = opened};

	if (smart_relation_can_answer(opened->index))
		smart_delta_prepare(opened->index, &look);
	return SMART_ERRAND_NOT_AGAIN;
}

/* The journal is damaged: the index is rebuilt. */
static int
rebuild(Oid index)
{
	smart_rebuild_want_anew(MyDatabaseId, index);
	return SMART_ERRAND_NOT_AGAIN;
}

void
smart_deltas_worker_main(Datum argument)
{
	static const struct smart_errand_work work = {.kind = SMART_ERRAND_DELTA,
												  .perform = make_delta,
												  .condemn = rebuild};

	smart_errand_worker_run(DatumGetObjectId(argument), &work);
}
