/*
 * threads.c
 *	  Threads of a test that all do the same.
 */
#include <pthread.h>
#include <stdint.h>

#include "support/must.h"
#include "support/threads.h"

#define THREADS_MAX 64

void
test_run_threads(unsigned int count, void *(*work)(void *), void *first, size_t bytes)
{
	pthread_t thread[THREADS_MAX];

	must(count <= THREADS_MAX, "threads of a test");
	for (unsigned int i = 0; i < count; i++)
		must(pthread_create(&thread[i], NULL, work, (void *) ((uintptr_t) first + i * bytes)) == 0, "pthread_create");
	for (unsigned int i = 0; i < count; i++)
		must(pthread_join(thread[i], NULL) == 0, "pthread_join");
}
