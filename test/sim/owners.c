/*
 * owners.c
 *	  An exclusive tree that compute nodes own by turns (src/README, Partitions): one range, the table of which is in the
 *	  units behind the root's word.
 */
#include "compute/partition/partition.h"
#include "sim/client.h"
#include "sim/watch.h"
#include "sim/world.h"

#define GIVE_MS 60000 /* more than a history's clock comes to */

_Static_assert(OWNERS_UNITS *SMART_UNIT == 128, "a table of one range has two lines");

static struct smart_partition *
partition_of(const struct client *client)
{
	return (struct smart_partition *) (void *) world.partition[client->compute - world.compute];
}

static uint32_t
number_of(const struct compute_node *compute)
{
	return world.first_owner + (uint32_t) (compute - world.compute);
}

bool
owners_word(fabric_address address)
{
	return world.plan.owners && address >= store_root() + SMART_UNIT &&
		   address < store_root() + (1 + OWNERS_UNITS) * SMART_UNIT;
}

void
owners_reset(struct client *solo)
{
	const struct smart_range whole = {.tree = world.seed + 1, .root = store_root()};

	world.first_owner = 1;
	if (world.plan.owners &&
		smart_partition_create(&solo->fabric.fabric, store_root() + SMART_UNIT, &whole, 1) != SMART_OK)
		world_violation("the table of ranges could not be made");
}

/* A generation of compute nodes, whose numbers were never used. */
void
owners_open(struct client *solo)
{
	if (!world.plan.owners)
		return;
	world.first_owner += COMPUTE_MAX;
	for (unsigned int i = 0; i < world.plan.compute_nodes; i++)
	{
		smart_assert(smart_partition_size(1, CLIENTS_MAX) <= sizeof(world.partition[i]));
		if (smart_partition_open((struct smart_partition *) (void *) world.partition[i], &solo->fabric.fabric,
								 store_root() + SMART_UNIT, 1, CLIENTS_MAX, world.first_owner + i) != SMART_OK)
			world_violation("the table of ranges could not be read");
	}
}

/* Nothing that this owner has sent comes later: it has died, as a whole, or all its clients have come to their end. */
static bool
is_fenced(uint32_t owner)
{
	for (int i = 0; i < CLIENTS_MAX && owner >= world.first_owner; i++)
	{
		const struct client *client = &world.clients[i];

		if ((client->state == CLIENT_READY || client->state == CLIENT_BLOCKED) && number_of(client->compute) == owner)
			return false;
	}
	return true;
}

/* The range becomes the client's compute node's, if nobody has it or who has it is gone; else that one is asked for it. */
static void
ask_for_range(struct client *client)
{
	struct smart_partition *mine = partition_of(client);
	uint32_t owner;
	uint32_t tenure;
	bool taken = false;
	smart_status status = smart_partition_owner(mine, &client->fabric.fabric, 0, &owner, &tenure);

	if (status == SMART_OK && (owner == number_of(client->compute) || is_fenced(owner)))
		status = smart_partition_take(mine, &client->fabric.fabric, 0,
									  owner == number_of(client->compute) ? SMART_OWNER_NONE : owner, &taken);
	if (status != SMART_OK)
		world_violation("a range could not be taken: %s", smart_status_text(status));
	if (!taken)
		world.wanted_by = client->compute;
}

void
owners_begin(struct client *client)
{
	uint64_t tenure = 0;

	if (!world.plan.owners)
		return;
	for (unsigned int attempt = 4;
		 !smart_partition_enter(partition_of(client), (unsigned int) client->number, 0, &tenure); attempt++)
	{
		ask_for_range(client);
		schedule_pause(client, attempt);
	}
	world_trace("a turn of tenure %llu begins", (unsigned long long) tenure);
	smart_tree_turn(client->tree, world.seed + 1, store_root(), tenure);
}

/* A compute node, not the client's own, that goes on; NULL: there is none. */
static const struct compute_node *
choose_heir(const struct client *client)
{
	const struct compute_node *heir = world.wanted_by;

	if (heir == NULL || heir == client->compute || dice_one_in(&world.dice, 4))
		heir = &world.compute[dice_below(&world.dice, world.plan.compute_nodes)];
	return heir == client->compute || is_fenced(number_of(heir)) ? NULL : heir;
}

void
owners_end(struct client *client)
{
	const struct compute_node *heir;
	smart_status status;

	if (!world.plan.owners)
		return;
	smart_partition_leave(partition_of(client), (unsigned int) client->number);
	heir = dice_one_in(&world.dice, world.wanted_by != NULL ? 2 : 8) ? choose_heir(client) : NULL;
	if (heir == NULL)
		return;
	world_trace("gives the range to %u", number_of(heir));
	status =
		smart_partition_give(partition_of(client), &client->fabric.fabric, &client->env, 0, number_of(heir), GIVE_MS);
	if (status == SMART_OK)
	{
		watch_counts[WATCH_GIFT]++;
		world.wanted_by = NULL;
	}
	else if (status != SMART_STALE)
		world_violation("a range could not be given: %s", smart_status_text(status));
}
