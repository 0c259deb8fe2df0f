/*
 * rdwc.c
 *	  Read delegation and write combining: the table, one READ of a leaf for all clients that asked before it was
 *	  posted, entries that are handed in, and the services of the tree that lead here.
 *
 * Why a delivered copy is as good as a READ of the client's own: the client's line is in the place's list before the
 * leader takes the list, and the leader posts its READ afterwards.  Both happen under the place's lock.  No client is
 * appointed: the first waiter that sees that no READ is in the air leads, or a newcomer does, so a client that sleeps
 * holds up no other.
 *
 * The holder of a leaf's lock settles what it took before it unlocks.  So the client that gets the lock finds its own
 * entry in the list, or knows what became of it.
 */
#include <string.h>

#include "compute/coordinate/rdwc_parts.h"
#include "tree/fault.h"

/* ---- the table ---- */

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

/* ---- places ---- */

struct rdwc_place *
rdwc_place_of(struct smart_rdwc *rdwc, fabric_address leaf)
{
	/* Neighbours are hot together: spread them. */
	uint64_t hash = leaf / sizeof(uint64_t) * UINT64_C(0x9e3779b97f4a7c15);

	smart_assert(leaf != 0 && leaf % sizeof(uint64_t) == 0);
	return &rdwc_places(rdwc)[(hash >> 32) & rdwc->places];
}

static void
lock_place(struct rdwc_place *place, struct smart_env *env)
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
	smart_assert(rdwc_place_is_locked(place));
	if (place->flying == 0 && place->readers == 0 && place->handed == 0)
		place->leaf = 0;
	__atomic_store_n(&place->lock, 0, __ATOMIC_RELEASE);
}

bool
rdwc_place_claim(struct rdwc_place *place, fabric_address leaf, struct smart_env *env)
{
	lock_place(place, env);
	smart_assert(place->leaf != 0 || (place->flying == 0 && place->readers == 0 && place->handed == 0));
	if (place->leaf == 0)
		place->leaf = leaf;
	smart_assert(place->leaf != 0);
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

	smart_assert(rdwc_state(line) == RDWC_IDLE && *list != client + 1);
	smart_assert(state == RDWC_READS || state == RDWC_HANDED || state == RDWC_TAKEN);
	line->next = *list;
	__atomic_store_n(&line->state, state, __ATOMIC_RELEASE);
	rdwc_store(list, client + 1);
}

static void
unlink_line(struct smart_rdwc *rdwc, uint32_t *list, uint32_t client)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);

	smart_assert(rdwc_state(line) == RDWC_READS || rdwc_state(line) == RDWC_HANDED);
	while (*list != client + 1)
	{
		smart_assert(*list != 0);
		list = &rdwc_line(rdwc, *list - 1)->next;
	}
	rdwc_store(list, line->next);
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELEASE);
}

/* Takes the client's own line, if it is in this state, out of a list of the place; false: another client has taken it. */
static bool
withdraw(const struct smart_rdwc_caller *caller, struct rdwc_place *place, uint32_t *list, enum rdwc_state state)
{
	bool waits;

	lock_place(place, caller->env);
	waits = rdwc_state(rdwc_line(caller->rdwc, caller->client)) == (uint32_t) state;
	if (waits)
		unlink_line(caller->rdwc, list, caller->client);
	rdwc_place_unlock(place);
	return waits;
}

/* ---- outcomes ---- */

/* Tells a client whose line was taken; false: it has given up. */
static bool
tell(struct rdwc_line *line, uint32_t outcome)
{
	uint32_t state = RDWC_TAKEN;

	smart_assert(outcome >= RDWC_DELIVERED && outcome <= RDWC_SETTLED + (uint32_t) SMART_COMBINED_UNKNOWN);
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
	bool gone = __atomic_compare_exchange_n(&line->state, &state, RDWC_GONE, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);

	smart_assert(gone || state >= RDWC_DELIVERED);
	return gone;
}

/* ---- READs that are shared ---- */

/* The place is locked, and no READ is in the air: the caller's is, for all clients that have waited. */
static void
lead(struct smart_rdwc *rdwc, struct rdwc_place *place, uint32_t client)
{
	struct rdwc_line *line = rdwc_line(rdwc, client);

	smart_assert(rdwc_place_is_locked(place) && place->leaf != 0 && place->flying == 0 && line->waits == 0);
	smart_assert(rdwc_state(line) == RDWC_IDLE);
	line->waits = place->readers;
	line->place = (uint32_t) (place - rdwc_places(rdwc));
	for (uint32_t waiter = place->readers; waiter != 0; waiter = rdwc_line(rdwc, waiter - 1)->next)
	{
		smart_assert(rdwc_state(rdwc_line(rdwc, waiter - 1)) == RDWC_READS);
		__atomic_store_n(&rdwc_line(rdwc, waiter - 1)->state, RDWC_TAKEN, __ATOMIC_RELEASE);
	}
	rdwc_store(&place->readers, 0);
	rdwc_store(&place->flying, client + 1);
}

