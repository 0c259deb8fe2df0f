/*
 * rdwc_read.c
 *	  Read delegation: one READ of a leaf for all who asked before it was posted.
 *
 * Why a delivered copy is as good as a READ of one's own: a client's line is in
 * the place's list before the leader takes the list, and the leader posts its
 * READ afterwards.  Both happen under the place's lock.
 *
 * Nobody is appointed: of those who wait whoever first sees that no READ is in the air
 * leads, or a newcomer does, so that a client that sleeps holds up nobody.
 */
#include <string.h>

#include "compute/rdwc_parts.h"
#include "tree/fault.h"

/* The place is locked, and no READ is in the air: the caller's is, for all who have waited. */
static void
lead(struct smart_rdwc *rdwc, struct rdwc_place *place, uint32_t client)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);

	smart_assert(place->flying == 0 && line->waits == 0);
	line->waits = place->readers;
	line->place = (uint32_t) (place - rdwc_places(rdwc));
	for (uint32_t waiter = place->readers; waiter != 0; waiter = rdwc_line(rdwc, waiter - 1)->next)
		__atomic_store_n(&rdwc_line(rdwc, waiter - 1)->state, RDWC_TAKEN, __ATOMIC_RELEASE);
	rdwc_store(&place->readers, 0);
	rdwc_store(&place->flying, client + 1);
}

/* Takes the copy that another client has READ; false: it is of another length. */
static bool
take_copy(struct smart_rdwc *rdwc, struct rdwc_line *line, uint8_t *buffer, uint32_t length)
{
	struct rdwc_copy *copy = &rdwc_line(rdwc, line->from)->copy[line->copy_from];
	bool fits = copy->length == length;

	if (fits)
		memcpy(buffer, copy->bytes, length);
	/* Release: the copy has been read.  Partner: free_copy. */
	__atomic_fetch_sub(&copy->takers, 1, __ATOMIC_RELEASE);
	return fits;
}

/* What the client was told, if it was; *delegation is set then. */
static bool
hear(struct smart_rdwc *rdwc, struct rdwc_line *line, uint8_t *buffer, uint32_t length,
	 enum smart_delegation *delegation)
{
	uint32_t state = rdwc_state(line);

	if (state != RDWC_DELIVERED && state != RDWC_UNCOPIED && state != RDWC_FAILED)
		return false;
	*delegation = SMART_READ_ALONE;
	if (state == RDWC_FAILED)
		rdwc_count(&line->counters.failures);
	else if (state == RDWC_DELIVERED && take_copy(rdwc, line, buffer, length))
	{
		*delegation = SMART_READ_DELIVERED;
		rdwc_count(&line->counters.delegated_reads);
	}
	else
		rdwc_count(&line->counters.refusals);
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELEASE);
	return true;
}

/* Leads if the client still waits and no READ is in the air. */
static bool
try_to_lead(const struct smart_rdwc_caller *caller, struct rdwc_place *place, struct rdwc_line *line)
{
	bool leads;

	if (__atomic_load_n(&place->flying, __ATOMIC_RELAXED) != 0 || rdwc_state(line) != RDWC_READS)
		return false;
	rdwc_place_lock(place, caller->env);
	leads = place->flying == 0 && rdwc_state(line) == RDWC_READS;
	if (leads)
	{
		rdwc_unlink(caller->rdwc, &place->readers, caller->client);
		lead(caller->rdwc, place, caller->client);
	}
	rdwc_place_unlock(place);
	return leads;
}

/* Leaves the list, or what it was taken for; false: it was told just now. */
static bool
stop_waiting(const struct smart_rdwc_caller *caller, struct rdwc_place *place, struct rdwc_line *line)
{
	bool waits;

	rdwc_place_lock(place, caller->env);
	waits = rdwc_state(line) == RDWC_READS;
	if (waits)
		rdwc_unlink(caller->rdwc, &place->readers, caller->client);
	rdwc_place_unlock(place);
	return waits || rdwc_give_up(line);
}

