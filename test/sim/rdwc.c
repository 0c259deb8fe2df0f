/*
 * rdwc.c
 *	  Read delegation and write combining of a simulated compute node: the server's
 *	  own table and leaf locks, on which clients wait by pauses, each of them a
 *	  scheduling point.
 */
#include "sim/watch.h"
#include "sim/world.h"
#include "support/rdwc.h"

#define TIMEOUT_MS 10000 /* longer than a history */

static struct smart_rdwc *
table_of(const struct compute_node *compute)
{
	return (struct smart_rdwc *) (void *) compute->rdwc;
}

static unsigned int
lock_of(fabric_address leaf)
{
	return (unsigned int) (leaf / SMART_UNIT) % world.plan.locks;
}

/* What the server has for this. */
static void (*real_tell)(struct smart_services *services, const struct smart_handed *entry,
						 enum smart_combined combined);

static void
tell_handed(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	world_trace("tells client %u that its entry was: %d", entry->from, combined);
	real_tell(services, entry, combined);
}

void
rdwc_open(struct compute_node *compute)
{
	smart_assert(smart_rdwc_size(PLACES_MAX, SOLO + 1) <= RDWC_BYTES);
	smart_rdwc_init(table_of(compute), world.plan.places, SOLO + 1);
	for (unsigned int i = 0; i < world.plan.locks; i++)
		compute->leaf_locks.holder[i] = 0;
}

void
rdwc_services(struct client *client)
{
	client->member = (struct smart_rdwc_member){
		.caller = {.rdwc = table_of(client->compute),
				   .env = &client->env,
				   .client = (uint32_t) client->number,
				   .timeout_ms = TIMEOUT_MS},
		.locks = &client->compute->leaf_locks,
		.lock_of = lock_of,
	};
	smart_rdwc_services_init(&client->services, &client->member);
	real_tell = client->services.tell_handed;
	client->services.tell_handed = tell_handed;
}

unsigned int
rdwc_locks_held(const struct client *client)
{
	unsigned int held = 0;

	for (unsigned int i = 0; world.plan.rdwc && i < world.plan.locks; i++)
		held += client->compute->leaf_locks.holder[i] == (uint64_t) client->number + 1;
	return held;
}

/* Entries of the client of which no client knows whether they were added. */
uint64_t
rdwc_unknown(const struct client *client)
{
	return world.plan.rdwc ? test_rdwc_unknown(table_of(client->compute), (uint32_t) client->number) : 0;
}

/* What a generation of clients did, for --counters. */
void
rdwc_add_up(void)
{
	for (unsigned int i = 0; world.plan.rdwc && i < world.plan.compute_nodes; i++)
	{
		struct smart_rdwc_counters sum;

		smart_rdwc_sum(table_of(&world.compute[i]), &sum);
		watch_counts[WATCH_DELEGATED] += sum.delegated_reads;
		watch_counts[WATCH_COMBINED] += sum.combined_entries;
		watch_counts[WATCH_GIVEN_BACK] += sum.refusals;
	}
}
