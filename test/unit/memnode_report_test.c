/*
 * memnode_report_test.c
 *	  What an operator is told of a memory node: bounded where people read it, complete where programs do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memnode/http.h"
#include "memnode/metrics.h"
#include "memnode/page.h"
#include "memnode/status.h"
#include "support/check.h"
#include "support/memnode_peer.h"

#define SIZE           ((uint64_t) 32 << 20)
#define HOSTS          300
#define PAGE_BYTES_MAX 131072 /* what a local socket takes at once is more */

static struct memnode_options options;
static struct memnode_report report = {.options = &options,
									   .version = "1",
									   .place = "here:1",
									   .memory = "/memory",
									   .metrics = ""};

static unsigned int
count_of(const char *text, const char *phrase)
{
	unsigned int found = 0;

	for (text = strstr(text, phrase); text != NULL; text = strstr(text + 1, phrase))
		found++;
	return found;
}

static void
test_text(void)
{
	struct memnode_text text = {.bytes = NULL};
	char piece[128];
	size_t length = 0;

	memset(piece, 'x', sizeof(piece) - 1);
	piece[sizeof(piece) - 1] = '\0';
	for (unsigned int i = 0; i < 1000; i++)
	{
		memnode_text_add(&text, "%s%u", piece, i % 10);
		length += sizeof(piece);
		CHECK(text.length == length && text.bytes[length - 1] == (char) ('0' + i % 10) && text.bytes[length] == '\0');
	}
	CHECK(!text.failed);
	free(text.bytes);
}

static void
test_escaping(void)
{
	static const struct
	{
		const char *string;
		const char *escaped;
	} cases[] = {
		{"", NULL},
		{"/var/lib/x", "/var/lib/x"},
		{"<script>&\"'", "&#60;script&#62;&#38;&#34;&#39;"},
		{"M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x90\x98", "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x90\x98"},
		{"\x1b\x7f\t", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\x80x\xc3", "\xef\xbf\xbdx\xef\xbf\xbd"},               /* no beginning, no end */
		{"\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* "<", but too long */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
		{"\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* no character */
		{"\xff<", "\xef\xbf\xbd&#60;"},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct memnode_text text = {.bytes = NULL};

		memnode_text_add_escaped(&text, cases[i].string);
		CHECK(!text.failed);
		CHECK(cases[i].escaped == NULL ? text.bytes == NULL : strcmp(text.bytes, cases[i].escaped) == 0);
		free(text.bytes);
	}
}

/* A page of all owners and of the largest region, whose chunks are as mixed as can be; with names that mean harm. */
static void
test_page(struct memnode *node)
{
	static struct memnode large;
	struct memnode_report hostile = report;
	struct memnode_text text = {.bytes = NULL};
	uint32_t count = (uint32_t) (MEMNODE_SIZE_MAX / WIRE_CHUNK_BYTES);
	uint32_t *chunks = calloc(count, sizeof(*chunks));

	CHECK(chunks != NULL);
	large = *node;
	large.region.chunks = chunks;
	large.region.chunk_count = count;
	for (uint32_t chunk = large.region.first_chunk; chunk < count; chunk++)
		chunks[chunk] = chunk / 257 % 10 == 0 ? (uint32_t) MEMNODE_CHUNK_FREE
											  : memnode_chunk_word(MEMNODE_CHUNK_BLOCKS, chunk / 257 % 9 + chunk % 2);
	memnode_chunks_open(&large.chunks, &large.region);
	memset(large.counters.requests, 0xff, sizeof(large.counters.requests));
	memset(large.counters.verb_bytes, 0xff, sizeof(large.counters.verb_bytes));
	hostile.node = &large;
	hostile.place = "<script>alert(1)</script>";
	hostile.memory = "/x\"><svg onload='x'>\x01\xff";
	hostile.removed = true;
	memnode_page_write(&hostile, &text);
	CHECK(!text.failed && text.length < PAGE_BYTES_MAX);
	CHECK(count_of(text.bytes, "<tr><td><i class=") == 64 && strstr(text.bytes, ">And 960 more,") != NULL);
	CHECK(strstr(text.bytes, "<script") == NULL && strstr(text.bytes, "onload='") == NULL);
	CHECK(strstr(text.bytes, "Somebody has removed") != NULL);
	CHECK(strstr(text.bytes, "A square is 256 chunks, 512 MB, ") != NULL);
	CHECK(strcmp(text.bytes + text.length - 15, "</body></html>\n") == 0);
	free(text.bytes);
	free(chunks);
}

/* As many owners as there can be, and sessions of many hosts. */
static void
test_many(struct memnode *node)
{
	struct memnode_client *clients[HOSTS];
	struct memnode_text text = {.bytes = NULL};
	struct memnode_text metrics = {.bytes = NULL};
	char name[MEMNODE_NAME_MAX];

	for (unsigned int i = 0; i < HOSTS; i++)
	{
		snprintf(name, sizeof(name), "10.0.%u.%u:%u", i / 4 / 256, i / 4 % 256, 1000 + i);
		clients[i] = memnode_client_open(node, name);
		CHECK(memnode_peer_hello(clients[i], 7, 1, i % 2 == 0, 0, i) == WIRE_OK);
	}
	for (uint32_t owner = 0; owner < MEMNODE_OWNERS; owner++)
	{
		node->region.owners[owner].id = UINT64_MAX - owner;
		node->region.owners[owner].state = MEMNODE_OWNER_KNOWN;
	}
	memnode_status_write(&report, &text);
	CHECK(!text.failed && text.length < 16384);
	CHECK(count_of(text.bytes, "\n          4 from 10.0.0.") == 32 &&
		  strstr(text.bytes, " 172 from other hosts\n") != NULL);
	CHECK(count_of(text.bytes, "\nowner ") == 64 && strstr(text.bytes, " and 960 owners more\n") != NULL);
	CHECK(strstr(text.bytes, "sessions  150 for verbs, 150 for control,") != NULL);
	memnode_metrics_write(&report, &metrics);
	CHECK(!metrics.failed && count_of(metrics.bytes, "\nsmart_memnode_owner_trees{") == MEMNODE_OWNERS);
	CHECK(strstr(metrics.bytes,
				 "smart_memnode_owner_trees{owner=\"ffffffffffffffff\",cluster=\"18446744073709551615\"} 0\n") != NULL);
	CHECK(strstr(metrics.bytes, "\nsmart_memnode_sessions{state=\"control\"} 150\n") != NULL);
	CHECK(strcmp(metrics.bytes + metrics.length - 6, "# EOF\n") == 0);
	test_page(node);
	for (unsigned int i = 0; i < HOSTS; i++)
		memnode_client_free(clients[i]);
	free(text.bytes);
	free(metrics.bytes);
}

/* These programs are built without libmicrohttpd. */
static void
test_without_library(void)
{
	char problem[MEMNODE_PROBLEM_MAX] = "";

	CHECK(memnode_http_open(&report, problem) == NULL && strstr(problem, "built without libmicrohttpd") != NULL);
}

int
main(void)
{
	struct memnode_region region;
	struct memnode *node;

	memnode_peer_region(&region, SIZE);
	node = memnode_peer_node(&region);
	report.node = node;
	test_text();
	test_escaping();
	test_many(node);
	test_without_library();
	memnode_close(node);
	free(node);
	memnode_peer_unmap(&region);
	return check_finish();
}
