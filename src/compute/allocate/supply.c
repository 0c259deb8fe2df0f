/*
 * supply.c
 *	  Chunks and roots of trees from memory nodes: requests on the sessions of a remote fabric.
 */
#include <stdio.h>
#include <string.h>

#include "compute/allocate/space.h"
#include "compute/allocate/supply.h"
#include "rdma/tcp/session.h"

_Static_assert(sizeof(struct smart_tree_owner) <= WIRE_OWNER_BYTES, "a tree's owner is its description");

/* After most failures the session is of no use any more; why it failed is left in the fabric. */
static smart_status
settle(struct smart_supply *supply, unsigned int node, struct session *session, smart_status status)
{
	struct fabric *fabric = supply->fabric;

	if (status == SMART_OK)
		return status;
	snprintf(fabric->problem, sizeof(fabric->problem), "%s", session_problem(session));
	if (status != SMART_NO_SPACE && status != SMART_CORRUPT)
		fabric_remote_drop(fabric, node);
	return status;
}

static bool
remote_reachable(struct smart_supply *supply, unsigned int node)
{
	return fabric_remote_is_up(supply->fabric, node);
}

static smart_status
remote_take_chunk(struct smart_supply *supply, unsigned int node, uint32_t *chunk)
{
	struct session *session;
	uint32_t count;
	smart_status status = fabric_remote_session(supply->fabric, node, &session);

	if (status != SMART_OK)
		return status;
	status = settle(supply, node, session,
					session_take_chunks(session, 1, smart_deadline_ns(supply->env, supply->timeout_ms), chunk, &count));
	smart_assert(status != SMART_OK || count == 1);
	return status;
}

static smart_status
remote_make_tree(struct smart_supply *supply, unsigned int node, uint64_t id, const struct smart_tree_owner *owner,
				 fabric_address *root)
{
	struct wire_tree tree = {.id = id};
	struct session *session;
	smart_status status = fabric_remote_session(supply->fabric, node, &session);

	if (status != SMART_OK)
		return status;
	memcpy(tree.description, owner, sizeof(*owner));
	status = settle(supply, node, session,
					session_make_tree(session, &tree, smart_deadline_ns(supply->env, supply->timeout_ms)));
	if (status != SMART_OK)
		return status;
	if (tree.root > FABRIC_OFFSET_MASK)
		return SMART_CORRUPT;
	*root = fabric_make_address(node, tree.root);
	return SMART_OK;
}

void
smart_remote_supply_init(struct smart_supply *supply, struct smart_env *env, struct fabric *fabric, uint32_t timeout_ms)
{
	*supply = (struct smart_supply){
		.env = env,
		.fabric = fabric,
		.timeout_ms = timeout_ms,
		.reachable = remote_reachable,
		.take_chunk = remote_take_chunk,
		.make_tree = remote_make_tree,
	};
}
