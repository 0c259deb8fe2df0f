/*
 * loop.c
 *	  The daemon's one thread: its clients' sockets, signals and time limits.
 *
 * A round waits for events and gives each connection that has one its turn: serve what has come, send the answers,
 * read more, until the socket has no more or others have waited long enough.  Nothing is read from a client that does
 * not take its answers.
 *
 * Connections are freed at the end of a round only, since its events may still name them, and since serving one may
 * end others.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "complaints.h"
#include "door.h"
#include "log.h"
#include "loop.h"
#include "serve.h"

#define EVENTS            64
#define ACCEPTS_A_TURN    64
#define READS_A_TURN      16
#define TICK_MS           250
#define LOOK_MS           5000
#define MS                UINT64_C(1000000)
#define HELLO_WITHIN_NS   (3000 * MS)
#define LEAVE_WITHIN_NS   (1000 * MS)
#define ACCEPT_AGAIN_NS   (1000 * MS) /* when there are no descriptors left, */
#define ACCEPT_SOON_NS    (20 * MS)   /* and when the door is full */
#define SILENT_WITHIN_MS  3000        /* a host that is asked and says nothing is not there */
#define STOOD_STILL_NS    (1000 * MS) /* a round that is so much later than it was to be: this process did not run */
#define DISCARDED_AT_ONCE 4096

/* A client's socket. */
struct connection
{
	struct memnode_guest guest; /* first, so that one is found by the other */
	struct memnode_client *client;
	struct stream *stream;
	struct memnode_loop *loop;
	struct connection *next;
	uint32_t interest;    /* epoll events */
	bool shaken;          /* the TLS handshake is over */
	bool busy;            /* its turn ended before its work */
	bool thrown_out;      /* its time was up, or it had to make room */
	uint64_t deadline_ns; /* it is to be ended then; 0: never */
	uint64_t probed_ns;   /* since when its host is asked whether it is there; 0: it is not */
};

struct memnode_loop
{
	const struct memnode_loop_options *options;
	int epoll;
	int signals;
	struct connection *connections;
	struct memnode_door door;
	struct memnode_complaints complaints;
	bool limited;             /* some connection may have a deadline */
	bool busy;                /* some connection goes on without an event */
	uint64_t accept_again_ns; /* do not accept until then; 0: accept */
	uint64_t looked_ns;       /* when the caller's look() was called last */
	uint64_t round_ns;        /* when the last round began; 0: there was none */
	bool stop;
};

/* Waits for input from now on; what comes back with the event. */
static bool
watch(const struct memnode_loop *loop, int descriptor, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	smart_assert(descriptor >= 0 && what != NULL);
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

/* ---- a connection ---- */

static void
free_connection(struct connection *connection)
{
	smart_assert(!connection->guest.waits);
	if (connection->client != NULL)
		memnode_client_free(connection->client);
	if (connection->stream != NULL)
		stream_close(connection->stream);
	free(connection);
}

/* Makes a connection over an accepted socket, which is its own from now on, also when that fails: NULL. */
static struct connection *
open_connection(struct memnode_loop *loop, int descriptor, const char *name)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	smart_assert(descriptor >= 0);
	if (connection == NULL)
	{
		close(descriptor);
		return NULL;
	}
	connection->loop = loop;
	connection->interest = EPOLLIN;
	connection->stream = stream_accept(descriptor, loop->options->keys);
	if (connection->stream != NULL)
		connection->client = memnode_client_open(loop->options->node, name);
	if (connection->client != NULL && watch(loop, descriptor, connection))
		return connection;
	free_connection(connection);
	return NULL;
}

