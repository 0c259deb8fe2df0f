/*
 * tcp.c
 *	  Verbs as messages: a batch is one VERBS request, or several when it does not
 *	  fit, on the session's stream.
 *
 * Several requests are under way together, as far as the session has room for
 * them; they are executed in order, and so are the verbs in each.  What a message
 * holds follows from the batch alone, and so sending and receiving walk the batch
 * by the same rule, one behind the other.
 *
 * A READ or WRITE that is too long for one message travels in pieces, a message
 * each, which end at multiples of 8 bytes so that no word is torn.
 *
 * The node refuses a message as a whole when one of its addresses is outside; the
 * messages of the batch that were sent behind it are executed nevertheless.
 */
#include <string.h>

#include "base/assert.h"
#include "rdma/link.h"
#include "rdma/tcp/session.h"

#define VERBS_HEAD_BYTES 8                                                       /* of a VERBS payload: count */
#define MOVE_MAX         (WIRE_PAYLOAD_MAX - VERBS_HEAD_BYTES - WIRE_VERB_BYTES) /* bytes of a READ or WRITE, alone */

/* Where in the batch: a request of this node or what comes before the next one, and the bytes of it that are past. */
struct cursor
{
	int index;
	uint32_t bytes;
};

/* The verbs of one VERBS request. */
struct message
{
	struct fabric_request *verb[WIRE_BATCH_MAX];
	uint32_t count;
	uint32_t result_bytes;
	struct fabric_request piece; /* of a request that is too long: verb[0] then */
};

struct tcp_link
{
	struct fabric_link link; /* first */
	struct fabric_request *requests;
	int count;
	struct cursor sent;
	struct cursor answered;
	uint32_t under_way; /* messages */
	struct message message;
};

static struct tcp_link *
tcp_of(struct fabric_link *link)
{
	return (struct tcp_link *) link;
}

/* A message of one piece. */
static void
cut_piece(struct message *message, const struct fabric_request *request, struct cursor *cursor)
{
	struct fabric_request *piece = &message->piece;
	uint32_t left = request->length - cursor->bytes;

	*piece = *request;
	piece->remote += cursor->bytes;
	piece->local = (uint8_t *) request->local + cursor->bytes;
	piece->length = left <= MOVE_MAX ? left : MOVE_MAX - (uint32_t) ((piece->remote + MOVE_MAX) % sizeof(uint64_t));
	smart_assert(piece->length > 0 && piece->length <= left && cursor->bytes < request->length);
	cursor->bytes += piece->length;
	if (cursor->bytes == request->length)
		*cursor = (struct cursor){.index = cursor->index + 1};
	message->verb[0] = piece;
	message->count = 1;
	message->result_bytes = wire_verb_reply_bytes(piece);
}

/* The message that begins at the cursor, which moves behind it.  False: the batch is over. */
static bool
next_message(struct tcp_link *tcp, struct cursor *cursor)
{
	struct message *message = &tcp->message;
	uint32_t request_bytes = VERBS_HEAD_BYTES;

	smart_assert(cursor->index <= tcp->count);
	message->count = 0;
	message->result_bytes = 0;
	for (; cursor->index < tcp->count && message->count < WIRE_BATCH_MAX; cursor->index++)
	{
		struct fabric_request *request = &tcp->requests[cursor->index];
		uint32_t result_bytes = wire_verb_reply_bytes(request);

		if (fabric_node(request->remote) != tcp->link.node)
			continue;
		if (!fabric_is_atomic(request) && request->length > MOVE_MAX)
		{
			if (message->count == 0)
				cut_piece(message, request, cursor);
			break;
		}
		if (request_bytes + wire_verb_request_bytes(request) > WIRE_PAYLOAD_MAX ||
			message->result_bytes + result_bytes > WIRE_PAYLOAD_MAX)
			break;
		request_bytes += wire_verb_request_bytes(request);
		message->result_bytes += result_bytes;
		message->verb[message->count++] = request;
	}
	smart_assert(message->count <= WIRE_BATCH_MAX && message->result_bytes <= WIRE_PAYLOAD_MAX);
	return message->count > 0;
}

