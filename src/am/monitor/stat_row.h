/*
 * stat_row.h
 *	  The rows that a statistics function returns, put together column by column.
 */
#ifndef SMART_AM_STAT_ROW_H
#define SMART_AM_STAT_ROW_H

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "base/assert.h"

#define SMART_ROW_COLUMNS_MAX 32

struct smart_row
{
	FunctionCallInfo fcinfo;
	int columns; /* that have their values */
	Datum values[SMART_ROW_COLUMNS_MAX];
	bool isnull[SMART_ROW_COLUMNS_MAX];
};

/* Begins the row, or all rows, of a function. */
static inline void
smart_row_begin(struct smart_row *row, FunctionCallInfo fcinfo)
{
	row->fcinfo = fcinfo;
	row->columns = 0;
}

/*
 * Ends a row, the only one or the next one of a set, for which smart_rows_begin() was called.  They raise an
 * error if the function is declared with another number of columns, since the extension is another version's then.
 */
extern Datum smart_row_return(struct smart_row *row);
extern void smart_rows_begin(struct smart_row *row, FunctionCallInfo fcinfo);
extern void smart_rows_add(struct smart_row *row);

/* ---- columns ---- */

/* The next column: the value, or NULL unless it is known. */
static inline void
smart_row_value(struct smart_row *row, Datum value, bool known)
{
	smart_assert(row->columns < SMART_ROW_COLUMNS_MAX);
	row->isnull[row->columns] = !known;
	row->values[row->columns++] = known ? value : 0;
}

static inline void
smart_row_count(struct smart_row *row, uint64 count)
{
	smart_row_value(row, Int64GetDatum((int64) count), true);
}

/* Several counts, in their order. */
static inline void
smart_row_counts(struct smart_row *row, const uint64 *counts, int number)
{
	smart_assert(number > 0 && row->columns + number <= SMART_ROW_COLUMNS_MAX);
	for (int i = 0; i < number; i++)
		smart_row_count(row, counts[i]);
}

/* NULL: NULL. */
static inline void
smart_row_text(struct smart_row *row, const char *text)
{
	smart_row_value(row, text == NULL ? 0 : CStringGetTextDatum(text), text != NULL);
}

/* A TimestampTz; 0: NULL. */
static inline void
smart_row_time(struct smart_row *row, TimestampTz when)
{
	smart_row_value(row, TimestampTzGetDatum(when), when != 0);
}

#endif /* SMART_AM_STAT_ROW_H */
