/*
 * coroutine.c
 *	  Switching stacks.
 *
 * swapcontext() asks the kernel for the signal mask at every switch, which
 * would be most of a simulated history's time; x86-64 has its own switch of the
 * registers that a function call preserves, other machines use ucontext.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "rdma/sim/coroutine.h"

#define STACK_BYTES (256 * 1024)
#define GUARD_BYTES 4096

/* A stack with a page below it that must not be touched. */
static void *
make_stack(void)
{
	char *memory = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0)
		abort();
	return memory + GUARD_BYTES;
}

void
coroutine_release(struct coroutine *coroutine)
{
	if (coroutine->stack != NULL)
		munmap((char *) coroutine->stack - GUARD_BYTES, STACK_BYTES + GUARD_BYTES);
	coroutine->stack = NULL;
}

#if defined(__x86_64__)

/* void switch_stacks(void **save, void *load): registers that a callee preserves go to the old stack. */
extern void smart_sim_switch_stacks(void **save, void *load);

__asm__(".text\n"
		".globl smart_sim_switch_stacks\n"
		".type smart_sim_switch_stacks, @function\n"
		"smart_sim_switch_stacks:\n"
		"	pushq %rbp\n"
		"	pushq %rbx\n"
		"	pushq %r12\n"
		"	pushq %r13\n"
		"	pushq %r14\n"
		"	pushq %r15\n"
		"	movq %rsp, (%rdi)\n"
		"	movq %rsi, %rsp\n"
		"	popq %r15\n"
		"	popq %r14\n"
		"	popq %r13\n"
		"	popq %r12\n"
		"	popq %rbx\n"
		"	popq %rbp\n"
		"	ret\n"
		".size smart_sim_switch_stacks, .-smart_sim_switch_stacks\n");

void
coroutine_prepare(struct coroutine *coroutine, void (*entry)(void))
{
	void **top;

	if (coroutine->stack == NULL)
		coroutine->stack = make_stack();
	top = (void **) (void *) ((char *) coroutine->stack + STACK_BYTES);
	/* As after a call: entry() sees a stack that is 16-byte aligned but for its return address. */
	*--top = NULL;
	*--top = (void *) entry;
	for (int i = 0; i < 6; i++)
		*--top = NULL;
	coroutine->stack_pointer = top;
}

void
coroutine_switch(struct coroutine *from, struct coroutine *to)
{
	smart_sim_switch_stacks(&from->stack_pointer, to->stack_pointer);
}

#else

void
coroutine_prepare(struct coroutine *coroutine, void (*entry)(void))
{
	if (coroutine->stack == NULL)
		coroutine->stack = make_stack();
	if (getcontext(&coroutine->context) != 0)
		abort();
	coroutine->context.uc_stack.ss_sp = coroutine->stack;
	coroutine->context.uc_stack.ss_size = STACK_BYTES;
	coroutine->context.uc_link = NULL;
	makecontext(&coroutine->context, entry, 0);
}

void
coroutine_switch(struct coroutine *from, struct coroutine *to)
{
	if (swapcontext(&from->context, &to->context) != 0)
		abort();
}

#endif
