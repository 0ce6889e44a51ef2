// SPDX-License-Identifier: MIT
/* nvfs_fuzz_ops.c - what a thread of the fuzzer does, and how it judges what came of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvfs_fuzz.h"
#include "t_pattern.h"

uint32_t rnd(struct fuzz *f, uint32_t n)
{
	f->rnd = f->rnd * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(f->rnd >> 33) % n;
}

static uint64_t rnd64(struct fuzz *f)
{
	return (uint64_t)rnd(f, 1U << 31) << 33 ^ (uint64_t)rnd(f, 1U << 31) << 11 ^ rnd(f, 2048);
}

/* Values that break code: edges of types, of pages, of limits. */
static uint64_t odd(struct fuzz *f)
{
	static const uint64_t edge[] = {
		0, 1, 511, 512, 4095, 4096, 4097, 65535, 65536, 1UL << 20, 1UL << 24,
		(1UL << 24) + 4096, INT32_MAX, UINT32_MAX, 1UL << 32, INT64_MAX,
		INT64_MAX - 4095, 1UL << 63, -1UL, -4096UL, -65536UL, 0xffff888000000000UL,
		0xffffffff81000000UL, 0x00007ffffffff000UL,
	};

	return rnd(f, 4) ? edge[rnd(f, sizeof(edge) / sizeof(edge[0]))] : rnd64(f);
}

void bug(struct fuzz *f, const char *what, long a, long b)
{
	fprintf(stderr, "BUG: %s (%ld, %ld)\n", what, a, b);
	atomic_fetch_add(&f->t->bugs, 1);
}

int call(struct fuzz *f, unsigned long nr, void *arg)
{
	int r = ioctl(f->nv->fd[rnd(f, f->nv->nfds)], nr, arg), err = errno;

	fuzz_kcov_harvest(&f->kcov, atomic_fetch_add(&f->t->calls, 1));
	if (f->left)
		f->left--;
	if (r && r != -1)
		bug(f, "an ioctl returned neither 0 nor -1", r, nr);
	errno = err;
	return r;
}

struct slot *any_slot(struct fuzz *f, bool used)
{
	int i, at = rnd(f, SLOTS);

	for (i = 0; i < SLOTS; i++)
		if (!!f->slot[(at + i) % SLOTS].cpu == used)
			return &f->slot[(at + i) % SLOTS];
	return NULL;
}

/* -- mmap and what can be done to it -- */

/*
 * Addresses near a slot are tried as well, and must not be another thread's mapping: so
 * the range is never free for others. Reserving it again unmaps what was there.
 */
