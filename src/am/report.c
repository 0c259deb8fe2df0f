/*
 * report.c
 *	  A status becomes an error, with what a DBA can do about it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "am/embedded_state.h"
#include "am/report.h"
#include "tree/layout.h"

static int
about(Relation index)
{
	return index != NULL ? errcontext("smart index \"%s\"", RelationGetRelationName(index)) : 0;
}

static void
report_room(smart_status status, Relation index)
{
	if (status == SMART_NO_MEMORY)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"), about(index)));
	if (status == SMART_DISK_FULL)
		ereport(ERROR,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("could not extend the region of smart: %s",
						strerror(smart_embedded.region.grow_errno ? smart_embedded.region.grow_errno : ENOSPC)),
				 errhint("Free disk space, or set smart.embedded_path to a directory with more of it."), about(index)));
	ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("the region of smart has reached its greatest size"),
					errhint("Increase smart.embedded_max_size and restart the server, or delete rows and run VACUUM."),
					about(index)));
}

static void
report_waits(smart_status status, Relation index)
{
	/* A cancel or a shutdown says so itself. */
	CHECK_FOR_INTERRUPTS();
	if (status == SMART_INTERRUPTED)
		ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg("an operation on a smart index was interrupted"),
						about(index)));
	if (status == SMART_TIMEOUT)
		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						errmsg("an operation on a smart index came to its time limit"), about(index)));
	ereport(ERROR,
			(errcode(ERRCODE_IO_ERROR), errmsg("could not reach the region of smart"),
			 smart_embedded.region.grow_errno != 0 ? errdetail("%s.", strerror(smart_embedded.region.grow_errno)) : 0,
			 about(index)));
}

void
smart_report_status(smart_status status, Relation index)
{
	smart_assert(status != SMART_OK);
	switch (status)
	{
		case SMART_NO_MEMORY:
		case SMART_NO_SPACE:
		case SMART_DISK_FULL:
			report_room(status, index);
			break;
		case SMART_INTERRUPTED:
		case SMART_TIMEOUT:
		case SMART_UNREACHABLE:
			report_waits(status, index);
			break;
		case SMART_CORRUPT:
			ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
							index != NULL ? errmsg("smart index \"%s\" is corrupt", RelationGetRelationName(index))
										  : errmsg("the region of smart is corrupt"),
							errhint("Rebuild it with REINDEX.")));
			break;
		case SMART_TOO_LONG:
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("an entry is too long for a smart index"),
							errdetail("The key is limited to %d bytes and the whole entry to %d bytes, as encoded.",
									  SMART_KEY_MAX, SMART_ENTRY_MAX),
							about(index)));
			break;
		default:
			break;
	}
	elog(ERROR, "unexpected status from a smart tree: %s", smart_status_text(status));
}
