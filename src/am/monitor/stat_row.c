/*
 * stat_row.c
 *	  The rows that a statistics function returns.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/lsyscache.h"

#include "am/monitor/stat_row.h"
#include "base/assert.h"

static void
check_columns(const struct smart_row *row, TupleDesc descriptor)
{
	smart_assert(row->columns >= 0 && row->columns <= SMART_ROW_COLUMNS_MAX);
	if (descriptor == NULL || descriptor->natts != row->columns)
		elog(ERROR, "%s is declared with other columns than this library returns",
			 get_func_name(row->fcinfo->flinfo->fn_oid));
}

Datum
smart_row_return(struct smart_row *row)
{
	TupleDesc descriptor;

	if (get_call_result_type(row->fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		descriptor = NULL;
	check_columns(row, descriptor);
	smart_assert(row->columns > 0 && row->columns <= SMART_ROW_COLUMNS_MAX);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), row->values, row->isnull));
}

void
smart_rows_begin(struct smart_row *row, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	smart_row_begin(row, fcinfo);
}

void
smart_rows_add(struct smart_row *row)
{
	ReturnSetInfo *result = (ReturnSetInfo *) row->fcinfo->resultinfo;

	smart_assert(row->columns > 0 && result->setResult != NULL);
	check_columns(row, result->setDesc);
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->isnull);
	row->columns = 0;
}
