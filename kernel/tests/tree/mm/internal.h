#ifndef TEST_INTERNAL_H
#define TEST_INTERNAL_H
void force_page_cache_ra(struct readahead_control *ractl, unsigned long nr_to_read);
#endif
