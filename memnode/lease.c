/*
 * lease.c
 *	  Leases and generations (wire.h tells the rules).
 *
 * Owner, extent map and the incarnation that has the lease outlive this process, so
 * that its clients can go on as soon as they have connected again, and that no process
 * takes what the owner has here for older or newer than it is; generations
 * do not: what the connections of the process before had sent is lost with them.
 *
 * A host that has gone says nothing, and its connections would keep the lease until
 * TCP gives them up.  So those that keep it from another incarnation are contested: the
 * loop finds out whether their host is still there, and ends them if it is not.
 *
 * A client that ends is not served any more from that moment, whatever it has
 * sent, and its queue pair is destroyed; so to end the clients before the answer
 * is all that fencing takes.
 */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "lease.h"
#include "log.h"

bool
memnode_lease_held(const struct memnode_client *client)
{
	const struct memnode_owner_record *record;

	if (!client->greeted || client->owner == MEMNODE_OWNER_UNKNOWN)
		return false;
	record = memnode_owner_get(client->node, client->owner);
	return record->state == MEMNODE_OWNER_KNOWN && record->incarnation == client->hello.incarnation;
}

/* ---- generations ---- */

/* Is this another connection for verbs of the client's incarnation? */
static bool
is_sibling(const struct memnode_client *client, const struct memnode_client *other)
{
	return other != client && other->greeted && other->hello.verbs && other->hello.owner == client->hello.owner &&
		   other->hello.incarnation == client->hello.incarnation;
}

/*
 * Ends the other connections for verbs of the client's incarnation whose generation is lower than this
 * (UINT64_MAX: any), or of these only its own.  Returns how many there were.
 */
static unsigned int
end_siblings(const struct memnode_client *client, uint64_t lower_than, bool own, const char *reason)
{
	struct memnode_client *next;
	unsigned int ended = 0;

	smart_assert(client->greeted);
	for (struct memnode_client *other = client->node->clients; other != NULL; other = next)
	{
		next = other->next;
		if (!is_sibling(client, other) || other->hello.generation >= lower_than ||
			(own && other->hello.client != client->hello.client))
			continue;
		memnode_client_end(other, reason);
		ended++;
	}
	smart_assert(!client->ended);
	return ended;
}

static void
begin_generation(const struct memnode_client *client, uint32_t generation)
{
	unsigned int ended;

	smart_assert(memnode_lease_held(client));
	client->node->generation[client->owner] = generation;
	ended = end_siblings(client, generation, false, "its generation is over");
	if (ended > 0)
		memnode_log(SMART_LOG_INFO, "owner %016llx: generation %u begins, %u connections of older ones are closed",
					(unsigned long long) client->hello.owner, generation, ended);
}

enum wire_status
memnode_lease_hello(struct memnode_client *client, const struct wire_hello *hello)
{
	struct memnode *node = client->node;

	smart_assert(client->owner == MEMNODE_OWNER_UNKNOWN && !client->leaving);
	smart_assert(!client->greeted);
	client->hello = *hello;
	client->owner = memnode_owner_find(node, hello->owner);
	client->greeted = true;
	if (!hello->verbs)
		return WIRE_OK;
	/* Before its lease an incarnation has sent no verb that could be late: memnode_lease_take looks at generations then. */
	if (memnode_lease_held(client))
	{
		if (hello->generation < node->generation[client->owner])
		{
			client->greeted = false;
			return WIRE_STALE;
		}
		if (hello->generation > node->generation[client->owner])
			begin_generation(client, hello->generation);
	}
	/* A client connects anew when its last connection failed, which the node may not have noticed. */
	end_siblings(client, UINT64_MAX, true, "the client has connected again");
	return WIRE_OK;
}

/* ---- leases ---- */

/* Does the connection keep the lease from the client, which is of another incarnation? */
static bool
holds_against(const struct memnode_client *other, const struct memnode_client *client)
{
	return !other->leaving && other->owner == client->owner && memnode_lease_held(other) &&
		   other->hello.incarnation != client->hello.incarnation;
}

/* A connection of another incarnation that has the lease, or NULL. */
static const struct memnode_client *
find_holder(const struct memnode_client *client)
{
	const struct memnode_client *other = client->node->clients;

	while (other != NULL && !holds_against(other, client))
		other = other->next;
	return other;
}

static void
contest_holders(const struct memnode_client *client)
{
	for (struct memnode_client *other = client->node->clients; other != NULL; other = other->next)
	{
		if (holds_against(other, client))
			other->contested = client->node->contested = true;
	}
	smart_assert(client->node->contested);
}

