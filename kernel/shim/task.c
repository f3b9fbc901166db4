/* Tasks: accesses that can stand still. Each runs the tree's code on a stack of its own, as a thread
 * of the kernel does, and leaves it where the thread would sleep or where the replay holds it. */
#include "kshim.h"
#include "instance.h"
#include "switch.h"

/* Words above a task's first frame that a look up its stack may pass over. */
#define CUSHION_BYTES 4096

/* Lies at the top of its own stack. */
struct task {
	void *sp;		/* while it stands still */
	void *stack;
	struct kshim_access access;
	struct file *file;
	u8 stops;
	pgoff_t until;
	bool over;
	struct folio_batch *batch;	/* last added to */
};

/* --- running ------------------------------------------------------------------------- */
static void leave(struct kshim *k)
{
	kshim_switch(&k->task->sp, k->caller);
}

/* The first frame of every task. It never returns: its stack is taken from it. */
static void begin(void)
{
	struct kshim *k = kshim_running;

	loff_t end = kshim_replay_one(k, &k->task->access);

	kshim_decide(k, KSHIM_RETURNED)->index = end;
	k->task->over = true;
	for (;;)
		leave(k);
}

void kshim_task_dies(struct kshim *k)
{
	for (;;)
		leave(k);
}

static struct task **slot(struct kshim *k, u32 number)
{
	if (number >= k->max_tasks) {
		u32 max = max(number + 1, 2 * k->max_tasks);

		k->tasks = kshim_must(__builtin_realloc(k->tasks, max * sizeof(*k->tasks)));
		memset(k->tasks + k->max_tasks, 0, (max - k->max_tasks) * sizeof(*k->tasks));
		k->max_tasks = max;
	}
	return &k->tasks[number];
}

static struct task *new_task(struct kshim *k, const struct kshim_access *a)
{
	char *stack = kshim_must(kshim_stack_take());
	struct task *task = (struct task *)round_down((uintptr_t)stack - sizeof(*task) - sizeof(void *), 64ul);

	*task = (struct task){ .stack = stack, .access = *a };
	task->file = a->open < k->nr_files ? k->files[a->open] : NULL;
	task->sp = kshim_stack_begin((char *)task - CUSHION_BYTES, begin);
	return task;
}

/* Begins a task or goes on with one, until it stops or is over. */
void kshim_task_replay(struct kshim *k, const struct kshim_access *a)
{
	struct task **at = slot(k, a->task), *task = *at;

	BUG_ON(!task != (a->kind != KSHIM_GO_ON));
	if (!task)
		task = *at = new_task(k, a);
	task->stops = a->stops;
	task->until = a->until;
	k->task = task;
	k->current_file = task->file;
	kshim_switch(&k->caller, task->sp);
	k->task = NULL;
	if (k->stop.kind)
		longjmp(k->out, 1);
	if (!task->over)
		return;
	*at = NULL;
	kshim_stack_give(task->stack);
}

/* Whether a task has done what its access foretells, and nothing else since the log's entry at; that
 * is then known, and taken out of the log. */
bool kshim_task_as_foretold(struct kshim *k, const struct kshim_access *a, size_t at)
{
	const struct kshim_decision *d = &k->log[at];
	u64 end = a->pos + a->len;

	if (k->nr_log != at + 2 || d[0].kind != KSHIM_COPIED || d[0].n != a->foretold || d[1].kind != KSHIM_RETURNED)
		return false;
	if (d[0].index != end || d[1].index != end)
		return false;
	k->nr_log = at;
	return true;
}

void kshim_tasks_free(struct kshim *k)
{
	u32 i;

	for (i = 0; i < k->max_tasks; i++)
		if (k->tasks[i])
			kshim_stack_give(k->tasks[i]->stack);
	__builtin_free(k->tasks);
}

/* --- where a task stands still -------------------------------------------------------- */
static bool stops(const struct kshim *k, u8 where)
{
	return k->task && (k->task->stops & where);
}

void kshim_task_triggered(struct kshim *k)
{
	if (stops(k, KSHIM_STOP_AT_TRIGGER))
		leave(k);
}

void kshim_task_inserts(struct kshim *k, pgoff_t index)
{
	while (stops(k, KSHIM_STOP_BEFORE_INSERT) && index >= k->task->until) {
		kshim_decide(k, KSHIM_HELD)->index = index;
		leave(k);
	}
}

bool kshim_task_can_wait(const struct kshim *k)
{
	return k->task && k->completion == KSHIM_WHEN_TOLD;
}

/* Whoever lets it go on has told before what became of the folio. */
void kshim_task_waits(struct kshim *k, pgoff_t index, unsigned int order)
{
	struct kshim_decision *d = kshim_decide(k, KSHIM_WAITS);

	d->index = index;
	d->order = order;
	leave(k);
}

/* A batch is full where its reader is not to look any further. */
unsigned int kshim_batch_room(struct folio_batch *batch, const struct folio *last)
{
	struct task *task = kshim_running->task;

	if (task) {
		task->batch = batch;
		if (last->index + folio_nr_pages(last) >= task->until)
			return 0;
	}
	return folio_batch_space(batch);
}

/* --- copying to the program -------------------------------------------------------------- */
static void batch_is_ready(struct kshim *k, const struct folio_batch *batch, pgoff_t index)
{
	const struct folio *last = batch->folios[batch->nr - 1];
	struct kshim_decision *d = kshim_decide(k, KSHIM_BATCH);

	d->index = index;
	d->n = last->index + folio_nr_pages(last) - index;
	leave(k);
}

static void copied(struct kshim *k, loff_t end)
{
	struct kshim_decision *last = k->nr_log ? &k->log[k->nr_log - 1] : NULL;

	if (!last || last->kind != KSHIM_COPIED || last->access != k->access)
		last = kshim_decide(k, KSHIM_COPIED);
	last->index = end;
	last->n++;
}

size_t copy_folio_to_iter(struct folio *folio, size_t offset, size_t bytes, struct iov_iter *iter)
{
	size_t n = min(bytes, iter->count);
	struct kshim *k = kshim_running;
	struct folio_batch *batch = k->task ? k->task->batch : NULL;

	(void)offset;
	if (batch && folio == batch->folios[0] && stops(k, KSHIM_STOP_AT_BATCH))
		batch_is_ready(k, batch, iter->pos >> PAGE_SHIFT);
	iter->count -= n;
	iter->pos += n;
	if (!k->task)
		return n;
	copied(k, iter->pos);
	if (batch && folio == batch->folios[batch->nr - 1] && iter->count && stops(k, KSHIM_STOP_AFTER_COPY))
		leave(k);
	return n;
}
