/*
 * connect.h
 *	  A TCP connection within a time limit.
 */
#ifndef SMART_RDMA_CONNECT_H
#define SMART_RDMA_CONNECT_H

#include "base/env.h"
#include "base/status.h"

/*
 * Tries the addresses of host (a name or an address) one after the other, each for
 * its share of the time.  *descriptor: a connected, non-blocking socket.
 * SMART_UNREACHABLE, SMART_TIMEOUT, SMART_INTERRUPTED: reason[] is an English phrase.
 */
extern smart_status connect_to(struct smart_env *env, const char *host, const char *port, uint64_t deadline_ns,
							   int *descriptor, char *reason, size_t size);

#endif /* SMART_RDMA_CONNECT_H */
