// SPDX-License-Identifier: GPL-2.0-only
/*
 * async.c - asynchronous READ and WRITE: the ioctl submits, the fence page tells the end.
 *
 * The first window is submitted in the caller's context, so limits, credentials and
 * accounting are his; the file system calls back when the drive is through, perhaps in
 * hard IRQ, and a work item does the rest: verdict, blocks, fence. A request longer than
 * its mapping goes on there with the caller's credentials, window by window.
 *
 * Who holds what while a request is in flight:
 *   the file, the mapping, the credentials, the module    one reference each
 *   nvfs_mapping.users      from submission to the window's end: a pin stays usable
 *   nvfs_mapping.async      the fence page; nvfs_mapping.lock. One request at a time has
 *                           it, because the page has room for one result; it is free
 *                           again at the moment when the value can be seen
 *
 *   from        to          who                        when
 *   -           PREPARED    nvfs_async_prepare()       every check passed, fence taken
 *   PREPARED    -           nvfs_async_drop()          a batch with another bad entry
 *   PREPARED    IN FLIGHT   nvfs_async_submit()        the file system queued it; it is over
 *                                                      when the submission has returned, too
 *   PREPARED    ENDED       nvfs_async_submit()        it was through, or failed, at once
 *   IN FLIGHT   ENDED       nvfs_async_done()          one window, or an error
 *   IN FLIGHT   GOING ON    nvfs_async_done()          more windows, or a new drive
 *   GOING ON    ENDED       nvfs_async_go_on()         all windows
 * ENDED is written to the fence page, and the request is freed.
 *
 * munmap, exit, SIGKILL and freed GPU memory change the mapping's state only. What is in
 * flight ends by itself, and its result goes to the page, which the mapping keeps pinned.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "nvidia-fs.h"
#include "fault.h"
#include "io.h"
#include "log.h"
#include "p2p.h"
#include "trace.h"

struct nvfs_async {
	struct nvfs_req rq;
	struct nvfs_window w;
	struct kiocb kb;
	/*
	 * Two while the file system has the window: its completion, and the submission, after
	 * whose return it does not look at kb and the file any more (the completion may come
	 * before that). The last of them ends the window.
	 */
	atomic_t in_flight;
	struct work_struct done;
	struct work_struct go_on;
	const struct cred *cred;
	size_t size;
	size_t len;		/* of the first window */
	ssize_t r;		/* of the first window; written by who ends it */
	u64 value;		/* for the fence */
	u64 start;		/* nvfs_io_begin() */
	bool may_go_on;		/* the caller's file size limit allows all of it */
};

/* Short work that ends requests; closing a node waits for it, so it must not do I/O. */
static struct workqueue_struct *nvfs_done_wq;
/* Windows after the first one. */
static struct workqueue_struct *nvfs_go_on_wq;

/* Give everything back; the fence is free from here on. */
static void nvfs_async_release(struct nvfs_async *x, bool signal, ssize_t r)
{
	struct nvfs_mapping *m = x->rq.m;

	/* before the value can be seen: whoever sees it may close and unmount */
	fput(x->rq.file);
	put_cred(x->cred);
	nvfs_io_end(x->rq.write, r, x->start);

	spin_lock(&m->lock);
	if (signal)
		nvfs_fence_signal(m, r, x->value);
	m->async = false;
	spin_unlock(&m->lock);
	nvfs_mapping_put(m);
	kfree(x);
	module_put(THIS_MODULE);	/* who unloads waits for this work item first */
}

static void nvfs_async_go_on(struct work_struct *work)
{
	struct nvfs_async *x = container_of(work, struct nvfs_async, go_on);
	const struct cred *old = override_creds(x->cred);
	size_t done = max_t(ssize_t, x->r, 0);
	ssize_t r;

	if (x->r < 0)
		nvfs_peers_scan();
	x->rq.pos += done;
	x->rq.gpu_off += done;
	r = nvfs_windows(&x->rq, x->size - done);
	revert_creds(old);
	nvfs_async_release(x, true, r < 0 ? r : done + r);
}

/* The first window is over with r; true: the request is not, and goes on by itself. */
static bool nvfs_async_more(struct nvfs_async *x, ssize_t r)
{
	if (!x->may_go_on)
		return false;
	if (r < 0) {
		/* a drive that came while we were submitting: once more, with it */
		if (!test_and_clear_bit(0, &x->rq.m->missed))
			return false;
	} else if (r < x->len || x->len == x->size) {
		return false;
	}
	x->r = r;
	queue_work(nvfs_go_on_wq, &x->go_on);
	return true;
}