static void reserve(char *at, size_t len)
{
	if (mmap(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		t_die("mmap: %s", strerror(errno));
}

void drop_slot(struct fuzz *f, struct slot *s)
{
	reserve(s->cpu, s->len);
	if (s->ready)
		f->buf[s->buf].users--;
	memset(s, 0, offsetof(struct slot, fence));	/* the kernel may still write the page */
}

static void op_mmap(struct fuzz *f)
{
	static const size_t good[] = { 4 * K, 64 * K, 128 * K, 1 * M, 1 * M, 2 * M, 16 * M };
	struct slot *s = any_slot(f, false);
	size_t len = good[rnd(f, rnd(f, 8) ? 6 : 7)];
	int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED;
	bool fine = true;
	off_t off = 0;
	char *at, *p;

	if (!s) {
		drop_slot(f, any_slot(f, true));
		return;
	}
	if (!rnd(f, 4)) {
		fine = false;
		switch (rnd(f, 5)) {
		case 0: len = 16 * M + 64 * K; break;
		case 1: len = 68 * K; break;
		case 2: prot = rnd(f, 2) ? PROT_READ : PROT_READ | PROT_WRITE | PROT_EXEC; break;
		case 3: flags = MAP_PRIVATE; break;
		default: off = 4096L << rnd(f, 20);
		}
	}
	/*
	 * A refused mmap with MAP_FIXED leaves a gap, into which another thread may map before
	 * it is reserved again: what will be refused is asked for anywhere.
	 */
	at = fine ? f->arena + (s - f->slot) * SLOT_STRIDE : NULL;
	p = mmap(at, len, prot, flags | (at ? MAP_FIXED : 0), f->nv->fd[rnd(f, f->nv->nfds)],
		 off);
	atomic_fetch_add(&f->t->mmaps, 1);
	if ((p != MAP_FAILED) != fine)
		bug(f, fine ? "a good mmap failed" : "a bad mmap went through", errno, len);
	if (p == MAP_FAILED) {
		if (at)
			reserve(at, len);
		return;
	}
	s->cpu = p;
	s->len = len;
}

static void op_abuse(struct fuzz *f)
{
	static const int advice[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_WILLNEED, MADV_FREE, MADV_REMOVE, MADV_DOFORK,
		MADV_DONTFORK, MADV_MERGEABLE, MADV_HUGEPAGE, MADV_COLD, MADV_PAGEOUT, 12345,
	};
	struct slot *s = any_slot(f, true);
	char *p;

	if (!s)
		return;
	switch (rnd(f, 6)) {
	case 0:
		madvise(s->cpu, s->len, MADV_DONTNEED);
		((volatile char *)s->cpu)[rnd(f, s->len)] = 1;
		break;
	case 1:
		((volatile char *)s->cpu)[rnd(f, s->len)] = 1;
		break;
	case 2:
		if (s->len > 4096 && !munmap(s->cpu + 4096, 4096))
			bug(f, "munmap of a part went through", s->len, 0);
		break;
	case 3:
		if (s->len > 4096 && !mprotect(s->cpu, 4096, PROT_READ))
			bug(f, "mprotect of a part went through", s->len, 0);
		break;
	case 4:
		p = mremap(s->cpu, s->len, s->len * 2, MREMAP_MAYMOVE);
		if (p != MAP_FAILED)
			bug(f, "mremap to twice the size went through", s->len, 0);
		break;
	default:
		madvise(s->cpu, s->len, advice[rnd(f, sizeof(advice) / sizeof(advice[0]))]);
	}
}

/* -- GPU memory -- */

void op_buffer(struct fuzz *f)
{
	struct buffer *b = &f->buf[rnd(f, BUFFERS)];

	if (b->va) {
		if (b->users)	/* freeing under a mapping is the lifetime test's */
			return;
		t_gpu_free(b->va);
		b->va = 0;
		return;
	}
	b->size = (1 + rnd(f, 32)) * 64 * K;
	b->va = t_gpu_alloc(BLOCK);
}

static void op_map(struct fuzz *f)
{
	struct slot *s = any_slot(f, true);
	int bi = rnd(f, BUFFERS), tries = rnd(f, 2) ? 0 : 1 + rnd(f, 2), r;
	struct buffer *b = &f->buf[bi];
	struct nvfs_ioctl_map m = { 0 };
	bool fine;
	size_t size, skip;

	if (!s || !b->va)
		return;
	skip = rnd(f, 3) ? 0 : rnd(f, b->size / 4096) * 4096UL;
	size = (1 + rnd(f, (b->size - skip) / 4096)) * 4096UL;
	m.size = size;
	m.cpuvaddr = (uintptr_t)s->cpu;
	m.gpuvaddr = b->va + skip;
	m.end_fence_addr = (uintptr_t)s->fence;
	m.sbuf_block = s->len / 4096;
	m.pdevinfo = rnd64(f);
	m.is_bounce_buffer = rnd(f, 2);
	fine = !s->ready && !s->torn && !tries;
	while (tries--) {
		switch (rnd(f, 6)) {
		case 0: m.size = odd(f); break;
		case 1:
			m.cpuvaddr = rnd(f, 2) ? odd(f) : (uintptr_t)s->cpu + 4096 * rnd(f, 64);
			break;
		case 2: m.gpuvaddr = rnd(f, 2) ? odd(f) : (uintptr_t)f->scratch; break;
		case 3: m.end_fence_addr = rnd(f, 2) ? odd(f) : m.gpuvaddr; break;
		case 4: m.sbuf_block = odd(f); break;
		default: m.sbuf_block = rnd(f, 2) ? m.sbuf_block + 1 : 0;
		}
	}
	r = call(f, NVFS_IOCTL_MAP, &m);
	atomic_fetch_add(&f->t->maps, 1);
	if (fine && r && (long)m.end_fence_addr != -ENOMEM)
		bug(f, "a good MAP failed", (long)m.end_fence_addr, errno);
	if (r && errno == EPERM && (long)m.end_fence_addr >= 0)
		bug(f, "MAP failed without a code", (long)m.end_fence_addr, 0);
	if (r)
		return;
	if (fine) {
		s->ready = true;
		s->buf = bi;
		s->size = size;
		s->skip = skip;
		b->users++;
		return;
	}
	/* broken fields can still be right ones; a mapping that is ready cannot be mapped */
	if (s->ready && m.cpuvaddr == (uintptr_t)s->cpu)
		bug(f, "a second MAP went through", 0, 0);
	s->torn = true;
	for (r = 0; r < SLOTS; r++)
		if ((uintptr_t)f->slot[r].cpu == m.cpuvaddr)
			f->slot[r].torn = true;
}

/* -- requests -- */

static void verify_read(struct fuzz *f, const struct slot *s, uint64_t devptroff, off_t off,
			size_t n)
{
	char why[160];

	if (!n)
		return;
	t_gpu_get(f->scratch, f->buf[s->buf].va + s->skip + devptroff, n);
	if (t_pattern_check(f->scratch, n, f->file_seed, off / T_BLOCK, why, sizeof(why)))
		bug(f, why, off, n);
	atomic_fetch_add(&f->t->verified, 1);
}

/* Writes go behind the part that is read, with content of their own each time. */
static void verify_write(struct fuzz *f, off_t off, size_t n, uint64_t seed)
{
	char why[160];

	if (pread(f->fd_rw, f->scratch, n, off) != (ssize_t)n)
		bug(f, "what was written cannot be read", errno, n);
	else if (t_pattern_check(f->scratch, n, seed, 0, why, sizeof(why)))
		bug(f, why, off, n);
	atomic_fetch_add(&f->t->verified, 1);
}

static int random_fd(struct fuzz *f)
{
	const int fds[] = {
		f->fd_ro, f->fd_wo, f->fd_buffered, f->fd_dir, -1, 0, f->nv->fd[0],
		(int)odd(f),
	};

	return fds[rnd(f, sizeof(fds) / sizeof(fds[0]))];
}

static void mutate_io(struct fuzz *f, struct nvfs_ioctl_ioargs *a)
{
	struct slot *other = any_slot(f, true);

	switch (rnd(f, 11)) {
	case 0: a->offset = odd(f); break;
	case 1: a->size = odd(f); break;
	case 2: a->devptroff = odd(f); break;
	case 3: a->cpuvaddr = rnd(f, 2) ? odd(f) : (uintptr_t)other->cpu + rnd(f, 3) * 4096; break;
	case 4: a->inum = odd(f); break;
	case 5: a->majdev = odd(f); break;
	case 6: a->mindev = odd(f); break;
	case 7: a->generation = 1 + rnd(f, 1 << 30); break;
	case 8: a->fd = random_fd(f); break;
	case 9: a->flags = odd(f); break;
	default: memset(a->pad0, odd(f), sizeof(a->pad0)); a->end_fence_value = odd(f);
	}
}

/*
 * May this request succeed? Only what is certain counts: a range that is out of bounds,
 * a misaligned value, a file that is not open for it. `same` tells that the address is
 * the slot's.
 */
static bool hopeless(const struct fuzz *f, const struct slot *s, bool write,
		     const struct nvfs_ioctl_ioargs *a, uint64_t inum)
{
	if (a->offset < 0 || a->offset % 4096 || a->size % 4096 ||
	    a->size > (uint64_t)(INT64_MAX - a->offset))
		return true;
	if (a->fd != f->fd_rw && a->fd != (write ? f->fd_wo : f->fd_ro))
		return a->fd == f->fd_buffered || a->fd == f->fd_dir || a->fd == -1 ||
		       a->fd == f->fd_ro || a->fd == f->fd_wo;
	if (a->inum != inum || a->generation)
		return a->inum != inum;
	if (a->cpuvaddr != (uintptr_t)s->cpu || s->torn)
		return false;	/* another slot, perhaps: not judged here */
	return !s->ready || a->size > s->size || a->devptroff > s->size - a->size ||
	       (f->buf[s->buf].va + s->skip + a->devptroff) % 4096;
}

/*
 * A request whose flags were changed may be asynchronous. Before the call: the fence page of
 * the mapping that it names, without a value; NULL where it cannot be told.
 */
static struct nvfs_fence_page *arm(struct fuzz *f, const struct nvfs_ioctl_ioargs *a)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		if (f->slot[i].cpu && (uintptr_t)f->slot[i].cpu == a->cpuvaddr) {
			f->slot[i].fence->end_fence_val = 0;
			return f->slot[i].torn ? NULL : f->slot[i].fence;
		}
	}
	return NULL;
}

