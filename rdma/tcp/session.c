/*
 * session.c
 *	  A client's connection to a memory node: made within a time limit; frames out and in.
 *
 * A client that waits for an answer also goes on sending what is not sent yet, and reads
 * all the time: the memory node stops reading requests when its answers are not
 * taken, so that a client that only sent could wait for ever.
 *
 * Buffers lie in the session itself, and large ones are mapped by malloc() when
 * they are touched first: a session that never moved much takes a few pages.
 *
 * A memory node that does not know the version is asked again in the version before: where all is of one version, that
 * costs nothing, and where it is not, a connection more.
 *
 * An address needs no resolver.  A name does, and the resolver of the C library blocks as long as its own configuration
 * says (resolv.conf: timeout, attempts), deaf to our limit: an operator who cannot afford that configures addresses.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "rdma/tcp/session.h"
#include "rdma/wait.h"

#define FRAME_MAX (WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX)

struct session
{
	struct smart_env *env;
	struct grace *grace;   /* NULL: none */
	struct stream *stream; /* NULL: none yet */
	struct wire_welcome welcome;
	bool other_version; /* the memory node may know the version before better */
	uint64_t round_trip_ns;
	uint64_t sent;       /* requests, which are numbered from 1 */
	uint64_t answered;   /* of these */
	enum wire_type type; /* of those that are not answered */
	size_t out_start;    /* what has not been written yet: out[out_start..out_end) */
	size_t out_end;
	size_t in_start; /* what has not been looked at yet: in[in_start..in_end) */
	size_t in_end;
	char place[SESSION_HOST_MAX + SESSION_PORT_MAX + 4];
	char problem[SESSION_PROBLEM_MAX];
	uint8_t in[FRAME_MAX];
	uint8_t out[2 * FRAME_MAX];
};

/* Notes why a call fails, and fails. */
static smart_status
fail(struct session *session, smart_status status, const char *reason)
{
	smart_assert(status != SMART_OK);
	snprintf(session->problem, sizeof(session->problem), "memory node %.100s: %s", session->place, reason);
	return status;
}

/* Why a wait came to this status, which is not SMART_OK; late: if it has taken too long. */
static const char *
problem_of_wait(smart_status status, const char *late)
{
	smart_assert(status != SMART_OK);
	switch (status)
	{
		case SMART_TIMEOUT:
			return late;
		case SMART_UNREACHABLE:
			return "no reply until the node counted as away";
		default:
			return "interrupted";
	}
}

smart_status
session_disbelieve(struct session *session)
{
	return fail(session, SMART_UNREACHABLE, "its reply makes no sense");
}

/* ---- out ---- */

bool
session_has_room(const struct session *session)
{
	return session->out_end - session->out_start <= FRAME_MAX;
}

uint8_t *
session_payload(struct session *session)
{
	smart_assert(session_has_room(session));
	if (session->out_end > FRAME_MAX)
	{
		memmove(session->out, session->out + session->out_start, session->out_end - session->out_start);
		session->out_end -= session->out_start;
		session->out_start = 0;
	}
	smart_assert(session->out_end <= FRAME_MAX);
	return session->out + session->out_end + WIRE_HEADER_BYTES;
}

/* Writes what goes without waiting. */
static smart_status
push(struct session *session)
{
	while (session->out_start < session->out_end)
	{
		size_t moved = 0;
		enum stream_wait wait = stream_write(session->stream, session->out + session->out_start,
											 session->out_end - session->out_start, &moved);

		if (wait == STREAM_CLOSED)
			return fail(session, SMART_UNREACHABLE, stream_problem(session->stream));
		if (wait != STREAM_DONE)
			return SMART_OK;
		session->out_start += moved;
	}
	smart_assert(session->out_start == session->out_end);
	session->out_start = session->out_end = 0;
	return SMART_OK;
}

smart_status
session_send(struct session *session, enum wire_type type, uint32_t length)
{
	struct wire_header header = {.length = length, .type = (uint8_t) type, .number = session->sent + 1};

	/* Answers do not say more than a number, and session->type speaks for all of them. */
	smart_assert(length <= WIRE_PAYLOAD_MAX && (session->sent == session->answered || session->type == type));
	smart_assert(session->out_end + WIRE_HEADER_BYTES + length <= sizeof(session->out));
	wire_put_header(session->out + session->out_end, &header);
	session->out_end += WIRE_HEADER_BYTES + length;
	smart_assert(session->out_start < session->out_end);
	session->type = type;
	session->sent++;
	return push(session);
}

/* ---- in ---- */

/* The frame at in_start, if it is there whole; else *whole is false, and there is room for the rest of it. */
static smart_status
look(struct session *session, struct wire_header *header, bool *whole)
{
	size_t there = session->in_end - session->in_start;
	size_t needed = WIRE_HEADER_BYTES;

	smart_assert(session->in_start <= session->in_end && session->in_end <= FRAME_MAX);
	if (there >= needed)
	{
		if (!wire_get_header(session->in + session->in_start, true, header) ||
			header->number != session->answered + 1 || header->type != session->type ||
			(header->status != WIRE_OK && header->length != 0))
			return fail(session, SMART_UNREACHABLE, "it does not speak this protocol");
		needed += header->length;
	}
	*whole = there >= needed;
	smart_assert(needed <= FRAME_MAX);
	if (!*whole && session->in_start + needed > FRAME_MAX)
	{
		memmove(session->in, session->in + session->in_start, there);
		session->in_start = 0;
		session->in_end = there;
	}
	return SMART_OK;
}

