// SPDX-License-Identifier: MIT
/* ring_fake.c - io_uring by a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cufile_fake.h"
#include "ring_fake.h"

#define ROOM 256

struct ring_fake ring_fake;

struct os_ring {
	struct os_io io[ROOM];
	unsigned int n, added;	/* under way, and behind them noted ones */
	uint64_t seed;
	bool broken;
};

static int fake_new(unsigned int depth, struct os_ring **out)
{
	atomic_fetch_add(&ring_fake.asked, 1);
	if (ring_fake.new_error)
		return ring_fake.new_error;
	*out = calloc(1, sizeof(**out));
	assert_in_range(depth, 2, ROOM);
	atomic_fetch_add(&ring_fake.rings, 1);
	return 0;
}

static void fake_free(struct os_ring *r)
{
	assert_int_equal(r->n, 0);
	atomic_fetch_sub(&ring_fake.rings, 1);
	free(r);
}

static void check(const struct os_io *io)
{
	assert_true(fcntl(io->fd, F_GETFL) & O_DIRECT);
	assert_int_equal(((uintptr_t)io->buf | io->size | io->off) % 4096, 0);
	assert_true(io->size);
}

static int fake_add(struct os_ring *r, const struct os_io *io)
{
	if (r->broken || r->added >= ring_fake.may_add || r->n + r->added == ROOM)
		return -EBUSY;
	check(io);
	r->io[r->n + r->added++] = *io;
	return 0;
}

static unsigned int fake_go(struct os_ring *r)
{
	unsigned int left = ring_fake.may_begin - atomic_load(&ring_fake.begun);
	unsigned int n = r->added < left ? r->added : left;

	r->broken |= n < r->added;
	r->n += n;
	r->added = 0;
	atomic_fetch_add(&ring_fake.begun, n);
	atomic_fetch_add(&ring_fake.goes, 1);
	return n;
}

static int fake_begin(struct os_ring *r, const struct os_io *io)
{
	unsigned int have = atomic_load(&ring_fake.most);

	r->broken |= atomic_load(&ring_fake.begun) >= ring_fake.may_begin;
	if (r->broken)
		return -EBUSY;
	if (!pthread_equal(pthread_self(), ring_fake.caller)) {
		atomic_fetch_add(&ring_fake.by_others, 1);
	} else {
		ring_fake.falls |= io->off < ring_fake.last_off;
		ring_fake.last_off = io->off;
	}
	check(io);
	r->io[r->n++] = *io;
	atomic_fetch_add(&ring_fake.begun, 1);
	while (have < r->n && !atomic_compare_exchange_weak(&ring_fake.most, &have, r->n))
		;
	return 0;
}

static unsigned int pick(struct os_ring *r)
{
	switch (ring_fake.order) {
	case RING_FIRST:
		return 0;
	case RING_LAST:
		return r->n - 1;
	default:
		return fake_random(&r->seed) % r->n;
	}
}

static void *fake_next(struct os_ring *r, ssize_t *result)
{
	unsigned int i;
	struct os_io io;

	assert_true(r->n);
	i = pick(r);
	io = r->io[i];
	memmove(&r->io[i], &r->io[i + 1], (--r->n - i) * sizeof(io));
	if (io.off <= ring_fake.bad_off && ring_fake.bad_off < io.off + (off_t)io.size)
		*result = ring_fake.bad_result;
	else
		*result = io.write ? ring_fake.by->pwrite(io.fd, io.buf, io.size, io.off) :
				     ring_fake.by->pread(io.fd, io.buf, io.size, io.off);
	return io.tag;
}

static bool fake_broken(const struct os_ring *r)
{
	return r->broken;
}

void ring_fake_in(struct os_ops *ops, const struct os_ops *by)
{
	memset(&ring_fake, 0, sizeof(ring_fake));
	ring_fake.by = by;
	ring_fake.may_begin = ~0u;
	ring_fake.may_add = ~0u;
	ring_fake.bad_off = -1;
	ring_fake.caller = pthread_self();
	ops->ring_new = fake_new;
	ops->ring_free = fake_free;
	ops->ring_begin = fake_begin;
	ops->ring_add = fake_add;
	ops->ring_go = fake_go;
	ops->ring_next = fake_next;
	ops->ring_broken = fake_broken;
}

void ring_fake_none(struct os_ops *ops)
{
	ring_fake_in(ops, NULL);
	ring_fake.new_error = -ENOSYS;
}

void ring_fake_forget(void)
{
	atomic_store(&ring_fake.begun, 0);
	atomic_store(&ring_fake.most, 0);
	atomic_store(&ring_fake.by_others, 0);
	atomic_store(&ring_fake.goes, 0);
	ring_fake.last_off = 0;
	ring_fake.falls = false;
}
