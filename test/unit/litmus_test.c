/*
 * litmus_test.c
 *	  Order of memory as arm64 has it: the patterns of src/README, in all orders that the architecture allows.
 *
 * Each pattern is a few loads and stores of two or three threads, with the orders that the code gives them, and what
 * must never be seen.  All executions are tried.  In each of them the accesses take effect one after the other, for all
 * threads at once (ARMv8 promises that), and those of one thread in any order but where one of these holds it:
 *
 *	  - they access the same word; but a load may take the value of an own store that is not visible yet
 *	  - the first one is an acquire, or the second one a release
 *	  - the first one is a release, the second one a sequentially consistent load
 *	  - there is a fence in between: a full one; behind loads, an acquire; ahead of stores, a release
 *
 * A CAS, an exchange or an addition is a load and a store, without another thread's store to the word in between.  An
 * acquire is weaker here than gcc makes it for most CPUs: it may overtake a release, as that of ARMv8.3 does.
 *
 * Each order that counts is a control, too: made as weak as it says, it has to be found wrong.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

#define WORDS     4
#define REGISTERS 6
#define STEPS     8  /* of a thread */
#define EVENTS    20 /* of all threads */
#define THREADS   3

enum order
{
	PLAIN, /* or relaxed */
	ACQUIRE,
	RELEASE,
	SEQ_CST,
	KEEP /* as weaker: the order is no control */
};

enum verb
{
	END,
	LOAD,
	STORE,
	SWAP, /* any atomic that loads and stores */
	FENCE
};

struct step
{
	enum verb verb;
	unsigned int word;
	uint8_t value;       /* stored */
	unsigned int result; /* the register that is loaded */
	enum order order;
	enum order weaker; /* PLAIN, of a fence: without it */
};

#define LOADS(word, result, order, weaker)   \
	{                                        \
		LOAD, word, 0, result, order, weaker \
	}
#define STORES(word, value, order, weaker)   \
	{                                        \
		STORE, word, value, 0, order, weaker \
	}
#define SWAPS(word, value, result, order, weaker) \
	{                                             \
		SWAP, word, value, result, order, weaker  \
	}
#define FENCES(order, weaker)         \
	{                                 \
		FENCE, 0, 0, 0, order, weaker \
	}
#define NOTHING (REGISTERS - 1) /* a register that nobody looks at */

struct pattern
{
	const char *name;
	uint8_t initial[WORDS];
	struct step thread[THREADS][STEPS];
	/* Must not be seen; registers begin with 0. */
	bool (*wrong)(const uint8_t *registers);
};

/* A load or a store. */
struct event
{
	bool stores;
	bool swaps; /* half of a SWAP: the load stands in front of the store */
	unsigned int thread;
	unsigned int place; /* in the thread */
	unsigned int word;
	uint8_t value;
	unsigned int result;
	enum order order;
};

struct execution
{
	struct event event[EVENTS];
	uint32_t after[EVENTS]; /* those that have to take effect before */
	unsigned int count;
	const struct pattern *pattern;
	bool wrong;
};

/* ---- which order has to be kept ---- */

static bool
acquires(const struct event *event)
{
	return !event->stores && (event->order == ACQUIRE || event->order == SEQ_CST);
}

static bool
releases(const struct event *event)
{
	return event->stores && (event->order == RELEASE || event->order == SEQ_CST);
}

/* Fences of the thread between two of its events. */
static bool
is_fenced(const struct step *steps, const struct event *first, const struct event *second)
{
	for (unsigned int i = first->place + 1; i < second->place; i++)
		if (steps[i].verb == FENCE && (steps[i].order == SEQ_CST || (steps[i].order == ACQUIRE && !first->stores) ||
									   (steps[i].order == RELEASE && second->stores)))
			return true;
	return false;
}

