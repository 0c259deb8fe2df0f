/*
 * delta_region.c
 *	  The region for deltas, beside memory nodes.
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "am/recovery/delta_region.h"
#include "am/recovery/region_file.h"
#include "am/server/environment.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define MEMORY_SHARE 8 /* one part in so many of the machine's memory, at most */

/* What the setting allows, but no more of the machine's memory than compaction can be relied on to need. */
static uint64
size_limit(void)
{
	uint64 limit = (uint64) smart_settings.embedded_max_size_mb << 20;
	long pages = sysconf(_SC_PHYS_PAGES);
	long page = sysconf(_SC_PAGESIZE);

	smart_assert(limit > 0);
	if (pages > 0 && page > 0)
		limit = Min(limit, (uint64) pages * (uint64) page / MEMORY_SHARE);
	return Max(limit, SMART_REGION_STEP_MIN);
}

bool
smart_delta_region_map(void)
{
	uint64 max_size = size_limit();
	int fd = memfd_create("smart deltas", MFD_CLOEXEC);

	smart_assert(smart_server.remote && smart_server.delta_region.base == NULL);
	if (fd >= 0 && smart_region_map(&smart_server.delta_region, fd, max_size) == SMART_OK)
		return true;
	smart_region_report_missing("could not map " UINT64_FORMAT " MB of memory: %s", max_size >> 20, strerror(errno));
	if (fd >= 0)
		close(fd);
	return false;
}

void
smart_delta_region_empty(void)
{
	if (ftruncate(smart_server.delta_region.fd, 0) != 0)
		ereport(FATAL, errcode_for_file_access(), errmsg("could not give back the memory of smart: %m"));
}

smart_status
smart_delta_region_make(void)
{
	struct smart_lock_table *locks = smart_server.delta_compute.locks;
	smart_status status = SMART_OK;

	smart_assert(smart_server.remote);
	locks->acquire(locks, SMART_LOCK_DIRECTORY);
	if (!smart_server.shared->deltas_made)
		status = smart_region_format(&smart_server.delta_region, smart_random_token());
	if (status == SMART_OK)
		smart_server.shared->deltas_made = true;
	locks->release(locks, SMART_LOCK_DIRECTORY);
	return status;
}
