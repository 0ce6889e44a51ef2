// SPDX-License-Identifier: MIT
/* os_ring.c - io_uring, as it is. */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <time.h>

#include "os.h"
#include "os_ring.h"

#define NAP_NS 100000

/*
 * Used by one thread at a time. broken: the kernel refused a request that stands in the queue;
 * what was begun before is waited for as ever, nothing more is begun. added: noted, not begun.
 */
struct os_ring {
	struct io_uring u;
	unsigned int added;
	bool broken;
};

int os_ring_new(unsigned int depth, struct os_ring **out)
{
	struct os_ring *r = calloc(1, sizeof(*r));
	int fd, err;

	if (!r)
		return -ENOMEM;
	err = io_uring_queue_init(depth, &r->u, 0);
	if (err) {
		free(r);
		return err;
	}
	fd = os_above_stdio(r->u.ring_fd);
	if (fd < 0) {
		err = -errno;
		io_uring_queue_exit(&r->u);
		free(r);
		return err;
	}
	r->u.ring_fd = r->u.enter_ring_fd = fd;
	*out = r;
	return 0;
}

void os_ring_free(struct os_ring *r)
{
	io_uring_queue_exit(&r->u);
	free(r);
}

static int put_sqe(struct os_ring *r, const struct os_io *io)
{
	struct io_uring_sqe *sqe = r->broken ? NULL : io_uring_get_sqe(&r->u);

	if (!sqe)
		return -EBUSY;
	if (io->write)
		io_uring_prep_write(sqe, io->fd, io->buf, io->size, io->off);
	else
		io_uring_prep_read(sqe, io->fd, io->buf, io->size, io->off);
	io_uring_sqe_set_data(sqe, io->tag);
	return 0;
}

int os_ring_add(struct os_ring *r, const struct os_io *io)
{
	int err = put_sqe(r, io);

	r->added += !err;
	return err;
}

unsigned int os_ring_go(struct os_ring *r)
{
	unsigned int added = r->added, begun = 0;
	int n;

	r->added = 0;
	while (begun < added) {
		n = io_uring_submit_and_wait(&r->u, added);
		if (n == -EINTR)
			continue;
		if (n <= 0) {
			r->broken = true;
			break;
		}
		begun += n;
	}
	return begun;
}

int os_ring_begin(struct os_ring *r, const struct os_io *io)
{
	int n = put_sqe(r, io);

	if (n)
		return n;
	do {
		n = io_uring_submit(&r->u);
	} while (n == -EINTR);
	if (n == 1)
		return 0;
	r->broken = true;
	return n < 0 ? n : -EBUSY;
}

void *os_ring_next(struct os_ring *r, ssize_t *result)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct io_uring_cqe *cqe;
	void *tag;
	int err;

	while (io_uring_peek_cqe(&r->u, &cqe)) {
		/* it may be forbidden by now; what is under way ends all the same */
		err = io_uring_wait_cqe(&r->u, &cqe);
		if (err && err != -EINTR)
			nanosleep(&nap, NULL);
	}
	tag = io_uring_cqe_get_data(cqe);
	*result = cqe->res;
	io_uring_cqe_seen(&r->u, cqe);
	return tag;
}

bool os_ring_broken(const struct os_ring *r)
{
	return r->broken;
}
