// SPDX-License-Identifier: MIT
/* cufile_fake.c - a machine for tests of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "os.h"
#include "tree.h"
#include "uapi/nvfs.h"

#define WINDOWS 512

struct fake fake;
CUcontext fake_ctx;

static struct os_ops ops;
static char root[128];

/* lock guards it; cpuvaddr 0: free */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t cpuvaddr, gpu_va;
	size_t shadow, size;
	struct nvfs_fence_page *fence;
	bool mapped;
	/*
	 * The P2PDMA pages "in the process": GPU memory is host memory here anyway, so those of
	 * two windows in one GPU page have one address, and `seen` alone tells which is which.
	 */
	uint64_t pages, seen;
	size_t pages_size, seen_size;
} window[WINDOWS];

/* lock: pages that were unmapped, before it is known of which window */
static struct {
	uint64_t pages;
	size_t size;
} gone[WINDOWS];

static void broken(const char *rule)
{
	fprintf(stderr, "fake nvidia-fs: broken rule: %s\n", rule);
	atomic_fetch_add(&fake.violations, 1);
}

/* -- the module -- */

static int fake_open(const char *path, int flags)
{
	int err = atomic_load(&fake.no_node);

	if (strncmp(path, "/dev/nvidia-fs", 14))
		return os_real.open(path, flags);
	if (fake.first_node_only && strcmp(path, "/dev/nvidia-fs0"))
		return -ENOENT;
	return err ? -err : os_real.open("/dev/null", flags);
}

static void *fake_mmap_node(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	if (size > NVFS_MAX_SHADOW_SIZE || size % (size < 65536 ? 4096 : 65536))
		broken("length of a node's mapping");
	pthread_mutex_lock(&lock);
	for (i = 0; i < WINDOWS && window[i].cpuvaddr; i++)
		;
	if (i == WINDOWS) {
		munmap(p, size);
		errno = ENOMEM;
		p = NULL;
	} else {
		window[i].cpuvaddr = (uintptr_t)p;
		window[i].shadow = size;
		window[i].mapped = false;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* lock held. Moves one of `from` to `to` in gone[]: false: there is none. */
static bool swap_gone(uint64_t from, size_t from_size, uint64_t to, size_t to_size)
{
	int i;

	for (i = 0; i < WINDOWS && (gone[i].pages != from || gone[i].size != from_size); i++)
		;
	if (i == WINDOWS)
		return false;
	gone[i].pages = to;
	gone[i].size = to_size;
	return true;
}

static int fake_munmap(void *at, size_t size)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < WINDOWS; i++) {
		if (window[i].pages == (uintptr_t)at && window[i].pages_size == size) {
			if (!swap_gone(0, 0, window[i].pages, size))
				broken("pages are unmapped, and what was seen of them is not");
			pthread_mutex_unlock(&lock);
			return 0;
		}
		if (window[i].seen == (uintptr_t)at) {
			window[i].seen = 0;
			if (swap_gone(window[i].pages, window[i].pages_size, 0, 0))
				window[i].pages = 0;
		}
	}
	for (i = 0; i < WINDOWS; i++)
		if (window[i].cpuvaddr == (uintptr_t)at) {
			if (window[i].pages || window[i].seen)
				broken("munmap of a node before that of the pages");
			window[i].cpuvaddr = 0;
			if (window[i].mapped && !fake.theirs)
				broken("munmap before the GPU memory is released");
			if (window[i].mapped)
				atomic_fetch_add(&fake.unmaps, 1);
			break;
		}
	pthread_mutex_unlock(&lock);
	return os_real.munmap(at, size);
}

/* lock held */
static int find(uint64_t cpuvaddr)
{
	int i;

	for (i = 0; i < WINDOWS; i++)
		if (window[i].cpuvaddr == cpuvaddr)
			return i;
	broken("cpuvaddr is no start of a mapping");
	return -1;
}

