/*
 * announce.c
 *	  Announcing the node in memcached.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "announce.h"
#include "log.h"

#define ASK_WITHIN_MS 200
#define TIMES_A_TTL   3

struct memnode_announcer
{
	struct discovery *discovery;
	struct discovery_node node;
	uint32_t ttl_s;
	pthread_t thread;
	pthread_mutex_t mutex; /* of stop */
	pthread_cond_t changed;
	bool stop;
};

/* A failure is said once, and so is its end. */
static void
announce_once(struct memnode_announcer *announcer, bool *announced, bool *failed)
{
	char problem[SESSION_PROBLEM_MAX];

	if (discovery_announce(announcer->discovery, &announcer->node, announcer->ttl_s, problem) != SMART_OK)
	{
		if (!*failed)
			memnode_log(SMART_LOG_WARNING, "cannot announce this node, going on trying: %s", problem);
		*failed = true;
		return;
	}
	if (*failed || !*announced)
		memnode_log(SMART_LOG_INFO, "announced as %s, port %s", announcer->node.host, announcer->node.port);
	*announced = true;
	*failed = false;
}

/* False: time is up.  True: to be stopped. */
static bool
wait_for_stop(struct memnode_announcer *announcer)
{
	uint64_t wait_ms = (uint64_t) announcer->ttl_s * 1000 / TIMES_A_TTL;
	struct timespec until;
	bool stop;

	smart_assert(wait_ms > 0);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t) (wait_ms / 1000);
	until.tv_nsec += (long) (wait_ms % 1000 * 1000000);
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	smart_assert(until.tv_nsec >= 0 && until.tv_nsec < 1000000000);
	pthread_mutex_lock(&announcer->mutex);
	while (!announcer->stop && pthread_cond_timedwait(&announcer->changed, &announcer->mutex, &until) == 0)
		continue;
	stop = announcer->stop;
	pthread_mutex_unlock(&announcer->mutex);
	return stop;
}

static void *
run(void *argument)
{
	struct memnode_announcer *announcer = argument;
	bool announced = false;
	bool failed = false;

	do
		announce_once(announcer, &announced, &failed);
	while (!wait_for_stop(announcer));
	discovery_withdraw(announcer->discovery);
	return NULL;
}

bool
memnode_announcer_start(const struct memnode_options *options, const struct discovery_node *node,
						struct memnode_announcer **announcer, char problem[MEMNODE_PROBLEM_MAX])
{
	struct memnode_announcer *made = calloc(1, sizeof(*made));
	char why[SESSION_PROBLEM_MAX];
	pthread_condattr_t clock;
	sigset_t all;
	sigset_t before;
	int error;

	smart_assert(options->memcached[0] != '\0' && options->ttl_s >= TIMES_A_TTL);
	smart_assert(node->host[0] != '\0' && node->port[0] != '\0');
	if (made == NULL)
		return memnode_refuse(problem, "this process has no memory left");
	made->node = *node;
	made->ttl_s = options->ttl_s;
	if (discovery_open(options->memcached, options->cluster, ASK_WITHIN_MS, &made->discovery, why) != SMART_OK)
	{
		free(made);
		return memnode_refuse(problem, "memcached: %s", why);
	}
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&made->mutex, NULL);
	pthread_cond_init(&made->changed, &clock);
	pthread_condattr_destroy(&clock);
	/* The thread takes no signals: they are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&made->thread, NULL, run, made);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
	{
		discovery_close(made->discovery);
		free(made);
		return memnode_refuse(problem, "memcached: no thread: %s", strerror(error));
	}
	*announcer = made;
	return true;
}

void
memnode_announcer_stop(struct memnode_announcer *announcer)
{
	pthread_mutex_lock(&announcer->mutex);
	smart_assert(!announcer->stop);
	announcer->stop = true;
	pthread_cond_signal(&announcer->changed);
	pthread_mutex_unlock(&announcer->mutex);
	pthread_join(announcer->thread, NULL);
	discovery_close(announcer->discovery);
	pthread_cond_destroy(&announcer->changed);
	pthread_mutex_destroy(&announcer->mutex);
	free(announcer);
}
