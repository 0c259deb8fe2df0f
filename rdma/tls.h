/*
 * tls.h
 *	  TLS 1.3 with a pre-shared key over a socket, for stream.c.
 *
 * One cipher suite, TLS_AES_128_GCM_SHA256: its key schedule takes a pre-shared
 * key of any length through HMAC-SHA-256, so that 16 to 64 bytes count in full.
 * The keys of a connection come from a Diffie-Hellman exchange as well as from
 * the pre-shared key: who learns that key later cannot read what was recorded.
 * There are no certificates, no tickets and no early data.
 */
#ifndef SMART_RDMA_TLS_H
#define SMART_RDMA_TLS_H

#include "rdma/stream.h"

struct tls;

/* NULL: no memory, or OpenSSL cannot do it.  The socket stays the caller's. */
extern struct tls *tls_open(int descriptor, bool server, const struct stream_secret *secret);

/* As the stream_ functions of these names. */
extern enum stream_wait tls_handshake(struct tls *tls);
extern enum stream_wait tls_read(struct tls *tls, uint8_t *bytes, size_t length, size_t *moved);
extern enum stream_wait tls_write(struct tls *tls, const uint8_t *bytes, size_t length, size_t *moved);
extern const char *tls_problem(const struct tls *tls);

/* Frees it, without a word to the other side. */
extern void tls_close(struct tls *tls);

#endif /* SMART_RDMA_TLS_H */
