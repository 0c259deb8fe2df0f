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

enum stream_wait
{
	STREAM_DONE,       /* the call did something */
	STREAM_WANT_READ,  /* call again when the descriptor can be read */
	STREAM_WANT_WRITE, /* … can be written */
	STREAM_CLOSED      /* the other side has closed, or the connection is lost: stream_problem tells why */
};

/* The key, read once per process. */
struct stream_secret
{
	uint8_t key[STREAM_SECRET_MAX];
	size_t length; /* bytes; 0: no key, no TLS */
};

struct stream;

/*
 * Reads a key file: one line of hexadecimal digits, STREAM_SECRET_MIN to STREAM_SECRET_MAX bytes.  It must
 * belong to this user (or root) and be closed to everyone else (no group or
 * world bit).  SMART_UNREACHABLE: problem[] says why.
 */
extern smart_status stream_secret_read(const char *path, struct stream_secret *secret, char *problem, size_t size);

/*
 * A stream over a connected, non-blocking socket, which it owns from now on
 * (also when it fails).  secret->length 0: plain.  NULL: no memory or OpenSSL failed.
 */
extern struct stream *stream_open(int descriptor, bool server, const struct stream_secret *secret);

/* The TLS handshake; STREAM_DONE when it is over (at once without a key).  Call until then. */
extern enum stream_wait stream_handshake(struct stream *stream);

/*
 * Moves up to length bytes; *moved (> 0) on STREAM_DONE.  Bytes may lie decrypted in the
 * stream, where no poll() sees them: read until STREAM_WANT_READ before waiting.  After
 * STREAM_WANT_WRITE the next write must begin with the same bytes, and have no fewer of them.
 */
extern enum stream_wait stream_read(struct stream *stream, uint8_t *bytes, size_t length, size_t *moved);
extern enum stream_wait stream_write(struct stream *stream, const uint8_t *bytes, size_t length, size_t *moved);

extern int stream_descriptor(const struct stream *stream);

/* Why STREAM_CLOSED: an English phrase. */
extern const char *stream_problem(const struct stream *stream);

/* Closes the socket at once; bytes that have not left this host are dropped. */
extern void stream_close(struct stream *stream);

#endif /* SMART_RDMA_STREAM_H */
