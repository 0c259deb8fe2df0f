/*
 * wait.c
 *	  Waiting for a socket, and interrupts that come late.
 */
#include "rdma/wait.h"

#define SLICE_MS 50 /* an interrupt that ends no wait is noticed after this long */
#define GRACE_NS UINT64_C(50000000)

uint32_t
wait_remaining_ms(struct smart_env *env, uint64_t deadline_ns)
{
	uint64_t now = env->now_ns(env);
	uint64_t left = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;

	return left < UINT32_MAX ? (uint32_t) left : UINT32_MAX;
}

smart_status
wait_slice(struct smart_env *env, int descriptor, bool to_write, uint64_t deadline_ns)
{
	uint32_t left;

	if (env->interrupted(env))
		return SMART_INTERRUPTED;
	left = wait_remaining_ms(env, deadline_ns);
	if (left == 0)
		return SMART_TIMEOUT;
	env->wait_descriptor(env, descriptor, to_write, left < SLICE_MS ? left : SLICE_MS);
	return SMART_OK;
}

/* ---- grace ---- */

static struct smart_env *
outer_of(struct smart_env *env)
{
	return ((struct grace *) env)->outer;
}

static void *
grace_allocate(struct smart_env *env, size_t bytes)
{
	return outer_of(env)->allocate(outer_of(env), bytes);
}

static void
grace_release(struct smart_env *env, void *memory)
{
	outer_of(env)->release(outer_of(env), memory);
}

static uint64_t
grace_now_ns(struct smart_env *env)
{
	return outer_of(env)->now_ns(outer_of(env));
}

static uint64_t
grace_random(struct smart_env *env)
{
	return outer_of(env)->random(outer_of(env));
}

static void
grace_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	outer_of(env)->log(outer_of(env), level, line);
}

static bool
grace_interrupted(struct smart_env *env)
{
	struct grace *grace = (struct grace *) env;
	uint64_t now;

	if (!grace->outer->interrupted(grace->outer))
		return false;
	now = grace_now_ns(env);
	if (grace->until_ns == 0)
		grace->until_ns = now + GRACE_NS;
	return now >= grace->until_ns;
}

static void
grace_pause(struct smart_env *env, unsigned int attempt)
{
	outer_of(env)->pause(outer_of(env), attempt);
}

static bool
grace_wait_descriptor(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms)
{
	return outer_of(env)->wait_descriptor(outer_of(env), descriptor, to_write, timeout_ms);
}

void
grace_init(struct grace *grace, struct smart_env *outer)
{
	*grace = (struct grace){
		.env = {grace_allocate, grace_release, grace_now_ns, grace_random, grace_log, grace_interrupted, grace_pause,
				grace_wait_descriptor},
		.outer = outer,
	};
}
