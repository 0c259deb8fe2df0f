/*
 * control.c
 *	  The socket on which a running daemon serves its own user: tells how it is, forgets who does not come back.
 *
 * Nobody is waited for.  A guest who has connected may take its time until it sends its request, one line; there are few
 * places, in an epoll set of their own (http.c), and whoever has waited longest makes room.  The answer is bounded and
 * goes into the socket's buffer at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "control.h"
#include "owners.h"
#include "page.h"
#include "status.h"

#define BACKLOG         8
#define ANSWER_WITHIN_S 10
#define GUESTS_MAX      8
#define REQUEST_BYTES   64
#define STATUS_REQUEST  "status\n"
#define PAGE_REQUEST    "status html\n"

struct memnode_control
{
	int epoll; /* the listening socket, by the number GUESTS_MAX, and guests by theirs */
	int descriptor;
	int guests[GUESTS_MAX]; /* -1: none */
	unsigned int next_guest;
	struct sockaddr_un address;
	dev_t device; /* of the socket's file: another one in its place is not ours */
	ino_t number;
	const struct memnode_report *report;
	struct memnode *node;
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
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = GUESTS_MAX};
	struct stat about;

	smart_assert(control->epoll < 0 && control->descriptor < 0);
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	control->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->descriptor < 0 || (unlink(path) != 0 && errno != ENOENT) ||
		bind(control->descriptor, (const struct sockaddr *) &control->address, sizeof(control->address)) != 0)
		return false;
	if (chmod(path, 0600) != 0 || stat(path, &about) != 0 || listen(control->descriptor, BACKLOG) != 0 ||
		control->epoll < 0 || epoll_ctl(control->epoll, EPOLL_CTL_ADD, control->descriptor, &event) != 0)
		return false;
	control->device = about.st_dev;
	control->number = about.st_ino;
	return true;
}