/* Both are of one thread, first ahead of second. */
static bool
is_ordered(const struct step *steps, const struct event *first, const struct event *second)
{
	if (first->place == second->place)
		return true;
	if (first->word == second->word && (!first->stores || second->stores || second->swaps))
		return true;
	return acquires(first) || releases(second) || (releases(first) && !second->stores && second->order == SEQ_CST) ||
		   is_fenced(steps, first, second);
}

static void
prepare(struct execution *execution, const struct pattern *pattern)
{
	memset(execution, 0, sizeof(*execution));
	execution->pattern = pattern;
	for (unsigned int thread = 0; thread < THREADS; thread++)
		for (unsigned int place = 0; place < STEPS; place++)
		{
			const struct step *step = &pattern->thread[thread][place];
			struct event event = {.swaps = step->verb == SWAP,
								  .thread = thread,
								  .place = place,
								  .word = step->word,
								  .value = step->value,
								  .result = step->result,
								  .order = step->order};

			if (step->verb == LOAD || step->verb == SWAP)
				execution->event[execution->count++] = event;
			event.stores = true;
			if (step->verb == STORE || step->verb == SWAP)
				execution->event[execution->count++] = event;
		}
	for (unsigned int i = 0; i < execution->count; i++)
		for (unsigned int j = 0; j < i; j++)
			if (execution->event[i].thread == execution->event[j].thread &&
				is_ordered(pattern->thread[execution->event[i].thread], &execution->event[j], &execution->event[i]))
				execution->after[i] |= UINT32_C(1) << j;
}

/* ---- all executions ---- */

/* The own store to the same word that stands last ahead of a load and is not visible yet; else what memory has. */
static uint8_t
loaded(const struct execution *execution, unsigned int number, uint32_t done, const uint8_t *memory)
{
	const struct event *load = &execution->event[number];

	for (unsigned int i = number; i-- > 0 && execution->event[i].thread == load->thread;)
		if (execution->event[i].stores && execution->event[i].word == load->word)
			return (done >> i & 1) != 0 ? memory[load->word] : execution->event[i].value;
	return memory[load->word];
}

/* Is a swap of another one's under way, on the word to which the event would store? */
static bool
is_excluded(const struct execution *execution, unsigned int number, uint32_t done)
{
	for (unsigned int i = 0; i + 1 < execution->count; i++)
	{
		const struct event *load = &execution->event[i];

		if (load->swaps && !load->stores && (done >> i & 1) != 0 && (done >> (i + 1) & 1) == 0 && i + 1 != number &&
			load->word == execution->event[number].word && execution->event[number].stores)
			return true;
	}
	return false;
}

static void
run(struct execution *execution, uint32_t done, const uint8_t *memory, const uint8_t *registers)
{
	if (done == (UINT32_C(1) << execution->count) - 1)
		execution->wrong |= execution->pattern->wrong(registers);
	for (unsigned int i = 0; i < execution->count && !execution->wrong; i++)
	{
		const struct event *event = &execution->event[i];
		uint8_t words[WORDS];
		uint8_t results[REGISTERS];

		if ((done >> i & 1) != 0 || (execution->after[i] & ~done) != 0 || is_excluded(execution, i, done))
			continue;
		memcpy(words, memory, sizeof(words));
		memcpy(results, registers, sizeof(results));
		if (event->stores)
			words[event->word] = event->value;
		else
			results[event->result] = loaded(execution, i, done, memory);
		run(execution, done | UINT32_C(1) << i, words, results);
	}
}

static bool
can_go_wrong(const struct pattern *pattern)
{
	const uint8_t registers[REGISTERS] = {0};
	struct execution execution;

	prepare(&execution, pattern);
	run(&execution, 0, pattern->initial, registers);
	return execution.wrong;
}

/* ---- the patterns ---- */

static bool
saw_first_without_second(const uint8_t *r)
{
	return r[0] == 1 && r[1] == 0;
}

