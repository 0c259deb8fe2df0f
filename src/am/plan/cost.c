/*
 * cost.c
 *	  What a scan costs.
 *
 * The estimate is made as btree's is, so that the planner can choose between the two by what they differ in.
 * Alike are: how many entries the conditions on leading columns select, what an entry costs, how well the
 * order of the index agrees with that of the table, and what pages cost that are in memory or not.
 * Different are:
 *
 * - the way down, which looks for one byte in each block;
 * - the size of the tree, which planner.c has found out;
 * - on memory nodes, the leaves: they are not pages that could be in this server's memory, but take round
 *   trips, for many of them at a time;
 * - conditions that the index cannot narrow down to, such as ranges under a collation whose order it does
 *   not know: all rows are fetched for those, and they are left out;
 * - leaps: a scan need not read all entries between the first and the last one, whatever the conditions on
 *   later columns (smart_ranges_skip).  It reads a leaf of each group of equal columns before those, and
 *   what it finds.
 *
 * Entries are found by equalities of leading columns and the interval of one column behind them (ranges.h).
 * While the estimate is made, the path has only those conditions that the index narrows down to.
 *
 * The planner's unit is the cost of a page that is read in sequence.  Such a page of 8 kB comes from a disk of
 * today, or from the operating system and through local memory, in about ten microseconds; so a round trip to
 * a memory node is counted in units of that.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
#include "utils/timestamp.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/relation.h"
#include "am/nodes/peers.h"
#include "am/plan/planner.h"
#include "am/scan/row_conditions.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "tree/read/readahead.h"
#include "tree/tree.h"

/* A page of a btree takes fifty comparisons' time on the way down, and is as much work as five blocks of the tree. */
#define OPERATORS_PER_BLOCK 10

#define HEIGHT_NOT_KNOWN 4     /* of the tree of an index that is not there */
#define LEAF_BYTES       400.0 /* as they come out in trees grown by inserts */

/* The part of its weight that a correlation keeps if there are more columns than the first. */
#define MULTICOLUMN_WEIGHT 0.75

/* To leap into a group costs what the first page of any search does: as many entries as a page of a btree has. */
#define ENTRIES_PER_LEAP 350.0

#define NS_PER_UNIT   10000.0
#define NS_NOT_KNOWN  50000.0 /* of a round trip, until one has been made */
#define NS_OF_READ    2000.0  /* one of many in a batch */
#define LOOK_AGAIN_MS 1000
#define FIRST_BATCH   4 /* leaves that a scan READs at first; then twice as many each time */

/* What the conditions on leading columns select. */
struct demand
{
	List *bounds;  /* RestrictInfo; those that decide which entries are read */
	double ranges; /* of entries: one for each combination of points */
	bool points;   /* the last of these columns has points */
	bool single;   /* so have all, and only equality with one value that is not null */
};

/* What of the entries between the first and the last one of a path a scan reads that leaps over others. */
struct skipping
{
	double fraction; /* 1: all */
	double groups;   /* of equal columns, in each of which it looks for entries; 0: it does not leap */
	double found;    /* entries in all of them */
};

/* ---- conditions that the index narrows down to ---- */

/* Does a condition select a part of the index, or has its operator to be asked about every row? */
static bool
narrows(const struct smart_codec *codec, const IndexClause *clause, Oid family)
{
	Expr *condition = linitial_node(RestrictInfo, clause->indexquals)->clause;
	bool is_array = IsA(condition, ScalarArrayOpExpr);
	uint8 bytes[SMART_COLUMNS_MAX];
	struct smart_bound bound;
	Const *pattern;
	int strategy;

	if (!is_array && !IsA(condition, OpExpr))
		return true;
	strategy =
		get_op_opfamily_strategy(is_array ? ((ScalarArrayOpExpr *) condition)->opno : ((OpExpr *) condition)->opno,
								 family);
	if (!smart_codec_narrows(codec, clause->indexcol, strategy))
		return false;
	if (is_array || strategy <= BTGreaterStrategyNumber)
		return true;

	/* Is anything fixed at the beginning of a pattern?  What is not known yet is taken to be. */
	pattern = lsecond(((OpExpr *) condition)->args);
	if (!IsA(pattern, Const) || pattern->constisnull)
		return true;
	smart_codec_bound(codec, clause->indexcol, strategy, pattern->constvalue, InvalidOid, bytes, sizeof(bytes), &bound);
	smart_assert(bound.kind != SMART_BOUND_PREFIX || bound.length <= (int) sizeof(bytes));
	return bound.kind != SMART_BOUND_PREFIX || bound.length > 1 || !bound.recheck;
}

