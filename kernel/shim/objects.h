/* The objects readahead works on: folios, mappings, files, and the mappings of processes. They hold
 * what a replay needs and embed the structures cut from the tree. */
#ifndef KSHIM_OBJECTS_H
#define KSHIM_OBJECTS_H

struct kshim;

/* --- folios -------------------------------------------------------------- */
enum { KSHIM_PG_READAHEAD, KSHIM_PG_UPTODATE, KSHIM_PG_LOCKED, KSHIM_PG_DROPBEHIND, KSHIM_PG_REFERENCED };

/* A page is only ever a way to name a folio; see folio_file_page(). */
struct page { pgoff_t index; };

struct folio {
	union {
		struct page page;
		pgoff_t index;
	};
	struct address_space *mapping;
	unsigned long flags;
	unsigned int refs, mapcount;
	/* decision that inserted it, counted over the whole replay */
	u64 record;
	/* device read that fills it */
	pgoff_t read_start;
	unsigned long read_pages;
	struct folio *next_free;
	unsigned char order;
	/* page within it that a fault is about */
	unsigned short fault_page;
};

struct folio *kshim_folio_alloc(unsigned int order);
void kshim_folio_free(struct folio *folio);
void kshim_folio_marked(struct folio *folio);
void kshim_folio_wait(struct folio *folio);
void kshim_folio_put_wait(struct folio *folio);
#define filemap_alloc_folio(gfp, order, ...) ((void)(gfp), kshim_folio_alloc(order))
#define filemap_alloc_folio_noprof filemap_alloc_folio

static inline unsigned int folio_order(const struct folio *folio) { return folio->order; }
static inline unsigned int folio_large_order(const struct folio *folio) { return folio->order; }
static inline long folio_nr_pages(const struct folio *folio) { return 1L << folio->order; }
static inline size_t folio_size(const struct folio *folio) { return PAGE_SIZE << folio->order; }
static inline unsigned int folio_shift(const struct folio *folio) { return PAGE_SHIFT + folio->order; }
static inline bool folio_test_large(const struct folio *folio) { return folio->order > 0; }
static inline bool folio_test_pmd_mappable(const struct folio *folio) { return folio->order >= PMD_ORDER; }
static inline void folio_get(struct folio *folio) { folio->refs++; }
static inline bool folio_try_get(struct folio *folio) { folio->refs++; return true; }
static inline bool folio_try_get_rcu(struct folio *folio) { folio->refs++; return true; }
static inline void folio_put(struct folio *folio) { if (!--folio->refs) kshim_folio_free(folio); }
static inline int folio_ref_count(const struct folio *folio) { return folio->refs; }
static inline void folio_ref_add(struct folio *folio, int n) { folio->refs += n; }
static inline void folio_ref_inc(struct folio *folio) { folio->refs++; }
static inline void folio_ref_dec(struct folio *folio) { folio->refs--; }
static inline void folio_put_refs(struct folio *folio, int n) { if (!(folio->refs -= n)) kshim_folio_free(folio); }
static inline bool folio_mapped(const struct folio *folio) { return folio->mapcount > 0; }

static inline bool folio_test_locked(const struct folio *folio) { return test_bit(KSHIM_PG_LOCKED, &folio->flags); }
static inline bool folio_trylock(struct folio *folio) { return !test_and_set_bit(KSHIM_PG_LOCKED, &folio->flags); }
static inline void folio_unlock(struct folio *folio) { clear_bit(KSHIM_PG_LOCKED, &folio->flags); }
/* Whoever holds the lock is a read in flight: waiting for it completes it. */
static inline void __folio_lock(struct folio *folio)
{
	kshim_folio_wait(folio);
	set_bit(KSHIM_PG_LOCKED, &folio->flags);
}
static inline int __folio_lock_killable(struct folio *folio) { __folio_lock(folio); return 0; }
static inline void folio_lock(struct folio *folio) { if (!folio_trylock(folio)) __folio_lock(folio); }
static inline int folio_lock_killable(struct folio *folio) { folio_lock(folio); return 0; }
static inline void folio_wait_locked(struct folio *folio) { kshim_folio_wait(folio); }
static inline int folio_wait_locked_killable(struct folio *folio) { kshim_folio_wait(folio); return 0; }
static inline int folio_put_wait_locked(struct folio *folio, int state)
{
	(void)state;
	kshim_folio_put_wait(folio);
	return 0;
}
struct wait_page_queue;
static inline int __folio_lock_async(struct folio *folio, struct wait_page_queue *wait)
{
	(void)wait;
	__folio_lock(folio);
	return 0;
}