/* What the client was told, if it was; *delegation is set then. */
static bool
hear_of_read(struct smart_rdwc *rdwc, struct rdwc_line *line, uint8_t *buffer, uint32_t length,
			 enum smart_delegation *delegation)
{
	uint32_t state = rdwc_state(line);
	uint64_t *counter = &line->counters.refusals;

	if (state != RDWC_DELIVERED && state != RDWC_UNCOPIED && state != RDWC_FAILED)
		return false;
	*delegation = SMART_READ_ALONE;
	if (state == RDWC_FAILED)
		counter = &line->counters.failures;
	else if (state == RDWC_DELIVERED)
	{
		struct rdwc_copy *copy = &rdwc_line(rdwc, line->from)->copy[line->copy_from];

		smart_assert(line->copy_from < RDWC_COPIES && __atomic_load_n(&copy->takers, __ATOMIC_RELAXED) > 0);
		/* Another length is another idea of the leaf. */
		if (copy->length == length)
		{
			memcpy(buffer, copy->bytes, length);
			*delegation = SMART_READ_DELIVERED;
			counter = &line->counters.delegated_reads;
		}
		/* Release: the copy has been read.  Partner: read_end. */
		__atomic_fetch_sub(&copy->takers, 1, __ATOMIC_RELEASE);
	}
	rdwc_count(counter);
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELEASE);
	return true;
}

static smart_status
wait_for_read(const struct smart_rdwc_caller *caller, struct rdwc_place *place, uint8_t *buffer, uint32_t length,
			  enum smart_delegation *delegation)
{
	struct smart_env *env = caller->env;
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);
	uint64_t deadline = smart_deadline_ns(env, caller->timeout_ms);

	rdwc_count(&line->counters.waits);
	for (unsigned int attempt = 0; !hear_of_read(caller->rdwc, line, buffer, length, delegation); attempt++)
	{
		bool interrupted;
		bool waits;

		/* The client leads if it still waits and no READ is in the air. */
		if (__atomic_load_n(&place->flying, __ATOMIC_RELAXED) == 0 && rdwc_state(line) == RDWC_READS)
		{
			bool leads;

			lock_place(place, env);
			leads = place->flying == 0 && rdwc_state(line) == RDWC_READS;
			if (leads)
			{
				unlink_line(caller->rdwc, &place->readers, caller->client);
				lead(caller->rdwc, place, caller->client);
				*delegation = SMART_READ_LEADS;
			}
			rdwc_place_unlock(place);
			if (leads)
				break;
		}
		interrupted = env->interrupted(env);
		if (interrupted || env->now_ns(env) >= deadline)
		{
			/* It leaves the list, or what it was taken for, unless it was told just now. */
			waits = withdraw(caller, place, &place->readers, RDWC_READS);
			if (waits || rdwc_give_up(line))
				return interrupted ? SMART_INTERRUPTED : SMART_OK;
		}
		env->pause(env, attempt);
	}
	return SMART_OK;
}

static smart_status
read_begin(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
		   enum smart_delegation *delegation)
{
	const struct smart_rdwc_caller *caller = &services->member->caller;
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_place *place = rdwc_place_of(rdwc, leaf);

