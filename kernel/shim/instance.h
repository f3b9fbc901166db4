/* One file under replay: its page cache, its open files, what is decided, and the tasks that read. */
#ifndef KSHIM_INSTANCE_H
#define KSHIM_INSTANCE_H

#include <setjmp.h>
#include "abi.h"

struct pool { void *free, *blocks; unsigned int last_count; };
struct task;

struct kshim {
	struct backing_dev_info bdi;
	struct super_block sb;
	struct inode inode;
	struct address_space mapping;
	enum kshim_completion completion;
	unsigned int fault_around_pages;

	struct file **files;
	u32 nr_files, max_files;
	struct file *current_file;

	struct kshim_decision *log;
	size_t nr_log, max_log;
	u64 logged_before;	/* decisions of earlier calls */
	u32 access;		/* being replayed */
	bool quiet;		/* setting the scene, log nothing */
	bool window_logged;	/* since the current fault began */

	struct task **tasks;	/* by number; those that are not over */
	u32 max_tasks;
	struct task *task;	/* the one that runs, if one does */
	void *caller;		/* stack pointer of whoever let it run */

	struct pool folios, nodes;
	struct kshim_stop stop, first_warning;
	u64 warnings;
	jmp_buf out;
};

extern __thread struct kshim *kshim_running __attribute__((visibility("hidden")));

/* shim.c */
void *kshim_must(void *memory);
struct kshim_decision *kshim_decide(struct kshim *k, enum kshim_decision_kind kind);
void kshim_decide_range(struct kshim *k, enum kshim_decision_kind kind, pgoff_t index, unsigned long n);
loff_t kshim_replay_one(struct kshim *k, const struct kshim_access *a);

/* task.c */
void kshim_task_replay(struct kshim *k, const struct kshim_access *a);
bool kshim_task_as_foretold(struct kshim *k, const struct kshim_access *a, size_t at);
void kshim_task_triggered(struct kshim *k);
void kshim_task_inserts(struct kshim *k, pgoff_t index);
bool kshim_task_can_wait(const struct kshim *k);
void kshim_task_waits(struct kshim *k, pgoff_t index, unsigned int order);
void kshim_task_dies(struct kshim *k) __attribute__((noreturn));
void kshim_tasks_free(struct kshim *k);

#endif
