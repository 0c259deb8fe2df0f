/*
 * coroutine.c
 *	  Switching stacks.
 *
 * swapcontext() asks the kernel for the signal mask at every switch, which
 * would be most of a simulated history's time; x86-64 and arm64 have a switch of their own
 * for the registers that a function call preserves, other machines use ucontext.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma/sim/coroutine.h"

#define STACK_BYTES (256 * 1024)
#define GUARD_BYTES (64 * 1024) /* the largest page of a kernel for arm64 */

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

#if defined(__x86_64__) || defined(__aarch64__)

/* void switch_stacks(void **save, void *load): registers that a callee preserves go to the old stack. */
extern void smart_sim_switch_stacks(void **save, void *load);

#if defined(__x86_64__)

#define SAVED_WORDS 7 /* six registers, and where to go on */
#define SAVED_ENTRY 6

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

#else

#define SAVED_WORDS 20 /* x19 to x30, the last of which tells where to go on; d8 to d15 */
#define SAVED_ENTRY 11

__asm__(".text\n"
		".globl smart_sim_switch_stacks\n"
		".type smart_sim_switch_stacks, %function\n"
		"smart_sim_switch_stacks:\n"
		"	sub sp, sp, #160\n"
		"	stp x19, x20, [sp]\n"
		"	stp x21, x22, [sp, #16]\n"
		"	stp x23, x24, [sp, #32]\n"
		"	stp x25, x26, [sp, #48]\n"
		"	stp x27, x28, [sp, #64]\n"
		"	stp x29, x30, [sp, #80]\n"
		"	stp d8, d9, [sp, #96]\n"
		"	stp d10, d11, [sp, #112]\n"
		"	stp d12, d13, [sp, #128]\n"
		"	stp d14, d15, [sp, #144]\n"
		"	mov x9, sp\n"
		"	str x9, [x0]\n"
		"	mov sp, x1\n"
		"	ldp x19, x20, [sp]\n"
		"	ldp x21, x22, [sp, #16]\n"
		"	ldp x23, x24, [sp, #32]\n"
		"	ldp x25, x26, [sp, #48]\n"
		"	ldp x27, x28, [sp, #64]\n"
		"	ldp x29, x30, [sp, #80]\n"
		"	ldp d8, d9, [sp, #96]\n"
		"	ldp d10, d11, [sp, #112]\n"
		"	ldp d12, d13, [sp, #128]\n"
		"	ldp d14, d15, [sp, #144]\n"
		"	add sp, sp, #160\n"
		"	ret\n"
		".size smart_sim_switch_stacks, .-smart_sim_switch_stacks\n");

#endif

void
coroutine_prepare(struct coroutine *coroutine, void (*entry)(void))
{
	void **top;

	if (coroutine->stack == NULL)
		coroutine->stack = make_stack();
	top = (void **) (void *) ((char *) coroutine->stack + STACK_BYTES);
#if defined(__x86_64__)
	/* As after a call: entry() sees a stack that is 16-byte aligned but for its return address. */
	*--top = NULL;
#endif
	top -= SAVED_WORDS;
	memset(top, 0, SAVED_WORDS * sizeof(*top));
	top[SAVED_ENTRY] = (void *) entry;
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
