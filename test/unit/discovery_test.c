/*
 * discovery_test.c
 *	  Announcing and finding memory nodes, with a real memcached on a socket of its own.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/discovery.h"
#include "support/check.h"

#define TTL_S      60u
#define SHORT_S    1u
#define TIMEOUT_MS 1000u

static char directory[] = "/tmp/discovery_test.XXXXXX";
static char path[64];
static pid_t server;
static char problem[SESSION_PROBLEM_MAX];

static bool
results(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
	bool good;

	strcpy(address.sun_path, path);
	good = connect(descriptor, (struct sockaddr *) &address, sizeof(address)) == 0;
	close(descriptor);
	return good;
}

static void
start_server(void)
{
	server = fork();
	if (server == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("memcached", "memcached", "-u", "nobody", "-m", "8", "-a", "777", "-s", path, (char *) NULL);
		_exit(127);
	}
	for (unsigned int attempt = 0; attempt < 500 && !results(); attempt++)
		usleep(10000);
	CHECK(results());
}

static void
stop_server(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	unlink(path);
}

static struct discovery *
open_cluster(const char *cluster)
{
	struct discovery *discovery = NULL;

	CHECK(discovery_open(path, cluster, TIMEOUT_MS, &discovery, problem) == SMART_OK);
	return discovery;
}

static struct discovery_node
node_of(uint64_t incarnation, const char *host, const char *port)
{
	struct discovery_node node = {.incarnation = incarnation};

	strcpy(node.host, host);
	strcpy(node.port, port);
	return node;
}

static unsigned int
count_nodes(struct discovery *discovery, struct discovery_node *nodes)
{
	unsigned int count = UINT32_MAX;

	CHECK(discovery_find(discovery, nodes, &count, problem) == SMART_OK);
	return count;
}

static void
check_address(const char *text, const char *expected_host, const char *expected_port)
{
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
	bool good = discovery_parse_address(text, "7471", host, port);

	CHECK(good == (expected_host != NULL));
	if (good && expected_host != NULL)
		CHECK(strcmp(host, expected_host) == 0 && strcmp(port, expected_port) == 0);
}

static void
test_addresses(void)
{
	check_address("node1", "node1", "7471");
	check_address("node1:80", "node1", "80");
	check_address("10.0.0.1:65535", "10.0.0.1", "65535");
	check_address("[::1]:80", "::1", "80");
	check_address("[fe80::1%eth0]", "fe80::1%eth0", "7471");
	check_address("", NULL, NULL);
	check_address(":80", NULL, NULL);
	check_address("node1:", NULL, NULL);
	check_address("node1:http", NULL, NULL);
	check_address("node1:65536", NULL, NULL);
	check_address("node1:80:90", NULL, NULL);
	check_address("[::1", NULL, NULL);
	check_address("[]:80", NULL, NULL);
	check_address("[::1]80", NULL, NULL);
	check_address("two words:80", NULL, NULL);
}

static void
test_bad_options(void)
{
	struct discovery *discovery = NULL;
	char name[DISCOVERY_CLUSTER_MAX + 2];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(discovery_open(path, name, TIMEOUT_MS, &discovery, problem) == SMART_CORRUPT);
	CHECK(discovery_open(path, "", TIMEOUT_MS, &discovery, problem) == SMART_CORRUPT);
	CHECK(discovery_open(path, "a cluster", TIMEOUT_MS, &discovery, problem) == SMART_CORRUPT);
	CHECK(discovery_open("", "main", TIMEOUT_MS, &discovery, problem) == SMART_CORRUPT);
	CHECK(discovery_open("here:port", "main", TIMEOUT_MS, &discovery, problem) == SMART_CORRUPT);
	CHECK(strstr(problem, "here:port") != NULL && discovery == NULL);
}

static void
test_announce_and_find(void)
{
	struct discovery *one = open_cluster("main");
	struct discovery *two = open_cluster("main");
	struct discovery *other = open_cluster("other");
	struct discovery *reader = open_cluster("main");
	struct discovery_node nodes[FABRIC_NODES_MAX];
	struct discovery_node first = node_of(1, "10.0.0.1", "7471");
	struct discovery_node second = node_of(UINT64_MAX, "fe80::2", "7472");
	struct discovery_node third = node_of(3, "node3", "7473");

	CHECK(count_nodes(reader, nodes) == 0);
	CHECK(discovery_announce(one, &first, TTL_S, problem) == SMART_OK);
	CHECK(discovery_announce(two, &second, TTL_S, problem) == SMART_OK);
	CHECK(discovery_announce(other, &third, TTL_S, problem) == SMART_OK);
	CHECK(count_nodes(reader, nodes) == 2);
	CHECK(nodes[0].incarnation == 1 && strcmp(nodes[0].host, "10.0.0.1") == 0 && strcmp(nodes[0].port, "7471") == 0);
	CHECK(nodes[1].incarnation == UINT64_MAX && strcmp(nodes[1].host, "fe80::2") == 0);
	CHECK(count_nodes(other, nodes) == 1 && nodes[0].incarnation == 3);

	/* Again: the same place, with what is new. */
	strcpy(first.host, "10.0.0.9");
	CHECK(discovery_announce(one, &first, TTL_S, problem) == SMART_OK);
	CHECK(count_nodes(reader, nodes) == 2 && strcmp(nodes[0].host, "10.0.0.9") == 0);

	/* A node that was started again finds its own place. */
	discovery_close(one);
	one = open_cluster("main");
	CHECK(discovery_announce(one, &first, TTL_S, problem) == SMART_OK);
	CHECK(count_nodes(reader, nodes) == 2);

	/* Taking one back takes only that one. */
	discovery_withdraw(one);
	CHECK(count_nodes(reader, nodes) == 1 && nodes[0].incarnation == UINT64_MAX);
	CHECK(discovery_announce(one, &first, TTL_S, problem) == SMART_OK);
	CHECK(count_nodes(reader, nodes) == 2 && nodes[0].incarnation == 1);
	discovery_withdraw(one);
	discovery_withdraw(two);
	discovery_withdraw(other);
	CHECK(count_nodes(reader, nodes) == 0);
	discovery_close(one);
	discovery_close(two);
	discovery_close(other);
	discovery_close(reader);
}

