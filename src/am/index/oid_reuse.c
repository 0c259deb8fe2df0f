/*
 * oid_reuse.c
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

#include "am/index/backend.h"
#include "am/index/oid_reuse.h"
#include "am/index/trees.h"
#include "am/server/shared.h"
#include "base/assert.h"

static object_access_hook_type previous_hook;

static void
at_object_access(ObjectAccessType access, Oid class, Oid object, int part, void *argument)
{
	if (previous_hook)
		previous_hook(access, class, object, part, argument);
	/*
	 * Without a region there are no trees; where there is one, a metapage is believed only if it is of this region.  Notes are the
	 * server's own memory: a memory node that is away, since the server's start or later, is not waited for.
	 */
	if (access == OAT_POST_CREATE && class == DatabaseRelationId && smart_server_available() &&
		smart_server.shared->made)
		smart_space_put_notes(&smart_backend_client_at_startup()->space, object, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
}

void
smart_oid_reuse_init(void)
{
	smart_assert(object_access_hook != at_object_access);
	previous_hook = object_access_hook;
	object_access_hook = at_object_access;
}
