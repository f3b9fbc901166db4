/* Stacks for tasks, and going from one to another. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include "switch.h"

/* A kernel stack is 16 KiB; user space spends more on the same code. The lower half stays without
 * rights, so that a recursion without end is seen. */
#define STACK_BYTES (64u << 10)

/* Free stacks of all instances, each holding the address of the next. */
struct free_stacks { int locked; void *first; };
static struct free_stacks kshim_stacks;

static void lock(void)
{
	while (__atomic_exchange_n(&kshim_stacks.locked, 1, __ATOMIC_ACQUIRE))
		;
}

static void unlock(void)
{
	__atomic_store_n(&kshim_stacks.locked, 0, __ATOMIC_RELEASE);
}

/* The address after a stack's last byte. */
void *kshim_stack_take(void)
{
	char *memory;
	void *top;

	lock();
	top = kshim_stacks.first;
	if (top)
		kshim_stacks.first = ((void **)top)[-1];
	unlock();
	if (top)
		return top;
	memory = mmap(NULL, 2 * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	if (mprotect(memory + STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE)) {
		munmap(memory, 2 * STACK_BYTES);
		return NULL;
	}
	return memory + 2 * STACK_BYTES;
}

void kshim_stack_give(void *top)
{
	lock();
	((void **)top)[-1] = kshim_stacks.first;
	kshim_stacks.first = top;
	unlock();
}

/* A machine without code of its own here has what C libraries offer, and so has one that is told to. */
#if defined(__x86_64__) && !defined(KSHIM_UCONTEXT)
/* Registers that a call keeps, and the address to go on at. */
#define SAVED 8
#define ENTRY 6
__asm__(
	".text\n"
	".globl kshim_switch\n"
	".hidden kshim_switch\n"
	".type kshim_switch, @function\n"
	"kshim_switch:\n"
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
	".size kshim_switch, . - kshim_switch\n");
#elif defined(__aarch64__) && !defined(KSHIM_UCONTEXT)
#define SAVED 20
#define ENTRY 11
__asm__(
	".text\n"
	".globl kshim_switch\n"
	".hidden kshim_switch\n"
	".type kshim_switch, @function\n"
	"kshim_switch:\n"
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
	"	mov x2, sp\n"
	"	str x2, [x0]\n"
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
	".size kshim_switch, . - kshim_switch\n");
#else
#include <ucontext.h>
#define CONTEXTS
#endif

#ifdef CONTEXTS
/* Slower, as it asks the kernel for the signal mask each time. */
void kshim_switch(void **save, void *go_to)
{
	ucontext_t here;

	*save = &here;
	swapcontext(&here, go_to);
}

void *kshim_stack_begin(void *top, void (*entry)(void))
{
	ucontext_t *context = (ucontext_t *)(((uintptr_t)top - sizeof(*context)) & ~(uintptr_t)15);

	getcontext(context);
	context->uc_link = NULL;
	context->uc_stack.ss_sp = (char *)context - STACK_BYTES / 2;
	context->uc_stack.ss_size = STACK_BYTES / 2;
	makecontext(context, entry, 0);
	return context;
}
#else
/* A stack pointer from which kshim_switch() goes to entry; top is aligned to 16. */
void *kshim_stack_begin(void *top, void (*entry)(void))
{
	uintptr_t *sp = (uintptr_t *)top - SAVED;

	for (int i = 0; i < SAVED; i++)
		sp[i] = 0;
	sp[ENTRY] = (uintptr_t)entry;
	return sp;
}
#endif
