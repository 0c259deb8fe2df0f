/*
 * history.c
 *	  Recording, and the check per key: a search for an order of the events, as
 *	  Wing and Gong described it, in segments between quiet moments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/history.h"
#include "sim/world.h"

/* Events of a segment, one bit each. */
typedef unsigned __int128 event_set;

#define EVENTS_MAX  8192
#define SEGMENT_MAX 128

struct event
{
	enum event_kind kind;
	enum event_result result;
	int client;
	unsigned int key;
	uint64_t start;
	uint64_t end;
	int next; /* of the same key */
};

static struct event events[EVENTS_MAX];
static unsigned int count;
static uint64_t touched;

void
history_reset(void)
{
	count = 0;
	touched = 0;
}

uint64_t
history_count(void)
{
	return count;
}

bool
history_touched(unsigned int key)
{
	return ((touched >> key) & 1) != 0;
}

void
history_add(int client, enum event_kind kind, unsigned int key, uint64_t start, uint64_t end, enum event_result result)
{
	smart_assert(count < EVENTS_MAX && key < KEYS && start <= end);
	if (kind == EVENT_INSERT)
		touched |= UINT64_C(1) << key;
	events[count++] =
		(struct event){.kind = kind, .result = result, .client = client, .key = key, .start = start, .end = end};
}

int
history_begin(int client, enum event_kind kind, unsigned int key)
{
	history_add(client, kind, key, ++world.now, NEVER, RESULT_MAYBE);
	return (int) count - 1;
}

void
history_end(int event, enum event_result result)
{
	events[event].result = result;
	events[event].end = ++world.now;
}

void
history_cancel(int event)
{
	/* A lookup that may not have happened says nothing. */
	events[event].kind = EVENT_LOOKUP;
	history_end(event, RESULT_MAYBE);
}

/* No verb of the dead takes effect later, so neither do its operations. */
void
history_died(int client)
{
	for (unsigned int i = 0; i < count; i++)
	{
		if (events[i].client == client && events[i].end == NEVER)
			events[i].end = world.now;
	}
}

/* ---- the check ---- */

/*
 * The state after an event, present or absent, or -1: its result contradicts
 * the state before.
 */
static int
apply(const struct event *event, int present)
{
	switch (event->kind)
	{
		case EVENT_LOOKUP:
			return event->result > RESULT_YES || (event->result == RESULT_YES) == (present == 1) ? present : -1;
		case EVENT_INSERT:
			return event->result > RESULT_YES || (event->result == RESULT_YES) == (present == 0) ? 1 : -1;
		default:
			return event->result > RESULT_YES || (event->result == RESULT_YES) == (present == 1) ? 0 : -1;
	}
}

/* One segment: its events in order of their starts, and what was visited already. */
struct segment
{
	const struct event *events[SEGMENT_MAX];
	unsigned int count;
	int before;  /* states that it can begin in: bit 0 absent, bit 1 present */
	int results; /* states that it can end in */
};

#define VISITED_SLOTS 65536

struct visited
{
	event_set mask;
	uint32_t stamp;
	uint32_t present;
};

static struct visited visited[VISITED_SLOTS];
static uint32_t visited_stamp;

/* Remembers (mask, present) of this segment; true if it was there, or there is no room to remember. */
static bool
seen_before(event_set mask, int present)
{
	uint64_t hash =
		(((uint64_t) mask ^ (uint64_t) (mask >> 64) * 31) * 2 + (uint64_t) present) * UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned int probe = 0; probe < 64; probe++)
	{
		struct visited *slot = &visited[(hash + probe) >> 7 & (VISITED_SLOTS - 1)];

		if (slot->stamp != visited_stamp)
		{
			*slot = (struct visited){.mask = mask, .stamp = visited_stamp, .present = (uint32_t) present};
			return false;
		}
		if (slot->mask == mask && slot->present == (uint32_t) present)
			return true;
		hash += UINT64_C(1) << 7;
	}
	return false;
}

/* What the events done so far leave open. */
struct frontier
{
	uint64_t latest_start; /* of those done: one that ended before cannot come now */
	uint64_t first_end;    /* of those that have to come yet: one that began later cannot come now */
	bool complete;         /* all that have to come are done */
};