static int fake_map(struct nvfs_ioctl_map *a)
{
	int i, err = atomic_load(&fake.map_error);

	if (a->end_fence_addr % 4096)
		broken("fence page");
	if (!err && fake.pins && !fake.pins(a->gpuvaddr, a->size))
		err = EINVAL;
	if (err) {
		a->end_fence_addr = -err;
		return -EPERM;
	}
	pthread_mutex_lock(&lock);
	i = find(a->cpuvaddr);
	if (i >= 0) {
		if (a->sbuf_block != window[i].shadow >> 12)
			broken("sbuf_block");
		window[i].gpu_va = a->gpuvaddr;
		window[i].size = a->size;
		window[i].fence = (void *)(uintptr_t)a->end_fence_addr;
		window[i].mapped = true;
		atomic_fetch_add(&fake.maps, 1);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static ssize_t move(const struct nvfs_ioctl_ioargs *a, bool write, char *at)
{
	size_t done = 0, rest;
	ssize_t n = 0;

	while (done < a->size) {
		n = write ? pwrite(a->fd, at + done, a->size - done, a->offset + done) :
			    pread(a->fd, at + done, a->size - done, a->offset + done);
		if (n <= 0)
			break;
		done += n;
		if (n % 4096)
			break;
	}
	/* a drive writes whole blocks into memory, also where the file ends inside one */
	rest = -done % 4096;
	if (!write && rest)
		memset(at + done, 0xee, rest);
	atomic_fetch_add(&fake.bytes, done);
	return n < 0 && !done ? -errno : (ssize_t)done;
}

/* One of the next n requests? */
static bool one_of(atomic_int *n)
{
	return atomic_load(n) > 0 && atomic_fetch_sub(n, 1) > 0;
}

static bool has_hole(const struct nvfs_ioctl_ioargs *a)
{
	off_t at = lseek(a->fd, a->offset, SEEK_HOLE), end = lseek(a->fd, 0, SEEK_END);

	return at >= 0 && at < end && at < a->offset + (off_t)a->size;
}

/* What no drive moves. True: it is over, with the answer of the module in a->ioctl_return. */
static bool not_by_drive(struct nvfs_ioctl_ioargs *a, bool write, struct nvfs_fence_page *fence)
{
	struct stat st;

	if (fake.theirs && write && one_of(&fake.lost_writes)) {
		a->ioctl_return = 0;
		return true;
	}
	if (fake.theirs && !write && one_of(&fake.died)) {
		fence->state = NVFS_FENCE_DIED;
		a->ioctl_return = a->size;
		return true;
	}
	if (write || (!one_of(&fake.cpu_reads) && !has_hole(a)))
		return false;
	a->ioctl_return = -ENOTBLK;
	if (fake.theirs) {
		if (fence->state != NVFS_FENCE_CLEAN)
			broken("state of the fence was not cleared");
		fence->state = NVFS_FENCE_SPARSE;
		fstat(a->fd, &st);
		a->ioctl_return = st.st_size - a->offset < (off_t)a->size ?
				  st.st_size - a->offset : (off_t)a->size;
	}
	return true;
}

static int fake_io(struct nvfs_ioctl_ioargs *a, bool write)
{
	struct nvfs_fence_page *fence = NULL;
	uint64_t va, in_page;
	struct stat st;
	int i;

	atomic_fetch_add(&fake.ios, 1);
	if (atomic_load(&fake.io_delay_us))
		usleep(atomic_load(&fake.io_delay_us));
	if (atomic_load(&fake.io_failures) > 0 && atomic_fetch_sub(&fake.io_failures, 1) > 0) {
		a->ioctl_return = -atomic_load(&fake.io_error);
		return -EPERM;
	}
	pthread_mutex_lock(&lock);
	i = find(a->cpuvaddr);
	va = i < 0 ? 0 : window[i].gpu_va + a->devptroff;
	if (i >= 0)
		fence = window[i].fence;
	if (i >= 0 && !window[i].mapped)
		broken("I/O before MAP");
	if (i >= 0 && (a->size > window[i].size || a->devptroff > window[i].size - a->size))
		broken("range leaves the GPU buffer");
	if (i >= 0 && a->size > window[i].shadow)
		broken("more than the window in one request");
	pthread_mutex_unlock(&lock);
	if (i < 0 || !fence)
		return -EINVAL;
	if (a->offset % 4096 || a->size % 4096 || !a->size || va % 4096)
		broken("alignment");
	in_page = va % 65536;
	if (in_page && a->size > 65536 - in_page)
		broken("a request that starts inside a GPU page leaves it");
	if (!(fcntl(a->fd, F_GETFL) & O_DIRECT))
		broken("no O_DIRECT");
	if (fstat(a->fd, &st) || st.st_ino != a->inum || major(st.st_dev) != a->majdev ||
	    minor(st.st_dev) != a->mindev)
		broken("inode");
	if (a->flags != (NVFS_IO_SYNC | (fake.theirs ? 0 : NVFS_IO_DIRECT_ONLY)))
		broken("flags");
	if (not_by_drive(a, write, fence))
		return a->ioctl_return < 0 ? -EPERM : 0;
	a->ioctl_return = move(a, write, (char *)(uintptr_t)va);
	return a->ioctl_return < 0 ? -EPERM : 0;
}

static int fake_unmap(const struct nvfs_ogds_unmap *a)
{
	int i;

	if (a->flags || a->reserved)
		broken("flags of an unmap");
	pthread_mutex_lock(&lock);
	i = find(a->cpuvaddr);
	if (i >= 0 && window[i].mapped) {
		window[i].mapped = false;
		atomic_fetch_add(&fake.unmaps, 1);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_query(struct nvfs_ogds_query *q)
{
	if (q->size != sizeof(*q))
		broken("size of a query");
	q->version = NVFS_OGDS_VERSION;
	q->features = NVFS_OGDS_FEATURES & ~(fake.no_feature ? NVFS_OGDS_PAGES : 0);
	return 0;
}

static int fake_pages(struct nvfs_ogds_pages *a)
{
	int i, err = atomic_load(&fake.no_pages);

	atomic_fetch_add(&fake.pages_asked, 1);
	if (a->reserved)
		broken("reserved word of the pages");
	if (err) {
		strcpy(a->reason, "no pages here");
		return -err;
	}
	pthread_mutex_lock(&lock);
	i = find(a->cpuvaddr);
	if (i >= 0 && (!window[i].mapped || window[i].pages))
		broken("pages before MAP, or twice");
	if (i >= 0) {
		a->pages = window[i].gpu_va & ~(uint64_t)65535;
		a->offset = window[i].gpu_va % 65536;
		a->size = (a->offset + window[i].size + 65535) & ~(uint64_t)65535;
		a->seen_size = (a->size / 4096 + 4095) & ~(uint64_t)4095;
		a->seen = (uintptr_t)os_real.mmap_page(a->seen_size);
		window[i].pages = a->pages;
		window[i].pages_size = a->size;
		window[i].seen = a->seen;
		window[i].seen_size = a->seen_size;
	}
	pthread_mutex_unlock(&lock);
	return i < 0 ? -EINVAL : 0;
}

/* lock held */
static bool covers(int i, const void *at, size_t n)
{
	uint64_t va = (uintptr_t)at;

	return window[i].pages && window[i].seen && va >= window[i].pages &&
	       va + n <= window[i].pages + window[i].pages_size;
}

static bool on_some_pages(const void *at, size_t n)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < WINDOWS && !covers(i, at, n); i++)
		;
	pthread_mutex_unlock(&lock);
	return i < WINDOWS;
}

/* lock held. A drive has moved n bytes of a block at `at`: whoever sees them notes it. */
static void note_block(const char *at, size_t n)
{
	int i;

	for (i = 0; i < WINDOWS; i++)
		if (covers(i, at, n))
			((uint8_t *)(uintptr_t)window[i].seen)[((uintptr_t)at - window[i].pages) /
							       4096] |=
				(1u << (n + 511) / 512) - 1;
}

/* A drive has moved n bytes at off, but for holes. */
static void note(int fd, const char *buf, size_t n, off_t off, bool write)
{
	size_t at;

	for (at = 0; at < n; at += 4096) {
		bool here = write || lseek(fd, off + at, SEEK_DATA) == off + (off_t)at;

		if (!here || one_of(&fake.cpu_pages))
			continue;
		pthread_mutex_lock(&lock);
		note_block(buf + at, n - at < 4096 ? n - at : 4096);
		pthread_mutex_unlock(&lock);
	}
}

static ssize_t on_pages(int fd, void *at, size_t n, off_t off, bool write)
{
	ssize_t r;

	atomic_fetch_add(&fake.page_ios, 1);
	if (one_of(&fake.page_failures))
		return -atomic_load(&fake.page_error);
	if (!(fcntl(fd, F_GETFL) & O_DIRECT) || ((uintptr_t)at | n | off) % 4096)
		broken("a request on pages that is not direct, or not in whole blocks");
	r = write ? pwrite(fd, at, n, off) : pread(fd, at, n, off);
	if (r < 0)
		return -errno;
	note(fd, at, r, off, write);
	atomic_fetch_add(&fake.page_bytes, r);
	return r;
}

static ssize_t fake_pread(int fd, void *at, size_t n, off_t off)
{
	return on_some_pages(at, n) ? on_pages(fd, at, n, off, false) :
				      os_real.pread(fd, at, n, off);
}

static ssize_t fake_pwrite(int fd, const void *at, size_t n, off_t off)
{
	return on_some_pages(at, n) ? on_pages(fd, (void *)at, n, off, true) :
				      os_real.pwrite(fd, at, n, off);
}

static int fake_ioctl(int fd, unsigned long nr, void *arg)
{
	switch (nr) {
	case NVFS_IOCTL_MAP:
		return fake_map(arg);
	case NVFS_IOCTL_READ:
		return fake_io(arg, false);
	case NVFS_IOCTL_WRITE:
		return fake_io(arg, true);
	}
	if (nr == NVFS_IOCTL_OGDS_UNMAP && !fake.theirs)
		return fake_unmap(arg);
	if (nr == NVFS_IOCTL_OGDS_QUERY && !fake.theirs)
		return fake_query(arg);
	if (nr == NVFS_IOCTL_OGDS_PAGES && !fake.theirs && !fake.no_feature)
		return fake_pages(arg);
	broken("number of an ioctl");
	return -ENOTTY;
}

/* -- the machine -- */

static void put(const char *path, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	assert_true(tree_put(root, path, text));
}

static void make_drive(unsigned int maj, unsigned int min)
{
#define NVME "devices/pci0000:00/0000:00:05.0/nvme/nvme0"
	char path[64];

	put("sys/" NVME "/nvme0n1/dev", "%u:%u\n", maj, min);
	put("sys/" NVME "/nvme0n1/queue/logical_block_size", "512\n");
	put("sys/" NVME "/transport", "pcie\n");
	snprintf(path, sizeof(path), "sys/dev/block/%u:%u", maj, min);
	assert_true(tree_link(root, "sys/" NVME "/nvme0n1/device", "../../nvme0"));
	assert_true(tree_link(root, path, "../../" NVME "/nvme0n1"));
	assert_true(tree_link(root, "sys/block/nvme0n1", "../" NVME "/nvme0n1"));
	assert_true(tree_link(root, "sys/class/nvme/nvme0", "../../" NVME));
#undef NVME
}

void fake_machine(const char *fs, const char *options, bool module)
{
	const char *base = getenv("TMPDIR");
	struct stat st;

	memset(&fake, 0, sizeof(fake));
	memset(window, 0, sizeof(window));
	memset(gone, 0, sizeof(gone));
	snprintf(fake.dir, sizeof(fake.dir), "%.40s/t_cufile.XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(fake.dir));
	snprintf(root, sizeof(root), "%s/root", fake.dir);
	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(stat(fake.dir, &st), 0);
	put("proc/self/mountinfo", "30 1 %u:%u / /data rw,relatime shared:1 - %s /dev/nvme0n1 %s\n",
	    major(st.st_dev), minor(st.st_dev), fs, options);
	make_drive(major(st.st_dev), minor(st.st_dev));
	if (module) {
		put("proc/driver/nvidia-fs/version", "version: 2.28.4\n");
		put("proc/driver/nvidia-fs/devcount", "2\n");
		put("proc/driver/nvidia-fs/opengds", "opengds 0.1.0\n");
	}
	ops = os_real;
	ops.open = fake_open;
	ops.mmap_node = fake_mmap_node;
	ops.munmap = fake_munmap;
	ops.ioctl = fake_ioctl;
	ops.pread = fake_pread;
	ops.pwrite = fake_pwrite;
	os = &ops;
	os_root = root;
	setenv("CUFILE_ENV_PATH_JSON", "/dev/null", 1);
	setenv("CUFILE_LOGFILE_PATH", "/dev/null", 1);
	unsetenv("OPENGDS_STRICT");
}

void fake_theirs(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/proc/driver/nvidia-fs/opengds", root);
	assert_int_equal(unlink(path), 0);
	fake.theirs = true;
}

void fake_md(void)
{
	put("sys/devices/pci0000:00/0000:00:05.0/nvme/nvme0/nvme0n1/md/level", "raid0\n");
}

void fake_check(void)
{
	assert_int_equal(atomic_load(&fake.violations), 0);
	assert_int_equal(atomic_load(&fake.maps), atomic_load(&fake.unmaps));
}

void fake_end(void)
{
	assert_true(tree_remove(fake.dir));
	os = &os_real;
	os_root = "";
}

uint64_t fake_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

const char *fake_file(const char *name, size_t size, uint64_t seed)
{
	static char path[128];
	uint64_t word;
	size_t i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", fake.dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	for (i = 0; i < size; i += 8) {
		word = fake_random(&seed);
		assert_int_equal(fwrite(&word, 1, size - i < 8 ? size - i : 8, f),
				 size - i < 8 ? size - i : 8);
	}
	fclose(f);
	return path;
}

void fake_fill(char *p, size_t n, uint64_t *seed)
{
	uint64_t word;
	size_t i;

	for (i = 0; i + sizeof(word) <= n; i += sizeof(word)) {
		word = fake_random(seed);
		memcpy(p + i, &word, sizeof(word));
	}
}

CUfileHandle_t fake_register(const char *path, int flags, int *fd)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh;

	*fd = open(path, flags);
	assert_true(*fd >= 0);
	d.handle.fd = *fd;
	assert_int_equal(cuFileHandleRegister(&fh, &d).err, 0);
	return fh;
}

void fake_configure(const char *json)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cufile.json", fake.dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(json, f);
	fclose(f);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
}

