/*
 * report_loss.c
 *	  The errors of an index that is lost, or whose memory nodes do not answer.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"

#include "am/compat.h"
#include "am/index/report_loss.h"
#include "am/index/state.h"
#include "am/server/rebuild_table.h"
#include "am/server/report.h"
#include "am/server/validity.h"

static int
hint_lost(Relation index)
{
	const struct smart_amcache *cache = index->rd_amcache;
	struct smart_rebuild rebuild;

	if (RecoveryInProgress())
		return errhint("Statements that are planned from now on do without the index until it is loaded.");
	if (smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), &rebuild) &&
		rebuild.state == SMART_REBUILD_RUNNING)
		return errhint("It is being %s: try again later. pg_stat_progress_create_index shows how far that is.",
					   rebuild.side == 0 ? "loaded" : "rebuilt");
	if (cache != NULL && smart_meta_is_loadable(&cache->meta) && cache->fits)
		return errhint(
			"It is going to be loaded in the background: try again later. The view smart_index_state shows what "
			"became of it.");
	if (smart_validity_rebuilds(index))
		return errhint("It is going to be rebuilt in the background: try again later, or rebuild it with REINDEX. "
					   "The view smart_index_state shows what became of it.");
	return smart_hint_reindex(index);
}

void
smart_report_loss(Relation index, enum smart_loss loss)
{
	smart_assert(loss != SMART_LOSS_NONE);
	if (!RecoveryInProgress() || smart_relation_is_loadable(index))
		smart_validity_notice(index);
	if (loss == SMART_LOSS_OUT_OF_REACH)
		ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
				errmsg("the content of index \"%s\" cannot be reached", RelationGetRelationName(index)),
				errdetail_internal("%s", smart_loss_text(loss)), hint_lost(index));
	if (smart_relation_is_to_answer(index))
		ereport(
			ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("index \"%s\" has no tree", RelationGetRelationName(index)),
			errdetail("The pages of its journal answer."),
			errhint(
				"smart_index_pages() shows what they hold. ALTER INDEX ... SET (resident = always) brings a tree back."));
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the content of index \"%s\" is lost", RelationGetRelationName(index)),
			errdetail_internal("%s", smart_loss_text(loss)), hint_lost(index));
}

/* Does this process make the index's tree?  It has heard of the loss. */
static bool
is_restored_here(Relation index)
{
	struct smart_rebuild rebuild;

	return smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), &rebuild) &&
		   rebuild.state == SMART_REBUILD_RUNNING && rebuild.runner == MyProcPid;
}

void
smart_report_status(smart_status status, Relation index)
{
	smart_assert(status != SMART_OK);
	/* A cancel or a shutdown says so itself, whatever became of the index. */
	if (smart_status_is_of_node(status))
	{
		struct smart_amcache *cache = index == NULL ? NULL : index->rd_amcache;
		enum smart_loss loss;

		CHECK_FOR_INTERRUPTS();
		/* One that is to have no tree has none for another reason: it is a follower that cannot be reached. */
		loss = cache == NULL || is_restored_here(index) || smart_state_is_to_answer(index, cache)
				   ? SMART_LOSS_NONE
				   : smart_state_loss(index, cache);
		if (loss != SMART_LOSS_NONE)
			smart_report_loss(index, loss);
	}
	smart_raise_status(status, index);
}
