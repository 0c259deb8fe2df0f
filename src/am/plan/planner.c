/*
 * planner.c
 *	  What the planner is told about an index beside its cost.
 *
 * The relation of an index is one page; its tree is somewhere else.  A hook tells the planner the size of the
 * tree, and takes the claim to order away from indexes that cannot keep it.  It takes away the whole index if
 * that is lost (validity.c), so that statements do without it.
 *
 * Core makes (a, b) > (1, 2) an index condition for btree only, in the planner and again in the executor.  But
 * such a comparison implies other conditions (row_conditions.c).  So where a query compares rows, another hook
 * asks core once more for the paths of a table's indexes, with such conditions among those that smart indexes
 * may use; the comparison itself is in the table's own list of conditions, and stays a filter.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opfamily.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/promote.h"
#include "am/plan/planner.h"
#include "am/scan/row_conditions.h"
#include "am/server/validity.h"
#include "base/assert.h"

/* Bytes of memory per leaf and per entry, and children per node, as they come out in trees grown by inserts. */
#define LEAF_BYTES        400.0
#define ENTRY_BYTES       24.0
#define CHILDREN_PER_NODE 16.0

static get_relation_info_hook_type next_info_hook = NULL;
static set_rel_pathlist_hook_type next_paths_hook = NULL;

/* ---- what the planner asks of btrees only, before version 18 ---- */

/* Core asks for the cost of a path before it throws it away. */
static void
cost_nothing(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
			 Selectivity *selectivity, double *correlation, double *pages)
{
	*startup_cost = *total_cost = *correlation = *pages = 0;
	*selectivity = 1;
}

/*
 * The planner puts two questions only to indexes that are btrees by name: has a join at most one match there (an index
 * that is unique by the operators of a family of btree), and where do the values of a column end now (beyond what
 * ANALYZE has seen).  A smart index can tell both.  So the planner gets a second description of it, which bears the
 * name and the families of a btree.  Nothing is ever scanned by that one: it says that it can neither return rows nor a
 * bitmap, so core throws away the paths that it makes of it.
 *
 * joins: there may be some in the query; ends: it may matter where values end, and the index keeps the order of its
 * columns.  The result is palloc'ed; NULL: the index has nothing to tell about either question.
 */
static IndexOptInfo *
as_btree(const IndexOptInfo *info, bool joins, bool ends)
{
	bool proves = joins && info->unique && info->immediate && info->indpred == NIL;
	bool has_ends = ends && info->indpred == NIL && info->canreturn[0];
	IndexOptInfo *btree;

	if (!SMART_PLANNER_WANTS_BTREE || info->sortopfamily == NULL || (!proves && !has_ends))
		return NULL;
	btree = makeNode(IndexOptInfo);
	*btree = *info;
	btree->relam = BTREE_AM_OID;
	btree->opfamily = info->sortopfamily;
	/* The planner reads no values from what might be there. */
	btree->hypothetical = !has_ends;
	btree->amcostestimate = cost_nothing;
	btree->amhasgettuple = btree->amhasgetbitmap = btree->amcanparallel = false;
	btree->amoptionalkey = false;
	return btree;
}

/* ---- what it cannot see ---- */

/*
 * Tells the planner what it cannot see.  *btree: the index as a btree, or NULL.  False: the index is not to be used
 * now.
 */
