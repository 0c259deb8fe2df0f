/*
 * cost.c
 *	  What a scan costs.
 *
 * How many entries a condition selects, how the rows lie in the heap and what
 * repeated scans share does not depend on what kind of ordered index answers;
 * core's estimate for btree knows all that.  It is given the size of our tree,
 * which planner.c found out, and the price of our descent.
 */
#include "postgres.h"

#include "utils/index_selfuncs.h"

#include "am/am.h"
#include "base/assert.h"

/* So many blocks of the tree take as much work as one page of a btree on the way down: one byte is looked for in each. */
#define BLOCKS_PER_PAGE 5

void
smart_am_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost, Cost *total_cost,
			  Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	int height = index->tree_height;

	/* btree's estimate counts levels from 0, and -1 as not known. */
	if (height > 0)
		index->tree_height = (height - 1) / BLOCKS_PER_PAGE;
	btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
	index->tree_height = height;
	smart_assert(*startup_cost <= *total_cost);
}
