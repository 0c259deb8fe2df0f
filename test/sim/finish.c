/*
 * finish.c
 *	  A last look at what the clients left: the tree's own check, every block
 *	  accounted for, and every key looked at and changed once more.
 */
#include "sim/client.h"
#include "sim/history.h"
#include "sim/world.h"

struct inventory
{
	uint64_t keys;
	int last;
};

static bool
count_entry(void *argument, const uint8_t *entry, size_t length)
{
	struct inventory *inventory = argument;
	int key = keys_find(&world.keys, entry, length);

	if (key < 0 || key <= inventory->last)
	{
		world_violation("verify met key %d after key %d", key, inventory->last);
		return false;
	}
	inventory->last = key;
	inventory->keys |= UINT64_C(1) << key;
	return true;
}

static bool
verify(struct client *client)
{
	struct inventory inventory = {.last = -1};
	struct smart_verify_report report;
	char message[256] = "";
	uint64_t start = ++world.now;
	uint64_t blocks;
	smart_status status = smart_tree_verify(client->tree, count_entry, &inventory, &report, message, sizeof(message));

	if (status != SMART_OK)
	{
		world_violation("verify: %s: %s", smart_status_text(status), message);
		return false;
	}
	++world.now;
	for (unsigned int key = 0; key < KEYS; key++)
	{
		if (history_touched(key) || (inventory.keys >> key & 1) != 0)
			history_add(client->number, EVENT_LOOKUP, key, start, world.now,
						(inventory.keys >> key & 1) != 0 ? RESULT_YES : RESULT_NO);
	}
	blocks = report.leaves;
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		blocks += report.nodes[kind];
	if (blocks > world.allocated || (blocks < world.allocated && world_keeps_count()))
		world_violation("the tree has %llu blocks, but %llu are neither free nor retired", (unsigned long long) blocks,
						(unsigned long long) world.allocated);
	return true;
}

/* The whole range in one direction, then every key that was ever used, changed and looked at. */
void
client_finish(struct client *client)
{
	struct range all = {.from = world.keys.bytes[0], .to = world.keys.bytes[0]};

	if (dice_one_in(&world.dice, 2) && !verify(client))
		return;
	client_scan(client, &all, dice_one_in(&world.dice, 2), 1000);
	for (unsigned int key = 0; key < KEYS && !world_failed(); key++)
	{
		if (!history_touched(key))
			continue;
		client_single(client, EVENT_LOOKUP, key);
		client_single(client, (world.seed + key) % 3 != 0 ? EVENT_INSERT : EVENT_REMOVE, key);
		client_single(client, EVENT_LOOKUP, key);
		if (world.plan.values && world.seed % 2 == 0)
		{
			client_single(client, EVENT_UPDATE, key);
			client_single(client, EVENT_LOOKUP, key);
		}
	}
	if (world_failed())
		return;
	client_maintain(client, world.keys.hot[0]);
	client_scan(client, &all, dice_one_in(&world.dice, 2), 1000);
	verify(client);
}
