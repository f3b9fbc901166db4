/* The page cache, the device and the processes around the tree's readahead code, and the C ABI. */
#include "kshim.h"
#include "instance.h"

/* Declared in headers that are not read. */
vm_fault_t filemap_fault(struct vm_fault *vmf);
vm_fault_t filemap_map_pages(struct vm_fault *vmf, pgoff_t first, pgoff_t last);
ssize_t ksys_readahead(int fd, loff_t offset, size_t count);

/* A replay may have ten thousand small files and one that is huge: what is kept for each starts
 * small and doubles. */
#define FIRST_FOLIOS 16
#define FIRST_NODES 2
#define FIRST_DECISIONS 64
/* Below what the C library would give its own mapping, and take back, each time. */
#define MOST_BLOCK_BYTES (64 << 10)

struct slot { struct slot *next; };

__thread struct kshim *kshim_running;

/* --- ending a replay early ------------------------------------------------ */
static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = 0;

	for (; from[n] && n + 1 < size; n++)
		to[n] = from[n];
	to[n] = '\0';
}

static void note(struct kshim_stop *stop, u32 kind, const char *what, const char *file, unsigned int line)
{
	stop->kind = kind;
	stop->line = line;
	copy_text(stop->what, sizeof(stop->what), what);
	copy_text(stop->file, sizeof(stop->file), file);
}

static void __attribute__((noreturn)) end_replay(struct kshim *k)
{
	if (k->task)
		kshim_task_dies(k);
	longjmp(k->out, 1);
}

void kshim_bug(const char *what, const char *file, unsigned int line)
{
	struct kshim *k = kshim_running;

	if (!k)
		__builtin_trap();
	note(&k->stop, KSHIM_BUG, what, file, line);
	end_replay(k);
}

void kshim_warn(const char *what, const char *file, unsigned int line)
{
	struct kshim *k = kshim_running;

	if (k && !k->warnings++)
		note(&k->first_warning, KSHIM_BUG, what, file, line);
}

void *kshim_must(void *memory)
{
	struct kshim *k = kshim_running;

	if (memory)
		return memory;
	if (!k)
		__builtin_trap();
	note(&k->stop, KSHIM_NO_MEMORY, "memory", "", 0);
	end_replay(k);
}

/* --- memory: kept per replay, given back all at once ----------------------- */
static void *pool_take(struct pool *pool, size_t size, unsigned int first_count)
{
	struct slot *slot = pool->free;

	if (unlikely(!slot)) {
		unsigned int most = MOST_BLOCK_BYTES / size;
		unsigned int count = pool->last_count ? min(2 * pool->last_count, most) : first_count;
		char *block = kshim_must(__builtin_malloc(size * count + sizeof(struct slot)));

		pool->last_count = count;
		((struct slot *)block)->next = pool->blocks;
		pool->blocks = block;
		block += sizeof(struct slot);
		while (count--) {
			((struct slot *)(block + size * count))->next = slot;
			slot = (struct slot *)(block + size * count);
		}
	}
	pool->free = slot->next;
	return slot;
}

static void pool_give(struct pool *pool, void *memory)
{
	((struct slot *)memory)->next = pool->free;
	pool->free = memory;
}

static void pool_empty(struct pool *pool)
{
	while (pool->blocks) {
		struct slot *block = pool->blocks;

		pool->blocks = block->next;
		__builtin_free(block);
	}
}

void *kshim_node_alloc(void)
{
	struct xa_node *node = pool_take(&kshim_running->nodes, sizeof(*node), FIRST_NODES);

	memset(node, 0, sizeof(*node));
	INIT_LIST_HEAD(&node->private_list);
	return node;
}

void kshim_node_free(void *node)
{
	pool_give(&kshim_running->nodes, node);
}

struct folio *kshim_folio_alloc(unsigned int order)
{
	struct folio *folio = pool_take(&kshim_running->folios, sizeof(*folio), FIRST_FOLIOS);

	memset(folio, 0, sizeof(*folio));
	folio->order = order;
	folio->refs = 1;
	return folio;
}

void kshim_folio_free(struct folio *folio)
{
	BUG_ON(folio->mapping);
	pool_give(&kshim_running->folios, folio);
}

