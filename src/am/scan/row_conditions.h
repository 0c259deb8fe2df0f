/*
 * row_conditions.h
 *	  Index conditions that row comparisons imply.
 */
#ifndef SMART_AM_ROW_CONDITIONS_H
#define SMART_AM_ROW_CONDITIONS_H

#include "nodes/pathnodes.h"

/*
 * What the row comparisons in a list of RestrictInfos imply for an index: RestrictInfos with the column of the index on
 * the left side, for core to match with its columns.  They say nothing that the comparisons do not say, and
 * the estimates of core take them for redundant.
 */
extern List *smart_row_conditions(PlannerInfo *root, IndexOptInfo *index, List *conditions);

/*
 * The same of row comparisons in the arms of an OR: the conditions with such ORs replaced by others, whose arms have what their
 * comparisons imply besides.  *implied: all that is.  NIL: there is nothing.
 */
extern List *smart_row_alternatives(PlannerInfo *root, IndexOptInfo *index, List *conditions, List **implied);

/* Does one of these conditions compare rows, or an arm of an OR? */
extern bool smart_compares_rows(const List *conditions);

/* norm_selec of these RestrictInfos: what core leaves out of its estimates; outer_selec, of what is judged instead, too */
#define SMART_ROW_REDUNDANT 2.0

/* An index clause as estimates can judge it: for one of the conditions above another one, else clause itself. */
extern IndexClause *smart_row_clause_to_judge(PlannerInfo *root, const IndexOptInfo *index, IndexClause *clause);

#endif /* SMART_AM_ROW_CONDITIONS_H */
