/*
 * must.h
 *	  For a test that cannot go on.
 */
#ifndef TEST_MUST_H
#define TEST_MUST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Aborts the program with what failed, and errno's text, unless the condition is true. */
static inline void
must(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

#endif /* TEST_MUST_H */
