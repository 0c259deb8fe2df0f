/*
 * version_test.c
 *	  A client at memory nodes of other versions of the protocol: the one before is
 *	  spoken with, others are not, and both without a wait.
 *
 * The nodes are played here.  How a memory node of this version takes clients of others is tested by
 * test/memnode/daemon.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "base/env.h"
#include "rdma/tcp/session.h"
#include "support/check.h"
#include "support/env_thread.h"

#define LIMIT_MS 20000

static const unsigned char key[STREAM_SECRET_MIN] = {1, 2, 3};

/* A memory node that speaks one version, and what it has seen. */
struct old_node
{
	int listener;
	char port[SESSION_PORT_MAX];
	SSL_CTX *context; /* NULL: no key */
	uint32_t speaks;
	uint32_t asked[4]; /* the versions of HELLOs; 0: none has come */
	unsigned int connections;
};

/* It knows the key by its name. */
static unsigned int
give_key(SSL *ssl, const char *identity, unsigned char *place, unsigned int size)
{
	struct stream_secret secret = {.length = sizeof(key)};
	char expected[64];

	memcpy(secret.key, key, sizeof(key));
	snprintf(expected, sizeof(expected), "smart.%016llx", (unsigned long long) stream_key_name(&secret));
	if (strcmp(identity, expected) != 0)
		return 0;
	memcpy(place, key, sizeof(key));
	return sizeof(key);
}

/* Moves bytes, with TLS or without. */
static bool
get(int connection, SSL *ssl, uint8_t *bytes, size_t length)
{
	for (size_t got = 0; got < length;)
	{
		ssize_t more = ssl != NULL ? SSL_read(ssl, bytes + got, (int) (length - got))
								   : recv(connection, bytes + got, length - got, 0);

		if (more <= 0)
			return false;
		got += (size_t) more;
	}
	return true;
}

static void
put(int connection, SSL *ssl, const uint8_t *bytes, size_t length)
{
	ssize_t put = ssl != NULL ? SSL_write(ssl, bytes, (int) length) : send(connection, bytes, length, MSG_NOSIGNAL);

	CHECK(put == (ssize_t) length);
}

/* One connection: HELLO, its answer, and the end. */
static void
serve(struct old_node *node, int connection, SSL *ssl)
{
	struct wire_header header;
	struct wire_welcome welcome = {.node = 1, .capacity = WIRE_CHUNK_BYTES, .transports = WIRE_TCP};
	uint8_t bytes[128];

	if (ssl != NULL && (SSL_set_fd(ssl, connection) != 1 || SSL_accept(ssl) != 1))
		return;
	if (!get(connection, ssl, bytes, WIRE_HEADER_BYTES) || !wire_get_header(bytes, false, &header) ||
		header.length > sizeof(bytes) - WIRE_HEADER_BYTES ||
		!get(connection, ssl, bytes + WIRE_HEADER_BYTES, header.length))
		return;
	header = (struct wire_header){.type = WIRE_HELLO | WIRE_REPLY, .number = 1};
	memcpy(&welcome.version, bytes + WIRE_HEADER_BYTES + 4, sizeof(welcome.version));
	node->asked[node->connections - 1] = welcome.version;
	if (welcome.version == node->speaks)
		header.length = wire_put_welcome(bytes + WIRE_HEADER_BYTES, &welcome);
	else
		header.status = WIRE_UNSUPPORTED;
	wire_put_header(bytes, &header);
	put(connection, ssl, bytes, WIRE_HEADER_BYTES + header.length);
	/* Until the client has gone. */
	(void) get(connection, ssl, bytes, 1);
}

static void *
run(void *argument)
{
	struct old_node *node = argument;
	int connection;

	while (node->connections < 4 && (connection = accept(node->listener, NULL, NULL)) >= 0)
	{
		SSL *ssl = node->context != NULL ? SSL_new(node->context) : NULL;

		node->connections++;
		serve(node, connection, ssl);
		SSL_free(ssl);
		close(connection);
	}
	return NULL;
}

