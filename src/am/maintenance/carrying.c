/*
 * carrying.c
 *	  The launcher's job for indexes that write back, and the background worker that carries what those of one database are given
 *	  to memory nodes (errand_worker.h).
 *
 * The worker stays as long as there is something to be carried, and looks at each index some times a second: what has come together
 * until then goes in one batch.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/index/relation.h"
#include "am/journal/carry.h"
#include "am/maintenance/carrying.h"
#include "am/maintenance/errand_worker.h"
#include "am/server/rebuild_table.h"

#define LOOK_MS  100 /* between two looks at the requests */
#define BATCH_MS 200 /* in which operations come together */

/* ---- the launcher's job ---- */

long
smart_carrying_tend(void)
{
	return smart_errand_tend(SMART_ERRAND_CARRY, "smart carrier", "smart_carrying_worker_main", LOOK_MS);
}

/* ---- the worker ---- */

static int
carry(struct smart_errand_index *opened)
{
	/* What the catalogs were read with is a snapshot, which would keep VACUUM from removing and freezing rows. */
	InvalidateCatalogSnapshot();
	switch (smart_carry(opened->index))
	{
		case SMART_CARRIED_SOME:
			return BATCH_MS;
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

void
smart_carrying_worker_main(Datum argument)
{
	static const struct smart_errand_work work = {.kind = SMART_ERRAND_CARRY,
												  .stays_ms = BATCH_MS,
												  .perform = carry,
												  .condemn = load_anew};

	smart_errand_worker_run(DatumGetObjectId(argument), &work);
}
