/*
 * pins.c
 *	  Vacuum pins.
 *
 * Why no scan can check a TID that bulk delete has given up.  A scan writes {tree, number} into its line, passes a full
 * fence, and reads the leaf.  Bulk delete removes the entries, passes a full fence (the addition to the number), and
 * reads the lines.  Of the two at least one sees what the other wrote.  If bulk delete misses the line, the scan's read
 * of the leaf comes behind the removal and finds the entry gone.  If bulk delete sees the line, it waits when the
 * number in it is below its own.  A number that is not below was loaded from the counter behind bulk delete's
 * addition, so behind the removals: that scan finds the entries gone, too.
 *
 * A scan stores a pin's number before its tree, so a client that sees the tree sees that number or the number of a
 * later pin in the same place; the former pin is gone then, and so are its checks: a number is stored with release,
 * behind all that was done under the former pin, and loaded with acquire, ahead of what bulk delete's caller does next.
 *
 * Progress: everything here is wait-free; the waiting is bulk delete's own.
 */
#include <string.h>

#include "base/assert.h"
#include "base/fence.h"
#include "compute/coordinate/pins.h"

_Static_assert(sizeof(struct smart_pins_line) == 128, "a client's line is two cache lines");
_Static_assert(offsetof(struct smart_pins_shared, line) == 128, "lines are aligned");

size_t
smart_pins_size(unsigned int clients)
{
	return sizeof(struct smart_pins_shared) + clients * sizeof(struct smart_pins_line);
}

void
smart_pins_init(struct smart_pins_shared *shared, unsigned int clients)
{
	smart_assert(clients >= 1 && clients < SMART_CLIENTS_MAX);
	memset(shared, 0, smart_pins_size(clients));
	shared->number = 1;
	shared->clients = clients;
}

unsigned int
smart_pins_enter(struct smart_pins_shared *shared, unsigned int client, uint64_t tree)
{
	struct smart_pins_line *line = &shared->line[client];
	/* Acquire: behind the removals of the bulk delete whose addition made this number. */
	uint64_t number = __atomic_load_n(&shared->number, __ATOMIC_ACQUIRE);

	smart_assert(client < shared->clients && tree != 0 && number != 0);
	for (unsigned int i = 0; i < SMART_PINS_PER_CLIENT; i++)
	{
		struct smart_pin *hold = &line->hold[i];

		if (__atomic_load_n(&hold->tree, __ATOMIC_RELAXED) != 0)
			continue;
		/* Release: behind the checks of the pin that was here before.  Partner: line_pins. */
		__atomic_store_n(&hold->number, number, __ATOMIC_RELEASE);
		/* A full fence: number, tree, then the caller's reads.  Partner: advance and holder. */
		__atomic_exchange_n(&hold->tree, tree, __ATOMIC_SEQ_CST);
		smart_fence_after_atomic();
		return i;
	}
	/* The oldest number stands for all of them. */
	if (__atomic_load_n(&line->overflow, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&line->overflow_number, number, __ATOMIC_RELEASE);
	smart_assert(line->overflow_number != 0 && line->overflow_number <= number);
	__atomic_fetch_add(&line->overflow, 1, __ATOMIC_SEQ_CST);
	smart_fence_after_atomic();
	return SMART_PIN_OVERFLOW;
}

bool
smart_pins_leave(struct smart_pins_shared *shared, unsigned int client, unsigned int hold)
{
	struct smart_pins_line *line = &shared->line[client];

	smart_assert(client < shared->clients && hold <= SMART_PIN_OVERFLOW);
	/* Release: the checks made under the pin come before the line is seen free.  Partner: holder. */
	if (hold == SMART_PIN_OVERFLOW)
	{
		smart_assert(line->overflow > 0);
		__atomic_fetch_sub(&line->overflow, 1, __ATOMIC_RELEASE);
	}
	else
	{
		smart_assert(line->hold[hold].tree != 0);
		__atomic_store_n(&line->hold[hold].tree, 0, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&shared->waiters, __ATOMIC_RELAXED) != 0;
}

bool
smart_pins_leave_all(struct smart_pins_shared *shared, unsigned int client)
{
	struct smart_pins_line *line = &shared->line[client];

	smart_assert(client < shared->clients);
	for (unsigned int i = 0; i < SMART_PINS_PER_CLIENT; i++)
		__atomic_store_n(&line->hold[i].tree, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&line->overflow, 0, __ATOMIC_RELEASE);
	smart_assert(line->overflow == 0);
	return __atomic_load_n(&shared->waiters, __ATOMIC_RELAXED) != 0;
}

uint64_t
smart_pins_advance(struct smart_pins_shared *shared)
{
	/* A full fence between the removals and the reading of the lines.  Partner: enter. */
	uint64_t number = __atomic_add_fetch(&shared->number, 1, __ATOMIC_SEQ_CST);

	smart_assert(number > 1);
	return number;
}

static bool
line_pins(const struct smart_pins_line *line, uint64_t tree, uint64_t number)
{
	for (unsigned int i = 0; i < SMART_PINS_PER_CLIENT; i++)
	{
		const struct smart_pin *hold = &line->hold[i];

		if (__atomic_load_n(&hold->tree, __ATOMIC_SEQ_CST) == tree &&
			__atomic_load_n(&hold->number, __ATOMIC_ACQUIRE) < number)
			return true;
	}
	return __atomic_load_n(&line->overflow, __ATOMIC_SEQ_CST) != 0 &&
		   __atomic_load_n(&line->overflow_number, __ATOMIC_ACQUIRE) < number;
}

unsigned int
smart_pins_holder(const struct smart_pins_shared *shared, uint64_t tree, uint64_t number, unsigned int from)
{
	smart_assert(from <= shared->clients);
	smart_assert(tree != 0 && number <= __atomic_load_n(&shared->number, __ATOMIC_RELAXED));
	for (unsigned int client = from; client < shared->clients; client++)
		if (line_pins(&shared->line[client], tree, number))
			return client;
	return SMART_CLIENT_NONE;
}

void
smart_pins_begin_wait(struct smart_pins_shared *shared)
{
	__atomic_fetch_add(&shared->waiters, 1, __ATOMIC_SEQ_CST);
}

void
smart_pins_end_wait(struct smart_pins_shared *shared)
{
	uint64_t before = __atomic_fetch_sub(&shared->waiters, 1, __ATOMIC_SEQ_CST);

	smart_assert(before > 0);
	(void) before;
}