static bool
describe_index(IndexOptInfo *info, const RelOptInfo *table, bool joins, bool compares, IndexOptInfo **btree)
{
	Relation index = index_open(info->indexoid, NoLock);
	struct smart_glance glance = {0};
	/* From version 17 on the server lists a partitioned table's indexes, too, which have nothing to glance at. */
	bool partitioned = index->rd_rel->relkind != RELKIND_INDEX;
	bool usable = partitioned || smart_relation_glance(index, &glance) ||
				  (smart_promote(index) && smart_relation_glance(index, &glance));

	*btree = NULL;
	if (usable && !partitioned)
	{
		double leaves = Max((double) glance.bytes / LEAF_BYTES, 1.0);

		info->pages = (BlockNumber) Min(1 + glance.bytes / BLCKSZ, MaxBlockNumber);
		/* Blocks on the way from the root to an entry */
		info->tree_height = 1 + (int) ceil(log(leaves) / log(CHILDREN_PER_NODE));
		smart_assert(info->pages >= 1 && info->tree_height >= 1);
		info->tuples = table->tuples;
		if (info->indpred != NIL)
		{
			/* As many as VACUUM or CREATE INDEX counted, but no more than there is room for. */
			double counted = index->rd_rel->reltuples;

			if (counted < 0)
				counted = (double) glance.bytes / (glance.fixed_length > 0 ? glance.fixed_length : ENTRY_BYTES);
			info->tuples = Min(counted, table->tuples);
		}
		/* The planner of version 15 must be told which columns are boolean, so that "WHERE flag" can be a condition. */
		for (int i = 0; SMART_PLANNER_WANTS_BOOLEAN_FAMILY && info->sortopfamily != NULL && i < info->nkeycolumns; i++)
		{
			if (info->sortopfamily[i] == BOOL_BTREE_FAM_OID)
				info->opfamily[i] = BOOL_BTREE_FAM_OID;
		}
		*btree = as_btree(info, joins, compares && glance.ordered);
		if (!glance.ordered)
		{
			/* Without these no path of the index is taken as sorted; all conditions match as before. */
			info->sortopfamily = NULL;
		}
	}
	if (!partitioned && glance.unsettled && !glance.missed &&
		(!RecoveryInProgress() || smart_relation_is_loadable(index)))
		smart_validity_notice(index);
	index_close(index, NoLock);
	return usable;
}

/* Does a condition do anything but compare for equality, so that it may matter where a column's values end? */
static bool
may_compare_order(const Node *condition)
{
	const OpExpr *operation = (const OpExpr *) condition;
	ListCell *cell;

	if (condition == NULL)
		return false;
	if (!IsA(condition, List))
		return !IsA(condition, OpExpr) || get_oprrest(operation->opno) != F_EQSEL;
	foreach (cell, (const List *) condition)
	{
		if (may_compare_order(lfirst(cell)))
			return true;
	}
	return false;
}

static void
describe_indexes(PlannerInfo *root, Oid table, bool inherited, RelOptInfo *rel)
{
	const FromExpr *from =
		root->parse->jointree; /* NULL: CREATE INDEX and CLUSTER ask about a table, and make no plan */
	/* A lookup by key has use for neither of a btree's two answers. */
	bool joins = list_length(root->parse->rtable) > 1;
	bool compares = joins || (from != NULL && may_compare_order(from->quals));
	List *btrees = NIL;
	ListCell *cell;

	if (next_info_hook != NULL)
		next_info_hook(root, table, inherited, rel);
	foreach (cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);
		IndexOptInfo *btree;

		if (info->amcostestimate != smart_am_cost || info->hypothetical)
			continue;
		if (!describe_index(info, rel, joins, compares, &btree))
			rel->indexlist = foreach_delete_current(rel->indexlist, cell);
		else if (btree != NULL)
			btrees = lappend(btrees, btree);
	}
	rel->indexlist = list_concat(rel->indexlist, btrees);
}

/* ---- row comparisons ---- */

/* The same condition may be taken for a column of this index, where a row would go on with other columns. */
static bool
might_take(IndexOptInfo *index, const List *conditions)
{
	ListCell *cell;

	foreach (cell, conditions)
	{
		Node *column = get_leftop(lfirst_node(RestrictInfo, cell)->clause);

		for (int i = 0; i < index->nkeycolumns; i++)
		{
			if (match_index_to_operand(column, i, index))
				return true;
		}
	}
	return false;
}