/* After a success: nothing is in flight any more, so that what others verify stays. */
static void settle(struct fuzz *f, const struct nvfs_ioctl_ioargs *a,
		   struct nvfs_fence_page *fence)
{
	struct nvfs_map map = { .fence = fence };

	if (a->flags & NVFS_IO_SYNC)
		return;
	if (!fence)
		usleep(100000);
	else if (nvfs_wait(&map, a->end_fence_value, 60) == -ETIMEDOUT)
		bug(f, "a fence was never signalled", a->end_fence_value, a->size);
}

static void op_io(struct fuzz *f)
{
	bool write = !rnd(f, 3), mutated = rnd(f, 2), fine, verify;
	struct slot *s = any_slot(f, true);
	struct nvfs_ioctl_ioargs a = { 0 };
	uint64_t seed = ++f->serial, inum, start;
	struct nvfs_fence_page *fence;
	size_t n, room;
	int r;

	if (!s || nvfs_fill_file(&a, f->fd_rw))
		return;
	inum = a.inum;
	n = s->ready ? (1 + rnd(f, s->size / 4096)) * 4096UL : 4096;
	if (rnd(f, 16) && n > 64 * K)
		n = (1 + rnd(f, 16)) * 4096UL;
	if (n > FILE_SIZE)
		n = FILE_SIZE;
	a.cpuvaddr = (uintptr_t)s->cpu;
	a.size = n;
	a.devptroff = s->ready ? rnd(f, (s->size - n) / 4096 + 1) * 4096UL : 0;
	start = s->ready ? (f->buf[s->buf].va + s->skip + a.devptroff) % (64 * K) : 0;
	room = 64 * K - start;
	if (start && n > room)
		a.size = n = room;
	a.offset = rnd(f, (FILE_SIZE - n) / 4096 + 1) * 4096UL + (write ? FILE_SIZE : 0);
	a.flags = NVFS_IO_SYNC;
	fine = s->ready && !s->torn && !mutated;
	verify = fine && !rnd(f, 4);	/* looking costs more than the request */
	if (verify && write) {
		t_pattern_fill(f->scratch, n, seed, 0);
		t_gpu_put(f->buf[s->buf].va + s->skip + a.devptroff, f->scratch, n);
	}
	if (mutated)
		for (r = 1 + rnd(f, 2); r > 0; r--)
			mutate_io(f, &a);
	/* a mutated write must not destroy the part that reads are compared with */
	if (mutated && write && a.offset >= 0 && a.offset < (off_t)FILE_SIZE)
		a.offset = -4096;

	fence = arm(f, &a);
	r = call(f, write ? NVFS_IOCTL_WRITE : NVFS_IOCTL_READ, &a);
	if (r && errno == EPERM && a.ioctl_return >= 0)
		bug(f, "a request failed without a code", a.ioctl_return, a.size);
	if (fine && r && a.ioctl_return != -ENOMEM && a.ioctl_return != -ENOSPC)
		bug(f, "a good request failed", a.ioctl_return, n);
	if (!r && hopeless(f, s, write, &a, inum))
		bug(f, "a hopeless request went through", a.ioctl_return, a.size);
	if (!r && (a.ioctl_return < 0 || (uint64_t)a.ioctl_return > a.size))
		bug(f, "success with a wrong count", a.ioctl_return, a.size);
	if (!r)
		settle(f, &a, fence);
	atomic_fetch_add(r ? &f->t->io_bad : &f->t->io_good, 1);
	if (r || !fine)
		return;
	if (a.ioctl_return != (int64_t)n)
		bug(f, "a good request was short", a.ioctl_return, n);
	else if (!verify)
		return;
	else if (write)
		verify_write(f, a.offset, n, seed);
	else
		verify_read(f, s, a.devptroff, a.offset, n);
}

