/*
 * env_thread.c
 *	  An environment for a thread of a test program.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "support/env_thread.h"

uint64_t
test_random(uint64_t *state)
{
	uint64_t word = (*state += UINT64_C(0x9e3779b97f4a7c15));

	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static void *
thread_allocate(struct smart_env *env, size_t bytes)
{
	struct env_thread *thread = (struct env_thread *) env;
	void *memory;

	if (thread->fail_one_in != 0 && test_random(&thread->random_state) % thread->fail_one_in == 0)
		return NULL;
	memory = malloc(bytes);
	thread->allocations += memory != NULL;
	return memory;
}

static void
thread_release(struct smart_env *env, void *memory)
{
	struct env_thread *thread = (struct env_thread *) env;

	smart_assert(memory == NULL || thread->allocations > 0);
	thread->allocations -= memory != NULL;
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
	return test_random(&((struct env_thread *) env)->random_state);
}

static void
thread_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	if (level > SMART_LOG_DEBUG)
		fprintf(stderr, "%s\n", line);
}

static bool
thread_interrupted(struct smart_env *env)
{
	return __atomic_load_n(&((struct env_thread *) env)->stop, __ATOMIC_RELAXED);
}

static void
thread_pause(struct smart_env *env, unsigned int attempt)
{
	struct timespec moment = {0, attempt < 1000 ? 1000 + 100 * (long) attempt : 100000};

	if (attempt < 100)
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
env_thread_init(struct env_thread *thread, uint64_t seed)
{
	*thread = (struct env_thread){
		.env = {thread_allocate, thread_release, thread_now_ns, thread_random, thread_log, thread_interrupted,
				thread_pause, thread_wait_descriptor},
		.random_state = seed,
	};
}
