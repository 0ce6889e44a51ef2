// SPDX-License-Identifier: GPL-2.0-only
/* what ->fileattr_get() fills is a struct file_kattr, not a struct fileattr */
#include <linux/fs.h>
#include <linux/fileattr.h>
int probe(struct inode *inode, struct dentry *dentry);
int probe(struct inode *inode, struct dentry *dentry)
{
	struct file_kattr fa = {};

	return inode->i_op->fileattr_get(dentry, &fa);
}
