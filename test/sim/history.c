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
#define STATES_MAX  (SEGMENT_MAX + 2)

struct event
{
	enum event_kind kind;
	enum event_result result;
	int client;
	unsigned int key;
	uint32_t value; /* 0: none, or any */
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

void
history_add_again(int event, uint64_t start, uint64_t end)
{
	history_add(events[event].client, EVENT_INSERT, events[event].key, start, end, RESULT_MAYBE);
	events[count - 1].value = events[event].value;
}

int
history_begin(int client, enum event_kind kind, unsigned int key)
{
	history_add(client, kind, key, ++world.now, NEVER, RESULT_MAYBE);
	return (int) count - 1;
}

void
history_value(int event, uint64_t value)
{
	smart_assert(value <= UINT32_MAX);
	events[event].value = (uint32_t) value;
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

/* A key's state: absent, or present with a value, which is PRESENT where there is none. */
typedef int64_t key_state;

#define ABSENT  0
#define PRESENT 1
#define WRONG   (-1) /* an event's result contradicts the state before */

static bool
allows(const struct event *event, bool yes)
{
	return event->result > RESULT_YES || (event->result == RESULT_YES) == yes;
}

/* The state after an event. */
static key_state
apply(const struct event *event, key_state before)
{
	key_state value = event->value != 0 ? event->value : PRESENT;
	bool present = before != ABSENT;

	switch (event->kind)
	{
		case EVENT_LOOKUP:
			if (present && event->result == RESULT_YES && event->value != 0 && value != before)
				return WRONG;
			return allows(event, present) ? before : WRONG;
		case EVENT_INSERT:
			return !allows(event, !present) ? WRONG : present ? before : value;
		case EVENT_UPDATE:
			return !allows(event, present) ? WRONG : present ? value : ABSENT;
		default:
			return allows(event, present) ? ABSENT : WRONG;
	}
}

/* States that a segment can begin or end in. */
struct states
{
	unsigned int count;
	key_state state[STATES_MAX];
};

static void
add_state(struct states *states, key_state state)
{
	for (unsigned int i = 0; i < states->count; i++)
	{
		if (states->state[i] == state)
			return;
	}
	smart_assert(states->count < STATES_MAX);
	states->state[states->count++] = state;
}

/* One segment: its events in order of their starts, and what was visited already. */
struct segment
{
	const struct event *events[SEGMENT_MAX];
	unsigned int count;
	struct states before;
	struct states results;
};

#define VISITED_SLOTS 65536

struct visited
{
	event_set mask;
	uint32_t stamp;
	key_state state;
};

static struct visited visited[VISITED_SLOTS];
static uint32_t visited_stamp;

/* Remembers (mask, state) of this segment; true if it was there, or there is no room to remember. */
static bool
seen_before(event_set mask, key_state state)
{
	uint64_t hash =
		(((uint64_t) mask ^ (uint64_t) (mask >> 64) * 31) * 2 + (uint64_t) state) * UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned int probe = 0; probe < 64; probe++)
	{
		struct visited *slot = &visited[(hash + probe) >> 7 & (VISITED_SLOTS - 1)];

		if (slot->stamp != visited_stamp)
		{
			*slot = (struct visited){.mask = mask, .stamp = visited_stamp, .state = state};
			return false;
		}
		if (slot->mask == mask && slot->state == state)
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
	uint64_t first_lost;   /* likewise of those that may not have happened, and can still come: not behind it */
	bool complete;         /* all that have to come are done */
};

static void
find_frontier(const struct segment *segment, event_set done, struct frontier *frontier)
{
	*frontier = (struct frontier){.first_end = NEVER, .first_lost = NEVER, .complete = true};
	for (unsigned int i = 0; i < segment->count; i++)
	{
		if ((done >> i & 1) != 0 && segment->events[i]->start > frontier->latest_start)
			frontier->latest_start = segment->events[i]->start;
	}
	for (unsigned int i = 0; i < segment->count; i++)
	{
		const struct event *event = segment->events[i];

		if ((done >> i & 1) != 0)
			continue;
		if (event->result != RESULT_MAYBE)
		{
			frontier->complete = false;
			frontier->first_end = event->end < frontier->first_end ? event->end : frontier->first_end;
		}
		else if (event->end >= frontier->latest_start && event->end < frontier->first_lost)
			frontier->first_lost = event->end;
	}
}

/*
 * An event that has to come, can come now, and by its result changes nothing wherever it comes; or -1.  It may as well come
 * first: in any order that explains the rest it can be moved to the front, unless that would bar one that may not have
 * happened.
 */
static int
find_idle(const struct segment *segment, event_set done, key_state state, const struct frontier *frontier)
{
	for (unsigned int i = 0; i < segment->count; i++)
	{
		const struct event *event = segment->events[i];

		if ((done >> i & 1) == 0 && event->result != RESULT_MAYBE &&
			(event->kind == EVENT_LOOKUP || event->result == RESULT_NO) && event->start <= frontier->first_end &&
			event->start <= frontier->first_lost && apply(event, state) == state)
			return (int) i;
	}
	return -1;
}

/*
 * Tries every event that may come next.  One that may not have happened at all
 * comes only where it changes something; it is never waited for.
 */
static void
explore(struct segment *segment, event_set done, key_state state)
{
	struct frontier frontier;
	int idle;

	/* Where there are no values there is nothing more to find out. */
	if ((segment->results.count == 2 && !world.plan.values) || seen_before(done, state))
		return;
	find_frontier(segment, done, &frontier);
	if (frontier.complete)
		add_state(&segment->results, state);
	idle = find_idle(segment, done, state, &frontier);
	if (idle >= 0)
	{
		explore(segment, done | (event_set) 1 << idle, state);
		return;
	}
	for (unsigned int i = 0; i < segment->count; i++)
	{
		const struct event *event = segment->events[i];
		key_state after;

		if ((done >> i & 1) != 0 || event->start > frontier.first_end)
			continue;
		if (event->result == RESULT_MAYBE && event->end < frontier.latest_start)
			continue;
		after = apply(event, state);
		if (after != WRONG && (event->result != RESULT_MAYBE || after != state))
			explore(segment, done | (event_set) 1 << i, after);
	}
}

/* The states after a segment that began in one of states. */
static void
run_segment(struct segment *segment, struct states *states)
{
	segment->before = *states;
	segment->results.count = 0;
	for (unsigned int i = 0; i < states->count; i++)
	{
		if (++visited_stamp == 0)
		{
			memset(visited, 0, sizeof(visited));
			visited_stamp = 1;
		}
		explore(segment, 0, states->state[i]);
	}
	*states = segment->results;
}

static void
report(unsigned int key, const struct segment *segment)
{
	static const char *const kinds[] = {"lookup", "insert", "remove", "update"};
	static const char *const results[] = {"no", "yes", "any", "maybe"};
	char text[sizeof(world.message)];
	int length = snprintf(text, sizeof(text), "key %u,", key);

	for (unsigned int i = 0; i < segment->before.count && length < (int) sizeof(text); i++)
		length += snprintf(text + length, sizeof(text) - (size_t) length, i == 0 ? " %lld" : " or %lld",
						   (long long) segment->before.state[i]);
	if (length < (int) sizeof(text))
		length += snprintf(text + length, sizeof(text) - (size_t) length, " before (0: absent), no order explains:");
	for (unsigned int i = 0; i < segment->count && length < (int) sizeof(text); i++)
		length += snprintf(text + length, sizeof(text) - (size_t) length, " c%d:%s(%u)[%llu,%lld]=%s",
						   segment->events[i]->client, kinds[segment->events[i]->kind], segment->events[i]->value,
						   (unsigned long long) segment->events[i]->start, (long long) segment->events[i]->end,
						   results[segment->events[i]->result]);
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
	struct states states = {.count = 1, .state = {ABSENT}}; /* a tree begins empty */

	qsort(list, n, sizeof(list[0]), by_start);
	for (unsigned int i = 0; i <= n; i++)
	{
		if (i == n || list[i]->start > last_end)
		{
			if (segment.count > 0)
				run_segment(&segment, &states);
			if (states.count == 0)
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
