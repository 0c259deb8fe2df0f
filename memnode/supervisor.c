/*
 * supervisor.c
 *	  What a service manager and the daemon tell each other.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "supervisor.h"

#define FIRST_DESCRIPTOR 3

/* The number that a variable holds, 0 if it is none. */
static unsigned long
number_of(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	unsigned long number = text != NULL ? strtoul(text, &end, 10) : 0;

	return text != NULL && *text != '\0' && *end == '\0' ? number : 0;
}

unsigned int
memnode_supervisor_sockets(int *first)
{
	unsigned long count = number_of("LISTEN_FDS");

	*first = FIRST_DESCRIPTOR;
	/* They may have been meant for the process that started this one. */
	if (number_of("LISTEN_PID") != (unsigned long) getpid() || count > 64)
		return 0;
	for (unsigned long i = 0; i < count; i++)
		fcntl(FIRST_DESCRIPTOR + (int) i, F_SETFD, FD_CLOEXEC);
	return (unsigned int) count;
}

void
memnode_supervisor_tell(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path != NULL ? strlen(path) : 0;
	int descriptor;

	smart_assert(state[0] != '\0');
	if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, length);
	/* An abstract name. */
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return;
	/* A manager that does not listen must not stop the node. */
	(void) sendto(descriptor, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *) &address,
				  (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length));
	close(descriptor);
}
