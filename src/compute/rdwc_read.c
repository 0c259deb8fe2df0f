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
	struct rdwc_line *leader = rdwc_line(rdwc, line->from - 1);
	bool fits = leader->copied == length;

	if (fits)
		memcpy(buffer, leader->copy, length);
	/* Release: the copy has been read.  Partner: can_copy. */
	__atomic_fetch_sub(&leader->takers, 1, __ATOMIC_RELEASE);
	return fits;
}

/* What the client was told, if it was; *delegation is set then. */
static bool
hear(struct smart_rdwc *rdwc, struct rdwc_line *line, uint8_t *buffer, uint32_t length,
	 enum smart_delegation *delegation)
{
	uint32_t state = rdwc_state(line);

	if (state != RDWC_DELIVERED && state != RDWC_FAILED)
		return false;
	*delegation = SMART_READ_ALONE;
	if (state == RDWC_DELIVERED && take_copy(rdwc, line, buffer, length))
		*delegation = SMART_READ_DELIVERED;
	rdwc_count(*delegation == SMART_READ_DELIVERED ? &line->counters.delegated_reads : &line->counters.failures);
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

/* Is the room for the copy free?  Acquire: who took the last one is through with it. */
static bool
can_copy(const struct rdwc_line *line, uint32_t length)
{
	return length <= SMART_RDWC_COPY_BYTES && __atomic_load_n(&line->takers, __ATOMIC_ACQUIRE) == 0;
}

/* Tells those who waited for the copy, or that there is none. */
static void
deliver(struct smart_rdwc *rdwc, uint32_t client, uint32_t waiter, const uint8_t *copy, uint32_t length)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);
	bool delivers = copy != NULL && can_copy(line, length);

	if (delivers)
	{
		memcpy(line->copy, copy, length);
		line->copied = length;
		rdwc_count(&line->counters.read_batches);
	}
	while (waiter != 0)
	{
		struct rdwc_line *other = rdwc_line(rdwc, waiter - 1);
		uint32_t next = other->next;

		if (delivers)
		{
			other->from = client + 1;
			__atomic_fetch_add(&line->takers, 1, __ATOMIC_RELAXED);
		}
		if (!rdwc_tell(other, delivers ? RDWC_DELIVERED : RDWC_FAILED) && delivers)
			__atomic_fetch_sub(&line->takers, 1, __ATOMIC_RELAXED);
		waiter = next;
	}
}

void
smart_rdwc_read_end(const struct smart_rdwc_caller *caller, const uint8_t *copy, uint32_t length)
{
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_line *line = rdwc_line(rdwc, caller->client);
	struct rdwc_place *place = &rdwc_places(rdwc)[line->place];
	uint32_t waits;

	rdwc_place_lock(place, caller->env);
	smart_assert(place->flying == caller->client + 1);
	rdwc_store(&place->flying, 0);
	waits = line->waits;
	line->waits = 0;
	rdwc_place_unlock(place);
	if (waits != 0)
		deliver(rdwc, caller->client, waits, copy, length);
}
