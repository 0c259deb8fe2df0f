/*
 * ranges.c
 *	  Scans and bulk deletes: many keys at once, each of them an event.
 */
#include <string.h>

#include "sim/client.h"
#include "sim/history.h"
#include "sim/world.h"

#define PIECES_MAX 8

/* ---- scans ---- */

/* Bounds of any length, or none; now and then an empty range. */
void
client_choose_range(struct range *range)
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
	bool backward;
	uint64_t start;
	int last;       /* key that came last, -1: none */
	uint64_t found; /* keys, one bit each */
};

static void
walk_item(struct walk *walk, const struct smart_batch *batch, uint32_t i)
{
	uint8_t entry[2 * KEY_BYTES_MAX];
	const struct smart_item *item = &batch->items[i];
	size_t length = batch->prefix_length + (size_t) item->length;
	int key = -1;

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

/* A range cut into ranges that follow one another, as a scan with an array has them. */
struct pieces
{
	unsigned int count;
	struct range piece[PIECES_MAX]; /* in the scan's direction */
};

static void
cut_range(const struct range *range, bool backward, struct pieces *pieces)
{
	struct range rest = *range;

	pieces->count = 0;
	for (unsigned int key = dice_below(&world.dice, KEYS / 4); key < KEYS && pieces->count < PIECES_MAX - 1;
		 key += dice_between(&world.dice, 1, KEYS / 4))
	{
		if (!in_range(range, key))
			continue;
		pieces->piece[pieces->count] = rest;
		pieces->piece[pieces->count].to = world.keys.bytes[key];
		pieces->piece[pieces->count++].to_length = world.keys.key_length[key];
		rest.from = world.keys.bytes[key];
		rest.from_length = world.keys.key_length[key];
	}
	pieces->piece[pieces->count++] = rest;
	for (unsigned int i = 0; backward && i < pieces->count / 2; i++)
	{
		struct range kept = pieces->piece[i];

		pieces->piece[i] = pieces->piece[pieces->count - 1 - i];
		pieces->piece[pieces->count - 1 - i] = kept;
	}
}

/* Says all of the pieces but now and then the last ones, which come all the same. */
static smart_status
say_pieces(struct smart_scan *scan, const struct pieces *pieces, bool backward)
{
	uint8_t ends[PIECES_MAX][KEY_BYTES_MAX];
	struct smart_point points[PIECES_MAX];
	unsigned int count = dice_one_in(&world.dice, 4) ? dice_between(&world.dice, 1, pieces->count) : pieces->count;

	for (unsigned int i = 0; i < count; i++)
	{
		const struct range *piece = &pieces->piece[i];
		size_t length = backward ? piece->to_length : piece->from_length;

		memcpy(ends[i], backward ? piece->to : piece->from, length);
		points[i] = (struct smart_point){.bytes = ends[i], .length = (uint32_t) length};
	}
	return smart_scan_points(scan, points, count, backward);
}

/* Walks through one range to its end, or for batches_max batches, of which it takes those that it had. */
static smart_status
walk_range(struct walk *walk, struct smart_scan *scan, unsigned int *batches_max)
{
	smart_status status = SMART_OK;

	while (status == SMART_OK && *batches_max > 0)
	{
		struct smart_batch batch;

		--*batches_max;
		status = smart_scan_next(scan, &batch);
		++world.now;
		if (status == SMART_OK && batch.count == 0)
			world_violation("a scan returned an empty batch");
		for (uint32_t i = 0; status == SMART_OK && i < batch.count; i++)
			walk_item(walk, &batch, walk->backward ? batch.count - 1 - i : i);
	}
	return status;
}

static smart_status
walk_pieces(struct walk *walk, struct smart_scan *scan, unsigned int batches_max)
{
	struct pieces pieces;
	smart_status status;

	cut_range(&walk->range, walk->backward, &pieces);
	status = say_pieces(scan, &pieces, walk->backward);
	for (unsigned int i = 0; i < pieces.count && status == SMART_OK; i++)
	{
		const struct range *piece = &pieces.piece[i];

		status =
			smart_scan_seek_point(scan, piece->from, piece->from_length, piece->to, piece->to_length, walk->backward);
		if (status == SMART_OK)
			status = walk_range(walk, scan, &batches_max);
		if (status == SMART_DONE && i + 1 < pieces.count)
			status = SMART_OK;
	}
	return status;
}

static smart_status
open_scan(struct client *client, struct smart_scan **scan)
{
	if (!owners_apply(client))
		return SMART_NO_SPACE;
	*scan = client->kept_scan;
	client->kept_scan = NULL;
	return *scan != NULL ? SMART_OK : smart_scan_open(client->tree, scan);
}

static void
close_scan(struct client *client, struct smart_scan *scan)
{
	if (world.plan.keep_scans && client->kept_scan == NULL)
		client->kept_scan = scan;
	else
		smart_scan_close(scan);
}

void
client_scan(struct client *client, const struct range *range, bool backward, unsigned int batches_max)
{
	struct walk walk = {.client = client, .range = *range, .backward = backward, .start = ++world.now, .last = -1};
	bool in_pieces = dice_one_in(&world.dice, 3);
	struct smart_scan *scan = NULL;
	smart_status status = open_scan(client, &scan);

	world_trace("scan begins, %s%s", backward ? "backward" : "forward", in_pieces ? ", in pieces" : "");
	if (status == SMART_OK && in_pieces)
		status = walk_pieces(&walk, scan, batches_max);
	else if (status == SMART_OK)
	{
		status = smart_scan_seek(scan, range->from, range->from_length, range->to, range->to_length, backward);
		if (status == SMART_OK)
			status = walk_range(&walk, scan, &batches_max);
	}
	if (status == SMART_DONE)
		walk_absent(&walk);
	else if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED &&
			 status != SMART_NO_SPACE)
		world_violation("scan: %s", smart_status_text(status));
	world_trace("scan ends: %s, %llx", smart_status_text(status), (unsigned long long) walk.found);
	if (scan != NULL)
		close_scan(client, scan);
	++world.now;
	client_after(client, "scan");
}

