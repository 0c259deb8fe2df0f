/*
 * relay.h
 *	  A network between clients and a memory node that a test can disturb: a thread that
 *	  passes on what each side of a connection sends.
 *
 *		struct relay *relay = relay_open(port of the memory node);
 *		... clients connect to relay->port ...
 *		relay_hold_back(relay, true);    what clients send stays on its way
 *		relay_hold_back(relay, false);   and arrives now, even if its sender has gone
 *		relay_close(relay);
 */
#ifndef TEST_RELAY_H
#define TEST_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RELAY_CONNECTIONS 8

/* One way of a connection. */
struct relay_way
{
	int from;
	int to;
	bool ended; /* from has nothing more to say */
	uint8_t *bytes;
	size_t count;
	size_t size;
};

struct relay
{
	char port[8];
	const char *target;
	int listener;
	bool held_back;
	bool stop;
	uint64_t held;   /* bytes of clients that are on their way */
	uint64_t rounds; /* of the thread */
	pthread_t thread;
	struct relay_way way[RELAY_CONNECTIONS][2]; /* from the client, from the node; by number of connection */
	unsigned int connections;
};

extern struct relay *relay_open(const char *target_port);

/* Takes effect before it returns. */
extern void relay_hold_back(struct relay *relay, bool held_back);

/* Waits until this many bytes of clients are on their way. */
extern void relay_await(struct relay *relay, uint64_t bytes);

/* Waits until nothing of clients is on its way any more. */
extern void relay_drain(struct relay *relay);

/* Ends all connections, on both sides. */
extern void relay_close(struct relay *relay);

#endif /* TEST_RELAY_H */
