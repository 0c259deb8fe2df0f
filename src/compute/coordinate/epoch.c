/*
 * epoch.c
 *	  Reclamation epochs: when a block may be used again (I6).
 *
 * There is one number E for the compute node, and one line per client.  enter
 * stores E in the client's line, leave stores 0.  E rises from e to e + 1 only
 * by a CAS of a client that has read e, then has seen every line at 0 or e.  A
 * retired block is stamped with E as it is after the block was unlinked, and
 * used again once E >= stamp + 2.
 *
 * Why no client sees a block change its owner under its eyes.  Let client C have
 * entered with p in its line, and let C reach block B, which R unlinks and
 * stamps with s while C is still inside.
 *
 * (1) s >= G, G being E at the moment when C's line became visible.  C reads
 *     links only after its line is visible (the exchange in enter, and the
 *     load behind it), and it found a link to B; R's unlinking CAS comes after that
 *     read, and R loads E behind that CAS.  E never falls.
 * (2) While C stays inside, E <= G + 1.  The client that raises E from e has first read
 *     e, then C's line.  Raising from G + 1 needs E = G + 1 to be read, which
 *     is later than C's line became visible, so that scan sees p in the line,
 *     and p <= G is neither 0 nor G + 1.  (A scan that began earlier may have
 *     missed the line: that is the one step from G to G + 1.)
 * (3) Hence E <= G + 1 < s + 2 as long as C stays inside, and B is not used
 *     again.
 *
 * That p may be older than G (E rose between C's load and its exchange) does
 * no harm to (2); it only keeps E from rising, so enter looks once more and
 * stores the newer number before it reads any link.
 *
 * A client that died inside stops E for good: memory is then not reused, and
 * nothing else is wrong.  The server resets shared memory when a backend dies
 * so.
 */
#include <string.h>

#include "base/assert.h"
#include "compute/coordinate/epoch.h"

/* No operation takes so long, unless its process does not run: an operation on memory nodes has a limit of its own. */
#define AWAIT_MS 60000

_Static_assert(sizeof(struct smart_epoch_line) == 64, "a client's line is a cache line");
_Static_assert(offsetof(struct smart_epoch_shared, clients) == 64, "the epoch has a cache line of its own");
_Static_assert(offsetof(struct smart_epoch_shared, line) == 128, "lines are aligned");

size_t
smart_epoch_size(unsigned int clients)
{
	return sizeof(struct smart_epoch_shared) + clients * sizeof(struct smart_epoch_line);
}

void
smart_epoch_init(struct smart_epoch_shared *shared, unsigned int clients, uint64_t start)
{
	smart_assert(clients >= 1 && clients < SMART_CLIENTS_MAX);
	memset(shared, 0, smart_epoch_size(clients));
	shared->epoch = start > SMART_EPOCH_GRACE ? start : SMART_EPOCH_GRACE + 1;
	shared->clients = clients;
}

