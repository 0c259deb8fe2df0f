/*
 * check.c
 *	  Counting checks of a test program.
 */
#include <stdio.h>

#include "support/check.h"

#define SHOWN 20 /* failures printed; a broken invariant repeats itself */

static unsigned long passed;
static unsigned long failed;

bool
check_at(bool condition, const char *text, const char *file, int line)
{
	if (condition)
		__atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
	else if (__atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED) < SHOWN)
		printf("FAIL %s:%d: %s\n", file, line, text);
	return condition;
}

int
check_finish(void)
{
	printf("%lu passed, %lu failed\n", passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}