void fake_gpu_set(char *gpu, int byte, size_t size)
{
	assert_int_equal(cuMemsetD8((uintptr_t)gpu, byte, size), 0);
	/* it runs late, and the library's streams do not wait for it */
	assert_int_equal(cuCtxSynchronize(), 0);
}

char *fake_gpu(size_t size)
{
	CUdeviceptr p;

	assert_int_equal(cuMemAlloc(&p, size), 0);
	fake_gpu_set((char *)(uintptr_t)p, 0xee, size);
	return (char *)(uintptr_t)p;
}

void fake_gpu_free(char *gpu)
{
	assert_int_equal(cuMemFree((uintptr_t)gpu), 0);
}

void fake_vmm_map(CUdeviceptr va, size_t size, unsigned int types)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = types,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc desc = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle h;

	assert_int_equal(cuMemCreate(&h, size, &prop, 0), 0);
	assert_int_equal(cuMemMap(va, size, 0, h, 0), 0);
	assert_int_equal(cuMemSetAccess(va, size, &desc, 1), 0);
	/* the mapping keeps it */
	assert_int_equal(cuMemRelease(h), 0);
	fake_gpu_set((char *)(uintptr_t)va, 0xee, size);
}

char *fake_vmm(size_t size, unsigned int types)
{
	CUdeviceptr va;

	assert_int_equal(cuMemAddressReserve(&va, size, 0, 0, 0), 0);
	fake_vmm_map(va, size, types);
	return (char *)(uintptr_t)va;
}

