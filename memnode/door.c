/*
 * door.c
 *	  Connections that have not said HELLO yet.
 */
#include <string.h>

#include "base/assert.h"
#include "door.h"

#define PATIENCE_NS UINT64_C(1000000000) /* for who has begun to speak */

static void
normalize(const struct sockaddr *address, struct in6_addr *normal)
{
	memset(normal, 0, sizeof(*normal));
	if (address->sa_family == AF_INET6)
		*normal = ((const struct sockaddr_in6 *) address)->sin6_addr;
	else if (address->sa_family == AF_INET)
	{
		normal->s6_addr[10] = normal->s6_addr[11] = 0xff;
		memcpy(normal->s6_addr + 12, &((const struct sockaddr_in *) address)->sin_addr, 4);
	}
}

struct memnode_guest *
memnode_door_victim(const struct memnode_door *door, uint64_t now_ns, bool *full)
{
	struct memnode_guest *oldest = NULL;
	uint32_t most = 0;

	smart_assert(door->count <= MEMNODE_GUESTS_MAX && (door->count == 0) == (door->first == NULL));
	*full = door->count >= MEMNODE_GUESTS_MAX;
	if (!*full)
		return NULL;
	for (uint32_t host = 1; host < MEMNODE_GUESTS_MAX; host++)
	{
		if (door->hosts[host].guests > door->hosts[most].guests)
			most = host;
	}
	for (struct memnode_guest *guest = door->first; guest != NULL; guest = guest->next)
	{
		if (guest->host != most)
			continue;
		if (!guest->spoken)
			return guest;
		if (oldest == NULL)
			oldest = guest;
	}
	smart_assert(oldest != NULL);
	return now_ns - oldest->since_ns >= PATIENCE_NS ? oldest : NULL;
}

/* The place of an address among the hosts. */
static uint32_t
find_host(const struct memnode_door *door, const struct in6_addr *address)
{
	uint32_t unused = MEMNODE_GUESTS_MAX;

	for (uint32_t host = 0; host < MEMNODE_GUESTS_MAX; host++)
	{
		if (door->hosts[host].guests == 0)
			unused = unused == MEMNODE_GUESTS_MAX ? host : unused;
		else if (memcmp(&door->hosts[host].address, address, sizeof(*address)) == 0)
			return host;
	}
	smart_assert(unused < MEMNODE_GUESTS_MAX);
	return unused;
}

void
memnode_door_enter(struct memnode_door *door, struct memnode_guest *guest, const struct sockaddr *address,
				   uint64_t now_ns)
{
	struct in6_addr normal;
	uint32_t host;

	smart_assert(door->count < MEMNODE_GUESTS_MAX && !guest->waits);
	normalize(address, &normal);
	host = find_host(door, &normal);
	door->hosts[host].address = normal;
	door->hosts[host].guests++;
	door->count++;
	*guest = (struct memnode_guest){.previous = door->last, .host = host, .waits = true, .since_ns = now_ns};
	if (door->last != NULL)
		door->last->next = guest;
	else
		door->first = guest;
	door->last = guest;
	smart_assert(door->hosts[host].guests <= door->count);
}

void
memnode_door_leave(struct memnode_door *door, struct memnode_guest *guest)
{
	if (!guest->waits)
		return;
	smart_assert(guest->host < MEMNODE_GUESTS_MAX);
	smart_assert(door->count > 0 && door->hosts[guest->host].guests > 0);
	door->hosts[guest->host].guests--;
	door->count--;
	guest->waits = false;
	if (guest->previous != NULL)
		guest->previous->next = guest->next;
	else
		door->first = guest->next;
	if (guest->next != NULL)
		guest->next->previous = guest->previous;
	else
		door->last = guest->previous;
	smart_assert((door->count == 0) == (door->first == NULL));
}
