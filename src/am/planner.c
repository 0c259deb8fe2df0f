/*
 * planner.c
 *	  What the planner is told about an index beside its cost.
 *
 * The relation of an index is one page; its tree is somewhere else.  A hook
 * tells the planner the size of the tree, and takes the claim to order away
 * from indexes that cannot keep it.  It takes away the whole index if that is lost
 * (acceptance.c), so that statements do without it.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "optimizer/plancat.h"
#include "utils/rel.h"

#include "am/acceptance.h"
#include "am/am.h"
#include "base/assert.h"

/* Bytes of memory per leaf and per entry, and children per node, as they come out in trees grown by inserts. */
#define LEAF_BYTES        400.0
#define ENTRY_BYTES       24.0
#define CHILDREN_PER_NODE 16.0

static get_relation_info_hook_type next_hook = NULL;

/* Blocks on the way from the root to an entry. */
static int
estimate_height(uint64 bytes)
{
	double leaves = Max((double) bytes / LEAF_BYTES, 1.0);

	return 1 + (int) ceil(log(leaves) / log(CHILDREN_PER_NODE));
}

/* A partial index's entries: as many as VACUUM or CREATE INDEX counted, but no more than there is room for. */
static double
estimate_entries(Relation index, const struct smart_glance *glance, double rows)
{
	double counted = index->rd_rel->reltuples;

	if (counted < 0)
		counted = (double) glance->bytes / (glance->fixed_length > 0 ? glance->fixed_length : ENTRY_BYTES);
	return Min(counted, rows);
}

/*
 * Tells the planner what it cannot see; *btree is the index as a btree (as_btree.c), or NULL.  False: the
 * index is not to be used now.  A standby has no trees, and one that has none to miss
 * today may miss one when the plan is used.
 */
static bool
describe_index(IndexOptInfo *info, const RelOptInfo *table, bool joins, IndexOptInfo **btree)
{
	Relation index = index_open(info->indexoid, NoLock);
	struct smart_glance glance;
	/* From version 17 on the server lists a partitioned table's indexes, too, which have nothing to glance at. */
	bool partitioned = index->rd_rel->relkind != RELKIND_INDEX;
	bool usable = partitioned || (!RecoveryInProgress() && smart_relation_glance(index, &glance));

	*btree = NULL;
	if (usable && !partitioned)
	{
		info->pages = (BlockNumber) Min(1 + glance.bytes / BLCKSZ, MaxBlockNumber);
		info->tree_height = estimate_height(glance.bytes);
		info->tuples = info->indpred == NIL ? table->tuples : estimate_entries(index, &glance, table->tuples);
		smart_name_booleans(info);
		*btree = smart_as_btree(info, joins, glance.ordered);
		if (!glance.ordered)
		{
			/* Without these no path of the index is taken as sorted; all conditions match as before. */
			info->sortopfamily = NULL;
		}
	}
	if (!usable)
		smart_acceptance_notice(index);
	index_close(index, NoLock);
	return usable;
}

static void
describe_indexes(PlannerInfo *root, Oid table, bool inherited, RelOptInfo *rel)
{
	bool joins = list_length(root->parse->rtable) > 1;
	List *btrees = NIL;
	ListCell *cell;

	if (next_hook != NULL)
		next_hook(root, table, inherited, rel);
	foreach (cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);
		IndexOptInfo *btree;

		if (info->amcostestimate != smart_am_cost || info->hypothetical)
			continue;
		if (!describe_index(info, rel, joins, &btree))
			rel->indexlist = foreach_delete_current(rel->indexlist, cell);
		else if (btree != NULL)
			btrees = lappend(btrees, btree);
	}
	rel->indexlist = list_concat(rel->indexlist, btrees);
}

void
smart_planner_init(void)
{
	next_hook = get_relation_info_hook;
	get_relation_info_hook = describe_indexes;
}

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

/* Columns whose images do not sort like their values cannot be ordered by. */
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
		unordered = smart_relation_codec(index)->columns[column - 1].image.unordered;
	index_close(index, AccessShareLock);
	if (unordered)
		*result = *isnull = false;
	return unordered;
}
