/*
 * stream.c
 *	  Byte streams over sockets, plain or through TLS.
 *
 * A peer whose host has gone sends no more packets, so the kernel is told to ask: an idle connection is probed, and one
 * that gets no acknowledgement is given up.  In this way a memory node learns that a lease has no holder any more.
 *
 * TLS is 1.3 with a pre-shared key, by OpenSSL, with one cipher suite, TLS_AES_128_GCM_SHA256: its key schedule takes a
 * pre-shared key of any length through HMAC-SHA-256, so that 16 to 64 bytes count in full.  The keys of a connection
 * come from a Diffie-Hellman exchange as well as from the pre-shared key: an attacker who learns that key later cannot
 * read what was recorded.  There are no certificates, no tickets and no early data.
 *
 * The client names its key (stream_key_name), so that a server can accept several for a while.  Nothing more is known
 * by that than before: the binder in the same message also lets a listener try keys.
 *
 * Both sides prove the key within the handshake: the client by the binder in its first message, the server by finishing
 * a handshake that uses it.  A server has no certificate to offer instead, and a client accepts none.
 *
 * OpenSSL's own socket BIO writes with write(), which raises SIGPIPE when the other side has gone; ours sends with
 * MSG_NOSIGNAL.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sockios.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/assert.h"
#include "rdma/tcp/stream.h"

#define PROBE_AFTER_S     10
#define PROBE_EVERY_S     3
#define PROBES            4
#define UNACKNOWLEDGED_MS 20000
#define PROBE_SOON_S      1 /* after, and every, where somebody waits for the answer */
#define IDENTITY_MAX      32

struct stream
{
	int descriptor;
	char problem[128];

	/* TLS. */
	SSL *ssl;                    /* NULL: plain */
	int error;                   /* errno of the socket's last failure; 0: none, or the other side closed */
	bool ready;                  /* the handshake is over */
	bool broken;                 /* OpenSSL must not be called again */
	struct stream_keys *keys;    /* until the handshake is over; a client's is the first */
	uint64_t key_used;           /* its name; a server knows it when the client has said it */
	char identity[IDENTITY_MAX]; /* what a client calls its key */
};

/* The identity is this, a dot, and the key's name in hexadecimal digits. */
#define IDENTITY "smart"

static const unsigned char cipher_suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */

/* ---- the socket, as OpenSSL sees it ---- */

