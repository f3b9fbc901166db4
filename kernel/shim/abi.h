/* The interface between the replay and the tree's code: a block of accesses in, decisions out.
 * The same layouts are in abi.rs. */
#ifndef KSHIM_ABI_H
#define KSHIM_ABI_H

#include <stdint.h>
#include <stddef.h>

#define KSHIM_ABI 3u

struct kshim_settings {
	uint64_t i_size;		/* bytes */
	uint32_t ra_pages, io_pages;
	uint8_t min_order, max_order;
	uint8_t completion;		/* enum kshim_completion */
	uint8_t fault_around_order;
	uint32_t reserved;
};

enum kshim_completion {
	KSHIM_AT_ONCE = 0,
	KSHIM_WHEN_WAITED = 1,
	KSHIM_WHEN_TOLD = 2,		/* by KSHIM_COMPLETE; only tasks can wait */
};

enum kshim_access_kind {
	KSHIM_READ = 0,
	KSHIM_TOUCH = 1,
	KSHIM_FADV_NORMAL = 2,
	KSHIM_FADV_RANDOM = 3,
	KSHIM_FADV_SEQUENTIAL = 4,
	KSHIM_FADV_WILLNEED = 5,
	KSHIM_FADV_DONTNEED = 6,
	KSHIM_READAHEAD = 7,
	KSHIM_EVICT = 8,
	KSHIM_CACHED = 9,
	KSHIM_COMPLETE = 10,
	KSHIM_CLOSE = 11,
	/* for a read path of the caller's own: pos is that of a page, len the pages left */
	KSHIM_SYNC_RA = 12,
	KSHIM_ASYNC_RA = 13,
	KSHIM_PREV_POS = 14,
	KSHIM_GO_ON = 15,		/* with a task that stopped */
	KSHIM_RA_PAGES = 16,		/* len: those of the open file from here on */
};

/* flags of KSHIM_TOUCH */
enum { KSHIM_VM_RAND_READ = 1, KSHIM_VM_SEQ_READ = 2, KSHIM_VM_EXEC = 4, KSHIM_VM_HUGEPAGE = 8 };

/* Where a task stops besides where it has to wait; it goes on with KSHIM_GO_ON. */
enum {
	KSHIM_STOP_AT_TRIGGER = 1,	/* after one */
	KSHIM_STOP_AT_BATCH = 2,	/* when a batch of folios is ready to be copied */
	KSHIM_STOP_AFTER_COPY = 4,	/* of a batch that is not the read's last */
	KSHIM_STOP_BEFORE_INSERT = 8,	/* of a folio at until or later */
};

#define KSHIM_NO_TASK 0xffffffffu

struct kshim_access {
	uint8_t kind, flags, order, stops;
	uint32_t open;
	uint64_t pos, len;		/* bytes */
	uint64_t until;			/* page at which batches and, if asked for, insertions end */
	uint32_t task;			/* a thread of its own that may wait, or KSHIM_NO_TASK */
	uint32_t foretold;		/* of a read that is to copy all from so many cached folios and return; 0: not said */
};

enum kshim_decision_kind {
	KSHIM_TRIGGER = 0,		/* flags: enum kshim_trigger; index; n: req_count */
	KSHIM_WINDOW = 1,		/* index: start; n: size; extra: async_size; order */
	KSHIM_FOLIO = 2,		/* index; order; flags: 1 carries the readahead mark */
	KSHIM_DEVICE_READ = 3,		/* index; n: pages */
	KSHIM_FAULT = 4,		/* index; flags: 1 major */
	KSHIM_MAPPED = 5,		/* index; n: pages */
	KSHIM_DROPPED = 6,		/* index; order: folio taken out by FADV_DONTNEED */
	/* of tasks */
	KSHIM_COPIED = 7,		/* index: byte after the last one; n: folios */
	KSHIM_BATCH = 8,		/* index: first page; n: pages: ready to be copied */
	KSHIM_WAITS = 9,		/* index; order: for this folio */
	KSHIM_HELD = 10,		/* index: page about to be inserted */
	KSHIM_RETURNED = 11,		/* index: byte after the last one read */
	KSHIM_PREV_POS_IS = 12,		/* index: of the open file at the trigger that follows */
};

enum kshim_trigger { KSHIM_SYNC = 0, KSHIM_ASYNC = 1, KSHIM_FORCED = 2 };

#define KSHIM_NO_ORDER 0xff

struct kshim_decision {
	uint32_t access;
	uint8_t kind, order;
	uint16_t flags;
	uint64_t index;
	uint32_t n, extra;
};

/* Why a replay ended early. */
struct kshim_stop {
	uint32_t kind;			/* enum kshim_stop_kind */
	uint32_t line;
	char file[64];
	char what[160];
};

enum kshim_stop_kind { KSHIM_RUNNING = 0, KSHIM_BUG = 1, KSHIM_NO_MEMORY = 2, KSHIM_NOT_FORETOLD = 3 };

/* What a signal handler leaves behind; shared memory in a worker. */
struct kshim_crash {
	uint32_t signal, system_call;
	uint64_t address;
	uint32_t depth;
	uint32_t reserved;
	uint64_t frames[32];		/* offsets within the object, innermost first */
};

struct kshim;

#define KSHIM_API __attribute__((visibility("default")))
KSHIM_API uint32_t kshim_abi(void);
KSHIM_API struct kshim *kshim_new(const struct kshim_settings *);
KSHIM_API void kshim_free(struct kshim *);
KSHIM_API int64_t kshim_open(struct kshim *);
/* Replays up to n accesses and returns how many were; fewer only when it stopped. progress follows. */
KSHIM_API size_t kshim_replay(struct kshim *, const struct kshim_access *, size_t n, volatile uint64_t *progress);
/* What the replay since the last call decided; valid until the next. */
KSHIM_API const struct kshim_decision *kshim_decisions(struct kshim *, size_t *n);
KSHIM_API const struct kshim_stop *kshim_stopped(const struct kshim *);
KSHIM_API uint64_t kshim_warnings(const struct kshim *, const struct kshim_stop **first);
/* Turns signals into an entry in *crash and the end of the process. */
KSHIM_API int kshim_guard(struct kshim_crash *crash);

#endif