/* --- decisions -------------------------------------------------------------- */
struct kshim_decision *kshim_decide(struct kshim *k, enum kshim_decision_kind kind)
{
	struct kshim_decision *d;

	if (unlikely(k->nr_log == k->max_log)) {
		size_t max = k->max_log ? 2 * k->max_log : FIRST_DECISIONS;

		k->log = kshim_must(__builtin_realloc(k->log, max * sizeof(*k->log)));
		k->max_log = max;
	}
	d = &k->log[k->nr_log++];
	*d = (struct kshim_decision){ .access = k->access, .kind = kind };
	return d;
}

static u32 narrow(unsigned long n)
{
	return n > U32_MAX ? U32_MAX : n;
}

void kshim_decide_range(struct kshim *k, enum kshim_decision_kind kind, pgoff_t index, unsigned long n)
{
	struct kshim_decision *d = kshim_decide(k, kind);

	d->index = index;
	d->n = narrow(n);
}

void kshim_folio_marked(struct folio *folio)
{
	struct kshim *k = kshim_running;

	/* A mark set before the folio is inserted is seen at the insertion. */
	if (folio->mapping && folio->record >= k->logged_before && folio->record < k->logged_before + k->nr_log)
		k->log[folio->record - k->logged_before].flags |= 1;
}

/* --- page cache --------------------------------------------------------------- */
int filemap_add_folio(struct address_space *mapping, struct folio *folio, pgoff_t index, gfp_t gfp)
{
	struct kshim *k = mapping->shim;
	XA_STATE(xas, &mapping->i_pages, index);
	unsigned long n = folio_nr_pages(folio);
	struct kshim_decision *d;

	BUG_ON(index & (n - 1));
	kshim_task_inserts(k, index);
	xas_set_order(&xas, index, folio_order(folio));
	/* Evicted folios leave no shadow entries, so whatever is there is a folio. */
	if (xas_find_conflict(&xas))
		return -EEXIST;
	do {
		xas_store(&xas, folio);
	} while (xas_nomem(&xas, gfp));
	BUG_ON(xas_error(&xas));

	folio->index = index;
	folio->mapping = mapping;
	folio->refs += n;
	set_bit(KSHIM_PG_LOCKED, &folio->flags);
	mapping->nrpages += n;
	if (k->quiet)
		return 0;
	folio->record = k->logged_before + k->nr_log;
	d = kshim_decide(k, KSHIM_FOLIO);
	d->index = index;
	d->order = folio_order(folio);
	d->flags = folio_test_readahead(folio);
	return 0;
}

/* What was read into it is there; a folio that leaves the cache is not waited for any more. */
static void arrive(struct folio *folio)
{
	if (!folio->read_pages)
		return;
	folio->read_pages = 0;
	folio_mark_uptodate(folio);
	folio_unlock(folio);
}

void filemap_remove_folio(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;
	XA_STATE(xas, &mapping->i_pages, folio->index);

	xas_set_order(&xas, folio->index, folio_order(folio));
	xas_store(&xas, NULL);
	BUG_ON(xas_error(&xas));
	arrive(folio);
	mapping->nrpages -= folio_nr_pages(folio);
	folio->mapping = NULL;
	folio_put_refs(folio, folio_nr_pages(folio));
}

static void complete(struct address_space *mapping, pgoff_t start, unsigned long n)
{
	pgoff_t end = start + n;

	while (start < end) {
		struct folio *folio = xa_load(&mapping->i_pages, start);

		start++;
		if (!folio)
			continue;
		start = folio->index + folio_nr_pages(folio);
		arrive(folio);
	}
}

void kshim_folio_wait(struct folio *folio)
{
	struct kshim *k = kshim_running;

	if (!folio->read_pages)
		folio_unlock(folio);
	else if (kshim_task_can_wait(k))
		kshim_task_waits(k, folio->index, folio->order);
	else
		complete(folio->mapping, folio->read_start, folio->read_pages);
}

void kshim_folio_put_wait(struct folio *folio)
{
	struct kshim *k = kshim_running;
	pgoff_t index = folio->index;
	unsigned int order = folio->order;

	if (folio->read_pages && kshim_task_can_wait(k)) {
		/* It may be gone when the wait is over. */
		folio_put(folio);
		kshim_task_waits(k, index, order);
	} else {
		kshim_folio_wait(folio);
		folio_put(folio);
	}
}

