/*
 * connection.c
 *	  A client's socket.
 *
 * A connection's turn: serve what has come, send the answers, read more, until the
 * socket has no more or others have waited long enough.  Nothing is read from a client
 * that does not take its answers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "connection.h"
#include "log.h"

#define READS_A_TURN      16
#define MS                UINT64_C(1000000)
#define HELLO_WITHIN_NS   (5000 * MS)
#define LEAVE_WITHIN_NS   (1000 * MS)
#define DISCARDED_AT_ONCE 4096

/* ---- life ---- */

static bool
watch(struct memnode_connection *connection)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

	connection->interest = event.events;
	return epoll_ctl(connection->epoll, EPOLL_CTL_ADD, stream_descriptor(connection->stream), &event) == 0;
}

struct memnode_connection *
memnode_connection_open(struct memnode *node, int epoll, int descriptor, const struct stream_secret *secret,
						const char *name, bool refused)
{
	struct memnode_connection *connection = calloc(1, sizeof(*connection));

	if (connection == NULL)
	{
		close(descriptor);
		return NULL;
	}
	connection->epoll = epoll;
	connection->deadline_ns = memnode_now_ns() + HELLO_WITHIN_NS;
	connection->stream = stream_open(descriptor, true, secret);
	if (connection->stream != NULL)
		connection->client = memnode_client_open(node, name, refused);
	if (connection->client != NULL && watch(connection))
		return connection;
	memnode_connection_free(connection);
	return NULL;
}

void
memnode_connection_free(struct memnode_connection *connection)
{
	if (connection->client != NULL)
		memnode_client_free(connection->client);
	if (connection->stream != NULL)
		stream_close(connection->stream);
	free(connection);
}

static void
set_interest(struct memnode_connection *connection, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};

	if (connection->interest == events)
		return;
	connection->interest = events;
	if (epoll_ctl(connection->epoll, EPOLL_CTL_MOD, stream_descriptor(connection->stream), &event) != 0)
		memnode_client_end(connection->client, "it cannot be waited for");
}

static uint32_t
event_of(enum stream_wait wait)
{
	return wait == STREAM_WANT_WRITE ? EPOLLOUT : EPOLLIN;
}

/* ---- bytes ---- */

/* Sends what there is to send; *events: what to wait for before sending the rest. */
static void
flush(struct memnode_connection *connection, uint32_t *events)
{
	const uint8_t *bytes;
	size_t length;
	size_t moved;
	enum stream_wait wait = STREAM_DONE;

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
receive(struct memnode_connection *connection, uint32_t *events)
{
	struct memnode_client *client = connection->client;
	size_t length;
	size_t moved;
	uint8_t *bytes = memnode_client_room(client, &length);
	enum stream_wait wait;

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

/* ---- turns ---- */

/* True: the handshake is over. */
static bool
shake_hands(struct memnode_connection *connection)
{
	enum stream_wait wait = stream_handshake(connection->stream);

	if (wait == STREAM_CLOSED)
	{
		memnode_log(SMART_LOG_WARNING, "%s: refused: %s", connection->client->name, stream_problem(connection->stream));
		memnode_client_end(connection->client, "no handshake");
	}
	else if (wait != STREAM_DONE)
		set_interest(connection, event_of(wait));
	connection->shaken = wait == STREAM_DONE;
	return connection->shaken;
}

/* The last answer is on its way: closing now could overtake it, so the other side may close first. */
static void
take_leave(struct memnode_connection *connection, uint32_t events)
{
	uint8_t discarded[DISCARDED_AT_ONCE];
	size_t moved;

	if (connection->deadline_ns == 0)
		connection->deadline_ns = memnode_now_ns() + LEAVE_WITHIN_NS;
	if (stream_read(connection->stream, discarded, sizeof(discarded), &moved) == STREAM_CLOSED)
		memnode_client_end(connection->client, "it had its last answer");
	else
		set_interest(connection, EPOLLIN | events);
}

void
memnode_connection_turn(struct memnode_connection *connection)
{
	struct memnode_client *client = connection->client;
	uint32_t events = 0;

	connection->busy = false;
	if (client->ended || (!connection->shaken && !shake_hands(connection)))
		return;
	for (unsigned int reads = 0; reads < READS_A_TURN; reads++)
	{
		while (memnode_client_serve(client))
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
			connection->deadline_ns = 0;
		/* There may be room now for the answers to what has come already. */
		if (memnode_client_serve(client))
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
