/*
 * validity.c
 *	  Announcing that the tree of an index was found to be lost, or that another one took its place.
 *
 * The planner does not see an index whose tree is not valid (planner.c), and every entry point of the access method
 * checks for itself (relation.c): plans may be older, and core uses indexes that the planner has not chosen, to
 * enforce uniqueness for example.
 *
 * No backend needs to check twice while nothing changes, and two things tell that something did.  The counter of
 * changes is for running statements; it is raised when the metapage or the directory says what is new.  Invalidation
 * messages are for cached plans.  They are sent at once and not with a transaction, whose rollback would take them
 * back although the metapage stays as it is.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "storage/sinval.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"

bool
smart_validity_rebuilds(Relation index)
{
	/* Only their own backends can read temporary tables. */
	return smart_settings.auto_rebuild && index->rd_rel->relpersistence != RELPERSISTENCE_TEMP;
}

void
smart_validity_notice(Relation index)
{
	/* The worker finds out whether it is loaded, whatever smart.auto_rebuild says. */
	if (index->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
		smart_rebuild_want(smart_relation_database(index), RelationGetRelid(index));
}

/* A relation's entries in all relation caches are out of date; InvalidOid: those of all relations of the database. */
static void
invalidate(Oid database, Oid relation)
{
	SharedInvalidationMessage message;

	smart_assert(OidIsValid(database) || OidIsValid(relation));
	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = database;
	message.rc.relId = relation;
	SendSharedInvalidMessages(&message, 1);
}

void
smart_validity_require(Relation index, bool seal, const char *done)
{
	if (smart_rebuild_is_invalid(smart_relation_database(index), RelationGetRelid(index), seal))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("a row could not be inserted into index \"%s\" while it was %s", RelationGetRelationName(index),
					   done),
				errdetail("The memory node has lost it, is full, or cannot be reached."));
}

void
smart_validity_announce(Relation index)
{
	smart_assert(index->rd_index != NULL && OidIsValid(index->rd_index->indrelid));
	smart_changes_announce();
	/* Plans depend on tables. */
	invalidate(smart_relation_database(index), RelationGetRelid(index));
	invalidate(smart_relation_database(index), index->rd_index->indrelid);
}

void
smart_validity_announce_database(Oid database)
{
	smart_changes_announce();
	invalidate(database, InvalidOid);
}

void
smart_validity_announce_trees(struct smart_space *space, bool lost_only)
{
	struct smart_tree_info info;
	uint64 cursor = 0;
	Oid last = InvalidOid;

	smart_changes_announce();
	while (smart_space_next_tree(space, &cursor, &info))
	{
		smart_assert(info.id != 0);
		if ((lost_only && !info.lost) || info.owner.database == last)
			continue;
		last = info.owner.database;
		invalidate(last, InvalidOid);
		smart_rebuild_want(last, InvalidOid);
	}
}
