/*
 * report.c
 *	  What the operator is told of a running node.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "client.h"
#include "report.h"

const char *const memnode_session_words[MEMNODE_SESSION_STATES] = {
	[MEMNODE_SESSION_GREETING] = "greeting",
	[MEMNODE_SESSION_CONTROL] = "control",
	[MEMNODE_SESSION_VERBS] = "verbs",
	[MEMNODE_SESSION_LEAVING] = "leaving",
};

const char *const memnode_refusal_words[MEMNODE_REFUSALS] = {
	[MEMNODE_REFUSED_CLOSED] = "closed",   [MEMNODE_REFUSED_KEY] = "key",   [MEMNODE_REFUSED_PROTOCOL] = "protocol",
	[MEMNODE_REFUSED_VERSION] = "version", [MEMNODE_REFUSED_BUSY] = "busy", [MEMNODE_REFUSED_STALE] = "stale",
	[MEMNODE_REFUSED_LATE] = "late",       [MEMNODE_REFUSED_ROOM] = "room", [MEMNODE_REFUSED_MEMORY] = "memory",
};

const char *const memnode_request_words[WIRE_TYPES] = {
	[WIRE_HELLO] = "hello",
	[WIRE_LEASE] = "lease",
	[WIRE_CHUNKS_TAKE] = "chunks_take",
	[WIRE_CHUNKS_GIVE] = "chunks_give",
	[WIRE_CHUNKS_LIST] = "chunks_list",
	[WIRE_TREE_MAKE] = "tree_make",
	[WIRE_TREE_DROP] = "tree_drop",
	[WIRE_TREES_LIST] = "trees_list",
	[WIRE_STATUS] = "status",
	[WIRE_VERBS] = "verbs",
	[WIRE_CONNECT] = "connect",
	[WIRE_DESCEND] = "descend",
};

const char *const memnode_answer_words[WIRE_STATUS_COUNT] = {
	[WIRE_BAD] = "bad",         [WIRE_UNSUPPORTED] = "unsupported",
	[WIRE_HELD] = "held",       [WIRE_FENCED] = "fenced",
	[WIRE_STALE] = "stale",     [WIRE_FULL] = "full",
	[WIRE_OUTSIDE] = "outside", [WIRE_BUSY] = "busy",
	[WIRE_FOREIGN] = "foreign",
};

const char *const memnode_verb_words[FABRIC_VERBS] =
	{[FABRIC_READ] = "read", [FABRIC_WRITE] = "write", [FABRIC_CAS] = "cas", [FABRIC_FAA] = "faa"};

void
memnode_report_sessions(const struct memnode_report *report, uint64_t sessions[MEMNODE_SESSION_STATES])
{
	for (unsigned int state = 0; state < MEMNODE_SESSION_STATES; state++)
		sessions[state] = 0;
	for (const struct memnode_client *client = report->node->clients; client != NULL; client = client->next)
	{
		smart_assert(!client->ended);
		sessions[client->leaving       ? MEMNODE_SESSION_LEAVING
				 : !client->greeted    ? MEMNODE_SESSION_GREETING
				 : client->hello.verbs ? MEMNODE_SESSION_VERBS
									   : MEMNODE_SESSION_CONTROL]++;
	}
}

static bool
is_accepted(const struct memnode_report *report, uint64_t key)
{
	smart_assert(report->key_count <= STREAM_KEYS_MAX);
	for (unsigned int i = 0; i < report->key_count; i++)
	{
		if (report->keys[i] == key)
			return true;
	}
	return false;
}

unsigned int
memnode_report_sessions_of_key(const struct memnode_report *report, uint64_t key)
{
	unsigned int sessions = 0;

	for (const struct memnode_client *client = report->node->clients; client != NULL; client = client->next)
	{
		if (client->greeted && client->key != 0)
			sessions += key != 0 ? client->key == key : !is_accepted(report, client->key);
	}
	return sessions;
}

unsigned int
memnode_report_sessions_of_version(const struct memnode_report *report, uint32_t version)
{
	unsigned int sessions = 0;

	for (const struct memnode_client *client = report->node->clients; client != NULL; client = client->next)
		sessions += client->greeted && client->version == version;
	return sessions;
}

uint64_t
memnode_report_size(const struct memnode_report *report)
{
	return (uint64_t) memnode_chunks_capacity(&report->node->chunks) * WIRE_CHUNK_BYTES;
}

uint64_t
memnode_report_used(const struct memnode_report *report)
{
	return (uint64_t) memnode_chunks_allocated(&report->node->chunks) * WIRE_CHUNK_BYTES;
}

uint32_t
memnode_report_owner(const struct memnode_report *report, uint32_t from)
{
	smart_assert(from <= MEMNODE_OWNERS);
	while (from < MEMNODE_OWNERS && report->node->region.owners[from].state != MEMNODE_OWNER_KNOWN)
		from++;
	return from;
}

uint64_t
memnode_report_owner_used(const struct memnode_report *report, uint32_t owner)
{
	const struct memnode_chunks *chunks = &report->node->chunks;

	smart_assert(owner < MEMNODE_OWNERS);
	return ((uint64_t) chunks->own[owner] + chunks->roots[owner]) * WIRE_CHUNK_BYTES;
}

uint64_t
memnode_report_owner_system(const struct memnode_report *report, uint32_t owner)
{
	const struct memnode_owner_record *record = &report->node->region.owners[owner];

	smart_assert(owner < MEMNODE_OWNERS);
	return record->system != 0 ? record->system : record->id;
}

uint64_t
memnode_report_lease_ns(const struct memnode_report *report, uint32_t owner)
{
	uint64_t since_ns = report->node->lease_ns[owner];

	smart_assert(owner < MEMNODE_OWNERS);
	return since_ns != 0 ? since_ns : report->node->started_ns;
}

void
memnode_report_put_time(char text[MEMNODE_WHEN_BYTES], time_t when)
{
	struct tm local;

	localtime_r(&when, &local);
	strftime(text, MEMNODE_WHEN_BYTES, "%Y-%m-%d %H:%M:%S", &local);
}

void
memnode_report_put_stretch(char text[MEMNODE_WHEN_BYTES], uint64_t seconds)
{
	uint64_t days = seconds / 86400;
	int length = days > 0 ? snprintf(text, MEMNODE_WHEN_BYTES, "%" PRIu64 " day%s ", days, days == 1 ? "" : "s") : 0;

	smart_assert(length >= 0 && length < MEMNODE_WHEN_BYTES);
	snprintf(text + length, MEMNODE_WHEN_BYTES - (size_t) length, "%02u:%02u:%02u",
			 (unsigned int) (seconds / 3600 % 24), (unsigned int) (seconds / 60 % 60), (unsigned int) (seconds % 60));
}
