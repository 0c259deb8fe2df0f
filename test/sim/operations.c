/*
 * operations.c
 *	  Operations on one key, and maintenance: what was called and what came back.
 */
#include <string.h>

#include "sim/client.h"
#include "sim/history.h"
#include "sim/watch.h"
#include "sim/world.h"

/* Values begin above what stands for any. */
#define PRESENT_VALUE 1

/* What a status that is not SMART_OK means for the history. */
static void
note_failure(int event, smart_status status, const char *what)
{
	switch (status)
	{
		case SMART_UNREACHABLE: /* some of it may have happened */
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

void
client_after(struct client *client, const char *what)
{
	if (client->pin != NEVER)
		world_violation("%s left its epoch entered", what);
	for (unsigned int i = 0; i < world.plan.locks; i++)
	{
		if (client->compute->locks[i].holder == client->number)
			world_violation("%s left a leaf locked", what);
	}
	if (rdwc_locks_held(client) > 0)
		world_violation("%s left a leaf locked", what);
}

/* The call itself, with a value or, a lookup in a tree with values, for one. */
static smart_status
call(struct client *client, enum event_kind kind, unsigned int key, int event, bool *result)
{
	uint8_t entry[KEY_BYTES_MAX + SMART_VALUE_BYTES];
	unsigned int key_length = world.keys.key_length[key];
	unsigned int length = world.keys.length[key];
	uint64_t value = 0;
	smart_status status;

	memcpy(entry, world.keys.bytes[key], length);
	if (world.plan.values && (kind == EVENT_INSERT || kind == EVENT_UPDATE))
	{
		value = ++world.value + PRESENT_VALUE;
		memcpy(entry + length, &value, sizeof(value));
		length += (unsigned int) sizeof(value);
		history_value(event, value);
	}
	if (world.plan.log && client->number != SOLO)
	{
		status = owners_call(client, kind, entry, key_length, length, &value, result);
		if (status == SMART_OK && kind == EVENT_LOOKUP && world.plan.values && *result)
			history_value(event, value);
		return status;
	}
	switch (kind)
	{
		case EVENT_LOOKUP:
			if (!world.plan.values)
				return smart_tree_lookup(client->tree, entry, key_length, result);
			status = smart_tree_get(client->tree, entry, key_length, &value, result);
			if (status == SMART_OK && *result)
				history_value(event, value);
			return status;
		case EVENT_INSERT:
			return smart_tree_insert(client->tree, entry, key_length, length, result);
		case EVENT_UPDATE:
			return smart_tree_update(client->tree, entry, key_length, value, result);
		default:
			return smart_tree_remove(client->tree, entry, key_length, result);
	}
}

void
client_single(struct client *client, enum event_kind kind, unsigned int key)
{
	static const char *const names[] = {"lookup", "insert", "remove", "update"};
	uint64_t unknown = rdwc_unknown(client);
	uint64_t appends = client->appends;
	uint64_t start = world.now + 1;
	bool result = false;
	bool unsure;
	smart_status status;
	int event;

	world_trace("%s %u begins", names[kind], key);
	event = history_begin(client->number, kind, key);
	status = call(client, kind, key, event, &result);
	unsure = rdwc_unknown(client) != unknown;
	watch_counts[WATCH_DUPLICATE] +=
		kind == EVENT_INSERT && status == SMART_OK && !result && client->appends != appends;
	/* Who cannot know whether another client added its entry may add it again, or say of any entry that it is its own. */
	if (status == SMART_OK)
		history_end(event, unsure && result ? RESULT_ANY : result ? RESULT_YES : RESULT_NO);
	else
		note_failure(event, status, names[kind]);
	if (status == SMART_NO_SPACE && kind != EVENT_INSERT && world.plan.full)
		world_violation("%s finds no room", names[kind]);
	if (unsure)
		history_add_again(event, start, world.now);
	world_trace("%s %u ends: %s", names[kind], key, result ? "yes" : "no");
	client_after(client, names[kind]);
}

/* ---- inserts that go together ---- */

/* Some of the hot keys, in order, one of them perhaps twice, and perhaps some of a run; how many. */
static unsigned int
choose_many(unsigned int *keys)
{
	unsigned int count = 0;
	unsigned int from = KEYS;
	unsigned int end = KEYS;

	if (world.settings.bias == BIAS_MANY && dice_one_in(&world.dice, 2))
	{
		from = dice_below(&world.dice, KEYS);
		end = from + dice_between(&world.dice, 4, 32);
	}
	for (unsigned int key = 0; key < KEYS; key++)
	{
		unsigned int times = key >= from && key < end && !dice_one_in(&world.dice, 5);

		for (unsigned int i = 0; i < world.plan.hot; i++)
			times += world.keys.hot[i] == key && dice_below(&world.dice, 4) < (world.plan.lost_one_in != 0 ? 1U : 3U);
		for (unsigned int i = 0; i < times; i++)
			keys[count++] = key;
	}
	return count;
}

/* What became of an entry, as far as the call has told; each is an event of its own. */
static void
note_addition(int event, const struct smart_addition *addition, smart_status status)
{
	if (addition->settled)
		history_end(event, addition->added ? RESULT_YES : RESULT_NO);
	else
		note_failure(event, status, "inserts");
	watch_counts[WATCH_TOGETHER] += addition->settled;
}

void
client_insert_many(struct client *client)
{
	struct smart_addition additions[KEYS + HOT_MAX];
	unsigned int keys[KEYS + HOT_MAX];
	int events[KEYS + HOT_MAX];
	unsigned int count = choose_many(keys);
	smart_status status;

	world_trace("%u inserts begin", count);
	for (unsigned int i = 0; i < count; i++)
	{
		events[i] = history_begin(client->number, EVENT_INSERT, keys[i]);
		additions[i] = (struct smart_addition){.bytes = world.keys.bytes[keys[i]],
											   .key_length = world.keys.key_length[keys[i]],
											   .length = world.keys.length[keys[i]]};
	}
	status = smart_tree_insert_many(client->tree, additions, count);
	for (unsigned int i = 0; i < count; i++)
		note_addition(events[i], &additions[i], status);
	world_trace("inserts end: %s", smart_status_text(status));
	client_after(client, "inserts");
}

/* ---- points ---- */

/* What a visit met: the keys, one bit each. */
struct visit
{
	const uint8_t *point;
	int last;
	uint64_t keys;
};

static void
visit_entry(struct visit *visit, const uint8_t *head, size_t head_length, const uint8_t *tail, size_t tail_length)
{
	uint8_t entry[KEY_BYTES_MAX];
	int key;

	smart_assert(head_length + tail_length <= sizeof(entry));
	memcpy(entry, head, head_length);
	memcpy(entry + head_length, tail, tail_length);
	key = keys_find(&world.keys, entry, head_length + tail_length);
	if (key <= visit->last || memcmp(entry, visit->point, world.keys.point_length) != 0)
		world_violation("a point's entries: key %d after key %d", key, visit->last);
	else
		visit->keys |= UINT64_C(1) << key;
	visit->last = key;
}

/* By what is known, or else by a scan that keeps what it finds; either direction. */
static smart_status
visit_all(struct client *client, struct visit *visit, bool backward)
{
	size_t length = world.keys.point_length;
	uint8_t behind[KEY_BYTES_MAX];
	struct smart_result result;
	struct smart_scan *scan;
	struct smart_batch batch;
	smart_status status;

	if (smart_tree_result(client->tree, visit->point, length, &result))
	{
		for (unsigned int i = 0; i < result.length; i += 1 + result.tails[i])
			visit_entry(visit, visit->point, length, result.tails + i + 1, result.tails[i]);
		return SMART_OK;
	}
	status = smart_scan_open(client->tree, &scan);
	if (status != SMART_OK)
		return status;
	memcpy(behind, visit->point, length);
	status = smart_scan_seek(scan, visit->point, length, behind, smart_successor(behind, length), backward);
	if (status == SMART_OK)
		smart_scan_keep(scan, result.ticket);
	while (status == SMART_OK && (status = smart_scan_next(scan, &batch)) == SMART_OK)
	{
		if (backward)
			visit->last = -1;
		for (uint32_t i = 0; i < batch.count; i++)
			visit_entry(visit, batch.prefix, batch.prefix_length, batch.bytes + batch.items[i].offset,
						batch.items[i].length);
	}
	smart_scan_close(scan);
	return status == SMART_DONE ? SMART_OK : status;
}

void
client_point(struct client *client, unsigned int key_number)
{
	struct visit visit = {.point = world.keys.bytes[key_number], .last = -1};
	uint64_t start = ++world.now;
	smart_status status;

	world_trace("point of %u begins", key_number);
	status = owners_apply(client) ? visit_all(client, &visit, dice_one_in(&world.dice, 2)) : SMART_NO_SPACE;
	world_trace("point of %u ends: %s, %llx", key_number, status == SMART_OK ? "known" : "not known",
				(unsigned long long) visit.keys);
	++world.now;
	if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED && status != SMART_NO_SPACE)
		world_violation("a point: %s", smart_status_text(status));
	for (unsigned int key = 0; status == SMART_OK && key < KEYS; key++)
	{
		if (memcmp(world.keys.bytes[key], visit.point, world.keys.point_length) == 0 &&
			(history_touched(key) || (visit.keys >> key & 1) != 0))
			history_add(client->number, EVENT_LOOKUP, key, start, world.now,
						(visit.keys >> key & 1) != 0 ? RESULT_YES : RESULT_NO);
	}
	client_after(client, "a point");
}

/* ---- maintenance ---- */

/* Replaces the node above a key, merging or not, or tidies as a removal does. */
void
client_maintain(struct client *client, unsigned int key_number)
{
	struct smart_key key = {.bytes = world.keys.bytes[key_number], .length = world.keys.key_length[key_number]};
	struct smart_tree *tree = client->tree;
	struct smart_place place;
	smart_status status;

	world_trace("maintenance at %u begins", key_number);
	smart_enter(tree);
	if (dice_one_in(&world.dice, 3))
		status = smart_tidy(tree, &key);
	else
	{
		status = smart_find_strict(tree, &key, &place);
		if (status == SMART_OK && place.node != NULL)
			status = smart_replace_node(tree, &key, place.node, dice_one_in(&world.dice, 2), NULL);
	}
	status = smart_leave(tree, status);
	world_trace("maintenance ends: %s", smart_status_text(status));
	if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED && status != SMART_NO_SPACE)
		world_violation("maintenance: %s", smart_status_text(status));
	client_after(client, "maintenance");
}
