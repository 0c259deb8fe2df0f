/*
 * wait.c
 *	  Waiting for a socket, a slice at a time.
 */
#include "rdma/wait.h"

#define SLICE_MS 50 /* an interrupt that wakes nobody is noticed after this long */

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
