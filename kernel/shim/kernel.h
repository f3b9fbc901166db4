/* Stand-ins for the kernel names around readahead: types, arithmetic, locks that one thread does
 * not need. Nothing here is what a readahead patch changes; that is cut from the tree. */
#ifndef KSHIM_KERNEL_H
#define KSHIM_KERNEL_H

#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>
#include <string.h>
#include <limits.h>
#include <errno.h>
#include "config.h"

/* --- types -------------------------------------------------------------- */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned int gfp_t, fmode_t, vm_fault_t, fgf_t, dev_t, xa_mark_t;
typedef unsigned short umode_t;
typedef unsigned long pgoff_t, vm_flags_t;
typedef u64 sector_t;
typedef long long loff_t;
typedef long ssize_t;
typedef u32 errseq_t;
typedef struct { int unused; } spinlock_t, rwlock_t, seqcount_t;
typedef struct { int counter; } atomic_t;
struct list_head { struct list_head *next, *prev; };
struct rcu_head { void *unused; };
struct rw_semaphore { int unused; };
struct lock_class_key { int unused; };
typedef struct { struct list_head entry; } wait_queue_entry_t;
struct address_space;
struct bio;
struct buffer_head;
struct file;
struct folio;
struct inode;
struct iov_iter;
struct kiocb;
struct list_lru;
struct mempolicy;
struct page;
struct readahead_control;
struct vm_area_struct;
struct vm_fault;
struct kmem_cache;

/* --- compiler ----------------------------------------------------------- */
#define __user
#define __rcu
#define __force
#define __init
#define __read_mostly
#define __bitwise
#define __must_check
#define __must_hold(lock)
#define __acquires(lock)
#define __releases(lock)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __maybe_unused __attribute__((unused))
#define __pure __attribute__((pure))
#define noinline __attribute__((noinline))
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ volatile("" ::: "memory")
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) ((void)(*(volatile __typeof__(x) *)&(x) = (value)))
#define data_race(x) (x)
#define smp_load_acquire(p) READ_ONCE(*(p))
#define smp_store_release(p, value) WRITE_ONCE(*(p), value)
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define ALLOW_ERROR_INJECTION(name, kind)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define static_assert(condition, ...) _Static_assert(condition, #condition)
#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* --- failures ----------------------------------------------------------- */
void kshim_bug(const char *what, const char *file, unsigned int line) __attribute__((noreturn, cold));
void kshim_warn(const char *what, const char *file, unsigned int line) __attribute__((cold));
#define BUG() kshim_bug("unconditional", __FILE__, __LINE__)
#define BUG_ON(condition) do { if (unlikely(condition)) kshim_bug(#condition, __FILE__, __LINE__); } while (0)
#define WARN_ON(condition) ({						\
	bool warned = !!(condition);					\
	if (unlikely(warned))						\
		kshim_warn(#condition, __FILE__, __LINE__);		\
	warned;								\
})
#define WARN_ON_ONCE(condition) WARN_ON(condition)
#define WARN(condition, ...) WARN_ON(condition)
#define WARN_ONCE(condition, ...) WARN_ON(condition)
#define VM_BUG_ON(condition) BUG_ON(condition)
#define VM_BUG_ON_FOLIO(condition, folio) BUG_ON(condition)
#define VM_BUG_ON_PAGE(condition, page) BUG_ON(condition)
#define VM_WARN_ON(condition) ((void)WARN_ON(condition))
#define VM_WARN_ON_ONCE(condition) ((void)WARN_ON(condition))
#define VM_WARN_ONCE(condition, ...) ((void)WARN_ON(condition))
#define VM_WARN(condition, ...) ((void)WARN_ON(condition))
#define VM_WARN_ON_FOLIO(condition, folio) ((void)WARN_ON(condition))
#define VM_WARN_ON_ONCE_FOLIO(condition, folio) ((void)WARN_ON(condition))
/* Messages go nowhere, but their arguments must compile. */
static inline void kshim_no_print(const char *format, ...) { (void)format; }
#define printk(...) kshim_no_print(__VA_ARGS__)
#define pr_debug(...) kshim_no_print(__VA_ARGS__)
#define pr_info(...) kshim_no_print(__VA_ARGS__)
#define pr_warn(...) kshim_no_print(__VA_ARGS__)
#define pr_warn_once(...) kshim_no_print(__VA_ARGS__)
#define pr_err(...) kshim_no_print(__VA_ARGS__)
#define pr_info_ratelimited(...) kshim_no_print(__VA_ARGS__)
#define trace_printk(...) kshim_no_print(__VA_ARGS__)