/* What a signal of the submitter's does to a request nobody can restart. */
static ssize_t nvfs_async_errno(ssize_t r)
{
	switch (r) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return -EINTR;
	}
	return r;
}

static ssize_t nvfs_async_end_window(struct nvfs_async *x, ssize_t r)
{
	r = nvfs_window_end(&x->rq, &x->w, nvfs_async_errno(r));
	nvfs_mapping_leave(x->rq.m);
	return r;
}

/* The write protection of the file system, which a queued write keeps until it is over. */
static void nvfs_async_end_write(struct kiocb *kb)
{
#ifdef HAVE_FILE_WRITE_STARTED
	kiocb_end_write(kb);
#else
	struct inode *inode = file_inode(kb->ki_filp);

	if (!S_ISREG(inode->i_mode))
		return;
	__sb_writers_acquired(inode->i_sb, SB_FREEZE_WRITE);
	file_end_write(kb->ki_filp);
#endif
}

static void nvfs_async_done(struct work_struct *work)
{
	struct nvfs_async *x = container_of(work, struct nvfs_async, done);
	ssize_t r;

	if (x->rq.write)
		nvfs_async_end_write(&x->kb);
	r = nvfs_async_end_window(x, x->r);
	if (!nvfs_async_more(x, r))
		nvfs_async_release(x, true, r);
}

/* Completion or submission is through with it; x may be gone when this returns. */
static void nvfs_async_landed(struct nvfs_async *x)
{
	if (atomic_dec_and_test(&x->in_flight))
		queue_work(nvfs_done_wq, &x->done);
}

/* From the file system, in any context. */
static void nvfs_async_complete(struct kiocb *kb, long r)
{
	struct nvfs_async *x = container_of(kb, struct nvfs_async, kb);

	x->r = r;
	nvfs_async_landed(x);
}

/* What the file system says; -EIOCBQUEUED: nvfs_async_complete() is or was called. */
static ssize_t nvfs_async_start(struct nvfs_async *x)
{
	struct file *file = x->rq.file;
	struct kiocb *kb = &x->kb;
	struct iov_iter iter;
	ssize_t r;

	iov_iter_bvec(&iter, x->rq.write ? ITER_SOURCE : ITER_DEST, x->w.bv, x->w.nbv, x->len);
	init_sync_kiocb(kb, file);
	kb->ki_complete = nvfs_async_complete;
	kb->ki_pos = x->rq.pos;
	kb->ki_flags |= IOCB_DIRECT;
	if (x->rq.p2p)
		kb->ki_ioprio = nvfs_p2p_ioprio(x->rq.m, kb->ki_ioprio);
	trace_nvfs_submit(&x->rq, x->len, true);
	if (nvfs_fault(NVFS_FAULT_VERIFY_AREA))
		return -EIO;
	if (!x->rq.write)
		return vfs_iocb_iter_read(file, kb, &iter);
	kb->ki_flags |= IOCB_WRITE;
#ifndef HAVE_FILE_WRITE_STARTED
	file_start_write(file);
	if (S_ISREG(file_inode(file)->i_mode))	/* another task will end it: for lockdep */
		__sb_writers_release(file_inode(file)->i_sb, SB_FREEZE_WRITE);
#endif
	r = vfs_iocb_iter_write(file, kb, &iter);
#ifndef HAVE_FILE_WRITE_STARTED
	if (r != -EIOCBQUEUED)
		nvfs_async_end_write(kb);
#endif
	return r;
}

/* Bytes of the first window, -errno, or -EIOCBQUEUED: x is not ours any more. */
static ssize_t nvfs_async_first(struct nvfs_async *x)
{
	struct nvfs_mapping *m = x->rq.m;
	enum nvfs_state why;
	ssize_t r;

	if (!x->len)
		return 0;
	r = nvfs_peers_refresh(m);
	if (r)
		return r;
	if (!nvfs_mapping_enter(m, &why))
		return -EIO;	/* unmapped or freed since the check */
	r = nvfs_window_begin(&x->rq, &x->w, x->len);
	if (r) {
		nvfs_mapping_leave(m);
		return r;
	}
	atomic_set(&x->in_flight, 2);
	r = nvfs_async_start(x);
	if (r != -EIOCBQUEUED)
		return nvfs_async_end_window(x, r);
	nvfs_async_landed(x);
	return r;
}

/*
 * Submit a prepared request, which is not the caller's any more afterwards. Returns 0 when
 * it is in flight; bytes or -errno when it is over already, and then the fence says so too.
 * Waits for carrier blocks of the mapping if all are in use.
 */
