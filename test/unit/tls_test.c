/*
 * tls_test.c
 *	  TLS as others would like it: servers and clients that do not use the secret
 *	  key, by OpenSSL itself, are refused.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "rdma/tcp/stream.h"
#include "support/check.h"

#define LIMIT_MS 20000 /* a wait that is longer is a hang */

/* The other side, in a thread and with a blocking socket. */
struct other
{
	SSL_CTX *context;
	int socket;
	bool server;
	bool happy; /* its handshake succeeded */
};

/* A certificate that only its maker vouches for. */
static void
certify(SSL_CTX *context)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);

	CHECK(key != NULL && X509_set_version(certificate, 2) == 1);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *) "node", -1, -1, 0) == 1);
	CHECK(X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1);
	CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
	CHECK(SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

static void *
run_other(void *argument)
{
	struct other *other = argument;
	SSL *ssl = SSL_new(other->context);
	char byte;

	CHECK(SSL_set_fd(ssl, other->socket) == 1);
	other->happy = (other->server ? SSL_accept(ssl) : SSL_connect(ssl)) == 1;
	/* The client's part of a handshake ends before the server has judged it. */
	if (other->happy && !other->server)
		other->happy = SSL_read(ssl, &byte, 1) == 1;
	SSL_free(ssl);
	shutdown(other->socket, SHUT_RDWR);
	return NULL;
}

/* One handshake of ours with the other side; does it succeed? */
static bool
meet(struct other *other)
{
	struct stream_keys keys = {.count = 1, .key = {{.key = {1, 2, 3}, .length = STREAM_SECRET_MIN}}};
	struct stream *stream;
	enum stream_wait wait;
	pthread_t thread;
	int sockets[2];
	uint8_t byte = 0;
	size_t moved;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 && fcntl(sockets[0], F_SETFL, O_NONBLOCK) == 0);
	other->socket = sockets[1];
	stream = other->server ? stream_open(sockets[0], &keys.key[0]) : stream_accept(sockets[0], &keys);
	CHECK(stream != NULL && pthread_create(&thread, NULL, run_other, other) == 0);
	while ((wait = stream_handshake(stream)) == STREAM_WANT_READ || wait == STREAM_WANT_WRITE)
	{
		struct pollfd wanted = {.fd = stream_descriptor(stream), .events = POLLIN};

		if (poll(&wanted, 1, LIMIT_MS) <= 0)
			abort();
	}
	CHECK(wait == STREAM_DONE || strlen(stream_problem(stream)) > 0);
	/* What was refused carries nothing. */
	CHECK(stream_write(stream, &byte, 1, &moved) == wait);
	if (wait == STREAM_CLOSED)
		CHECK(stream_read(stream, &byte, 1, &moved) == STREAM_CLOSED);
	stream_close(stream);
	CHECK(pthread_join(thread, NULL) == 0);
	close(sockets[1]);
	return wait == STREAM_DONE;
}

/* A server with a certificate instead of the key. */
static void
test_certificate(void)
{
	struct other other = {.context = SSL_CTX_new(TLS_server_method()), .server = true};

	certify(other.context);
	CHECK(!meet(&other));
	SSL_CTX_free(other.context);
}

/* A client that trusts everybody and brings no key. */
static void
test_no_key(void)
{
	struct other other = {.context = SSL_CTX_new(TLS_client_method())};

	SSL_CTX_set_verify(other.context, SSL_VERIFY_NONE, NULL);
	CHECK(!meet(&other) && !other.happy);
	SSL_CTX_free(other.context);
}

/* The right key in TLS 1.2, where nothing hides a recorded connection from an attacker that learns the key later. */
static unsigned int
offer_key(SSL *ssl, const char *hint, char *identity, unsigned int identity_size, unsigned char *key,
		  unsigned int key_size)
{
	static const struct stream_secret known = {.key = {1, 2, 3}, .length = STREAM_SECRET_MIN};

	CHECK(snprintf(identity, identity_size, "smart.%016llx", (unsigned long long) stream_key_name(&known)) ==
			  sizeof("smart.") - 1 + 16 &&
		  key_size >= known.length);
	memcpy(key, known.key, known.length);
	return (unsigned int) known.length;
}

/* The first of them shows that these clients could come in. */
static void
test_versions(void)
{
	static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};

	for (int i = 0; i < 2; i++)
	{
		struct other other = {.context = SSL_CTX_new(TLS_client_method())};

		SSL_CTX_set_psk_client_callback(other.context, offer_key);
		CHECK(SSL_CTX_set_max_proto_version(other.context, versions[i]) == 1);
		CHECK(SSL_CTX_set_cipher_list(other.context, "PSK") == 1);
		CHECK(meet(&other) == (i == 0) && other.happy == (i == 0));
		SSL_CTX_free(other.context);
	}
}

int
main(void)
{
	test_certificate();
	test_no_key();
	test_versions();
	return check_finish();
}
