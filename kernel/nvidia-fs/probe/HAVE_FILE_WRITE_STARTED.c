// SPDX-License-Identifier: GPL-2.0-only
/* kernels whose vfs_iocb_iter_write() takes the freeze protection itself: file_write_started()
 * came with that change. kiocb_start_write() is no sign of it: it is older, and the stable
 * series of 6.1 has it, too, where the caller has to take the protection.
 */
#include <linux/fs.h>
bool probe(const struct file *file);
bool probe(const struct file *file)
{
	return file_write_started(file);
}
