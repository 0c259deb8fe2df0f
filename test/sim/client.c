/*
 * client.c
 *	  Clients: they call the tree and write down what it says.
 */
#include <string.h>

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
		.lease = compute->lease,
		.backend = (uint32_t) number + 1,
		.tiny_nodes = (uint8_t) world.plan.tiny_nodes,
	};

	client->number = number;
	client->state = CLIENT_READY;
	client->compute = compute;
	client->pin = NEVER;
	client->stalled_until = 0;
	client->operation = -1;
	client->cache = &client->own_cache;
	if (world.plan.cache_shared && number != SOLO)
		client->cache = &world.clients[compute - world.compute].own_cache;
	if (!keep_cache)
	{
		client->own_cache.has_root = false;
		for (int i = 0; i < CACHE_ENTRIES; i++)
			client->own_cache.entries[i].slot = 0;
	}
	client->control = (struct sim_control) {
		.yield = schedule_yield,
		.random = next_random,
		.fails = world.plan.lost_one_in != 0 ? lost_completion : NULL,
		.observe = watch_request,
		.argument = client,
	};
	services_init(client);
	if (smart_tree_open(sim_fabric_init(&client->fabric, &world.memory, &client->control, world.plan.direct),
						&client->env, &client->services, &options, &client->tree) != SMART_OK)
		world_violation("a handle could not be opened");
}

/* What a status that is not SMART_OK means for the history. */
static void
note_failure(int event, smart_status status, const char *what)
{
	switch (status)
	{
		case SMART_UNREACHABLE:	/* some of it may have happened */
			history_end(event, RESULT_MAYBE);
			break;
		case SMART_NO_SPACE:
		case SMART_INTERRUPTED:
			history_cancel(event);
			break;
		default:
			history_cancel(event);
			world_violation("%s: %s", what, smart_status_text(status));
			break;
	}
	world_trace("%s: %s", what, smart_status_text(status));
}

static void
after_operation(struct client *client, const char *what)
{
	client->operation = -1;
	if (client->pin != NEVER)
		world_violation("%s left its epoch entered", what);
	for (unsigned int i = 0; i < world.plan.locks; i++)
	{
		if (client->compute->locks[i].holder == client->number)
			world_violation("%s left a leaf locked", what);
	}
}

static void
single(struct client *client, enum event_kind kind, unsigned int key)
{
	static const char *const names[] = {"lookup", "insert", "remove"};
	const uint8_t *bytes = world.keys.bytes[key];
	unsigned int key_length = world.keys.key_length[key];
	bool		result = false;
	smart_status status;

	world_trace("%s %u begins", names[kind], key);
	client->operation = history_begin(client->number, kind, key);
	if (kind == EVENT_LOOKUP)
		status = smart_tree_lookup(client->tree, bytes, key_length, &result);
	else if (kind == EVENT_INSERT)
		status = smart_tree_insert(client->tree, bytes, key_length, world.keys.length[key], &result);
	else
		status = smart_tree_remove(client->tree, bytes, key_length, &result);
	if (status == SMART_OK)
		history_end(client->operation, result ? RESULT_YES : RESULT_NO);
	else
		note_failure(client->operation, status, names[kind]);
	world_trace("%s %u ends: %s", names[kind], key, result ? "yes" : "no");
	after_operation(client, names[kind]);
}

/* ---- scans ---- */

struct range
{
	const uint8_t *from;
	const uint8_t *to;
	size_t		from_length;
	size_t		to_length;		/* 0: no end */
};

/* Bounds of any length, or none; now and then an empty range. */
static void
choose_range(struct range *range)
{
	unsigned int from = dice_below(&world.dice, KEYS);
	unsigned int to = dice_below(&world.dice, KEYS);

	memset(range, 0, sizeof(*range));
	if (from > to && !dice_one_in(&world.dice, 16))
	{
		unsigned int kept = from;

		from = to;
		to = kept;
	}
	range->from = world.keys.bytes[from];
	range->to = world.keys.bytes[to];
	if (!dice_one_in(&world.dice, 3))
		range->from_length = dice_between(&world.dice, 1, world.keys.key_length[from]);
	if (!dice_one_in(&world.dice, 3))
		range->to_length = dice_between(&world.dice, 1, world.keys.key_length[to]);
}

static bool
in_range(const struct range *range, unsigned int key)
{
	const uint8_t *bytes = world.keys.bytes[key];
	unsigned int length = world.keys.length[key];

	return smart_compare_bytes(bytes, length, range->from, range->from_length) >= 0 &&
		(range->to_length == 0 || smart_compare_bytes(bytes, length, range->to, range->to_length) < 0);
}

