/*
 * hold.c
 *	  Vacuum interlock holds that end with their resource owner.
 *
 * An error never calls amendscan, and a hold that nobody ends would block
 * VACUUM until the backend exits; so every hold is on a list that the end of a
 * resource owner goes through.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/resowner.h"

#include "am/server.h"
#include "am/hold.h"
#include "base/assert.h"

#define HOLDS_START 8

struct held
{
	ResourceOwner owner; /* NULL: unused */
	uint32 serial;
	unsigned int hold; /* what smart_interlock_enter() returned */
};

static struct held *holds = NULL;
static uint32 nholds = 0; /* places in the array */
static uint32 used_holds = 0;
static uint32 last_serial = 0;

static void
end_hold(struct held *held)
{
	struct smart_client *client = smart_backend_client();

	smart_assert(held->owner != NULL && used_holds > 0);
	held->owner = NULL;
	used_holds--;
	if (smart_interlock_leave(client->compute->interlock, client->number, held->hold))
		ConditionVariableBroadcast(smart_interlock_wait());
}

/* Called once per phase of every resource owner's release, with that owner as the current one. */
static void
at_release(ResourceReleasePhase phase, bool commit, bool top_level, void *argument)
{
	if (phase != RESOURCE_RELEASE_BEFORE_LOCKS || used_holds == 0)
		return;
	for (uint32 i = 0; i < nholds; i++)
	{
		if (holds[i].owner == CurrentResourceOwner)
			end_hold(&holds[i]);
	}
}

static void
make_room(void)
{
	uint32 more = nholds == 0 ? HOLDS_START : 2 * nholds;

	if (nholds == 0)
	{
		holds = MemoryContextAlloc(TopMemoryContext, more * sizeof(struct held));
		RegisterResourceReleaseCallback(at_release, NULL);
	}
	else
		holds = repalloc(holds, more * sizeof(struct held));
	memset(holds + nholds, 0, (more - nholds) * sizeof(struct held));
	nholds = more;
}

struct smart_hold_ticket
smart_hold_enter(uint64 tree)
{
	struct smart_client *client = smart_backend_client();
	uint32 place = 0;

	if (used_holds == nholds)
		make_room();
	while (holds[place].owner != NULL)
		place++;
	smart_assert(place < nholds && CurrentResourceOwner != NULL);
	if (++last_serial == 0)
		last_serial = 1;
	holds[place].owner = CurrentResourceOwner;
	holds[place].serial = last_serial;
	holds[place].hold = smart_interlock_enter(client->compute->interlock, client->number, tree);
	used_holds++;
	return (struct smart_hold_ticket){.place = place, .serial = last_serial};
}

void
smart_hold_leave(struct smart_hold_ticket *ticket)
{
	struct held *held;

	if (ticket->serial == 0)
		return;
	held = &holds[ticket->place];
	if (held->owner != NULL && held->serial == ticket->serial)
		end_hold(held);
	ticket->serial = 0;
}

/* A hint: who is missed here is seen at the next call, and bulk delete looks again after some milliseconds. */
bool
smart_hold_wanted(void)
{
	return __atomic_load_n(&smart_backend_client()->compute->interlock->waiters, __ATOMIC_RELAXED) != 0;
}
