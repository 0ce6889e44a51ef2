// SPDX-License-Identifier: MIT
/*
 * nvfs_extend.c - the RDMA registration and the ioctls from number 32 on, rule by rule.
 *
 *   nvfs_extend --dir D
 *
 * Prints "ok RULE" or "BAD RULE: ...".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "t_gpu.h"
#include "t_pattern.h"
#include "t_row.h"

#define K 1024UL
#define SIZE (8 * 1024 * K)
#define SEED 41

static struct nvfs nv;
static struct t_gpu dev;
static struct nvfs_map map;
static CUdeviceptr gpu;
static void *bare;		/* mmapped, no MAP done */
static int fd;

/* 0 or the errno */
static int call(unsigned long nr, void *arg)
{
	return ioctl(nv.fd[0], nr, arg) ? errno : 0;
}

/* -- RDMA -- */

static struct nvfs_ioctl_set_rdma key(void)
{
	struct nvfs_ioctl_set_rdma s = {
		.cpuvaddr = (uintptr_t)map.cpu, .gid = { 1, 2 }, .qp_num = 3, .lid = 4, .flags = 1,
		.version = 2, .dc_key = 5, .rkey = { 6, 7 }, .nkeys = 1,
	};

	return s;
}

static struct nvfs_rdma_info record(void)
{
	struct nvfs_ioctl_get_rdma g = { .cpuvaddr = (uintptr_t)map.cpu };

	memset(&g.info, 0xee, sizeof(g.info));
	if (call(NVFS_IOCTL_GET_RDMA_REG_INFO, &g))
		memset(&g.info, 0xdd, sizeof(g.info));
	return g.info;
}

static bool empty(void)
{
	static const struct nvfs_rdma_info zero;
	struct nvfs_rdma_info r = record();

	return !memcmp(&r, &zero, sizeof(r));
}

static void rdma_bad(const char *name, const struct nvfs_ioctl_set_rdma *s)
{
	struct nvfs_ioctl_set_rdma good = key(), broken = *s;
	int first = call(NVFS_IOCTL_SET_RDMA_REG_INFO, &good), r;

	r = call(NVFS_IOCTL_SET_RDMA_REG_INFO, &broken);
	t_row(!first && r == EINVAL && empty(), name, "errno %d, record %s", r,
	    empty() ? "empty" : "kept");
}

static void rdma(void)
{
	struct nvfs_ioctl_set_rdma s = key();
	struct nvfs_ioctl_clear_rdma c = { .cpuvaddr = (uintptr_t)map.cpu };
	struct nvfs_ioctl_get_rdma g = { .cpuvaddr = (uintptr_t)map.cpu + 4096 };
	struct nvfs_rdma_info r;

	t_row(empty(), "RDMA: nothing is registered at first", "a record");
	t_row(!call(NVFS_IOCTL_SET_RDMA_REG_INFO, &s), "RDMA: SET", "errno %d", errno);
	r = record();
	t_row(r.version == 2 && r.flags == 1 && r.lid == 4 && r.qp_num == 3 && r.rem_vaddr == gpu &&
	    r.size == SIZE && r.rkey == 6 && r.gid[0] == 1 && r.gid[1] == 2 && r.dc_key == 5 &&
	    !r.pad, "RDMA: GET has it", "another record");
	t_row(!call(NVFS_IOCTL_CLEAR_RDMA_REG_INFO, &c) && empty(), "RDMA: CLEAR", "not empty");
	s.nkeys = 0;
	rdma_bad("RDMA: no key is EINVAL and clears", &s);
	s.nkeys = 2;
	rdma_bad("RDMA: two keys are EINVAL and clear", &s);
	s = key();
	s.version = 1;
	rdma_bad("RDMA: version 1 is EINVAL and clears", &s);
	s = key();
	s.cpuvaddr += 4096;
	t_row(call(NVFS_IOCTL_SET_RDMA_REG_INFO, &s) == EINVAL, "RDMA: SET of no mapping", "%d", errno);
	s.cpuvaddr = (uintptr_t)bare;
	t_row(call(NVFS_IOCTL_SET_RDMA_REG_INFO, &s) == EINVAL, "RDMA: SET before MAP", "%d", errno);
	t_row(call(NVFS_IOCTL_GET_RDMA_REG_INFO, &g) == EINVAL, "RDMA: GET of no mapping", "%d", errno);
	c.cpuvaddr = 0;
	t_row(call(NVFS_IOCTL_CLEAR_RDMA_REG_INFO, &c) == EPERM, "RDMA: CLEAR of no mapping", "%d",
	    errno);
	t_row(call(NVFS_IOCTL_SET_RDMA_REG_INFO, NULL) == EFAULT, "RDMA: SET at address 0", "%d", errno);
}

/* -- QUERY -- */