/* Those of a path's conditions that the index narrows down to, as estimates can judge them; *nodes: is it on memory nodes? */
static List *
narrowing_clauses(PlannerInfo *root, const IndexPath *path, bool *nodes)
{
	const IndexOptInfo *info = path->indexinfo;
	Relation index = info->hypothetical ? NULL : index_open(info->indexoid, NoLock);
	List *clauses = NIL;
	ListCell *cell;

	foreach (cell, path->indexclauses)
	{
		IndexClause *clause = smart_row_clause_to_judge(root, info, lfirst_node(IndexClause, cell));

		/* A partitioned table's index has no codec, and nothing is scanned there. */
		if (index == NULL || index->rd_rel->relkind != RELKIND_INDEX ||
			narrows(smart_relation_codec(index), clause, info->opfamily[clause->indexcol]))
			clauses = lappend(clauses, clause);
	}
	*nodes = smart_server.remote;
	if (index != NULL)
	{
		if (index->rd_rel->relkind == RELKIND_INDEX)
			*nodes = smart_relation_reads_nodes(index);
		index_close(index, NoLock);
	}
	smart_assert(list_length(clauses) <= list_length(path->indexclauses));
	return clauses;
}

/* ---- which entries ---- */

/* Does a condition leave single values of its column? */
static bool
leaves_points(const IndexOptInfo *index, int column, const Expr *condition)
{
	Oid opno;

	if (IsA(condition, NullTest))
		return ((const NullTest *) condition)->nulltesttype == IS_NULL;
	if (IsA(condition, OpExpr))
		opno = ((const OpExpr *) condition)->opno;
	else if (IsA(condition, ScalarArrayOpExpr))
		opno = ((const ScalarArrayOpExpr *) condition)->opno;
	else
		return false;
	return get_op_opfamily_strategy(opno, index->opfamily[column]) == BTEqualStrategyNumber;
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
			Expr *condition = restriction->clause;

			demand->bounds = lappend(demand->bounds, restriction);
			if (!leaves_points(index, column, condition))
				continue;
			demand->points = true;
			demand->single &= IsA(condition, OpExpr);
			if (IsA(condition, ScalarArrayOpExpr))
				demand->ranges *= Max(smart_array_length(root, lsecond(((ScalarArrayOpExpr *) condition)->args)), 1);
		}
	}
	demand->single &= demand->points && column == index->nkeycolumns - 1;
	smart_assert(column < index->nkeycolumns && demand->ranges >= 1);
	smart_assert(!demand->single || demand->ranges == 1);
}

static double
select_part(PlannerInfo *root, IndexOptInfo *index, List *conditions)
{
	double part = clauselist_selectivity(root, add_predicate_to_index_quals(index, conditions), (int) index->rel->relid,
										 JOIN_INNER, NULL);

	smart_assert(part >= 0 && part <= 1);
	return part;
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

/* ---- what leaps save ---- */

/* How many entries satisfy the conditions on the columns up to last. */
static double
entries_up_to(PlannerInfo *root, const IndexPath *path, int last)
{
	const IndexOptInfo *index = path->indexinfo;
	List *conditions = NIL;
	ListCell *cell;

	smart_assert(last < index->nkeycolumns);
	foreach (cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);

		if (clause->indexcol <= last)
			conditions = list_concat(conditions, clause->indexquals);
	}
	return index->tuples * clauselist_selectivity(root, conditions, (int) index->rel->relid, JOIN_INNER, NULL);
}

