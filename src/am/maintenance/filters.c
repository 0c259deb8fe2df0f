/*
 * filters.c
 *	  Filters of keys whose index has been dropped, or has another file by now.
 *
 * Nobody else would throw them away before a new filter needs their memory, and cached keys have what filters leave.
 */
#include "postgres.h"

#include "storage/smgr.h"
#include "utils/timestamp.h"

#include "am/compat.h"
#include "am/maintenance/filters.h"
#include "am/maintenance/launcher.h"
#include "am/server/key_filter.h"
#include "base/assert.h"

#define LOOK_MS 10000

/* PostgreSQL empties a file when it is dropped, and takes its name away at the next checkpoint.  An index has a metapage. */
static bool
is_gone(const smart_file *file)
{
	SMgrRelation relation = smgropen(*file, SMART_NO_BACKEND);
	bool gone = !smgrexists(relation, MAIN_FORKNUM) || smgrnblocks(relation, MAIN_FORKNUM) == 0;

	smgrclose(relation);
	return gone;
}

long
smart_filters_tend(struct smart_job *job)
{
	static TimestampTz due = 0;
	TimestampTz now = GetCurrentTimestamp();
	smart_file files[SMART_KEY_FILTERS];
	int count;
	int gone = 0;

	if (now < due)
		return LOOK_MS;
	due = TimestampTzPlusMilliseconds(now, LOOK_MS);
	count = smart_key_filter_files(files);
	smart_assert(count >= 0 && count <= SMART_KEY_FILTERS);
	for (int i = 0; i < count; i++)
	{
		if (is_gone(&files[i]))
			files[gone++] = files[i];
	}
	smart_assert(gone <= count);
	smart_key_filter_forget(files, gone);
	return LOOK_MS;
}
