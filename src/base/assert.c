/*
 * assert.c
 *	  What a failed assertion does: say where, and stop with a core.
 */
#include "base/assert.h"

#ifdef SMART_ASSERTIONS
#include <stdio.h>
#include <stdlib.h>

void
smart_assert_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
	abort();
}
#else
typedef int smart_assertions_are_off;
#endif
