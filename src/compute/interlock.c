/*
 * interlock.c
 *	  The vacuum interlock.
 *
 * Why no scan can check a TID that bulk delete has given up.  A scan writes
 * {tree, number} into its line, passes a full fence, and reads the leaf.  Bulk
 * delete removes the entries, passes a full fence (the addition to the number),
 * and reads the lines.  Of the two at least one sees what the other wrote: if bulk delete
 * misses the line, the scan's read of the leaf comes behind the removal and
 * finds the entry gone.  If bulk delete sees the line, it waits when the
 * number in it is below its own.  A number that is not below was loaded from
 * the counter behind bulk delete's addition, so behind the removals: that scan
 * finds the entries gone, too.
 *
 * A line's number is stored before its tree, so who sees the tree sees that
 * number or the number of a later hold in the same place; the former hold is
 * gone then.
 *
 * Progress: everything here is wait-free; the waiting is bulk delete's own.
 */
#include <string.h>

#include "base/assert.h"
#include "compute/interlock.h"

_Static_assert(sizeof(struct smart_interlock_line) == 128, "a client's line is two cache lines");
_Static_assert(offsetof(struct smart_interlock_shared, line) == 128, "lines are aligned");

size_t
smart_interlock_size(unsigned int clients)
{
	return sizeof(struct smart_interlock_shared) + clients * sizeof(struct smart_interlock_line);
}

void
smart_interlock_init(struct smart_interlock_shared *shared, unsigned int clients)
{
	smart_assert(clients >= 1 && clients < SMART_CLIENTS_MAX);
	memset(shared, 0, smart_interlock_size(clients));
	shared->number = 1;
	shared->clients = clients;
}

unsigned int
smart_interlock_enter(struct smart_interlock_shared *shared, unsigned int client, uint64_t tree)
{
	struct smart_interlock_line *line = &shared->line[client];
	/* Acquire: behind the removals of the bulk delete whose addition made this number. */
	uint64_t number = __atomic_load_n(&shared->number, __ATOMIC_ACQUIRE);

	smart_assert(client < shared->clients && tree != 0);
	for (unsigned int i = 0; i < SMART_HOLDS_PER_CLIENT; i++)
	{
		struct smart_hold *hold = &line->hold[i];

		if (__atomic_load_n(&hold->tree, __ATOMIC_RELAXED) != 0)
			continue;
		__atomic_store_n(&hold->number, number, __ATOMIC_RELAXED);
		/* A full fence: number, tree, then the caller's reads.  Partner: advance and holder. */
		__atomic_exchange_n(&hold->tree, tree, __ATOMIC_SEQ_CST);
		return i;
	}
	/* The oldest number stands for all of them. */
	if (__atomic_load_n(&line->overflow, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&line->overflow_number, number, __ATOMIC_RELAXED);
	__atomic_fetch_add(&line->overflow, 1, __ATOMIC_SEQ_CST);
	return SMART_HOLD_OVERFLOW;
}

bool
smart_interlock_leave(struct smart_interlock_shared *shared, unsigned int client, unsigned int hold)
{
	struct smart_interlock_line *line = &shared->line[client];

	smart_assert(client < shared->clients && hold <= SMART_HOLD_OVERFLOW);
	/* Release: the checks made under the hold come before the line is seen free.  Partner: holder. */
	if (hold == SMART_HOLD_OVERFLOW)
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
smart_interlock_leave_all(struct smart_interlock_shared *shared, unsigned int client)
{
	struct smart_interlock_line *line = &shared->line[client];

	smart_assert(client < shared->clients);
	for (unsigned int i = 0; i < SMART_HOLDS_PER_CLIENT; i++)
		__atomic_store_n(&line->hold[i].tree, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&line->overflow, 0, __ATOMIC_RELEASE);
	return __atomic_load_n(&shared->waiters, __ATOMIC_RELAXED) != 0;
}

uint64_t
smart_interlock_advance(struct smart_interlock_shared *shared)
{
	/* A full fence between the removals and the reading of the lines.  Partner: enter. */
	uint64_t number = __atomic_add_fetch(&shared->number, 1, __ATOMIC_SEQ_CST);

	smart_assert(number > 1);
	return number;
}

static bool
line_holds(const struct smart_interlock_line *line, uint64_t tree, uint64_t number)
{
	for (unsigned int i = 0; i < SMART_HOLDS_PER_CLIENT; i++)
	{
		const struct smart_hold *hold = &line->hold[i];

		if (__atomic_load_n(&hold->tree, __ATOMIC_SEQ_CST) == tree &&
			__atomic_load_n(&hold->number, __ATOMIC_RELAXED) < number)
			return true;
	}
	return __atomic_load_n(&line->overflow, __ATOMIC_SEQ_CST) != 0 &&
		   __atomic_load_n(&line->overflow_number, __ATOMIC_RELAXED) < number;
}

unsigned int
smart_interlock_holder(const struct smart_interlock_shared *shared, uint64_t tree, uint64_t number, unsigned int from)
{
	smart_assert(tree != 0 && number <= __atomic_load_n(&shared->number, __ATOMIC_RELAXED));
	for (unsigned int client = from; client < shared->clients; client++)
		if (line_holds(&shared->line[client], tree, number))
			return client;
	return SMART_CLIENT_NONE;
}

void
smart_interlock_begin_wait(struct smart_interlock_shared *shared)
{
	__atomic_fetch_add(&shared->waiters, 1, __ATOMIC_SEQ_CST);
}

void
smart_interlock_end_wait(struct smart_interlock_shared *shared)
{
	uint64_t before = __atomic_fetch_sub(&shared->waiters, 1, __ATOMIC_SEQ_CST);

	smart_assert(before > 0);
	(void) before;
}