/* --- the file system: maps every page, reads what it is asked for ------------------ */
static void submit(struct folio *folio, pgoff_t start, unsigned long n)
{
	folio->read_start = start;
	folio->read_pages = n;
	if (folio->mapping->shim->completion == KSHIM_AT_ONCE)
		arrive(folio);
}

static void shim_readahead(struct readahead_control *ractl)
{
	pgoff_t start = readahead_index(ractl);
	unsigned long n = readahead_count(ractl);
	struct folio *folio;

	kshim_decide_range(ractl->mapping->shim, KSHIM_DEVICE_READ, start, n);
	while ((folio = readahead_folio(ractl)))
		submit(folio, start, n);
}

static int shim_read_folio(struct file *file, struct folio *folio)
{
	(void)file;
	kshim_decide_range(folio->mapping->shim, KSHIM_DEVICE_READ, folio->index, folio_nr_pages(folio));
	submit(folio, folio->index, folio_nr_pages(folio));
	return 0;
}

static const struct address_space_operations shim_aops = {
	.readahead = shim_readahead,
	.read_folio = shim_read_folio,
};

unsigned long kshim_invalidate(struct address_space *mapping, pgoff_t start, pgoff_t end)
{
	XA_STATE(xas, &mapping->i_pages, start);
	unsigned long count = 0;
	struct folio *folio;

	for (folio = xas_find(&xas, end); folio; folio = xas_find(&xas, end)) {
		pgoff_t last = folio->index + folio_nr_pages(folio) - 1;
		struct kshim_decision *d;

		if (folio->index < start || last > end || folio_test_locked(folio) || folio_mapped(folio))
			continue;
		d = kshim_decide(mapping->shim, KSHIM_DROPPED);
		d->index = folio->index;
		d->order = folio_order(folio);
		count += folio_nr_pages(folio);
		filemap_remove_folio(folio);
		xas_set(&xas, last + 1);
	}
	return count;
}

/* --- triggers: ld --wrap sends the read path's calls through these ------------------- */
/* Of words only: compared as bytes. */
struct window { unsigned long start, size, async_size, order; };

static struct window window_of(const struct file_ra_state *ra)
{
	return (struct window){
		.start = ra->start, .size = ra->size, .async_size = ra->async_size,
#ifdef KSHIM_HAS_file_ra_state__order
		.order = ra->order,
#else
		.order = KSHIM_NO_ORDER,
#endif
	};
}

static void trigger(struct kshim *k, enum kshim_trigger how, const struct readahead_control *ractl, unsigned long req_count)
{
	struct file *file = container_of(ractl->ra, struct file, f_ra);
	struct kshim_decision *d;

	if (k->task && file->prev_pos_told != file->f_ra.prev_pos) {
		file->prev_pos_told = file->f_ra.prev_pos;
		kshim_decide(k, KSHIM_PREV_POS_IS)->index = file->f_ra.prev_pos;
	}
	d = kshim_decide(k, KSHIM_TRIGGER);
	d->flags = how;
	d->index = readahead_index(ractl);
	d->n = narrow(req_count);
}

static void triggered(struct kshim *k, const struct file_ra_state *ra, struct window before)
{
	struct window after = window_of(ra);
	struct kshim_decision *d;

	if (!memcmp(&before, &after, sizeof(after)))
		return;
	k->window_logged = true;
	d = kshim_decide(k, KSHIM_WINDOW);
	d->index = after.start;
	d->n = after.size;
	d->extra = after.async_size;
	d->order = after.order;
}

static bool is_forced(const struct readahead_control *ractl)
{
	return !ractl->ra->ra_pages || (ractl->file && (ractl->file->f_mode & FMODE_RANDOM));
}

void __real_page_cache_sync_ra(struct readahead_control *ractl, unsigned long req_count);
void __wrap_page_cache_sync_ra(struct readahead_control *ractl, unsigned long req_count);
void __wrap_page_cache_sync_ra(struct readahead_control *ractl, unsigned long req_count)
{
	struct window before = window_of(ractl->ra);
	struct file_ra_state *ra = ractl->ra;
	struct kshim *k = ractl->mapping->shim;

	trigger(k, is_forced(ractl) ? KSHIM_FORCED : KSHIM_SYNC, ractl, req_count);
	__real_page_cache_sync_ra(ractl, req_count);
	triggered(k, ra, before);
	kshim_task_triggered(k);
}

