/*
 * listen.c
 *	  The sockets on which a node is reached.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "listen.h"
#include "supervisor.h"

#define BACKLOG 512

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *) address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) address)->sin6_addr);
}

static bool
is_every_address(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ((const struct sockaddr_in *) address)->sin_addr.s_addr == htonl(INADDR_ANY);
	return address->sa_family == AF_INET6 &&
		   IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *) address)->sin6_addr);
}

void
memnode_address_text(const struct sockaddr *address, socklen_t length, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN + 32];
	char port[SESSION_PORT_MAX];

	if (getnameinfo(address, length, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(text, size, "an unknown address");
	else
		snprintf(text, size, address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* Returns 0, or the number of the error that problem[] tells. */
static int
bind_address(struct memnode_listeners *listeners, const struct addrinfo *address, char *problem)
{
	int descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	int error = errno;
	char text[128];

	smart_assert(listeners->count < MEMNODE_LISTENERS_MAX);
	memnode_address_text(address->ai_addr, address->ai_addrlen, text, sizeof(text));
	if (descriptor >= 0)
	{
		setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (address->ai_family == AF_INET6)
			setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		if (bind(descriptor, address->ai_addr, address->ai_addrlen) == 0)
		{
			listeners->descriptor[listeners->count++] = descriptor;
			listeners->loopback = listeners->loopback && is_loopback(address->ai_addr);
			return 0;
		}
		error = errno;
		close(descriptor);
	}
	memnode_refuse(problem, "%s: cannot bind to %s: %s%s%s", listeners->setting, text, strerror(error),
				   error == EADDRINUSE ? "; stop what uses it, or give another --" : "",
				   error == EADDRINUSE ? listeners->setting : "");
	return error;
}

/* The port of the first socket, whatever was asked for. */
static bool
note_port(struct memnode_listeners *listeners, char *problem)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	smart_assert(listeners->count > 0);
	if (getsockname(listeners->descriptor[0], (struct sockaddr *) &bound, &length) != 0 ||
		(bound.ss_family != AF_INET && bound.ss_family != AF_INET6))
		return memnode_refuse(problem, "%s: the socket is none of TCP's", listeners->setting);
	/* Both families have the port at the same place. */
	snprintf(listeners->port, sizeof(listeners->port), "%u", ntohs(((struct sockaddr_in *) &bound)->sin_port));
	return true;
}

static bool
bind_all(struct memnode_listeners *listeners, const struct addrinfo *found, char *problem)
{
	int error;

	smart_assert(listeners->count == 0);
	for (; found != NULL && listeners->count < MEMNODE_LISTENERS_MAX; found = found->ai_next)
	{
		if (listeners->count > 0)
			((struct sockaddr_in *) found->ai_addr)->sin_port = htons((uint16_t) strtoul(listeners->port, NULL, 10));
		error = bind_address(listeners, found, problem);
		/* The resolver knows IPv6 addresses on machines without IPv6, too. */
		if (found->ai_family == AF_INET6 && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL))
			continue;
		if (error != 0)
			return false;
		if (listeners->count > 1)
			continue;
		/* Port 0 becomes the one that the first socket got, so that all have the same. */
		if (!note_port(listeners, problem))
			return false;
	}
	smart_assert(listeners->count <= MEMNODE_LISTENERS_MAX);
	return listeners->count > 0;
}

/* The address that the first socket of the service manager is bound to. */
static bool
note_host(struct memnode_listeners *listeners, char *problem)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	int error;

	smart_assert(listeners->count > 0 && listeners->host[0] == '\0');
	if (getsockname(listeners->descriptor[0], (struct sockaddr *) &bound, &length) != 0)
		return memnode_refuse(problem, "listen: a socket of the service manager: %s", strerror(errno));
	if (is_every_address((const struct sockaddr *) &bound))
		return true;
	error = getnameinfo((const struct sockaddr *) &bound, length, listeners->host, sizeof(listeners->host), NULL, 0,
						NI_NUMERICHOST);
	return error == 0 || memnode_refuse(problem, "listen: a socket of the service manager: %s", gai_strerror(error));
}

/* Takes the sockets of the service manager instead of --listen. */
static bool
adopt_sockets(struct memnode_listeners *listeners, int first, unsigned int count, char *problem)
{
	struct sockaddr_storage bound;
	socklen_t length;

	smart_assert(count > 0 && first >= 0 && listeners->count == 0);
	if (count > MEMNODE_LISTENERS_MAX)
		return memnode_refuse(problem, "listen: the service manager hands over more than %d sockets",
							  MEMNODE_LISTENERS_MAX);
	for (unsigned int i = 0; i < count; i++)
	{
		int descriptor = first + (int) i;

		length = sizeof(bound);
		if (fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0 ||
			getsockname(descriptor, (struct sockaddr *) &bound, &length) != 0)
			return memnode_refuse(problem, "listen: a socket of the service manager: %s", strerror(errno));
		listeners->loopback = listeners->loopback && is_loopback((const struct sockaddr *) &bound);
		listeners->descriptor[listeners->count++] = descriptor;
	}
	smart_assert(listeners->count == count);
	return note_port(listeners, problem) && note_host(listeners, problem);
}

bool
memnode_listeners_bind(struct memnode_listeners *listeners, const struct memnode_options *options,
					   char problem[MEMNODE_PROBLEM_MAX])
{
	int first;
	unsigned int handed = memnode_supervisor_sockets(&first);

	if (handed == 0)
		return memnode_listeners_bind_to(listeners, "listen", options->host, options->port, problem);
	*listeners = (struct memnode_listeners){.loopback = true, .setting = "listen"};
	return adopt_sockets(listeners, first, handed, problem);
}

bool
memnode_listeners_bind_to(struct memnode_listeners *listeners, const char *setting, const char *host, const char *port,
						  char problem[MEMNODE_PROBLEM_MAX])
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int error = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
	bool good;

	*listeners = (struct memnode_listeners){.loopback = true, .setting = setting};
	snprintf(listeners->host, sizeof(listeners->host), "%s", host);
	if (error != 0)
		return memnode_refuse(problem, "%s: %s: %s", setting, host, gai_strerror(error));
	good = bind_all(listeners, found, problem);
	freeaddrinfo(found);
	if (!good)
		memnode_listeners_close(listeners);
	return good;
}

bool
memnode_listeners_start(const struct memnode_listeners *listeners, char problem[MEMNODE_PROBLEM_MAX])
{
	smart_assert(listeners->count > 0 && listeners->count <= MEMNODE_LISTENERS_MAX);
	for (unsigned int i = 0; i < listeners->count; i++)
	{
		if (listen(listeners->descriptor[i], BACKLOG) != 0)
			return memnode_refuse(problem, "%s: port %s: %s; give another --%s", listeners->setting, listeners->port,
								  strerror(errno), listeners->setting);
	}
	return true;
}

void
memnode_listeners_close(struct memnode_listeners *listeners)
{
	smart_assert(listeners->count <= MEMNODE_LISTENERS_MAX);
	for (unsigned int i = 0; i < listeners->count; i++)
		close(listeners->descriptor[i]);
	listeners->count = 0;
}
