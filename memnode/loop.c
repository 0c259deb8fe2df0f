/*
 * loop.c
 *	  Waiting for sockets, signals and time limits.
 *
 * Connections are freed at the end of a round only, since its events may still name
 * them, and since serving one may end others.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "connection.h"
#include "log.h"
#include "loop.h"

#define EVENTS          64
#define ACCEPTS_A_TURN  64
#define TICK_MS         250
#define ACCEPT_AGAIN_NS UINT64_C(1000000000)
#define REFUSED_AT_ONCE 64u /* connections above the limit that get an answer */

struct memnode_loop
{
	const struct memnode_loop_options *options;
	int epoll;
	int signals;
	struct memnode_connection *connections;
	bool limited;             /* some connection may have a deadline */
	bool busy;                /* some connection goes on without an event */
	uint64_t accept_again_ns; /* there were no descriptors left: do not accept until then; 0: accept */
	bool stop;
};

/* ---- coming and going ---- */

static void
add_connection(struct memnode_loop *loop, int descriptor, const char *name)
{
	const struct memnode_loop_options *options = loop->options;
	bool refused = options->node->client_count >= options->max_connections;
	struct memnode_connection *connection =
		memnode_connection_open(options->node, loop->epoll, descriptor, options->secret, name, refused);

	if (connection == NULL)
	{
		memnode_log(SMART_LOG_WARNING, "%s: refused: no memory for the connection", name);
		return;
	}
	if (refused)
		memnode_log(SMART_LOG_WARNING, "%s: refused: there are %u connections (max-connections)", name,
					options->max_connections);
	connection->next = loop->connections;
	loop->connections = connection;
	loop->limited = true;
}

/* A turn of a connection; what it leaves to do is noted. */
static void
turn(struct memnode_loop *loop, struct memnode_connection *connection)
{
	memnode_connection_turn(connection);
	loop->busy = loop->busy || connection->busy;
	loop->limited = loop->limited || connection->deadline_ns != 0;
}

static void
watch_listeners(struct memnode_loop *loop, bool on)
{
	const struct memnode_listeners *listeners = loop->options->listeners;

	for (unsigned int i = 0; i < listeners->count; i++)
	{
		struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = loop};

		epoll_ctl(loop->epoll, EPOLL_CTL_MOD, listeners->descriptor[i], &event);
	}
	loop->accept_again_ns = on ? 0 : memnode_now_ns() + ACCEPT_AGAIN_NS;
}

/* Takes a waiting connection in.  False: there is none, or none can be had now. */
static bool
accept_one(struct memnode_loop *loop, int listener)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	int descriptor = accept4(listener, (struct sockaddr *) &address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
	char name[MEMNODE_NAME_MAX];

	if (descriptor < 0)
	{
		if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
			return errno == ECONNABORTED || errno == EINTR;
		memnode_log(SMART_LOG_WARNING, "cannot accept connections: %s", strerror(errno));
		watch_listeners(loop, false);
		return false;
	}
	if (loop->options->node->client_count >= loop->options->max_connections + REFUSED_AT_ONCE)
	{
		close(descriptor);
		return true;
	}
	memnode_address_text((struct sockaddr *) &address, length, name, sizeof(name));
	add_connection(loop, descriptor, name);
	return true;
}

static void
accept_all(struct memnode_loop *loop)
{
	const struct memnode_listeners *listeners = loop->options->listeners;

	for (unsigned int i = 0; i < listeners->count; i++)
	{
		unsigned int accepted = 0;

		while (accepted < ACCEPTS_A_TURN && accept_one(loop, listeners->descriptor[i]))
			accepted++;
	}
}

/* Frees the connections that have ended. */
static void
remove_ended(struct memnode_loop *loop)
{
	struct memnode_connection **link = &loop->connections;

	loop->options->node->client_ended = false;
	while (*link != NULL)
	{
		struct memnode_connection *connection = *link;

		if (!connection->client->ended)
		{
			link = &connection->next;
			continue;
		}
		*link = connection->next;
		memnode_connection_free(connection);
	}
}

/* ---- rounds ---- */

/* Ends the connections whose time is up. */
static void
sweep(struct memnode_loop *loop)
{
	uint64_t now = memnode_now_ns();

	loop->limited = false;
	for (struct memnode_connection *connection = loop->connections; connection != NULL; connection = connection->next)
	{
		if (connection->deadline_ns == 0 || connection->client->ended)
			continue;
		if (now >= connection->deadline_ns)
			memnode_client_end(connection->client, "it took too long to say HELLO, or to leave");
		else
			loop->limited = true;
	}
	if (loop->accept_again_ns != 0 && now >= loop->accept_again_ns)
		watch_listeners(loop, true);
}

static void
take_signals(struct memnode_loop *loop)
{
	struct signalfd_siginfo signal;

	while (read(loop->signals, &signal, sizeof(signal)) == (ssize_t) sizeof(signal))
	{
		if (signal.ssi_signo == SIGHUP)
			loop->options->reload(loop->options->argument);
		else
			loop->stop = true;
	}
}

static void
serve_busy(struct memnode_loop *loop)
{
	loop->busy = false;
	for (struct memnode_connection *connection = loop->connections; connection != NULL; connection = connection->next)
	{
		if (connection->busy)
			turn(loop, connection);
	}
}

static void
round_of_events(struct memnode_loop *loop)
{
	struct epoll_event events[EVENTS];
	int timeout_ms = loop->busy ? 0 : loop->limited || loop->accept_again_ns != 0 ? TICK_MS : -1;
	int count = epoll_wait(loop->epoll, events, EVENTS, timeout_ms);

	loop->options->node->round_ns = memnode_now_ns();
	if (loop->busy)
		serve_busy(loop);
	for (int i = 0; i < count; i++)
	{
		if (events[i].data.ptr == loop)
			accept_all(loop);
		else if (events[i].data.ptr == &loop->signals)
			take_signals(loop);
		else
			turn(loop, events[i].data.ptr);
	}
	if (loop->limited || loop->accept_again_ns != 0)
		sweep(loop);
	if (loop->options->node->client_ended)
		remove_ended(loop);
}

void
memnode_loop_run(struct memnode_loop *loop)
{
	while (!loop->stop)
		round_of_events(loop);
}

/* ---- life ---- */

static bool
watch(const struct memnode_loop *loop, int descriptor, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static bool
watch_sources(struct memnode_loop *loop)
{
	const struct memnode_listeners *listeners = loop->options->listeners;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
		return false;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (loop->epoll < 0 || loop->signals < 0 || !watch(loop, loop->signals, &loop->signals))
		return false;
	for (unsigned int i = 0; i < listeners->count; i++)
	{
		if (!watch(loop, listeners->descriptor[i], loop))
			return false;
	}
	return true;
}

struct memnode_loop *
memnode_loop_open(const struct memnode_loop_options *options, char problem[MEMNODE_PROBLEM_MAX])
{
	struct memnode_loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
	{
		memnode_refuse(problem, "this process has no memory left");
		return NULL;
	}
	loop->options = options;
	loop->epoll = loop->signals = -1;
	if (watch_sources(loop))
		return loop;
	memnode_refuse(problem, "cannot wait for connections: %s", strerror(errno));
	memnode_loop_close(loop);
	return NULL;
}

void
memnode_loop_close(struct memnode_loop *loop)
{
	while (loop->options->node->clients != NULL)
		memnode_client_end(loop->options->node->clients, "the node stops");
	remove_ended(loop);
	if (loop->epoll >= 0)
		close(loop->epoll);
	if (loop->signals >= 0)
		close(loop->signals);
	free(loop);
}
