/*
 * door.h
 *	  Connections that have not said HELLO yet: how many there may be, and who
 *	  makes room when there are too many.
 *
 * Whoever reaches the node's port can connect; who is served has shown that it
 * has the key.  So what has not done so has a budget of its own, and is never in
 * the way of those that are served.
 */
#ifndef MEMNODE_DOOR_H
#define MEMNODE_DOOR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define MEMNODE_GUESTS_MAX 512

/* A connection at the door; part of what the loop knows of it. */
struct memnode_guest
{
	struct memnode_guest *next; /* in the order in which they came */
	struct memnode_guest *previous;
	uint32_t host; /* number of its address among those at the door */
	bool spoken;   /* it has sent something */
	bool waits;    /* it is at the door */
	uint64_t since_ns;
};

struct memnode_door
{
	struct memnode_guest *first;
	struct memnode_guest *last;
	uint32_t count;
	struct
	{
		struct in6_addr address; /* an IPv4 address as IPv6 has it */
		uint32_t guests;         /* 0: this place is free */
	} hosts[MEMNODE_GUESTS_MAX];
};

/*
 * Who has to go before another may come in: of the address with the most guests the one that has waited longest without a
 * word, or else, if it has waited for a second, the one that has waited longest.  NULL: nobody; *full: nor may another
 * come in now.
 */
extern struct memnode_guest *memnode_door_victim(const struct memnode_door *door, uint64_t now_ns, bool *full);

/* The door is not full. */
extern void memnode_door_enter(struct memnode_door *door, struct memnode_guest *guest, const struct sockaddr *address,
							   uint64_t now_ns);

/* It has said HELLO, or its connection has ended.  Again: nothing. */
extern void memnode_door_leave(struct memnode_door *door, struct memnode_guest *guest);

#endif /* MEMNODE_DOOR_H */
