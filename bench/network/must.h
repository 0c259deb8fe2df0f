/*
 * must.h
 *	  Ends a program that cannot go on.
 */
#ifndef BENCH_NETWORK_MUST_H
#define BENCH_NETWORK_MUST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Unless it is fine: prints what failed, with errno, and exits. */
static inline void
must(bool fine, const char *what)
{
	if (fine)
		return;
	perror(what);
	exit(1);
}

#endif /* BENCH_NETWORK_MUST_H */
