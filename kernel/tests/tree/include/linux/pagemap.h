#ifndef TEST_PAGEMAP_H
#define TEST_PAGEMAP_H
#include <linux/fs.h>

struct readahead_control {
	struct file *file;
	struct address_space *mapping;
	struct file_ra_state *ra;
	pgoff_t _index;
	unsigned int _nr_pages;
	unsigned int _batch_count;
};

#define DEFINE_READAHEAD(ractl, f, r, m, i) \
	struct readahead_control ractl = { .file = f, .mapping = m, .ra = r, ._index = i }

void page_cache_sync_ra(struct readahead_control *ractl, unsigned long req_count);
void page_cache_async_ra(struct readahead_control *ractl, struct folio *folio, unsigned long req_count);

static inline pgoff_t readahead_index(const struct readahead_control *ractl)
{
	return ractl->_index;
}

static inline unsigned int readahead_count(const struct readahead_control *ractl)
{
	return ractl->_nr_pages;
}

/* The next folio of the request; the one before it is left behind. */
static inline struct folio *readahead_folio(struct readahead_control *ractl)
{
	struct folio *folio;

	ractl->_index += ractl->_batch_count;
	ractl->_nr_pages -= ractl->_batch_count;
	ractl->_batch_count = 0;
	if (!ractl->_nr_pages)
		return NULL;
	folio = xa_load(&ractl->mapping->i_pages, ractl->_index);
	ractl->_batch_count = folio_nr_pages(folio);
	folio_put(folio);
	return folio;
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
static inline unsigned int mapping_orders(const struct address_space *mapping)
{
	return mapping->flags;
}
#else
static inline unsigned int mapping_orders(const struct address_space *mapping)
{
	(void)mapping;
	return 0;
}
#endif

static inline void mapping_set_folio_order_range(struct address_space *mapping, unsigned int low, unsigned int high)
{
	(void)low;
	mapping->flags = high;
}
#endif
