/*
 * fence.h
 *	  The one fence that C has no cheap name for; src/README, "Order of memory", tells what needs it.
 */
#ifndef SMART_BASE_FENCE_H
#define SMART_BASE_FENCE_H

/*
 * Stands behind a sequentially consistent exchange, addition or CAS that took effect, and makes it a full fence: what
 * was stored is visible before anything is loaded that comes next.  On x86-64 it is one already.  On arm64 a plain or
 * acquire load may be carried out before what the exchange stores is visible.
 */
static inline void
smart_fence_after_atomic(void)
{
#if defined(__x86_64__)
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#endif /* SMART_BASE_FENCE_H */
