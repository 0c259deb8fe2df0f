/*
 * session.h
 *	  A client's connection to a memory node: made with a time limit, said HELLO
 *	  on, and used for requests and answers.
 *
 * Waits are interruptible (env->interrupted) and end at a deadline; after any
 * status but SMART_OK, SMART_NO_SPACE and SMART_CORRUPT the session is of no use any more and has to be closed.
 */
#ifndef SMART_RDMA_SESSION_H
#define SMART_RDMA_SESSION_H

#include "base/env.h"
#include "rdma/tcp/stream.h"
#include "rdma/wire.h"

struct grace;

struct session_options
{
	struct smart_env *env;
	struct grace *grace; /* of its interrupts (wait.h); NULL: none */
	const struct stream_secret *secret;
	struct wire_hello hello;
	uint32_t timeout_ms; /* of making the connection, HELLO's answer included */
};

struct session;

/*
 * Connects to host:port (name or address) and says HELLO.  On failure problem[]
 * is an English phrase that says what happened, host and port included.
 * SMART_UNREACHABLE (refused, no such host, no TLS, lease lost), SMART_STALE
 * when the hello's generation is too low, SMART_TIMEOUT, SMART_INTERRUPTED, SMART_NO_MEMORY.
 */
extern smart_status session_open(const struct session_options *options, const char *host, const char *port,
								 struct session **session, char problem[SESSION_PROBLEM_MAX]);
extern void session_close(struct session *session);

/* What the memory node said in its answer to HELLO, and how long that answer took. */
extern const struct wire_welcome *session_welcome(const struct session *session);
extern uint64_t session_round_trip_ns(const struct session *session);

/* "host:port" of the memory node. */
extern const char *session_place(const struct session *session);

/* Why the last call failed: as session_open's problem. */
extern const char *session_problem(const struct session *session);

/* An answer that cannot be: notes it, and SMART_UNREACHABLE. */
extern smart_status session_disbelieve(struct session *session);

/* Has the other side gone?  Does not wait.  Only between calls. */
extern bool session_is_lost(struct session *session);

/* For a process that waits on several sessions: it can be read when the other side has gone; session_is_lost tells then. */
extern int session_descriptor(const struct session *session);

/*
 * Sends a request and waits for its answer, whose payload stays good until the next
 * call.  A WIRE_FULL answer is SMART_NO_SPACE, WIRE_OUTSIDE SMART_CORRUPT, any other refusal SMART_UNREACHABLE.
 */
extern smart_status session_call(struct session *session, enum wire_type type, const uint8_t *payload, uint32_t length,
								 uint64_t deadline_ns, const uint8_t **answer, uint32_t *result_length);

/* ---- for links: requests that are answered later ---- */

/*
 * Room for the payload of the next request, WIRE_PAYLOAD_MAX bytes, and its
 * dispatch.  send writes what the socket takes without waiting; the rest goes with
 * receive.  Answers come in the order of the requests.  There is no room while
 * more than one request is not written yet; requests under way together are of one type.
 */
extern bool session_has_room(const struct session *session);
extern uint8_t *session_payload(struct session *session);
extern smart_status session_send(struct session *session, enum wire_type type, uint32_t length);
extern smart_status
session_receive(struct session *session, uint64_t deadline_ns, const uint8_t **answer, uint32_t *result_length);

/* ---- requests of a compute node ---- */

/* SMART_STALE: the lease is not the one that it continues (wire.h), and nothing has changed. */
extern smart_status session_lease(struct session *session, const struct wire_lease *lease, uint64_t deadline_ns);
extern smart_status
session_take_chunks(struct session *session, uint32_t wanted, uint64_t deadline_ns, uint32_t *chunks, uint32_t *count);
extern smart_status
session_give_chunks(struct session *session, const uint32_t *chunks, uint32_t count, uint64_t deadline_ns);
extern smart_status
session_list_chunks(struct session *session, uint32_t from, uint64_t deadline_ns, uint32_t *chunks, uint32_t *count);
extern smart_status session_make_tree(struct session *session, struct wire_tree *tree, uint64_t deadline_ns);
extern smart_status session_drop_tree(struct session *session, uint64_t id, uint64_t deadline_ns);
extern smart_status session_list_trees(struct session *session, uint64_t *cursor, uint64_t deadline_ns,
									   struct wire_tree *trees, uint32_t *count);
extern smart_status session_node_status(struct session *session, uint64_t deadline_ns, struct wire_node_status *status);

#endif /* SMART_RDMA_SESSION_H */
