// SPDX-License-Identifier: GPL-2.0-only
/*
 * plug_test.c - submits what a test chooses inside one plug, where the block layer joins
 * neighbours: requests of other drivers (their ioctls) and direct I/O of host memory. From user
 * space only io_uring makes such a plug, and it has no ioctls.
 */
#define pr_fmt(fmt) "plug-test: " fmt

#include <linux/blkdev.h>
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "plug_test_abi.h"

struct plug_io {
	struct kiocb kb;
	struct completion done;
	long result;
	unsigned int npages;
	struct bio_vec bv[PLUG_MAX_LEN / PAGE_SIZE];	/* its pages are ours */
};

static void plug_done(struct kiocb *kb, long result)
{
	struct plug_io *io = container_of(kb, struct plug_io, kb);

	io->result = result;
	complete(&io->done);
}

static void plug_io_free(struct plug_io *io)
{
	unsigned int i;

	if (!io)
		return;
	for (i = 0; i < io->npages; i++)
		__free_page(io->bv[i].bv_page);
	kvfree(io);
}

/* Copy between the caller's buffer and the pages. 0 or -EFAULT. */
static int plug_io_copy(struct plug_io *io, void __user *buf, bool from_user)
{
	unsigned int i;

	for (i = 0; i < io->npages; i++, buf += PAGE_SIZE) {
		void *page = page_address(io->bv[i].bv_page);

		if (from_user ? copy_from_user(page, buf, PAGE_SIZE) :
				copy_to_user(buf, page, PAGE_SIZE))
			return -EFAULT;
	}
	return 0;
}

static struct plug_io *plug_io_new(const struct plug_step *s)
{
	struct plug_io *io;

	if (!s->len || s->len > PLUG_MAX_LEN || s->len % PAGE_SIZE)
		return ERR_PTR(-EINVAL);
	io = kvzalloc(sizeof(*io), GFP_KERNEL);
	if (!io)
		return ERR_PTR(-ENOMEM);
	init_completion(&io->done);
	for (; io->npages < s->len / PAGE_SIZE; io->npages++) {
		struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);

		if (!page)
			goto free;
		bvec_set_page(&io->bv[io->npages], page, PAGE_SIZE, 0);
	}
	if (s->kind != PLUG_WRITE || !plug_io_copy(io, u64_to_user_ptr(s->arg), true))
		return io;
free:
	plug_io_free(io);
	return ERR_PTR(-EFAULT);
}

static void plug_io_start(struct plug_io *io, const struct plug_step *s, struct file *file)
{
	bool write = s->kind == PLUG_WRITE;
	struct iov_iter iter;
	ssize_t r;

	iov_iter_bvec(&iter, write ? ITER_SOURCE : ITER_DEST, io->bv, io->npages, s->len);
	init_sync_kiocb(&io->kb, file);
	io->kb.ki_pos = s->offset;
	io->kb.ki_flags |= IOCB_DIRECT;
	io->kb.ki_complete = plug_done;
	r = write ? vfs_iocb_iter_write(file, &io->kb, &iter) :
		    vfs_iocb_iter_read(file, &io->kb, &iter);
	if (r != -EIOCBQUEUED)
		plug_done(&io->kb, r);
}

static void plug_step(struct plug_step *s, struct plug_io *io, struct file *file)
{
	if (s->kind != PLUG_IOCTL)
		plug_io_start(io, s, file);
	else if (file->f_op->unlocked_ioctl)
		s->result = file->f_op->unlocked_ioctl(file, s->cmd, s->arg);
	else
		s->result = -ENOTTY;
}

static long plug_run(struct plug_step *s, struct plug_io **io, struct file **file, u32 n)
{
	struct blk_plug plug;
	long r = 0;
	u32 i;

	for (i = 0; !r && i < n; i++) {
		file[i] = fget(s[i].fd);
		if (!file[i])
			r = -EBADF;
		if (s[i].kind != PLUG_IOCTL)
			io[i] = plug_io_new(&s[i]);
		if (IS_ERR(io[i])) {
			r = PTR_ERR(io[i]);
			io[i] = NULL;
		}
	}
	if (!r) {
		blk_start_plug(&plug);
		for (i = 0; i < n; i++)
			plug_step(&s[i], io[i], file[i]);
		blk_finish_plug(&plug);
	}
	for (i = 0; i < n; i++) {
		if (io[i] && !r) {
			wait_for_completion(&io[i]->done);
			s[i].result = io[i]->result;
			if (s[i].kind == PLUG_READ &&
			    plug_io_copy(io[i], u64_to_user_ptr(s[i].arg), false))
				s[i].result = -EFAULT;
		}
		plug_io_free(io[i]);
		if (file[i])
			fput(file[i]);
	}
	return r;
}

static long plug_ioctl(struct file *unused, unsigned int cmd, unsigned long arg)
{
	struct plug_run run;
	struct plug_step *s;
	struct plug_io **io;
	struct file **file;
	long r = -ENOMEM;

	if (cmd != PLUG_RUN)
		return -ENOTTY;
	if (copy_from_user(&run, (void __user *)arg, sizeof(run)))
		return -EFAULT;
	if (!run.count || run.count > PLUG_MAX_STEPS)
		return -EINVAL;
	s = kcalloc(run.count, sizeof(*s), GFP_KERNEL);
	io = kcalloc(run.count, sizeof(*io), GFP_KERNEL);
	file = kcalloc(run.count, sizeof(*file), GFP_KERNEL);
	if (s && io && file) {
		r = -EFAULT;
		if (!copy_from_user(s, u64_to_user_ptr(run.steps), run.count * sizeof(*s)))
			r = plug_run(s, io, file, run.count);
		if (!r && copy_to_user(u64_to_user_ptr(run.steps), s, run.count * sizeof(*s)))
			r = -EFAULT;
	}
	kfree(file);
	kfree(io);
	kfree(s);
	return r;
}

static const struct file_operations plug_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = plug_ioctl,
};

static struct miscdevice plug_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "plug-test",
	.fops = &plug_fops,
};

module_misc_device(plug_misc);
MODULE_DESCRIPTION("OpenGDS: requests of the tests' choice in one plug");
MODULE_LICENSE("GPL");