void __real_page_cache_async_ra(struct readahead_control *ractl, struct folio *folio, unsigned long req_count);
void __wrap_page_cache_async_ra(struct readahead_control *ractl, struct folio *folio, unsigned long req_count);
void __wrap_page_cache_async_ra(struct readahead_control *ractl, struct folio *folio, unsigned long req_count)
{
	struct window before = window_of(ractl->ra);
	struct file_ra_state *ra = ractl->ra;
	struct kshim *k = ractl->mapping->shim;

	trigger(k, KSHIM_ASYNC, ractl, req_count);
	__real_page_cache_async_ra(ractl, folio, req_count);
	triggered(k, ra, before);
	kshim_task_triggered(k);
}

void __real_force_page_cache_ra(struct readahead_control *ractl, unsigned long nr_to_read);
void __wrap_force_page_cache_ra(struct readahead_control *ractl, unsigned long nr_to_read);
void __wrap_force_page_cache_ra(struct readahead_control *ractl, unsigned long nr_to_read)
{
	trigger(ractl->mapping->shim, KSHIM_FORCED, ractl, nr_to_read);
	__real_force_page_cache_ra(ractl, nr_to_read);
}

/* --- system calls ------------------------------------------------------------------- */
struct fd kshim_fd(void)
{
	return (struct fd){ kshim_running->current_file };
}

/* The byte after the last one read. */
static loff_t read_file(struct file *file, loff_t pos, size_t count)
{
	struct kiocb iocb = { .ki_filp = file, .ki_pos = pos };
	struct iov_iter iter = { .count = count, .pos = pos };

	filemap_read(&iocb, &iter, 0);
	return iocb.ki_pos;
}

static void sync_ra(struct file *file, pgoff_t index, unsigned long req_count)
{
	DEFINE_READAHEAD(ractl, file, &file->f_ra, file->f_mapping, index);

	__wrap_page_cache_sync_ra(&ractl, req_count);
}

static void async_ra(struct file *file, pgoff_t index, unsigned long req_count)
{
	DEFINE_READAHEAD(ractl, file, &file->f_ra, file->f_mapping, index);
	struct folio *folio = xa_load(&file->f_mapping->i_pages, index);

	if (folio)
		__wrap_page_cache_async_ra(&ractl, folio, req_count);
}

/* --- faults --------------------------------------------------------------------------- */
void kshim_pmd_install(struct mm_struct *mm, pmd_t *pmd)
{
	pmd->ptes = mm->ptes + (pmd - mm->pmds) * PTRS_PER_PTE;
}

static void map_pages(struct mm_struct *mm, struct folio *folio, pgoff_t index, unsigned int n)
{
	struct kshim *k = folio->mapping->shim;
	struct kshim_decision *last = k->nr_log ? &k->log[k->nr_log - 1] : NULL;

	/* Small folios are mapped one by one, but are one range to whoever reads this. */
	if (last && last->kind == KSHIM_MAPPED && last->access == k->access && last->index + last->n == index)
		last->n += n;
	else
		kshim_decide_range(k, KSHIM_MAPPED, index, n);
	folio->mapcount += n;
	memset(&mm->ptes[index], 1, n);
}

void set_pte_range(struct vm_fault *vmf, struct folio *folio, struct page *page, unsigned int n, unsigned long address)
{
	(void)page;
	map_pages(vmf->vma->vm_mm, folio, address >> PAGE_SHIFT, n);
}

void do_set_pte(struct vm_fault *vmf, struct page *page, unsigned long address)
{
	set_pte_range(vmf, page_folio(page), page, 1, address);
}

/* Maps a folio of PMD size as a whole; the file is mapped at an address that allows it. */
vm_fault_t kshim_set_pmd(struct vm_fault *vmf)
{
	pgoff_t first = round_down(vmf->pgoff, PTRS_PER_PTE);
	struct folio *folio = xa_load(&vmf->vma->vm_file->f_mapping->i_pages, first);

	if (!folio || folio->index > first || !folio_test_pmd_mappable(folio) || first + PTRS_PER_PTE > vma_pages(vmf->vma))
		return VM_FAULT_FALLBACK;
	kshim_pmd_install(vmf->vma->vm_mm, vmf->pmd);
	vmf->pmd->huge = true;
	map_pages(vmf->vma->vm_mm, folio, first, PTRS_PER_PTE);
	return 0;
}