/* The new incarnation's connections may have come before its lease: the highest of their generations counts. */
static void
begin_generations(struct memnode_client *client)
{
	uint32_t generation = client->hello.verbs ? client->hello.generation : 0;

	for (const struct memnode_client *other = client->node->clients; other != NULL; other = other->next)
	{
		if (is_sibling(client, other) && other->hello.generation > generation)
			generation = other->hello.generation;
	}
	begin_generation(client, generation);
	smart_assert(!client->hello.verbs || client->node->generation[client->owner] >= client->hello.generation);
}

/*
 * Is what is here what the client's extent map knows of?  Not if another incarnation has had the lease since, nor if
 * another extent map has, or the record is not there any more: then the chunks that the client relies on were freed.
 */
static bool
knows_past(const struct memnode_client *client, const struct wire_lease *lease)
{
	const struct memnode_owner_record *record;

	if (client->owner == MEMNODE_OWNER_UNKNOWN)
		return false;
	record = memnode_owner_get(client->node, client->owner);
	return record->state == MEMNODE_OWNER_KNOWN && record->extents == lease->extents &&
		   (record->incarnation == client->hello.incarnation || record->incarnation == lease->heir_of);
}

enum wire_status
memnode_lease_take(struct memnode_client *client, const struct wire_lease *lease)
{
	struct memnode *node = client->node;
	const struct memnode_client *holder;
	struct memnode_owner_record *record;
	bool past;
	bool mine;

	smart_assert(client->greeted && !client->ended && lease->extents != 0);
	if ((lease->transport & node->transports) == 0)
		return WIRE_UNSUPPORTED;
	holder = find_holder(client);
	if (holder != NULL)
	{
		contest_holders(client);
		memnode_log(SMART_LOG_WARNING, "%s: no lease for owner %016llx, another incarnation has it (%s, pid %u)",
					client->name, (unsigned long long) client->hello.owner, holder->name, holder->hello.pid);
		return WIRE_HELD;
	}
	past = knows_past(client, lease);
	if (!past && lease->heir_of != 0)
	{
		memnode_log(SMART_LOG_WARNING, "%s: no lease for owner %016llx, this is not the past that its extent map knows",
					client->name, (unsigned long long) client->hello.owner);
		return WIRE_FOREIGN;
	}
	if (client->owner == MEMNODE_OWNER_UNKNOWN && memnode_owner_add(node, client) == MEMNODE_OWNER_UNKNOWN)
	{
		memnode_log(SMART_LOG_WARNING, "%s: no lease for owner %016llx, as many owners as a node can have",
					client->name, (unsigned long long) client->hello.owner);
		return WIRE_FULL;
	}
	/* No connection of the incarnation before is left, nor its queue pairs: they end with their connections. */
	record = memnode_owner_get(node, client->owner);
	mine = memnode_lease_held(client);
	if (mine && (record->extents != lease->extents || record->transport != lease->transport))
	{
		/* The client's own connection stays, without its queue pair. */
		memnode_client_disconnect(client);
		end_siblings(client, UINT64_MAX, false, "extent map or transport of its owner have changed");
	}
	if (record->state == MEMNODE_OWNER_KNOWN && !past)
	{
		/* Its extent map does not know what is here of the owner. */
		if (node->chunks.own[client->owner] > 0 || node->trees.own[client->owner] > 0)
			memnode_log(SMART_LOG_WARNING, "owner %016llx begins anew: its %u chunks and %u trees are freed",
						(unsigned long long) record->id, node->chunks.own[client->owner],
						node->trees.own[client->owner]);
		memnode_owner_empty(node, client->owner);
	}
	record->extents = lease->extents;
	record->incarnation = client->hello.incarnation;
	record->transport = lease->transport;
	memnode_owner_set_state(record, MEMNODE_OWNER_KNOWN);
	memnode_owner_see(client);
	smart_assert(memnode_lease_held(client) && find_holder(client) == NULL);
	if (!mine)
	{
		node->lease_ns[client->owner] = smart_clock_ns();
		begin_generations(client);
		memnode_log(SMART_LOG_INFO, "%s: owner %016llx has the lease now (pid %u, %s, %u chunks, %u trees)",
					client->name, (unsigned long long) record->id, client->hello.pid,
					lease->transport == WIRE_TCP ? "tcp" : "verbs", node->chunks.own[client->owner],
					node->trees.own[client->owner]);
	}
	return WIRE_OK;
}

void
memnode_lease_see(struct memnode *node)
{
	for (const struct memnode_client *client = node->clients; client != NULL; client = client->next)
	{
		if (!client->leaving && memnode_lease_held(client))
			memnode_owner_see(client);
	}
}
