/*
 * rdwc_write.c
 *	  Write combining: entries that are handed in while somebody else has the lock
 *	  of their leaf.
 *
 * The holder settles what it took before it lets go of the lock.  So who gets the
 * lock finds its own entry in the list, or knows what became of it.
 */
#include <string.h>

#include "compute/rdwc_parts.h"

/* Puts the entry into the list of its leaf; false: it has to do without. */
static bool
hand_in(const struct smart_rdwc_caller *caller, struct rdwc_place *place, fabric_address leaf,
		const struct smart_handed *entry)
{
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);

	if (entry->length > SMART_RDWC_ENTRY_BYTES || rdwc_state(line) != RDWC_IDLE)
		return false;
	memcpy(line->entry, entry->bytes, entry->length);
	line->handed = *entry;
	if (!rdwc_place_claim(place, leaf, caller->env))
		return false;
	rdwc_push(caller->rdwc, &place->handed, caller->client, RDWC_HANDED);
	rdwc_place_unlock(place);
	rdwc_count(&line->counters.waits);
	return true;
}

/* Takes the entry back; false: somebody has taken it. */
static bool
withdraw(const struct smart_rdwc_caller *caller, struct rdwc_place *place)
{
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);
	bool waits;

	rdwc_place_lock(place, caller->env);
	waits = rdwc_state(line) == RDWC_HANDED;
	if (waits)
		rdwc_unlink(caller->rdwc, &place->handed, caller->client);
	rdwc_place_unlock(place);
	if (waits)
		rdwc_count(&line->counters.withdrawals);
	return waits;
}

/* What became of the entry, if that is known; the line is idle then. */
static bool
hear(struct rdwc_line *line, enum smart_combined *combined)
{
	uint32_t state = rdwc_state(line);

	if (state < RDWC_SETTLED)
		return false;
	*combined = (enum smart_combined)(state - RDWC_SETTLED);
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

/* One look: is the wait over?  *handed: the entry is still with the table.  *locked: the lock is the client's. */
static bool
look(const struct smart_rdwc_caller *caller, struct smart_leaf_locks *locks, unsigned int lock,
	 struct rdwc_place *place, bool *handed, bool *locked, enum smart_combined *combined)
{
	struct rdwc_line *line = rdwc_line(caller->rdwc, caller->client);

	if (*handed && hear(line, combined))
	{
		*handed = false;
		if (settled(*combined))
			return true;
	}
	*locked = smart_leaf_lock_try(locks, lock, caller->client);
	if (!*locked)
		return false;
	if (*handed && !withdraw(caller, place))
	{
		bool known = hear(line, combined);

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

/*
 * The client is asked to stop, or has waited for too long; true: it has let go of its
 * entry.  What was taken is waited for as a batch of one's own, whose limit begins when
 * it is posted; beyond that only a holder that does not run is to be feared.
 */
static bool
stop_waiting(const struct smart_rdwc_caller *caller, struct rdwc_place *place, bool handed, bool much_too_late)
{
	if (!handed || withdraw(caller, place))
		return true;
	return much_too_late && rdwc_give_up(rdwc_line(caller->rdwc, caller->client));
}

smart_status
smart_rdwc_lock_or_combine(const struct smart_rdwc_caller *caller, struct smart_leaf_locks *locks, unsigned int lock,
						   fabric_address leaf, const struct smart_handed *entry, enum smart_combined *combined)
{
	struct smart_env *env = caller->env;
	struct rdwc_place *place = rdwc_place_of(caller->rdwc, leaf);
	uint64_t limit_ns = (uint64_t) caller->timeout_ms * 1000000;
	uint64_t deadline;
	bool locked;
	bool handed;

	*combined = SMART_COMBINED_NOT;
	if (smart_leaf_lock_try(locks, lock, caller->client))
		return SMART_OK;
	handed = hand_in(caller, place, leaf, entry);
	deadline = env->now_ns(env) + limit_ns;
	for (unsigned int attempt = 0; !look(caller, locks, lock, place, &handed, &locked, combined); attempt++)
	{
		uint64_t now = env->now_ns(env);
		bool late = now >= deadline;

		if ((late || env->interrupted(env)) && stop_waiting(caller, place, handed, now >= deadline + limit_ns))
			return late ? SMART_TIMEOUT : SMART_INTERRUPTED;
		env->pause(env, attempt);
	}
	smart_assert(locked != settled(*combined));
	return SMART_OK;
}

/* ---- the holder of the leaf's lock ---- */

/* Without the table's lock: it may be somebody with an entry for another leaf. */
bool
smart_rdwc_is_awaited(const struct smart_rdwc_caller *caller, fabric_address leaf)
{
	return __atomic_load_n(&rdwc_place_of(caller->rdwc, leaf)->handed, __ATOMIC_RELAXED) != 0;
}

unsigned int
smart_rdwc_take(const struct smart_rdwc_caller *caller, fabric_address leaf, uint64_t tree,
				struct smart_handed *entries, unsigned int most)
{
	struct smart_rdwc *rdwc = caller->rdwc;
	struct rdwc_place *place = rdwc_place_of(rdwc, leaf);
	unsigned int count = 0;
	uint32_t *link = &place->handed;

	if (!smart_rdwc_is_awaited(caller, leaf))
		return 0;
	rdwc_place_lock(place, caller->env);
	while (place->leaf == leaf && *link != 0 && count < most)
	{
		uint32_t client = *link - 1;
		struct rdwc_line *line = rdwc_line(rdwc, client);

		/* Another tree's: somebody was led here by an old path. */
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

void
smart_rdwc_settle(const struct smart_rdwc_caller *caller, const struct smart_handed *entry,
				  enum smart_combined combined)
{
	(void) rdwc_tell(rdwc_line(caller->rdwc, entry->from), RDWC_SETTLED + (uint32_t) combined);
}
