/*
 * owners.c
 *	  An exclusive tree that compute nodes own by turns (src/README, Partitions): one range, the table of which is in the
 *	  units behind the root's word.  Behind that are their logs, if they have any: one for each compute node of each
 *	  generation, since the next ones may have to read it.
 */
#include "compute/partition/changes.h"
#include "compute/partition/partition.h"
#include "sim/client.h"
#include "sim/watch.h"
#include "sim/world.h"

#define GIVE_MS     60000 /* more than a history's clock comes to */
#define FIRST_OWNER 1
#define BUCKETS     8
#define SETTLES_MAX 100 /* attempts of who is alone */
#define LOG_NODES   3   /* compute nodes of a generation with logs, at most */
#define LOGS_MAX    (LOG_NODES * LOG_LIVES_MAX)
#define LOG_UNITS   ((SMART_LOG_HEAD_BYTES + LOG_RING_BYTES) / SMART_UNIT)

_Static_assert(OWNERS_UNITS *SMART_UNIT == 192, "a table of one range has two lines and a word");
_Static_assert(LOGS_UNITS == LOGS_MAX * LOG_UNITS, "the store reserves what the logs need");

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

/* ---- logs ---- */

/* The first generation has the numbers behind COMPUTE_MAX. */
static struct smart_log_place
place_of(uint32_t owner)
{
	unsigned int generation = (owner - FIRST_OWNER) / COMPUTE_MAX - 1;
	unsigned int number = generation * LOG_NODES + (owner - FIRST_OWNER) % COMPUTE_MAX;
	struct smart_log_place place = {.copies = world.plan.log_copies, .bytes = LOG_RING_BYTES, .owner = owner};

	smart_assert(number < LOGS_MAX);
	for (unsigned int copy = 0; copy < place.copies; copy++)
		place.address[copy] = fabric_make_address(copy, world.logs_at[copy] + number * LOG_UNITS * SMART_UNIT);
	return place;
}

/* Who is alone has none; it only asks what they are like. */
static struct smart_changes *
changes_of(const struct client *client)
{
	return (struct smart_changes *) (void *)
		world.changes[client->number == SOLO ? 0 : client->compute - world.compute];
}

static void
open_changes(struct client *solo, unsigned int compute)
{
	const struct smart_changes_options options = {.place = place_of(world.first_owner + compute),
												  .flights = world.plan.log_flights,
												  .ranges = 1,
												  .buckets = BUCKETS,
												  .values = world.plan.values};

	smart_assert(compute < LOG_NODES && smart_changes_size(&options) <= sizeof(world.changes[compute]));
	if (smart_changes_open((struct smart_changes *) (void *) world.changes[compute], &solo->fabric.fabric, &options) !=
		SMART_OK)
		world_violation("a log could not be made");
}

static struct smart_turn
turn_of(struct client *client)
{
	return (struct smart_turn){.changes = changes_of(client),
							   .tree = client->tree,
							   .fabric = &client->fabric.fabric,
							   .env = &client->env,
							   .tenure = client->tenure,
							   .timeout_ms = GIVE_MS};
}

/* False: a block could not be had, which is no fault. */
static bool
applied(smart_status status)
{
	if (status != SMART_OK && status != SMART_NO_SPACE)
		world_violation("changes could not be applied: %s", smart_status_text(status));
	return status == SMART_OK;
}

static bool
apply_some(struct client *client, size_t most)
{
	struct smart_turn turn = turn_of(client);
	unsigned int count = 0;

	if (!world.plan.log || client->number == SOLO)
		return true;
	if (!applied(smart_changes_apply(&turn, most, &count)))
		return false;
	watch_counts[WATCH_APPLIED] += count;
	world_trace("%u changes have been applied", count);
	return applied(smart_changes_release(turn.changes, turn.fabric, turn.env));
}

bool
owners_apply(struct client *client)
{
	return apply_some(client, SMART_CHANGES_ALL);
}

/* As who looks at nothing but the log: all, or a piece. */
static bool
relieve(struct client *client)
{
	return apply_some(client, dice_one_in(&world.dice, 2) ? SMART_CHANGES_ALL : 1);
}

static smart_status
logged_call(struct smart_turn *turn, enum event_kind kind, const uint8_t *entry, size_t key_length, size_t length,
			uint64_t *value, bool *result)
{
	switch (kind)
	{
		case EVENT_LOOKUP:
			return smart_logged_get(turn, entry, key_length, value, result);
		case EVENT_INSERT:
			return smart_logged_insert(turn, entry, key_length, length, result);
		case EVENT_UPDATE:
			return smart_logged_update(turn, entry, key_length, *value, result);
		default:
			return smart_logged_remove(turn, entry, key_length, result);
	}
}