static bool
would_block(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int
socket_write(BIO *bio, const char *bytes, int length)
{
	struct stream *stream = BIO_get_data(bio);
	ssize_t sent = send(stream->descriptor, bytes, (size_t) length, MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && would_block(errno))
		BIO_set_retry_write(bio);
	else if (sent < 0)
		stream->error = errno;
	return (int) sent;
}

static int
socket_read(BIO *bio, char *bytes, int length)
{
	struct stream *stream = BIO_get_data(bio);
	ssize_t got = recv(stream->descriptor, bytes, (size_t) length, 0);

	BIO_clear_retry_flags(bio);
	if (got < 0 && would_block(errno))
		BIO_set_retry_read(bio);
	else if (got < 0)
		stream->error = errno;
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
	const struct stream *stream = SSL_get_app_data(ssl);

	*id = (const unsigned char *) stream->identity;
	*id_length = strlen(stream->identity);
	*session = make_session(ssl, &stream->keys->key[0]);
	return *session != NULL;
}

static void
put_identity(char identity[IDENTITY_MAX], uint64_t name)
{
	snprintf(identity, IDENTITY_MAX, IDENTITY ".%016llx", (unsigned long long) name);
}

/* The key that an identity means, or NULL. */
static const struct stream_secret *
find_key(const struct stream_keys *keys, const unsigned char *id, size_t id_length)
{
	char identity[IDENTITY_MAX];

	smart_assert(keys->count <= STREAM_KEYS_MAX);
	for (unsigned int i = 0; i < keys->count; i++)
	{
		put_identity(identity, stream_key_name(&keys->key[i]));
		if (id_length == strlen(identity) && memcmp(id, identity, id_length) == 0)
			return &keys->key[i];
	}
	return NULL;
}

/* Another identity finds no session, and then the handshake fails, since there is no certificate. */
static int
server_session(SSL *ssl, const unsigned char *id, size_t id_length, SSL_SESSION **session)
{
	struct stream *stream = SSL_get_app_data(ssl);
	const struct stream_secret *key = find_key(stream->keys, id, id_length);

	*session = NULL;
	if (key == NULL)
		return 1;
	stream->key_used = stream_key_name(key);
	*session = make_session(ssl, key);
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

/* ---- TLS of a connection ---- */

/* False: no memory, or OpenSSL cannot do it. */
static bool
begin_tls(struct stream *stream, bool server)
{
	BIO *bio;

	smart_assert(stream->ssl == NULL);
	smart_assert(stream->keys->count > 0 && stream->keys->key[0].length >= STREAM_SECRET_MIN);
	if (pthread_once(&once, prepare) != 0 || contexts[server] == NULL)
		return false;
	stream->ssl = SSL_new(contexts[server]);
	bio = stream->ssl != NULL ? BIO_new(method) : NULL;
	if (bio == NULL)
	{
		SSL_free(stream->ssl);
		ERR_clear_error();
		return false;
	}
	smart_assert(!stream->ready && !stream->broken);
	BIO_set_data(bio, stream);
	/* The SSL owns the BIO from here on. */
	SSL_set_bio(stream->ssl, bio, bio);
	SSL_set_app_data(stream->ssl, stream);
	if (server)
		SSL_set_accept_state(stream->ssl);
	else
		SSL_set_connect_state(stream->ssl);
	return true;
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
		case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM: /* no key that it has named, and there is no certificate */
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

static void
set_tls_problem(struct stream *stream, unsigned long code)
{
	const char *meaning = stream->ready ? NULL : explain_handshake(code);
	bool closed = stream->error == ECONNRESET || stream->error == EPIPE;

	if (stream->error == 0)
		closed = code == 0 ||
				 (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
	if (meaning != NULL)
		snprintf(stream->problem, sizeof(stream->problem), "%s", meaning);
	else if (closed)
		/* A memory node does so if it does not understand TLS, or has more connections than it can serve. */
		snprintf(stream->problem, sizeof(stream->problem), "the other side has closed the connection%s%s",
				 stream->ready ? "" : " before the handshake was over",
				 stream->ready || SSL_is_server(stream->ssl) ? "" : ": it has ended, has no secret key, or is full");
	else if (stream->error != 0)
		snprintf(stream->problem, sizeof(stream->problem), "%s", strerror(stream->error));
	else
		snprintf(stream->problem, sizeof(stream->problem), "TLS failed: %s", ERR_reason_error_string(code));
}

/* The outcome of a call of OpenSSL that returned result. */
static enum stream_wait
tls_outcome(struct stream *stream, int result)
{
	smart_assert(!stream->broken);
	if (result == 1)
		return STREAM_DONE;
	switch (SSL_get_error(stream->ssl, result))
	{
		case SSL_ERROR_WANT_READ:
			return STREAM_WANT_READ;
		case SSL_ERROR_WANT_WRITE:
			return STREAM_WANT_WRITE;
		default:
			break;
	}
	set_tls_problem(stream, ERR_peek_error());
	ERR_clear_error();
	stream->broken = true;
	return STREAM_CLOSED;
}

/* ---- streams ---- */

static void
forget_keys(struct stream *stream)
{
	if (stream->keys == NULL)
		return;
	OPENSSL_cleanse(stream->keys, sizeof(*stream->keys));
	free(stream->keys);
	stream->keys = NULL;
}

/* A stream over a socket, which is its own; keys: copied, and not looked at if there are none. */
static struct stream *
make_stream(int descriptor, bool server, const struct stream_keys *keys)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	smart_assert(descriptor >= 0 && keys->count <= STREAM_KEYS_MAX);
	if (stream == NULL)
		return NULL;
	stream->descriptor = descriptor;
	if (keys->count == 0)
		return stream;
	stream->keys = malloc(sizeof(*stream->keys));
	if (stream->keys != NULL)
	{
		*stream->keys = *keys;
		stream->key_used = server ? 0 : stream_key_name(&keys->key[0]);
		put_identity(stream->identity, stream->key_used);
		if (begin_tls(stream, server))
			return stream;
	}
	forget_keys(stream);
	free(stream);
	return NULL;
}

static struct stream *
open_stream(int descriptor, bool server, const struct stream_keys *keys)
{
	static const struct
	{
		int level;
		int option;
		int value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY_S},
		{IPPROTO_TCP, TCP_KEEPCNT, PROBES},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS},
	};
	struct stream *stream = make_stream(descriptor, server, keys);

	if (stream == NULL)
	{
		close(descriptor);
		return NULL;
	}
	/* What a socket that is not TCP's refuses, it does not need. */
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(descriptor, options[i].level, options[i].option, &options[i].value, sizeof(options[i].value));
	return stream;
}

struct stream *
stream_open(int descriptor, const struct stream_secret *secret)
{
	struct stream_keys keys = {.count = secret->length > 0, .key = {*secret}};
	struct stream *stream = open_stream(descriptor, false, &keys);

	smart_assert(secret->length <= STREAM_SECRET_MAX);
	OPENSSL_cleanse(&keys, sizeof(keys));
	return stream;
}

struct stream *
stream_accept(int descriptor, const struct stream_keys *keys)
{
	return open_stream(descriptor, true, keys);
}

enum stream_wait
stream_handshake(struct stream *stream)
{
	enum stream_wait wait;

	if (stream->broken)
		return STREAM_CLOSED;
	if (stream->ssl == NULL || stream->ready)
		return STREAM_DONE;
	/* The process may use OpenSSL for other things, whose errors are not ours. */
	ERR_clear_error();
	wait = tls_outcome(stream, SSL_do_handshake(stream->ssl));
	if (wait != STREAM_DONE)
		return wait;
	smart_assert(!stream->ready && stream->keys != NULL);
	forget_keys(stream);
	stream->ready = true;
	if (SSL_session_reused(stream->ssl))
		return STREAM_DONE;
	snprintf(stream->problem, sizeof(stream->problem), "the other side did not use the secret key");
	stream->broken = true;
	return STREAM_CLOSED;
}

/* The outcome of a recv() or send() that returned result. */
static enum stream_wait
outcome(struct stream *stream, ssize_t result, enum stream_wait blocked, size_t *moved)
{
	smart_assert(blocked == STREAM_WANT_READ || blocked == STREAM_WANT_WRITE);
	if (result > 0)
	{
		*moved = (size_t) result;
		return STREAM_DONE;
	}
	if (result < 0 && would_block(errno))
		return blocked;
	snprintf(stream->problem, sizeof(stream->problem), "%s",
			 result == 0 || errno == ECONNRESET || errno == EPIPE ? "the other side has closed the connection"
																  : strerror(errno));
	return STREAM_CLOSED;
}

enum stream_wait
stream_read(struct stream *stream, uint8_t *bytes, size_t length, size_t *moved)
{
	smart_assert(length > 0 && (stream->ssl == NULL || stream->ready || stream->broken));
	if (stream->ssl == NULL)
		return outcome(stream, recv(stream->descriptor, bytes, length, 0), STREAM_WANT_READ, moved);
	if (stream->broken)
		return STREAM_CLOSED;
	ERR_clear_error();
	return tls_outcome(stream, SSL_read_ex(stream->ssl, bytes, length, moved));
}

enum stream_wait
stream_write(struct stream *stream, const uint8_t *bytes, size_t length, size_t *moved)
{
	smart_assert(length > 0 && (stream->ssl == NULL || stream->ready || stream->broken));
	if (stream->ssl == NULL)
		return outcome(stream, send(stream->descriptor, bytes, length, MSG_NOSIGNAL), STREAM_WANT_WRITE, moved);
	if (stream->broken)
		return STREAM_CLOSED;
	ERR_clear_error();
	return tls_outcome(stream, SSL_write_ex(stream->ssl, bytes, length, moved));
}

uint64_t
stream_key_used(const struct stream *stream)
{
	return stream->ready ? stream->key_used : 0;
}

void
stream_probe(struct stream *stream, bool soon)
{
	int after = soon ? PROBE_SOON_S : PROBE_AFTER_S;
	int every = soon ? PROBE_SOON_S : PROBE_EVERY_S;

	/* The later option is the one that sets the timer. */
	setsockopt(stream->descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(stream->descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof(after));
}

unsigned int
stream_silent_ms(const struct stream *stream)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (getsockopt(stream->descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return 0;
	return info.tcpi_last_ack_recv < info.tcpi_last_data_recv ? info.tcpi_last_ack_recv : info.tcpi_last_data_recv;
}

int
stream_descriptor(const struct stream *stream)
{
	return stream->descriptor;
}

const char *
stream_problem(const struct stream *stream)
{
	return stream->problem;
}

bool
stream_problem_is_of_secret(const char *problem)
{
	return strstr(problem, "secret") != NULL;
}

void
stream_close(struct stream *stream)
{
	struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	int unsent = 0;

	SSL_free(stream->ssl);
	/* What the kernel would go on sending after close() would take effect at an unknown time: it shall drop it. */
	if (ioctl(stream->descriptor, SIOCOUTQNSD, &unsent) == 0 && unsent > 0)
		setsockopt(stream->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(stream->descriptor);
	forget_keys(stream);
	free(stream);
}
