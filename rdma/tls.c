/*
 * tls.c
 *	  TLS 1.3 with a pre-shared key, by OpenSSL.
 *
 * OpenSSL's own socket BIO writes with write(), which raises SIGPIPE when the
 * other side has gone; ours sends with MSG_NOSIGNAL.
 *
 * Both sides prove the key within the handshake: the client by the binder in
 * its first message, the server by finishing a handshake that uses it.  A server
 * has no certificate to offer instead, and a client accepts none.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/assert.h"
#include "rdma/tls.h"

static const unsigned char identity[] = {'s', 'm', 'a', 'r', 't'};
static const unsigned char cipher_suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */

struct tls
{
	SSL *ssl;
	int descriptor;
	int error;                   /* errno of the socket's last failure; 0: none, or the other side closed */
	bool ready;                  /* the handshake is over */
	bool broken;                 /* OpenSSL must not be called again */
	struct stream_secret secret; /* until the handshake is over */
	char problem[128];
};

/* ---- the socket, as OpenSSL sees it ---- */

static bool
would_block(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int
socket_write(BIO *bio, const char *bytes, int length)
{
	struct tls *tls = BIO_get_data(bio);
	ssize_t sent = send(tls->descriptor, bytes, (size_t) length, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && would_block(errno))
		BIO_set_retry_write(bio);
	else if (sent < 0)
		tls->error = errno;
	return (int) sent;
}

static int
socket_read(BIO *bio, char *bytes, int length)
{
	struct tls *tls = BIO_get_data(bio);
	ssize_t got = recv(tls->descriptor, bytes, (size_t) length, 0);

	BIO_clear_retry_flags(bio);
	if (got < 0 && would_block(errno))
		BIO_set_retry_read(bio);
	else if (got < 0)
		tls->error = errno;
	return (int) got;
}

static long
socket_control(BIO *bio, int command, long number, void *pointer)
{
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static int
socket_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

/* ---- the key ---- */

/* The key in the form in which OpenSSL takes it: a session to be resumed. */
static SSL_SESSION *
make_session(SSL *ssl, const struct stream_secret *secret)
{
	SSL_SESSION *session = SSL_SESSION_new();
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_suite);

	if (session != NULL && cipher != NULL && SSL_SESSION_set1_master_key(session, secret->key, secret->length) == 1 &&
		SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int
client_session(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *id_length, SSL_SESSION **session)
{
	const struct tls *tls = SSL_get_app_data(ssl);

	*id = identity;
	*id_length = sizeof(identity);
	*session = make_session(ssl, &tls->secret);
	return *session != NULL;
}

/* Another identity finds no session, and then the handshake fails, since there is no certificate. */
static int
server_session(SSL *ssl, const unsigned char *id, size_t id_length, SSL_SESSION **session)
{
	const struct tls *tls = SSL_get_app_data(ssl);

	*session = NULL;
	if (id_length != sizeof(identity) || memcmp(id, identity, sizeof(identity)) != 0)
		return 1;
	*session = make_session(ssl, &tls->secret);
	return *session != NULL;
}

/* ---- what all connections of the process share ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method;
static SSL_CTX *contexts[2]; /* of clients, of servers; NULL: OpenSSL failed */

static SSL_CTX *
make_context(bool server)
{
	SSL_CTX *context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

	if (context == NULL)
		return NULL;
	if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
		SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 || SSL_CTX_set_num_tickets(context, 0) != 1)
	{
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* One recv() for a record, not one for its header and one for its body. */
	SSL_CTX_set_read_ahead(context, 1);
	if (server)
	{
		/* A memory node has many connections, most of them idle. */
		SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
		SSL_CTX_set_psk_find_session_callback(context, server_session);
	}
	else
	{
		/* Without an authority to trust, no certificate is accepted. */
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_psk_use_session_callback(context, client_session);
	}
	return context;
}

static void
prepare(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "smart socket");
	if (method == NULL || BIO_meth_set_write(method, socket_write) != 1 ||
		BIO_meth_set_read(method, socket_read) != 1 || BIO_meth_set_ctrl(method, socket_control) != 1 ||
		BIO_meth_set_create(method, socket_create) != 1)
		return;
	contexts[0] = make_context(false);
	contexts[1] = make_context(true);
}

/* ---- one connection ---- */

static bool
attach(struct tls *tls, bool server)
{
	BIO *bio;

	tls->ssl = SSL_new(contexts[server]);
	if (tls->ssl == NULL)
		return false;
	bio = BIO_new(method);
	if (bio == NULL)
	{
		SSL_free(tls->ssl);
		return false;
	}
	BIO_set_data(bio, tls);
	/* The SSL owns the BIO from here on. */
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_app_data(tls->ssl, tls);
	if (server)
		SSL_set_accept_state(tls->ssl);
	else
		SSL_set_connect_state(tls->ssl);
	return true;
}

struct tls *
tls_open(int descriptor, bool server, const struct stream_secret *secret)
{
	struct tls *tls;

	smart_assert(secret->length >= STREAM_SECRET_MIN && secret->length <= STREAM_SECRET_MAX);
	if (pthread_once(&once, prepare) != 0 || contexts[server] == NULL)
		return NULL;
	tls = calloc(1, sizeof(*tls));
	if (tls == NULL)
		return NULL;
	tls->descriptor = descriptor;
	tls->secret = *secret;
	if (!attach(tls, server))
	{
		OPENSSL_cleanse(tls, sizeof(*tls));
		free(tls);
		ERR_clear_error();
		return NULL;
	}
	return tls;
}

/* What a failed handshake means between a client and a memory node; NULL: something else. */
static const char *
explain_handshake(unsigned long code)
{
	if (code == 0 || ERR_GET_LIB(code) != ERR_LIB_SSL)
		return NULL;
	switch (ERR_GET_REASON(code))
	{
		case SSL_R_BINDER_DOES_NOT_VERIFY:
		case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
		case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
		case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
			return "the other side does not have the same secret key";
		case SSL_R_WRONG_VERSION_NUMBER:
		case SSL_R_HTTP_REQUEST:
		case SSL_R_UNEXPECTED_MESSAGE:
		case SSL_R_RECORD_LENGTH_MISMATCH:
		case SSL_R_PACKET_LENGTH_TOO_LONG:
		case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
			return "the other side does not use TLS: it may have no secret key";
		default:
			return NULL;
	}
}

/* The other side closed, or reset: in a handshake most likely because it did not understand TLS. */
static bool
is_end(const struct tls *tls, unsigned long code)
{
	if (tls->error != 0)
		return tls->error == ECONNRESET || tls->error == EPIPE;
	return code == 0 ||
		   (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
}

static void
set_problem(struct tls *tls, unsigned long code)
{
	const char *meaning = tls->ready ? NULL : explain_handshake(code);

	if (meaning != NULL)
		snprintf(tls->problem, sizeof(tls->problem), "%s", meaning);
	else if (is_end(tls, code))
		snprintf(tls->problem, sizeof(tls->problem), "the other side has closed the connection%s",
				 tls->ready ? "" : " instead of using TLS: it may have no secret key");
	else if (tls->error != 0)
		snprintf(tls->problem, sizeof(tls->problem), "%s", strerror(tls->error));
	else
		snprintf(tls->problem, sizeof(tls->problem), "TLS failed: %s", ERR_reason_error_string(code));
}

/* The outcome of a call of OpenSSL that returned result. */
static enum stream_wait
outcome(struct tls *tls, int result)
{
	if (result == 1)
		return STREAM_DONE;
	switch (SSL_get_error(tls->ssl, result))
	{
		case SSL_ERROR_WANT_READ:
			return STREAM_WANT_READ;
		case SSL_ERROR_WANT_WRITE:
			return STREAM_WANT_WRITE;
		default:
			break;
	}
	set_problem(tls, ERR_peek_error());
	ERR_clear_error();
	tls->broken = true;
	return STREAM_CLOSED;
}

enum stream_wait
tls_handshake(struct tls *tls)
{
	enum stream_wait wait;

	if (tls->broken)
		return STREAM_CLOSED;
	if (tls->ready)
		return STREAM_DONE;
	/* The process may use OpenSSL for other things, whose errors are not ours. */
	ERR_clear_error();
	wait = outcome(tls, SSL_do_handshake(tls->ssl));
	if (wait != STREAM_DONE)
		return wait;
	OPENSSL_cleanse(&tls->secret, sizeof(tls->secret));
	tls->ready = true;
	if (SSL_session_reused(tls->ssl))
		return STREAM_DONE;
	snprintf(tls->problem, sizeof(tls->problem), "the other side did not use the secret key");
	tls->broken = true;
	return STREAM_CLOSED;
}

enum stream_wait
tls_read(struct tls *tls, uint8_t *bytes, size_t length, size_t *moved)
{
	smart_assert(tls->ready || tls->broken);
	if (tls->broken)
		return STREAM_CLOSED;
	ERR_clear_error();
	return outcome(tls, SSL_read_ex(tls->ssl, bytes, length, moved));
}

enum stream_wait
tls_write(struct tls *tls, const uint8_t *bytes, size_t length, size_t *moved)
{
	smart_assert(tls->ready || tls->broken);
	if (tls->broken)
		return STREAM_CLOSED;
	ERR_clear_error();
	return outcome(tls, SSL_write_ex(tls->ssl, bytes, length, moved));
}

const char *
tls_problem(const struct tls *tls)
{
	return tls->problem;
}

void
tls_close(struct tls *tls)
{
	SSL_free(tls->ssl);
	OPENSSL_cleanse(tls, sizeof(*tls));
	free(tls);
}