/* Asks for the bitmaps of ORs with what the arms imply for an index.  Those of other arms may be of other indexes. */
static void
add_or_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index)
{
	List *conditions = rel->baserestrictinfo;
	List *all_indexes = rel->indexlist;
	List *indexes = list_make1(index);
	List *implied;
	List *alternatives = smart_row_alternatives(root, index, conditions, &implied);
	ListCell *cell;

	if (alternatives == NIL)
		return;
	foreach (cell, all_indexes)
	{
		IndexOptInfo *other = lfirst_node(IndexOptInfo, cell);

		if (other != index && !might_take(other, implied))
			indexes = lappend(indexes, other);
	}
	rel->baserestrictinfo = alternatives;
	rel->indexlist = indexes;
	create_index_paths(root, rel);
	rel->indexlist = all_indexes;
	rel->baserestrictinfo = conditions;
}

/*
 * Asks for the paths of an index with what it may use besides.  The other indexes go without in the meantime, lest two
 * of them are put together for what one comparison says.
 */
static void
add_index_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index)
{
	List *conditions = index->indrestrictinfo;
	List *for_scan = smart_row_conditions(root, index, rel->baserestrictinfo);
	List *for_join = smart_row_conditions(root, index, rel->joininfo);

	smart_assert(list_member_ptr(rel->indexlist, index));
	index->indrestrictinfo = list_concat_copy(conditions, for_scan);
	if (for_scan != NIL)
		create_index_paths(root, rel);
	if (for_join != NIL)
	{
		/* Paths that get values from other tables: all indexes share the list of those conditions. */
		List *all_indexes = rel->indexlist;
		List *join_conditions = rel->joininfo;
		ListCell *cell;

		rel->indexlist = list_make1(index);
		rel->joininfo = list_concat_copy(join_conditions, for_join);
		create_index_paths(root, rel);
		rel->joininfo = join_conditions;
		rel->indexlist = all_indexes;

		/*
		 * What tables give values to a path was perhaps asked for the first time; what a comparison implies is to be a
		 * filter for no path.
		 */
		foreach (cell, rel->ppilist)
		{
			ParamPathInfo *info = lfirst_node(ParamPathInfo, cell);

			info->ppi_clauses = list_difference_ptr(info->ppi_clauses, for_join);
		}
	}
	index->indrestrictinfo = conditions;
}

static void
add_row_paths(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	ListCell *cell;

	if (next_paths_hook != NULL)
		next_paths_hook(root, rel, number, entry);
	if (entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL || IS_DUMMY_REL(rel))
		return;
	if (!smart_compares_rows(rel->baserestrictinfo) && !smart_compares_rows(rel->joininfo))
		return;
	foreach (cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		if (index->amcostestimate != smart_am_cost)
			continue;
		add_index_paths(root, rel, index);
		add_or_paths(root, rel, index);
	}
}

void
smart_planner_init(void)
{
	smart_assert(get_relation_info_hook != describe_indexes && set_rel_pathlist_hook != add_row_paths);
	next_info_hook = get_relation_info_hook;
	get_relation_info_hook = describe_indexes;
	next_paths_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_row_paths;
}

/* ---- callbacks ---- */

bool
smart_am_can_return(Relation index, int column)
{
	const struct smart_codec *codec;

	/* A partitioned table's index has no rows, and nothing that would tell. */
	if (index->rd_rel->relkind != RELKIND_INDEX)
		return false;
	codec = smart_relation_codec(index);
	smart_assert(column >= 1 && column <= codec->ncolumns);
	return codec->columns[column - 1].returnable;
}

/* Columns whose normalized keys do not sort like their values cannot be ordered by. */
bool
smart_am_property(Oid index_oid, int column, IndexAMProperty property, const char *name, bool *result, bool *isnull)
{
	Relation index;
	bool unordered = false;

	if (column == 0 || (property != AMPROP_ORDERABLE && property != AMPROP_ASC && property != AMPROP_DESC &&
						property != AMPROP_NULLS_FIRST && property != AMPROP_NULLS_LAST))
		return false;
	index = index_open(index_oid, AccessShareLock);
	if (index->rd_rel->relkind == RELKIND_INDEX && column <= IndexRelationGetNumberOfKeyAttributes(index))
		unordered = smart_relation_codec(index)->columns[column - 1].normalizer.unordered;
	index_close(index, AccessShareLock);
	if (unordered)
		*result = *isnull = false;
	return unordered;
}
