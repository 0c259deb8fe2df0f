/*
 * smart_am.c
 *	  The handler of access method "smart", and what happens when the library is loaded.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/parallel.h"
#include "commands/vacuum.h"
#include "fmgr.h"
#include "utils/guc.h"

#include "am/build/build.h"
#include "am/codec/encode.h"
#include "am/codec/enum_order.h"
#include "am/compat.h"
#include "am/constraint/statement.h"
#include "am/index/as_btree.h"
#include "am/index/oid_reuse.h"
#include "am/index/options.h"
#include "am/index/replica.h"
#include "am/join/lookahead.h"
#include "am/journal/pending.h"
#include "am/journal/staging.h"
#include "am/maintenance/maintenance.h"
#include "am/plan/planner.h"
#include "am/scan/scan.h"
#include "am/scan/shared_scan.h"
#include "am/start/lifecycle.h"
#include "am/write/insert.h"
#include "am/write/vacuum.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(smart_handler);

void
_PG_init(void)
{
	smart_server_init();
	smart_maintenance_init();
	smart_options_init();
	smart_planner_init();
	smart_as_btree_init();
	smart_conflict_init();
	smart_staging_init();
	smart_pending_init(smart_insert_pending);
	smart_replica_init();
	smart_oid_reuse_init();
	smart_explain_init();
	smart_lookahead_init();
	smart_enum_order_init();
	smart_constraint_init();
	MarkGUCPrefixReserved("smart");
}

PGDLLEXPORT Datum
smart_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = makeNode(IndexAmRoutine);

	routine->amstrategies = SMART_STRATEGIES;
	routine->amsupport = SMART_PROCS;
	routine->amcanorder = true;
	routine->amcanbackward = true;
	routine->amcanunique = true;
	routine->amcanmulticol = true;
	routine->amoptionalkey = true;
	routine->amsearcharray = true;
	routine->amsearchnulls = true;
	routine->amclusterable = true;
	routine->amcanparallel = true;
	routine->ampredlocks = true;
	routine->amcaninclude = true;
	routine->amusemaintenanceworkmem = false;
	routine->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP;
	smart_compat_describe(routine);
	routine->ambuild = smart_am_build;
	routine->ambuildempty = smart_am_build_empty;
	routine->ambuildphasename = smart_am_build_phase_name;
	routine->aminsert = smart_am_insert;
	routine->ambulkdelete = smart_am_bulk_delete;
	routine->amvacuumcleanup = smart_am_vacuum_cleanup;
	routine->amcanreturn = smart_am_can_return;
	routine->amcostestimate = smart_am_cost;
	routine->amoptions = smart_am_options;
	routine->amproperty = smart_am_property;
	routine->amvalidate = smart_validate;
	routine->ambeginscan = smart_am_begin_scan;
	routine->amrescan = smart_am_rescan;
	routine->amgettuple = smart_am_get_tuple;
	routine->amgetbitmap = smart_am_get_bitmap;
	routine->amendscan = smart_am_end_scan;
	routine->ammarkpos = smart_am_mark;
	routine->amrestrpos = smart_am_restore;
	routine->amestimateparallelscan = smart_am_estimate_parallel_scan;
	routine->aminitparallelscan = smart_am_init_parallel_scan;
	routine->amparallelrescan = smart_am_parallel_rescan;
	PG_RETURN_POINTER(routine);
}
