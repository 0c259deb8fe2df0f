/*
 * page.c
 *	  A running node as a page for a browser.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "owners.h"
#include "page.h"
#include "page_map.h"

#define NS         UINT64_C(1000000000)
#define OWNERS_MAX 64

/* Nothing is fetched and nothing runs, whatever the text may be. */
static const char head[] =
	"<!DOCTYPE html>\n"
	"<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
	"<meta name=\"viewport\" content=\"width=device-width\"/>\n"
	"<style>\n"
	":root { color-scheme: light dark; --page: #fff; --ink: #1c1e21; --soft: #63676e; --line: #d9dce1; --free: #eceef1;\n"
	"  --c0: #2a78d6; --c1: #eb6834; --c2: #1baf7a; --c3: #eda100; --c4: #e87ba4; --c5: #008300; --c6: #4a3aa7;\n"
	"  --c7: #e34948; --c8: #8a8f98; }\n"
	"@media (prefers-color-scheme: dark) { :root { --page: #17181b; --ink: #e8e9eb; --soft: #9ba0a8; --line: #35383e;\n"
	"  --free: #26282d; --c0: #3987e5; --c1: #d95926; --c2: #199e70; --c3: #c98500; --c4: #d55181; --c6: #9085e9;\n"
	"  --c7: #e66767; --c8: #7b8089; } }\n"
	"body { margin: 2em auto; max-width: 60em; padding: 0 1em; background: var(--page); color: var(--ink);\n"
	"  font: 15px/1.5 system-ui, sans-serif; }\n"
	"h1 { font-size: 1.5em; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.1em; margin: 2em 0 .5em; }\n"
	"p { margin: .3em 0; color: var(--soft); overflow-wrap: anywhere; } .alarm { color: var(--c7); }\n"
	".tables { overflow-x: auto; } table { border-collapse: collapse; }\n"
	"th, td { padding: .2em .8em; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }\n"
	"th { color: var(--soft); font-weight: normal; } td { font-variant-numeric: tabular-nums; }\n"
	"th:first-child, td:first-child, .text { text-align: left; } i { display: inline-block; width: .8em; height: .8em;\n"
	"  margin-right: .4em; } .legend span { margin-right: 1em; white-space: nowrap; }\n"
	"svg { display: block; max-width: 100%; height: auto; } .grid { stroke: var(--page); stroke-width: .12; fill: none; }\n"
	".part { opacity: .5; } .free { fill: var(--free); background: var(--free); }\n"
	".c0 { fill: var(--c0); background: var(--c0); } .c1 { fill: var(--c1); background: var(--c1); }\n"
	".c2 { fill: var(--c2); background: var(--c2); } .c3 { fill: var(--c3); background: var(--c3); }\n"
	".c4 { fill: var(--c4); background: var(--c4); } .c5 { fill: var(--c5); background: var(--c5); }\n"
	".c6 { fill: var(--c6); background: var(--c6); } .c7 { fill: var(--c7); background: var(--c7); }\n"
	".c8 { fill: var(--c8); background: var(--c8); }\n"
	"</style>\n";

/* ---- numbers ---- */

/* A number that is a metric of this name; its digits in groups. */
static void
put_count(struct memnode_text *text, const char *metric, const char *label, const char *word, uint64_t value)
{
	char digits[24];
	int count = snprintf(digits, sizeof(digits), "%" PRIu64, value);

	smart_assert(count > 0 && count < (int) sizeof(digits));
	memnode_text_add(text, "<data value=\"%" PRIu64 "\" title='smart_memnode_%s", value, metric);
	if (label != NULL)
		memnode_text_add(text, "{%s=\"%s\"}", label, word);
	memnode_text_add(text, "'>");
	for (int i = 0; i < count; i++)
		memnode_text_add(text, "%c%s", digits[i], (count - i) % 3 == 1 && i + 1 < count ? "&#8239;" : "");
	memnode_text_add(text, "</data>");
}

/* The same of bytes, in a unit that fits. */
static void
put_bytes(struct memnode_text *text, const char *metric, const char *label, const char *word, uint64_t bytes)
{
	static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double) bytes;
	unsigned int unit = 0;

	while (value >= 1024)
	{
		value /= 1024;
		unit++;
	}
	smart_assert(unit < sizeof(units) / sizeof(units[0]));
	memnode_text_add(text, "<data value=\"%" PRIu64 "\" title='smart_memnode_%s", bytes, metric);
	if (label != NULL)
		memnode_text_add(text, "{%s=\"%s\"}", label, word);
	memnode_text_add(text, "'>%.*f %s</data>", unit > 0 && value < 10, value, units[unit]);
}

/* A bar of a hundred parts. */
static void
put_bar(struct memnode_text *text, unsigned int colour, uint64_t value, uint64_t all)
{
	double part = all > 0 ? 100.0 * (double) value / (double) all : 0;

	smart_assert(value <= all && colour <= MEMNODE_COLOURS);
	memnode_text_add(text,
					 "<svg width=\"120\" height=\"10\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\">"
					 "<path class=\"free\" d=\"M0 0h100v8H0z\"/><path class=\"c%u\" d=\"M0 0h%.1fv8H0z\"/></svg>",
					 colour, part);
}

