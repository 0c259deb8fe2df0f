/*
 * requests.c
 *	  The requests of a compute node that are not verbs: what session.h declares of
 *	  lease, chunks, trees and status.
 *
 * An answer that has not the shape that its request asks for, or numbers that cannot be,
 * is as bad as a lost connection: the rest of what the node says cannot be trusted either.
 */
#include "base/assert.h"
#include "rdma/tcp/session.h"

#define REQUEST_MAX (4 + 4 * WIRE_LIST_MAX) /* the longest of them is a list of chunks */

/* Requests whose answer says no more than that it was done. */
static smart_status
call_for_nothing(struct session *session, enum wire_type type, const uint8_t *payload, uint32_t length,
				 uint64_t deadline_ns)
{
	const uint8_t *answer;
	uint32_t result_length;
	smart_status status = session_call(session, type, payload, length, deadline_ns, &answer, &result_length);

	smart_assert(length <= REQUEST_MAX);
	if (status == SMART_OK && result_length != 0)
		return session_disbelieve(session);
	return status;
}

smart_status
session_lease(struct session *session, const struct wire_lease *lease, uint64_t deadline_ns)
{
	uint8_t payload[REQUEST_MAX];

	return call_for_nothing(session, WIRE_LEASE, payload, wire_put_lease(payload, lease), deadline_ns);
}

/* Requests of a number that are answered with chunks. */
static smart_status
call_for_chunks(struct session *session, enum wire_type type, uint32_t number, uint64_t deadline_ns, uint32_t *chunks,
				uint32_t *count)
{
	uint8_t payload[sizeof(uint32_t)];
	const uint8_t *answer;
	uint32_t length;
	smart_status status =
		session_call(session, type, payload, wire_put_u32(payload, number), deadline_ns, &answer, &length);

	smart_assert(type == WIRE_CHUNKS_TAKE || type == WIRE_CHUNKS_LIST);
	if (status != SMART_OK)
		return status;
	if (!wire_get_chunks(answer, length, chunks, count))
		return session_disbelieve(session);
	/* Chunk 0 holds what describes the region, and is never handed out. */
	for (uint32_t i = 0; i < *count; i++)
		if (chunks[i] == 0 || chunks[i] > FABRIC_OFFSET_MASK / WIRE_CHUNK_BYTES)
			return session_disbelieve(session);
	return SMART_OK;
}

smart_status
session_take_chunks(struct session *session, uint32_t wanted, uint64_t deadline_ns, uint32_t *chunks, uint32_t *count)
{
	uint32_t got;
	smart_status status;

	smart_assert(wanted >= 1 && wanted <= WIRE_LIST_MAX);
	status = call_for_chunks(session, WIRE_CHUNKS_TAKE, wanted, deadline_ns, chunks, &got);
	if (status == SMART_OK && (got == 0 || got > wanted))
		return session_disbelieve(session);
	if (status == SMART_OK)
		*count = got;
	return status;
}

smart_status
session_give_chunks(struct session *session, const uint32_t *chunks, uint32_t count, uint64_t deadline_ns)
{
	uint8_t payload[REQUEST_MAX];

	smart_assert(count >= 1 && count <= WIRE_LIST_MAX);
	return call_for_nothing(session, WIRE_CHUNKS_GIVE, payload, wire_put_chunks(payload, chunks, count), deadline_ns);
}

smart_status
session_list_chunks(struct session *session, uint32_t from, uint64_t deadline_ns, uint32_t *chunks, uint32_t *count)
{
	uint32_t got;
	smart_status status = call_for_chunks(session, WIRE_CHUNKS_LIST, from, deadline_ns, chunks, &got);

	if (status != SMART_OK)
		return status;
	/* A caller that reads on behind the last one must come to an end. */
	for (uint32_t i = 0; i < got; i++)
		if (chunks[i] < from || (i > 0 && chunks[i] <= chunks[i - 1]))
			return session_disbelieve(session);
	*count = got;
	return SMART_OK;
}

/* A root is a word that can be reached. */
static bool
is_tree(const struct wire_tree *tree)
{
	return tree->root >= WIRE_CHUNK_BYTES && tree->root <= FABRIC_OFFSET_MASK && tree->root % sizeof(uint64_t) == 0;
}

smart_status
session_make_tree(struct session *session, struct wire_tree *tree, uint64_t deadline_ns)
{
	uint8_t payload[REQUEST_MAX];
	const uint8_t *answer;
	uint32_t length;
	struct wire_tree made;
	smart_status status;

	smart_assert(tree->id != 0);
	length = wire_put_tree(payload, tree);
	status = session_call(session, WIRE_TREE_MAKE, payload, length, deadline_ns, &answer, &length);
	if (status != SMART_OK)
		return status;
	if (!wire_get_tree(answer, length, &made) || made.id != tree->id || !is_tree(&made))
		return session_disbelieve(session);
	*tree = made;
	return SMART_OK;
}

smart_status
session_drop_tree(struct session *session, uint64_t id, uint64_t deadline_ns)
{
	uint8_t payload[sizeof(uint64_t)];

	return call_for_nothing(session, WIRE_TREE_DROP, payload, wire_put_u64(payload, id), deadline_ns);
}

smart_status
session_list_trees(struct session *session, uint64_t *cursor, uint64_t deadline_ns, struct wire_tree *trees,
				   uint32_t *count)
{
	uint8_t payload[sizeof(uint64_t)];
	const uint8_t *answer;
	uint32_t length = wire_put_u64(payload, *cursor);
	uint64_t next;
	uint32_t got;
	smart_status status = session_call(session, WIRE_TREES_LIST, payload, length, deadline_ns, &answer, &length);

	if (status != SMART_OK)
		return status;
	if (!wire_get_trees(answer, length, &next, trees, &got) || (next != 0 && next <= *cursor))
		return session_disbelieve(session);
	for (uint32_t i = 0; i < got; i++)
		if (!is_tree(&trees[i]))
			return session_disbelieve(session);
	*cursor = next;
	*count = got;
	return SMART_OK;
}

smart_status
session_node_status(struct session *session, uint64_t deadline_ns, struct wire_node_status *status)
{
	const uint8_t *answer;
	uint32_t length;
	smart_status result = session_call(session, WIRE_STATUS, NULL, 0, deadline_ns, &answer, &length);

	if (result == SMART_OK && !wire_get_node_status(answer, length, status))
		return session_disbelieve(session);
	return result;
}
