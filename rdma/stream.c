/*
 * stream.c
 *	  Byte streams over sockets, plain or through TLS.
 *
 * A peer whose host has gone sends no more packets, so the kernel is told to
 * ask: an idle connection is probed, and one that gets no acknowledgement is
 * given up.  In this way a memory node learns that nobody holds a lease any more.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "base/assert.h"
#include "rdma/stream.h"
#include "rdma/tls.h"

#define PROBE_AFTER_S     10
#define PROBE_EVERY_S     3
#define PROBES            4
#define UNACKNOWLEDGED_MS 20000

struct stream
{
	int descriptor;
	struct tls *tls; /* NULL: plain */
	char problem[128];
};

/* What a socket that is not TCP's refuses, it does not need. */
static void
set_options(int descriptor)
{
	static const struct
	{
		int level;
		int option;
		int value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY_S},
		{IPPROTO_TCP, TCP_KEEPCNT, PROBES},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(descriptor, options[i].level, options[i].option, &options[i].value, sizeof(options[i].value));
}

struct stream *
stream_open(int descriptor, bool server, const struct stream_secret *secret)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	smart_assert(descriptor >= 0);
	if (stream != NULL && secret->length > 0)
	{
		stream->tls = tls_open(descriptor, server, secret);
		if (stream->tls == NULL)
		{
			free(stream);
			stream = NULL;
		}
	}
	if (stream == NULL)
	{
		close(descriptor);
		return NULL;
	}
	stream->descriptor = descriptor;
	set_options(descriptor);
	return stream;
}

enum stream_wait
stream_handshake(struct stream *stream)
{
	return stream->tls != NULL ? tls_handshake(stream->tls) : STREAM_DONE;
}

/* The outcome of a recv() or send() that returned result. */
static enum stream_wait
outcome(struct stream *stream, ssize_t result, enum stream_wait blocked, size_t *moved)
{
	if (result > 0)
	{
		*moved = (size_t) result;
		return STREAM_DONE;
	}
	if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return blocked;
	snprintf(stream->problem, sizeof(stream->problem), "%s",
			 result == 0 || errno == ECONNRESET || errno == EPIPE ? "the other side has closed the connection"
																  : strerror(errno));
	return STREAM_CLOSED;
}

enum stream_wait
stream_read(struct stream *stream, uint8_t *bytes, size_t length, size_t *moved)
{
	smart_assert(length > 0);
	if (stream->tls != NULL)
		return tls_read(stream->tls, bytes, length, moved);
	return outcome(stream, recv(stream->descriptor, bytes, length, 0), STREAM_WANT_READ, moved);
}

enum stream_wait
stream_write(struct stream *stream, const uint8_t *bytes, size_t length, size_t *moved)
{
	smart_assert(length > 0);
	if (stream->tls != NULL)
		return tls_write(stream->tls, bytes, length, moved);
	return outcome(stream, send(stream->descriptor, bytes, length, MSG_NOSIGNAL), STREAM_WANT_WRITE, moved);
}

int
stream_descriptor(const struct stream *stream)
{
	return stream->descriptor;
}

const char *
stream_problem(const struct stream *stream)
{
	return stream->tls != NULL ? tls_problem(stream->tls) : stream->problem;
}

/* What the kernel would go on sending after close() would take effect nobody knows when: it shall drop it. */
static void
drop_unsent(int descriptor)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	int unsent = 0;

	if (ioctl(descriptor, SIOCOUTQNSD, &unsent) == 0 && unsent > 0)
		setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void
stream_close(struct stream *stream)
{
	if (stream->tls != NULL)
		tls_close(stream->tls);
	drop_unsent(stream->descriptor);
	close(stream->descriptor);
	free(stream);
}