/* A slot or a meta is published by CAS, and loaded with acquire (bytes.h: smart_load_acquire). */
static const struct pattern publication = {
	"a block is written, and then linked",
	{0},
	{{STORES(0, 1, PLAIN, KEEP), SWAPS(1, 1, NOTHING, SEQ_CST, ACQUIRE)},
	 {LOADS(1, 0, ACQUIRE, PLAIN), LOADS(0, 1, PLAIN, KEEP)}},
	saw_first_without_second,
};

/* cover.h: slots are loaded relaxed, with one fence behind all of them. */
static const struct pattern cover = {
	"a slot is found among others",
	{0},
	{{STORES(0, 1, PLAIN, KEEP), SWAPS(1, 1, NOTHING, SEQ_CST, ACQUIRE)},
	 {LOADS(2, NOTHING, PLAIN, KEEP), LOADS(1, 0, PLAIN, KEEP), FENCES(ACQUIRE, PLAIN), LOADS(0, 1, PLAIN, KEEP)}},
	saw_first_without_second,
};

/* leaf_locks.c, rdwc.c, cache.c: CAS with acquire, a store with release.  The word is 1 while it is locked. */
static bool
saw_unlocked_without_data(const uint8_t *r)
{
	return r[0] == 0 && r[1] == 0;
}

static const struct pattern lock = {
	"a lock changes hands",
	{0, 1},
	{{STORES(0, 1, PLAIN, KEEP), STORES(1, 0, RELEASE, PLAIN)},
	 {SWAPS(1, 1, 0, ACQUIRE, PLAIN), LOADS(0, 1, PLAIN, KEEP)}},
	saw_unlocked_without_data,
};

/* cache.c and frames.c, dead_rows.c: a number is odd while the words change.  Words 0 and 1, number 2. */
static bool
saw_torn_words(const uint8_t *r)
{
	return r[0] == r[3] && r[0] % 2 == 0 && (r[1] != r[2] || r[1] != r[0] / 2);
}

static const struct pattern frame = {
	"words are copied while they may change",
	{0},
	{{STORES(2, 1, PLAIN, KEEP), FENCES(RELEASE, PLAIN), STORES(0, 1, PLAIN, KEEP), STORES(1, 1, PLAIN, KEEP),
	  STORES(2, 2, RELEASE, PLAIN)},
	 {LOADS(2, 0, ACQUIRE, PLAIN), LOADS(0, 1, PLAIN, KEEP), LOADS(1, 2, PLAIN, KEEP), FENCES(ACQUIRE, PLAIN),
	  LOADS(2, 3, PLAIN, KEEP)}},
	saw_torn_words,
};

/*
 * walk.c: header 1, slots 0 and header again.  The node is dead (1), is given back by the epoch (word 2), and then
 * written anew, and live again (2).
 */
static bool
saw_new_slot_in_old_node(const uint8_t *r)
{
	return r[0] == 0 && r[2] == 0 && r[1] == 1 && r[3] == 1;
}

static const struct pattern walk = {
	"a node is loaded while it may be used again",
	{0},
	{{SWAPS(1, 1, NOTHING, SEQ_CST, KEEP), STORES(2, 1, RELEASE, PLAIN)},
	 {LOADS(1, 0, ACQUIRE, KEEP), LOADS(0, 1, ACQUIRE, PLAIN), LOADS(1, 2, ACQUIRE, KEEP)},
	 {LOADS(2, 3, SEQ_CST, PLAIN), STORES(0, 1, PLAIN, KEEP), SWAPS(1, 2, NOTHING, SEQ_CST, KEEP)}},
	saw_new_slot_in_old_node,
};

/* epoch.c: line 0, link 1 (0: still linked), epoch 2.  Enter, against unlinking and the scan of lines. */
static bool
missed_each_other(const uint8_t *r)
{
	return r[0] == 0 && r[1] == 0;
}

