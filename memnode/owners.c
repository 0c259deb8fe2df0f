/*
 * owners.c
 *	  Owners: the servers of which something is kept here.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "log.h"
#include "owners.h"

#define NS          UINT64_C(1000000000)
#define IPV4_PREFIX "::ffff:" /* what an IPv4 address begins with as IPv6 has it */

struct memnode_owner_record *
memnode_owner_get(const struct memnode *node, uint32_t owner)
{
	smart_assert(owner < MEMNODE_OWNERS);
	return &node->region.owners[owner];
}

void
memnode_owner_set_state(struct memnode_owner_record *record, enum memnode_owner_state state)
{
	smart_assert(state <= MEMNODE_OWNER_EMPTYING);
	/* Release: for the process that adopts the region after this one. */
	__atomic_store_n(&record->state, (uint32_t) state, __ATOMIC_RELEASE);
}

uint32_t
memnode_owner_find(const struct memnode *node, uint64_t id)
{
	for (uint32_t owner = 0; owner < MEMNODE_OWNERS; owner++)
	{
		if (memnode_owner_get(node, owner)->state != MEMNODE_OWNER_NONE && memnode_owner_get(node, owner)->id == id)
			return owner;
	}
	return MEMNODE_OWNER_UNKNOWN;
}

unsigned int
memnode_owner_sessions(const struct memnode *node, uint32_t owner)
{
	unsigned int sessions = 0;

	smart_assert(owner < MEMNODE_OWNERS);
	for (const struct memnode_client *client = node->clients; client != NULL; client = client->next)
		sessions += client->greeted && client->owner == owner;
	return sessions;
}

static bool
has_anything(const struct memnode *node, uint32_t owner)
{
	smart_assert(owner < MEMNODE_OWNERS);
	return node->chunks.own[owner] > 0 || node->trees.own[owner] > 0;
}

/* ---- coming ---- */

/* A record that is unused, or not needed any more. */
static uint32_t
find_spare(const struct memnode *node)
{
	uint32_t owner = 0;

	while (owner < MEMNODE_OWNERS && memnode_owner_get(node, owner)->state != MEMNODE_OWNER_NONE)
		owner++;
	if (owner < MEMNODE_OWNERS)
		return owner;
	owner = 0;
	while (owner < MEMNODE_OWNERS && (has_anything(node, owner) || memnode_owner_sessions(node, owner) > 0))
		owner++;
	return owner < MEMNODE_OWNERS ? owner : MEMNODE_OWNER_UNKNOWN;
}

uint32_t
memnode_owner_add(struct memnode *node, const struct memnode_client *client)
{
	uint32_t owner = find_spare(node);
	struct memnode_owner_record *record;

	smart_assert(client->greeted && client->owner == MEMNODE_OWNER_UNKNOWN);
	if (owner == MEMNODE_OWNER_UNKNOWN && memnode_owners_make_room(node))
		owner = find_spare(node);
	if (owner == MEMNODE_OWNER_UNKNOWN)
		return owner;
	record = memnode_owner_get(node, owner);
	smart_assert(memnode_owner_find(node, client->hello.owner) == MEMNODE_OWNER_UNKNOWN);
	smart_assert(!has_anything(node, owner) && memnode_owner_sessions(node, owner) == 0);
	memnode_owner_set_state(record, MEMNODE_OWNER_NONE);
	memset(record, 0, sizeof(*record));
	record->id = client->hello.owner;
	record->system = client->hello.system;
	node->generation[owner] = 0;
	node->lease_ns[owner] = 0;
	for (struct memnode_client *other = node->clients; other != NULL; other = other->next)
	{
		if (other->greeted && other->hello.owner == record->id)
			other->owner = owner;
	}
	smart_assert(client->owner == owner);
	return owner;
}

/* The address within a client's name, as IPv6 has it; zero where there is none. */
static void
read_address(const char *name, uint8_t address[16])
{
	bool v6 = name[0] == '[';
	size_t length = strcspn(name + v6, v6 ? "%]" : ":");
	char text[MEMNODE_NAME_MAX + sizeof(IPV4_PREFIX)];

	snprintf(text, sizeof(text), "%s%.*s", v6 ? "" : IPV4_PREFIX, (int) length, name + v6);
	if (inet_pton(AF_INET6, text, address) != 1)
		memset(address, 0, 16);
}