/* Adds one; address: of the other side. */
static void
add_connection(struct memnode_loop *loop, int descriptor, const struct sockaddr *address, const char *name)
{
	struct connection *connection = open_connection(loop, descriptor, name);
	uint64_t now = smart_clock_ns();

	if (connection == NULL)
	{
		loop->options->node->counters.refused[MEMNODE_REFUSED_MEMORY]++;
		memnode_complain(&loop->complaints, now, name, "no memory for the connection");
		return;
	}
	memnode_door_enter(&loop->door, &connection->guest, address, now);
	smart_assert(connection->guest.waits && !connection->client->greeted);
	connection->deadline_ns = now + HELLO_WITHIN_NS;
	connection->next = loop->connections;
	loop->connections = connection;
	loop->limited = true;
}

static void
throw_out(struct connection *connection, enum memnode_refusal refusal, const char *reason)
{
	smart_assert(refusal < MEMNODE_REFUSALS);
	connection->thrown_out = true;
	/* One that leaves has been refused before. */
	if (!connection->client->leaving)
		connection->client->refusal = refusal;
	memnode_client_end(connection->client, reason);
	memnode_door_leave(&connection->loop->door, &connection->guest);
	smart_assert(connection->client->ended && !connection->guest.waits);
}

/* Has anything come from the other side? */
static bool
has_spoken(const struct connection *connection)
{
	int bytes = 0;

	return ioctl(stream_descriptor(connection->stream), FIONREAD, &bytes) == 0 && bytes > 0;
}

static uint32_t
event_of(enum stream_wait wait)
{
	smart_assert(wait == STREAM_WANT_READ || wait == STREAM_WANT_WRITE);
	return wait == STREAM_WANT_WRITE ? EPOLLOUT : EPOLLIN;
}

static void
set_interest(struct connection *connection, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};

	smart_assert((events & ~(uint32_t) (EPOLLIN | EPOLLOUT)) == 0);
	smart_assert(!connection->client->ended);
	if (connection->interest == events)
		return;
	connection->interest = events;
	if (epoll_ctl(connection->loop->epoll, EPOLL_CTL_MOD, stream_descriptor(connection->stream), &event) != 0)
		memnode_client_end(connection->client, "it cannot be waited for");
}

/* True: the handshake is over. */
static bool
shake_hands(struct connection *connection)
{
	enum stream_wait wait = stream_handshake(connection->stream);

	smart_assert(!connection->shaken && !connection->client->ended);
	if (wait == STREAM_CLOSED)
	{
		connection->client->refusal = MEMNODE_REFUSED_KEY;
		memnode_client_end(connection->client, stream_problem(connection->stream));
	}
	else if (wait != STREAM_DONE)
		set_interest(connection, event_of(wait));
	connection->shaken = wait == STREAM_DONE;
	connection->client->key = stream_key_used(connection->stream);
	return connection->shaken;
}

/* Sends what there is to send; *events: what to wait for before sending the rest. */
static void
flush(struct connection *connection, uint32_t *events)
{
	const uint8_t *bytes;
	size_t length;
	size_t moved;
	enum stream_wait wait = STREAM_DONE;

	smart_assert(connection->shaken && !connection->client->ended);
	*events = 0;
	while (wait == STREAM_DONE && (bytes = memnode_client_output(connection->client, &length)) != NULL)
	{
		wait = stream_write(connection->stream, bytes, length, &moved);
		if (wait == STREAM_DONE)
			memnode_client_sent(connection->client, moved);
		else if (wait == STREAM_CLOSED)
			memnode_client_end(connection->client, stream_problem(connection->stream));
		else
			*events = event_of(wait);
	}
}

/* Reads once.  True: something has come; else *events says what to wait for. */
static bool
receive(struct connection *connection, uint32_t *events)
{
	struct memnode_client *client = connection->client;
	size_t length;
	size_t moved;
	uint8_t *bytes = memnode_client_room(client, &length);
	enum stream_wait wait;

	smart_assert(connection->shaken && !client->leaving);
	if (bytes == NULL)
		return false;
	wait = stream_read(connection->stream, bytes, length, &moved);
	if (wait == STREAM_DONE)
		memnode_client_received(client, moved);
	else if (wait == STREAM_CLOSED)
		memnode_client_end(client, stream_problem(connection->stream));
	else
		*events |= event_of(wait);
	return wait == STREAM_DONE;
}