static inline bool folio_test_uptodate(const struct folio *folio) { return test_bit(KSHIM_PG_UPTODATE, &folio->flags); }
static inline void folio_mark_uptodate(struct folio *folio) { set_bit(KSHIM_PG_UPTODATE, &folio->flags); }
static inline bool folio_test_readahead(const struct folio *folio) { return test_bit(KSHIM_PG_READAHEAD, &folio->flags); }
static inline void folio_set_readahead(struct folio *folio)
{
	set_bit(KSHIM_PG_READAHEAD, &folio->flags);
	kshim_folio_marked(folio);
}
static inline void folio_clear_readahead(struct folio *folio) { clear_bit(KSHIM_PG_READAHEAD, &folio->flags); }
static inline bool folio_test_clear_readahead(struct folio *folio) { return test_and_clear_bit(KSHIM_PG_READAHEAD, &folio->flags); }
static inline bool folio_test_dropbehind(const struct folio *folio) { return test_bit(KSHIM_PG_DROPBEHIND, &folio->flags); }
static inline void folio_set_dropbehind(struct folio *folio) { set_bit(KSHIM_PG_DROPBEHIND, &folio->flags); }
static inline bool folio_test_clear_dropbehind(struct folio *folio) { return test_and_clear_bit(KSHIM_PG_DROPBEHIND, &folio->flags); }
#define __folio_set_dropbehind folio_set_dropbehind
static inline bool folio_test_referenced(const struct folio *folio) { return test_bit(KSHIM_PG_REFERENCED, &folio->flags); }
static inline void folio_set_referenced(struct folio *folio) { set_bit(KSHIM_PG_REFERENCED, &folio->flags); }
#define __folio_set_referenced folio_set_referenced
/* No writes, no reclaim: these are never set. */
static inline bool folio_test_writeback(const struct folio *folio) { (void)folio; return false; }
static inline bool folio_test_dirty(const struct folio *folio) { (void)folio; return false; }
static inline bool folio_test_workingset(const struct folio *folio) { (void)folio; return false; }
static inline bool folio_test_swapcache(const struct folio *folio) { (void)folio; return false; }
static inline bool folio_test_hugetlb(const struct folio *folio) { (void)folio; return false; }
static inline bool folio_test_idle(const struct folio *folio) { (void)folio; return false; }
static inline void folio_clear_idle(struct folio *folio) { (void)folio; }
static inline void folio_clear_error(struct folio *folio) { (void)folio; }
static inline void folio_mark_accessed(struct folio *folio) { (void)folio; }
static inline void folio_wait_stable(struct folio *folio) { (void)folio; }
static inline void flush_dcache_folio(struct folio *folio) { (void)folio; }
static inline void filemap_end_dropbehind_read(struct folio *folio) { (void)folio; }

