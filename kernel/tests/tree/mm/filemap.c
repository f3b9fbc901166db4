#include <linux/pagemap.h>
#include <asm/pgalloc.h>
#include "internal.h"

/* Not wanted, and nothing it names exists. */
int filemap_write_everything(struct nothing *nothing)
{
	return nothing_at_all(nothing);
}

static struct folio *look_up(struct kiocb *iocb, size_t count)
{
	struct file *file = iocb->ki_filp;
	pgoff_t index = iocb->ki_pos >> PAGE_SHIFT;
	pgoff_t end = DIV_ROUND_UP(iocb->ki_pos + count, PAGE_SIZE);
	struct folio *folio = xa_load(&file->f_mapping->i_pages, index);

	if (!folio) {
		DEFINE_READAHEAD(ractl, file, &file->f_ra, file->f_mapping, index);

		page_cache_sync_ra(&ractl, end - index);
		folio = xa_load(&file->f_mapping->i_pages, index);
	}
	BUG_ON(!folio);
	if (folio_test_readahead(folio)) {
		DEFINE_READAHEAD(ractl, file, &file->f_ra, file->f_mapping, folio->index);

		page_cache_async_ra(&ractl, folio, end - folio->index);
	}
	return folio;
}

/* From the position on, up to a hole, before a marked folio, or with one that is still being read. */
static void collect(struct kiocb *iocb, size_t count, struct folio_batch *batch)
{
	struct file *file = iocb->ki_filp;
	pgoff_t index = iocb->ki_pos >> PAGE_SHIFT;
	pgoff_t end = DIV_ROUND_UP(iocb->ki_pos + count, PAGE_SIZE);

	while (index < end) {
		struct folio *folio = xa_load(&file->f_mapping->i_pages, index);

		if (!folio || (folio_batch_count(batch) && folio_test_readahead(folio)))
			break;
		folio_get(folio);
		if (!folio_batch_add(batch, folio) || !folio_test_uptodate(folio))
			break;
		index = folio->index + folio_nr_pages(folio);
	}
}

ssize_t filemap_read(struct kiocb *iocb, struct iov_iter *iter, ssize_t already)
{
	struct inode *inode = iocb->ki_filp->f_mapping->host;
	struct folio_batch batch;
	unsigned int i;

	folio_batch_init(&batch);
	while (iov_iter_count(iter) && iocb->ki_pos < i_size_read(inode)) {
		look_up(iocb, iov_iter_count(iter));
		collect(iocb, iov_iter_count(iter), &batch);
		if (!folio_test_uptodate(batch.folios[batch.nr - 1]))
			folio_wait_locked(batch.folios[batch.nr - 1]);
		for (i = 0; i < folio_batch_count(&batch); i++) {
			struct folio *folio = batch.folios[i];
			size_t offset = iocb->ki_pos & (folio_size(folio) - 1);
			size_t left = min_t(size_t, folio_size(folio) - offset, i_size_read(inode) - iocb->ki_pos);
			size_t n = copy_folio_to_iter(folio, offset, left, iter);

			iocb->ki_pos += n;
			already += n;
			folio_put(folio);
		}
		folio_batch_init(&batch);
	}
	iocb->ki_filp->f_ra.prev_pos = iocb->ki_pos;
	return already;
}

vm_fault_t filemap_fault(struct vm_fault *vmf)
{
	struct kiocb iocb = { .ki_filp = vmf->vma->vm_file, .ki_pos = (loff_t)vmf->pgoff << PAGE_SHIFT };
	struct folio *folio = look_up(&iocb, PAGE_SIZE);

	folio_lock(folio);
	folio_get(folio);
	vmf->page = folio_page(folio, vmf->pgoff - folio->index);
	return VM_FAULT_LOCKED | VM_FAULT_MAJOR;
}

vm_fault_t filemap_map_pages(struct vm_fault *vmf, pgoff_t first, pgoff_t last)
{
	vm_fault_t ret = 0;

	for (; first <= last; first++) {
		struct folio *folio = xa_load(&vmf->vma->vm_file->f_mapping->i_pages, first);

		if (!folio || !folio_test_uptodate(folio) || folio_test_readahead(folio) || vmf->vma->vm_mm->ptes[first])
			continue;
		folio_get(folio);
		set_pte_range(vmf, folio, &folio->page, 1, first << PAGE_SHIFT);
		if (first == vmf->pgoff)
			ret = VM_FAULT_NOPAGE;
	}
	return ret;
}
