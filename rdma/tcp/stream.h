/*
 * stream.h
 *	  A byte stream to the other side of a connection: TCP, with TLS 1.3 and a
 *	  pre-shared key where there is a key.
 *
 * Streams do not block.  A call that cannot go on says what it waits for.
 */
#ifndef SMART_RDMA_STREAM_H
#define SMART_RDMA_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define STREAM_SECRET_MIN 16 /* bytes of key */
#define STREAM_SECRET_MAX 64
#define STREAM_KEYS_MAX   4

enum stream_wait
{
	STREAM_DONE,       /* the call did something */
	STREAM_WANT_READ,  /* call again when the descriptor can be read */
	STREAM_WANT_WRITE, /* … can be written */
	STREAM_CLOSED      /* the other side has closed, or the connection is lost: stream_problem tells why */
};

/* A key. */
struct stream_secret
{
	uint8_t key[STREAM_SECRET_MAX];
	size_t length; /* bytes; 0: no key, no TLS */
};

/* The keys that a server accepts. */
struct stream_keys
{
	unsigned int count; /* 0: no key, no TLS */
	struct stream_secret key[STREAM_KEYS_MAX];
};

struct stream;

/*
 * Reads a key file: up to STREAM_KEYS_MAX lines of hexadecimal digits, STREAM_SECRET_MIN to STREAM_SECRET_MAX bytes
 * each.  It must belong to this user (or root) and be closed to everyone else (no group or
 * world bit).  SMART_UNREACHABLE: problem[] says why.
 */
extern smart_status stream_keys_read(const char *path, struct stream_keys *keys, char *problem, size_t size);

/* The same, for a client: the first of the keys. */
extern smart_status stream_secret_read(const char *path, struct stream_secret *secret, char *problem, size_t size);

/*
 * What a key is called where the key itself must not be seen: the same everywhere, and nobody can learn the key from
 * it.  Not 0.
 */
extern uint64_t stream_key_name(const struct stream_secret *secret);

/*
 * A stream over a connected, non-blocking socket, which it owns from now on (also when it fails): a client's, with its
 * key, which it names, and a server's, with those that it accepts.  No key: plain.  NULL: no memory or OpenSSL failed.
 */
extern struct stream *stream_open(int descriptor, const struct stream_secret *secret);
extern struct stream *stream_accept(int descriptor, const struct stream_keys *keys);

/* The TLS handshake; STREAM_DONE when it is over (at once without a key).  Call until then. */
extern enum stream_wait stream_handshake(struct stream *stream);

/*
 * Moves up to length bytes; *moved (> 0) on STREAM_DONE.  Bytes may lie decrypted in the
 * stream, where no poll() sees them: read until STREAM_WANT_READ before waiting.  After
 * STREAM_WANT_WRITE the next write must begin with the same bytes, and have no fewer of them.
 */
extern enum stream_wait stream_read(struct stream *stream, uint8_t *bytes, size_t length, size_t *moved);
extern enum stream_wait stream_write(struct stream *stream, const uint8_t *bytes, size_t length, size_t *moved);

/* The name of the key that the other side has shown; 0: none (yet). */
extern uint64_t stream_key_used(const struct stream *stream);

/*
 * soon: has the kernel ask the other host each second whether it is there, from now on; else as seldom as at first.
 * And for how long nothing has come from it, not even an acknowledgement; 0: not known.
 */
extern void stream_probe(struct stream *stream, bool soon);
extern unsigned int stream_silent_ms(const struct stream *stream);

extern int stream_descriptor(const struct stream *stream);

/* Why STREAM_CLOSED: an English phrase. */
extern const char *stream_problem(const struct stream *stream);

/* Is a problem, of stream_secret_read(), a stream or a session, with the key?  Each of those names it. */
extern bool stream_problem_is_of_secret(const char *problem);

/* Closes the socket at once; bytes that have not left this host are dropped. */
extern void stream_close(struct stream *stream);

#endif /* SMART_RDMA_STREAM_H */