/* The mapping's own fault_around_bytes, clipped to the page table and the mapping. */
static vm_fault_t fault_around(struct kshim *k, struct vm_fault *vmf)
{
	pgoff_t slot = pte_index(vmf->address), around = k->fault_around_pages;
	pgoff_t first = max(round_down(slot, around), slot - min(slot, vmf->pgoff));
	pgoff_t end = min3(first + around, (pgoff_t)PTRS_PER_PTE, slot + vma_pages(vmf->vma) - vmf->pgoff);

	if (pmd_none(*vmf->pmd))
		vmf->prealloc_pte = vmf->vma->vm_mm->ptes;
	return filemap_map_pages(vmf, vmf->pgoff - slot + first, vmf->pgoff - slot + end - 1);
}

/* Around first, the fault proper after, and the one page mapped when that succeeds at once. */
static vm_fault_t read_fault(struct kshim *k, struct vm_fault *vmf)
{
	struct folio *folio;
	vm_fault_t ret = 0;

	if (k->fault_around_pages > 1)
		ret = fault_around(k, vmf);
	if (ret)
		return ret;
	ret = filemap_fault(vmf);
	if (ret & (VM_FAULT_OOM | VM_FAULT_SIGBUS | VM_FAULT_NOPAGE | VM_FAULT_RETRY))
		return ret;
	folio = page_folio(vmf->page);
	if (pmd_none(*vmf->pmd))
		kshim_pmd_install(vmf->vma->vm_mm, vmf->pmd);
	map_pages(vmf->vma->vm_mm, folio, vmf->pgoff, 1);
	folio_unlock(folio);
	return ret;
}

static struct mm_struct *mm_of(struct file *file)
{
	unsigned long npages = DIV_ROUND_UP(i_size_read(file->f_inode), PAGE_SIZE);
	unsigned long npmds = DIV_ROUND_UP(npages, PTRS_PER_PTE);
	struct mm_struct *mm = file->mm;

	if (mm)
		return mm;
	mm = file->mm = kshim_must(__builtin_calloc(1, sizeof(*mm)));
	mm->npages = npages;
	mm->ptes = kshim_must(__builtin_calloc(npmds + 1, PTRS_PER_PTE * sizeof(pte_t)));
	mm->pmds = kshim_must(__builtin_calloc(npmds + 1, sizeof(pmd_t)));
	return mm;
}

static vm_flags_t vm_flags(u8 flags)
{
	return (flags & KSHIM_VM_RAND_READ ? VM_RAND_READ : 0) | (flags & KSHIM_VM_SEQ_READ ? VM_SEQ_READ : 0) |
	       (flags & KSHIM_VM_EXEC ? VM_EXEC : 0) | (flags & KSHIM_VM_HUGEPAGE ? VM_HUGEPAGE : 0);
}

static void touch(struct kshim *k, struct file *file, pgoff_t index, u8 flags)
{
	struct mm_struct *mm = mm_of(file);
	struct vm_area_struct vma = {
		.vm_end = mm->npages << PAGE_SHIFT, .vm_flags = vm_flags(flags), .vm_file = file, .vm_mm = mm,
	};
	unsigned int attempt = FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_KILLABLE | FAULT_FLAG_USER;
	size_t at = k->nr_log;
	vm_fault_t ret, all = 0;

	if (index >= mm->npages || mm->ptes[index])
		return;
	kshim_decide_range(k, KSHIM_FAULT, index, 1);
	do {
		struct vm_fault vmf = {
			.vma = &vma, .pgoff = index, .address = index << PAGE_SHIFT, .flags = attempt,
			.pmd = &mm->pmds[index / PTRS_PER_PTE], .gfp_mask = GFP_KERNEL,
		};

		struct window before = window_of(&file->f_ra);

		vmf.real_address = vmf.address;
		k->window_logged = false;
		ret = read_fault(k, &vmf);
		/* Read-around sets the window without any of the triggers above. */
		if (!k->window_logged)
			triggered(k, &file->f_ra, before);
		all |= ret;
		attempt |= FAULT_FLAG_TRIED;
	} while (ret & VM_FAULT_RETRY);
	k->log[at].flags = !!(all & VM_FAULT_MAJOR);
}

