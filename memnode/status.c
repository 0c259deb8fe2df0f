/*
 * status.c
 *	  What a person is told of a running node.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "owners.h"
#include "status.h"

#define HOSTS_MAX  32
#define OWNERS_MAX 64
#define NS         UINT64_C(1000000000)

/* Sessions of one host. */
struct host
{
	char name[MEMNODE_NAME_MAX];
	unsigned int sessions;
};

static unsigned long long
in_mb(uint64_t bytes)
{
	return bytes >> 20;
}

static void
write_process(const struct memnode_report *report, struct memnode_text *text)
{
	char since[MEMNODE_WHEN_BYTES];
	char stretch[MEMNODE_WHEN_BYTES];

	memnode_report_put_time(since, report->started);
	memnode_report_put_stretch(stretch, (smart_clock_ns() - report->node->started_ns) / NS);
	memnode_text_add(text, "smart-memnode %s on %s\n", report->version, report->place);
	memnode_text_add(text, "up        %s, since %s\n", stretch, since);
	memnode_text_add(text, "metrics   %s\n", report->metrics[0] != '\0' ? report->metrics : "none");
}

static void
write_keys(const struct memnode_report *report, struct memnode_text *text)
{
	unsigned int old = memnode_report_sessions_of_key(report, 0);
	char when[MEMNODE_WHEN_BYTES];

	smart_assert(report->key_count <= STREAM_KEYS_MAX);
	if (report->key_count == 0)
	{
		memnode_text_add(text, "key       none: loopback addresses only\n");
		return;
	}
	memnode_report_put_time(when, report->keys_read);
	for (unsigned int i = 0; i < report->key_count; i++)
		memnode_text_add(text, "key       %016" PRIx64 ", %u sessions, of %s, read %s\n", report->keys[i],
						 memnode_report_sessions_of_key(report, report->keys[i]), report->options->secret_file, when);
	if (old > 0)
		memnode_text_add(text, "          %u sessions of keys that are not accepted any more\n", old);
}

static void
write_memory(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode *node = report->node;
	uint64_t size = memnode_report_size(report);
	uint64_t used = memnode_report_used(report);
	char when[MEMNODE_WHEN_BYTES];

	smart_assert(used <= size && size > 0);
	memnode_text_add(text, "memory    %s%s, incarnation %016" PRIx64 "\n", report->memory,
					 report->removed ? " (which somebody has removed)" : "", node->region.header->incarnation);
	memnode_text_add(text, "size      %llu MB, %llu MB used (%u %%), %llu MB free\n", in_mb(size), in_mb(used),
					 (unsigned int) (used * 100 / size), in_mb(size - used));
	memnode_text_add(text, "snapshot  %s",
					 report->options->snapshot[0] != '\0' ? report->options->snapshot : "none at the next stop");
	if (node->snapshot_time != 0)
	{
		memnode_report_put_time(when, node->snapshot_time);
		memnode_text_add(text, "; began with one of %s, loaded in %.1f s", when,
						 (double) node->snapshot_load_ns / (double) NS);
	}
	memnode_text_add(text, "\n");
}

/* ---- sessions ---- */

/* Counts a client under its host; false: there is no room for another host. */
static bool
count_host(const struct memnode_client *client, struct host *hosts, unsigned int *count)
{
	const char *port = strrchr(client->name, ':');
	size_t length = port != NULL ? (size_t) (port - client->name) : strlen(client->name);
	unsigned int at = 0;

	smart_assert(length < MEMNODE_NAME_MAX && *count <= HOSTS_MAX);
	while (at < *count && (strncmp(hosts[at].name, client->name, length) != 0 || hosts[at].name[length] != '\0'))
		at++;
	if (at == HOSTS_MAX)
		return false;
	if (at == *count)
	{
		hosts[at] = (struct host){.sessions = 0};
		memcpy(hosts[at].name, client->name, length);
		(*count)++;
	}
	hosts[at].sessions++;
	return true;
}

