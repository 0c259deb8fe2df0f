/*
 * rdwc.c
 *	  Read delegation and write combining of a simulated compute node: the server's
 *	  own table and leaf locks, on which clients wait by pauses, each of them a
 *	  scheduling point.
 */
#include "sim/watch.h"
#include "sim/world.h"

#define TIMEOUT_MS 10000 /* longer than a history */

#define OWNER(type, member, pointer) ((type *) (void *) ((char *) (pointer) -offsetof(type, member)))

static struct client *
client_of(struct smart_services *services)
{
	return OWNER(struct client, services, services);
}

static struct smart_rdwc *
table_of(const struct compute_node *compute)
{
	return (struct smart_rdwc *) (void *) compute->rdwc;
}

static struct smart_rdwc_caller
caller_of(struct client *client)
{
	return (struct smart_rdwc_caller){.rdwc = table_of(client->compute),
									  .env = &client->env,
									  .client = (uint32_t) client->number,
									  .timeout_ms = TIMEOUT_MS};
}

static unsigned int
lock_of(fabric_address leaf)
{
	return (unsigned int) (leaf / SMART_UNIT) % world.plan.locks;
}

static smart_status
lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct client *client = client_of(services);

	return smart_leaf_lock_take(&client->compute->leaf_locks, lock_of(leaf), (uint32_t) client->number, &client->env,
								TIMEOUT_MS);
}

static void
unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct client *client = client_of(services);

	smart_leaf_lock_drop(&client->compute->leaf_locks, lock_of(leaf), (uint32_t) client->number);
}

static smart_status
read_begin(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
		   enum smart_delegation *delegation)
{
	struct smart_rdwc_caller caller = caller_of(client_of(services));

	return smart_rdwc_read_begin(&caller, leaf, buffer, length, delegation);
}

static void
read_end(struct smart_services *services, const uint8_t *copy, uint32_t length)
{
	struct smart_rdwc_caller caller = caller_of(client_of(services));

	smart_rdwc_read_end(&caller, copy, length);
}

static smart_status
lock_or_combine(struct smart_services *services, fabric_address leaf, const struct smart_handed *entry,
				enum smart_combined *combined)
{
	struct client *client = client_of(services);
	struct smart_rdwc_caller caller = caller_of(client);

	return smart_rdwc_lock_or_combine(&caller, &client->compute->leaf_locks, lock_of(leaf), leaf, entry, combined);
}

static unsigned int
take_handed(struct smart_services *services, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
			unsigned int most)
{
	struct smart_rdwc_caller caller = caller_of(client_of(services));

	return smart_rdwc_take(&caller, leaf, tree, entries, most);
}

static void
settle_handed(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	struct smart_rdwc_caller caller = caller_of(client_of(services));

	world_trace("tells client %u that its entry was: %d", entry->from, combined);
	smart_rdwc_settle(&caller, entry, combined);
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
	client->services.lock_leaf = lock_leaf;
	client->services.unlock_leaf = unlock_leaf;
	client->services.read_begin = read_begin;
	client->services.read_end = read_end;
	client->services.lock_or_combine = lock_or_combine;
	client->services.take_handed = take_handed;
	client->services.settle_handed = settle_handed;
}

unsigned int
rdwc_locks_held(const struct client *client)
{
	unsigned int held = 0;

	for (unsigned int i = 0; world.plan.rdwc && i < world.plan.locks; i++)
		held += client->compute->leaf_locks.holder[i] == (uint64_t) client->number + 1;
	return held;
}

/* Entries of the client of which nobody knows whether they were added. */
uint64_t
rdwc_unknown(const struct client *client)
{
	return world.plan.rdwc ? smart_rdwc_unknown(table_of(client->compute), (uint32_t) client->number) : 0;
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
