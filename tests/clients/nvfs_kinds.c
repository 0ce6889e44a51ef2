// SPDX-License-Identifier: MIT
/* nvfs_kinds.c - one of each kind of call, with what it needs before and leaves afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "nvfs_kinds.h"
#include "t_gpu.h"
#include "t_pattern.h"

#define SEED 77
#define SECONDS 60.0
#define ENTRIES 3		/* of a batch; the last one has the sync flag */
#define NODE "/dev/nvidia-fs0"

static struct nvfs nv;
static struct t_gpu dev;
static CUdeviceptr gpu;
static char *buf;
static char path[512];
static size_t size;	/* of a request and its mapping; its part of the file is twice as long */
static int fd, node, opened;

static struct nvfs_ioctl_ioargs io;
static struct nvfs_ioctl_ioargs entry[ENTRIES];
static struct nvfs_fence_page *fence[ENTRIES];
static char *cpu[ENTRIES];
static uint64_t value;		/* of the last asynchronous request; it is also a seed */

/* -- mappings -- */

static void map_range(unsigned int i)
{
	cpu[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);
	if (cpu[i] == MAP_FAILED)
		t_die("mmap of %s: %s", NODE, strerror(errno));
	memset(fence[i], 0, NVFS_BLOCK_SIZE);
}

static int map_call(unsigned int i)
{
	struct nvfs_ioctl_map a = {
		.size = size, .pdevinfo = dev.pdevinfo, .cpuvaddr = (uintptr_t)cpu[i],
		.gpuvaddr = gpu + i * size, .end_fence_addr = (uintptr_t)fence[i],
		.sbuf_block = size / NVFS_BLOCK_SIZE,
	};

	if (!ioctl(node, NVFS_IOCTL_MAP, &a))
		return 0;
	if (errno != EPERM || (int64_t)a.end_fence_addr >= 0)
		return -errno;
	return (int)(int64_t)a.end_fence_addr;
}

static void map_it(unsigned int i)
{
	int r;

	map_range(i);
	r = map_call(i);
	if (r)
		t_die("MAP: %s", strerror(-r));
}

static void unmap_it(unsigned int i)
{
	if (cpu[i] && munmap(cpu[i], size))
		t_die("munmap: %s", strerror(errno));
	cpu[i] = NULL;
}

static void no_preparation(void)
{
}

static int plain_result(int r)
{
	return r;
}

static void unmap_first(void)
{
	unmap_it(0);
}

static void range_first(void)
{
	map_range(0);
}

static void map_first(void)
{
	map_it(0);
}

/* -- open, mmap, touch, MAP, munmap -- */

static int open_call(void)
{
	opened = open(NODE, O_RDWR | O_CLOEXEC);
	return opened < 0 ? -errno : 0;
}

static void open_finish(void)
{
	if (opened >= 0)
		close(opened);
	opened = -1;
}

static int mmap_call(void)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);

	if (p == MAP_FAILED)
		return -errno;
	cpu[0] = p;
	return 0;
}

static sigjmp_buf touched;

static void on_sigbus(int sig)
{
	(void)sig;
	siglongjmp(touched, 1);
}

static int touch_call(void)
{
	if (sigsetjmp(touched, 1))
		return -EFAULT;
	*(volatile char *)cpu[0] = 0;
	return 0;
}

static int map_first_call(void)
{
	return map_call(0);
}

static int munmap_call(void)
{
	if (munmap(cpu[0], size))
		return -errno;
	cpu[0] = NULL;
	return 0;
}

/* -- requests -- */

static void io_fill(struct nvfs_ioctl_ioargs *a, unsigned int i, unsigned int flags)
{
	memset(a, 0, sizeof(*a));
	if (nvfs_fill_file(a, fd))
		t_die("fstat failed");
	a->cpuvaddr = (uintptr_t)cpu[i];
	a->size = size;
	a->offset = i * 2 * size;
	a->flags = flags;
}

static void read_fill(unsigned int i)
{
	memset(buf, 0xcc, size);
	t_gpu_put(gpu + i * size, buf, size);
}

/* the GPU memory of mapping i has the file's part i */
static int read_check(unsigned int i)
{
	char why[160];

	t_gpu_get(buf, gpu + i * size, size);
	if (!t_pattern_check(buf, size, SEED, i * 2 * size / T_BLOCK, why, sizeof(why)))
		return 0;
	fprintf(stderr, "wrong bytes: %s\n", why);
	return -EILSEQ;
}

