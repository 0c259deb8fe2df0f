/*
 * status.c
 *	  Words for the status codes.
 */
#include <stddef.h>

#include "base/assert.h"
#include "base/status.h"

const char *
smart_status_text(smart_status status)
{
	static const char *const text[SMART_STATUS_COUNT] = {
		[SMART_OK] = "success",
		[SMART_DONE] = "no more entries",
		[SMART_NO_MEMORY] = "out of memory",
		[SMART_NO_SPACE] = "memory node is full",
		[SMART_DISK_FULL] = "no space left on device",
		[SMART_INTERRUPTED] = "interrupted",
		[SMART_TIMEOUT] = "timed out",
		[SMART_UNREACHABLE] = "memory node is unreachable",
		[SMART_STALE] = "connection is of an older generation",
		[SMART_CORRUPT] = "index structure is corrupt",
		[SMART_TOO_LONG] = "entry is too long",
		[SMART_UNSORTED] = "entries are not in ascending order",
	};

	if ((unsigned int) status >= SMART_STATUS_COUNT)
		return "unknown status";
	smart_assert(text[status] != NULL);
	return text[status];
}