void fake_vmm_free(char *gpu, size_t size)
{
	assert_int_equal(cuMemUnmap((uintptr_t)gpu, size), 0);
	assert_int_equal(cuMemAddressFree((uintptr_t)gpu, size), 0);
}

/* By a descriptor that the library knows nothing of. */
static void look_at(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, to, size, 0), size);
	close(fd);
}

void fake_pair_open(struct fake_pair *m, size_t size, uint64_t seed, int flags)
{
	const char *path = fake_file("f", size, seed);

	m->size = size;
	m->file = malloc(size);
	m->got = malloc(size);
	assert_true(m->file && m->got);
	look_at(path, m->file, size);
	m->fh = fake_register(path, O_RDWR | flags, &m->fd);
	m->gpu = fake_gpu(size);
}

void fake_pair_close(struct fake_pair *m)
{
	if (!m->file)
		return;
	close(m->fd);
	cuMemFree((uintptr_t)m->gpu);
	free(m->file);
	free(m->got);
	memset(m, 0, sizeof(*m));
}

void fake_pair_file_is_right(const struct fake_pair *m, size_t to)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/f", fake.dir);
	look_at(path, m->got, to);
	assert_memory_equal(m->got, m->file, to);
}

int fake_cuda(void **state)
{
	CUdevice dev;

	return cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&fake_ctx, dev) ||
	       cuCtxSetCurrent(fake_ctx);
}

/* What a case that failed left behind may be waited for for ever, by it or by the next ones. */
static void too_long(int sig)
{
	static const char text[] = "not ok - this case did not end within 120 s\n";
	ssize_t n = write(STDOUT_FILENO, text, sizeof(text) - 1);

	_exit(n == sizeof(text) - 1 ? 1 : 2);
}

/* What a case has set for the library and, as it failed, not taken back. */
static void forget_settings(void)
{
	char **e = environ, name[64];

	while (*e) {
		if (!strncmp(*e, "CUFILE_", 7) && strcspn(*e, "=") < sizeof(name)) {
			memcpy(name, *e, strcspn(*e, "="));
			name[strcspn(*e, "=")] = 0;
			unsetenv(name);
			e = environ;
		} else {
			e++;
		}
	}
}

int fake_setup(void **state)
{
	forget_settings();
	setvbuf(stdout, NULL, _IOLBF, 0);	/* too_long() loses no line of the cases before */
	signal(SIGALRM, too_long);
	alarm(120);
	fake_machine("ext4", "rw,data=ordered", true);
	return 0;
}

int fake_teardown(void **state)
{
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	fake_check();
	fake_end();
	alarm(0);
	return 0;
}