smart_status
owners_call(struct client *client, enum event_kind kind, const uint8_t *entry, size_t key_length, size_t length,
			uint64_t *value, bool *result)
{
	struct smart_turn turn = turn_of(client);
	smart_status status = logged_call(&turn, kind, entry, key_length, length, value, result);

	watch_counts[WATCH_LOGGED] += status == SMART_OK && kind != EVENT_LOOKUP && *result;
	/* The only range is the oldest one. */
	for (unsigned int attempt = 4; status == SMART_NO_SPACE && kind != EVENT_LOOKUP && !world_failed(); attempt++)
	{
		watch_counts[WATCH_LOG_FULL]++;
		if (!relieve(client))
			break;
		schedule_pause(client, attempt);
		status = logged_call(&turn, kind, entry, key_length, length, value, result);
	}
	return status;
}

static smart_status
settle(void *argument, unsigned int range, uint32_t owner, uint32_t tenure, uint32_t now)
{
	struct client *client = argument;
	struct smart_log_place place = place_of(owner);
	struct smart_turn turn = turn_of(client);

	world_trace("settles what the log of %u has of tenure %u", owner, tenure);
	watch_counts[WATCH_SETTLED]++;
	/* Who is alone has a tenure that never comes. */
	if (client->number != SOLO)
		smart_tree_turn(client->tree, world.seed + 1, store_root(), now);
	return smart_changes_settle(&turn, &place, tenure);
}

static smart_status
flush(void *argument, unsigned int range, uint32_t tenure)
{
	struct client *client = argument;
	struct smart_turn turn;
	unsigned int count;

	smart_tree_turn(client->tree, world.seed + 1, store_root(), tenure);
	client->tenure = tenure;
	turn = turn_of(client);
	return smart_changes_apply(&turn, SMART_CHANGES_ALL, &count);
}

static const struct smart_handover *
handover_of(struct client *client, struct smart_handover *handover)
{
	*handover = (struct smart_handover){.settle = settle, .flush = flush, .argument = client};
	return world.plan.log ? handover : NULL;
}

/* ---- owners ---- */

void
owners_reset(struct client *solo)
{
	const struct smart_range whole = {.tree = world.seed + 1, .root = store_root()};

	world.first_owner = FIRST_OWNER;
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
		if (world.plan.log)
			open_changes(solo, i);
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
	struct smart_handover handover;
	uint32_t owner;
	uint32_t tenure;
	bool taken = false;
	smart_status status = smart_partition_owner(mine, &client->fabric.fabric, 0, &owner, &tenure);

	if (status == SMART_OK && (owner == number_of(client->compute) || is_fenced(owner)))
		status = smart_partition_take(mine, &client->fabric.fabric, 0,
									  owner == number_of(client->compute) ? SMART_OWNER_NONE : owner,
									  handover_of(client, &handover), &taken);
	if (status != SMART_OK && !(world.plan.log && status == SMART_NO_SPACE))
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
	client->tenure = (uint32_t) tenure;
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
	struct smart_handover handover;
	const struct compute_node *heir;
	smart_status status;

	if (!world.plan.owners)
		return;
	if (world.plan.log && dice_one_in(&world.dice, world.plan.apply_one_in))
		relieve(client);
	smart_partition_leave(partition_of(client), (unsigned int) client->number);
	heir = dice_one_in(&world.dice, world.wanted_by != NULL ? 2 : 8) ? choose_heir(client) : NULL;
	if (heir == NULL)
		return;
	world_trace("gives the range to %u", number_of(heir));
	status = smart_partition_give(partition_of(client), &client->fabric.fabric, &client->env, 0, number_of(heir),
								  GIVE_MS, handover_of(client, &handover));
	if (status == SMART_OK)
	{
		watch_counts[WATCH_GIFT]++;
		world.wanted_by = NULL;
	}
	else if (status != SMART_STALE && !(world.plan.log && status == SMART_NO_SPACE))
		world_violation("a range could not be given: %s", smart_status_text(status));
}

/* Who looks at the end is the next owner, of a compute node that has no log. */
void
owners_finish(struct client *solo)
{
	struct smart_partition *mine = (struct smart_partition *) (void *) world.partition[0];
	struct smart_handover handover;
	uint32_t owner;
	uint32_t tenure;
	bool taken = false;
	smart_status status;

	if (!world.plan.log)
		return;
	status = smart_partition_open(mine, &solo->fabric.fabric, store_root() + SMART_UNIT, 1, CLIENTS_MAX,
								  world.first_owner + COMPUTE_MAX);
	for (int i = 0; i < SETTLES_MAX && !taken && (status == SMART_OK || status == SMART_NO_SPACE); i++)
	{
		status = smart_partition_owner(mine, &solo->fabric.fabric, 0, &owner, &tenure);
		if (status == SMART_OK)
			status = smart_partition_take(mine, &solo->fabric.fabric, 0,
										  owner == world.first_owner + COMPUTE_MAX ? SMART_OWNER_NONE : owner,
										  handover_of(solo, &handover), &taken);
	}
	if (!taken)
		world_violation("the range could not be taken at the end: %s", smart_status_text(status));
}
