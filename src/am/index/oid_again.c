/*
 * oid_again.c
 *	  A database gets the OID of one that was dropped.
 *
 * Trees of a database that was dropped are freed some time later (orphans.h).  If its files had been copied, and the copy is copied
 * in its turn, to a database of the same OID, then metapages there name these trees, and nothing else tells that they are
 * not those of this database.  So they are given up before the files are copied.  Whatever becomes of the new database, nobody
 * uses them.
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"

#include "am/index/backend.h"
#include "am/index/oid_again.h"
#include "am/index/trees.h"
#include "am/server/shared.h"

static object_access_hook_type previous_hook;

static void
give_up_trees(Oid database)
{
	/* Notes are the server's own memory: a memory node that is away, since the server's start or later, is not waited for. */
	struct smart_space *space = &smart_backend_client_at_startup()->space;
	struct smart_tree_info info;
	uint64 cursor = 0;

	while (smart_space_next_tree(space, &cursor, &info))
	{
		CHECK_FOR_INTERRUPTS();
		if (info.owner.database == database)
			(void) smart_space_put_note(space, info.id, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
	}
}

static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int part, void *argument)
{
	if (previous_hook)
		previous_hook(access, class, object, part, argument);
	/* Without a region there are no trees; where there is one, a metapage is believed only if it is of this region. */
	if (access == OAT_POST_CREATE && class == DatabaseRelationId && smart_server_available() &&
		smart_server.shared->made)
		give_up_trees(object);
}

void
smart_oid_again_init(void)
{
	previous_hook = object_access_hook;
	object_access_hook = at_object_access;
}
