/*
 * ycsb_sim_rdwc.c
 *	  Read delegation and write combining of a simulated compute node: src/compute's
 *	  own table and leaf locks.  Who waits looks again after a while of virtual time.
 */
#include "ycsb_random.h"
#include "ycsb_sim.h"

#define TIMEOUT_MS 10000 /* virtual */

static struct smart_rdwc_caller
caller_of(struct sim_client *client)
{
	return (struct smart_rdwc_caller){.rdwc = client->compute->rdwc,
									  .env = &client->env,
									  .client = client->number,
									  .timeout_ms = TIMEOUT_MS};
}

static unsigned int
lock_of(fabric_address leaf)
{
	return (unsigned int) (ycsb_mix(leaf) % SMART_LOCK_LEAVES);
}

static smart_status
lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct sim_client *client = ycsb_sim_client(services);

	return smart_leaf_lock_take(&client->compute->leaf_locks, lock_of(leaf), client->number, &client->env, TIMEOUT_MS);
}

static void
unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct sim_client *client = ycsb_sim_client(services);

	smart_leaf_lock_drop(&client->compute->leaf_locks, lock_of(leaf), client->number);
}

static smart_status
read_begin(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
		   enum smart_delegation *delegation)
{
	struct smart_rdwc_caller caller = caller_of(ycsb_sim_client(services));

	return smart_rdwc_read_begin(&caller, leaf, buffer, length, delegation);
}

static void
read_end(struct smart_services *services, const uint8_t *copy, uint32_t length)
{
	struct smart_rdwc_caller caller = caller_of(ycsb_sim_client(services));

	smart_rdwc_read_end(&caller, copy, length);
}

static smart_status
lock_or_combine(struct smart_services *services, fabric_address leaf, const struct smart_handed *entry,
				enum smart_combined *combined)
{
	struct sim_client *client = ycsb_sim_client(services);
	struct smart_rdwc_caller caller = caller_of(client);

	return smart_rdwc_lock_or_combine(&caller, &client->compute->leaf_locks, lock_of(leaf), leaf, entry, combined);
}

static unsigned int
take_handed(struct smart_services *services, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
			unsigned int most)
{
	struct smart_rdwc_caller caller = caller_of(ycsb_sim_client(services));

	return smart_rdwc_take(&caller, leaf, tree, entries, most);
}

static void
settle_handed(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	struct smart_rdwc_caller caller = caller_of(ycsb_sim_client(services));

	smart_rdwc_settle(&caller, entry, combined);
}

void
ycsb_sim_init_rdwc(struct smart_services *services)
{
	services->lock_leaf = lock_leaf;
	services->unlock_leaf = unlock_leaf;
	services->read_begin = read_begin;
	services->read_end = read_end;
	services->lock_or_combine = lock_or_combine;
	services->take_handed = take_handed;
	services->settle_handed = settle_handed;
}