/* Pages of a folio are not objects here: every one is its first, and the folio remembers which. */
static inline struct folio *page_folio(struct page *page) { return (struct folio *)page; }
static inline struct page *folio_page(struct folio *folio, unsigned long n)
{
	folio->fault_page = n;
	return &folio->page;
}
static inline unsigned long folio_page_idx(const struct folio *folio, const struct page *page)
{
	(void)page;
	return folio->fault_page;
}
#define __page_file_index(page) ((page)->index)
#define PageHWPoison(page) ((void)(page), false)
static inline bool PageTransHuge(struct page *page) { return folio_test_pmd_mappable(page_folio(page)); }
static inline bool PageWorkingset(struct page *page) { (void)page; return false; }
static inline bool PageReadahead(struct page *page) { return folio_test_readahead(page_folio(page)); }
static inline void unlock_page(struct page *page) { folio_unlock(page_folio(page)); }
static inline void put_page(struct page *page) { folio_put(page_folio(page)); }
static inline void get_page(struct page *page) { folio_get(page_folio(page)); }
#define __page_cache_alloc(gfp) (&filemap_alloc_folio(gfp, 0)->page)

/* --- mappings, inodes, files --------------------------------------------- */
struct address_space_operations {
	void (*readahead)(struct readahead_control *);
	int (*read_folio)(struct file *, struct folio *);
	bool (*is_partially_uptodate)(struct folio *, size_t from, size_t count);
};
struct backing_dev_info { unsigned long ra_pages, io_pages; };
struct super_block { dev_t s_dev; unsigned long s_flags; loff_t s_maxbytes; struct backing_dev_info *s_bdi; };
struct address_space {
	struct inode *host;
	struct xarray i_pages;
	struct rw_semaphore invalidate_lock;
	gfp_t gfp_mask;
	unsigned long nrpages;
	const struct address_space_operations *a_ops;
	unsigned long flags;
	struct kshim *shim;
};
struct inode {
	umode_t i_mode;
	unsigned int i_blkbits, i_flags;
	unsigned long i_ino;
	loff_t i_size;
	struct super_block *i_sb;
	struct address_space *i_mapping;
};
struct file_operations { int (*fadvise)(struct file *, loff_t, loff_t, int); };
struct file {
	spinlock_t f_lock;
	fmode_t f_mode;
	unsigned int f_flags, f_iocb_flags;
	struct inode *f_inode;
	struct address_space *f_mapping;
	const struct file_operations *f_op;
	struct file_ra_state f_ra;
	struct mm_struct *mm;
	/* prev_pos as it was last written down */
	loff_t prev_pos_told;
};
int filemap_add_folio(struct address_space *mapping, struct folio *folio, pgoff_t index, gfp_t gfp);
void filemap_remove_folio(struct folio *folio);
static inline int add_to_page_cache_lru(struct page *page, struct address_space *mapping, pgoff_t index, gfp_t gfp)
{
	return filemap_add_folio(mapping, page_folio(page), index, gfp);
}
static inline struct backing_dev_info *inode_to_bdi(struct inode *inode) { return inode->i_sb->s_bdi; }
#define noop_backing_dev_info (*(struct backing_dev_info *)0)
static inline struct inode *file_inode(const struct file *file) { return file->f_inode; }
#define get_file(file) (file)
#define fput(file) ((void)(file))
#define file_accessed(file) ((void)(file))
#define IS_DAX(inode) ((void)(inode), false)
#define IS_ANON_FILE(inode) ((void)(inode), false)
#define FOLIO_MAPPING_ANON 1
#define PAGE_MAPPING_ANON 1
#define mapping_can_writeback(mapping) ((void)(mapping), false)
#define mapping_writably_mapped(mapping) ((void)(mapping), false)
#define shmem_mapping(mapping) ((void)(mapping), false)
#define dax_mapping(mapping) ((void)(mapping), false)

/* What a system call looks its file up from. */
struct fd { struct file *file; };
struct fd kshim_fd(void);
#define fdget(n) ((void)(n), kshim_fd())
#define fdput(fd) ((void)(fd))
#define fd_file(fd) ((fd).file)
#define fd_empty(fd) (!(fd).file)
#define CLASS(type, name) struct type name = kshim_class_##type
#define kshim_class_fd(n) fdget(n)