static const struct pattern enter = {
	"an operation begins while a block is unlinked",
	{0},
	{{SWAPS(0, 1, NOTHING, SEQ_CST, ACQUIRE), LOADS(2, NOTHING, SEQ_CST, ACQUIRE), LOADS(1, 0, ACQUIRE, KEEP)},
	 {SWAPS(1, 1, NOTHING, SEQ_CST, ACQUIRE), LOADS(2, NOTHING, SEQ_CST, KEEP), LOADS(0, 1, SEQ_CST, KEEP)}},
	missed_each_other,
};

/* epoch.c, rdwc.c: what was read was read before it is written anew.  Block 0, line 1 (1: inside). */
static bool
read_what_came_after(const uint8_t *r)
{
	return r[0] == 1 && r[1] == 0;
}

static const struct pattern leave = {
	"an operation ends, and a block is used again",
	{0, 1},
	{{LOADS(0, 0, PLAIN, KEEP), STORES(1, 0, RELEASE, PLAIN)},
	 {LOADS(1, 1, SEQ_CST, PLAIN), STORES(0, 1, PLAIN, KEEP)}},
	read_what_came_after,
};

/* pins.c: pin 0, leaf 1 (0: the entry is still there), number 2. */
static const struct pattern pin = {
	"a pin begins while entries are removed",
	{0},
	{{SWAPS(0, 1, NOTHING, SEQ_CST, KEEP), FENCES(SEQ_CST, PLAIN), LOADS(1, 0, PLAIN, KEEP)},
	 {SWAPS(1, 1, NOTHING, SEQ_CST, KEEP), SWAPS(2, 1, NOTHING, SEQ_CST, KEEP), LOADS(0, 1, SEQ_CST, KEEP)}},
	missed_each_other,
};

/* The same place of a line serves again: TID 0, the pin's tree 1, its number 2 (0: the first pin's). */
static bool
took_a_pin_for_a_later_one(const uint8_t *r)
{
	return r[0] == 1 && r[2] == 1;
}

static const struct pattern later_pin = {
	"a pin ends, and a later one takes its place",
	{0, 1},
	{{LOADS(0, 0, PLAIN, KEEP), STORES(1, 0, RELEASE, KEEP), STORES(2, 1, RELEASE, PLAIN),
	  SWAPS(1, 1, NOTHING, SEQ_CST, KEEP)},
	 {LOADS(1, 1, SEQ_CST, KEEP), LOADS(2, 2, ACQUIRE, PLAIN), STORES(0, 1, PLAIN, KEEP)}},
	took_a_pin_for_a_later_one,
};

/* partition.c: turn 0, gate 1 (0: open). */
static const struct pattern turn = {
	"a turn begins while a range is given away",
	{0},
	{{SWAPS(0, 1, NOTHING, SEQ_CST, ACQUIRE), LOADS(1, 0, SEQ_CST, ACQUIRE)},
	 {SWAPS(1, 1, NOTHING, SEQ_CST, ACQUIRE), LOADS(0, 1, SEQ_CST, ACQUIRE)}},
	missed_each_other,
};

/* tree_changes.c: foretold 0, the tree's mark 1, the number of changes 2. */
static bool
saw_mark_and_nothing_else(const uint8_t *r)
{
	return r[0] == 1 && r[1] == 0 && r[2] == 0;
}

static const struct pattern foretold = {
	"a change is foretold, made and announced",
	{0},
	{{STORES(0, 1, SEQ_CST, KEEP), FENCES(RELEASE, PLAIN), STORES(1, 1, PLAIN, KEEP),
	  SWAPS(2, 1, NOTHING, SEQ_CST, KEEP), STORES(0, 0, RELEASE, PLAIN)},
	 {LOADS(1, 0, ACQUIRE, PLAIN), LOADS(0, 1, ACQUIRE, PLAIN), LOADS(2, 2, ACQUIRE, KEEP)}},
	saw_mark_and_nothing_else,
};