/* --- evictions and what was there before -------------------------------------------------- */
static void unmap(struct kshim *k, struct folio *folio)
{
	pgoff_t first = folio->index;
	unsigned long n = folio_nr_pages(folio);
	u32 i;

	for (i = 0; i < k->nr_files && folio->mapcount; i++) {
		struct mm_struct *mm = k->files[i] ? k->files[i]->mm : NULL;
		pgoff_t page;

		if (!mm)
			continue;
		for (page = first; page < first + n && page < mm->npages; page++) {
			if (!mm->ptes[page])
				continue;
			mm->ptes[page] = 0;
			mm->pmds[page / PTRS_PER_PTE].huge = false;
			folio->mapcount--;
			/* A PMD mapping holds one reference for all its pages. */
			if (folio->refs > n)
				folio->refs--;
		}
	}
}

static void evict(struct kshim *k, pgoff_t index)
{
	struct folio *folio = xa_load(&k->mapping.i_pages, index);

	if (!folio)
		return;
	unmap(k, folio);
	filemap_remove_folio(folio);
}

static void put_in_cache(struct kshim *k, pgoff_t index, unsigned int order)
{
	struct folio *folio = kshim_folio_alloc(order);

	k->quiet = true;
	if (!filemap_add_folio(&k->mapping, folio, round_down(index, 1UL << order), 0)) {
		folio_mark_uptodate(folio);
		folio_unlock(folio);
	}
	k->quiet = false;
	folio_put(folio);
}

static void close_file(struct kshim *k, u32 id)
{
	struct file *file = k->files[id];

	if (!file)
		return;
	if (file->mm) {
		__builtin_free(file->mm->ptes);
		__builtin_free(file->mm->pmds);
		__builtin_free(file->mm);
	}
	__builtin_free(file);
	k->files[id] = NULL;
}

/* --- the C ABI --------------------------------------------------------------------------------- */
uint32_t kshim_abi(void)
{
	return KSHIM_ABI;
}

static void set_folio_orders(struct address_space *mapping, const struct kshim_settings *s)
{
	mapping->flags = 0;
#if defined(KSHIM_HAS_mapping_set_folio_order_range)
	mapping_set_folio_order_range(mapping, s->min_order, s->max_order);
#elif defined(KSHIM_HAS_mapping_set_large_folios)
	if (s->max_order)
		mapping_set_large_folios(mapping);
#endif
}

static void set_up(struct kshim *k, const struct kshim_settings *s)
{
	k->bdi = (struct backing_dev_info){ .ra_pages = s->ra_pages, .io_pages = s->io_pages };
	k->sb = (struct super_block){ .s_maxbytes = LLONG_MAX, .s_bdi = &k->bdi };
	k->inode = (struct inode){ .i_mode = S_IFREG, .i_blkbits = PAGE_SHIFT, .i_sb = &k->sb, .i_mapping = &k->mapping };
	k->inode.i_size = s->i_size;
	k->mapping.host = &k->inode;
	k->mapping.a_ops = &shim_aops;
	k->mapping.shim = k;
	xa_init_flags(&k->mapping.i_pages, 0);
	set_folio_orders(&k->mapping, s);
	k->completion = s->completion;
	k->fault_around_pages = 1u << s->fault_around_order;
}

struct kshim *kshim_new(const struct kshim_settings *s)
{
	struct kshim *k = __builtin_calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	kshim_running = k;
	if (setjmp(k->out))
		return k;	/* kshim_stopped() says why */
	set_up(k, s);
	return k;
}

void kshim_free(struct kshim *k)
{
	u32 i;

	kshim_tasks_free(k);
	for (i = 0; i < k->nr_files; i++)
		close_file(k, i);
	pool_empty(&k->folios);
	pool_empty(&k->nodes);
	__builtin_free(k->files);
	__builtin_free(k->log);
	__builtin_free(k);
}

