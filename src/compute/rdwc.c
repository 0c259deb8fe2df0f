/*
 * rdwc.c
 *	  The table of read delegation and write combining: places, lines, lists.
 */
#include <string.h>

#include "compute/rdwc_parts.h"

size_t
smart_rdwc_size(unsigned int places, unsigned int clients)
{
	return sizeof(struct smart_rdwc) + clients * sizeof(struct rdwc_line) + places * sizeof(struct rdwc_place);
}

void
smart_rdwc_init(struct smart_rdwc *rdwc, unsigned int places, unsigned int clients)
{
	smart_assert(places > 0 && (places & (places - 1)) == 0 && (uintptr_t) rdwc % RDWC_ALIGNMENT == 0);
	memset(rdwc, 0, smart_rdwc_size(places, clients));
	rdwc->places = places - 1;
	rdwc->clients = clients;
	rdwc->places_offset = sizeof(*rdwc) + clients * sizeof(struct rdwc_line);
}

void
smart_rdwc_sum(const struct smart_rdwc *rdwc, struct smart_rdwc_counters *sum)
{
	uint64_t total[SMART_RDWC_COUNTERS] = {0};

	for (uint32_t client = 0; client < rdwc->clients; client++)
	{
		const uint64_t *counters = (const uint64_t *) (const void *) &rdwc->line[client].counters;

		for (size_t i = 0; i < SMART_RDWC_COUNTERS; i++)
			total[i] += __atomic_load_n(&counters[i], __ATOMIC_RELAXED);
	}
	memcpy(sum, total, sizeof(*sum));
}

uint64_t
smart_rdwc_unknown(const struct smart_rdwc *rdwc, uint32_t client)
{
	smart_assert(client < rdwc->clients);
	return rdwc->line[client].unknown;
}

/* ---- places ---- */

struct rdwc_place *
rdwc_place_of(struct smart_rdwc *rdwc, fabric_address leaf)
{
	/* Neighbours are hot together: spread them. */
	uint64_t hash = leaf / SMART_UNIT * UINT64_C(0x9e3779b97f4a7c15);

	smart_assert(leaf != 0 && leaf % SMART_UNIT == 0);
	return &rdwc_places(rdwc)[(hash >> 32) & rdwc->places];
}

void
rdwc_place_lock(struct rdwc_place *place, struct smart_env *env)
{
	for (unsigned int attempt = 0;; attempt++)
	{
		/* A look before the exchange, as in leaf_locks.c.  Acquire: partner is the unlock. */
		if (__atomic_load_n(&place->lock, __ATOMIC_RELAXED) == 0 &&
			__atomic_exchange_n(&place->lock, 1, __ATOMIC_ACQUIRE) == 0)
			return;
		env->pause(env, attempt);
	}
}

void
rdwc_place_unlock(struct rdwc_place *place)
{
	if (place->flying == 0 && place->readers == 0 && place->handed == 0)
		place->leaf = 0;
	__atomic_store_n(&place->lock, 0, __ATOMIC_RELEASE);
}

bool
rdwc_place_claim(struct rdwc_place *place, fabric_address leaf, struct smart_env *env)
{
	rdwc_place_lock(place, env);
	if (place->leaf == 0)
		place->leaf = leaf;
	if (place->leaf == leaf)
		return true;
	rdwc_place_unlock(place);
	return false;
}

/* ---- lists of lines ---- */

void
rdwc_push(struct smart_rdwc *rdwc, uint32_t *list, uint32_t client, enum rdwc_state state)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);

	smart_assert(rdwc_state(line) == RDWC_IDLE);
	line->next = *list;
	__atomic_store_n(&line->state, state, __ATOMIC_RELEASE);
	rdwc_store(list, client + 1);
}

void
rdwc_unlink(struct smart_rdwc *rdwc, uint32_t *list, uint32_t client)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);

	while (*list != client + 1)
	{
		smart_assert(*list != 0);
		list = &rdwc_line(rdwc, *list - 1)->next;
	}
	rdwc_store(list, line->next);
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELEASE);
}

/* ---- outcomes ---- */

bool
rdwc_tell(struct rdwc_line *line, uint32_t outcome)
{
	uint32_t state = RDWC_TAKEN;

	/* Release: the copy, and from.  Partner: rdwc_state. */
	if (__atomic_compare_exchange_n(&line->state, &state, outcome, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		return true;
	smart_assert(state == RDWC_GONE);
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELEASE);
	return false;
}

bool
rdwc_give_up(struct rdwc_line *line)
{
	uint32_t state = RDWC_TAKEN;

	return __atomic_compare_exchange_n(&line->state, &state, RDWC_GONE, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
