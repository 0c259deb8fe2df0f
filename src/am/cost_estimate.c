/*
 * cost_estimate.c
 *	  What a scan costs, by the conditions that the index narrows down to.
 *
 * The estimate is made as btree's is, so that the planner can choose between the
 * two by what they differ in.  Alike are: how many entries the conditions on leading columns select,
 * what an entry costs, how well the order of the index agrees with that of the table, and
 * what pages cost that are in memory or not.  Different are:
 *
 *	- the way down, which looks for one byte in each block;
 *	- the size of the tree, which planner.c has found out;
 *	- on memory nodes, the leaves: they are not pages that could be in this server's
 *	  memory, but take round trips, for many of them at a time.
 *
 * Entries are found by points, that is equalities, of leading columns and the interval of one
 * column behind them (ranges.h); what conditions behind these save is told by cost_skip.c.
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

#include "am/am.h"
#include "am/cost_remote.h"
#include "am/row_conditions.h"
#include "am/server.h"
#include "base/assert.h"

/* A page of a btree takes fifty comparisons' time on the way down, and is as much work as five blocks of the tree. */
#define OPERATORS_PER_BLOCK 10

#define HEIGHT_NOT_KNOWN 4     /* of the tree of an index that is not there */
#define LEAF_BYTES       400.0 /* as they come out in trees grown by inserts */

/* The part of its weight that a correlation keeps if there are more columns than the first. */
#define MULTICOLUMN_WEIGHT 0.75

/* What the conditions on leading columns select. */
struct demand
{
	List *bounds;  /* RestrictInfo; those that decide which entries are read */
	double ranges; /* of entries: one for each combination of points */
	bool points;   /* the last of these columns has points */
	bool single;   /* so have all, and only equality with one value that is not null */
};

/* ---- which entries ---- */

/* Takes in a condition on a column, clause op or array or the like. */
static void
add_bound(PlannerInfo *root, const IndexOptInfo *index, int column, Node *clause, struct demand *demand)
{
	Oid family = index->opfamily[column];

	if (IsA(clause, OpExpr))
		demand->points |= get_op_opfamily_strategy(((OpExpr *) clause)->opno, family) == BTEqualStrategyNumber;
	else if (IsA(clause, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *any = (ScalarArrayOpExpr *) clause;

		if (get_op_opfamily_strategy(any->opno, family) == BTEqualStrategyNumber)
		{
			demand->points = true;
			demand->single = false;
			demand->ranges *= Max(smart_array_length(root, lsecond(any->args)), 1);
		}
	}
	else if (IsA(clause, NullTest) && ((NullTest *) clause)->nulltesttype == IS_NULL)
	{
		demand->points = true;
		demand->single = false;
	}
}

static void
find_demand(PlannerInfo *root, const IndexPath *path, struct demand *demand)
{
	const IndexOptInfo *index = path->indexinfo;
	int column = 0;
	ListCell *cell;

	*demand = (struct demand){.ranges = 1, .single = true};
	foreach (cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);
		ListCell *inner;

		if (clause->indexcol > column)
		{
			if (!demand->points || clause->indexcol > column + 1)
				break;
			column = clause->indexcol;
			demand->points = false;
		}
		foreach (inner, clause->indexquals)
		{
			RestrictInfo *restriction = lfirst_node(RestrictInfo, inner);

			demand->bounds = lappend(demand->bounds, restriction);
			add_bound(root, index, column, (Node *) restriction->clause, demand);
		}
	}
	demand->single &= demand->points && column == index->nkeycolumns - 1;
}

/* How many conditions each entry is asked for.  What row comparisons imply are nothing but ends of ranges. */
static int
count_asked(const List *conditions)
{
	int count = 0;
	ListCell *cell;

	foreach (cell, conditions)
		count += lfirst_node(RestrictInfo, cell)->outer_selec != SMART_ROW_REDUNDANT;
	return count;
}

static double
select_part(PlannerInfo *root, IndexOptInfo *index, List *conditions)
{
	return clauselist_selectivity(root, add_predicate_to_index_quals(index, conditions), (int) index->rel->relid,
								  JOIN_INNER, NULL);
}

/* How many entries each range has. */
static double
estimate_entries(PlannerInfo *root, IndexOptInfo *index, const struct demand *demand)
{
	double entries;

	if (index->unique && demand->single)
		return 1;
	entries = rint(select_part(root, index, demand->bounds) * index->rel->tuples / demand->ranges);
	return Max(Min(entries, index->tuples), 1);
}