static void write_fill(void)
{
	value++;
	t_pattern_fill(buf, size, value, 0);
	t_gpu_put(gpu, buf, size);
}

/* written is what stood in the GPU; then the file is as the reads expect it again */
static int write_check(void)
{
	char why[160];
	int r = 0;

	if (pread(fd, buf, size, 0) != (ssize_t)size)
		t_die("%s: %s", path, strerror(errno));
	if (t_pattern_check(buf, size, value, 0, why, sizeof(why))) {
		fprintf(stderr, "wrong bytes in the file: %s\n", why);
		r = -EILSEQ;
	}
	return r;
}

static void write_finish(void)
{
	unmap_it(0);
	t_pattern_fill(buf, size, SEED, 0);
	if (pwrite(fd, buf, size, 0) != (ssize_t)size)
		t_die("%s: %s", path, strerror(errno));
}

static int done(ssize_t bytes)
{
	return bytes < 0 ? (int)bytes : bytes == (ssize_t)size ? 0 : -ENODATA;
}

static void read_prepare(void)
{
	map_it(0);
	read_fill(0);
	io_fill(&io, 0, NVFS_IO_SYNC);
}

static int read_call(void)
{
	ssize_t got = 0;
	int r = nvfs_submit(node, false, &io, &got);

	return r ? r : done(got);
}

static int read_result(int r)
{
	return r ? r : read_check(0);
}

static void write_prepare(void)
{
	map_it(0);
	write_fill();
	io_fill(&io, 0, NVFS_IO_SYNC);
}

static int write_call(void)
{
	ssize_t got = 0;
	int r = nvfs_submit(node, true, &io, &got);

	return r ? r : done(got);
}

static int write_result(int r)
{
	return r ? r : write_check();
}

static void async_read_prepare(void)
{
	map_it(0);
	read_fill(0);
	io_fill(&io, 0, 0);
	value++;
}

static int async_call(bool write)
{
	ssize_t now;
	int r;

	io.end_fence_value = value;
	fence[0]->end_fence_val = 0;
	fence[0]->result = 0;
	io.ioctl_return = 0;
	r = nvfs_submit(node, write, &io, &now);
	if (r)
		io.ioctl_return = r;
	return r;
}

static int async_read_call(void)
{
	return async_call(false);
}

/* A refused one does not signal; one that failed after its submission began does. */
static int async_end(int r)
{
	struct nvfs_map m = { .fence = fence[0] };

	if (r && fence[0]->end_fence_val != value)
		return r;
	if (r)
		return fence[0]->result == r ? r : -EBADMSG;
	return done(nvfs_wait(&m, value, SECONDS));
}

static int async_read_result(int r)
{
	r = async_end(r);
	return r ? r : read_check(0);
}

static void async_write_prepare(void)
{
	map_it(0);
	write_fill();
	io_fill(&io, 0, 0);
}

static int async_write_call(void)
{
	return async_call(true);
}

static int async_write_result(int r)
{
	r = async_end(r);
	return r ? r : write_check();
}

/* -- BATCH_IO -- */

static void batch_prepare(void)
{
	unsigned int i;

	value++;
	for (i = 0; i < ENTRIES; i++) {
		map_it(i);
		read_fill(i);
		io_fill(&entry[i], i, i + 1 < ENTRIES ? 0 : NVFS_IO_SYNC);
		entry[i].end_fence_value = value;
	}
}

static int batch_call(void)
{
	struct nvfs_ioctl_batch b = { .nents = ENTRIES, .entries = (uintptr_t)entry };
	unsigned int i;

	for (i = 0; i < ENTRIES; i++) {
		entry[i].ioctl_return = 0;
		fence[i]->end_fence_val = 0;
	}
	return ioctl(node, NVFS_IOCTL_BATCH_IO, &b) ? -errno : 0;
}