/* --- arithmetic --------------------------------------------------------- */
#define PAGE_SHIFT 12
#define PAGE_SIZE (1UL << PAGE_SHIFT)
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define SZ_4K 0x1000
#define SZ_64K 0x10000
#define SZ_128K 0x20000
#define SZ_1M 0x100000
#define SZ_2M 0x200000
#define PMD_SHIFT 21
#define PMD_ORDER (PMD_SHIFT - PAGE_SHIFT)
#define PMD_SIZE (1UL << PMD_SHIFT)
#define PMD_MASK (~(PMD_SIZE - 1))
#define PTRS_PER_PTE 512
#define HPAGE_PMD_ORDER PMD_ORDER
#define HPAGE_PMD_NR (1 << HPAGE_PMD_ORDER)
#define HPAGE_PMD_SIZE PMD_SIZE
#define MAX_PAGE_ORDER 10
#define MAX_ORDER 10
#define PAGE_ALIGN(x) round_up(x, PAGE_SIZE)
#define PAGE_ALIGN_DOWN(x) round_down(x, PAGE_SIZE)
#define offset_in_page(p) ((unsigned long)(p) & ~PAGE_MASK)
#define PFN_DOWN(x) ((x) >> PAGE_SHIFT)
#define PFN_UP(x) (((x) + PAGE_SIZE - 1) >> PAGE_SHIFT)
#define BIT(n) (1UL << (n))
#define BITS_PER_BYTE 8
#define BITS_TO_LONGS(n) (((n) + BITS_PER_LONG - 1) / BITS_PER_LONG)
#define BIT_WORD(n) ((n) / BITS_PER_LONG)
#define GENMASK(high, low) ((~0UL << (low)) & (~0UL >> (BITS_PER_LONG - 1 - (high))))
#define DECLARE_BITMAP(name, bits) unsigned long name[BITS_TO_LONGS(bits)]
#define min(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ > b_ ? a_ : b_; })
#define min3(a, b, c) min(min(a, b), c)
#define max3(a, b, c) max(max(a, b), c)
#define min_t(type, a, b) ({ type a_ = (a); type b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(type, a, b) ({ type a_ = (a); type b_ = (b); a_ > b_ ? a_ : b_; })
#define min_not_zero(a, b) ({ __auto_type x_ = (a); __auto_type y_ = (b); !x_ ? y_ : !y_ ? x_ : min(x_, y_); })
#define umin(a, b) min_t(u64, a, b)
#define umax(a, b) max_t(u64, a, b)
#define clamp(x, low, high) min(max(x, low), high)
#define clamp_t(type, x, low, high) min_t(type, max_t(type, x, low), high)
#define clamp_val(x, low, high) clamp_t(__typeof__(x), x, low, high)
#define swap(a, b) do { __auto_type t_ = (a); (a) = (b); (b) = t_; } while (0)
#define in_range(x, start, len) ((u64)(x) - (u64)(start) < (u64)(len))
#define round_up(x, y) ((((x) - 1) | ((__typeof__(x))((y) - 1))) + 1)
#define round_down(x, y) ((x) & ~((__typeof__(x))((y) - 1)))
#define roundup(x, y) ((((x) + ((y) - 1)) / (y)) * (y))
#define rounddown(x, y) ((x) - (x) % (y))
#define ALIGN(x, a) round_up(x, a)
#define ALIGN_DOWN(x, a) round_down(x, a)
#define IS_ALIGNED(x, a) (((x) & ((__typeof__(x))(a) - 1)) == 0)
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d) DIV_ROUND_UP((u64)(n), d)
#define DIV_ROUND_CLOSEST(n, d) (((n) + (d) / 2) / (d))
#define mult_frac(x, n, d) ((x) / (d) * (n) + (x) % (d) * (n) / (d))
#define div_u64(n, d) ((u64)(n) / (u32)(d))
#define div64_u64(n, d) ((u64)(n) / (u64)(d))
#define do_div(n, base) ({ u32 rem_ = (u64)(n) % (base); (n) = (u64)(n) / (base); rem_; })
#define abs(x) ({ __auto_type v_ = (x); v_ < 0 ? -v_ : v_; })
#define __ffs(n) ((unsigned long)__builtin_ctzl(n))
#define __fls(n) ((unsigned long)(63 - __builtin_clzl(n)))
#define ffs(n) __builtin_ffs((int)(n))
#define fls(n) ({ u32 v_ = (n); v_ ? 32 - __builtin_clz(v_) : 0; })
#define fls64(n) ({ u64 v_ = (n); v_ ? 64 - __builtin_clzl(v_) : 0; })
#define fls_long(n) fls64(n)
#define ffz(n) __ffs(~(n))
#define ilog2(n) (63 - __builtin_clzl((u64)(n)))
#define order_base_2(n) ((n) > 1 ? ilog2((n) - 1) + 1 : 0)
#define is_power_of_2(n) ({ u64 v_ = (n); v_ && !(v_ & (v_ - 1)); })
#define roundup_pow_of_two(n) ({ u64 v_ = (n); v_ <= 1 ? 1UL : 1UL << (64 - __builtin_clzl(v_ - 1)); })
#define rounddown_pow_of_two(n) (1UL << ilog2(n))
#define get_order(size) ({ u64 s_ = (size); s_ <= PAGE_SIZE ? 0 : ilog2((s_ - 1) >> PAGE_SHIFT) + 1; })
#define hweight_long(n) __builtin_popcountl(n)
#define hweight32(n) __builtin_popcount(n)
#define check_add_overflow(a, b, sum) __builtin_add_overflow(a, b, sum)
#define check_sub_overflow(a, b, difference) __builtin_sub_overflow(a, b, difference)
#define check_mul_overflow(a, b, product) __builtin_mul_overflow(a, b, product)
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