/* Sends messages as long as there is room for them. */
static smart_status
send_messages(struct tcp_link *tcp)
{
	struct session *session = tcp->link.session;
	struct message *message = &tcp->message;
	smart_status status = SMART_OK;

	while (status == SMART_OK && session_has_room(session) && next_message(tcp, &tcp->sent))
	{
		tcp->under_way++;
		status =
			session_send(session, WIRE_VERBS, wire_put_verbs(session_payload(session), message->verb, message->count));
	}
	return status;
}

/* Waits for the answer of one message.  SMART_CORRUPT: it was refused, the session is as good as before. */
static smart_status
receive_message(struct tcp_link *tcp, uint64_t deadline_ns)
{
	struct session *session = tcp->link.session;
	const uint8_t *answer;
	uint32_t length;
	smart_status status = session_receive(session, deadline_ns, &answer, &length);
	bool some;

	if (status != SMART_OK && status != SMART_CORRUPT)
		return status;
	smart_assert(tcp->under_way > 0);
	tcp->under_way--;
	some = next_message(tcp, &tcp->answered);
	smart_assert(some);
	if (status == SMART_CORRUPT)
		return status;
	if (!some || length != tcp->message.result_bytes)
		return session_disbelieve(session);
	for (uint32_t i = 0; i < tcp->message.count; i++)
	{
		struct fabric_request *request = tcp->message.verb[i];

		if (request->verb == FABRIC_READ)
			memcpy(request->local, answer, request->length);
		else if (request->verb != FABRIC_WRITE)
			wire_get_u64(answer, sizeof(uint64_t), &request->result);
		answer += wire_verb_reply_bytes(request);
	}
	return SMART_OK;
}

/* Notes why a call failed. */
static smart_status
note(struct tcp_link *tcp, smart_status status)
{
	if (status != SMART_OK)
		memcpy(tcp->link.problem, session_problem(tcp->link.session), sizeof(tcp->link.problem));
	return status;
}

static smart_status
tcp_post(struct fabric_link *link, struct fabric_request *requests, int count)
{
	struct tcp_link *tcp = tcp_of(link);

	smart_assert(count > 0);
	smart_assert(tcp->under_way == 0);
	tcp->requests = requests;
	tcp->count = count;
	tcp->sent = tcp->answered = (struct cursor){0};
	return note(tcp, send_messages(tcp));
}

static smart_status
tcp_finish(struct fabric_link *link, uint64_t deadline_ns)
{
	struct tcp_link *tcp = tcp_of(link);
	smart_status outside = SMART_OK;

	while (tcp->under_way > 0)
	{
		smart_status status = receive_message(tcp, deadline_ns);

		if (status == SMART_CORRUPT)
			outside = note(tcp, status);
		if (status == SMART_OK || status == SMART_CORRUPT)
			status = send_messages(tcp);
		if (status != SMART_OK)
			return note(tcp, status);
	}
	smart_assert(tcp->answered.index <= tcp->sent.index);
	return outside;
}

static void
tcp_close(struct fabric_link *link)
{
	link->env->release(link->env, link);
}

static const struct fabric_link_kind tcp_kind = {
	.post = tcp_post,
	.finish = tcp_finish,
	.close = tcp_close,
};

smart_status
tcp_link_open(struct session *session, struct smart_env *env, unsigned int node, uint64_t deadline_ns,
			  struct fabric_link **link, char problem[SESSION_PROBLEM_MAX])
{
	struct tcp_link *tcp = env->allocate(env, sizeof(*tcp));

	smart_assert(node < FABRIC_NODES_MAX);
	if (tcp == NULL)
	{
		memcpy(problem, "no memory for a link", sizeof("no memory for a link"));
		return SMART_NO_MEMORY;
	}
	memset(tcp, 0, sizeof(*tcp));
	tcp->link.kind = &tcp_kind;
	tcp->link.session = session;
	tcp->link.env = env;
	tcp->link.node = node;
	*link = &tcp->link;
	return SMART_OK;
}