/* ---- the node ---- */

static void
write_node(const struct memnode_report *report, struct memnode_text *text)
{
	char since[MEMNODE_WHEN_BYTES];
	char stretch[MEMNODE_WHEN_BYTES];

	memnode_report_put_time(since, report->started);
	memnode_report_put_stretch(stretch, (smart_clock_ns() - report->node->started_ns) / NS);
	memnode_text_add(text, "%s<title>smart-memnode on ", head);
	memnode_text_add_escaped(text, report->place);
	memnode_text_add(text, "</title></head><body>\n<h1>smart-memnode on ");
	memnode_text_add_escaped(text, report->place);
	memnode_text_add(text, "</h1>\n<p>Version ");
	memnode_text_add_escaped(text, report->version);
	memnode_text_add(text, ", up %s, since %s</p>\n<p>Incarnation <b>%016" PRIx64 "</b>, in ", stretch, since,
					 report->node->region.header->incarnation);
	memnode_text_add_escaped(text, report->memory);
	memnode_text_add(text, "</p>\n");
	if (report->removed)
		memnode_text_add(text,
						 "<p class=\"alarm\">Somebody has removed this memory: it is lost at the next stop.</p>\n");
}

static void
write_memory(const struct memnode_report *report, const struct memnode_ranking *ranking, struct memnode_text *text)
{
	uint64_t size = memnode_report_size(report);
	uint64_t used = memnode_report_used(report);

	smart_assert(used <= size && size > 0);
	memnode_text_add(text, "<h2>Memory</h2>\n<p>");
	put_bytes(text, "used_bytes", NULL, NULL, used);
	memnode_text_add(text, " used of ");
	put_bytes(text, "size_bytes", NULL, NULL, size);
	memnode_text_add(text, " (%u&#160;%%), ", (unsigned int) (used * 100 / size));
	put_bytes(text, "free_bytes", NULL, NULL, size - used);
	memnode_text_add(text, " free, ");
	put_count(text, "trees", NULL, NULL, report->node->trees.count);
	memnode_text_add(text, " trees</p>\n");
	memnode_page_map_write(report, ranking, text);
}

/* ---- owners ---- */

static void
write_presence(const struct memnode_report *report, uint32_t owner, unsigned int sessions, struct memnode_text *text)
{
	const struct memnode_owner_record *record = memnode_owner_get(report->node, owner);
	char address[MEMNODE_OWNER_ADDRESS_MAX];
	char when[MEMNODE_WHEN_BYTES];

	if (sessions > 0)
		memnode_text_add(text, "connected over %s", record->transport == WIRE_RDMA ? "RDMA" : "TCP");
	else if (record->seen != 0)
	{
		memnode_report_put_time(when, (time_t) record->seen);
		memnode_text_add(text, "not connected since %s", when);
	}
	else
		memnode_text_add(text, "not connected");
	memnode_owner_address(record, address);
	if (address[0] != '\0')
	{
		memnode_text_add(text, ", from ");
		memnode_text_add_escaped(text, address);
	}
}

static void
write_owner(const struct memnode_report *report, const struct memnode_ranking *ranking, uint32_t i,
			struct memnode_text *text)
{
	const struct memnode *node = report->node;
	uint32_t owner = ranking->rank[i].owner;
	uint64_t used = ranking->rank[i].used;
	uint64_t size = memnode_report_size(report);
	unsigned int sessions = memnode_owner_sessions(node, owner);
	char id[17];

	smart_assert(i < ranking->count && owner < MEMNODE_OWNERS);
	snprintf(id, sizeof(id), "%016" PRIx64, node->region.owners[owner].id);
	memnode_text_add(text, "<tr><td><i class=\"c%u\"></i>%s</td><td>%" PRIu64 "</td><td>", ranking->colour[owner], id,
					 memnode_report_owner_system(report, owner));
	put_count(text, "owner_trees", "owner", id, node->trees.own[owner]);
	memnode_text_add(text, "</td><td>");
	put_bytes(text, "owner_used_bytes", "owner", id, used);
	memnode_text_add(text, "</td><td>%.1f&#160;%%</td><td>", 100.0 * (double) used / (double) size);
	put_bar(text, ranking->colour[owner], used, size);
	memnode_text_add(text, "</td><td>");
	put_count(text, "owner_sessions", "owner", id, sessions);
	memnode_text_add(text, "</td><td class=\"text\">");
	write_presence(report, owner, sessions, text);
	memnode_text_add(text, "</td></tr>\n");
}

