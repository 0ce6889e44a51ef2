// SPDX-License-Identifier: MIT
/* nvfs.c - the client of the nvidia-fs module. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LOG_MODULE "cufio-nvfs"
#include "driver.h"
#include "log.h"
#include "nvfs.h"
#include "os.h"
#include "probes.h"
#include "uapi/nvfs.h"

#define WANT_MAJOR 2
#define WANT_MINOR 12

/* Windows are large while there are few of them: their carriers are host memory. */
#define SHADOW_BUDGET ((size_t)256 * 1024 * 1024)
#define SHADOW_SMALL ((size_t)1024 * 1024)

/* Written by the opening and the closing thread, with nobody inside; `next`, `shadows`: any. */
static struct {
	unsigned int reason;
	struct facts_nvfs facts;
	int node[NVFS_MAX_DEVICES];
	unsigned int nodes;
	uint64_t features;	/* NVFS_OGDS_* */
	atomic_uint next;
	atomic_size_t shadows;
} nvfs = { .reason = REASON_NO_MODULE };

static unsigned int open_nodes(void)
{
	char path[64];
	int fd;

	while (nvfs.nodes < nvfs.facts.devcount && nvfs.nodes < NVFS_MAX_DEVICES) {
		snprintf(path, sizeof(path), "/dev/nvidia-fs%u", nvfs.nodes);
		fd = os->open(path, O_RDWR);
		/* a container has those that it was given: the first one will do */
		if (fd == -ENOENT && nvfs.nodes)
			break;
		if (fd < 0) {
			log_error("%s: %s: %s", path, log_errno(fd),
				  fd == -EACCES || fd == -EPERM ?
					  "give this user access (module parameters dev_mode, dev_gid)" :
					  "load the module again: rmmod nvidia-fs; modprobe nvidia-fs");
			return fd == -EACCES || fd == -EPERM ? REASON_MODULE_ACCESS :
							       REASON_MODULE_NODES;
		}
		nvfs.node[nvfs.nodes++] = fd;
	}
	return nvfs.nodes ? REASON_NONE : REASON_MODULE_NODES;
}

/* What our own module can do; another has none of it. */
static uint64_t features(void)
{
	struct nvfs_ogds_query q = { .size = sizeof(q) };

	if (!nvfs.facts.ours || os->ioctl(nvfs.node[0], NVFS_IOCTL_OGDS_QUERY, &q))
		return 0;
	return q.features;
}

void nvfs_open(void)
{
	int r;

	memset(&nvfs.facts, 0, sizeof(nvfs.facts));
	r = facts_nvfs_find(os_root, &nvfs.facts);
	if (r)
		memset(&nvfs.facts, 0, sizeof(nvfs.facts));

	nvfs.nodes = 0;
	nvfs.features = 0;
	nvfs.reason = REASON_NO_MODULE;
	if (r == -EPROTO) {
		nvfs.reason = REASON_MODULE_VERSION;
		log_error("/proc/driver/nvidia-fs: no version or number of nodes that can be read; load a module of this project or of NVIDIA");
	}
	if (r)
		return;
	if (nvfs.facts.major != WANT_MAJOR || nvfs.facts.minor < WANT_MINOR) {
		nvfs.reason = REASON_MODULE_VERSION;
		log_error("nvidia-fs is version %u.%u, wanted is %d.%d or a later %d.x: load that one",
			  nvfs.facts.major, nvfs.facts.minor, WANT_MAJOR, WANT_MINOR, WANT_MAJOR);
		return;
	}
	nvfs.reason = open_nodes();
	if (nvfs.reason != REASON_NONE) {
		nvfs_close();
		return;
	}
	nvfs.features = features();
	log_info("nvidia-fs %u.%u (%s), %u nodes", nvfs.facts.major, nvfs.facts.minor,
		 nvfs.facts.ours ? "OpenGDS" : "not OpenGDS", nvfs.nodes);
}

void nvfs_close(void)
{
	while (nvfs.nodes)
		os->close(nvfs.node[--nvfs.nodes]);
}

unsigned int nvfs_reason(void)
{
	return nvfs.reason;
}

void nvfs_version(struct facts_nvfs *v)
{
	*v = nvfs.facts;
}

/*
 * The length of a window: what covers the buffer, at most what one request may be. From
 * 64 KiB up it is a multiple of 64 KiB, below one of 4 KiB (rule of the module).
 */