/* Reads some of what there is and writes what goes, or waits when neither goes on. */
static smart_status
go_on(struct session *session, uint64_t deadline_ns)
{
	size_t moved = 0;
	enum stream_wait wait;
	smart_status status;

	/* Whatever the frame at the buffer's start, it fits. */
	smart_assert(session->in_end < FRAME_MAX && session->in_start <= session->in_end);
	wait = stream_read(session->stream, session->in + session->in_end, FRAME_MAX - session->in_end, &moved);
	if (wait == STREAM_CLOSED)
		return fail(session, SMART_UNREACHABLE, stream_problem(session->stream));
	session->in_end += moved;
	if (wait == STREAM_DONE)
		return SMART_OK;
	status = push(session);
	if (status != SMART_OK)
		return status;
	status = wait_slice(session->env, session->grace, stream_descriptor(session->stream),
						session->out_start < session->out_end, deadline_ns);
	if (status != SMART_OK)
		return fail(session, status, problem_of_wait(status, "no reply within the time limit"));
	return SMART_OK;
}

smart_status
session_receive(struct session *session, uint64_t deadline_ns, const uint8_t **answer, uint32_t *result_length)
{
	struct wire_header header;
	smart_status status;
	bool whole;

	smart_assert(session->answered < session->sent);
	if (session->in_start == session->in_end)
		session->in_start = session->in_end = 0;
	while ((status = look(session, &header, &whole)) == SMART_OK && !whole)
	{
		status = go_on(session, deadline_ns);
		if (status != SMART_OK)
			return status;
	}
	if (status != SMART_OK)
		return status;
	*answer = session->in + session->in_start + WIRE_HEADER_BYTES;
	*result_length = header.length;
	session->in_start += WIRE_HEADER_BYTES + header.length;
	session->answered++;
	smart_assert(session->in_start <= session->in_end && session->answered <= session->sent);
	switch ((enum wire_status) header.status)
	{
		case WIRE_OK:
			return SMART_OK;
		case WIRE_FULL:
			status = SMART_NO_SPACE;
			break;
		case WIRE_OUTSIDE:
			status = SMART_CORRUPT;
			break;
		case WIRE_STALE:
		case WIRE_FOREIGN:
			status = SMART_STALE;
			break;
		case WIRE_UNSUPPORTED:
			session->other_version = session->type == WIRE_HELLO;
			status = SMART_UNREACHABLE;
			break;
		default:
			status = SMART_UNREACHABLE;
	}
	return fail(session, status, wire_status_text((enum wire_status) header.status));
}

smart_status
session_call(struct session *session, enum wire_type type, const uint8_t *payload, uint32_t length,
			 uint64_t deadline_ns, const uint8_t **answer, uint32_t *result_length)
{
	smart_status status;

	smart_assert(session->sent == session->answered);
	if (length > 0)
		memcpy(session_payload(session), payload, length);
	status = session_send(session, type, length);
	if (status != SMART_OK)
		return status;
	return session_receive(session, deadline_ns, answer, result_length);
}

bool
session_is_lost(struct session *session)
{
	uint8_t byte;
	size_t moved;

	/* No request is under way, so bytes that come are as bad as an end. */
	return session->sent != session->answered || session->in_start != session->in_end ||
		   stream_read(session->stream, &byte, 1, &moved) != STREAM_WANT_READ;
}

/* ---- making a connection ---- */

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
try_address(const struct session_options *options, const struct addrinfo *address, uint64_t deadline_ns,
			int *descriptor, char *reason, size_t size)
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
		status = wait_slice(options->env, options->grace, mine, true, deadline_ns);
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

/*
 * Tries the addresses of host (a name or an address) one after the other, each for its share of the time.
 * *descriptor: a connected, non-blocking socket.  Otherwise reason[] is an English phrase.
 */
