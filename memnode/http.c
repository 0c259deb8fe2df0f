/*
 * http.c
 *	  The metrics by HTTP, through libmicrohttpd.
 *
 * libmicrohttpd waits for nothing here and has no thread: its sockets are in an epoll set of its own, which the daemon's
 * loop waits for together with the listening sockets (epoll sets can contain each other).  So it may read the node
 * without a lock.  A connection is for one request, and has to be over within seconds, also for one who sends a byte
 * now and then; there are few of them.
 *
 * Without the library (make METRICS=no, or where it is not installed) opening fails.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "http.h"
#include "metrics.h"

#ifdef SMART_METRICS

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/clock.h"
#include "listen.h"

#define CONNECTIONS_MAX 16
#define MEMORY_BYTES    8192 /* of a request's headers */
#define SILENCE_S       3u
#define WITHIN_NS       UINT64_C(5000000000)
#define ACCEPTS_A_TURN  16
#define RUNS_A_TURN     8

struct memnode_http
{
	const struct memnode_report *report;
	struct memnode_listeners listeners;
	struct MHD_Daemon *daemon;
	int epoll; /* the listening sockets, and the daemon's own set */
	struct
	{
		int descriptor; /* -1: none */
		uint64_t deadline_ns;
	} connections[CONNECTIONS_MAX];
};

/* ---- requests ---- */

