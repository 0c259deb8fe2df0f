/*
 * cluster.c
 *	  What simulated and real clusters have in common.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "cluster.h"
#include "keys.h"
#include "random.h"

#define ALIGNMENT         128
#define ATTEMPTS_YIELDING 100 /* of a wait; then it sleeps */
#define SLEEP_NS          20000

bool
ycsb_complain(const char *what, smart_status status)
{
	fprintf(stderr, "ycsb: %s: %s\n", what, smart_status_text(status));
	return false;
}

struct smart_tree_options
ycsb_tree_options(const struct ycsb_options *options, uint32_t lease, unsigned int client)
{
	return (struct smart_tree_options){
		.leaf_size = options->leaf_size,
		.fixed_length = options->string ? 0 : YCSB_INTEGER_BYTES + YCSB_PAYLOAD,
		.shared = options->shared,
		.lease = lease,
		.backend = client + 1,
		.point = ycsb_point,
		.hints = true,
		.payload = YCSB_PAYLOAD,
		.point_argument = options->string ? (void *) (uintptr_t) options : NULL,
	};
}

void *
ycsb_allocate_table(size_t bytes)
{
	return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

bool
ycsb_open_tables(const struct ycsb_options *options, unsigned int clients, uint64_t seed, struct smart_cache **cache,
				 struct smart_rdwc **rdwc)
{
	bool caches = options->cache_bytes > 0;

	smart_assert(*cache == NULL && *rdwc == NULL && clients > 0);
	if (caches)
		*cache = ycsb_allocate_table(smart_cache_size(options->cache_bytes, clients));
	if (options->rdwc)
		*rdwc = ycsb_allocate_table(smart_rdwc_size(SMART_RDWC_PLACES, clients));
	if ((caches && *cache == NULL) || (options->rdwc && *rdwc == NULL))
		return false;
	if (caches)
		smart_cache_init(*cache, options->cache_bytes, clients, seed);
	if (options->rdwc)
		smart_rdwc_init(*rdwc, SMART_RDWC_PLACES, clients);
	return true;
}

/* ---- the environment of a thread: the C library's memory, the system's clock ---- */

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