static size_t shadow_size(uint64_t gpu_va, size_t size)
{
	const struct config *c = driver_config();
	size_t need = (gpu_va & (NVFS_GPU_PAGE_SIZE - 1)) + size;
	size_t most = NVFS_MAX_SHADOW_SIZE;

	if (driver_flag(&c->max_direct_io_set) && driver_word(&c->max_direct_io_kb) * 1024 < most)
		most = driver_word(&c->max_direct_io_kb) * 1024;
	else if (c->nslabs && c->slab_kb[c->nslabs - 1] * 1024 < most)
		most = c->slab_kb[c->nslabs - 1] < 64 ? NVFS_GPU_PAGE_SIZE :
							c->slab_kb[c->nslabs - 1] * 1024;
	else if (atomic_load(&nvfs.shadows) > SHADOW_BUDGET)
		most = SHADOW_SMALL;
	if (need >= most)
		return most & ~(size_t)(NVFS_GPU_PAGE_SIZE - 1);
	if (need > NVFS_GPU_PAGE_SIZE)
		return (need + NVFS_GPU_PAGE_SIZE - 1) & ~(size_t)(NVFS_GPU_PAGE_SIZE - 1);
	return (need + NVFS_BLOCK_SIZE - 1) & ~(size_t)(NVFS_BLOCK_SIZE - 1);
}

static int map(struct nvfs_win *w, uint64_t pdevinfo, bool staging)
{
	struct nvfs_ioctl_map args = {
		.size = w->size,
		.pdevinfo = pdevinfo,
		.cpuvaddr = (uintptr_t)w->cpu,
		.gpuvaddr = w->gpu_va,
		.end_fence_addr = (uintptr_t)w->fence,
		.sbuf_block = w->shadow >> NVFS_BLOCK_SHIFT,
		.is_bounce_buffer = staging,
	};
	int64_t code;
	int r = os->ioctl(w->node, NVFS_IOCTL_MAP, &args);

	if (r != -EPERM)
		return r;
	code = (int64_t)args.end_fence_addr;
	return code < 0 && code >= -4095 ? (int)code : -EPERM;
}

/* The module refused to pin. */
static void refused(const struct nvfs_win *w, unsigned int flags, int r)
{
	if (r == -EINVAL && flags & NVFS_WIN_TRY)
		log_info("nvidia-fs MAP: GPU memory 0x%llx + %zu: EINVAL: trying to list it for peers",
			 (unsigned long long)w->gpu_va, w->size);
	else
		log_error("nvidia-fs MAP ioctl failed : ioctl_return: %d ioctl_ret: -1 (GPU memory 0x%llx + %zu: %s); the kernel log (dmesg) has the reason",
			  r, (unsigned long long)w->gpu_va, w->size, log_errno(r));
}

int nvfs_win_open(struct nvfs_win *w, uint64_t gpu_va, size_t size, uint64_t pdevinfo,
		  unsigned int flags)
{
	int r;

	memset(w, 0, sizeof(*w));
	w->gpu_va = gpu_va;
	w->size = size;
	w->shadow = shadow_size(gpu_va, size);
	w->node = nvfs.node[atomic_fetch_add(&nvfs.next, 1) % nvfs.nodes];
	w->cpu = os->mmap_node(w->node, w->shadow);
	if (!w->cpu) {
		r = -errno;
		log_error("a window of %zu bytes onto GPU memory 0x%llx: mmap: %s; each registered buffer takes a mapping: raise sysctl vm.max_map_count, or register fewer",
			  w->shadow, (unsigned long long)gpu_va, log_errno(r));
		return r;
	}
	w->fence = os->mmap_page(NVFS_BLOCK_SIZE);
	r = w->fence ? map(w, pdevinfo, flags & NVFS_WIN_STAGING) : -errno;
	PROBE3(cufio-internal-map, gpu_va, size, r);
	if (r) {
		refused(w, flags, r);
		if (w->fence)
			os->munmap(w->fence, NVFS_BLOCK_SIZE);
		os->munmap(w->cpu, w->shadow);
		w->cpu = NULL;
		return r;
	}
	pthread_mutex_init(&w->one, NULL);
	atomic_fetch_add(&nvfs.shadows, w->shadow);
	return 0;
}

unsigned int nvfs_win_pages(struct nvfs_win *w)
{
	struct nvfs_ogds_pages a = { .cpuvaddr = (uintptr_t)w->cpu };
	int r;

	if (!(nvfs.features & NVFS_OGDS_PAGES))
		return REASON_PAGES_MODULE;
	r = os->ioctl(w->node, NVFS_IOCTL_OGDS_PAGES, &a);
	if (r) {
		log_info("the pages of GPU memory 0x%llx + %zu: %s: %.*s",
			 (unsigned long long)w->gpu_va, w->size, log_errno(r),
			 (int)sizeof(a.reason), a.reason[0] ? a.reason : "see the kernel log (dmesg)");
		return r == -ENODEV ? REASON_PAGES_KERNEL : REASON_PAGES_MEMORY;
	}
	w->pages_map = (void *)(uintptr_t)a.pages;
	w->pages_size = a.size;
	w->seen_map = (void *)(uintptr_t)a.seen;
	w->seen_size = a.seen_size;
	w->pages = (char *)w->pages_map + a.offset;
	return REASON_NONE;
}