int64_t kshim_open(struct kshim *k)
{
	static const struct file_operations no_operations;
	struct file *file;

	kshim_running = k;
	if (k->stop.kind || setjmp(k->out))
		return -1;
	if (k->nr_files == k->max_files) {
		u32 max = k->max_files ? 2 * k->max_files : 4;

		k->files = kshim_must(__builtin_realloc(k->files, max * sizeof(*k->files)));
		k->max_files = max;
	}
	file = kshim_must(__builtin_calloc(1, sizeof(*file)));
	file->f_mode = FMODE_READ;
	file->f_inode = &k->inode;
	file->f_mapping = &k->mapping;
	file->f_op = &no_operations;
	file->prev_pos_told = -1;
	file_ra_state_init(&file->f_ra, &k->mapping);
	k->files[k->nr_files] = file;
	return k->nr_files++;
}

/* Of a read, the byte after the last one read. */
loff_t kshim_replay_one(struct kshim *k, const struct kshim_access *a)
{
	struct file *file = a->open < k->nr_files ? k->files[a->open] : NULL;

	if (!file && a->kind != KSHIM_EVICT && a->kind != KSHIM_CACHED && a->kind != KSHIM_COMPLETE)
		return 0;
	k->current_file = file;
	switch ((enum kshim_access_kind)a->kind) {
	case KSHIM_READ:
		return read_file(file, a->pos, a->len);
	case KSHIM_TOUCH:
		touch(k, file, a->pos >> PAGE_SHIFT, a->flags);
		break;
	case KSHIM_FADV_NORMAL:
	case KSHIM_FADV_RANDOM:
	case KSHIM_FADV_SEQUENTIAL:
	case KSHIM_FADV_WILLNEED:
	case KSHIM_FADV_DONTNEED:
		vfs_fadvise(file, a->pos, a->len, a->kind - KSHIM_FADV_NORMAL);
		break;
	case KSHIM_READAHEAD:
		ksys_readahead(0, a->pos, a->len);
		break;
	case KSHIM_EVICT:
		evict(k, a->pos >> PAGE_SHIFT);
		break;
	case KSHIM_CACHED:
		put_in_cache(k, a->pos >> PAGE_SHIFT, a->order);
		break;
	case KSHIM_COMPLETE:
		complete(&k->mapping, a->pos >> PAGE_SHIFT, PFN_UP(a->pos + a->len) - (a->pos >> PAGE_SHIFT));
		break;
	case KSHIM_CLOSE:
		close_file(k, a->open);
		break;
	case KSHIM_SYNC_RA:
		sync_ra(file, a->pos >> PAGE_SHIFT, a->len);
		break;
	case KSHIM_ASYNC_RA:
		async_ra(file, a->pos >> PAGE_SHIFT, a->len);
		break;
	case KSHIM_PREV_POS:
		file->f_ra.prev_pos = a->pos;
		break;
	case KSHIM_RA_PAGES:
		file->f_ra.ra_pages = a->len;
		break;
	case KSHIM_GO_ON:
		break;
	}
	return 0;
}

size_t kshim_replay(struct kshim *k, const struct kshim_access *accesses, size_t n, volatile uint64_t *progress)
{
	volatile size_t i = 0;

	*progress = 0;
	kshim_running = k;
	k->logged_before += k->nr_log;
	k->nr_log = 0;
	if (k->stop.kind || setjmp(k->out))
		return i;
	for (; i < n; i++) {
		size_t at = k->nr_log;

		k->access = i;
		*progress = i;
		if (accesses[i].task == KSHIM_NO_TASK)
			kshim_replay_one(k, &accesses[i]);
		else
			kshim_task_replay(k, &accesses[i]);
		if (accesses[i].foretold && !kshim_task_as_foretold(k, &accesses[i], at)) {
			note(&k->stop, KSHIM_NOT_FORETOLD, "", "", 0);
			break;
		}
	}
	return i;
}

const struct kshim_decision *kshim_decisions(struct kshim *k, size_t *n)
{
	*n = k->nr_log;
	return k->log;
}

const struct kshim_stop *kshim_stopped(const struct kshim *k)
{
	return &k->stop;
}

uint64_t kshim_warnings(const struct kshim *k, const struct kshim_stop **first)
{
	*first = &k->first_warning;
	return k->warnings;
}