	*delegation = SMART_READ_ALONE;
	/* Another client may have yet to see that this one gave up waiting for it. */
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

static void
read_end(struct smart_services *services, const uint8_t *copy, uint32_t length)
{
	const struct smart_rdwc_caller *caller = &services->member->caller;
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_line *line = rdwc_line(rdwc, caller->client);
	struct rdwc_place *place = &rdwc_places(rdwc)[line->place];
	enum rdwc_state outcome = copy == NULL ? RDWC_FAILED : RDWC_UNCOPIED;
	struct rdwc_copy *kept = NULL;
	uint32_t number = 0;
	uint32_t waiter;

	lock_place(place, caller->env);
	smart_assert(place->flying == caller->client + 1 && place->leaf != 0);
	rdwc_store(&place->flying, 0);
	waiter = line->waits;
	line->waits = 0;
	rdwc_place_unlock(place);

	/* A copy that no client takes any more.  Acquire: the last taker has read it.  Partner: hear_of_read. */
	while (number < RDWC_COPIES && __atomic_load_n(&line->copy[number].takers, __ATOMIC_ACQUIRE) != 0)
		number++;
	if (waiter != 0 && copy != NULL && length <= SMART_RDWC_COPY_BYTES && number < RDWC_COPIES)
	{
		kept = &line->copy[number];
		memcpy(kept->bytes, copy, length);
		kept->length = length;
		outcome = RDWC_DELIVERED;
		rdwc_count(&line->counters.read_batches);
	}
	/* All that waited have the copy, or are told that there is none. */
	while (waiter != 0)
	{
		struct rdwc_line *other = rdwc_line(rdwc, waiter - 1);

		smart_assert(waiter != caller->client + 1);
		smart_assert(rdwc_state(other) == RDWC_TAKEN || rdwc_state(other) == RDWC_GONE);
		/* Before it is told: then it may wait somewhere else. */
		waiter = other->next;
		if (kept != NULL)
		{
			other->from = caller->client;
			other->copy_from = number;
			__atomic_fetch_add(&kept->takers, 1, __ATOMIC_RELAXED);
		}
		if (!tell(other, outcome) && kept != NULL)
			__atomic_fetch_sub(&kept->takers, 1, __ATOMIC_RELAXED);
	}
}

/* ---- entries that are handed in ---- */

/* What became of the entry, if that is known; the line is idle then. */
static bool
hear_of_entry(struct rdwc_line *line, enum smart_combined *combined)
{
	uint32_t state = rdwc_state(line);

	if (state < RDWC_SETTLED)
		return false;
	*combined = (enum smart_combined)(state - RDWC_SETTLED);
	smart_assert(*combined <= SMART_COMBINED_UNKNOWN);
	if (*combined == SMART_COMBINED_NOT)
		rdwc_count(&line->counters.refusals);
	else if (*combined == SMART_COMBINED_UNKNOWN)
	{
		rdwc_count(&line->counters.failures);
		line->unknown++;
	}
	else
		rdwc_count(&line->counters.combined_entries);
	__atomic_store_n(&line->state, RDWC_IDLE, __ATOMIC_RELEASE);
	return true;
}

static inline bool
settled(enum smart_combined combined)
{
	return combined == SMART_COMBINED_ADDED || combined == SMART_COMBINED_THERE;
}

/* Takes the entry back; false: another client has taken it. */
static bool
withdraw_entry(const struct smart_rdwc_caller *caller, struct rdwc_place *place)
{
	if (!withdraw(caller, place, &place->handed, RDWC_HANDED))
		return false;
	rdwc_count(&rdwc_line(caller->rdwc, caller->client)->counters.withdrawals);
	return true;
}

/* One look: is the wait over?  *handed: the entry is still with the table.  *locked: the lock is the client's. */
static bool
look(const struct smart_rdwc_caller *caller, struct smart_leaf_locks *locks, unsigned int lock,
	 struct rdwc_place *place, bool *handed, bool *locked, enum smart_combined *combined)
{
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);

	if (*handed && hear_of_entry(line, combined))
	{
		*handed = false;
		if (settled(*combined))
			return true;
	}
	*locked = smart_leaf_lock_try(locks, lock, caller->client);
	if (!*locked)
		return false;
	if (*handed && !withdraw_entry(caller, place))
	{
		bool known = hear_of_entry(line, combined);

		smart_assert(known);
		(void) known;
	}
	*handed = false;
	if (settled(*combined))
	{
		smart_leaf_lock_drop(locks, lock, caller->client);
		*locked = false;
	}
	return true;
}

static smart_status
lock_leaf(struct smart_services *services, fabric_address leaf)
{
	const struct smart_rdwc_member *member = services->member;

	return smart_leaf_lock_take(member->locks, member->lock_of(leaf), member->caller.client, member->caller.env,
								member->caller.timeout_ms);
}

static void
unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	const struct smart_rdwc_member *member = services->member;

	smart_leaf_lock_drop(member->locks, member->lock_of(leaf), member->caller.client);
}

static bool
try_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	const struct smart_rdwc_member *member = services->member;
	unsigned int lock = member->lock_of(leaf);

	return !smart_leaf_lock_is_mine(member->locks, lock, member->caller.client) &&
		   smart_leaf_lock_try(member->locks, lock, member->caller.client);
}

