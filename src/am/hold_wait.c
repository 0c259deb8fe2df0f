/*
 * hold_wait.c
 *	  Waiting for the holds of others to end.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/condition_variable.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/hold.h"
#include "am/server.h"

#define WAIT_MS      20 /* between two looks at the holders, at most */
#define LOG_AFTER_MS 1000

/* Says in the log for whom this process waits. */
static void
log_holders(const struct smart_client *client, uint64 tree, uint64 number, const char *message)
{
	StringInfoData pids;
	unsigned int holder = 0;

	initStringInfo(&pids);
	while ((holder = smart_interlock_holder(client->compute->interlock, tree, number, holder)) != SMART_CLIENT_NONE)
	{
		appendStringInfo(&pids, pids.len > 0 ? ", %d" : "%d", smart_client_pid(holder));
		holder++;
	}
	if (pids.len > 0)
		ereport(LOG, (errmsg_internal("%s", message), errdetail("Processes that hold it up: %s.", pids.data)));
	pfree(pids.data);
}

void
smart_hold_wait(Relation index, uint64 tree, const char *what, const char *whom)
{
	struct smart_client *client = smart_backend_client();
	struct smart_interlock_shared *interlock = client->compute->interlock;
	uint64 number = smart_interlock_advance(interlock);
	TimestampTz start = 0;
	bool logged = false;

	if (smart_interlock_holder(interlock, tree, number, 0) == SMART_CLIENT_NONE)
		return;
	start = GetCurrentTimestamp();
	smart_interlock_begin_wait(interlock);
	PG_TRY();
	{
		ConditionVariablePrepareToSleep(smart_interlock_wait());
		while (smart_interlock_holder(interlock, tree, number, 0) != SMART_CLIENT_NONE)
		{
			ConditionVariableTimedSleep(smart_interlock_wait(), WAIT_MS, PG_WAIT_EXTENSION);
			if (!logged && TimestampDifferenceExceeds(start, GetCurrentTimestamp(), LOG_AFTER_MS))
			{
				log_holders(client, tree, number,
							psprintf("%s index \"%s\" waits for %s", what, RelationGetRelationName(index), whom));
				logged = true;
			}
		}
	}
	PG_FINALLY();
	{
		ConditionVariableCancelSleep();
		smart_interlock_end_wait(interlock);
	}
	PG_END_TRY();
}
