/*
 * env_thread.h
 *	  An environment for a thread of a test program.
 */
#ifndef TEST_ENV_THREAD_H
#define TEST_ENV_THREAD_H

#include <stdbool.h>

#include "base/env.h"

struct env_thread
{
	struct smart_env env; /* first */
	uint64_t random_state;
	bool stop;                /* set it to interrupt the client (by __atomic_store_n) */
	unsigned int fail_one_in; /* 0: allocate fails only when malloc does; n: also one time in n, at random */
	uint64_t allocations;     /* calls that succeeded, less releases: 0 at the end or there is a leak */
};

extern void env_thread_init(struct env_thread *thread, uint64_t seed);

/* A pseudo-random number from a state of one's own (splitmix64). */
extern uint64_t test_random(uint64_t *state);

#endif /* TEST_ENV_THREAD_H */
