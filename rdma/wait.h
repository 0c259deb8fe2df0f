/*
 * wait.h
 *	  Waiting for a socket, a slice at a time.
 */
#ifndef SMART_RDMA_WAIT_H
#define SMART_RDMA_WAIT_H

#include "base/env.h"
#include "base/status.h"

/*
 * Sleeps a moment, or until the descriptor can be read (or written, if to_write):
 * SMART_OK, and the caller tries again.  SMART_INTERRUPTED, SMART_TIMEOUT: it has to stop.
 */
extern smart_status wait_slice(struct smart_env *env, int descriptor, bool to_write, uint64_t deadline_ns);

/* Milliseconds until deadline_ns, rounded up; 0: it is over. */
extern uint32_t wait_remaining_ms(struct smart_env *env, uint64_t deadline_ns);

#endif /* SMART_RDMA_WAIT_H */