static void
listen_somewhere(struct old_node *node)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	node->listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(node->listener, (struct sockaddr *) &address, length) == 0 && listen(node->listener, 4) == 0);
	CHECK(getsockname(node->listener, (struct sockaddr *) &address, &length) == 0);
	snprintf(node->port, sizeof(node->port), "%u", ntohs(address.sin_port));
}

/* Connects to a node that speaks this version; what came of it, and node tells the rest. */
static smart_status
meet(struct old_node *node, uint32_t speaks, const struct stream_secret *secret, char problem[SESSION_PROBLEM_MAX])
{
	struct env_thread thread;
	struct session_options options = {.env = &thread.env,
									  .secret = secret,
									  .hello = {.owner = 7, .incarnation = 8},
									  .timeout_ms = LIMIT_MS};
	struct session *session;
	pthread_t other;
	smart_status status;

	*node = (struct old_node){.speaks = speaks};
	env_thread_init(&thread, 1);
	if (secret->length > 0)
	{
		node->context = SSL_CTX_new(TLS_server_method());
		SSL_CTX_set_psk_server_callback(node->context, give_key);
	}
	listen_somewhere(node);
	CHECK(pthread_create(&other, NULL, run, node) == 0);
	status = session_open(&options, "127.0.0.1", node->port, &session, problem);
	if (status == SMART_OK)
	{
		CHECK(session_welcome(session)->version == speaks && session_welcome(session)->node == 1);
		session_close(session);
	}
	shutdown(node->listener, SHUT_RDWR);
	CHECK(pthread_join(other, NULL) == 0);
	close(node->listener);
	SSL_CTX_free(node->context);
	CHECK(thread.allocations == 0);
	return status;
}

static void
test_plain(void)
{
	struct stream_secret none = {.length = 0};
	struct old_node node;
	char problem[SESSION_PROBLEM_MAX] = "";

	CHECK(meet(&node, WIRE_VERSION, &none, problem) == SMART_OK && node.connections == 1);
	CHECK(meet(&node, WIRE_VERSION_BEFORE, &none, problem) == SMART_OK && node.connections == 2);
	CHECK(node.asked[0] == WIRE_VERSION && node.asked[1] == WIRE_VERSION_BEFORE);
	for (int i = 0; i < 2; i++)
	{
		CHECK(meet(&node, i == 0 ? WIRE_VERSION_BEFORE - 1 : WIRE_VERSION + 1, &none, problem) == SMART_UNREACHABLE);
		CHECK(node.connections == 2 && node.asked[1] == WIRE_VERSION_BEFORE);
		CHECK(strstr(problem, node.port) != NULL && strstr(problem, "neither this version") != NULL);
	}
}

static void
test_keys(void)
{
	struct stream_secret secret = {.length = sizeof(key)};
	struct stream_secret wrong = {.key = {4}, .length = sizeof(key)};
	struct old_node node;
	char problem[SESSION_PROBLEM_MAX] = "";

	memcpy(secret.key, key, sizeof(key));
	CHECK(meet(&node, WIRE_VERSION_BEFORE, &secret, problem) == SMART_OK && node.connections == 2);
	CHECK(node.asked[0] == WIRE_VERSION && node.asked[1] == WIRE_VERSION_BEFORE);
	CHECK(meet(&node, WIRE_VERSION_BEFORE - 1, &secret, problem) == SMART_UNREACHABLE && node.connections == 2);
	CHECK(strstr(problem, "neither this version") != NULL);
	/* A key that is not known is no matter of versions. */
	CHECK(meet(&node, WIRE_VERSION_BEFORE, &wrong, problem) == SMART_UNREACHABLE && node.connections == 1);
	CHECK(node.asked[0] == 0 && strstr(problem, "same secret key") != NULL);
}

int
main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_plain();
	test_keys();
	return check_finish();
}
