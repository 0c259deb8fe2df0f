/*
 * listen.h
 *	  The sockets on which a node is reached.
 */
#ifndef MEMNODE_LISTEN_H
#define MEMNODE_LISTEN_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "options.h"

#define MEMNODE_LISTENERS_MAX 8

struct memnode_listeners
{
	unsigned int count;
	int descriptor[MEMNODE_LISTENERS_MAX];
	char host[SESSION_HOST_MAX]; /* as named, or of the service manager's socket; empty: every address */
	char port[SESSION_PORT_MAX]; /* the one that the kernel chose, if it was 0 */
	bool loopback;               /* none but loopback addresses */
	const char *setting;         /* that named them, for the operator */
};

/*
 * Binds to all addresses of the host, or takes the sockets that the service manager hands over instead; then clients may
 * connect already, and wait.  Else none can yet.  False: problem[] says why.
 */
extern bool memnode_listeners_bind(struct memnode_listeners *listeners, const struct memnode_options *options,
								   char problem[MEMNODE_PROBLEM_MAX]);

/* Binds to all addresses of a host (empty: every address), which this setting has named.  False: problem[] says why. */
extern bool memnode_listeners_bind_to(struct memnode_listeners *listeners, const char *setting, const char *host,
									  const char *port, char problem[MEMNODE_PROBLEM_MAX]);

/* Clients can connect from now on. */
extern bool memnode_listeners_start(const struct memnode_listeners *listeners, char problem[MEMNODE_PROBLEM_MAX]);

extern void memnode_listeners_close(struct memnode_listeners *listeners);

/* "HOST:PORT" of an address, with brackets where it is IPv6. */
extern void memnode_address_text(const struct sockaddr *address, socklen_t length, char *text, size_t size);

#endif /* MEMNODE_LISTEN_H */
