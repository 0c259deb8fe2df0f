/*
 * acceptance.c
 *	  Which trees are used: only those that are known to hold exactly what their
 *	  indexes have been told.
 *
 * The planner does not see an index whose tree is not accepted (planner.c), and
 * every entry point of the access method asks by itself, since plans may be
 * older, and core uses indexes that the planner has not chosen: to enforce
 * uniqueness, for example.
 *
 * Nobody needs to ask twice while nothing changes.  Two things tell that
 * something did.  The counter of changes is for statements that run; it is
 * raised when the metapage or the directory says what is new.  Invalidation
 * messages are for plans that are kept: they are sent at once and not with a
 * transaction, whose rollback would take them back although a metapage stays as
 * it is.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "storage/sinval.h"
#include "utils/rel.h"

#include "am/acceptance.h"
#include "am/meta.h"
#include "am/rebuild_table.h"
#include "am/server.h"
#include "am/settings.h"

const char *
smart_acceptance_loss(Relation index, const struct smart_meta *meta, bool fits)
{
	fabric_address root;

	if (meta->tree == 0)
		return NULL;
	if (RecoveryInProgress())
		return "Smart indexes are not replicated to standby servers";
	if (meta->state == SMART_META_STALE)
		return "Rows were inserted or removed while its content could not be reached";
	if (meta->database != smart_relation_database(index))
		return "The index was copied from another database, and its content cannot be";
	if (!smart_meta_tree_is_here(index, meta))
		return "The memory node was made anew after the index had been built, for example because the server had not "
			   "been shut down cleanly, or its settings have the indexes elsewhere now";
	if (smart_space_tree_lost(&smart_backend_client()->space, meta->tree))
		return "A memory node that held a part of it has lost its memory";
	if (!smart_space_find_tree(&smart_backend_client()->space, meta->tree, &root))
		return "The memory node does not have it";
	if (!fits)
		return "Its entries were made for other operator classes, collations or row types";
	return NULL;
}

/* Only their own backends can read temporary tables. */
static bool
is_rebuilt_by_itself(Relation index)
{
	return smart_settings.auto_rebuild && index->rd_rel->relpersistence != RELPERSISTENCE_TEMP;
}

void
smart_acceptance_notice(Relation index)
{
	if (is_rebuilt_by_itself(index) && !RecoveryInProgress())
		smart_rebuild_want(smart_relation_database(index), RelationGetRelid(index));
}

static int
hint_lost(Relation index)
{
	struct smart_rebuild rebuild;

	if (RecoveryInProgress())
		return errhint(
			"Statements that are planned from now on do without the index; it is rebuilt after a promotion.");
	if (smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), &rebuild) &&
		rebuild.state == SMART_REBUILD_RUNNING)
		return errhint("It is being rebuilt: try again later. pg_stat_progress_create_index shows how far that is.");
	if (is_rebuilt_by_itself(index))
		return errhint("It is going to be rebuilt in the background: try again later, or rebuild it with REINDEX. "
					   "The view smart_index_state shows what became of it.");
	return smart_hint_reindex(index);
}

void
smart_acceptance_report(Relation index, const char *loss)
{
	smart_acceptance_notice(index);
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("the content of index \"%s\" is lost", RelationGetRelationName(index)),
					errdetail("%s.", loss), hint_lost(index)));
}

/* ---- telling others ---- */

/* A relation's entries in all relation caches are out of date; InvalidOid: those of all relations of the database. */
static void
invalidate(Oid database, Oid relation)
{
	SharedInvalidationMessage message;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = database;
	message.rc.relId = relation;
	SendSharedInvalidMessages(&message, 1);
}

void
smart_acceptance_announce(Relation index)
{
	smart_changes_announce();
	/* Plans depend on tables. */
	invalidate(smart_relation_database(index), RelationGetRelid(index));
	invalidate(smart_relation_database(index), index->rd_index->indrelid);
}

void
smart_acceptance_announce_database(Oid database)
{
	smart_changes_announce();
	invalidate(database, InvalidOid);
}

/* The same for all databases that have trees in this space, or, lost_only, such that were lost with a memory node. */
static void
announce_trees(struct smart_space *space, bool lost_only)
{
	struct smart_tree_info info;
	uint64 cursor = 0;
	Oid last = InvalidOid;

	smart_changes_announce();
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if ((lost_only && !info.lost) || info.owner.database == last)
			continue;
		last = info.owner.database;
		invalidate(last, InvalidOid);
		if (lost_only && smart_settings.auto_rebuild)
			smart_rebuild_want(last, InvalidOid);
	}
}

void
smart_acceptance_announce_all(struct smart_space *space)
{
	announce_trees(space, false);
}

void
smart_acceptance_announce_lost(struct smart_space *space)
{
	announce_trees(space, true);
}