/* How many groups of equal columns from first to behind - 1 there are among so many of the index's entries. */
static double
count_groups(PlannerInfo *root, const IndexOptInfo *index, int first, int behind, double entries)
{
	RelOptInfo *table = index->rel;
	Cardinality rows = table->rows;
	List *columns = NIL;
	double groups;

	smart_assert(first < behind && behind < index->nkeycolumns && entries >= 1);
	for (int i = first; i < behind; i++)
		columns = lappend(columns, list_nth_node(TargetEntry, index->indextlist, i)->expr);
	/* Of the rows that are left when all conditions are met few groups would be left; the scan passes by the others, too. */
	table->rows = clamp_row_est(Min(entries, table->tuples));
	groups = estimate_num_groups(root, columns, entries, NULL, NULL);
	table->rows = rows;
	smart_assert(groups >= 0);
	return groups;
}

/* Does one of a column's values satisfy those conditions on it that compare it with a constant, and may be asked? */
static bool
satisfies(const IndexPath *path, int column, VariableStatData *statistics, Datum value)
{
	ListCell *cell;

	foreach (cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);
		ListCell *inner;

		foreach (inner, clause->indexquals)
		{
			OpExpr *compare = (OpExpr *) lfirst_node(RestrictInfo, inner)->clause;
			Const *constant;

			if (clause->indexcol != column || !IsA(compare, OpExpr) || !IsA(lsecond(compare->args), Const) ||
				!statistic_proc_security_check(statistics, get_opcode(compare->opno)))
				continue;
			constant = lsecond_node(Const, compare->args);
			if (constant->constisnull ||
				!DatumGetBool(
					OidFunctionCall2Coll(get_opcode(compare->opno), compare->inputcollid, value, constant->constvalue)))
				return false;
		}
	}
	return true;
}

/*
 * What part of a column's values satisfies the conditions on it, if these select such a part of the
 * entries: common values are asked one by one, since each is many entries, and of the others it is as large a part
 * as of their entries.
 */
static double
part_of_values(PlannerInfo *root, const IndexPath *path, int column, double part_of_entries)
{
	const IndexOptInfo *index = path->indexinfo;
	TargetEntry *target = list_nth_node(TargetEntry, index->indextlist, column);
	VariableStatData statistics;
	AttStatsSlot common;
	bool is_default;
	double values;
	double part = part_of_entries;

	examine_variable(root, (Node *) target->expr, (int) index->rel->relid, &statistics);
	values = get_variable_numdistinct(&statistics, &is_default);
	if (HeapTupleIsValid(statistics.statsTuple) &&
		get_attstatsslot(&common, statistics.statsTuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		double others = Max(values - common.nvalues, 0);
		double found = 0;
		double left = 1;

		for (int i = 0; i < common.nvalues; i++)
		{
			bool matches = satisfies(path, column, &statistics, common.values[i]);

			found += matches;
			part -= matches ? common.numbers[i] : 0;
			left -= common.numbers[i];
		}
		part = left > 0 ? Max(Min(part / left, 1), 0) : 0;
		part = (found + others * part) / Max(common.nvalues + others, 1);
		free_attstatsslot(&common);
	}
	ReleaseVariableStats(statistics);
	smart_assert(part >= 0 && part <= 1);
	return part;
}

static void
find_skipping(PlannerInfo *root, const IndexPath *path, struct skipping *skipping)
{
	const IndexOptInfo *index = path->indexinfo;
	bool conditions[INDEX_MAX_KEYS] = {false};
	bool points[INDEX_MAX_KEYS] = {false};
	int first = 0;
	int later;
	double selected;
	double entries;
	ListCell *cell;

	*skipping = (struct skipping){.fraction = 1};
	foreach (cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);

		conditions[clause->indexcol] = true;
		points[clause->indexcol] |=
			leaves_points(index, clause->indexcol, linitial_node(RestrictInfo, clause->indexquals)->clause);
	}
	while (first < index->nkeycolumns && points[first])
		first++;
	later = first + 1;
	while (later < index->nkeycolumns && !conditions[later])
		later++;
	if (later >= index->nkeycolumns)
		return;
	selected = Max(entries_up_to(root, path, first - 1), 1);
	entries = Max(entries_up_to(root, path, first), 1);
	skipping->found = entries_up_to(root, path, index->nkeycolumns - 1);
	skipping->groups = count_groups(root, index, first, later, selected);
	if (conditions[first])
		skipping->groups = Max(skipping->groups * part_of_values(root, path, first, Min(entries / selected, 1)), 1);
	skipping->fraction = Min((skipping->found + ENTRIES_PER_LEAP * skipping->groups) / entries, 1);
	smart_assert(skipping->groups >= 0 && skipping->found >= 0);
	smart_assert(skipping->fraction >= 0 && skipping->fraction <= 1);
}

