/*
 * requests.c
 *	  The requests of a compute node that are not verbs: what session.h declares of
 *	  lease, chunks, trees and status.
 *
 * An answer that has not the shape that its request asks for, or numbers that cannot be,
 * is as bad as a lost connection: who trusts the rest of what it says?
 */
#include "base/assert.h"
#include "rdma/session.h"

#define REQUEST_MAX (4 + 4 * WIRE_LIST_MAX) /* the longest of them is a list of chunks */

struct answer
{
	const uint8_t *bytes;
	uint32_t length;
};

static smart_status
call(struct session *session, enum wire_type type, const uint8_t *payload, uint32_t length, uint64_t deadline_ns,
	 struct answer *answer)
{
	return session_call(session, type, payload, length, deadline_ns, &answer->bytes, &answer->length);
}

/* Requests whose answer says no more than that it was done. */
static smart_status
call_for_nothing(struct session *session, enum wire_type type, const uint8_t *payload, uint32_t length,
				 uint64_t deadline_ns)
{
	struct answer answer;
	smart_status status = call(session, type, payload, length, deadline_ns, &answer);

	if (status == SMART_OK && answer.length != 0)
		return session_disbelieve(session);
	return status;
}

smart_status
session_lease(struct session *session, const struct wire_lease *lease, uint64_t deadline_ns)
{
	uint8_t payload[REQUEST_MAX];

	return call_for_nothing(session, WIRE_LEASE, payload, wire_put_lease(payload, lease), deadline_ns);
}

/* Chunk 0 holds what describes the region, and is nobody's. */
static bool
are_chunks(const uint32_t *chunks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (chunks[i] == 0 || chunks[i] > FABRIC_OFFSET_MASK / WIRE_CHUNK_BYTES)
			return false;
	return true;
}

smart_status
session_take_chunks(struct session *session, uint32_t wanted, uint64_t deadline_ns, uint32_t *chunks, uint32_t *count)
{
	uint8_t payload[sizeof(uint32_t)];
	struct answer answer;
	uint32_t got;
	smart_status status;

	smart_assert(wanted >= 1 && wanted <= WIRE_LIST_MAX);
	status = call(session, WIRE_CHUNKS_TAKE, payload, wire_put_u32(payload, wanted), deadline_ns, &answer);
	if (status != SMART_OK)
		return status;
	if (!wire_get_chunks(answer.bytes, answer.length, chunks, &got) || got == 0 || got > wanted ||
		!are_chunks(chunks, got))
		return session_disbelieve(session);
	*count = got;
	return SMART_OK;
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
	uint8_t payload[sizeof(uint32_t)];
	struct answer answer;
	uint32_t got;
	smart_status status = call(session, WIRE_CHUNKS_LIST, payload, wire_put_u32(payload, from), deadline_ns, &answer);

	if (status != SMART_OK)
		return status;
	if (!wire_get_chunks(answer.bytes, answer.length, chunks, &got) || !are_chunks(chunks, got))
		return session_disbelieve(session);
	/* Who reads on behind the last one must come to an end. */
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
	struct wire_tree made;
	struct answer answer;
	smart_status status;

	smart_assert(tree->id != 0);
	status = call(session, WIRE_TREE_MAKE, payload, wire_put_tree(payload, tree), deadline_ns, &answer);
	if (status != SMART_OK)
		return status;
	if (!wire_get_tree(answer.bytes, answer.length, &made) || made.id != tree->id || !is_tree(&made))
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
	struct answer answer;
	uint64_t next;
	uint32_t got;
	smart_status status = call(session, WIRE_TREES_LIST, payload, wire_put_u64(payload, *cursor), deadline_ns, &answer);

	if (status != SMART_OK)
		return status;
	if (!wire_get_trees(answer.bytes, answer.length, &next, trees, &got) || (next != 0 && next <= *cursor))
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
	struct answer answer;
	smart_status result = call(session, WIRE_STATUS, NULL, 0, deadline_ns, &answer);

	if (result == SMART_OK && !wire_get_node_status(answer.bytes, answer.length, status))
		return session_disbelieve(session);
	return result;
}
