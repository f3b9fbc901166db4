#include <linux/fadvise.h>
#include "internal.h"

int generic_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
{
	struct backing_dev_info *bdi = inode_to_bdi(file_inode(file));
	DEFINE_READAHEAD(ractl, file, &file->f_ra, file->f_mapping, offset >> PAGE_SHIFT);

	switch (advice) {
	case POSIX_FADV_NORMAL:
		file->f_ra.ra_pages = bdi->ra_pages;
		file->f_mode &= ~FMODE_RANDOM;
		break;
	case POSIX_FADV_RANDOM:
		file->f_mode |= FMODE_RANDOM;
		break;
	case POSIX_FADV_SEQUENTIAL:
		file->f_ra.ra_pages = 2 * bdi->ra_pages;
		break;
	case POSIX_FADV_WILLNEED:
		force_page_cache_ra(&ractl, DIV_ROUND_UP(offset + len, PAGE_SIZE) - (offset >> PAGE_SHIFT));
		break;
	case POSIX_FADV_DONTNEED:
		invalidate_mapping_pages(file->f_mapping, offset >> PAGE_SHIFT, (offset + len - 1) >> PAGE_SHIFT);
		break;
	}
	return 0;
}

int vfs_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
{
	return generic_fadvise(file, offset, len, advice);
}
