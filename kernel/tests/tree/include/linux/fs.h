#ifndef TEST_FS_H
#define TEST_FS_H
#include <linux/xarray.h>

struct file_ra_state {
	pgoff_t start;
	unsigned int size;
	unsigned int async_size;
	unsigned int ra_pages;
	loff_t prev_pos;
};

void file_ra_state_init(struct file_ra_state *ra, struct address_space *mapping);
int vfs_fadvise(struct file *file, loff_t offset, loff_t len, int advice);
ssize_t filemap_read(struct kiocb *iocb, struct iov_iter *iter, ssize_t already);

static inline loff_t i_size_read(const struct inode *inode)
{
	return inode->i_size;
}
#endif