static inline bool test_bit(long n, const volatile unsigned long *map) { return map[BIT_WORD(n)] >> (n % 64) & 1; }
static inline void set_bit(long n, volatile unsigned long *map) { map[BIT_WORD(n)] |= 1UL << (n % 64); }
static inline void clear_bit(long n, volatile unsigned long *map) { map[BIT_WORD(n)] &= ~(1UL << (n % 64)); }
static inline bool test_and_set_bit(long n, volatile unsigned long *map)
{
	bool was = test_bit(n, map);

	set_bit(n, map);
	return was;
}
static inline bool test_and_clear_bit(long n, volatile unsigned long *map)
{
	bool was = test_bit(n, map);

	clear_bit(n, map);
	return was;
}
#define __set_bit set_bit
#define __clear_bit clear_bit
#define __test_and_set_bit test_and_set_bit
#define __test_and_clear_bit test_and_clear_bit
static inline unsigned long find_next_bit(const unsigned long *map, unsigned long size, unsigned long from)
{
	while (from < size && !test_bit(from, map))
		from++;
	return from < size ? from : size;
}
static inline bool bitmap_empty(const unsigned long *map, unsigned int bits) { return find_next_bit(map, bits, 0) == bits; }
static inline bool bitmap_full(const unsigned long *map, unsigned int bits)
{
	unsigned int n = 0;

	while (n < bits && test_bit(n, map))
		n++;
	return n == bits;
}
static inline void bitmap_fill(unsigned long *map, unsigned int bits) { memset(map, 0xff, BITS_TO_LONGS(bits) * sizeof(long)); }
static inline void bitmap_clear(unsigned long *map, unsigned int from, unsigned int n) { while (n--) clear_bit(from++, map); }

