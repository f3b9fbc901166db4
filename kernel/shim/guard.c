/* Signals become a record of where the code was, for the process that waits. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
#include "abi.h"

#define STACK_BYTES 65536
/* How far up the stack to look for the caller when the signal is outside the object. */
#define SCAN_WORDS 512

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static struct kshim_crash *kshim_record;

static int is_code(uintptr_t address)
{
	return address >= (uintptr_t)__ehdr_start && address < (uintptr_t)etext;
}

static void add_frame(uintptr_t address)
{
	if (is_code(address) && kshim_record->depth < sizeof(kshim_record->frames) / sizeof(kshim_record->frames[0]))
		kshim_record->frames[kshim_record->depth++] = address - (uintptr_t)__ehdr_start;
}

static void registers(const ucontext_t *context, uintptr_t *pc, uintptr_t *sp, uintptr_t *fp)
{
#if defined(__x86_64__)
	*pc = context->uc_mcontext.gregs[REG_RIP];
	*sp = context->uc_mcontext.gregs[REG_RSP];
	*fp = context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
	*pc = context->uc_mcontext.pc;
	*sp = context->uc_mcontext.sp;
	*fp = context->uc_mcontext.regs[29];
#else
	(void)context;
	*pc = *sp = *fp = 0;
#endif
}

/* The object keeps frame pointers; a frame further up the stack and aligned is taken as one. */
static void walk(uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
	add_frame(pc);
	for (int i = 0; !kshim_record->depth && sp && i < SCAN_WORDS; i++)
		add_frame(((const uintptr_t *)sp)[i]);
	while (fp > sp && fp - sp < STACK_BYTES * 16 && fp % sizeof(fp) == 0) {
		const uintptr_t *frame = (const uintptr_t *)fp;

		add_frame(frame[1] - 1);
		if (frame[0] <= fp)
			break;
		fp = frame[0];
	}
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	uintptr_t pc, sp, fp;

	kshim_record->signal = signal;
	kshim_record->address = (uintptr_t)info->si_addr;
	if (signal == SIGSYS)
		kshim_record->system_call = info->si_syscall;
	registers(context, &pc, &sp, &fp);
	/* After a system call the next instruction is current. */
	walk(signal == SIGSYS ? pc - 1 : pc, sp, fp);
	_exit(EXIT_FAILURE);
}

int kshim_guard(struct kshim_crash *crash)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGXCPU, SIGALRM };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND };
	stack_t stack = { .ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES };

	if (!stack.ss_sp || sigaltstack(&stack, NULL))
		return -1;
	kshim_record = crash;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sigaction(signals[i], &action, NULL))
			return -1;
	return 0;
}