/* ---- what they cost ---- */

/*
 * The price of a round trip to a memory node: smart.round_trip_cost, or what was measured.  Does not wait for anything.  A
 * session that has used memory nodes has measured its READs (offload.c) and goes by their mean.  Any other goes by the
 * requests of the server's own connections: by the fastest, since the others may have waited for something else.
 */
static double
round_trip_price(void)
{
	static TimestampTz looked = 0;
	static double measured_ns;
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (smart_settings.round_trip_cost >= 0)
		return smart_settings.round_trip_cost;
	if (looked == 0 || TimestampDifferenceExceeds(looked, now, LOOK_AGAIN_MS))
	{
		const struct smart_client *client = smart_server.client;
		double sum_ns = 0;
		double least_ns = 0;
		int count = 0;

		for (int i = 0; client != NULL && i < FABRIC_NODES_MAX; i++)
		{
			sum_ns += (double) client->offload.node[i].trip_ns;
			count += client->offload.node[i].trip_ns > 0;
		}
		for (unsigned int i = 0; count == 0 && smart_server.peers != NULL && i < FABRIC_NODES_MAX; i++)
		{
			struct smart_peer peer;

			if (!smart_peer_get(smart_server.peers, i, &peer) || peer.state != SMART_PEER_UP || peer.round_trip_ns == 0)
				continue;
			if (least_ns == 0 || (double) peer.round_trip_ns < least_ns)
				least_ns = (double) peer.round_trip_ns;
		}
		measured_ns = count > 0 ? sum_ns / count : least_ns;
		smart_assert(measured_ns >= 0);
		looked = now;
	}
	return (measured_ns > 0 ? measured_ns : NS_NOT_KNOWN) / NS_PER_UNIT;
}

/*
 * How many round trips it takes to READ the leaves of some ranges, as many in each, at least one: a range is READ in
 * batches that grow.
 */