#define MAX_ERRNO 4095
#define IS_ERR_VALUE(x) ((unsigned long)(void *)(x) >= (unsigned long)-MAX_ERRNO)
#define IS_ERR(p) IS_ERR_VALUE(p)
#define IS_ERR_OR_NULL(p) (!(p) || IS_ERR(p))
#define ERR_PTR(error) ((void *)(long)(error))
#define PTR_ERR(p) ((long)(p))
#define EIOCBQUEUED 529
#define ENOTSUPP 524

/* --- locks and tasks: a replay is one thread ----------------------------- */
#define lockdep_assert_held(lock) ((void)(lock))
#define might_sleep() ((void)0)
#define might_alloc(gfp) ((void)(gfp))
#define cond_resched() ((void)0)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_read_lock_held() true
#define rcu_dereference(p) (p)
#define rcu_dereference_check(p, condition) (p)
#define rcu_dereference_protected(p, condition) (p)
#define rcu_dereference_raw(p) (p)
#define rcu_assign_pointer(p, value) ((void)((p) = (value)))
#define RCU_INIT_POINTER(p, value) ((void)((p) = (value)))
#define lockdep_is_held(lock) true
#define __SPIN_LOCK_UNLOCKED(name) { 0 }
#define spin_lock_init(lock) ((void)(lock))
#define spin_lock(lock) ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#define spin_lock_irq(lock) ((void)(lock))
#define spin_unlock_irq(lock) ((void)(lock))
#define spin_lock_irqsave(lock, flags) ((void)(lock), (void)(flags))
#define spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))
#define spin_lock_bh(lock) ((void)(lock))
#define spin_unlock_bh(lock) ((void)(lock))
#define down_read(sem) ((void)(sem))
#define up_read(sem) ((void)(sem))
#define down_read_trylock(sem) ((void)(sem), 1)
#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)
#define atomic_read(a) ((a)->counter)
#define atomic_set(a, value) ((void)((a)->counter = (value)))
#define atomic_inc(a) ((void)((a)->counter++))
#define atomic_dec(a) ((void)((a)->counter--))
#define atomic_add(n, a) ((void)((a)->counter += (n)))
#define cmpxchg(p, old, new) ({ __auto_type was_ = *(p); if (was_ == (old)) *(p) = (new); was_; })
#define xchg(p, new) ({ __auto_type was_ = *(p); *(p) = (new); was_; })
static inline void INIT_LIST_HEAD(struct list_head *list) { list->next = list->prev = list; }
static inline bool list_empty(const struct list_head *list) { return list->next == list; }
struct task_struct;
#define current ((struct task_struct *)0)
#define fatal_signal_pending(task) ((void)(task), false)
#define TASK_KILLABLE 0x102
#define TASK_UNINTERRUPTIBLE 2

/* --- allocation: never fails here, see kshim_stopped() -------------------- */
#define GFP_KERNEL 0xcc0u
#define GFP_NOWAIT 0x2000u
#define GFP_NOFS 0xc40u
#define __GFP_ACCOUNT 0x400000u
#define __GFP_NORETRY 0x10000u
#define __GFP_NOWARN 0x2000u
#define __GFP_WRITE 0x1000u
#define __GFP_FS 0x80u
#define __GFP_ZERO 0x100u
#define __GFP_NOFAIL 0x8000u
#define __GFP_HIGHMEM 2u
#define __GFP_BITS_SHIFT 27
#define __GFP_BITS_MASK ((gfp_t)((1 << __GFP_BITS_SHIFT) - 1))
#define gfpflags_allow_blocking(gfp) ((void)(gfp), true)
#define memalloc_nofs_save() 0u
#define memalloc_nofs_restore(flags) ((void)(flags))
#define memalloc_noio_save() 0u
#define memalloc_noio_restore(flags) ((void)(flags))
void *kshim_node_alloc(void);
void kshim_node_free(void *node);
#define radix_tree_node_cachep ((struct kmem_cache *)0)
#define kmem_cache_alloc(cache, gfp) ((void)(cache), (void)(gfp), kshim_node_alloc())
#define kmem_cache_alloc_lru(cache, lru, gfp) ((void)(cache), (void)(lru), (void)(gfp), kshim_node_alloc())
#define kmem_cache_free(cache, node) ((void)(cache), kshim_node_free(node))
#define radix_tree_node_rcu_free kshim_node_free
#define call_rcu(head, free_node) ((void)(head), (free_node)(container_of(head, struct xa_node, rcu_head)))

