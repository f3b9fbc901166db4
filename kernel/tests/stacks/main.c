/* Switches stacks and replays tasks, and prints what came of it: the same wherever it runs. */
#include <stdbool.h>
#include <stdio.h>
#include "shim/switch.c"
#include "shim/abi.h"

#if defined(__x86_64__)
#define KEPT "+x"
#elif defined(__aarch64__)
#define KEPT "+w"
#else
#define KEPT "+m"
#endif
#define COUNT 4
#define ROUNDS 1000

static void *stacks[COUNT], *sp[COUNT], *caller;
static int running, left[COUNT];
static bool wrong;

static double part(int task, int round, int i)
{
	return task * 1e6 + round * 100 + i + 0.5;
}

/* More values than there are registers that calls keep, alive over a switch. */
static void keep(int task, int round, int depth)
{
	double d[12];
	long n[12];

	for (int i = 0; i < 12; i++) {
		d[i] = part(task, round, i);
		n[i] = (long)task << 40 | (long)round << 8 | i;
		__asm__ volatile("" : KEPT(d[i]), "+r"(n[i]));
	}
	if (depth)
		keep(task, round, depth - 1);
	else
		kshim_switch(&sp[task], caller);
	for (int i = 0; i < 12; i++) {
		__asm__ volatile("" : KEPT(d[i]), "+r"(n[i]));
		if (d[i] != part(task, round, i) || n[i] != ((long)task << 40 | (long)round << 8 | i))
			wrong = true;
	}
}

static void task(void)
{
	int me = running;

	/* Calls rely on it. */
	if ((uintptr_t)__builtin_frame_address(0) % 16)
		wrong = true;
	for (int round = 0; round < ROUNDS; round++, left[me]--)
		keep(me, round, round % 20);
	for (;;)
		kshim_switch(&sp[me], caller);
}

static void switch_stacks(void)
{
	unsigned int random = 1;
	int ended = 0;

	for (int i = 0; i < COUNT; i++) {
		stacks[i] = kshim_stack_take();
		sp[i] = kshim_stack_begin((char *)stacks[i] - 4096, task);
		left[i] = ROUNDS;
	}
	while (ended < COUNT) {
		double before = part(7, random % 100, 3);
		int was;

		random = random * 1103515245 + 12345;
		running = random >> 16 & (COUNT - 1);
		was = left[running];
		__asm__ volatile("" : KEPT(before));
		kshim_switch(&caller, sp[running]);
		__asm__ volatile("" : KEPT(before));
		ended += was && !left[running];
		wrong |= before < 7e6;
	}
	for (int i = 0; i < COUNT; i++)
		kshim_stack_give(stacks[i]);
	printf("stacks: %s\n", wrong ? "mixed up" : "kept apart");
}

static struct kshim_access access_of(int kind, uint64_t page, uint64_t pages, uint32_t task)
{
	return (struct kshim_access){
		.kind = kind, .pos = page << 12, .len = pages << 12, .until = UINT64_MAX, .task = task,
		.stops = KSHIM_STOP_AFTER_COPY,
	};
}

static void replay_tasks(void)
{
	struct kshim_settings settings = {
		.i_size = 1 << 20, .ra_pages = 4, .io_pages = 128, .max_order = 9, .completion = KSHIM_WHEN_TOLD,
	};
	struct kshim_access accesses[] = {
		access_of(KSHIM_READ, 0, 10, 0), access_of(KSHIM_READ, 2, 9, 1),
		access_of(KSHIM_COMPLETE, 0, 8, KSHIM_NO_TASK),
		access_of(KSHIM_GO_ON, 0, 0, 1), access_of(KSHIM_GO_ON, 0, 0, 0),
		access_of(KSHIM_COMPLETE, 8, 8, KSHIM_NO_TASK),
		access_of(KSHIM_GO_ON, 0, 0, 0), access_of(KSHIM_GO_ON, 0, 0, 1),
	};
	struct kshim *k = kshim_new(&settings);
	const struct kshim_decision *d;
	uint64_t progress;
	size_t n;

	kshim_open(k);
	n = kshim_replay(k, accesses, sizeof(accesses) / sizeof(*accesses), &progress);
	printf("replayed %zu of %zu, stopped %u\n", n, sizeof(accesses) / sizeof(*accesses), kshim_stopped(k)->kind);
	d = kshim_decisions(k, &n);
	for (; n--; d++)
		printf("%u: kind %u order %u index %lu n %u\n", d->access, d->kind, d->order, (unsigned long)d->index, d->n);
	kshim_free(k);
}

int main(void)
{
	switch_stacks();
	replay_tasks();
	return 0;
}
