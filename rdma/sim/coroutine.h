/*
 * coroutine.h
 *	  Stacks that hand the processor to each other: what simulated clients run on.
 */
#ifndef SMART_RDMA_SIM_COROUTINE_H
#define SMART_RDMA_SIM_COROUTINE_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

struct coroutine
{
	void *stack; /* NULL: the program's own */
#if defined(__x86_64__) || defined(__aarch64__)
	void *stack_pointer;
#else
	ucontext_t context;
#endif
};

/* entry() runs at the next switch to the coroutine, and must not return. */
extern void coroutine_prepare(struct coroutine *coroutine, void (*entry)(void));

extern void coroutine_switch(struct coroutine *from, struct coroutine *to);

/* Gives the stack back, of a coroutine that is not running. */
extern void coroutine_release(struct coroutine *coroutine);

#endif /* SMART_RDMA_SIM_COROUTINE_H */