/* How well the index's order agrees with the table's: what ANALYZE has found for the first column. */
static double
estimate_correlation(PlannerInfo *root, const IndexOptInfo *index)
{
	TargetEntry *first = linitial_node(TargetEntry, index->indextlist);
	Oid less = get_opfamily_member(index->opfamily[0], index->opcintype[0], index->opcintype[0], BTLessStrategyNumber);
	VariableStatData statistics;
	AttStatsSlot slot;
	double correlation = 0;

	if (!OidIsValid(less) || index->sortopfamily == NULL)
		return 0;
	examine_variable(root, (Node *) first->expr, (int) index->rel->relid, &statistics);
	if (HeapTupleIsValid(statistics.statsTuple) &&
		get_attstatsslot(&slot, statistics.statsTuple, STATISTIC_KIND_CORRELATION, less, ATTSTATSSLOT_NUMBERS))
	{
		smart_assert(slot.nnumbers == 1);
		correlation = index->reverse_sort[0] ? -slot.numbers[0] : slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseVariableStats(statistics);
	return index->nkeycolumns > 1 ? correlation * MULTICOLUMN_WEIGHT : correlation;
}

/* ---- what they cost ---- */

/* Reading so many pages in each of so many ranges, where other scans and ranges may have read them before. */
static Cost
price_of_pages(PlannerInfo *root, const IndexOptInfo *index, double pages, double ranges, double loop_count)
{
	double random_cost;
	double all = pages * ranges * loop_count;

	get_tablespace_page_costs(index->reltablespace, &random_cost, NULL);
	if (ranges * loop_count > 1)
		all = index_pages_fetched(all, index->pages, (double) index->pages, root);
	return all * random_cost / loop_count;
}

static double
leaves_of(const IndexOptInfo *index, double entries)
{
	return ceil(entries * ((double) index->pages * BLCKSZ / LEAF_BYTES) / Max(index->tuples, 1));
}

/*
 * How many round trips it takes to READ so many of the entries in each range.  A scan leaps over what is left of a
 * group when a whole leaf is of that group, so shorter groups are READ like any range.
 */
static double
estimate_round_trips(const IndexOptInfo *index, double entries, double ranges, const struct smart_skipping *skipping)
{
	double groups = skipping->groups;

	if (groups == 0 || leaves_of(index, entries * ranges / skipping->fraction) <= groups)
		return smart_round_trips_of_ranges(ranges, leaves_of(index, entries));
	return smart_round_trips_of_groups(groups, leaves_of(index, skipping->found / groups));
}

/* The same on memory nodes: first comes the price of the first leaf, in *first. */
static Cost
price_of_leaves(double pages, double ranges, double trips, Cost *first)
{
	*first = smart_round_trip_price();
	return trips * *first + (pages - 1) * ranges * seq_page_cost;
}

void
smart_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, const struct smart_skipping *skipping,
					Cost *startup_cost, Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List *conditions = get_quals_from_indexclauses(path->indexclauses);
	int height = index->tree_height > 0 ? index->tree_height : HEIGHT_NOT_KNOWN;
	Cost descent = height * OPERATORS_PER_BLOCK * cpu_operator_cost;
	Cost entry = cpu_index_tuple_cost + count_asked(conditions) * cpu_operator_cost;
	Cost first = 0;
	Cost reading;
	struct demand demand;
	double entries;

	find_demand(root, path, &demand);
	entries = Max(estimate_entries(root, index, &demand) * skipping->fraction, 1);
	*pages = index->tuples > 1 ? Max(ceil(entries * (double) index->pages / index->tuples), 1) : 1;
	if (smart_server_is_remote())
		reading = price_of_leaves(*pages, demand.ranges, estimate_round_trips(index, entries, demand.ranges, skipping),
								  &first);
	else
		reading = price_of_pages(root, index, *pages, demand.ranges, loop_count);
	*startup_cost = index_other_operands_eval_cost(root, conditions) + descent;
	*total_cost = *startup_cost + (demand.ranges - 1) * descent + reading + entries * demand.ranges * entry;
	*startup_cost += first;
	*selectivity = select_part(root, index, conditions);
	*correlation = estimate_correlation(root, index);
	smart_assert(*startup_cost <= *total_cost);
}
