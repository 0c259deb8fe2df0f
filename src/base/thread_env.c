/*
 * thread_env.c
 *	  The environment of a thread of a program that is no server.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread_env.h"

#define ATTEMPTS_YIELDING 100 /* of a wait; then it sleeps */
#define SLEEP_NS          20000

static void *
thread_allocate(struct smart_env *env, size_t bytes)
{
	return malloc(bytes);
}

static void
thread_release(struct smart_env *env, void *memory)
{
	free(memory);
}

static uint64_t
thread_now_ns(struct smart_env *env)
{
	return smart_clock_ns();
}

static void
thread_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	if (level > SMART_LOG_DEBUG)
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

static bool
thread_interrupted(struct smart_env *env)
{
	return false;
}

static void
thread_pause(struct smart_env *env, unsigned int attempt)
{
	const struct timespec moment = {0, SLEEP_NS};

	if (attempt < ATTEMPTS_YIELDING)
		sched_yield();
	else
		nanosleep(&moment, NULL);
}

static bool
thread_wait_descriptor(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms)
{
	struct pollfd wanted = {.fd = descriptor, .events = (short) (POLLIN | (to_write ? POLLOUT : 0))};

	return poll(&wanted, 1, timeout_ms < INT32_MAX ? (int) timeout_ms : INT32_MAX) > 0;
}

const struct smart_env smart_thread_env = {
	.allocate = thread_allocate,
	.release = thread_release,
	.now_ns = thread_now_ns,
	.log = thread_log,
	.interrupted = thread_interrupted,
	.pause = thread_pause,
	.wait_descriptor = thread_wait_descriptor,
};
