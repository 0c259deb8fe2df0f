/*
 * relay.c
 *	  A longer way to a memory node: passes on what both sides of a connection send, a
 *	  fixed time after it came.
 *
 *	  relay HOST:PORT MICROSECONDS
 *
 * Listens on a free port of the loopback device, which it prints as smart-memnode does.  What is under way is passed on
 * in order and does not wait for what was sent before, as on a long wire: a round trip takes so many microseconds more,
 * half of them each way, however much is under way.  One thread waits for the next event or the next time that something is due.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "bench/network/must.h"

#define CONNECTIONS_MAX 512
#define CHUNK_BYTES     65536
#define UNDER_WAY_MAX   (16u << 20) /* bytes of one way; then its sender waits */
#define NS_PER_US       1000
#define NS_PER_S        UINT64_C(1000000000)

/* What one recv() brought. */
struct chunk
{
	struct chunk *next;
	uint64_t due_ns;
	size_t length; /* 0: the sender has nothing more to say */
	size_t sent;
	uint8_t bytes[];
};

/* One way of a connection. */
struct way
{
	int from;
	int to;
	bool ended;   /* from has nothing more to say */
	bool closed;  /* and to has been told, or does not listen any more */
	bool blocked; /* to did not take all that was due */
	size_t under_way;
	struct chunk *first;
	struct chunk **last;
};

struct relay
{
	struct addrinfo *target;
	uint64_t delay_ns; /* each way */
	int listener;
	unsigned int connections;
	struct way way[CONNECTIONS_MAX][2];
};

/* ---- one way ---- */

static void
add_chunk(struct way *way, struct chunk *chunk, uint64_t due_ns)
{
	smart_assert(*way->last == NULL && chunk->length <= CHUNK_BYTES);
	chunk->next = NULL;
	chunk->due_ns = due_ns;
	chunk->sent = 0;
	*way->last = chunk;
	way->last = &chunk->next;
	way->under_way += chunk->length;
}