/* A scan on its way. */
struct walk
{
	struct client *client;
	struct range range;
	bool		backward;
	uint64_t	start;
	int			last;			/* key that came last, -1: none */
	uint64_t	found;			/* keys, one bit each */
};

static void
walk_item(struct walk *walk, const struct smart_batch *batch, uint32_t i)
{
	uint8_t		entry[2 * KEY_BYTES_MAX];
	const struct smart_item *item = &batch->items[i];
	size_t		length = batch->prefix_length + (size_t) item->length;
	int			key = -1;

	if (length <= sizeof(entry))
	{
		memcpy(entry, batch->prefix, batch->prefix_length);
		memcpy(entry + batch->prefix_length, batch->bytes + item->offset, item->length);
		key = keys_find(&world.keys, entry, length);
	}
	if (key < 0)
		world_violation("a scan returned something that was never inserted");
	else if (!in_range(&walk->range, (unsigned int) key))
		world_violation("a scan returned key %d, which lies outside of its range", key);
	else if (walk->last >= 0 && (walk->backward ? key >= walk->last : key <= walk->last))
		world_violation("a scan returned key %d after key %d", key, walk->last);
	else
	{
		walk->last = key;
		walk->found |= UINT64_C(1) << key;
		history_add(walk->client->number, EVENT_LOOKUP, (unsigned int) key, walk->start, world.now, RESULT_YES);
	}
}

/* The scan has come to its end: what it did not return was not there at some moment. */
static void
walk_absent(const struct walk *walk)
{
	for (unsigned int key = 0; key < KEYS; key++)
	{
		if ((walk->found >> key & 1) == 0 && history_touched(key) && in_range(&walk->range, key))
			history_add(walk->client->number, EVENT_LOOKUP, key, walk->start, world.now, RESULT_NO);
	}
}

static void
scan(struct client *client, const struct range *range, bool backward, unsigned int batches_max)
{
	struct walk walk = {.client = client, .range = *range, .backward = backward, .start = ++world.now, .last = -1};
	struct smart_scan *scan = NULL;
	struct smart_batch batch;
	smart_status status = smart_scan_open(client->tree, &scan);

	world_trace("scan begins, %s", backward ? "backward" : "forward");
	if (status == SMART_OK)
		status = smart_scan_seek(scan, range->from, range->from_length, range->to, range->to_length, backward);
	while (status == SMART_OK && batches_max-- > 0)
	{
		status = smart_scan_next(scan, &batch);
		++world.now;
		if (status == SMART_OK && batch.count == 0)
			world_violation("a scan returned an empty batch");
		for (uint32_t i = 0; status == SMART_OK && i < batch.count; i++)
			walk_item(&walk, &batch, backward ? batch.count - 1 - i : i);
	}
	if (status == SMART_DONE)
		walk_absent(&walk);
	else if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED && status != SMART_NO_SPACE)
		world_violation("scan: %s", smart_status_text(status));
	world_trace("scan ends: %s, %llx", smart_status_text(status), (unsigned long long) walk.found);
	if (scan != NULL)
		smart_scan_close(scan);
	++world.now;
	after_operation(client, "scan");
}

/* ---- bulk delete ---- */

#define MEETINGS_MAX 8

/*
 * Every dead key is removed once, and perhaps again as often as it is met: who
 * puts it in meanwhile may find it removed twice.
 */
struct sweep
{
	const struct client *client;
	uint64_t	dead;			/* keys, one bit each */
	int			events[KEYS];	/* the removal that has to be, -1: none */
	unsigned int met[KEYS];
	int			meetings[KEYS][MEETINGS_MAX];
};

static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	struct sweep *sweep = argument;
	int			key = keys_find(&world.keys, entry, length);

	if (key < 0)
	{
		world_violation("bulk delete met something that was never inserted");
		return false;
	}
	if ((sweep->dead >> key & 1) == 0)
		return false;
	if (sweep->met[key] < MEETINGS_MAX)
		sweep->meetings[key][sweep->met[key]++] = history_begin(sweep->client->number, EVENT_REMOVE, (unsigned int) key);
	return true;
}

static void
note_sweep(const struct sweep *sweep, bool complete)
{
	for (unsigned int key = 0; key < KEYS; key++)
	{
		if (sweep->events[key] >= 0)
			history_end(sweep->events[key], complete ? RESULT_ANY : RESULT_MAYBE);
		for (unsigned int i = 0; i < sweep->met[key]; i++)
			history_end(sweep->meetings[key][i], RESULT_MAYBE);
	}
}