static smart_status
wait_for_read(const struct smart_rdwc_caller *caller, struct rdwc_place *place, uint8_t *buffer, uint32_t length,
			  enum smart_delegation *delegation)
{
	struct smart_env *env = caller->env;
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);
	uint64_t deadline = env->now_ns(env) + (uint64_t) caller->timeout_ms * 1000000;

	rdwc_count(&line->counters.waits);
	for (unsigned int attempt = 0; !hear(caller->rdwc, line, buffer, length, delegation); attempt++)
	{
		bool interrupted;

		if (try_to_lead(caller, place, line))
		{
			*delegation = SMART_READ_LEADS;
			break;
		}
		interrupted = env->interrupted(env);
		if ((interrupted || env->now_ns(env) >= deadline) && stop_waiting(caller, place, line))
			return interrupted ? SMART_INTERRUPTED : SMART_OK;
		env->pause(env, attempt);
	}
	return SMART_OK;
}

smart_status
smart_rdwc_read_begin(const struct smart_rdwc_caller *caller, fabric_address leaf, uint8_t *buffer, uint32_t length,
					  enum smart_delegation *delegation)
{
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_place *place = rdwc_place_of(rdwc, leaf);

	*delegation = SMART_READ_ALONE;
	/* Somebody may have yet to see that this client gave up waiting for him. */
	if (rdwc_state(rdwc_line(rdwc, caller->client)) != RDWC_IDLE || !rdwc_place_claim(place, leaf, caller->env))
		return SMART_OK;
	if (place->flying == 0)
	{
		lead(rdwc, place, caller->client);
		*delegation = SMART_READ_LEADS;
		rdwc_place_unlock(place);
		return SMART_OK;
	}
	if (SMART_FAULT(latejoin))
		rdwc_push(rdwc, &rdwc_line(rdwc, place->flying - 1)->waits, caller->client, RDWC_TAKEN);
	else
		rdwc_push(rdwc, &place->readers, caller->client, RDWC_READS);
	rdwc_place_unlock(place);
	return wait_for_read(caller, place, buffer, length, delegation);
}

/* Which copy nobody takes any more; -1: none.  Acquire: who took it last is through with it.  Partner: take_copy. */
static int
free_copy(const struct rdwc_line *line, uint32_t length)
{
	for (int i = 0; i < RDWC_COPIES && length <= SMART_RDWC_COPY_BYTES; i++)
	{
		if (__atomic_load_n(&line->copy[i].takers, __ATOMIC_ACQUIRE) == 0)
			return i;
	}
	return -1;
}

/* Tells those who waited, from the first one on, that they have the copy. */
static void
deliver(struct smart_rdwc *rdwc, uint32_t client, uint32_t waiter, unsigned int number)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);
	struct rdwc_copy *copy = &line->copy[number];

	rdwc_count(&line->counters.read_batches);
	while (waiter != 0)
	{
		struct rdwc_line *other = rdwc_line(rdwc, waiter - 1);

		/* Before it is told: then it may wait somewhere else. */
		waiter = other->next;
		other->from = client;
		other->copy_from = number;
		__atomic_fetch_add(&copy->takers, 1, __ATOMIC_RELAXED);
		if (!rdwc_tell(other, RDWC_DELIVERED))
			__atomic_fetch_sub(&copy->takers, 1, __ATOMIC_RELAXED);
	}
}

/* Tells them that there is none. */
static void
disappoint(struct smart_rdwc *rdwc, uint32_t waiter, enum rdwc_state outcome)
{
	while (waiter != 0)
	{
		struct rdwc_line *other = rdwc_line(rdwc, waiter - 1);

		waiter = other->next;
		(void) rdwc_tell(other, outcome);
	}
}

void
smart_rdwc_read_end(const struct smart_rdwc_caller *caller, const uint8_t *copy, uint32_t length)
{
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_line *line = rdwc_line(rdwc, caller->client);
	struct rdwc_place *place = &rdwc_places(rdwc)[line->place];
	uint32_t waits;
	int number;

	rdwc_place_lock(place, caller->env);
	smart_assert(place->flying == caller->client + 1);
	rdwc_store(&place->flying, 0);
	waits = line->waits;
	line->waits = 0;
	rdwc_place_unlock(place);
	number = waits != 0 ? free_copy(line, length) : -1;
	if (copy == NULL || number < 0)
	{
		disappoint(rdwc, waits, copy == NULL ? RDWC_FAILED : RDWC_UNCOPIED);
		return;
	}
	memcpy(line->copy[number].bytes, copy, length);
	line->copy[number].length = length;
	deliver(rdwc, caller->client, waits, (unsigned int) number);
}