/* Takes what has come. */
static void
take(struct way *way, uint64_t delay_ns)
{
	while (!way->ended && way->under_way < UNDER_WAY_MAX)
	{
		struct chunk *chunk = malloc(sizeof(*chunk) + CHUNK_BYTES);
		ssize_t got;

		must(chunk != NULL, "malloc");
		got = recv(way->from, chunk->bytes, CHUNK_BYTES, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
		{
			free(chunk);
			return;
		}
		way->ended = got <= 0;
		chunk->length = got > 0 ? (size_t) got : 0;
		chunk = realloc(chunk, sizeof(*chunk) + chunk->length);
		must(chunk != NULL, "realloc");
		add_chunk(way, chunk, smart_clock_ns() + delay_ns);
	}
}

/* Sends what is left of the first chunk.  False: the other side takes no more now. */
static bool
send_first(struct way *way)
{
	struct chunk *chunk = way->first;

	smart_assert(chunk->sent <= chunk->length);
	while (chunk->sent < chunk->length && !way->closed)
	{
		ssize_t sent = send(way->to, chunk->bytes + chunk->sent, chunk->length - chunk->sent, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (sent <= 0)
			way->closed = true;
		else
			chunk->sent += (size_t) sent;
	}
	if (chunk->length == 0)
	{
		shutdown(way->to, SHUT_WR);
		way->closed = true;
	}
	return true;
}

/* Passes on what is due. */
static void
pass(struct way *way)
{
	way->blocked = false;
	while (way->first != NULL && way->first->due_ns <= smart_clock_ns())
	{
		struct chunk *chunk = way->first;

		if (!send_first(way))
		{
			way->blocked = true;
			return;
		}
		way->first = chunk->next;
		if (way->first == NULL)
			way->last = &way->first;
		smart_assert(way->under_way >= chunk->length);
		way->under_way -= chunk->length;
		smart_assert(way->first != NULL || way->under_way == 0);
		free(chunk);
	}
}

static bool
is_over(const struct way *way)
{
	return way->ended && way->first == NULL;
}

/* ---- connections ---- */

/* A connection to the target, or -1. */
static int
reach(const struct addrinfo *target)
{
	int descriptor = socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (descriptor >= 0 && connect(descriptor, target->ai_addr, target->ai_addrlen) != 0)
	{
		close(descriptor);
		return -1;
	}
	return descriptor;
}

static void
set_up(int descriptor)
{
	int one = 1;

	smart_assert(descriptor >= 0);
	must(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0, "fcntl");
	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void
open_way(struct way *way, int from, int to)
{
	smart_assert(from >= 0 && to >= 0 && from != to);
	*way = (struct way){.from = from, .to = to};
	way->last = &way->first;
}

static void
accept_client(struct relay *relay)
{
	int client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
	int node = client >= 0 ? reach(relay->target) : -1;

	if (node < 0)
	{
		/* The client finds what it would find without a relay: nobody is there. */
		if (client >= 0)
			close(client);
		return;
	}
	smart_assert(relay->connections < CONNECTIONS_MAX);
	set_up(client);
	set_up(node);
	open_way(&relay->way[relay->connections][0], client, node);
	open_way(&relay->way[relay->connections][1], node, client);
	relay->connections++;
}

/* The last connection takes the place of each one that is over; its list's end may have lain in the way itself. */
static void
close_what_is_over(struct relay *relay)
{
	for (unsigned int i = relay->connections; i-- > 0;)
	{
		struct way *way = relay->way[i];
		struct way *last = relay->way[relay->connections - 1];

		smart_assert(i < relay->connections);
		if (!is_over(&way[0]) || !is_over(&way[1]))
			continue;
		close(way[0].from);
		close(way[0].to);
		for (int side = 0; side < 2; side++)
		{
			way[side] = last[side];
			if (way[side].first == NULL)
				way[side].last = &way[side].first;
		}
		relay->connections--;
	}
}

/* ---- the loop ---- */

/* What to wait for: asked[0] is the listener, then two for each way. */
static nfds_t
ask(const struct relay *relay, struct pollfd *asked, uint64_t *due_ns)
{
	nfds_t count = 0;

	*due_ns = UINT64_MAX;
	asked[count++] =
		(struct pollfd){.fd = relay->connections < CONNECTIONS_MAX ? relay->listener : -1, .events = POLLIN};
	for (unsigned int i = 0; i < relay->connections; i++)
		for (int side = 0; side < 2; side++)
		{
			const struct way *way = &relay->way[i][side];
			bool takes = !way->ended && way->under_way < UNDER_WAY_MAX;

			asked[count++] = (struct pollfd){.fd = takes ? way->from : -1, .events = POLLIN};
			asked[count++] = (struct pollfd){.fd = way->blocked ? way->to : -1, .events = POLLOUT};
			if (way->first != NULL && !way->blocked && way->first->due_ns < *due_ns)
				*due_ns = way->first->due_ns;
		}
	smart_assert(count == 1 + 4 * (nfds_t) relay->connections);
	return count;
}

static void
wait_for(struct pollfd *asked, nfds_t count, uint64_t due_ns)
{
	uint64_t now = smart_clock_ns();
	uint64_t left = due_ns > now ? due_ns - now : 0;
	struct timespec limit = {.tv_sec = (time_t) (left / NS_PER_S), .tv_nsec = (long) (left % NS_PER_S)};

	smart_assert(count >= 1 && count <= 1 + 4 * CONNECTIONS_MAX);
	must(ppoll(asked, count, due_ns == UINT64_MAX ? NULL : &limit, NULL) >= 0 || errno == EINTR, "ppoll");
}

static void
run(struct relay *relay)
{
	static struct pollfd asked[1 + 4 * CONNECTIONS_MAX];

	for (;;)
	{
		uint64_t due_ns;
		nfds_t count = ask(relay, asked, &due_ns);
		unsigned int connections = relay->connections;

		wait_for(asked, count, due_ns);
		for (unsigned int i = 0; i < connections; i++)
			for (int side = 0; side < 2; side++)
			{
				if (asked[1 + 4 * i + 2 * (unsigned int) side].revents != 0)
					take(&relay->way[i][side], relay->delay_ns);
				pass(&relay->way[i][side]);
			}
		close_what_is_over(relay);
		if (asked[0].revents != 0)
			accept_client(relay);
	}
}

static void
start_listening(struct relay *relay)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(relay->listener >= 0, "socket");
	must(bind(relay->listener, (struct sockaddr *) &address, length) == 0 && listen(relay->listener, 64) == 0,
		 "listen");
	must(getsockname(relay->listener, (struct sockaddr *) &address, &length) == 0, "getsockname");
	printf("ready on 127.0.0.1:%u\n", ntohs(address.sin_port));
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static struct relay relay;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	char *port = argc == 3 ? strrchr(argv[1], ':') : NULL;

	if (port == NULL)
	{
		fprintf(stderr, "usage: relay HOST:PORT MICROSECONDS\n");
		return 2;
	}
	*port++ = '\0';
	if (getaddrinfo(argv[1], port, &hints, &relay.target) != 0)
	{
		fprintf(stderr, "relay: no address for %s:%s\n", argv[1], port);
		return 1;
	}
	relay.delay_ns = strtoull(argv[2], NULL, 10) * NS_PER_US / 2;
	/* Nobody waits longer than asked for since the kernel joins timers. */
	prctl(PR_SET_TIMERSLACK, 1);
	start_listening(&relay);
	run(&relay);
	return 0;
}
