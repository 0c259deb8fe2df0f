/*
 * threads.h
 *	  Threads of a test that all do the same.
 */
#ifndef TEST_THREADS_H
#define TEST_THREADS_H

#include <stddef.h>

/*
 * Calls work() in so many threads at once and waits for all of them.  Thread i gets
 * first + i * bytes: an element of an array, with bytes 0 the same for all, or with
 * bytes 1 a number from first on.  Aborts when a thread cannot be made.
 */
extern void test_run_threads(unsigned int count, void *(*work)(void *), void *first, size_t bytes);

#endif /* TEST_THREADS_H */