ssize_t nvfs_async_submit(struct nvfs_async *x)
{
	ssize_t r;

	if (x->rq.by_cpu && x->size && x->may_go_on) {
		x->r = 0;	/* nothing is done yet */
		queue_work(nvfs_go_on_wq, &x->go_on);
		return 0;
	}
	if (x->rq.by_cpu) {
		/* the caller's file size limit may cut it: done in his context */
		r = nvfs_async_errno(nvfs_windows(&x->rq, x->size));
		nvfs_async_release(x, true, r);
		return r;
	}
	r = nvfs_async_first(x);
	if (r == -EIOCBQUEUED || nvfs_async_more(x, r))
		return 0;
	nvfs_async_release(x, true, r);
	return r;
}

/* Give back a prepared request; its fence stays as it is. r: why, for the statistics. */
void nvfs_async_drop(struct nvfs_async *x, int r)
{
	nvfs_async_release(x, false, r);
}

static bool nvfs_async_claim(struct nvfs_mapping *m)
{
	bool ok;

	spin_lock(&m->lock);
	ok = !m->async;
	m->async = true;
	spin_unlock(&m->lock);
	return ok;
}

static int nvfs_async_open(struct nvfs_async *x, const struct nvfs_ioctl_ioargs *a, bool write)
{
	struct nvfs_mapping *m;
	int r = nvfs_req_open(&x->rq, a, write);

	if (r)
		return r;
	m = x->rq.m;
	if (!nvfs_async_claim(m)) {
		nvfs_say("%s: the mapping at 0x%lx has an asynchronous request in flight, and one fence (-EBUSY): wait for it, or use another mapping\n",
			 nvfs_dir(write), m->cpuvaddr);
		nvfs_stat_inc(write ? NVFS_ST_WRITE_STATE : NVFS_ST_READ_STATE);
		nvfs_req_close(&x->rq);
		return -EBUSY;
	}
	x->size = a->size;
	x->len = nvfs_before_end(&x->rq, min_t(u64, a->size, (u64)m->nblocks << NVFS_BLOCK_SHIFT));
	x->value = a->end_fence_value;
	x->may_go_on = !write || !S_ISREG(file_inode(x->rq.file)->i_mode) ||
		       (u64)a->offset + a->size <= rlimit(RLIMIT_FSIZE);
	return 0;
}

/* Check a request and take what it needs; ERR_PTR(-errno) with nothing taken. */
struct nvfs_async *nvfs_async_prepare(const struct nvfs_ioctl_ioargs *a, bool write)
{
	u64 start = nvfs_io_begin(write);
	struct nvfs_async *x;
	int r = -ENOMEM;

	x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);
	if (x)
		r = nvfs_async_open(x, a, write);
	if (r) {
		kfree(x);
		nvfs_io_end(write, r, start);
		return ERR_PTR(r);
	}
	x->start = start;
	x->cred = get_current_cred();
	INIT_WORK(&x->done, nvfs_async_done);
	INIT_WORK(&x->go_on, nvfs_async_go_on);
	__module_get(THIS_MODULE);	/* our caller's node holds it until here */
	return x;
}

/* READ and WRITE without the sync flag; as nvfs_rw(), with 0 in ioctl_return when queued. */
int nvfs_async_rw(struct nvfs_ioctl_ioargs *a, bool write)
{
	struct nvfs_async *x = nvfs_async_prepare(a, write);
	ssize_t r;

	r = IS_ERR(x) ? PTR_ERR(x) : nvfs_async_submit(x);
	a->ioctl_return = r;
	return r < 0 ? r : 0;
}

/* Wait until what has ended is also given back. */
void nvfs_async_flush(void)
{
	flush_workqueue(nvfs_done_wq);
}

int nvfs_async_init(void)
{
	/* what ends requests must run even when memory is short: freed GPU memory waits for it */
	nvfs_done_wq = alloc_workqueue("nvidia-fs-done",
				       WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!nvfs_done_wq)
		return -ENOMEM;
	nvfs_go_on_wq = alloc_workqueue("nvidia-fs-io", WQ_UNBOUND, 0);
	if (!nvfs_go_on_wq) {
		destroy_workqueue(nvfs_done_wq);
		return -ENOMEM;
	}
	return 0;
}

void nvfs_async_exit(void)
{
	destroy_workqueue(nvfs_go_on_wq);
	destroy_workqueue(nvfs_done_wq);
}
