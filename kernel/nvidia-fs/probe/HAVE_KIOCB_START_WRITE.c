// SPDX-License-Identifier: GPL-2.0-only
/* kernels whose vfs_iocb_iter_write() takes the freeze protection itself also have
 * kiocb_start_write(); older ones leave it to the caller
 */
#include <linux/fs.h>
void probe(struct kiocb *iocb);
void probe(struct kiocb *iocb)
{
	kiocb_start_write(iocb);
}