/*
 * munmap alone lets the module release the GPU memory some time later. But a program that has
 * deregistered and freed it may want all of it again at once. The original knows no better.
 */
static void release(struct nvfs_win *w)
{
	struct nvfs_ogds_unmap args = { .cpuvaddr = (uintptr_t)w->cpu };

	if (nvfs.facts.ours)
		os->ioctl(w->node, NVFS_IOCTL_OGDS_UNMAP, &args);
}

void nvfs_win_close(struct nvfs_win *w)
{
	if (w->pages) {
		os->munmap(w->pages_map, w->pages_size);
		os->munmap(w->seen_map, w->seen_size);
	}
	release(w);
	atomic_fetch_sub(&nvfs.shadows, w->shadow);
	os->munmap(w->cpu, w->shadow);
	os->munmap(w->fence, NVFS_BLOCK_SIZE);
	pthread_mutex_destroy(&w->one);
	w->cpu = NULL;
}

/*
 * One ioctl on a module that is not ours. It reports blocks that no drive moved as holes in
 * the fence page and success all the same, also when they hold data that the file system
 * copied by CPU; the GPU memory has none of it.
 */
static int submit_alone(struct nvfs_win *w, unsigned long nr, struct nvfs_ioctl_ioargs *args)
{
	struct nvfs_fence_page *fence = w->fence;
	unsigned int state;
	int r;

	pthread_mutex_lock(&w->one);
	__atomic_store_n(&fence->state, NVFS_FENCE_CLEAN, __ATOMIC_RELEASE);
	r = os->ioctl(w->node, nr, args);
	state = __atomic_load_n(&fence->state, __ATOMIC_ACQUIRE);
	pthread_mutex_unlock(&w->one);
	if (!r && state != NVFS_FENCE_CLEAN) {
		args->ioctl_return = state == NVFS_FENCE_SPARSE ? -ENOTBLK : -EFAULT;
		return -EPERM;
	}
	return r;
}

static ssize_t submit(struct nvfs_win *w, bool write, struct nvfs_ioctl_ioargs *args)
{
	unsigned long nr = write ? NVFS_IOCTL_WRITE : NVFS_IOCTL_READ;
	int64_t code;
	int r;

	if (nvfs.facts.ours)
		r = os->ioctl(w->node, nr, args);
	else
		r = submit_alone(w, nr, args);
	code = args->ioctl_return;
	if (!r)
		return code;
	if (r != -EPERM)
		return r;
	return code < 0 && code >= -4095 ? code : -EPERM;
}

ssize_t nvfs_win_io(struct nvfs_win *w, bool write, const struct nvfs_file *f, size_t size,
		    off_t off, uint64_t gpu_off, size_t *done)
{
	struct nvfs_ioctl_ioargs args;
	size_t n, inside;
	ssize_t got;

	*done = 0;
	while (*done < size) {
		n = size - *done < w->shadow ? size - *done : w->shadow;
		/* what starts inside a GPU page may not leave it (rule of the module) */
		inside = (w->gpu_va + gpu_off + *done) & (NVFS_GPU_PAGE_SIZE - 1);
		if (inside && n > NVFS_GPU_PAGE_SIZE - inside)
			n = NVFS_GPU_PAGE_SIZE - inside;
		memset(&args, 0, sizeof(args));
		args.cpuvaddr = (uintptr_t)w->cpu;
		args.offset = off + *done;
		args.size = n;
		args.inum = f->inum;
		args.majdev = f->major;
		args.mindev = f->minor;
		args.devptroff = gpu_off + *done;
		args.fd = f->fd;
		/* who moved the bytes is ours to tell: the module must not do it by CPU */
		args.flags = NVFS_IO_SYNC | (nvfs.facts.ours ? NVFS_IO_DIRECT_ONLY : 0);
		got = submit(w, write, &args);
		PROBE4(cufio-internal-io-done, f->fd, off + *done, n, got);
		if (got < 0)
			return got;
		*done += got;
		if ((size_t)got == n)
			continue;
		/* the end of a file ends a read; what ends a write is an error that was lost */
		if (write)
			return -EIO;
		break;
	}
	return *done;
}