static void
write_owners(const struct memnode_report *report, const struct memnode_ranking *ranking, struct memnode_text *text)
{
	memnode_text_add(text, "<h2>Servers</h2>\n");
	if (ranking->count == 0)
	{
		memnode_text_add(text, "<p>None has been here yet.</p>\n");
		return;
	}
	memnode_text_add(text,
					 "<div class=\"tables\"><table><tr><th>identity</th><th>cluster</th><th>trees</th><th>memory</th>"
					 "<th>of all</th><th></th><th>sessions</th><th class=\"text\"></th></tr>\n");
	for (uint32_t i = 0; i < ranking->count && i < OWNERS_MAX; i++)
		write_owner(report, ranking, i, text);
	memnode_text_add(text, "</table></div>\n");
	if (ranking->count > OWNERS_MAX)
		memnode_text_add(text, "<p>And %u more, which have less.</p>\n", ranking->count - OWNERS_MAX);
}

/* ---- traffic ---- */

static void
write_verbs(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode_counters *counters = &report->node->counters;
	uint64_t batches = counters->requests[WIRE_VERBS];
	uint64_t all = 0;

	memnode_text_add(text, "<h2>Traffic</h2>\n<p>Since the start; what goes by RDMA is not counted here. Messages: ");
	put_bytes(text, "received_bytes_total", NULL, NULL, counters->received_bytes);
	memnode_text_add(text, " received, ");
	put_bytes(text, "sent_bytes_total", NULL, NULL, counters->sent_bytes);
	memnode_text_add(text, " sent.</p>\n<div class=\"tables\"><table><tr><th>verb</th><th>number</th><th>bytes</th>"
						   "<th>bytes each</th></tr>\n");
	for (unsigned int verb = 0; verb < FABRIC_VERBS; verb++)
	{
		uint64_t count = counters->verbs[verb];

		all += count;
		memnode_text_add(text, "<tr><td>%s</td><td>", memnode_verb_words[verb]);
		put_count(text, "verbs_total", "verb", memnode_verb_words[verb], count);
		memnode_text_add(text, "</td><td>");
		put_bytes(text, "verb_bytes_total", "verb", memnode_verb_words[verb], counters->verb_bytes[verb]);
		memnode_text_add(text, "</td><td>%.0f</td></tr>\n",
						 count > 0 ? (double) counters->verb_bytes[verb] / (double) count : 0.0);
	}
	memnode_text_add(text, "</table></div>\n<p>%.1f verbs in a batch.</p>\n",
					 batches > 0 ? (double) all / (double) batches : 0.0);
}

/* Counters of one kind from number first on, by their words. */
static void
write_counters(struct memnode_text *text, const char *title, const char *metric, const char *label,
			   const char *const *words, const uint64_t *counts, unsigned int first, unsigned int end)
{
	uint64_t most = 0;

	smart_assert(first <= end);
	for (unsigned int i = first; i < end; i++)
		most = counts[i] > most ? counts[i] : most;
	memnode_text_add(text, "<h2>%s</h2>\n<table>\n", title);
	for (unsigned int i = first; i < end; i++)
	{
		smart_assert(words[i] != NULL);
		memnode_text_add(text, "<tr><td>%s</td><td>", words[i]);
		put_count(text, metric, label, words[i], counts[i]);
		memnode_text_add(text, "</td><td>");
		put_bar(text, 0, counts[i], most);
		memnode_text_add(text, "</td></tr>\n");
	}
	memnode_text_add(text, "</table>\n");
}

static void
write_traffic(const struct memnode_report *report, struct memnode_text *text)
{
	const struct memnode_counters *counters = &report->node->counters;
	uint64_t sessions[MEMNODE_SESSION_STATES];

	write_verbs(report, text);
	write_counters(text, "Requests", "requests_total", "type", memnode_request_words, counters->requests, WIRE_HELLO,
				   WIRE_TYPES);
	write_counters(text, "Refused requests", "refused_requests_total", "reason", memnode_answer_words,
				   counters->answers, WIRE_OK + 1, WIRE_STATUS_COUNT);
	memnode_report_sessions(report, sessions);
	write_counters(text, "Sessions", "sessions", "state", memnode_session_words, sessions, 0, MEMNODE_SESSION_STATES);
	memnode_text_add(text, "<p>");
	put_count(text, "connections_total", NULL, NULL, counters->connections);
	memnode_text_add(text, " connections since the start, at most ");
	put_count(text, "sessions_limit", NULL, NULL, report->node->client_max);
	memnode_text_add(text, " sessions at a time.</p>\n");
	write_counters(text, "Refused connections", "refused_connections_total", "reason", memnode_refusal_words,
				   counters->refused, 0, MEMNODE_REFUSALS);
}

void
memnode_page_write(const struct memnode_report *report, struct memnode_text *text)
{
	struct memnode_ranking ranking;

	memnode_ranking_make(report, &ranking);
	write_node(report, text);
	write_memory(report, &ranking, text);
	write_owners(report, &ranking, text);
	write_traffic(report, text);
	memnode_text_add(text, "</body></html>\n");
}