static void
test_full_cluster(void)
{
	struct discovery *discovery = open_cluster("full");
	struct discovery_node nodes[FABRIC_NODES_MAX];
	struct discovery_node node = node_of(1, "node", "1");

	for (; node.incarnation <= FABRIC_NODES_MAX; node.incarnation++)
		CHECK(discovery_announce(discovery, &node, TTL_S, problem) == SMART_OK);
	CHECK(discovery_announce(discovery, &node, TTL_S, problem) == SMART_NO_SPACE);
	CHECK(count_nodes(discovery, nodes) == FABRIC_NODES_MAX);
	discovery_close(discovery);
}

/* An announcement that is not repeated ends; another node has the place then. */
static void
test_time_to_live(void)
{
	struct discovery *one = open_cluster("brief");
	struct discovery *two = open_cluster("brief");
	struct discovery_node nodes[FABRIC_NODES_MAX];
	struct discovery_node first = node_of(1, "one", "1");
	struct discovery_node second = node_of(2, "two", "2");

	CHECK(discovery_announce(one, &first, SHORT_S, problem) == SMART_OK);
	while (count_nodes(two, nodes) > 0)
		usleep(50000);
	CHECK(discovery_announce(two, &second, TTL_S, problem) == SMART_OK);
	CHECK(discovery_announce(one, &first, TTL_S, problem) == SMART_OK);
	CHECK(count_nodes(two, nodes) == 2 && nodes[0].incarnation == 2 && nodes[1].incarnation == 1);
	discovery_close(one);
	discovery_close(two);
}

/* memcached may go and come back; it has forgotten all then. */
static void
test_server_down(void)
{
	struct discovery *discovery = open_cluster("main");
	struct discovery_node nodes[FABRIC_NODES_MAX];
	struct discovery_node node = node_of(1, "node", "1");
	unsigned int count = 77;

	CHECK(discovery_announce(discovery, &node, TTL_S, problem) == SMART_OK);
	stop_server();
	problem[0] = '\0';
	CHECK(discovery_find(discovery, nodes, &count, problem) == SMART_UNREACHABLE && count == 77 && problem[0] != '\0');
	CHECK(discovery_announce(discovery, &node, TTL_S, problem) == SMART_UNREACHABLE);
	discovery_withdraw(discovery);
	start_server();
	for (unsigned int attempt = 0; attempt < 100; attempt++)
	{
		if (discovery_announce(discovery, &node, TTL_S, problem) == SMART_OK)
			break;
		usleep(100000);
	}
	CHECK(count_nodes(discovery, nodes) == 1);
	discovery_close(discovery);
}

/* Two servers, one of them dead: its places are passed over. */
static void
test_half_of_the_servers(void)
{
	struct discovery_node nodes[FABRIC_NODES_MAX];
	struct discovery_node node = node_of(1, "node", "1");
	struct discovery *discovery = NULL;
	char servers[160];

	snprintf(servers, sizeof(servers), "%s, %s.none", path, path);
	CHECK(discovery_open(servers, "half", TIMEOUT_MS, &discovery, problem) == SMART_OK);
	for (; node.incarnation <= 10; node.incarnation++)
		CHECK(discovery_announce(discovery, &node, TTL_S, problem) == SMART_OK);
	CHECK(count_nodes(discovery, nodes) == 10);
	discovery_close(discovery);
}

int
main(void)
{
	CHECK(mkdtemp(directory) != NULL && chmod(directory, 0777) == 0);
	snprintf(path, sizeof(path), "%s/socket", directory);
	start_server();
	test_addresses();
	test_bad_options();
	test_announce_and_find();
	test_full_cluster();
	test_time_to_live();
	test_server_down();
	test_half_of_the_servers();
	stop_server();
	CHECK(rmdir(directory) == 0);
	return check_finish();
}
