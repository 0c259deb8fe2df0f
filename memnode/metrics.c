/*
 * metrics.c
 *	  What a monitoring system is told, as OpenMetrics text.
 *
 * The names are an interface: dashboards and alert rules know them.  Label values are words of this program and numbers,
 * so that none needs to be escaped.
 */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "metrics.h"
#include "owners.h"

#define PREFIX "smart_memnode_"
#define SECOND 1e9

/* A family of one kind; its name ends with its unit, if it has one. */
static void
begin(struct memnode_text *text, const char *name, const char *type, const char *unit, const char *help)
{
	smart_assert(unit[0] == '\0' || strstr(name, unit) != NULL);
	memnode_text_add(text, "# TYPE " PREFIX "%s %s\n", name, type);
	if (unit[0] != '\0')
		memnode_text_add(text, "# UNIT " PREFIX "%s %s\n", name, unit);
	memnode_text_add(text, "# HELP " PREFIX "%s %s\n", name, help);
}

static void
gauge(struct memnode_text *text, const char *name, const char *unit, const char *help, uint64_t value)
{
	begin(text, name, "gauge", unit, help);
	memnode_text_add(text, PREFIX "%s %" PRIu64 "\n", name, value);
}

static void
seconds(struct memnode_text *text, const char *name, const char *help, double value)
{
	begin(text, name, "gauge", "seconds", help);
	memnode_text_add(text, PREFIX "%s %.3f\n", name, value);
}

static void
counter(struct memnode_text *text, const char *name, const char *unit, const char *help, uint64_t value)
{
	begin(text, name, "counter", unit, help);
	memnode_text_add(text, PREFIX "%s_total %" PRIu64 "\n", name, value);
}