static void
erase(struct client *client)
{
	struct sweep sweep = {.client = client, .dead = dice_roll(&world.dice)};
	uint64_t	visited;
	uint64_t	removed;
	smart_status status;

	if (dice_one_in(&world.dice, 2))
		sweep.dead &= dice_roll(&world.dice);
	/* Should the client die, any of them may have been removed by then. */
	for (unsigned int key = 0; key < KEYS; key++)
		sweep.events[key] = (sweep.dead >> key & 1) != 0 && history_touched(key) ?
			history_begin(client->number, EVENT_REMOVE, key) : -1;
	world_trace("bulk delete of %llx begins", (unsigned long long) sweep.dead);
	status = smart_tree_bulk_delete(client->tree, is_dead, NULL, &sweep, &visited, &removed);
	world_trace("bulk delete ends: %s", smart_status_text(status));
	++world.now;
	note_sweep(&sweep, status == SMART_OK);
	if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED && status != SMART_NO_SPACE)
		world_violation("bulk delete: %s", smart_status_text(status));
	after_operation(client, "bulk delete");
}

/* ---- maintenance ---- */

/* Replaces the node above a key, merging or not, or tidies as a removal does. */
static void
maintain(struct client *client, unsigned int key_number)
{
	struct smart_key key = {.bytes = world.keys.bytes[key_number], .length = world.keys.key_length[key_number]};
	struct smart_tree *tree = client->tree;
	struct smart_place place;
	smart_status status;

	world_trace("maintenance at %u begins", key_number);
	client->services.enter(&client->services);
	if (dice_one_in(&world.dice, 3))
		status = smart_tidy(tree, &key);
	else
	{
		status = smart_find_strict(tree, &key, &place);
		if (status == SMART_OK && place.node != NULL)
			status = smart_replace_node(tree, &key, place.node, dice_one_in(&world.dice, 2));
	}
	client->services.leave(&client->services);
	world_trace("maintenance ends: %s", smart_status_text(status));
	if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED && status != SMART_NO_SPACE)
		world_violation("maintenance: %s", smart_status_text(status));
	after_operation(client, "maintenance");
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
		single(client, EVENT_LOOKUP, world.keys.hot[i]);
}

static void
operate(struct client *client, enum operation_kind kind)
{
	struct range range;

	switch (kind)
	{
		case OPERATION_LOOKUP:
			single(client, EVENT_LOOKUP, hot_key());
			break;
		case OPERATION_INSERT:
			single(client, EVENT_INSERT, hot_key());
			break;
		case OPERATION_REMOVE:
			single(client, EVENT_REMOVE, hot_key());
			break;
		case OPERATION_SCAN:
			choose_range(&range);
			scan(client, &range, dice_one_in(&world.dice, 2), dice_one_in(&world.dice, 4) ? 2 : 1000);
			break;
		case OPERATION_ERASE:
			erase(client);
			break;
		case OPERATION_MAINTAIN:
			maintain(client, hot_key());
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
		prime(client);
	while (operations-- > 0 && !world_failed())
		operate(client, choose_operation());
}

/* A tree with something in it, before the clients start. */
void
client_setup(struct client *client)
{
	for (unsigned int i = 0; i < world.plan.setup && !world_failed(); i++)
	{
		unsigned int key = dice_one_in(&world.dice, 4) ? dice_below(&world.dice, KEYS) : hot_key();

		single(client, EVENT_INSERT, key);
		if (dice_one_in(&world.dice, 5))
			single(client, EVENT_REMOVE, hot_key());
		if (dice_one_in(&world.dice, 6))
			maintain(client, hot_key());
	}
}

/* ---- a last look at what the clients left ---- */

struct inventory
{
	uint64_t	keys;
	int			last;
};

static bool
count_entry(void *argument, const uint8_t *entry, size_t length)
{
	struct inventory *inventory = argument;
	int			key = keys_find(&world.keys, entry, length);

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
	char		message[256] = "";
	uint64_t	start = ++world.now;
	uint64_t	blocks;
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
	scan(client, &all, dice_one_in(&world.dice, 2), 1000);
	for (unsigned int key = 0; key < KEYS && !world_failed(); key++)
	{
		if (!history_touched(key))
			continue;
		single(client, EVENT_LOOKUP, key);
		single(client, (world.seed + key) % 3 != 0 ? EVENT_INSERT : EVENT_REMOVE, key);
		single(client, EVENT_LOOKUP, key);
	}
	if (world_failed())
		return;
	maintain(client, world.keys.hot[0]);
	scan(client, &all, dice_one_in(&world.dice, 2), 1000);
	verify(client);
}