/* -- asynchronous requests, batches, our own numbers -- */

/* A good read of up to 64 KiB, asynchronous; false when the slot cannot. */
static bool good_read(struct fuzz *f, struct slot *s, struct nvfs_ioctl_ioargs *a)
{
	uint64_t start;

	memset(a, 0, sizeof(*a));
	if (!s->ready || s->torn || nvfs_fill_file(a, f->fd_rw))
		return false;
	a->size = (1 + rnd(f, (s->size < 64 * K ? s->size : 64 * K) / 4096)) * 4096UL;
	a->devptroff = rnd(f, (s->size - a->size) / 4096 + 1) * 4096UL;
	start = (f->buf[s->buf].va + s->skip + a->devptroff) % (64 * K);
	if (start && a->size > 64 * K - start)
		a->size = 64 * K - start;
	a->offset = rnd(f, (FILE_SIZE - a->size) / 4096 + 1) * 4096UL;
	a->cpuvaddr = (uintptr_t)s->cpu;
	a->end_fence_value = ++s->value;
	return true;
}

/* Waits for the fence of a request that was taken, and judges it. */
static void finish(struct fuzz *f, struct slot *s, const struct nvfs_ioctl_ioargs *a)
{
	struct nvfs_map map = { .fence = s->fence };
	ssize_t got = nvfs_wait(&map, a->end_fence_value, 60);

	if (got == (ssize_t)a->size)
		verify_read(f, s, a->devptroff, a->offset, a->size);
	else if (got != -ENOMEM)
		bug(f, "an asynchronous request ended otherwise", got, a->size);
	atomic_fetch_add(&f->t->io_good, 1);
}

