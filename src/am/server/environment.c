/*
 * environment.c
 *	  A server process as the environment of the code below (base/env.h).
 *
 * Nothing here raises an error: it would jump through the tree.
 */
#include "postgres.h"

#include <poll.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/s_lock.h"

#include "am/compat.h"
#include "am/server/environment.h"
#include "base/clock.h"

/* A signal that comes between two looks at interrupted() and the sleep is noticed after that long. */
#define SLEEP_MAX_MS 100

static uint32 wait_event = PG_WAIT_EXTENSION;
static uint32 pause_event = PG_WAIT_EXTENSION;

/* malloc, since palloc would jump through the tree when there is no memory. */
static void *
environment_allocate(struct smart_env *env, size_t bytes)
{
	return malloc(bytes);
}

static void
environment_release(struct smart_env *env, void *memory)
{
	free(memory);
}

static uint64_t
environment_now_ns(struct smart_env *env)
{
	return smart_clock_ns();
}

static uint64_t
environment_random(struct smart_env *env)
{
	return pg_prng_uint64(&pg_global_prng_state);
}

static void
environment_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	int elevel = level == SMART_LOG_WARNING ? WARNING : level == SMART_LOG_INFO ? LOG : DEBUG1;

	ereport(elevel, errmsg_internal("smart: %s", line));
}

/* Only if the error could be raised as soon as the tree has unwound. */
static bool
environment_interrupted(struct smart_env *env)
{
	if (likely(!InterruptPending) || InterruptHoldoffCount != 0 || CritSectionCount != 0)
		return false;
	return ProcDiePending || (QueryCancelPending && QueryCancelHoldoffCount == 0);
}

static void
environment_pause(struct smart_env *env, unsigned int attempt)
{
	if (attempt < 100)
	{
		SPIN_DELAY();
		return;
	}
	pgstat_report_wait_start(pause_event);
	pg_usleep(attempt < 1000 ? 10 : 1000);
	pgstat_report_wait_end();
}

/* A plain poll(): every round trip passes here, and a signal ends it early, which is all that a latch would add. */
static bool
environment_wait_descriptor(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms)
{
	struct pollfd wait = {.fd = descriptor, .events = to_write ? POLLOUT : POLLIN};
	int ready;

	pgstat_report_wait_start(wait_event);
	ready = poll(&wait, 1, (int) Min(timeout_ms, SLEEP_MAX_MS));
	pgstat_report_wait_end();
	return ready > 0;
}

struct smart_env smart_environment = {
	.allocate = environment_allocate,
	.release = environment_release,
	.now_ns = environment_now_ns,
	.random = environment_random,
	.log = environment_log,
	.interrupted = environment_interrupted,
	.pause = environment_pause,
	.wait_descriptor = environment_wait_descriptor,
};

void
smart_environment_init(void)
{
	wait_event = smart_wait_event("SmartMemoryNode");
	/* For another session that is at the same leaf, or elsewhere in the way. */
	pause_event = smart_wait_event("SmartLeaf");
}

uint64_t
smart_random_token(void)
{
	uint64_t token;

	do
		token = pg_prng_uint64(&pg_global_prng_state);
	while (token == 0);
	return token;
}
