/*
 * wait.c
 *	  Waiting for a socket, and interrupts that come late.
 */
#include "base/assert.h"
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
wait_status(struct smart_env *env, struct grace *grace)
{
	uint64_t now;

	if (grace != NULL && grace->is_over != NULL && grace->is_over(grace))
		return SMART_UNREACHABLE;
	if (!env->interrupted(env))
		return SMART_OK;
	if (grace == NULL)
		return SMART_INTERRUPTED;
	now = env->now_ns(env);
	if (grace->until_ns == 0)
		grace->until_ns = now + GRACE_NS;
	return now >= grace->until_ns ? SMART_INTERRUPTED : SMART_OK;
}

smart_status
wait_slice(struct smart_env *env, struct grace *grace, int descriptor, bool to_write, uint64_t deadline_ns)
{
	smart_status status = wait_status(env, grace);
	uint32_t left;

	smart_assert(descriptor >= 0);
	if (status != SMART_OK)
		return status;
	left = wait_remaining_ms(env, deadline_ns);
	if (left == 0)
		return SMART_TIMEOUT;
	env->wait_descriptor(env, descriptor, to_write, left < SLICE_MS ? left : SLICE_MS);
	return SMART_OK;
}
