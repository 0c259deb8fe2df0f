/*
 * index_state.c
 *	  In which state an index is: smart_index_state(), and with what is known
 *	  about its loss and its rebuild smart_index_condition().
 *
 * The errors of rebuilds are for the table's owner and for members of
 * pg_read_all_stats.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/am.h"
#include "am/open.h"
#include "am/rebuild_table.h"
#include "am/server.h"
#include "base/assert.h"

#define CONDITION_COLUMNS 5

PG_FUNCTION_INFO_V1(smart_index_state);
PG_FUNCTION_INFO_V1(smart_index_condition);

/*
 * The state, and where it is "lost" or "rebuilding" the reason; *rebuild is what the
 * table has about the index, or has the state 0.
 */
static const char *
find_state(Relation index, const char **loss, struct smart_rebuild *rebuild)
{
	struct smart_glance glance;

	*loss = NULL;
	memset(rebuild, 0, sizeof(*rebuild));
	if (!index->rd_index->indisvalid)
		return "invalid"; /* there may be no metapage yet */
	if (!smart_server_available() || (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress()))
		return "unavailable";
	(void) smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), rebuild);
	*loss = smart_relation_loss(index);
	if (*loss != NULL)
		return rebuild->state == SMART_REBUILD_RUNNING ? "rebuilding" : "lost";
	return smart_relation_glance(index, &glance) && glance.bytes != 0 ? "ready" : "empty";
}

/*
 * 'ready'; 'empty': without a tree, which the first insert makes; 'invalid': its
 * concurrent build runs or has failed; 'lost': its tree is gone; 'rebuilding';
 * 'unavailable': this server runs without the library, or has no region, or no
 * unlogged tables while it is a standby.  NULL if the index was dropped a moment
 * ago.
 */
PGDLLEXPORT Datum
smart_index_state(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_try_open(PG_GETARG_OID(0));
	struct smart_rebuild rebuild;
	const char *loss;
	const char *state;

	if (index == NULL)
		PG_RETURN_NULL();
	state = find_state(index, &loss, &rebuild);
	relation_close(index, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(state));
}

/* Does what the table has tell when the index came into this state? */
static bool
knows_since(const struct smart_rebuild *rebuild, const char *loss)
{
	return loss != NULL ? rebuild->state == SMART_REBUILD_WAITING || rebuild->state == SMART_REBUILD_RUNNING
						: rebuild->state == SMART_REBUILD_DONE;
}

/* A row: state, reason, since, failures, last_error; NULL if the index was dropped a moment ago. */
PGDLLEXPORT Datum
smart_index_condition(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_try_open(PG_GETARG_OID(0));
	Datum values[CONDITION_COLUMNS];
	bool isnull[CONDITION_COLUMNS] = {false};
	struct smart_rebuild rebuild;
	TupleDesc descriptor;
	const char *loss;
	bool private;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts != CONDITION_COLUMNS)
		elog(ERROR, "smart_index_condition is declared with other columns than this library returns");
	if (index == NULL)
		PG_RETURN_NULL();
	private = !has_privs_of_role(GetUserId(), index->rd_rel->relowner) &&
			  !has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	values[0] = CStringGetTextDatum(find_state(index, &loss, &rebuild));
	isnull[1] = loss == NULL;
	values[1] = CStringGetTextDatum(loss == NULL ? "" : loss);
	isnull[2] = !knows_since(&rebuild, loss);
	values[2] = TimestampTzGetDatum(rebuild.since);
	values[3] = Int32GetDatum((int32) rebuild.failures);
	isnull[4] = private || rebuild.error[0] == '\0';
	values[4] = CStringGetTextDatum(rebuild.error);
	relation_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
