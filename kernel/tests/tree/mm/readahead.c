/* A readahead of our own for the tests: a fixed window of order-2 folios, the first one marked. */
#include <linux/kernel.h>
#include <linux/pagemap.h>
#include <linux/file.h>

#define CREATE_TRACE_POINTS
#include <trace/events/readahead.h>

#include "internal.h"

#define WINDOW_ORDER 2

void file_ra_state_init(struct file_ra_state *ra, struct address_space *mapping)
{
	ra->ra_pages = inode_to_bdi(mapping->host)->ra_pages;
	ra->prev_pos = -1;
}
EXPORT_SYMBOL_GPL(file_ra_state_init);

static void submit(struct readahead_control *ractl)
{
	if (readahead_count(ractl))
		ractl->mapping->a_ops->readahead(ractl);
}

static void read_window(struct readahead_control *ractl, unsigned long size, unsigned int order, bool mark)
{
	struct file_ra_state *ra = ractl->ra;
	struct address_space *mapping = ractl->mapping;
	pgoff_t last = (i_size_read(mapping->host) - 1) >> PAGE_SHIFT;
	pgoff_t index = readahead_index(ractl);
	pgoff_t end = min(index + size, last + 1);

	trace_fixed_window(mapping->host, index);
	ra->start = index;
	ra->size = end > index ? end - index : 0;
	ra->async_size = ra->size;
	while (index < end) {
		struct folio *folio;

		while (order && (index & ((1UL << order) - 1) || index + (1UL << order) > end))
			order--;
		folio = filemap_alloc_folio(0, order, NULL);
		if (mark)
			folio_set_readahead(folio);
		mark = false;
		if (filemap_add_folio(mapping, folio, index, 0)) {
			folio_put(folio);
			break;
		}
		ractl->_nr_pages += folio_nr_pages(folio);
		index += folio_nr_pages(folio);
	}
	submit(ractl);
}

void force_page_cache_ra(struct readahead_control *ractl, unsigned long nr_to_read)
{
	read_window(ractl, nr_to_read, 0, false);
}

void page_cache_sync_ra(struct readahead_control *ractl, unsigned long req_count)
{
	struct file_ra_state *ra = ractl->ra;

	if (!ra->ra_pages || (ractl->file->f_mode & FMODE_RANDOM)) {
		force_page_cache_ra(ractl, req_count);
		return;
	}
	read_window(ractl, ra->ra_pages, min_t(unsigned int, WINDOW_ORDER, mapping_orders(ractl->mapping)), true);
}

void page_cache_async_ra(struct readahead_control *ractl, struct folio *folio, unsigned long req_count)
{
	struct file_ra_state *ra = ractl->ra;

	folio_clear_readahead(folio);
	ractl->_index = ra->start + ra->size;
	read_window(ractl, ra->ra_pages, min_t(unsigned int, WINDOW_ORDER, mapping_orders(ractl->mapping)), true);
}

ssize_t ksys_readahead(int fd, loff_t offset, size_t count)
{
	CLASS(fd, f)(fd);

	if (fd_empty(f))
		return -EBADF;
	return vfs_fadvise(fd_file(f), offset, count, POSIX_FADV_WILLNEED);
}

SYSCALL_DEFINE3(readahead, int, fd, loff_t, offset, size_t, count)
{
	return ksys_readahead(fd, offset, count);
}
