/*
 * coroutine_test.c
 *	  rdma/sim/coroutine.h: what a function keeps in registers survives switches, whole numbers and others.
 */
#include <stdint.h>

#include "rdma/sim/coroutine.h"
#include "support/check.h"

#define COROUTINES 3
#define SWITCHES   1000

static struct coroutine outside;
static struct coroutine inside[COROUTINES];
static unsigned int running;
static double sums[COROUTINES];
static uint64_t counts[COROUTINES];
static bool aligned = true;

/* More variables than a machine has registers that a call preserves, so that all of those are in use. */
static void
work(void)
{
	unsigned int self = running;
	uint64_t a[12];
	double x[10];
	char here __attribute__((aligned(16)));

	aligned &= (uintptr_t) &here % 16 == 0 && (uintptr_t) __builtin_frame_address(0) % 16 == 0;
	for (unsigned int i = 0; i < 12; i++)
		a[i] = self * 100 + i;
	for (unsigned int i = 0; i < 10; i++)
		x[i] = self + i / 16.0;
	for (;;)
	{
		for (unsigned int i = 0; i < 12; i++)
			a[i] += i;
		for (unsigned int i = 0; i < 10; i++)
			x[i] += 0.5;
		coroutine_switch(&inside[self], &outside);
		counts[self] = 0;
		sums[self] = 0;
		for (unsigned int i = 0; i < 12; i++)
			counts[self] += a[i];
		for (unsigned int i = 0; i < 10; i++)
			sums[self] += x[i];
	}
}

static void
test_switches(void)
{
	double mine = 0.25;

	for (unsigned int i = 0; i < COROUTINES; i++)
	{
		inside[i].stack = NULL;
		coroutine_prepare(&inside[i], work);
	}
	for (unsigned int round = 0; round <= SWITCHES; round++)
	{
		for (running = 0; running < COROUTINES; running++)
		{
			mine += 1;
			coroutine_switch(&outside, &inside[running]);
		}
	}
	CHECK(aligned && mine == 0.25 + COROUTINES * (SWITCHES + 1));
	for (unsigned int i = 0; i < COROUTINES; i++)
	{
		/* Each variable was added to in every round but the last, which has not been counted yet. */
		CHECK(counts[i] == 12 * 100 * i + 66 + 66 * (uint64_t) SWITCHES);
		CHECK(sums[i] == 10 * i + 45 / 16.0 + 5.0 * SWITCHES);
		coroutine_release(&inside[i]);
		CHECK(inside[i].stack == NULL);
	}
}

/* A stack serves again, for another function call. */
static void
test_again(void)
{
	inside[0].stack = NULL;
	for (int i = 0; i < 3; i++)
	{
		running = 0;
		coroutine_prepare(&inside[0], work);
		coroutine_switch(&outside, &inside[0]);
		coroutine_switch(&outside, &inside[0]);
		CHECK(counts[0] == 66 + 66);
	}
	coroutine_release(&inside[0]);
}

int
main(void)
{
	test_switches();
	test_again();
	return check_finish();
}