/* The last answer is on its way: closing now could overtake it, so the other side may close first. */
static void
take_leave(struct connection *connection, uint32_t events)
{
	uint8_t discarded[DISCARDED_AT_ONCE];
	size_t moved;

	smart_assert(connection->shaken && !connection->client->ended);
	smart_assert(connection->client->leaving && connection->client->pair == NULL);
	if (connection->deadline_ns == 0)
		connection->deadline_ns = smart_clock_ns() + LEAVE_WITHIN_NS;
	if (stream_read(connection->stream, discarded, sizeof(discarded), &moved) == STREAM_CLOSED)
		memnode_client_end(connection->client, "it had its last reply");
	else
		set_interest(connection, EPOLLIN | events);
}

/* Does what can be done now, within limits; sets busy if that is not all.  Afterwards the client may have ended. */
static void
serve_connection(struct connection *connection)
{
	struct memnode_client *client = connection->client;
	uint32_t events = 0;

	connection->busy = false;
	if (client->ended || (!connection->shaken && !shake_hands(connection)))
		return;
	for (unsigned int reads = 0; reads < READS_A_TURN; reads++)
	{
		while (memnode_serve(client))
			continue;
		if (!client->ended)
			flush(connection, &events);
		if (client->ended)
			return;
		if (client->leaving)
		{
			take_leave(connection, events);
			return;
		}
		if (client->greeted)
		{
			connection->deadline_ns = 0;
			memnode_door_leave(&connection->loop->door, &connection->guest);
		}
		/* There may be room now for the answers to what has come already. */
		if (memnode_serve(client))
			continue;
		if (client->ended)
			return;
		if (!memnode_client_wants(client) || !receive(connection, &events))
		{
			if (!client->ended)
				set_interest(connection, events);
			return;
		}
	}
	connection->busy = true;
}

/* ---- rounds ---- */

/* A turn of a connection; what it leaves to do is noted. */
static void
turn(struct memnode_loop *loop, struct connection *connection)
{
	smart_assert(connection->loop == loop);
	if (connection->guest.waits && !connection->guest.spoken && !connection->client->ended)
		connection->guest.spoken = has_spoken(connection);
	serve_connection(connection);
	loop->busy = loop->busy || connection->busy;
	loop->limited = loop->limited || connection->deadline_ns != 0;
}

/* again_ns: do not accept for so long; 0: accept. */
static void
watch_listeners(struct memnode_loop *loop, uint64_t again_ns)
{
	bool on = again_ns == 0;
	const struct memnode_listeners *listeners = loop->options->listeners;

	for (unsigned int i = 0; i < listeners->count; i++)
	{
		struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = loop};

		epoll_ctl(loop->epoll, EPOLL_CTL_MOD, listeners->descriptor[i], &event);
	}
	loop->accept_again_ns = on ? 0 : smart_clock_ns() + again_ns;
}