static enum MHD_Result
answer(struct MHD_Connection *connection, unsigned int status, struct memnode_text *text, const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(text->length, text->bytes, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	smart_assert(!text->failed);
	if (response == NULL)
	{
		free(text->bytes);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* MHD_NO: the connection is closed without a word. */
static enum MHD_Result
handle(void *argument, struct MHD_Connection *connection, const char *path, const char *method, const char *version,
	   const char *upload, size_t *upload_bytes, void **state)
{
	const struct memnode_http *http = argument;
	struct memnode_text text = {.bytes = NULL};
	bool good = strcmp(method, MHD_HTTP_METHOD_GET) == 0 && strcmp(path, "/metrics") == 0;

	if (good)
		memnode_metrics_write(http->report, &text);
	else
		memnode_text_add(&text, "Here is GET /metrics, and nothing else.\n");
	if (text.failed)
	{
		free(text.bytes);
		return MHD_NO;
	}
	return answer(connection, good ? MHD_HTTP_OK : MHD_HTTP_NOT_FOUND, &text,
				  good ? MEMNODE_METRICS_TYPE : "text/plain; charset=utf-8");
}

/* ---- connections ---- */

static void
note_connection(void *argument, struct MHD_Connection *connection, void **state,
				enum MHD_ConnectionNotificationCode code)
{
	struct memnode_http *http = argument;
	int descriptor = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	int wanted = code == MHD_CONNECTION_NOTIFY_STARTED ? -1 : descriptor;

	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
	{
		if (http->connections[i].descriptor != wanted)
			continue;
		http->connections[i].descriptor = wanted == -1 ? descriptor : -1;
		http->connections[i].deadline_ns = smart_clock_ns() + WITHIN_NS;
		return;
	}
}

/* False: there are no descriptors left. */
static bool
accept_some(struct memnode_http *http)
{
	for (unsigned int i = 0; i < http->listeners.count; i++)
	{
		for (unsigned int accepted = 0; accepted < ACCEPTS_A_TURN; accepted++)
		{
			struct sockaddr_storage address;
			socklen_t length = sizeof(address);
			int descriptor = accept4(http->listeners.descriptor[i], (struct sockaddr *) &address, &length,
									 SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (descriptor < 0 && memnode_accept_must_rest(errno))
				return false;
			if (descriptor < 0)
				break;
			/* Beyond the limit it is closed there. */
			(void) MHD_add_connection(http->daemon, descriptor, (struct sockaddr *) &address, length);
		}
	}
	return true;
}

/* Hangs up on those whose time is over; the daemon notices.  Returns how many there are besides. */
static unsigned int
end_late(struct memnode_http *http)
{
	uint64_t now_ns = smart_clock_ns();
	unsigned int others = 0;

	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
	{
		if (http->connections[i].descriptor < 0)
			continue;
		others++;
		if (now_ns >= http->connections[i].deadline_ns)
			shutdown(http->connections[i].descriptor, SHUT_RDWR);
	}
	return others;
}

static enum memnode_next
serve(void *argument)
{
	struct memnode_http *http = argument;
	MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
	bool waits;
	bool accepts = accept_some(http);

	for (unsigned int runs = 0; runs < RUNS_A_TURN; runs++)
	{
		MHD_run(http->daemon);
		waits = MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES;
		if (!waits || timeout_ms > 0)
			break;
	}
	waits = end_late(http) > 0;
	return !accepts ? MEMNODE_NEXT_REST : waits ? MEMNODE_NEXT_MOMENT : MEMNODE_NEXT_EVENT;
}

/* ---- life ---- */

static bool
watch(const struct memnode_http *http, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

	return epoll_ctl(http->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

static bool
start(struct memnode_http *http, char *problem)
{
	const union MHD_DaemonInfo *info;

	smart_assert(http->daemon == NULL && http->epoll < 0 && http->listeners.count > 0);
	http->daemon =
		MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, handle, http,
						 MHD_OPTION_CONNECTION_LIMIT, (unsigned int) CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
						 SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MEMORY_BYTES,
						 MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_END);
	info = http->daemon != NULL ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	http->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (info == NULL || http->epoll < 0 || !watch(http, info->epoll_fd))
		return memnode_refuse(problem, "metrics: cannot wait for connections: %s", strerror(errno));
	for (unsigned int i = 0; i < http->listeners.count; i++)
	{
		if (!watch(http, http->listeners.descriptor[i]))
			return memnode_refuse(problem, "metrics: cannot wait for connections: %s", strerror(errno));
	}
	return memnode_listeners_start(&http->listeners, problem);
}

struct memnode_http *
memnode_http_open(const struct memnode_report *report, char problem[MEMNODE_PROBLEM_MAX])
{
	const struct memnode_options *options = report->options;
	struct memnode_http *http = calloc(1, sizeof(*http));

	smart_assert(options->metrics_port[0] != '\0');
	if (http == NULL)
	{
		memnode_refuse(problem, "this process has no memory left");
		return NULL;
	}
	http->report = report;
	http->epoll = -1;
	for (unsigned int i = 0; i < CONNECTIONS_MAX; i++)
		http->connections[i].descriptor = -1;
	if (memnode_listeners_bind_to(&http->listeners, "metrics", options->metrics_host, options->metrics_port, problem) &&
		start(http, problem))
		return http;
	memnode_http_close(http);
	return NULL;
}

const char *
memnode_http_port(const struct memnode_http *http)
{
	return http->listeners.port;
}

struct memnode_source
memnode_http_source(struct memnode_http *http)
{
	smart_assert(http->epoll >= 0);
	return (struct memnode_source){.descriptor = http->epoll, .serve = serve, .argument = http};
}

void
memnode_http_close(struct memnode_http *http)
{
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	if (http->epoll >= 0)
		close(http->epoll);
	memnode_listeners_close(&http->listeners);
	free(http);
}

#else

struct memnode_http *
memnode_http_open(const struct memnode_report *report, char problem[MEMNODE_PROBLEM_MAX])
{
	memnode_refuse(problem,
				   "metrics: this smart-memnode was built without libmicrohttpd: install libmicrohttpd-dev and "
				   "build it again");
	return NULL;
}

const char *
memnode_http_port(const struct memnode_http *http)
{
	return "";
}

struct memnode_source
memnode_http_source(struct memnode_http *http)
{
	return (struct memnode_source){.descriptor = -1};
}

void
memnode_http_close(struct memnode_http *http)
{
}

#endif