unsigned int
smart_epoch_claim(struct smart_epoch_shared *shared, uint64_t owner)
{
	smart_assert(owner != 0);
	for (unsigned int client = 0; client < shared->clients; client++)
	{
		uint64_t expected = 0;
		uint32_t seen;

		/* Pairs with the release in unclaim: the line is as its last owner left it, at 0. */
		if (__atomic_load_n(&shared->line[client].owner, __ATOMIC_RELAXED) == 0 &&
			__atomic_compare_exchange_n(&shared->line[client].owner, &expected, owner, false, __ATOMIC_ACQUIRE,
										__ATOMIC_RELAXED))
		{
			smart_assert(__atomic_load_n(&shared->line[client].epoch, __ATOMIC_RELAXED) == 0);
			/*
			 * Scans must not miss the line, so the mark rises before the client can enter.  Sequentially consistent
			 * like enter's exchange, which comes later: a scan that misses the mark misses no reader.
			 */
			seen = __atomic_load_n(&shared->claimed, __ATOMIC_RELAXED);
			while (seen < client + 1 && !__atomic_compare_exchange_n(&shared->claimed, &seen, client + 1, false,
																	 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				continue;
			return client;
		}
	}
	return SMART_CLIENT_NONE;
}

void
smart_epoch_unclaim(struct smart_epoch_shared *shared, unsigned int client)
{
	smart_assert(client < shared->clients && smart_epoch_owner(shared, client) != 0);
	smart_epoch_leave(shared, client);
	/* Release: pairs with the CAS in claim. */
	__atomic_store_n(&shared->line[client].owner, 0, __ATOMIC_RELEASE);
}

uint64_t
smart_epoch_owner(const struct smart_epoch_shared *shared, unsigned int client)
{
	smart_assert(client < shared->clients);
	return __atomic_load_n(&shared->line[client].owner, __ATOMIC_ACQUIRE);
}

void
smart_epoch_enter(struct smart_epoch_shared *shared, unsigned int client)
{
	struct smart_epoch_line *line = &shared->line[client];
	uint64_t epoch = __atomic_load_n(&shared->epoch, __ATOMIC_ACQUIRE);
	uint64_t newer;

	/* Atomic: a claim that loses its CAS on this owner counts as a write. */
	smart_assert(client < shared->clients && smart_epoch_owner(shared, client) != 0);
	smart_assert(__atomic_load_n(&line->epoch, __ATOMIC_RELAXED) == 0);
	/*
	 * The line is visible before any link is read.  Partner: the scan in try_advance.  The exchange alone is no fence on
	 * arm64: what it stores may become visible after loads that come next, acquires included.  A sequentially consistent
	 * load does not go ahead of it, and no link is read ahead of that load.
	 */
	__atomic_exchange_n(&line->epoch, epoch, __ATOMIC_SEQ_CST);
	newer = __atomic_load_n(&shared->epoch, __ATOMIC_SEQ_CST);
	smart_assert(newer >= epoch && epoch > SMART_EPOCH_GRACE);
	if (smart_unlikely(newer != epoch))
		__atomic_store_n(&line->epoch, newer, __ATOMIC_RELEASE);
}

void
smart_epoch_leave(struct smart_epoch_shared *shared, unsigned int client)
{
	smart_assert(client < shared->clients && smart_epoch_owner(shared, client) != 0);
	/* Release: what was read inside was read before the line is seen at 0.  Partner: the scan in try_advance. */
	__atomic_store_n(&shared->line[client].epoch, 0, __ATOMIC_RELEASE);
}

uint64_t
smart_epoch_now(const struct smart_epoch_shared *shared)
{
	/*
	 * Sequentially consistent: behind the CAS that unlinked the block that is
	 * to be stamped; and as an acquire behind the readers whose leaving let the
	 * epoch rise, before the block is used again.
	 */
	return __atomic_load_n(&shared->epoch, __ATOMIC_SEQ_CST);
}

bool
smart_epoch_try_advance(struct smart_epoch_shared *shared)
{
	uint64_t epoch = __atomic_load_n(&shared->epoch, __ATOMIC_SEQ_CST);
	uint64_t expected = epoch;
	uint32_t claimed = __atomic_load_n(&shared->claimed, __ATOMIC_SEQ_CST);

	smart_assert(epoch > SMART_EPOCH_GRACE && claimed <= shared->clients);
	for (uint32_t client = 0; client < claimed; client++)
	{
		uint64_t seen = __atomic_load_n(&shared->line[client].epoch, __ATOMIC_SEQ_CST);

		if (seen != 0 && seen != epoch)
			return false;
	}
	/* Publishes that every line was seen at 0 or epoch after the epoch was.  Lost: another client saw the same. */
	__atomic_compare_exchange_n(&shared->epoch, &expected, epoch + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	smart_assert(__atomic_load_n(&shared->epoch, __ATOMIC_RELAXED) > epoch);
	return true;
}

smart_status
smart_epoch_await(struct smart_epoch_shared *shared, struct smart_env *env)
{
	/* Behind the CAS that unlinked the block, as a stamp is. */
	uint64_t end = smart_epoch_now(shared) + SMART_EPOCH_GRACE;
	uint64_t deadline_ns = smart_deadline_ns(env, AWAIT_MS);

	for (unsigned int attempt = 0; smart_epoch_now(shared) < end; attempt++)
	{
		if (smart_epoch_try_advance(shared))
			continue;
		if (env->interrupted(env))
			return SMART_INTERRUPTED;
		if (env->now_ns(env) >= deadline_ns)
			return SMART_TIMEOUT;
		env->pause(env, attempt);
	}
	return SMART_OK;
}