/* mapping_try_invalidate() and friends drop the clean, unmapped folios wholly inside a range. */
unsigned long kshim_invalidate(struct address_space *mapping, pgoff_t start, pgoff_t end);
#define invalidate_mapping_pages(mapping, start, end) kshim_invalidate(mapping, start, end)
#define mapping_try_invalidate(mapping, start, end, failed) ((void)(failed), kshim_invalidate(mapping, start, end))
#define invalidate_mapping_pagevec(mapping, start, end, failed) ((void)(failed), kshim_invalidate(mapping, start, end))

/* --- reading -------------------------------------------------------------- */
#define IOCB_NOIO (1 << 20)
#define IOCB_NOWAIT (1 << 3)
#define IOCB_WAITQ (1 << 19)
#define IOCB_DONTCACHE (1 << 25)
#define AOP_TRUNCATED_PAGE 0x80001
struct kiocb { struct file *ki_filp; loff_t ki_pos; int ki_flags; struct wait_page_queue *ki_waitq; };
struct iov_iter { size_t count; loff_t pos; };
#define iov_iter_count(iter) ((iter)->count)
#define iov_iter_is_pipe(iter) ((void)(iter), false)
static inline void iov_iter_truncate(struct iov_iter *iter, u64 count) { if (iter->count > count) iter->count = count; }
size_t copy_folio_to_iter(struct folio *folio, size_t offset, size_t bytes, struct iov_iter *iter);
typedef int filler_t(struct file *, struct folio *);
/* The tree's, if its headers say. */
#ifndef KSHIM_FOLIO_BATCH_SIZE
#define KSHIM_FOLIO_BATCH_SIZE 31
#endif
#define PAGEVEC_SIZE KSHIM_FOLIO_BATCH_SIZE
#define FOLIO_BATCH_SIZE KSHIM_FOLIO_BATCH_SIZE
struct folio_batch { unsigned char nr, i; bool percpu_pvec_drained; struct folio *folios[FOLIO_BATCH_SIZE]; };
static inline void folio_batch_init(struct folio_batch *batch) { batch->nr = batch->i = 0; }
static inline void folio_batch_reinit(struct folio_batch *batch) { batch->nr = batch->i = 0; }
static inline unsigned int folio_batch_count(const struct folio_batch *batch) { return batch->nr; }
static inline unsigned int folio_batch_space(const struct folio_batch *batch) { return FOLIO_BATCH_SIZE - batch->nr; }
unsigned int kshim_batch_room(struct folio_batch *batch, const struct folio *last);
static inline unsigned int folio_batch_add(struct folio_batch *batch, struct folio *folio)
{
	batch->folios[batch->nr++] = folio;
	return kshim_batch_room(batch, folio);
}

