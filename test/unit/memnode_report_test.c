/*
 * memnode_report_test.c
 *	  What an operator is told of a memory node: bounded where people read it, complete where programs do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memnode/http.h"
#include "memnode/metrics.h"
#include "memnode/status.h"
#include "support/check.h"
#include "support/memnode_peer.h"

#define SIZE  ((uint64_t) 32 << 20)
#define HOSTS 300

static struct memnode_options options;
static struct memnode_report report = {.options = &options,
									   .version = "1",
									   .place = "here:1",
									   .memory = "/memory",
									   .metrics = ""};

static unsigned int
count(const char *text, const char *phrase)
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
	CHECK(count(text.bytes, "\n          4 from 10.0.0.") == 32 &&
		  strstr(text.bytes, " 172 from other hosts\n") != NULL);
	CHECK(count(text.bytes, "\nowner ") == 64 && strstr(text.bytes, " and 960 owners more\n") != NULL);
	CHECK(strstr(text.bytes, "sessions  150 for verbs, 150 for control,") != NULL);
	memnode_metrics_write(&report, &metrics);
	CHECK(!metrics.failed && count(metrics.bytes, "\nsmart_memnode_owner_trees{") == MEMNODE_OWNERS);
	CHECK(strstr(metrics.bytes,
				 "smart_memnode_owner_trees{owner=\"ffffffffffffffff\",cluster=\"18446744073709551615\"} 0\n") != NULL);
	CHECK(strstr(metrics.bytes, "\nsmart_memnode_sessions{state=\"control\"} 150\n") != NULL);
	CHECK(strcmp(metrics.bytes + metrics.length - 6, "# EOF\n") == 0);
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
	test_many(node);
	test_without_library();
	memnode_close(node);
	free(node);
	memnode_peer_unmap(&region);
	return check_finish();
}