static void query(void)
{
	struct { struct nvfs_ogds_query q; char more[64]; } a;
	int r;

	memset(&a, 0xee, sizeof(a));
	a.q.size = sizeof(a.q);
	r = call(NVFS_IOCTL_OGDS_QUERY, &a);
	t_row(!r && a.q.size == 64 && a.q.version == NVFS_OGDS_VERSION &&
	    a.q.features == NVFS_OGDS_FEATURES && a.q.max_batch == 256 &&
	    a.q.max_window == 16 << 20 && a.more[0] == (char)0xee, "QUERY", "errno %d", r);
	memset(&a, 0xee, sizeof(a));
	a.q.size = 16;
	r = call(NVFS_IOCTL_OGDS_QUERY, &a);
	t_row(!r && a.q.size == 64 && a.q.max_batch == 0xeeeeeeee, "QUERY by an older client",
	    "errno %d", r);
	a.q.size = sizeof(a);
	r = call(NVFS_IOCTL_OGDS_QUERY, &a);
	t_row(!r && a.q.size == 64 && !a.more[0] && !a.more[63], "QUERY by a newer client",
	    "errno %d", r);
	a.q.size = 15;
	t_row(call(NVFS_IOCTL_OGDS_QUERY, &a) == EINVAL, "QUERY without room", "errno %d", errno);
	t_row(call(NVFS_IOCTL_OGDS_QUERY, NULL) == EFAULT, "QUERY at address 0", "errno %d", errno);
}

/* -- RW -- */

static int rw(struct nvfs_ogds_rw *a, bool write, size_t size, off_t off, int file)
{
	memset(a, 0, sizeof(*a));
	if (nvfs_fill_file(&a->io, file))
		t_die("fstat failed");
	a->io.cpuvaddr = (uintptr_t)map.cpu;
	a->io.size = size;
	a->io.offset = off;
	a->io.flags = NVFS_IO_SYNC | (write ? NVFS_IO_OP_WRITE : 0) << NVFS_IO_OPTYPE_SHIFT;
	memset(a->driver, 'x', sizeof(a->driver));
	return call(NVFS_IOCTL_OGDS_RW, a);
}

static void witness(const char *path)
{
	struct nvfs_ogds_rw a;
	int r, f;

	r = rw(&a, false, SIZE, 0, fd);
	t_row(!r && a.io.ioctl_return == (long)SIZE && a.dma_bytes == SIZE && !a.cpu_bytes &&
	    a.drives == 1 && !strcmp(a.driver, "nvme"), "RW: a read, all of it by the drive",
	    "errno %d, %llu + %llu by %u %s", r, (unsigned long long)a.dma_bytes,
	    (unsigned long long)a.cpu_bytes, a.drives, a.driver);
	r = rw(&a, true, 64 * K, 0, fd);
	t_row(!r && a.dma_bytes == 64 * K && !a.cpu_bytes, "RW: a write", "errno %d, %llu", r,
	    (unsigned long long)a.dma_bytes);
	r = rw(&a, false, 64 * K, SIZE - 4096, fd);
	t_row(!r && a.io.ioctl_return == 4096 && a.dma_bytes == 4096, "RW: short at the end",
	    "errno %d, %llu", r, (unsigned long long)a.dma_bytes);
	f = t_open(path, O_RDWR | O_DIRECT | O_CREAT | O_TRUNC);
	if (ftruncate(f, 64 * K) || pwrite(f, map.fence, 4096, 16 * K) != 4096)
		t_die("%s: %s", path, strerror(errno));
	r = rw(&a, false, 64 * K, 0, f);
	t_row(a.dma_bytes == 4096 && a.cpu_bytes == 60 * K, "RW: holes are not the drive's",
	    "errno %d, %llu + %llu", r, (unsigned long long)a.dma_bytes,
	    (unsigned long long)a.cpu_bytes);
	close(f);
	unlink(path);
	r = rw(&a, false, 512, 0, fd);
	t_row(r == EPERM && a.io.ioctl_return == -EINVAL && !a.dma_bytes && !a.drives &&
	    !a.driver[0],
	    "RW: a refused one has nothing", "errno %d", r);
	rw(&a, false, 64 * K, 0, fd);
	a.io.flags = 0;
	r = call(NVFS_IOCTL_OGDS_RW, &a);
	t_row(r == EPERM && a.io.ioctl_return == -EOPNOTSUPP, "RW: asynchronous is refused",
	    "errno %d", r);
	a.io.flags = NVFS_IO_SYNC | 3 << NVFS_IO_OPTYPE_SHIFT;
	r = call(NVFS_IOCTL_OGDS_RW, &a);
	t_row(r == EPERM && a.io.ioctl_return == -EINVAL, "RW: operation 3 is refused", "errno %d", r);
}

/* -- many requests on one mapping -- */

static atomic_bool is_read;
static ssize_t has_read, has_written;

static void *write_frozen(void *arg)
{
	has_written = nvfs_write(&map, fd, 64 * K, 0, 0);
	return arg;
}

static void *read_beside(void *arg)
{
	has_read = nvfs_read(&map, fd, 64 * K, 64 * K, 64 * K);
	atomic_store(&is_read, true);
	return arg;
}

