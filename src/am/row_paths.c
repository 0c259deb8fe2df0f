/*
 * row_paths.c
 *	  Paths with index conditions from row comparisons.
 *
 * Core makes (a, b) > (1, 2) an index condition for btree only, in the planner and again in
 * the executor.  But it implies other conditions (row_conditions.c).  So where
 * a query compares rows, core is asked once more for the paths of a table's
 * indexes, with such conditions among those that smart indexes may use; the comparison itself
 * is in the table's own list of conditions, and stays a filter.
 */
#include "postgres.h"

#include "optimizer/paths.h"

#include "am/am.h"
#include "am/row_conditions.h"

static set_rel_pathlist_hook_type next_hook = NULL;

static bool
compares_rows(const List *conditions)
{
	ListCell *cell;

	foreach (cell, conditions)
	{
		if (IsA(lfirst_node(RestrictInfo, cell)->clause, RowCompareExpr))
			return true;
	}
	return false;
}

/* Asks for an index's paths that get values from other tables.  All indexes share the list of those conditions. */
static void
add_join_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, List *implied)
{
	List *all_indexes = rel->indexlist;
	List *conditions = rel->joininfo;
	ListCell *cell;

	rel->indexlist = list_make1(index);
	rel->joininfo = list_concat_copy(conditions, implied);
	create_index_paths(root, rel);
	rel->joininfo = conditions;
	rel->indexlist = all_indexes;

	/* What tables give values to a path was perhaps asked for the first time; it is to be a filter for no path. */
	foreach (cell, rel->ppilist)
	{
		ParamPathInfo *info = lfirst_node(ParamPathInfo, cell);

		info->ppi_clauses = list_difference_ptr(info->ppi_clauses, implied);
	}
}

/*
 * Asks for the paths of an index with what it may use besides.  The others go without in the meantime, lest two of them
 * are put together for what one comparison says.
 */
static void
add_index_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index)
{
	List *conditions = index->indrestrictinfo;
	List *for_scan = smart_row_conditions(root, index, rel->baserestrictinfo);
	List *for_join = smart_row_conditions(root, index, rel->joininfo);

	index->indrestrictinfo = list_concat_copy(conditions, for_scan);
	if (for_scan != NIL)
		create_index_paths(root, rel);
	if (for_join != NIL)
		add_join_paths(root, rel, index, for_join);
	index->indrestrictinfo = conditions;
}

static void
add_row_paths(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	ListCell *cell;

	if (next_hook != NULL)
		next_hook(root, rel, number, entry);
	if (entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL || IS_DUMMY_REL(rel))
		return;
	if (!compares_rows(rel->baserestrictinfo) && !compares_rows(rel->joininfo))
		return;
	foreach (cell, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		if (index->amcostestimate == smart_am_cost)
			add_index_paths(root, rel, index);
	}
}

void
smart_row_paths_init(void)
{
	next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_row_paths;
}
