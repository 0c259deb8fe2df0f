/*
 * ycsb_env.c
 *	  The environment of a thread: the C library's memory, the system's clock.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ycsb_env.h"
#include "ycsb_random.h"

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
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static uint64_t
thread_random(struct smart_env *env)
{
	return ycsb_random(&((struct ycsb_env *) env)->random);
}

static void
thread_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	if (level > SMART_LOG_DEBUG)
		fprintf(stderr, "ycsb: %s\n", line);
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

void
ycsb_env_init(struct ycsb_env *env, uint64_t seed)
{
	*env = (struct ycsb_env){
		.env =
			{
				.allocate = thread_allocate,
				.release = thread_release,
				.now_ns = thread_now_ns,
				.random = thread_random,
				.log = thread_log,
				.interrupted = thread_interrupted,
				.pause = thread_pause,
				.wait_descriptor = thread_wait_descriptor,
			},
		.random = seed,
	};
}