static double
round_trips_of_ranges(double ranges, double leaves)
{
	double trips = 1;

	smart_assert(ranges >= 1 && leaves >= 0);
	/* Where one leaf holds a whole range, many are looked for together. */
	if (leaves <= 1)
		return ceil(ranges / SMART_POINTS_MAX);
	leaves -= FIRST_BATCH;
	for (double batch = 2 * FIRST_BATCH; batch < SMART_WINDOW_MAX && leaves > 0; batch *= 2)
	{
		leaves -= batch;
		trips++;
	}
	return ranges * (trips + Max(ceil(leaves / SMART_WINDOW_MAX), 0));
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
estimate_round_trips(const IndexOptInfo *index, double entries, double ranges, const struct skipping *skipping)
{
	double groups = skipping->groups;

	/* Of a group: where it begins, and then the leaves in it. */
	if (groups > 0 && leaves_of(index, entries * ranges / skipping->fraction) > groups)
		return groups * (1 + round_trips_of_ranges(1, leaves_of(index, skipping->found / groups)));
	return round_trips_of_ranges(ranges, leaves_of(index, entries));
}

/*
 * What the first round trip of a search costs.  A nested loop may look ahead (src/am/join/lookahead.h), if it compares with
 * plain columns of its outer side: then many searches share one.
 */
static double
price_of_first(const IndexPath *path, double loop_count)
{
	double price = round_trip_price();
	ListCell *cell;

	if (loop_count <= 1 || !smart_settings.batching)
		return price;
	foreach (cell, path->indexclauses)
	{
		ListCell *inner;

		foreach (inner, lfirst_node(IndexClause, cell)->indexquals)
		{
			Expr *condition = lfirst_node(RestrictInfo, inner)->clause;
			Node *value;

			if (IsA(condition, NullTest))
				continue;
			if (!IsA(condition, OpExpr))
				return price;
			value = lsecond(((OpExpr *) condition)->args);
			while (IsA(value, RelabelType))
				value = (Node *) ((RelabelType *) value)->arg;
			if (!IsA(value, Var) && !IsA(value, Param) && !IsA(value, Const))
				return price;
		}
	}
	return Min(price, price / Min(loop_count, SMART_POINTS_MAX) + NS_OF_READ / NS_PER_UNIT);
}

void
smart_am_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
			  Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List *clauses = path->indexclauses;
	int height = index->tree_height > 0 ? index->tree_height : HEIGHT_NOT_KNOWN;
	Cost descent = height * OPERATORS_PER_BLOCK * cpu_operator_cost;
	Cost first = 0;
	Cost entry = cpu_index_tuple_cost;
	List *conditions;
	ListCell *cell;
	Cost reading;
	struct skipping skipping;
	struct demand demand;
	double entries = 1;
	bool nodes;

	path->indexclauses = narrowing_clauses(root, path, &nodes);
	conditions = get_quals_from_indexclauses(path->indexclauses);
	/* Each entry is asked for each of them; but what row comparisons imply are nothing but ends of ranges. */
	foreach (cell, conditions)
	{
		if (lfirst_node(RestrictInfo, cell)->outer_selec != SMART_ROW_REDUNDANT)
			entry += cpu_operator_cost;
	}
	find_skipping(root, path, &skipping);
	find_demand(root, path, &demand);

	/* Of each range */
	if (!index->unique || !demand.single)
	{
		entries = rint(select_part(root, index, demand.bounds) * index->rel->tuples / demand.ranges);
		entries = Max(Min(entries, index->tuples), 1);
	}
	entries = Max(entries * skipping.fraction, 1);
	*pages = index->tuples > 1 ? Max(ceil(entries * (double) index->pages / index->tuples), 1) : 1;

	/* On memory nodes the price of the first leaf comes first. */
	if (nodes)
	{
		first = price_of_first(path, loop_count);
		reading = first + (estimate_round_trips(index, entries, demand.ranges, &skipping) - 1) * round_trip_price() +
				  (*pages - 1) * demand.ranges * seq_page_cost;
	}
	else
	{
		/* So many pages in each of so many ranges, where other scans and ranges may have read them before. */
		double all = *pages * demand.ranges * loop_count;
		double random_cost;

		get_tablespace_page_costs(index->reltablespace, &random_cost, NULL);
		if (demand.ranges * loop_count > 1)
			all = index_pages_fetched(all, index->pages, (double) index->pages, root);
		reading = all * random_cost / loop_count;
	}
	*startup_cost = index_other_operands_eval_cost(root, conditions) + descent;
	*total_cost = *startup_cost + (demand.ranges - 1) * descent + reading + entries * demand.ranges * entry;
	*startup_cost += first;
	*selectivity = select_part(root, index, conditions);
	/* One row is on one page, whatever the order. */
	*correlation = entries * demand.ranges * loop_count > 1 ? estimate_correlation(root, index) : 0;
	smart_assert(*startup_cost >= 0 && *startup_cost <= *total_cost);
	smart_assert(entries >= 1 && *pages >= 1);
	path->indexclauses = clauses;
}
