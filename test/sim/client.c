/*
 * client.c
 *	  Clients: they call the tree and write down what it says.
 */
#include "sim/client.h"
#include "sim/history.h"
#include "sim/world.h"

static bool
lost_completion(void *argument)
{
	return world.running != SOLO && dice_one_in(&world.dice, world.plan.lost_one_in);
}

static uint64_t
next_random(void *argument)
{
	return dice_roll(&world.dice);
}

void
client_open(struct client *client, int number, struct compute_node *compute, bool keep_cache)
{
	struct smart_tree_options options = {
		.id = world.seed + 1,
		.root = store_root(),
		.leaf_size = world.plan.leaf_size,
		.fixed_length = world.plan.fixed ? world.keys.length[0] : 0,
		.shared = world.plan.shared,
		.retractions = world.plan.promises ? store_root() + sizeof(smart_slot) : 0,
		.point = world.plan.results ? keys_point : NULL,
		.point_argument = &world.keys,
		.hints = world.plan.hints,
		.payload = world.plan.payload,
		.value = world.plan.values,
		/* Who is alone is in no turn, and knows nothing of what it knew before. */
		.tenure = world.plan.owners ? UINT32_MAX + world.now : 0,
		.tiny_nodes = (uint8_t) world.plan.tiny_nodes,
		.wide_nodes = world.plan.wide_nodes,
		.first_window = (uint8_t) world.plan.first_window,
		.patience = (uint8_t) world.plan.patience,
	};

	client->number = number;
	client->state = CLIENT_READY;
	client->kept_scan = NULL;
	client->compute = compute;
	client->pin = NEVER;
	client->moment = NEVER;
	client->stalled_until = 0;
	client->cache = &client->own_cache;
	if (world.plan.cache_shared && number != SOLO)
		client->cache = &world.clients[compute - world.compute].own_cache;
	if (!keep_cache)
	{
		cache_open(&client->own_cache);
	}
	client->control = (struct sim_control){
		.yield = schedule_yield,
		.random = next_random,
		.fails = world.plan.lost_one_in != 0 ? lost_completion : NULL,
		.observe = watch_request,
		.descend = world.plan.descents != DESCENTS_NONE ? descents_walk : NULL,
		.argument = client,
	};
	services_init(client);
	smart_offload_init(&client->offload, SMART_OFFLOAD_ON);
	if (world.plan.descents != DESCENTS_NONE)
		client->services.offload = &client->offload;
	if (smart_tree_open(sim_fabric_init(&client->fabric, &world.memory, &client->control, world.plan.direct),
						&client->env, &client->services, &options, &client->tree) != SMART_OK)
		world_violation("a handle could not be opened");
}

/* ---- a client's life ---- */

static enum operation_kind
choose_operation(void)
{
	unsigned int total = 0;
	unsigned int dice;

	for (unsigned int i = 0; i < OPERATIONS; i++)
		total += world.plan.weight[i];
	dice = dice_below(&world.dice, total);
	for (unsigned int i = 0; i < OPERATIONS; i++)
	{
		if (dice < world.plan.weight[i])
			return (enum operation_kind) i;
		dice -= world.plan.weight[i];
	}
	return OPERATION_LOOKUP;
}

static unsigned int
hot_key(void)
{
	return world.keys.hot[dice_below(&world.dice, world.plan.hot)];
}

static void
prime(struct client *client)
{
	for (unsigned int i = 0; i < world.plan.hot; i++)
		client_single(client, EVENT_LOOKUP, world.keys.hot[i]);
}

static void
operate(struct client *client, enum operation_kind kind)
{
	struct range range;

	switch (kind)
	{
		case OPERATION_LOOKUP:
			if (world.plan.results && dice_one_in(&world.dice, 3))
				client_point(client, hot_key());
			else
				client_single(client, EVENT_LOOKUP, hot_key());
			break;
		case OPERATION_INSERT:
			if (world.plan.many && dice_one_in(&world.dice, 2))
				client_insert_many(client);
			else
				client_single(client, EVENT_INSERT, hot_key());
			break;
		case OPERATION_REMOVE:
			client_single(client, EVENT_REMOVE, hot_key());
			break;
		case OPERATION_SCAN:
			client_choose_range(&range);
			client_scan(client, &range, dice_one_in(&world.dice, 2), dice_one_in(&world.dice, 4) ? 2 : 1000);
			break;
		case OPERATION_ERASE:
			client_erase(client);
			break;
		case OPERATION_UPDATE:
			client_single(client, EVENT_UPDATE, hot_key());
			break;
		case OPERATION_MAINTAIN:
			client_maintain(client, hot_key());
			break;
		default:
			prime(client);
			break;
	}
}

void
client_body(struct client *client)
{
	unsigned int operations = dice_between(&world.dice, 1, world.plan.operations);

	if (world.plan.prime)
	{
		owners_begin(client);
		prime(client);
		owners_end(client);
	}
	while (operations-- > 0 && !world_failed())
	{
		owners_begin(client);
		operate(client, choose_operation());
		owners_end(client);
		schedule_maybe_stall(client, world.plan.stall_one_in);
	}
}

/* A tree with something in it, before the clients start. */
void
client_setup(struct client *client)
{
	for (unsigned int i = 0; i < world.plan.setup && !world_failed(); i++)
	{
		unsigned int key = dice_one_in(&world.dice, 4) ? dice_below(&world.dice, KEYS) : hot_key();

		client_single(client, EVENT_INSERT, key);
		if (dice_one_in(&world.dice, 5))
			client_single(client, EVENT_REMOVE, hot_key());
		if (dice_one_in(&world.dice, 6))
			client_maintain(client, hot_key());
	}
}
