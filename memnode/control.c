/*
 * control.c
 *	  The socket on which a running daemon tells its own user how it is.
 *
 * The answer is bounded and goes into the socket's buffer at once, so that nobody is waited for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "control.h"
#include "status.h"

#define ANSWERS_A_TURN  4
#define BACKLOG         8
#define ANSWER_WITHIN_S 10

struct memnode_control
{
	int descriptor;
	struct sockaddr_un address;
	dev_t device; /* of the socket's file: another one in its place is not ours */
	ino_t number;
	const struct memnode_report *report;
};

/* Where the socket is.  False: the name is too long for one. */
static bool
place(const struct memnode_options *options, const char *port, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* No name of shared memory has a colon, so that none is another node's socket. */
	return snprintf(address->sun_path, sizeof(address->sun_path), "/dev/shm/smart-memnode.%s:status",
					options->name[0] != '\0' ? options->name : port) < (int) sizeof(address->sun_path);
}

bool
memnode_control_has_name(const struct memnode_options *options)
{
	return options->name[0] != '\0' || strcmp(options->port, "0") != 0;
}

/* ---- the daemon's side ---- */

/* Does a daemon of the same name, but with other memory, listen there? */
static bool
is_taken(const struct memnode_control *control)
{
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool taken = descriptor >= 0 &&
				 (connect(descriptor, (const struct sockaddr *) &control->address, sizeof(control->address)) == 0 ||
				  errno == EAGAIN);

	if (descriptor >= 0)
		close(descriptor);
	return taken;
}

/* Nobody can connect before it listens, and by then it is closed to others. */
static bool
listen_there(struct memnode_control *control)
{
	const char *path = control->address.sun_path;
	struct stat about;

	control->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->descriptor < 0 || (unlink(path) != 0 && errno != ENOENT) ||
		bind(control->descriptor, (const struct sockaddr *) &control->address, sizeof(control->address)) != 0)
		return false;
	if (chmod(path, 0600) != 0 || stat(path, &about) != 0 || listen(control->descriptor, BACKLOG) != 0)
		return false;
	control->device = about.st_dev;
	control->number = about.st_ino;
	return true;
}

struct memnode_control *
memnode_control_open(const struct memnode_report *report, const char *port, char problem[MEMNODE_PROBLEM_MAX])
{
	struct memnode_control *control = calloc(1, sizeof(*control));

	if (control == NULL)
	{
		memnode_refuse(problem, "this process has no memory left");
		return NULL;
	}
	control->report = report;
	control->descriptor = -1;
	if (!place(report->options, port, &control->address))
		memnode_refuse(problem, "the name is too long for a socket");
	else if (is_taken(control))
		memnode_refuse(problem, "%s: another smart-memnode has the same name", control->address.sun_path);
	else if (!listen_there(control))
		memnode_refuse(problem, "%s: %s", control->address.sun_path, strerror(errno));
	else
		return control;
	memnode_control_close(control);
	return NULL;
}

/* Tells one who has connected.  MEMNODE_NEXT_MOMENT: there may be others. */
static enum memnode_next
answer_one(struct memnode_control *control)
{
	struct memnode_text text = {.bytes = NULL};
	int descriptor = accept4(control->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (descriptor < 0)
		return memnode_accept_must_rest(errno) ? MEMNODE_NEXT_REST : MEMNODE_NEXT_EVENT;
	memnode_status_write(control->report, &text);
	/* Who does not take it all is told less. */
	if (!text.failed && send(descriptor, text.bytes, text.length, MSG_NOSIGNAL) < 0)
		memnode_log(SMART_LOG_DEBUG, "status: %s", strerror(errno));
	free(text.bytes);
	close(descriptor);
	return MEMNODE_NEXT_MOMENT;
}

static enum memnode_next
serve(void *argument)
{
	enum memnode_next next = MEMNODE_NEXT_MOMENT;

	for (unsigned int answers = 0; answers < ANSWERS_A_TURN && next == MEMNODE_NEXT_MOMENT; answers++)
		next = answer_one(argument);
	return next;
}

struct memnode_source
memnode_control_source(struct memnode_control *control)
{
	smart_assert(control->descriptor >= 0);
	return (struct memnode_source){.descriptor = control->descriptor, .serve = serve, .argument = control};
}

void
memnode_control_close(struct memnode_control *control)
{
	struct stat about;

	if (control->number != 0 && stat(control->address.sun_path, &about) == 0 && about.st_dev == control->device &&
		about.st_ino == control->number)
		unlink(control->address.sun_path);
	if (control->descriptor >= 0)
		close(control->descriptor);
	free(control);
}

/* ---- the side that asks ---- */

/* Anybody can make a file of that name: only this user and root are believed; root itself asks daemons of any user. */
static bool
is_trusted(int descriptor)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
		   (geteuid() == 0 || peer.uid == geteuid() || peer.uid == 0);
}

/* Prints what comes.  False: nothing came. */
static bool
print_answer(int descriptor)
{
	char bytes[4096];
	size_t all = 0;
	ssize_t got;

	while ((got = recv(descriptor, bytes, sizeof(bytes), 0)) > 0 || (got < 0 && errno == EINTR))
	{
		if (got > 0)
			all += fwrite(bytes, 1, (size_t) got, stdout);
	}
	return all > 0 && got == 0;
}

static bool
ask(int descriptor, const struct sockaddr_un *address, char *problem)
{
	struct timeval limit = {.tv_sec = ANSWER_WITHIN_S};
	const char *path = address->sun_path;

	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(descriptor, (const struct sockaddr *) address, sizeof(*address)) == 0)
	{
		if (!is_trusted(descriptor))
			return memnode_refuse(problem, "status: %s belongs to another user", path);
		return print_answer(descriptor) || memnode_refuse(problem, "status: the daemon at %s does not answer", path);
	}
	if (errno == ENOENT || errno == ECONNREFUSED)
		return memnode_refuse(problem, "status: no smart-memnode of this --name or port runs here (%s)", path);
	return memnode_refuse(problem, "status: %s: %s%s", path, strerror(errno),
						  errno == EACCES ? "; ask as the user who runs the daemon" : "");
}

bool
memnode_control_ask(const struct memnode_options *options, char problem[MEMNODE_PROBLEM_MAX])
{
	struct sockaddr_un address;
	int descriptor;
	bool good;

	if (!memnode_control_has_name(options))
		return memnode_refuse(problem, "status: say by --name or --listen which daemon is meant");
	if (!place(options, options->port, &address))
		return memnode_refuse(problem, "status: the name is too long for a socket");
	descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return memnode_refuse(problem, "status: %s", strerror(errno));
	good = ask(descriptor, &address, problem);
	close(descriptor);
	return good;
}