/* The code of the entries that failed; the others must be right. */
static int batch_result(int r)
{
	unsigned int i;
	int err, first = 0;

	if (r == -EPERM) {
		for (i = 0; i < ENTRIES && !first; i++)
			if (entry[i].ioctl_return != -ECANCELED)
				first = entry[i].ioctl_return;
		return first ? first : -EPERM;
	}
	for (i = 0; !r && i < ENTRIES; i++) {
		struct nvfs_map m = { .fence = fence[i] };

		err = done(entry[i].flags & NVFS_IO_SYNC ? entry[i].ioctl_return :
			   nvfs_wait(&m, value, SECONDS));
		err = err ? err : read_check(i);
		if (err && first && err != first)
			return -EBADMSG;
		first = err ? err : first;
	}
	return r ? r : first;
}

static void batch_finish(void)
{
	unsigned int i;

	for (i = 0; i < ENTRIES; i++)
		unmap_it(i);
}

/* -- our own, RDMA -- */

static struct nvfs_ogds_rw own;

static void rw_prepare(void)
{
	map_it(0);
	read_fill(0);
	memset(&own, 0, sizeof(own));
	io_fill(&own.io, 0, NVFS_IO_SYNC);
}

static int rw_call(void)
{
	own.io.ioctl_return = 0;
	if (!ioctl(node, NVFS_IOCTL_OGDS_RW, &own))
		return done(own.io.ioctl_return);
	return errno == EPERM && own.io.ioctl_return < 0 ? (int)own.io.ioctl_return : -errno;
}

static int rw_result(int r)
{
	if (!r && (own.dma_bytes != size || own.cpu_bytes || own.drives != 1))
		return -EBADMSG;
	return read_result(r);
}

static int query_call(void)
{
	struct nvfs_ogds_query q = { .size = sizeof(q) };

	if (ioctl(node, NVFS_IOCTL_OGDS_QUERY, &q))
		return -errno;
	return q.version == NVFS_OGDS_VERSION ? 0 : -EBADMSG;
}

static int unmap_call(void)
{
	struct nvfs_ogds_unmap u = { .cpuvaddr = (uintptr_t)cpu[0] };

	return ioctl(node, NVFS_IOCTL_OGDS_UNMAP, &u) ? -errno : 0;
}

static int rdma_set_call(void)
{
	struct nvfs_ioctl_set_rdma s = {
		.cpuvaddr = (uintptr_t)cpu[0], .version = 2, .rkey = { 6 }, .nkeys = 1,
	};

	return ioctl(node, NVFS_IOCTL_SET_RDMA_REG_INFO, &s) ? -errno : 0;
}

static int rdma_get_call(void)
{
	struct nvfs_ioctl_get_rdma g = { .cpuvaddr = (uintptr_t)cpu[0] };

	return ioctl(node, NVFS_IOCTL_GET_RDMA_REG_INFO, &g) ? -errno : 0;
}

static int rdma_clear_call(void)
{
	struct nvfs_ioctl_clear_rdma c = { .cpuvaddr = (uintptr_t)cpu[0] };

	return ioctl(node, NVFS_IOCTL_CLEAR_RDMA_REG_INFO, &c) ? -errno : 0;
}

static int stats_call(void)
{
	int f = open("/proc/driver/nvidia-fs/stats", O_RDONLY | O_CLOEXEC);
	char text[4096];
	int r = 0;

	if (f < 0)
		return -errno;
	if (read(f, text, sizeof(text)) < 0)
		r = -errno;
	close(f);
	return r;
}

const struct nvfs_kind nvfs_kinds[] = {
	{ "open", no_preparation, open_call, plain_result, open_finish },
	{ "mmap", no_preparation, mmap_call, plain_result, unmap_first },
	{ "touch", range_first, touch_call, plain_result, unmap_first },
	{ "MAP", range_first, map_first_call, plain_result, unmap_first },
	{ "READ", read_prepare, read_call, read_result, unmap_first },
	{ "WRITE", write_prepare, write_call, write_result, write_finish },
	{ "async READ", async_read_prepare, async_read_call, async_read_result, unmap_first },
	{ "async WRITE", async_write_prepare, async_write_call, async_write_result, write_finish },
	{ "BATCH_IO", batch_prepare, batch_call, batch_result, batch_finish },
	{ "RW", rw_prepare, rw_call, rw_result, unmap_first },
	{ "QUERY", no_preparation, query_call, plain_result, no_preparation },
	{ "SET_RDMA", map_first, rdma_set_call, plain_result, unmap_first },
	{ "GET_RDMA", map_first, rdma_get_call, plain_result, unmap_first },
	{ "CLEAR_RDMA", map_first, rdma_clear_call, plain_result, unmap_first },
	{ "UNMAP", map_first, unmap_call, plain_result, unmap_first },
	{ "munmap", map_first, munmap_call, plain_result, unmap_first },
	{ "stats", no_preparation, stats_call, plain_result, no_preparation },
};

