/*
 * shared.c
 *	  What the processes of a server share, and the questions that it answers.
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "am/server/shared.h"
#include "base/assert.h"

struct smart_server smart_server;

void *
smart_shared_make(const char *name, Size size)
{
	bool found;
	void *made;

	smart_assert(size > 0);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	made = ShmemInitStruct(name, size, &found);
	smart_assert(!found);
	memset(made, 0, size);
	LWLockRelease(AddinShmemInitLock);
	return made;
}

void
smart_server_require(void)
{
	if (likely(smart_server_available()))
		return;
	if (smart_server.shared == NULL)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("smart must be loaded when the server starts"),
				errhint("Add 'smart' to shared_preload_libraries and restart the server."));
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("smart has no region to keep indexes in"),
			errdetail_internal("%s", smart_server.problem),
			errhint("Check smart.embedded_path and smart.embedded_max_size, and restart the server."));
}

uint64
smart_server_incarnation(void)
{
	smart_server_require();
	smart_assert(smart_server.shared->server_incarnation != 0);
	return smart_server.shared->server_incarnation;
}
