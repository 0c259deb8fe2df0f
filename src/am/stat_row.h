/*
 * stat_row.h
 *	  The one row that a statistics function returns.
 */
#ifndef SMART_AM_STAT_ROW_H
#define SMART_AM_STAT_ROW_H

#include "postgres.h"

#include "fmgr.h"

/*
 * The result of a function that is declared to return a row: values[0..count), none of them null.  Raises an
 * error if the row has another number of columns, since the extension is another version's then.
 */
extern Datum smart_stat_row(FunctionCallInfo fcinfo, Datum *values, int count);

#endif /* SMART_AM_STAT_ROW_H */
