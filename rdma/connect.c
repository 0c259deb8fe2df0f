/*
 * connect.c
 *	  A TCP connection within a time limit.
 *
 * An address needs no resolver.  A name does, and the resolver of the C library
 * blocks as long as its own configuration says (resolv.conf: timeout, attempts),
 * deaf to our limit: who cannot afford that configures addresses.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/connect.h"
#include "rdma/wait.h"

static smart_status
resolve(const char *host, const char *port, struct addrinfo **found, char *reason, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	int error = getaddrinfo(host, port, &hints, found);

	if (error == EAI_NONAME)
	{
		hints.ai_flags = AI_NUMERICSERV;
		error = getaddrinfo(host, port, &hints, found);
	}
	if (error == 0)
		return SMART_OK;
	snprintf(reason, size, "could not find its address: %s",
			 error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
	return error == EAI_MEMORY ? SMART_NO_MEMORY : SMART_UNREACHABLE;
}

/* Is the connection made?  EINPROGRESS: not yet; else 0, or why it never will be. */
static int
connection_state(int descriptor)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(int);
	int error = 0;

	if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		return errno;
	length = sizeof(peer);
	if (error == 0 && getpeername(descriptor, (struct sockaddr *) &peer, &length) != 0)
		return errno == ENOTCONN ? EINPROGRESS : errno;
	return error;
}

/* One address.  SMART_TIMEOUT: no answer by deadline_ns. */
static smart_status
try_address(struct smart_env *env, const struct addrinfo *address, uint64_t deadline_ns, int *descriptor, char *reason,
			size_t size)
{
	int mine = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address->ai_protocol);
	smart_status status = SMART_OK;
	int error;

	if (mine < 0)
	{
		snprintf(reason, size, "could not make a socket: %s", strerror(errno));
		return SMART_UNREACHABLE;
	}
	error = connect(mine, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
	while (error == EINPROGRESS && status == SMART_OK)
	{
		status = wait_slice(env, mine, true, deadline_ns);
		error = connection_state(mine);
	}
	if (error == 0 && status != SMART_INTERRUPTED)
	{
		*descriptor = mine;
		return SMART_OK;
	}
	if (status == SMART_OK)
		status = SMART_UNREACHABLE;
	snprintf(reason, size, "could not connect: %s",
			 status == SMART_UNREACHABLE ? strerror(error) : smart_status_text(status));
	close(mine);
	return status;
}

smart_status
connect_to(struct smart_env *env, const char *host, const char *port, uint64_t deadline_ns, int *descriptor,
		   char *reason, size_t size)
{
	struct addrinfo *found;
	smart_status status = resolve(host, port, &found, reason, size);
	unsigned int left = 0;

	if (status != SMART_OK)
		return status;
	for (const struct addrinfo *address = found; address != NULL; address = address->ai_next)
		left++;
	status = SMART_UNREACHABLE;
	for (const struct addrinfo *address = found; address != NULL; address = address->ai_next, left--)
	{
		uint64_t now = env->now_ns(env);
		uint64_t share = now < deadline_ns ? (deadline_ns - now) / left : 0;

		status = try_address(env, address, now + share, descriptor, reason, size);
		if (status == SMART_OK || status == SMART_INTERRUPTED)
			break;
	}
	freeaddrinfo(found);
	return status;
}