/* Takes a waiting connection in.  False: there is none, or none can be had now. */
static bool
accept_one(struct memnode_loop *loop, int listener)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char name[MEMNODE_NAME_MAX];
	bool full;
	struct memnode_guest *victim = memnode_door_victim(&loop->door, smart_clock_ns(), &full);
	int descriptor;

	/* Those at the door are about to be let in: the others wait outside. */
	if (full && victim == NULL)
	{
		watch_listeners(loop, ACCEPT_SOON_NS);
		return false;
	}
	smart_assert(victim == NULL || victim->waits);
	descriptor = accept4(listener, (struct sockaddr *) &address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (descriptor < 0)
	{
		if (!memnode_accept_must_rest(errno))
			return errno == ECONNABORTED || errno == EINTR;
		memnode_log(SMART_LOG_WARNING, "cannot accept connections: %s", strerror(errno));
		watch_listeners(loop, ACCEPT_AGAIN_NS);
		return false;
	}
	if (victim != NULL)
		throw_out((struct connection *) victim, MEMNODE_REFUSED_ROOM,
				  "it had to make room for others, since it had not said HELLO yet");
	memnode_address_text((struct sockaddr *) &address, length, name, sizeof(name));
	add_connection(loop, descriptor, (const struct sockaddr *) &address, name);
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

static void
take_signals(struct memnode_loop *loop)
{
	struct signalfd_siginfo signal;

	while (read(loop->signals, &signal, sizeof(signal)) == (ssize_t) sizeof(signal))
	{
		smart_assert(signal.ssi_signo == SIGHUP || signal.ssi_signo == SIGTERM || signal.ssi_signo == SIGINT);
		if (signal.ssi_signo == SIGHUP)
			loop->options->reload(loop->options->argument);
		else
			loop->stop = true;
	}
}

/* Ends the connections whose time is up. */
static void
end_late(struct memnode_loop *loop)
{
	/* As the round began: a pause in the middle of it is not known yet (excuse_pause). */
	uint64_t now = loop->options->node->round_ns;

	loop->limited = false;
	for (struct connection *connection = loop->connections; connection != NULL; connection = connection->next)
	{
		if (connection->deadline_ns == 0 || connection->client->ended)
			continue;
		if (now >= connection->deadline_ns)
			throw_out(connection, MEMNODE_REFUSED_LATE, "it took too long to say HELLO, or to leave");
		else
			loop->limited = true;
	}
	if (loop->accept_again_ns != 0 && now >= loop->accept_again_ns)
		watch_listeners(loop, 0);
	if (memnode_complaints_sum(&loop->complaints, now))
		loop->limited = true;
}

/*
 * Asks the host of a contested connection whether it is there, and ends the connection if it has said nothing since.  An
 * answer ends the contest: who wants the lease comes again.
 */
static void
examine(struct connection *connection, uint64_t now)
{
	struct memnode_client *client = connection->client;

	smart_assert(client->contested && !client->ended && now >= connection->probed_ns);
	if (connection->probed_ns == 0)
	{
		stream_probe(connection->stream, true);
		connection->probed_ns = now;
	}
	else if (now - connection->probed_ns >= SILENT_WITHIN_MS * MS)
	{
		if (stream_silent_ms(connection->stream) >= SILENT_WITHIN_MS)
		{
			memnode_log(SMART_LOG_WARNING,
						"%s: ended, its host has said nothing for %u ms and another one wants the lease", client->name,
						stream_silent_ms(connection->stream));
			memnode_client_end(client, "its host has said nothing, and another one wants the lease");
			return;
		}
		stream_probe(connection->stream, false);
		connection->probed_ns = 0;
		client->contested = false;
	}
}

static void
examine_contested(struct memnode_loop *loop)
{
	struct memnode *node = loop->options->node;
	uint64_t now = smart_clock_ns();

	node->contested = false;
	for (struct connection *connection = loop->connections; connection != NULL; connection = connection->next)
	{
		if (connection->client->contested && !connection->client->ended)
			examine(connection, now);
		node->contested = node->contested || (connection->client->contested && !connection->client->ended);
	}
	loop->limited = loop->limited || node->contested;
}

/* Frees the connections that have ended. */
static void
remove_ended(struct memnode_loop *loop)
{
	struct connection **link = &loop->connections;

	loop->options->node->client_ended = false;
	while (*link != NULL)
	{
		struct connection *connection = *link;

		if (!connection->client->ended)
		{
			link = &connection->next;
			continue;
		}
		smart_assert(connection->client->pair == NULL);
		smart_assert(connection->client->refusal < MEMNODE_REFUSALS);
		*link = connection->next;
		memnode_door_leave(&loop->door, &connection->guest);
		/* Who connects and leaves without a word has only looked whether the node is there. */
		if (!connection->client->greeted && (connection->guest.spoken || connection->thrown_out))
		{
			loop->options->node->counters.refused[connection->client->refusal]++;
			memnode_complain(&loop->complaints, smart_clock_ns(), connection->client->name, connection->client->reason);
			loop->limited = true;
		}
		free_connection(connection);
	}
}

/* A process that was stopped may not hold it against its clients: the limits of their time move on by as long. */
static void
excuse_pause(struct memnode_loop *loop, int timeout_ms, uint64_t now)
{
	uint64_t due = loop->round_ns + (uint64_t) timeout_ms * MS;

	smart_assert(timeout_ms >= 0 && now >= loop->round_ns);
	if (loop->round_ns != 0 && now > due + STOOD_STILL_NS)
	{
		memnode_log(SMART_LOG_WARNING, "this process did not run for %llu ms", (unsigned long long) ((now - due) / MS));
		for (struct connection *connection = loop->connections; connection != NULL; connection = connection->next)
		{
			if (connection->deadline_ns != 0)
				connection->deadline_ns += now - due;
		}
	}
	loop->round_ns = now;
}

static void
round_of_events(struct memnode_loop *loop)
{
	struct epoll_event events[EVENTS];
	bool ticks = loop->limited || loop->accept_again_ns != 0 ||
				 memnode_sources_wait(loop->options->sources, loop->options->source_count);
	int timeout_ms = loop->busy ? 0 : ticks ? TICK_MS : LOOK_MS;
	int count = epoll_wait(loop->epoll, events, EVENTS, timeout_ms);
	bool was_busy = loop->busy;

	loop->options->node->round_ns = smart_clock_ns();
	excuse_pause(loop, timeout_ms, loop->options->node->round_ns);
	if (loop->options->node->round_ns - loop->looked_ns >= LOOK_MS * MS)
	{
		loop->looked_ns = loop->options->node->round_ns;
		loop->options->look(loop->options->argument);
	}
	loop->busy = false;
	for (struct connection *connection = was_busy ? loop->connections : NULL; connection != NULL;
		 connection = connection->next)
	{
		if (connection->busy)
			turn(loop, connection);
	}
	for (int i = 0; i < count; i++)
	{
		if (events[i].data.ptr == loop)
			accept_all(loop);
		else if (events[i].data.ptr == &loop->signals)
			take_signals(loop);
		else if (!memnode_sources_call(loop->options->sources, loop->options->source_count, events[i].data.ptr))
			turn(loop, events[i].data.ptr);
	}
	memnode_sources_serve(loop->options->sources, loop->options->source_count, loop->epoll);
	if (loop->limited || loop->accept_again_ns != 0)
		end_late(loop);
	if (loop->options->node->contested)
		examine_contested(loop);
	if (loop->options->node->client_ended)
		remove_ended(loop);
	smart_assert(!loop->options->node->client_ended);
}

void
memnode_loop_run(struct memnode_loop *loop)
{
	while (!loop->stop)
		round_of_events(loop);
}

/* ---- life ---- */

static bool
watch_sources(struct memnode_loop *loop)
{
	const struct memnode_listeners *listeners = loop->options->listeners;
	sigset_t signals;

	smart_assert(loop->epoll < 0 && loop->signals < 0);
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
	for (unsigned int i = 0; i < loop->options->source_count; i++)
	{
		if (!memnode_source_watch(&loop->options->sources[i], loop->epoll))
			return false;
	}
	return true;
}

struct memnode_loop *
memnode_loop_open(const struct memnode_loop_options *options, char problem[MEMNODE_PROBLEM_MAX])
{
	struct memnode_loop *loop = calloc(1, sizeof(*loop));

	smart_assert(options->node->clients == NULL && options->listeners->count > 0);
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
	smart_assert(loop->connections == NULL);
	smart_assert(loop->door.count == 0);
	if (loop->epoll >= 0)
		close(loop->epoll);
	if (loop->signals >= 0)
		close(loop->signals);
	free(loop);
}