static void
write_sessions(const struct memnode_report *report, struct memnode_text *text)
{
	uint64_t sessions[MEMNODE_SESSION_STATES];
	struct host hosts[HOSTS_MAX];
	unsigned int count = 0;
	unsigned int others = 0;
	unsigned int before;

	memnode_report_sessions(report, sessions);
	memnode_text_add(text, "sessions  %" PRIu64 " for verbs, %" PRIu64 " for control, at most %u",
					 sessions[MEMNODE_SESSION_VERBS], sessions[MEMNODE_SESSION_CONTROL], report->node->client_max);
	memnode_text_add(text, "; %" PRIu64 " before HELLO, %" PRIu64 " leaving\n", sessions[MEMNODE_SESSION_GREETING],
					 sessions[MEMNODE_SESSION_LEAVING]);
	for (const struct memnode_client *client = report->node->clients; client != NULL; client = client->next)
		others += !count_host(client, hosts, &count);
	smart_assert(count <= HOSTS_MAX);
	for (unsigned int i = 0; i < count; i++)
		memnode_text_add(text, "          %u from %s\n", hosts[i].sessions, hosts[i].name);
	if (others > 0)
		memnode_text_add(text, "          %u from other hosts\n", others);
	before = memnode_report_sessions_of_version(report, WIRE_VERSION_BEFORE);
	if (before > 0)
		memnode_text_add(text, "          %u of them speak the version of the protocol before\n", before);
}

static void
write_refused(const struct memnode_report *report, struct memnode_text *text)
{
	uint64_t all = 0;

	for (unsigned int refusal = 0; refusal < MEMNODE_REFUSALS; refusal++)
		all += report->node->counters.refused[refusal];
	memnode_text_add(text, "refused   %" PRIu64 " connections", all);
	for (unsigned int refusal = 0; refusal < MEMNODE_REFUSALS; refusal++)
	{
		uint64_t count = report->node->counters.refused[refusal];

		if (count > 0)
			memnode_text_add(text, ", %s %" PRIu64, memnode_refusal_words[refusal], count);
	}
	memnode_text_add(text, "\n");
}

/* ---- owners ---- */

/* Who uses the node, or when it did so last. */
static void
write_owner(const struct memnode_report *report, uint32_t owner, struct memnode_text *text)
{
	const struct memnode *node = report->node;
	const struct memnode_owner_record *record = memnode_owner_get(node, owner);
	unsigned int sessions = memnode_owner_sessions(node, owner);
	char address[MEMNODE_OWNER_ADDRESS_MAX];
	char when[MEMNODE_WHEN_BYTES];

	smart_assert(record->state == MEMNODE_OWNER_KNOWN);
	memnode_owner_address(record, address);
	memnode_text_add(text, "owner     %016" PRIx64 ": cluster %" PRIu64 ", %u trees, %llu MB", record->id,
					 memnode_report_owner_system(report, owner), node->trees.own[owner],
					 in_mb(memnode_report_owner_used(report, owner)));
	if (sessions > 0)
	{
		memnode_report_put_stretch(when, (smart_clock_ns() - memnode_report_lease_ns(report, owner)) / NS);
		memnode_text_add(text, ", %u sessions, over %s, lease %s%s", sessions,
						 record->transport == WIRE_RDMA ? "RDMA" : "TCP",
						 node->lease_ns[owner] != 0 ? "" : "more than ", when);
	}
	else if (record->seen != 0)
	{
		memnode_report_put_time(when, (time_t) record->seen);
		memnode_text_add(text, ", not connected since %s", when);
	}
	else
		memnode_text_add(text, ", not connected");
	memnode_text_add(text, "%s%s\n", address[0] != '\0' ? ", from " : "", address);
}

static void
write_owners(const struct memnode_report *report, struct memnode_text *text)
{
	unsigned int count = 0;

	memnode_text_add(text, "trees     %u\n", report->node->trees.count);
	for (uint32_t owner = memnode_report_owner(report, 0); owner < MEMNODE_OWNERS;
		 owner = memnode_report_owner(report, owner + 1))
	{
		if (count++ < OWNERS_MAX)
			write_owner(report, owner, text);
	}
	if (count > OWNERS_MAX)
		memnode_text_add(text, "          and %u owners more\n", count - OWNERS_MAX);
}

void
memnode_status_write(const struct memnode_report *report, struct memnode_text *text)
{
	write_process(report, text);
	write_keys(report, text);
	write_memory(report, text);
	write_sessions(report, text);
	write_refused(report, text);
	write_owners(report, text);
}