static void
find_frontier(const struct segment *segment, event_set done, struct frontier *frontier)
{
	*frontier = (struct frontier){.first_end = NEVER, .complete = true};
	for (unsigned int i = 0; i < segment->count; i++)
	{
		const struct event *event = segment->events[i];

		if ((done >> i & 1) != 0)
			frontier->latest_start = event->start > frontier->latest_start ? event->start : frontier->latest_start;
		else if (event->result != RESULT_MAYBE)
		{
			frontier->complete = false;
			frontier->first_end = event->end < frontier->first_end ? event->end : frontier->first_end;
		}
	}
}

/*
 * Tries every event that may come next.  One that may not have happened at all
 * comes only where it changes something; it is never waited for.
 */
static void
explore(struct segment *segment, event_set done, int present)
{
	struct frontier frontier;

	if (segment->results == 3 || seen_before(done, present))
		return;
	find_frontier(segment, done, &frontier);
	if (frontier.complete)
		segment->results |= 1 << present;
	for (unsigned int i = 0; i < segment->count; i++)
	{
		const struct event *event = segment->events[i];
		int after;

		if ((done >> i & 1) != 0 || event->start > frontier.first_end)
			continue;
		if (event->result == RESULT_MAYBE && event->end < frontier.latest_start)
			continue;
		after = apply(event, present);
		if (after >= 0 && (event->result != RESULT_MAYBE || after != present))
			explore(segment, done | (event_set) 1 << i, after);
	}
}

/* The states after a segment that began in one of states. */
static int
run_segment(struct segment *segment, int states)
{
	segment->before = states;
	segment->results = 0;
	for (int present = 0; present <= 1; present++)
	{
		if ((states >> present & 1) == 0)
			continue;
		if (++visited_stamp == 0)
		{
			memset(visited, 0, sizeof(visited));
			visited_stamp = 1;
		}
		explore(segment, 0, present);
	}
	return segment->results;
}

static void
report(unsigned int key, const struct segment *segment)
{
	static const char *const states[] = {"", "absent", "present", "present or absent"};
	static const char *const kinds[] = {"lookup", "insert", "remove"};
	static const char *const results[] = {"no", "yes", "any", "maybe"};
	char text[sizeof(world.message)];
	int length = snprintf(text, sizeof(text), "key %u, %s before, no order explains:", key, states[segment->before]);

	for (unsigned int i = 0; i < segment->count && length < (int) sizeof(text); i++)
		length +=
			snprintf(text + length, sizeof(text) - (size_t) length, " c%d:%s[%llu,%lld]=%s", segment->events[i]->client,
					 kinds[segment->events[i]->kind], (unsigned long long) segment->events[i]->start,
					 (long long) segment->events[i]->end, results[segment->events[i]->result]);
	world_violation("%s", text);
}

static int
by_start(const void *a, const void *b)
{
	uint64_t x = (*(const struct event *const *) a)->start;
	uint64_t y = (*(const struct event *const *) b)->start;

	return (x > y) - (x < y);
}

static void
check_key(unsigned int key, const struct event **list, unsigned int n)
{
	struct segment segment = {.count = 0};
	uint64_t last_end = 0;
	int states = 1; /* a tree begins empty */

	qsort(list, n, sizeof(list[0]), by_start);
	for (unsigned int i = 0; i <= n; i++)
	{
		if (i == n || list[i]->start > last_end)
		{
			if (segment.count > 0)
				states = run_segment(&segment, states);
			if (states == 0)
			{
				report(key, &segment);
				return;
			}
			segment.count = 0;
		}
		if (i == n)
			break;
		if (segment.count == SEGMENT_MAX)
		{
			world_violation("more than %d operations overlap on one key: the plan is too large to check", SEGMENT_MAX);
			return;
		}
		segment.events[segment.count++] = list[i];
		if (list[i]->end > last_end)
			last_end = list[i]->end;
	}
}

void
history_check(void)
{
	static const struct event *list[EVENTS_MAX];
	int first[KEYS];

	for (unsigned int key = 0; key < KEYS; key++)
		first[key] = -1;
	for (unsigned int i = count; i-- > 0;)
	{
		events[i].next = first[events[i].key];
		first[events[i].key] = (int) i;
	}
	for (unsigned int key = 0; key < KEYS && !world_failed(); key++)
	{
		unsigned int n = 0;

		for (int i = first[key]; i >= 0; i = events[i].next)
		{
			/* A lookup that saw nothing says nothing. */
			if (events[i].kind != EVENT_LOOKUP || events[i].result != RESULT_MAYBE)
				list[n++] = &events[i];
		}
		if (n > 0)
			check_key(key, list, n);
	}
}