/* dead_rows.h: the number of removals 0, an entry for another row in the same place 1, what is remembered 2. */
static const struct pattern dead_row = {
	"a row is remembered as dead, and its place is used again",
	{0},
	{{SWAPS(0, 1, NOTHING, SEQ_CST, KEEP), SWAPS(1, 1, NOTHING, SEQ_CST, ACQUIRE)},
	 {LOADS(1, 0, ACQUIRE, PLAIN), LOADS(2, NOTHING, PLAIN, KEEP), LOADS(0, 1, ACQUIRE, KEEP)}},
	saw_first_without_second,
};

/* launcher_requests.c: a mark 0, the request 1. */
static const struct pattern request = {
	"a tree is marked, and that is told",
	{0},
	{{STORES(0, 1, RELEASE, KEEP), FENCES(RELEASE, PLAIN), STORES(1, 1, PLAIN, KEEP)},
	 {SWAPS(1, 0, 0, SEQ_CST, PLAIN), LOADS(0, 1, ACQUIRE, KEEP)}},
	saw_first_without_second,
};

static const struct pattern *const patterns[] = {&publication, &cover,    &lock,   &frame, &walk,
												 &enter,       &leave,    &pin,    &turn,  &later_pin,
												 &foretold,    &dead_row, &request};

/* ---- the model itself: what arm64 is known to allow, and what it is not ---- */

static const struct pattern model[] = {
	{"stores are not seen in their order",
	 {0},
	 {{STORES(0, 1, PLAIN, KEEP), STORES(1, 1, PLAIN, KEEP)}, {LOADS(1, 0, ACQUIRE, KEEP), LOADS(0, 1, PLAIN, KEEP)}},
	 saw_first_without_second},
	{"an acquire overtakes a release",
	 {0},
	 {{STORES(0, 1, RELEASE, KEEP), LOADS(1, 0, ACQUIRE, KEEP)},
	  {STORES(1, 1, RELEASE, KEEP), LOADS(0, 1, ACQUIRE, KEEP)}},
	 missed_each_other},
	{"a load overtakes the store of an exchange",
	 {0},
	 {{SWAPS(0, 1, NOTHING, SEQ_CST, KEEP), LOADS(1, 0, ACQUIRE, KEEP)},
	  {SWAPS(1, 1, NOTHING, SEQ_CST, KEEP), LOADS(0, 1, ACQUIRE, KEEP)}},
	 missed_each_other},
};

/* An own store is seen by its thread at once; two exchanges do not load the same. */
static bool
lost_a_store(const uint8_t *r)
{
	return r[0] == 0 || (r[1] == 0 && r[2] == 0);
}

static const struct pattern sound = {
	"a word by itself",
	{0},
	{{STORES(0, 1, PLAIN, KEEP), LOADS(0, 0, PLAIN, KEEP), SWAPS(1, 1, 1, PLAIN, KEEP)}, {SWAPS(1, 1, 2, PLAIN, KEEP)}},
	lost_a_store,
};

int
main(void)
{
	for (size_t i = 0; i < sizeof(model) / sizeof(model[0]); i++)
		CHECK(can_go_wrong(&model[i]));
	CHECK(!can_go_wrong(&sound));
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
	{
		struct pattern pattern = *patterns[i];
		bool right = !can_go_wrong(&pattern);

		CHECK(right);
		if (!right)
			printf("%s: can go wrong\n", pattern.name);
		for (unsigned int step = 0; step < THREADS * STEPS; step++)
		{
			struct step *weakened = &pattern.thread[step / STEPS][step % STEPS];
			bool found;

			if (weakened->verb == END || weakened->weaker == KEEP)
				continue;
			weakened->order = weakened->weaker;
			found = can_go_wrong(&pattern);
			CHECK(found);
			if (!found)
				printf("%s: thread %u goes well without its step %u\n", pattern.name, step / STEPS, step % STEPS);
			pattern = *patterns[i];
		}
	}
	return check_finish();
}