void
memnode_owner_see(const struct memnode_client *client)
{
	struct memnode_owner_record *record = memnode_owner_get(client->node, client->owner);

	smart_assert(record->state == MEMNODE_OWNER_KNOWN && record->incarnation == client->hello.incarnation);
	record->seen = (uint64_t) time(NULL);
	record->system = client->hello.system;
	read_address(client->name, record->address);
}

void
memnode_owner_address(const struct memnode_owner_record *record, char text[MEMNODE_OWNER_ADDRESS_MAX])
{
	static const uint8_t unknown[sizeof(record->address)];
	size_t prefix = strlen(IPV4_PREFIX);

	text[0] = '\0';
	if (memcmp(record->address, unknown, sizeof(unknown)) == 0 ||
		inet_ntop(AF_INET6, record->address, text, MEMNODE_OWNER_ADDRESS_MAX) == NULL)
		return;
	if (strncmp(text, IPV4_PREFIX, prefix) == 0 && strchr(text, '.') != NULL)
		memmove(text, text + prefix, strlen(text + prefix) + 1);
}

/* ---- going ---- */

void
memnode_owner_empty(struct memnode *node, uint32_t owner)
{
	memnode_owner_set_state(memnode_owner_get(node, owner), MEMNODE_OWNER_EMPTYING);
	memnode_trees_drop_all(&node->trees, owner);
	memnode_chunks_give_all(&node->chunks, owner);
	smart_assert(node->chunks.own[owner] == 0 && node->trees.own[owner] == 0);
}

static void
remove_owner(struct memnode *node, uint32_t owner)
{
	memnode_owner_empty(node, owner);
	memnode_owner_set_state(memnode_owner_get(node, owner), MEMNODE_OWNER_NONE);
	smart_assert(memnode_owner_find(node, memnode_owner_get(node, owner)->id) != owner);
}

void
memnode_owners_recover(struct memnode *node)
{
	for (uint32_t owner = 0; owner < MEMNODE_OWNERS; owner++)
	{
		if (memnode_owner_get(node, owner)->state == MEMNODE_OWNER_EMPTYING)
			remove_owner(node, owner);
	}
}

/* A process that did not run cannot know who would have connected, and the machine's clock may be set. */
static uint64_t
unseen_s(const struct memnode *node, uint32_t owner)
{
	uint64_t seen = memnode_owner_get(node, owner)->seen;
	uint64_t now = (uint64_t) time(NULL);
	uint64_t up = (smart_clock_ns() - node->started_ns) / NS;
	uint64_t away = now > seen ? now - seen : 0;

	return away < up ? away : up;
}

uint64_t
memnode_owner_away_s(const struct memnode *node, uint32_t owner)
{
	return memnode_owner_sessions(node, owner) > 0 ? 0 : unseen_s(node, owner);
}

bool
memnode_owner_forget(struct memnode *node, uint32_t owner)
{
	const struct memnode_owner_record *record = memnode_owner_get(node, owner);

	smart_assert(record->state == MEMNODE_OWNER_KNOWN);
	if (memnode_owner_sessions(node, owner) > 0)
		return false;
	memnode_log(SMART_LOG_WARNING,
				"owner %016llx (system %llu) is forgotten after %llu s away: its %u chunks and %u trees are freed",
				(unsigned long long) record->id, (unsigned long long) record->system,
				(unsigned long long) memnode_owner_away_s(node, owner), node->chunks.own[owner],
				node->trees.own[owner]);
	remove_owner(node, owner);
	return true;
}

bool
memnode_owners_make_room(struct memnode *node)
{
	uint32_t longest = MEMNODE_OWNER_UNKNOWN;
	uint64_t longest_s = 0;

	for (uint32_t owner = 0; owner < MEMNODE_OWNERS && node->forget_after_s > 0; owner++)
	{
		uint64_t away_s = has_anything(node, owner) ? unseen_s(node, owner) : 0;

		if (away_s < node->forget_after_s || away_s < longest_s || memnode_owner_sessions(node, owner) > 0)
			continue;
		longest = owner;
		longest_s = away_s;
	}
	return longest != MEMNODE_OWNER_UNKNOWN && memnode_owner_forget(node, longest);
}