/* --- what a replay has no model of: stalls, cgroups, writeback, statistics - */
struct blk_plug { int unused; };
#define blk_start_plug(plug) ((void)(plug))
#define blk_finish_plug(plug) ((void)(plug))
#define blk_cgroup_congested() false
#define psi_memstall_enter(flags) ((void)(flags))
#define psi_memstall_leave(flags) ((void)(flags))
#define delayacct_thrashing_start(in) ((void)(in))
#define delayacct_thrashing_end(in) ((void)(in))
#define count_vm_event(item) ((void)0)
#define count_vm_events(item, n) ((void)(n))
#define count_memcg_event_mm(mm, item) ((void)(mm))
#define task_io_account_read(bytes) ((void)(bytes))
#define lru_add_drain() ((void)0)
#define lru_add_drain_all() ((void)0)
#define filemap_flush_range(mapping, start, end) ((void)(mapping), (void)(start), (void)(end))
#define __filemap_fdatawrite_range(mapping, start, end, mode) ((void)(mapping), (void)(start), (void)(end))
#define WB_SYNC_NONE 0
#define WB_DONTCACHE_DIRTY 0
struct bdi_writeback;
struct wb_lock_cookie { int unused; };
#define unlocked_inode_to_wb_begin(inode, cookie) ((void)(inode), (void)(cookie), (struct bdi_writeback *)0)
#define unlocked_inode_to_wb_end(inode, cookie) ((void)(inode), (void)(cookie))
#define wb_stat_mod(wb, item, n) ((void)(wb), (void)(n))

/* --- tracepoints: the tree's own trace/events headers, as empty functions -- */
#define TP_PROTO(...) __VA_ARGS__
#define TRACE_EVENT(name, proto, ...) static inline void trace_##name(proto) { }
#define TRACE_EVENT_CONDITION(name, proto, ...) static inline void trace_##name(proto) { }
#define DECLARE_EVENT_CLASS(name, ...)
#define DEFINE_EVENT(class, name, proto, ...) static inline void trace_##name(proto) { }

/* --- system calls: the shim calls the function behind them ---------------- */
#define FMODE_READ 1u
#define FMODE_RANDOM 0x1000u
#define FMODE_NOREUSE 0x800000u
#define POSIX_FADV_NORMAL 0
#define POSIX_FADV_RANDOM 1
#define POSIX_FADV_SEQUENTIAL 2
#define POSIX_FADV_WILLNEED 3
#define POSIX_FADV_DONTNEED 4
#define POSIX_FADV_NOREUSE 5
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_ISREG(mode) ((mode) == S_IFREG)
#define S_ISBLK(mode) ((mode) == S_IFBLK)
#define S_ISFIFO(mode) ((void)(mode), false)
#define SYSCALL_DEFINE2(name, t1, a1, t2, a2) static inline __maybe_unused long kshim_sys_##name(t1 a1, t2 a2)
#define SYSCALL_DEFINE3(name, t1, a1, t2, a2, t3, a3) static inline __maybe_unused long kshim_sys_##name(t1 a1, t2 a2, t3 a3)
#define SYSCALL_DEFINE4(name, t1, a1, t2, a2, t3, a3, t4, a4) \
	static inline __maybe_unused long kshim_sys_##name(t1 a1, t2 a2, t3 a3, t4 a4)

#endif