/* --- faults --------------------------------------------------------------- */
#define VM_SHARED 0x8ul
#define VM_EXEC 0x4ul
#define VM_LOCKED 0x2000ul
#define VM_SEQ_READ 0x8000ul
#define VM_RAND_READ 0x10000ul
#define VM_HUGEPAGE 0x20000000ul
#define VM_NOHUGEPAGE 0x40000000ul
enum {
	FAULT_FLAG_WRITE = 1 << 0, FAULT_FLAG_MKWRITE = 1 << 1, FAULT_FLAG_ALLOW_RETRY = 1 << 2,
	FAULT_FLAG_RETRY_NOWAIT = 1 << 3, FAULT_FLAG_KILLABLE = 1 << 4, FAULT_FLAG_TRIED = 1 << 5,
	FAULT_FLAG_USER = 1 << 6, FAULT_FLAG_ORIG_PTE_VALID = 1 << 11, FAULT_FLAG_VMA_LOCK = 1 << 12,
};
enum {
	VM_FAULT_OOM = 0x1, VM_FAULT_SIGBUS = 0x2, VM_FAULT_MAJOR = 0x4, VM_FAULT_NOPAGE = 0x100,
	VM_FAULT_LOCKED = 0x200, VM_FAULT_RETRY = 0x400, VM_FAULT_FALLBACK = 0x800,
};
typedef unsigned char pte_t;			/* 1: maps its page */
typedef struct { pte_t *ptes; bool huge; } pmd_t;
typedef pte_t *pgtable_t;
struct mm_struct { unsigned long npages; pte_t *ptes; pmd_t *pmds; };
struct vm_operations_struct;
struct vm_area_struct {
	unsigned long vm_start, vm_end;
	vm_flags_t vm_flags;
	pgoff_t vm_pgoff;
	struct file *vm_file;
	struct mm_struct *vm_mm;
	const struct vm_operations_struct *vm_ops;
};
struct vm_fault {
	struct vm_area_struct *vma;
	gfp_t gfp_mask;
	pgoff_t pgoff;
	unsigned long address, real_address;
	unsigned int flags;
	pmd_t *pmd;
	pte_t *pte;
	pte_t orig_pte;
	spinlock_t *ptl;
	struct page *page, *cow_page;
	pgtable_t prealloc_pte;
};
static inline bool fault_flag_allow_retry_first(unsigned int flags)
{
	return (flags & FAULT_FLAG_ALLOW_RETRY) && !(flags & FAULT_FLAG_TRIED);
}
#define release_fault_lock(vmf) ((void)(vmf))
#define mmap_read_unlock(mm) ((void)(mm))
#define vma_pages(vma) (((vma)->vm_end - (vma)->vm_start) >> PAGE_SHIFT)
#define vma_start_pgoff(vma) ((vma)->vm_pgoff)
#define vma_end_pgoff(vma) ((vma)->vm_pgoff + vma_pages(vma))
static inline bool folio_within_vma(struct folio *folio, struct vm_area_struct *vma)
{
	return folio->index >= vma->vm_pgoff && folio->index + folio_nr_pages(folio) <= vma->vm_pgoff + vma_pages(vma);
}
#define exec_folio_order() 0
#define pte_index(address) (((address) >> PAGE_SHIFT) & (PTRS_PER_PTE - 1))
#define pte_offset_map_lock(mm, pmd, address, ptlp) ((void)(pmd), *(ptlp) = NULL, &(mm)->ptes[(address) >> PAGE_SHIFT])
#define pte_offset_map_ro_nolock(mm, pmd, address, ptlp) pte_offset_map_lock(mm, pmd, address, ptlp)
#define pte_offset_map_nolock(mm, pmd, address, ptlp) pte_offset_map_lock(mm, pmd, address, ptlp)
#define pte_offset_map(pmd, address) ((void)(address), (pte_t *)(pmd))
#define pte_unmap_unlock(pte, ptl) ((void)(pte), (void)(ptl))
#define pte_unmap(pte) ((void)(pte))
#define ptep_get(pte) (*(pte))
#define ptep_get_lockless(pte) (*(pte))
#define pte_none(pte) (!(pte))
#define pmd_none(pmd) (!(pmd).ptes)
#define pmd_trans_huge(pmd) ((pmd).huge)
#define pmd_devmap_trans_unstable(pmd) ((void)(pmd), false)
void kshim_pmd_install(struct mm_struct *mm, pmd_t *pmd);
#define pmd_install(mm, pmd, pte) ((void)(pte), kshim_pmd_install(mm, pmd))
void set_pte_range(struct vm_fault *vmf, struct folio *folio, struct page *page, unsigned int n, unsigned long address);
vm_fault_t kshim_set_pmd(struct vm_fault *vmf);
#define do_set_pmd(vmf, ...) kshim_set_pmd(vmf)
void do_set_pte(struct vm_fault *vmf, struct page *page, unsigned long address);
#define update_mmu_cache(vma, address, pte) ((void)(vma), (void)(address), (void)(pte))
#define mm_counter_file(folio) ((void)(folio), 0)
#define add_mm_counter(mm, member, n) ((void)(mm), (void)(member), (void)(n))

#endif
