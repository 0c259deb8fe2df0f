/*
 * env_thread.c
 *	  An environment for a thread of a test program.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/thread_env.h"
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
thread_random(struct smart_env *env)
{
	return test_random(&((struct env_thread *) env)->random_state);
}

static bool
thread_interrupted(struct smart_env *env)
{
	return __atomic_load_n(&((struct env_thread *) env)->stop, __ATOMIC_RELAXED);
}

void
env_thread_init(struct env_thread *thread, uint64_t seed)
{
	*thread = (struct env_thread){.env = smart_thread_env, .random_state = seed};
	thread->env.allocate = thread_allocate;
	thread->env.release = thread_release;
	thread->env.random = thread_random;
	thread->env.interrupted = thread_interrupted;
}