static smart_status
connect_to(const struct session_options *options, const char *host, const char *port, uint64_t deadline_ns,
		   int *descriptor, char *reason, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *found;
	int error = getaddrinfo(host, port, &hints, &found);
	unsigned int left = 0;
	smart_status status = SMART_UNREACHABLE;

	if (error == EAI_NONAME)
	{
		hints.ai_flags = AI_NUMERICSERV;
		error = getaddrinfo(host, port, &hints, &found);
	}
	if (error != 0)
	{
		snprintf(reason, size, "could not find its address: %s",
				 error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
		return error == EAI_MEMORY ? SMART_NO_MEMORY : SMART_UNREACHABLE;
	}
	for (const struct addrinfo *address = found; address != NULL; address = address->ai_next)
		left++;
	for (const struct addrinfo *address = found; address != NULL; address = address->ai_next, left--)
	{
		uint64_t now = options->env->now_ns(options->env);
		uint64_t share = now < deadline_ns ? (deadline_ns - now) / left : 0;

		smart_assert(left > 0);
		status = try_address(options, address, now + share, descriptor, reason, size);
		if (status == SMART_OK || status == SMART_INTERRUPTED)
			break;
	}
	freeaddrinfo(found);
	return status;
}

static smart_status
greet(struct session *session, const struct session_options *options, uint32_t version, uint64_t deadline_ns)
{
	uint64_t asked = session->env->now_ns(session->env);
	const uint8_t *answer;
	uint32_t length;
	smart_status status =
		session_send(session, WIRE_HELLO, wire_put_hello(session_payload(session), version, &options->hello));

	if (status == SMART_OK)
		status = session_receive(session, deadline_ns, &answer, &length);
	session->round_trip_ns = session->env->now_ns(session->env) - asked;
	if (status == SMART_OK &&
		(!wire_get_welcome(answer, length, &session->welcome) || session->welcome.version != version))
		status = session_disbelieve(session);
	/* Without a word: a node that expects TLS does not understand what came. */
	if (status == SMART_UNREACHABLE && session->in_end == 0 && options->secret->length == 0)
		return fail(session, status,
					"it has closed the connection without a reply: it has ended, or wants a secret key");
	/* A node that refuses HELLO is as good as none, whatever its reason. */
	return status == SMART_NO_SPACE || status == SMART_CORRUPT ? SMART_UNREACHABLE : status;
}

static smart_status
connect_in(struct session *session, const struct session_options *options, const char *host, const char *port,
		   uint32_t version, uint64_t deadline_ns)
{
	char reason[128];
	int descriptor;
	enum stream_wait wait;
	smart_status status = connect_to(options, host, port, deadline_ns, &descriptor, reason, sizeof(reason));

	if (status != SMART_OK)
		return fail(session, status, reason);
	session->stream = stream_open(descriptor, options->secret);
	if (session->stream == NULL)
		return fail(session, SMART_NO_MEMORY, "no memory for a connection");
	smart_assert(session->env != NULL && session->sent == 0);
	while ((wait = stream_handshake(session->stream)) != STREAM_DONE)
	{
		if (wait == STREAM_CLOSED)
			return fail(session, SMART_UNREACHABLE, stream_problem(session->stream));
		status = wait_slice(session->env, session->grace, descriptor, wait == STREAM_WANT_WRITE, deadline_ns);
		if (status != SMART_OK)
			return fail(session, status, problem_of_wait(status, "no TLS handshake within the time limit"));
	}
	return greet(session, options, version, deadline_ns);
}

static smart_status
open_connection(struct session *session, const struct session_options *options, const char *host, const char *port)
{
	uint64_t deadline_ns = smart_deadline_ns(options->env, options->timeout_ms);
	smart_status status = connect_in(session, options, host, port, WIRE_VERSION, deadline_ns);

	if (status != SMART_UNREACHABLE || !session->other_version)
		return status;
	smart_assert(session->stream != NULL);
	stream_close(session->stream);
	session->stream = NULL;
	session->other_version = false;
	session->sent = session->answered = 0;
	session->in_start = session->in_end = session->out_start = session->out_end = 0;
	status = connect_in(session, options, host, port, WIRE_VERSION_BEFORE, deadline_ns);
	if (status == SMART_UNREACHABLE && session->other_version)
		return fail(session, status,
					"it speaks neither this version of the protocol nor the one before: upgrade it, or this");
	return status;
}

smart_status
session_open(const struct session_options *options, const char *host, const char *port, struct session **session,
			 char problem[SESSION_PROBLEM_MAX])
{
	struct session *made = options->env->allocate(options->env, sizeof(*made));
	smart_status status;

	if (made == NULL)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "no memory for a connection to memory node %.180s", host);
		return SMART_NO_MEMORY;
	}
	/* The buffers are not touched before they are used. */
	memset(made, 0, offsetof(struct session, in));
	made->env = options->env;
	made->grace = options->grace;
	snprintf(made->place, sizeof(made->place), strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
	status = open_connection(made, options, host, port);
	if (status == SMART_OK)
	{
		*session = made;
		return SMART_OK;
	}
	snprintf(problem, SESSION_PROBLEM_MAX, "%s", made->problem);
	session_close(made);
	return status;
}

void
session_close(struct session *session)
{
	if (session->stream != NULL)
		stream_close(session->stream);
	session->env->release(session->env, session);
}

/* ---- what is known ---- */

const struct wire_welcome *
session_welcome(const struct session *session)
{
	return &session->welcome;
}

uint64_t
session_round_trip_ns(const struct session *session)
{
	return session->round_trip_ns;
}

const char *
session_problem(const struct session *session)
{
	return session->problem;
}

const char *
session_place(const struct session *session)
{
	return session->place;
}

int
session_descriptor(const struct session *session)
{
	return stream_descriptor(session->stream);
}