const unsigned int nvfs_nkinds = sizeof(nvfs_kinds) / sizeof(nvfs_kinds[0]);

const struct nvfs_kind *nvfs_kind_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < nvfs_nkinds; i++)
		if (!strcmp(nvfs_kinds[i].name, name))
			return &nvfs_kinds[i];
	return NULL;
}

/* -- what exists -- */

static long number_of(const char *file)
{
	FILE *f = fopen(file, "re");
	long n = -1;

	if (!f || fscanf(f, "%ld", &n) != 1)
		t_die("%s: no number", file);
	fclose(f);
	return n;
}

static long sim_sum(const char *what)
{
	char pattern[160];
	long sum = 0;
	glob_t g;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/sys/bus/pci/drivers/gpu-sim/*/gpu_sim/%s", what);
	if (glob(pattern, 0, NULL, &g))
		t_die("%s: no such counter", pattern);
	for (i = 0; i < g.gl_pathc; i++)
		sum += number_of(g.gl_pathv[i]);
	globfree(&g);
	return sum;
}

/* shadow and pinned bytes of the user, the only one who has any */
static void charged(char *text, size_t len)
{
	FILE *f = fopen("/proc/driver/nvidia-fs/users", "re");

	if (!f)
		t_die("/proc/driver/nvidia-fs/users: %s", strerror(errno));
	if (!fgets(text, len, f))
		snprintf(text, len, "nobody has anything");
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

void nvfs_kinds_state(char text[NVFS_STATE_LEN])
{
	char user[96];

	ioctl(node, NVFS_IOCTL_REMOVE, NULL);	/* what was unmapped is gone then */
	charged(user, sizeof(user));
	snprintf(text, NVFS_STATE_LEN,
		 "%s active=%ld reads=%ld writes=%ld batches=%ld dma-ref=%ld pins=%ld dma_maps=%ld free=%ld refs=%ld",
		 user, nvfs_stat(NULL, "Bar1-map", "active"),
		 nvfs_stat(NULL, "Ops", "Read"), nvfs_stat(NULL, "Ops", "Write"),
		 nvfs_stat(NULL, "Ops", "BatchIO"), nvfs_stat(NULL, "Error", "dma-ref"),
		 sim_sum("pins"), sim_sum("dma_maps"), sim_sum("free_pages"),
		 number_of("/sys/module/nvidia_fs/refcnt"));
}

bool nvfs_kinds_settled(const char *want, char now[NVFS_STATE_LEN])
{
	int tries;

	for (tries = 0; tries < 200; tries++) {
		nvfs_kinds_state(now);
		if (!strcmp(now, want))
			return true;
		usleep(10000);
	}
	return false;
}

void nvfs_kinds_open(const char *dir, size_t bytes)
{
	const struct sigaction sa = { .sa_handler = on_sigbus };
	unsigned int i;
	bool huge;

	size = bytes;
	snprintf(path, sizeof(path), "%s/kinds", dir);
	t_gpu_open(&dev, 0);
	if (nvfs_open(&nv, NULL, NULL))
		t_die("%s", nvfs_error());
	node = nv.fd[0];
	buf = t_host_alloc(size, &huge);
	t_file_make(path, ENTRIES * 2 * size, SEED);
	fd = t_open(path, O_RDWR | O_DIRECT | O_NOATIME);
	gpu = t_gpu_alloc(ENTRIES * size);
	for (i = 0; i < ENTRIES; i++) {
		fence[i] = mmap(NULL, NVFS_BLOCK_SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (fence[i] == MAP_FAILED)
			t_die("mmap: %s", strerror(errno));
	}
	opened = -1;
	if (sigaction(SIGBUS, &sa, NULL))
		t_die("sigaction: %s", strerror(errno));
}

void nvfs_kinds_close(void)
{
	t_gpu_free(gpu);
	nvfs_close(&nv);
	close(fd);
	unlink(path);
}