static smart_status
lock_or_combine(struct smart_services *services, fabric_address leaf, const struct smart_handed *entry,
				enum smart_combined *combined)
{
	const struct smart_rdwc_caller *caller = &services->member->caller;
	struct smart_leaf_locks *locks = services->member->locks;
	unsigned int lock = services->member->lock_of(leaf);
	struct smart_env *env = caller->env;
	struct rdwc_place *place = rdwc_place_of(caller->rdwc, leaf);
	uint64_t limit_ns = (uint64_t) caller->timeout_ms * 1000000;
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);
	uint64_t deadline;
	bool locked;
	bool handed;

	*combined = SMART_COMBINED_NOT;
	if (smart_leaf_lock_try(locks, lock, caller->client))
		return SMART_OK;
	/* Put the entry into the list of its leaf, if it finds room there; else the client does without. */
	handed = entry->length <= SMART_RDWC_ENTRY_BYTES && rdwc_state(line) == RDWC_IDLE;
	if (handed)
	{
		memcpy(line->entry, entry->bytes, entry->length);
		line->handed = *entry;
		handed = rdwc_place_claim(place, leaf, caller->env);
	}
	if (handed)
	{
		rdwc_push(caller->rdwc, &place->handed, caller->client, RDWC_HANDED);
		rdwc_place_unlock(place);
		rdwc_count(&line->counters.waits);
	}
	deadline = env->now_ns(env) + limit_ns;
	for (unsigned int attempt = 0; !look(caller, locks, lock, place, &handed, &locked, combined); attempt++)
	{
		uint64_t now = env->now_ns(env);
		bool late = now >= deadline;

		/*
		 * The outcome of an entry that was taken is waited for as long as a batch of the client's own, whose limit begins
		 * when it is posted.  After that the holder does not run, and the client gives up.
		 */
		if ((late || env->interrupted(env)) &&
			(!handed || withdraw_entry(caller, place) || (now >= deadline + limit_ns && rdwc_give_up(line))))
			return late ? SMART_TIMEOUT : SMART_INTERRUPTED;
		env->pause(env, attempt);
	}
	smart_assert(locked != settled(*combined));
	return SMART_OK;
}

/* ---- the holder of the leaf's lock ---- */

/* A look without the place's lock: the entry may be for another leaf. */
static inline bool
has_entries(const struct rdwc_place *place)
{
	return __atomic_load_n(&place->handed, __ATOMIC_RELAXED) != 0;
}

static bool
is_awaited(struct smart_services *services, fabric_address leaf)
{
	return has_entries(rdwc_place_of(services->member->caller.rdwc, leaf));
}

/* A client that takes no part takes, too, what others have handed in: it costs little. */
static unsigned int
take_handed(struct smart_services *services, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
			unsigned int most)
{
	const struct smart_rdwc_caller *caller = &services->member->caller;
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_place *place = rdwc_place_of(rdwc, leaf);
	unsigned int count = 0;
	uint32_t *link = &place->handed;

	if (!has_entries(place))
		return 0;
	lock_place(place, caller->env);
	while (place->leaf == leaf && *link != 0 && count < most)
	{
		uint32_t client = *link - 1;
		struct rdwc_line *line = rdwc_line(rdwc, client);

		smart_assert(rdwc_state(line) == RDWC_HANDED && line->handed.length <= SMART_RDWC_ENTRY_BYTES);
		/* Another tree's: its client was led here by an old path. */
		if (line->handed.tree != tree)
		{
			link = &line->next;
			continue;
		}
		rdwc_store(link, line->next);
		entries[count] = line->handed;
		entries[count].bytes = line->entry;
		entries[count++].from = client;
		__atomic_store_n(&line->state, RDWC_TAKEN, __ATOMIC_RELEASE);
	}
	rdwc_place_unlock(place);
	if (count > 0)
		rdwc_count(&rdwc_line(rdwc, caller->client)->counters.combined_batches);
	return count;
}

static void
tell_handed(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	(void) tell(rdwc_line(services->member->caller.rdwc, entry->from), RDWC_SETTLED + (uint32_t) combined);
}

/* ---- all of it ---- */

void
smart_rdwc_services_init(struct smart_services *services, struct smart_rdwc_member *member)
{
	smart_assert(member->locks != NULL && member->lock_of != NULL);
	services->member = member;
	services->lock_leaf = lock_leaf;
	services->unlock_leaf = unlock_leaf;
	services->try_lock_leaf = try_lock_leaf;
	if (member->caller.rdwc == NULL)
		return;
	services->read_begin = read_begin;
	services->read_end = read_end;
	services->lock_or_combine = lock_or_combine;
	services->is_awaited = is_awaited;
	services->take_handed = take_handed;
	services->tell_handed = tell_handed;
}
