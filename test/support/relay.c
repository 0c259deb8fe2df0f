/*
 * relay.c
 *	  A network that a test can disturb.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/must.h"
#include "support/relay.h"

#define FROM_CLIENT 0
#define FROM_NODE   1
#define LIMIT_S     30 /* a wait that is longer is a hang */
#define TICK_MS     1

static struct sockaddr_in
loopback(const char *port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
								.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
								.sin_port = htons((uint16_t) atoi(port))};
}

static void
accept_client(struct relay *relay)
{
	struct sockaddr_in target = loopback(relay->target);
	struct relay_way *way = relay->way[relay->connections];
	int client = accept4(relay->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int node = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(client >= 0 && node >= 0 && relay->connections < RELAY_CONNECTIONS, "accept");
	must(connect(node, (struct sockaddr *) &target, sizeof(target)) == 0, "connect");
	must(fcntl(node, F_SETFL, O_NONBLOCK) == 0, "fcntl");
	way[FROM_CLIENT] = (struct relay_way){.from = client, .to = node};
	way[FROM_NODE] = (struct relay_way){.from = node, .to = client};
	relay->connections++;
}

/* Takes what there is, without a bound: a network under way keeps all that was sent. */
static void
take(struct relay_way *way)
{
	ssize_t got;

	while (!way->ended)
	{
		if (way->size < way->count + 65536)
		{
			way->size = 2 * way->size + 65536;
			way->bytes = realloc(way->bytes, way->size);
			must(way->bytes != NULL, "realloc");
		}
		got = recv(way->from, way->bytes + way->count, way->size - way->count, 0);
		if (got > 0)
			way->count += (size_t) got;
		else if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		else
			way->ended = true;
	}
}

static void
pass(struct relay_way *way)
{
	size_t sent = 0;

	while (sent < way->count)
	{
		ssize_t more = send(way->to, way->bytes + sent, way->count - sent, MSG_NOSIGNAL);

		if (more > 0)
			sent += (size_t) more;
		else if (errno == EAGAIN)
			break;
		else
			sent = way->count; /* no peer is there to take it */
	}
	memmove(way->bytes, way->bytes + sent, way->count - sent);
	way->count -= sent;
	if (way->count == 0 && way->ended)
		shutdown(way->to, SHUT_WR);
}

static void *
run(void *argument)
{
	struct relay *relay = argument;

	while (!__atomic_load_n(&relay->stop, __ATOMIC_ACQUIRE))
	{
		struct pollfd waiting = {.fd = relay->listener, .events = POLLIN};
		bool held_back = __atomic_load_n(&relay->held_back, __ATOMIC_ACQUIRE);
		uint64_t held = 0;

		if (poll(&waiting, 1, TICK_MS) > 0)
			accept_client(relay);
		for (unsigned int i = 0; i < relay->connections; i++)
		{
			for (int j = 0; j < 2; j++)
				take(&relay->way[i][j]);
			pass(&relay->way[i][FROM_NODE]);
			if (!held_back)
				pass(&relay->way[i][FROM_CLIENT]);
			held += relay->way[i][FROM_CLIENT].count;
		}
		__atomic_store_n(&relay->held, held, __ATOMIC_RELEASE);
		__atomic_add_fetch(&relay->rounds, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

struct relay *
relay_open(const char *target_port)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	struct sockaddr_in address = loopback("0");
	socklen_t length = sizeof(address);

	must(relay != NULL, "calloc");
	relay->target = target_port;
	relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(relay->listener, (struct sockaddr *) &address, length) == 0 && listen(relay->listener, 8) == 0, "listen");
	must(getsockname(relay->listener, (struct sockaddr *) &address, &length) == 0, "getsockname");
	snprintf(relay->port, sizeof(relay->port), "%u", ntohs(address.sin_port));
	must(pthread_create(&relay->thread, NULL, run, relay) == 0, "pthread_create");
	return relay;
}

/* Waits until the thread has done all of a turn. */
static void
await_turn(struct relay *relay)
{
	uint64_t rounds = __atomic_load_n(&relay->rounds, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&relay->rounds, __ATOMIC_ACQUIRE) < rounds + 2)
		usleep(TICK_MS * 1000);
}

void
relay_hold_back(struct relay *relay, bool held_back)
{
	__atomic_store_n(&relay->held_back, held_back, __ATOMIC_RELEASE);
	await_turn(relay);
}

void
relay_await(struct relay *relay, uint64_t bytes)
{
	for (int i = 0; __atomic_load_n(&relay->held, __ATOMIC_ACQUIRE) < bytes; i++)
	{
		must(i < LIMIT_S * 1000, "relay_await");
		usleep(1000);
	}
}

void
relay_drain(struct relay *relay)
{
	for (int i = 0; __atomic_load_n(&relay->held, __ATOMIC_ACQUIRE) > 0; i++)
	{
		must(i < LIMIT_S * 1000, "relay_drain");
		usleep(1000);
	}
}

void
relay_close(struct relay *relay)
{
	__atomic_store_n(&relay->stop, true, __ATOMIC_RELEASE);
	pthread_join(relay->thread, NULL);
	for (unsigned int i = 0; i < relay->connections; i++)
		for (int j = 0; j < 2; j++)
		{
			close(relay->way[i][j].from);
			free(relay->way[i][j].bytes);
		}
	close(relay->listener);
	free(relay);
}
