/*
 * pin.c
 *	  Vacuum pins that end with their resource owner, and waiting for those of other processes.
 *
 * An error never calls amendscan, and a pin that is never ended would block VACUUM until the backend exits; so every
 * pin is in a list that the end of a resource owner goes through.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/condition_variable.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "am/index/backend.h"
#include "am/index/pin.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define PLACES_START 8
#define WAIT_MS      20 /* between two looks at the pins, at most */
#define LOG_AFTER_MS 1000

struct pin
{
	ResourceOwner owner; /* NULL: unused */
	uint32 serial;
	unsigned int number; /* what smart_pins_enter() returned */
};

static struct pin *list = NULL;
static uint32 places = 0; /* in the list */
static uint32 used = 0;
static uint32 last_serial = 0;

/* Pins are of this start of the server, so that they do not wait for startup recovery. */
static struct smart_client *
pinning_client(void)
{
	return likely(smart_server.client != NULL) ? smart_server.client : smart_backend_client_at_startup();
}

static void
end_pin(struct pin *pin)
{
	struct smart_client *client = pinning_client();

	smart_assert(pin->owner != NULL && used > 0 && used <= places);
	pin->owner = NULL;
	used--;
	if (smart_pins_leave(client->compute->pins, client->number, pin->number))
		ConditionVariableBroadcast(&smart_server.shared->pins_wait);
}

/* Called once per phase of every resource owner's release, with that owner as the current one. */
static void
at_release(ResourceReleasePhase phase, bool commit, bool top_level, void *argument)
{
	smart_assert(used <= places);
	if (phase != RESOURCE_RELEASE_BEFORE_LOCKS || used == 0)
		return;
	for (uint32 i = 0; i < places; i++)
	{
		if (list[i].owner == CurrentResourceOwner)
			end_pin(&list[i]);
	}
}

struct smart_pin_ticket
smart_pin_enter(uint64 tree)
{
	struct smart_client *client = pinning_client();
	uint32 place = 0;

	smart_assert(CurrentResourceOwner != NULL && tree != 0);
	if (used == places)
	{
		uint32 more = places == 0 ? PLACES_START : 2 * places;

		if (places == 0)
		{
			list = MemoryContextAlloc(TopMemoryContext, more * sizeof(struct pin));
			RegisterResourceReleaseCallback(at_release, NULL);
		}
		else
			list = repalloc(list, more * sizeof(struct pin));
		memset(list + places, 0, (more - places) * sizeof(struct pin));
		places = more;
	}
	while (list[place].owner != NULL)
		place++;
	smart_assert(place < places);
	if (++last_serial == 0)
		last_serial = 1;
	list[place] = (struct pin){.owner = CurrentResourceOwner,
							   .serial = last_serial,
							   .number = smart_pins_enter(client->compute->pins, client->number, tree)};
	used++;
	return (struct smart_pin_ticket){.place = place, .serial = last_serial};
}

void
smart_pin_leave(struct smart_pin_ticket *ticket)
{
	struct pin *pin;

	if (ticket->serial == 0)
		return;
	smart_assert(ticket->place < places);
	pin = &list[ticket->place];
	if (pin->owner != NULL && pin->serial == ticket->serial)
		end_pin(pin);
	ticket->serial = 0;
}

/* ---- waiting for pins to end ---- */

/* A hint: a waiter that is missed here is seen at the next call, and bulk delete looks again after some milliseconds. */
bool
smart_pin_wanted(void)
{
	return __atomic_load_n(&pinning_client()->compute->pins->waiters, __ATOMIC_RELAXED) != 0;
}

/* Logs for which processes this one waits. */
static void
log_holders(const struct smart_client *client, uint64 tree, uint64 number, const char *message)
{
	struct smart_epoch_shared *epoch = client->compute->epoch;
	StringInfoData pids;
	unsigned int holder = 0;

	smart_assert(tree != 0 && number != 0);
	initStringInfo(&pids);
	while ((holder = smart_pins_holder(client->compute->pins, tree, number, holder)) != SMART_CLIENT_NONE)
	{
		appendStringInfo(&pids, pids.len > 0 ? ", %d" : "%d", (int) smart_epoch_owner(epoch, holder));
		holder++;
	}
	if (pids.len > 0)
		ereport(LOG, errmsg_internal("%s", message), errdetail("Processes that hold it up: %s.", pids.data));
	pfree(pids.data);
}

uint64
smart_pin_moment(void)
{
	return smart_pins_advance(pinning_client()->compute->pins);
}

bool
smart_pin_is_over(uint64 tree, uint64 moment)
{
	return smart_pins_holder(pinning_client()->compute->pins, tree, moment, 0) == SMART_CLIENT_NONE;
}

bool
smart_pin_is_held(uint64 tree)
{
	return !smart_pin_is_over(tree, smart_pin_moment());
}

void
smart_pin_wait(Relation index, uint64 tree, const char *what, const char *whom)
{
	struct smart_client *client = pinning_client();
	struct smart_pins_shared *pins = client->compute->pins;
	uint64 number = smart_pins_advance(pins);
	TimestampTz start;
	bool logged = false;

	smart_assert(tree != 0 && number != 0);
	if (smart_pins_holder(pins, tree, number, 0) == SMART_CLIENT_NONE)
		return;
	start = GetCurrentTimestamp();
	smart_pins_begin_wait(pins);
	PG_TRY();
	{
		ConditionVariablePrepareToSleep(&smart_server.shared->pins_wait);
		while (smart_pins_holder(pins, tree, number, 0) != SMART_CLIENT_NONE)
		{
			ConditionVariableTimedSleep(&smart_server.shared->pins_wait, WAIT_MS, PG_WAIT_EXTENSION);
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
		smart_pins_end_wait(pins);
	}
	PG_END_TRY();
}