static void op_async(struct fuzz *f)
{
	struct slot *s = any_slot(f, true);
	struct nvfs_ioctl_ioargs a, good;
	struct nvfs_fence_page *fence;
	bool mutated = !rnd(f, 3);
	int r;

	if (!s || !good_read(f, s, &a))
		return;
	good = a;
	if (mutated)
		mutate_io(f, &a);
	fence = arm(f, &a);
	mutated = mutated && memcmp(&a, &good, sizeof(a));
	r = call(f, NVFS_IOCTL_READ, &a);
	if (r && errno == EPERM && a.ioctl_return >= 0)
		bug(f, "a request failed without a code", a.ioctl_return, a.size);
	if (!mutated && r && a.ioctl_return != -ENOMEM)
		bug(f, "a good asynchronous request failed", a.ioctl_return, a.size);
	if (!mutated && !r && rnd(f, 8)) {
		finish(f, s, &good);
		return;
	}
	if (!r && rnd(f, 2))
		drop_slot(f, s);	/* in flight: it ends all the same */
	if (!r)
		settle(f, &a, fence);
}

static void op_batch(struct fuzz *f)
{
	struct nvfs_ioctl_ioargs a[SLOTS];
	struct nvfs_ioctl_batch b = { .ctx_id = rnd64(f), .entries = (uintptr_t)a };
	struct slot *of[SLOTS];
	bool mutated = rnd(f, 2), used[BUFFERS] = { false };
	int i, n = 0, r;

	/* one slot a buffer: two reads into the same memory at a time have no right content */
	for (i = 0; i < SLOTS; i++) {
		if (!f->slot[i].cpu || used[f->slot[i].buf] || !good_read(f, &f->slot[i], &a[n]))
			continue;
		used[f->slot[i].buf] = true;
		of[n++] = &f->slot[i];
	}
	if (!n)
		return;
	b.nents = n;
	if (mutated) {
		i = rnd(f, n);
		mutate_io(f, &a[i]);
		a[i].size = a[i].size % 4096 ? a[i].size : 512;	/* hopeless for sure */
	}
	r = call(f, NVFS_IOCTL_BATCH_IO, &b);
	if (mutated && !r)
		bug(f, "a batch with a hopeless entry went through", n, i);
	if (!mutated && r)
		for (i = 0; i < n; i++)
			if (a[i].ioctl_return != -ECANCELED && a[i].ioctl_return != -ENOMEM)
				bug(f, "a good batch failed", a[i].ioctl_return, i);
	for (i = 0; !r && !mutated && i < n; i++)
		finish(f, of[i], &a[i]);
}