/* A write to a frozen file system has its blocks and waits; a read does not wait for it. */
static void many(const char *dir)
{
	int d = t_open(dir, O_RDONLY | O_DIRECTORY), i;
	pthread_t writer, reader;
	bool beside;

	if (ioctl(d, FIFREEZE, 0))
		t_die("FIFREEZE: %s", strerror(errno));
	pthread_create(&writer, NULL, write_frozen, NULL);
	for (i = 0; i < 200 && nvfs_stat(NULL, "Ops", "Write") != 1; i++)
		usleep(50000);
	usleep(300000);		/* from there to the file system */
	pthread_create(&reader, NULL, read_beside, NULL);
	for (i = 0; i < 400 && !atomic_load(&is_read); i++)
		usleep(50000);
	beside = atomic_load(&is_read);
	if (ioctl(d, FITHAW, 0))
		t_die("FITHAW: %s", strerror(errno));
	pthread_join(writer, NULL);
	pthread_join(reader, NULL);
	close(d);
	t_row(beside && has_read == 64 * (ssize_t)K && has_written == 64 * (ssize_t)K,
	      "a request beside one that waits, on the same mapping", "%s, read %zd, written %zd",
	      beside ? "beside it" : "after it", has_read, has_written);
}

/* -- UNMAP -- */

static atomic_bool stop;
static atomic_int strange;

static void *reader(void *arg)
{
	struct nvfs_map *m = arg;
	ssize_t got;

	while (!atomic_load(&stop)) {
		got = nvfs_read(m, fd, 1024 * K, 0, 0);
		if (got == -EINVAL || got == -EIO || got == -EBUSY)
			break;		/* unmapped */
		if (got != 1024 * (ssize_t)K)
			atomic_store(&strange, (int)got);
	}
	return NULL;
}

static int unmap(void *cpu, unsigned int flags)
{
	struct nvfs_ogds_unmap u = { .cpuvaddr = (uintptr_t)cpu, .flags = flags };

	return call(NVFS_IOCTL_OGDS_UNMAP, &u);
}

/* What UNMAP returned from is released: the active count tells. */
static void unmaps(void)
{
	long before = nvfs_stat(NULL, "Bar1-map", "active");
	pthread_t thread[2];
	struct nvfs_map m;
	uint64_t value = 1;
	int i, r, held = 0, err = 0;

	t_row(unmap((char *)map.cpu + 4096, 0) == EINVAL, "UNMAP of no mapping", "errno %d", errno);
	t_row(unmap(map.cpu, 1) == EINVAL, "UNMAP with unknown flags", "errno %d", errno);
	for (i = 0; i < 20 && !err; i++) {
		if (nvfs_map(&nv, &m, gpu, SIZE, 0, dev.pdevinfo))
			t_die("%s", nvfs_error());
		atomic_store(&stop, false);
		pthread_create(&thread[0], NULL, reader, &m);
		pthread_create(&thread[1], NULL, reader, &m);
		err = nvfs_start(&m, false, fd, SIZE, 0, 0, ++value);
		usleep(i * 1000);
		r = unmap(m.cpu, 0);
		held += nvfs_stat(NULL, "Bar1-map", "active") != before;
		err = err ? err : r;
		if (!err && !nvfs_over(&m, value))
			err = -EINPROGRESS;	/* UNMAP waits for it */
		atomic_store(&stop, true);
		pthread_join(thread[0], NULL);
		pthread_join(thread[1], NULL);
		if (!err && (r = unmap(m.cpu, 0)) != EINVAL)
			err = r ? r : -1;
		if (!err && nvfs_read(&m, fd, 64 * K, 0, 0) != -EINVAL)
			err = -2;
		nvfs_unmap(&m);
	}
	t_row(!err && !held && !atomic_load(&strange), "UNMAP with requests in flight",
	    "round %d: %d, %d times not released, strange result %d", i, err, held,
	    atomic_load(&strange));
	t_row(!unmap(bare, 0), "UNMAP before MAP", "errno %d", errno);
	t_row(nvfs_read(&map, fd, 64 * K, 0, 0) == 64 * (ssize_t)K, "other mappings go on", "%s",
	    nvfs_error());
}

int main(int argc, char **argv)
{
	char path[512], other[512];

	if (argc != 3 || strcmp(argv[1], "--dir")) {
		fputs("usage: nvfs_extend --dir D\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(path, sizeof(path), "%s/extend", argv[2]);
	snprintf(other, sizeof(other), "%s/holes", argv[2]);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	t_file_make(path, SIZE, SEED);
	fd = t_open(path, O_RDWR | O_DIRECT);
	gpu = t_gpu_alloc(SIZE);
	if (nvfs_map(&nv, &map, gpu, SIZE, 0, dev.pdevinfo))
		t_die("%s", nvfs_error());
	bare = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, nv.fd[0], 0);
	if (bare == MAP_FAILED)
		t_die("mmap of the node: %s", strerror(errno));
	rdma();
	query();
	witness(other);
	many(argv[2]);
	unmaps();
	munmap(bare, 65536);
	nvfs_unmap(&map);
	t_gpu_free(gpu);
	nvfs_close(&nv);
	close(fd);
	unlink(path);
	return t_rows_bad();
}