/* ---- bulk delete ---- */

#define MEETINGS_MAX 8

/*
 * Every dead key is removed once, and perhaps again as often as it is met: a client
 * that puts it in meanwhile may find it removed twice.
 */
struct erasure
{
	const struct client *client;
	uint64_t dead;    /* keys, one bit each */
	int events[KEYS]; /* the removal that has to be, -1: none */
	uint64_t told;    /* how often a key was told of */
	unsigned int met[KEYS];
	int meetings[KEYS][MEETINGS_MAX];
};

static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	struct erasure *erasure = argument;
	int key = keys_find(&world.keys, entry, length);

	if (key < 0)
	{
		world_violation("bulk delete met something that was never inserted");
		return false;
	}
	if ((erasure->dead >> key & 1) == 0)
		return false;
	if (erasure->met[key] < MEETINGS_MAX)
		erasure->meetings[key][erasure->met[key]++] =
			history_begin(erasure->client->number, EVENT_REMOVE, (unsigned int) key);
	return true;
}

/* smart_found_fn: what is told of is removed from a journal, so nothing may be that is to stay. */
static void
told_of(void *argument, const uint8_t *entry, size_t length)
{
	struct erasure *erasure = argument;
	int key = keys_find(&world.keys, entry, length);

	if (key < 0 || (erasure->dead >> key & 1) == 0)
		world_violation("bulk delete told of an entry that is to stay");
	erasure->told++;
}

/* smart_next_key_fn: the least dead key that is not below from. */
static bool
next_dead(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key, size_t *key_length)
{
	const struct erasure *erasure = argument;
	int least = -1;

	for (int i = 0; i < KEYS; i++)
	{
		if ((erasure->dead >> i & 1) == 0 ||
			smart_compare_bytes(world.keys.bytes[i], world.keys.key_length[i], from, from_length) < 0)
			continue;
		if (least < 0 || smart_compare_bytes(world.keys.bytes[i], world.keys.key_length[i], world.keys.bytes[least],
											 world.keys.key_length[least]) < 0)
			least = i;
	}
	if (least < 0)
		return false;
	*key = world.keys.bytes[least];
	*key_length = world.keys.key_length[least];
	return true;
}

static void
note_erasure(const struct erasure *erasure, bool complete)
{
	for (unsigned int key = 0; key < KEYS; key++)
	{
		if (erasure->events[key] >= 0)
			history_end(erasure->events[key], complete ? RESULT_ANY : RESULT_MAYBE);
		for (unsigned int i = 0; i < erasure->met[key]; i++)
			history_end(erasure->meetings[key][i], RESULT_MAYBE);
	}
}

void
client_erase(struct client *client)
{
	struct erasure erasure = {.client = client, .dead = dice_roll(&world.dice)};
	/* Some take one leaf only: nothing has to go then, but what was met may be gone. */
	bool whole = !dice_one_in(&world.dice, 3);
	unsigned int first = dice_below(&world.dice, KEYS);
	struct smart_victims victims = {.dead = is_dead, .argument = &erasure};
	uint64_t visited;
	uint64_t removed = 0;
	smart_status status;

	if (dice_one_in(&world.dice, 2))
		erasure.dead &= dice_roll(&world.dice);
	/* Should the client die, any of them may have been removed by then. */
	for (unsigned int key = 0; key < KEYS; key++)
		erasure.events[key] = whole && (erasure.dead >> key & 1) != 0 && history_touched(key)
								  ? history_begin(client->number, EVENT_REMOVE, key)
								  : -1;
	world_trace("bulk delete of %llx begins", (unsigned long long) erasure.dead);
	victims.at_once = dice_one_in(&world.dice, 2);
	if (victims.at_once)
		victims.found = told_of;
	if (whole && dice_one_in(&world.dice, 2))
		status = smart_tree_remove_many(client->tree, &victims, next_dead, &removed);
	else if (whole)
		status = smart_tree_bulk_delete(client->tree, &victims, NULL, &visited, &removed);
	else
		status = smart_tree_weed(client->tree, world.keys.bytes[first], world.keys.key_length[first], is_dead, &erasure,
								 &removed);
	world_trace("bulk delete ends: %s", smart_status_text(status));
	if (status == SMART_OK && whole && victims.at_once && erasure.told < removed)
		world_violation("bulk delete told of fewer entries than it removed");
	++world.now;
	note_erasure(&erasure, status == SMART_OK);
	if (status != SMART_OK && status != SMART_UNREACHABLE && status != SMART_INTERRUPTED &&
		(status != SMART_NO_SPACE || world.plan.full))
		world_violation("bulk delete: %s", smart_status_text(status));
	client_after(client, "bulk delete");
}