struct memnode_control *
memnode_control_open(const struct memnode_report *report, struct memnode *node, const char *port,
					 char problem[MEMNODE_PROBLEM_MAX])
{
	struct memnode_control *control = calloc(1, sizeof(*control));

	if (control == NULL)
	{
		memnode_refuse(problem, "this process has no memory left");
		return NULL;
	}
	control->report = report;
	control->node = node;
	control->descriptor = control->epoll = -1;
	for (unsigned int guest = 0; guest < GUESTS_MAX; guest++)
		control->guests[guest] = -1;
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

/* ---- requests ---- */

/* An answer begins with one of these. */
#define DONE    '+'
#define REFUSED '-'

/* --forget: what an owner had here that is not coming back. */
static void
forget_owner(struct memnode *node, uint64_t id, struct memnode_text *text)
{
	uint32_t owner = memnode_owner_find(node, id);
	uint32_t before = memnode_chunks_allocated(&node->chunks);

	if (owner == MEMNODE_OWNER_UNKNOWN)
		memnode_text_add(text, "%cnothing is known of an owner %016" PRIx64 ", see --status", REFUSED, id);
	else if (!memnode_owner_forget(node, owner))
		memnode_text_add(text, "%cowner %016" PRIx64 " is connected: stop its server first", REFUSED, id);
	else
		memnode_text_add(text, "%cowner %016" PRIx64 " is forgotten, %" PRIu64 " MB are free again\n", DONE, id,
						 (uint64_t) (before - memnode_chunks_allocated(&node->chunks)) * WIRE_CHUNK_BYTES >> 20);
	smart_assert(memnode_chunks_allocated(&node->chunks) <= before);
}

/* request: a line, or what else somebody has sent. */
static void
answer(struct memnode_control *control, const char *request, struct memnode_text *text)
{
	uint64_t id;

	smart_assert(text->length == 0 && !text->failed);
	if (strcmp(request, STATUS_REQUEST) == 0)
	{
		memnode_text_add(text, "%c", DONE);
		memnode_status_write(control->report, text);
	}
	else if (strcmp(request, PAGE_REQUEST) == 0)
	{
		memnode_text_add(text, "%c", DONE);
		memnode_page_write(control->report, text);
	}
	else if (sscanf(request, "forget %16" SCNx64, &id) == 1)
		forget_owner(control->node, id, text);
	else
		memnode_text_add(text, "%cthe daemon that runs does not know this request", REFUSED);
}

/* ---- guests ---- */

static void
close_guest(struct memnode_control *control, unsigned int guest)
{
	smart_assert(guest < GUESTS_MAX);
	if (control->guests[guest] >= 0)
		close(control->guests[guest]);
	control->guests[guest] = -1;
}

/* Serves a guest who has said something, or has gone. */
static void
serve_guest(struct memnode_control *control, unsigned int guest)
{
	struct memnode_text text = {.bytes = NULL};
	char request[REQUEST_BYTES];
	ssize_t got = recv(control->guests[guest], request, sizeof(request) - 1, 0);

	smart_assert(guest < GUESTS_MAX && control->guests[guest] >= 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0)
	{
		request[got] = '\0';
		answer(control, request, &text);
		/* Who does not take it all is told less. */
		if (!text.failed && send(control->guests[guest], text.bytes, text.length, MSG_NOSIGNAL) < 0)
			memnode_log(SMART_LOG_DEBUG, "status: %s", strerror(errno));
		free(text.bytes);
	}
	close_guest(control, guest);
}

/* Lets one in who has connected; the one that has waited longest may have to make room. */
static enum memnode_next
let_in(struct memnode_control *control)
{
	unsigned int guest = control->next_guest;
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = guest};
	int descriptor = accept4(control->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	smart_assert(guest < GUESTS_MAX);
	if (descriptor < 0)
		return memnode_accept_must_rest(errno) ? MEMNODE_NEXT_REST : MEMNODE_NEXT_EVENT;
	close_guest(control, guest);
	control->guests[guest] = descriptor;
	control->next_guest = (guest + 1) % GUESTS_MAX;
	if (epoll_ctl(control->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
		close_guest(control, guest);
	return MEMNODE_NEXT_EVENT;
}

static enum memnode_next
serve(void *argument)
{
	struct memnode_control *control = argument;
	struct epoll_event events[GUESTS_MAX + 1];
	int count = epoll_wait(control->epoll, events, GUESTS_MAX + 1, 0);
	enum memnode_next next = MEMNODE_NEXT_EVENT;

	/* Guests first: one who is let in may take another one's place. */
	for (int i = 0; i < count; i++)
	{
		smart_assert(events[i].data.u32 <= GUESTS_MAX);
		if (events[i].data.u32 < GUESTS_MAX)
			serve_guest(control, events[i].data.u32);
	}
	for (int i = 0; i < count; i++)
	{
		if (events[i].data.u32 == GUESTS_MAX)
			next = let_in(control);
	}
	return next;
}

struct memnode_source
memnode_control_source(struct memnode_control *control)
{
	smart_assert(control->epoll >= 0);
	return (struct memnode_source){.descriptor = control->epoll, .serve = serve, .argument = control};
}

void
memnode_control_close(struct memnode_control *control)
{
	struct stat about;

	if (control->number != 0 && stat(control->address.sun_path, &about) == 0 && about.st_dev == control->device &&
		about.st_ino == control->number)
		unlink(control->address.sun_path);
	for (unsigned int guest = 0; guest < GUESTS_MAX; guest++)
		close_guest(control, guest);
	if (control->descriptor >= 0)
		close(control->descriptor);
	if (control->epoll >= 0)
		close(control->epoll);
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

/* Takes the answer, and prints it unless it is a refusal, which goes to problem[]. */
static bool
take_answer(int descriptor, const char *path, char *problem)
{
	char bytes[4096];
	char reason[512];
	size_t all = 0;
	size_t kept = 0;
	bool refused = false;
	ssize_t got;

	while ((got = recv(descriptor, bytes, sizeof(bytes) - 1, 0)) > 0 || (got < 0 && errno == EINTR))
	{
		size_t from = all == 0 ? 1 : 0;

		if (got < 0)
			continue;
		smart_assert((size_t) got >= from);
		if (all == 0)
			refused = bytes[0] != DONE;
		if (!refused)
			fwrite(bytes + from, 1, (size_t) got - from, stdout);
		else if (all == 0)
			kept = (size_t) snprintf(reason, sizeof(reason), "%.*s", (int) got - 1, bytes + 1);
		all += (size_t) got;
	}
	if (refused && kept > 0)
		return memnode_refuse(problem, "%s", reason);
	return (all > 0 && got == 0) || memnode_refuse(problem, "the daemon at %s does not answer", path);
}

static bool
ask(int descriptor, const struct sockaddr_un *address, const char *request, char *problem)
{
	struct timeval limit = {.tv_sec = ANSWER_WITHIN_S};
	const char *path = address->sun_path;

	smart_assert(strlen(request) < REQUEST_BYTES && strchr(request, '\n') != NULL);
	setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(descriptor, (const struct sockaddr *) address, sizeof(*address)) == 0)
	{
		if (!is_trusted(descriptor))
			return memnode_refuse(problem, "%s belongs to another user", path);
		if (send(descriptor, request, strlen(request), MSG_NOSIGNAL) != (ssize_t) strlen(request))
			return memnode_refuse(problem, "the daemon at %s does not listen", path);
		return take_answer(descriptor, path, problem);
	}
	if (errno == ENOENT || errno == ECONNREFUSED)
		return memnode_refuse(problem, "no smart-memnode of this --name or port runs here (%s)", path);
	return memnode_refuse(problem, "%s: %s%s", path, strerror(errno),
						  errno == EACCES ? "; ask as the user who runs the daemon" : "");
}

bool
memnode_control_ask(const struct memnode_options *options, char problem[MEMNODE_PROBLEM_MAX])
{
	const char *what = options->forget != 0 ? "forget" : "status";
	char request[REQUEST_BYTES] = STATUS_REQUEST;
	char why[MEMNODE_PROBLEM_MAX];
	struct sockaddr_un address;
	int descriptor;
	bool good;

	smart_assert(options->forget != 0 || options->status != MEMNODE_STATUS_NONE);
	if (!memnode_control_has_name(options))
		return memnode_refuse(problem, "%s: say by --name or --listen which daemon is meant", what);
	if (!place(options, options->port, &address))
		return memnode_refuse(problem, "%s: the name is too long for a socket", what);
	if (options->forget != 0)
		snprintf(request, sizeof(request), "forget %016" PRIx64 "\n", options->forget);
	else if (options->status == MEMNODE_STATUS_HTML)
		strcpy(request, PAGE_REQUEST);
	descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return memnode_refuse(problem, "%s: %s", what, strerror(errno));
	good = ask(descriptor, &address, request, why) || memnode_refuse(problem, "%s: %.2048s", what, why);
	close(descriptor);
	return good;
}