static void
labelled(struct memnode_text *text, const char *name, const char *label, const char *word, uint64_t value)
{
	smart_assert(word != NULL);
	memnode_text_add(text, PREFIX "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, word, value);
}

/* ---- process and memory ---- */

/* Keys by their names only (stream.h). */
static void
write_keys(const struct memnode_report *report, struct memnode_text *text)
{
	gauge(text, "keys", "", "Keys of the secret-file that are accepted; 0: none is needed.", report->key_count);
	begin(text, "key_sessions", "gauge", "",
		  "Sessions by the key that they were made with; removed: it is not accepted any more.");
	for (unsigned int i = 0; i < report->key_count; i++)
		memnode_text_add(text, PREFIX "key_sessions{key=\"%016" PRIx64 "\"} %u\n", report->keys[i],
						 memnode_report_sessions_of_key(report, report->keys[i]));
	labelled(text, "key_sessions", "key", "removed", memnode_report_sessions_of_key(report, 0));
}

static void
write_process(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode *node = report->node;

	begin(text, "build", "info", "", "The version of smart-memnode, and of the protocol that it speaks.");
	memnode_text_add(text, PREFIX "build_info{version=\"%s\",protocol=\"%d\"} 1\n", report->version, WIRE_VERSION);
	seconds(text, "start_time_seconds", "When the daemon began to serve, since 1970-01-01.", (double) report->started);
	seconds(text, "uptime_seconds", "How long it has served.", (double) (smart_clock_ns() - node->started_ns) / SECOND);
	write_keys(report, text);
	seconds(text, "keys_read_time_seconds", "When the secret-file was read last, since 1970-01-01.",
			(double) report->keys_read);
	begin(text, "reloads", "counter", "", "How often settings and keys were read again.");
	labelled(text, "reloads_total", "result", "failed", node->counters.reloads[0]);
	labelled(text, "reloads_total", "result", "done", node->counters.reloads[1]);
}

static void
write_memory(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode *node = report->node;
	uint64_t size = memnode_report_size(report);
	uint64_t used = memnode_report_used(report);

	smart_assert(used <= size);
	gauge(text, "size_bytes", "bytes", "Memory that can be handed out.", size);
	gauge(text, "used_bytes", "bytes", "Memory that is handed out.", used);
	gauge(text, "free_bytes", "bytes", "Memory that is not handed out.", size - used);
	gauge(text, "memory_removed", "", "1: somebody has removed the memory; what is in it is lost at the next stop.",
		  report->removed);
	gauge(text, "trees", "", "Trees in this memory.", node->trees.count);
	gauge(text, "snapshot_configured", "", "1: a snapshot is written at a clean stop.",
		  report->options->snapshot[0] != '\0');
	if (node->snapshot_time == 0)
		return;
	seconds(text, "snapshot_duration_seconds", "How long it took to load the snapshot that the daemon began with.",
			(double) node->snapshot_load_ns / SECOND);
	seconds(text, "snapshot_age_seconds", "How long ago that snapshot was written.",
			difftime(time(NULL), node->snapshot_time));
}

/* ---- owners ---- */

/* The name of a sample, and whose it is. */
static void
begin_owner(const struct memnode_report *report, struct memnode_text *text, const char *name, uint32_t owner)
{
	smart_assert(owner < MEMNODE_OWNERS);
	memnode_text_add(text, PREFIX "%s{owner=\"%016" PRIx64 "\",cluster=\"%" PRIu64 "\"} ", name,
					 report->node->region.owners[owner].id, memnode_report_owner_system(report, owner));
}

/* One number of every owner: the samples of a family have to stand together. */
static void
write_of_owners(const struct memnode_report *report, struct memnode_text *text, const char *name,
				uint64_t (*number)(const struct memnode_report *report, uint32_t owner))
{
	for (uint32_t owner = memnode_report_owner(report, 0); owner < MEMNODE_OWNERS;
		 owner = memnode_report_owner(report, owner + 1))
	{
		begin_owner(report, text, name, owner);
		memnode_text_add(text, "%" PRIu64 "\n", number(report, owner));
	}
}

static uint64_t
trees_of(const struct memnode_report *report, uint32_t owner)
{
	smart_assert(owner < MEMNODE_OWNERS);
	return report->node->trees.own[owner];
}

static uint64_t
sessions_of(const struct memnode_report *report, uint32_t owner)
{
	return memnode_owner_sessions(report->node, owner);
}

static uint64_t
away_of(const struct memnode_report *report, uint32_t owner)
{
	return memnode_owner_away_s(report->node, owner);
}

static void
write_owners(const struct memnode_report *report, struct memnode_text *text)
{
	uint64_t now_ns = smart_clock_ns();

	begin(text, "owner_used_bytes", "gauge", "bytes",
		  "Memory that a server has, by the identity of its data directory and the system identifier of its cluster.");
	write_of_owners(report, text, "owner_used_bytes", memnode_report_owner_used);
	begin(text, "owner_trees", "gauge", "", "Trees that a server has here.");
	write_of_owners(report, text, "owner_trees", trees_of);
	begin(text, "owner_sessions", "gauge", "", "Open connections of a server.");
	write_of_owners(report, text, "owner_sessions", sessions_of);
	begin(text, "owner_away_seconds", "gauge", "seconds",
		  "How long a server has not been connected, at most as long as the daemon serves; 0: it is.");
	write_of_owners(report, text, "owner_away_seconds", away_of);
	begin(text, "lease_age_seconds", "gauge", "seconds",
		  "How long the present start of a server has its lease; at most as long as the daemon serves.");
	for (uint32_t owner = memnode_report_owner(report, 0); owner < MEMNODE_OWNERS;
		 owner = memnode_report_owner(report, owner + 1))
	{
		begin_owner(report, text, "lease_age_seconds", owner);
		memnode_text_add(text, "%.3f\n", (double) (now_ns - memnode_report_lease_ns(report, owner)) / SECOND);
	}
}

/* ---- sessions and requests ---- */

static void
write_sessions(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode_counters *counters = &report->node->counters;
	uint64_t sessions[MEMNODE_SESSION_STATES];

	memnode_report_sessions(report, sessions);
	begin(text, "sessions", "gauge", "", "Open connections, by what they are for.");
	for (unsigned int state = 0; state < MEMNODE_SESSION_STATES; state++)
		labelled(text, "sessions", "state", memnode_session_words[state], sessions[state]);
	begin(text, "protocol_sessions", "gauge", "", "Sessions, by the version of the protocol that they speak.");
	for (uint32_t version = WIRE_VERSION_BEFORE; version <= WIRE_VERSION; version++)
	{
		memnode_text_add(text, PREFIX "protocol_sessions{version=\"%u\"} %u\n", version,
						 memnode_report_sessions_of_version(report, version));
	}
	gauge(text, "sessions_limit", "", "Connections for control and verbs that max-connections allows.",
		  report->node->client_max);
	counter(text, "connections", "", "Connections that were accepted.", counters->connections);
	begin(text, "refused_connections", "counter", "", "Connections that were not taken in, by reason.");
	for (unsigned int refusal = 0; refusal < MEMNODE_REFUSALS; refusal++)
		labelled(text, "refused_connections_total", "reason", memnode_refusal_words[refusal],
				 counters->refused[refusal]);
}

static void
write_requests(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode_counters *counters = &report->node->counters;

	begin(text, "requests", "counter", "", "Requests that were answered, by type.");
	for (unsigned int type = WIRE_HELLO; type < WIRE_TYPES; type++)
		labelled(text, "requests_total", "type", memnode_request_words[type], counters->requests[type]);
	begin(text, "refused_requests", "counter", "", "Requests that were refused, by reason.");
	for (unsigned int status = WIRE_OK + 1; status < WIRE_STATUS_COUNT; status++)
		labelled(text, "refused_requests_total", "reason", memnode_answer_words[status], counters->answers[status]);
	begin(text, "verbs", "counter", "", "Verbs that came over TCP; those of RDMA do without the daemon.");
	for (unsigned int verb = 0; verb < FABRIC_VERBS; verb++)
		labelled(text, "verbs_total", "verb", memnode_verb_words[verb], counters->verbs[verb]);
	begin(text, "verb_bytes", "counter", "bytes", "Bytes that verbs over TCP have read or changed.");
	for (unsigned int verb = 0; verb < FABRIC_VERBS; verb++)
		labelled(text, "verb_bytes_total", "verb", memnode_verb_words[verb], counters->verb_bytes[verb]);
	counter(text, "received_bytes", "bytes", "Bytes of messages from clients.", counters->received_bytes);
	counter(text, "sent_bytes", "bytes", "Bytes of messages to clients.", counters->sent_bytes);
}

void
memnode_metrics_write(const struct memnode_report *report, struct memnode_text *text)
{
	write_process(report, text);
	write_memory(report, text);
	write_owners(report, text);
	write_sessions(report, text);
	write_requests(report, text);
	memnode_text_add(text, "# EOF\n");
}
