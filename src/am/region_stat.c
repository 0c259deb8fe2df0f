/*
 * region_stat.c
 *	  smart_memory_nodes(): how much memory there is, and how much of it is used.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "am/am.h"
#include "am/embedded.h"
#include "base/assert.h"

#define COLUMNS 6

PG_FUNCTION_INFO_V1(smart_memory_nodes);

/* One row per memory node; the embedded one is number 0. */
PGDLLEXPORT Datum
smart_memory_nodes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	struct smart_space_usage usage;
	Datum values[COLUMNS];
	bool isnull[COLUMNS] = {false};
	int column = 0;

	smart_embedded_require();
	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != COLUMNS)
		elog(ERROR, "smart_memory_nodes is declared with other columns than this library returns");
	smart_space_usage(&smart_backend_client()->space, &usage);
	values[column++] = Int32GetDatum(0);
	values[column++] = CStringGetTextDatum("embedded");
	values[column++] = Int64GetDatum((int64) usage.used);
	values[column++] = Int64GetDatum((int64) usage.size);
	values[column++] = Int64GetDatum((int64) usage.max_size);
	values[column++] = Int64GetDatum((int64) usage.trees);
	smart_assert(column == COLUMNS);
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
	PG_RETURN_NULL();
}