static void op_ours(struct fuzz *f)
{
	struct slot *s = any_slot(f, true);
	struct nvfs_ogds_unmap u = { 0 };
	struct nvfs_ogds_rw w = { 0 };
	struct nvfs_ogds_pages p = { 0 };
	union { struct nvfs_ogds_query q; char room[8192]; } q;

	switch (rnd(f, 5)) {
	case 0:
		q.q.size = odd(f) % 8193;
		if (!call(f, NVFS_IOCTL_OGDS_QUERY, &q) && q.q.features != NVFS_OGDS_FEATURES)
			bug(f, "QUERY told something else", q.q.features, 0);
		break;
	case 1:
		u.cpuvaddr = s && rnd(f, 2) ? (uintptr_t)s->cpu : odd(f);
		u.flags = rnd(f, 4) ? 0 : odd(f);
		if (!call(f, NVFS_IOCTL_OGDS_UNMAP, &u) && s)
			drop_slot(f, s);
		break;
	case 2:
		if (!s || !good_read(f, s, &w.io))
			break;
		w.io.flags = NVFS_IO_SYNC;
		if (call(f, NVFS_IOCTL_OGDS_RW, &w) ? w.io.ioctl_return != -ENOMEM :
		    w.dma_bytes != w.io.size || w.cpu_bytes || w.drives != 1)
			bug(f, "RW is wrong", w.io.ioctl_return, w.dma_bytes);
		break;
	case 3:
		p.cpuvaddr = s && rnd(f, 4) ? (uintptr_t)s->cpu : odd(f);
		p.reserved = rnd(f, 8) ? 0 : odd(f);
		if (call(f, NVFS_IOCTL_OGDS_PAGES, &p))
			break;
		if (!s || !p.size || munmap((void *)(uintptr_t)p.pages, p.size) ||
		    munmap((void *)(uintptr_t)p.seen, p.seen_size))
			bug(f, "PAGES of nothing", p.pages, p.size);
		break;
	default:
		if (!s)
			break;
		w.io.cpuvaddr = (uintptr_t)s->cpu;
		mutate_io(f, &w.io);
		if (!call(f, NVFS_IOCTL_OGDS_RW, &w) && w.io.ioctl_return)
			bug(f, "a read of fd 0 moved bytes", w.io.ioctl_return, 0);
	}
}

/* -- the rest -- */

static void op_other(struct fuzz *f)
{
	struct nvfs_ioctl_batch b = { .ctx_id = rnd64(f) };
	uint64_t junk[16];
	size_t i;

	for (i = 0; i < 16; i++)
		junk[i] = odd(f);
	switch (rnd(f, 7)) {
	case 0:
		call(f, NVFS_IOCTL_REMOVE, (void *)odd(f));
		break;
	case 1:
		if (!call(f, NVFS_IOCTL(rnd(f, 2) ? 36 + rnd(f, 200) : 9 + rnd(f, 20)), junk))
			bug(f, "an unknown number went through", 0, 0);
		break;
	case 2:
		b.nents = odd(f);
		b.entries = rnd(f, 2) ? odd(f) : (uintptr_t)junk;
		call(f, NVFS_IOCTL_BATCH_IO, &b);
		break;
	case 3:
		call(f, NVFS_IOCTL(5 + rnd(f, 3)), junk);
		break;
	case 4:
		if (!call(f, NVFS_IOCTL(2 + rnd(f, 3)), junk))
			bug(f, "junk went through", 0, 0);
		break;
	case 5:
		if (!call(f, NVFS_IOCTL(2 + rnd(f, 3)), (void *)(odd(f) & ~0xfffUL)))
			bug(f, "a bad pointer went through", 0, 0);
		break;
	default:
		call(f, rnd64(f), junk);
	}
}

static void op_fork(struct fuzz *f)
{
	struct slot *s = any_slot(f, true);
	struct nvfs_ioctl_ioargs a = { 0 };
	pid_t pid = fork();

	if (pid < 0)
		return;
	if (!pid) {
		/* the mapping is not the child's */
		if (!s || nvfs_fill_file(&a, f->fd_rw))
			_exit(0);
		a.cpuvaddr = (uintptr_t)s->cpu;
		a.size = 4096;
		a.flags = NVFS_IO_SYNC;
		_exit(!ioctl(f->nv->fd[0], NVFS_IOCTL_READ, &a));
	}
	atomic_fetch_add(&f->t->calls, 1);
	if (waitpid(pid, &(int){ 0 }, 0) != pid)
		bug(f, "waitpid", errno, 0);
}

/* One thing more, whatever it is. */
void fuzz_step(struct fuzz *f)
{
	switch (rnd(f, 32)) {
	case 0: op_mmap(f); break;
	case 1: op_abuse(f); break;
	case 2: op_buffer(f); break;
	case 3: case 4: case 5: case 6: op_map(f); break;
	case 7: case 8: case 9: case 10: op_other(f); break;
	case 12: case 13: op_async(f); break;
	case 14: op_batch(f); break;
	case 15: op_ours(f); break;
	case 16: op_refused(f); break;
	case 11:
		if (!rnd(f, 200))
			op_fork(f);
		else if (!rnd(f, 4) && any_slot(f, true))
			drop_slot(f, any_slot(f, true));
		break;
	default: op_io(f);
	}
}
