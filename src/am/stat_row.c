/*
 * stat_row.c
 *	  The one row that a statistics function returns.
 */
#include "am/stat_row.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/lsyscache.h"

Datum
smart_stat_row(FunctionCallInfo fcinfo, Datum *values, int count)
{
	TupleDesc descriptor;
	bool *isnull = palloc0((Size) count * sizeof(bool));

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts != count)
		elog(ERROR, "%s is declared with other columns than this library returns",
			 get_func_name(fcinfo->flinfo->fn_oid));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
