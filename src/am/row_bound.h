/*
 * row_bound.h
 *	  Row comparisons as bounds on several columns.
 */
#ifndef SMART_AM_ROW_BOUND_H
#define SMART_AM_ROW_BOUND_H

#include "am/selection.h"

/*
 * What is selected by "column, and those behind it, strategy row": the columns from column on are compared, one by one,
 * with the fields of row, a record of at most as many; strategy is one of btree's, but not =.  Selects more
 * than that where images cannot tell: the comparison has to be asked again.
 */
extern struct smart_choice smart_row_choice(struct smart_ranges *ranges, int column, int strategy, Datum row);

#endif /* SMART_AM_ROW_BOUND_H */
