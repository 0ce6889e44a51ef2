// SPDX-License-Identifier: MIT
/* nvfs_client.c - a small client of the nvidia-fs ioctl ABI: open, map, read, write. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "nvfs_client.h"

#define PROC_DIR "/proc/driver/nvidia-fs"

bool nvfs_direct_only;
uint32_t nvfs_want_carriers;

/* Reads a small text file whole; the terminating NUL is set. */
static int read_text(const char *dir, const char *name, char *buf, size_t len)
{
	char path[PATH_MAX];
	size_t have = 0;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (have < len - 1 && (n = read(fd, buf + have, len - 1 - have)) > 0)
		have += n;
	buf[have] = '\0';
	close(fd);
	return n < 0 ? -EIO : 0;
}

static int check_version(struct nvfs *nv)
{
	char text[128];
	int err;

	err = read_text(nv->proc, "version", text, sizeof(text));
	if (err) {
		nvfs_say("%s/version: %s: the kernel module nvidia-fs is not loaded; "
			 "load it: modprobe nvidia-fs (or insmod nvidia-fs.ko)",
			 nv->proc, nvfs_errname(err));
		return err == -ENOENT ? -ENODEV : err;
	}
	if (sscanf(text, "version: %u.%u", &nv->major, &nv->minor) != 2) {
		text[strcspn(text, "\n")] = '\0';
		nvfs_say("%s/version: EPROTO: \"%s\" is no version; "
			 "load a module of this project or of NVIDIA: modprobe nvidia-fs",
			 nv->proc, text);
		return -EPROTO;
	}
	if (nv->major != NVFS_WANT_MAJOR || nv->minor < NVFS_WANT_MINOR) {
		nvfs_say("%s/version: EPROTONOSUPPORT: the module is version %u.%u, wanted is "
			 "%d.%d or a later %d.x; unload it (rmmod nvidia-fs) and load that one",
			 nv->proc, nv->major, nv->minor, NVFS_WANT_MAJOR, NVFS_WANT_MINOR,
			 NVFS_WANT_MAJOR);
		return -EPROTONOSUPPORT;
	}
	return 0;
}

int nvfs_open(struct nvfs *nv, const char *proc, const char *dev)
{
	char path[PATH_MAX], text[32];
	unsigned int want;
	int err;

	memset(nv, 0, sizeof(*nv));
	nv->proc = proc ? proc : PROC_DIR;
	err = check_version(nv);
	if (err)
		return err;

	err = read_text(nv->proc, "devcount", text, sizeof(text));
	if (err || sscanf(text, "%u", &want) != 1 || !want || want > NVFS_MAX_DEVICES) {
		err = err ? err : -EPROTO;
		nvfs_say("%s/devcount: %s: no number of nodes from 1 to %d; load the module "
			 "again: rmmod nvidia-fs; modprobe nvidia-fs",
			 nv->proc, nvfs_errname(err), NVFS_MAX_DEVICES);
		return err;
	}
	while (nv->nfds < want) {
		snprintf(path, sizeof(path), "%s/nvidia-fs%u", dev ? dev : "/dev", nv->nfds);
		nv->fd[nv->nfds] = open(path, O_RDWR | O_CLOEXEC);
		if (nv->fd[nv->nfds] < 0) {
			err = -errno;
			nvfs_explain_open(path, err);
			nvfs_close(nv);
			return err;
		}
		nv->nfds++;
	}
	return 0;
}

void nvfs_close(struct nvfs *nv)
{
	while (nv->nfds)
		close(nv->fd[--nv->nfds]);
}

/* The shadow covers the whole GPU buffer when it may; else it is the largest window. */
static size_t best_shadow(uint64_t gpu_va, size_t size)
{
	size_t need = (gpu_va & (NVFS_GPU_PAGE_SIZE - 1)) + size;

	if (need >= NVFS_MAX_SHADOW_SIZE)
		return NVFS_MAX_SHADOW_SIZE;
	if (need > NVFS_GPU_PAGE_SIZE)
		return (need + NVFS_GPU_PAGE_SIZE - 1) & ~(size_t)(NVFS_GPU_PAGE_SIZE - 1);
	return (need + NVFS_BLOCK_SIZE - 1) & ~(size_t)(NVFS_BLOCK_SIZE - 1);
}

int nvfs_map(struct nvfs *nv, struct nvfs_map *map, uint64_t gpu_va, size_t size,
	     size_t shadow, uint64_t pdevinfo)
{
	struct nvfs_ioctl_map args;
	int node, err;

	memset(map, 0, sizeof(*map));
	map->nv = nv;
	map->gpu_va = gpu_va;
	map->size = size;
	map->shadow = shadow ? shadow : best_shadow(gpu_va, size);
	map->fence = MAP_FAILED;
	node = nv->fd[nv->next++ % nv->nfds];

	map->cpu = mmap(NULL, map->shadow, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);
	if (map->cpu == MAP_FAILED) {
		err = -errno;
		nvfs_explain_map(map, "mmap of the node", err);
		goto fail;
	}
	if (nvfs_want_carriers) {
		struct nvfs_ogds_carriers c = { .cpuvaddr = (uintptr_t)map->cpu,
						.want = nvfs_want_carriers };

		if (ioctl(node, NVFS_IOCTL_OGDS_CARRIERS, &c)) {
			err = -errno;
			nvfs_explain_map(map, "CARRIERS", err);
			goto fail;
		}
	}
	map->fence = mmap(NULL, NVFS_BLOCK_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (map->fence == MAP_FAILED) {
		err = -errno;
		nvfs_explain_map(map, "mmap of the fence page", err);
		goto fail;
	}

	memset(&args, 0, sizeof(args));
	args.size = size;
	args.pdevinfo = pdevinfo;
	args.cpuvaddr = (uintptr_t)map->cpu;
	args.gpuvaddr = gpu_va;
	args.end_fence_addr = (uintptr_t)map->fence;
	args.sbuf_block = map->shadow >> NVFS_BLOCK_SHIFT;
	if (ioctl(node, NVFS_IOCTL_MAP, &args)) {
		err = errno == EPERM ? (int)(int64_t)args.end_fence_addr : -errno;
		if (err >= 0)
			err = -EPERM;
		nvfs_explain_map(map, "MAP", err);
		goto fail;
	}
	return 0;

fail:
	if (map->fence != MAP_FAILED)
		munmap(map->fence, NVFS_BLOCK_SIZE);
	if (map->cpu != MAP_FAILED)
		munmap(map->cpu, map->shadow);
	memset(map, 0, sizeof(*map));
	return err;
}

int nvfs_unmap(struct nvfs_map *map)
{
	int err = 0;

	if (!map->cpu)
		return 0;
	if (munmap(map->cpu, map->shadow)) {
		err = -errno;
		nvfs_explain_map(map, "munmap", err);
	}
	munmap(map->fence, NVFS_BLOCK_SIZE);
	memset(map, 0, sizeof(*map));
	return err;
}

int nvfs_pages(const struct nvfs_map *map, struct nvfs_ogds_pages *p)
{
	int err = 0;

	memset(p, 0, sizeof(*p));
	p->cpuvaddr = (uintptr_t)map->cpu;
	if (ioctl(map->nv->fd[0], NVFS_IOCTL_OGDS_PAGES, p)) {
		err = -errno;
		nvfs_say("the pages of GPU memory 0x%llx: %s: %s",
			 (unsigned long long)map->gpu_va, nvfs_errname(err),
			 p->reason[0] ? p->reason : "see dmesg");
	}
	return err;
}

void nvfs_pages_unmap(const struct nvfs_ogds_pages *p)
{
	munmap((void *)(uintptr_t)p->pages, p->size);
	munmap((void *)(uintptr_t)p->seen, p->seen_size);
}

int nvfs_fill_file(struct nvfs_ioctl_ioargs *args, int fd)
{
	struct stat st;
	dev_t dev;

	if (fstat(fd, &st))
		return -errno;
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	args->fd = fd;
	args->inum = st.st_ino;
	args->majdev = major(dev);
	args->mindev = minor(dev);
	return 0;
}

int nvfs_submit(int node, bool write, struct nvfs_ioctl_ioargs *args, ssize_t *result)
{
	int64_t code;

	if (!ioctl(node, write ? NVFS_IOCTL_WRITE : NVFS_IOCTL_READ, args)) {
		*result = args->ioctl_return;
		return 0;
	}
	if (errno != EPERM)
		return -errno;
	code = args->ioctl_return;
	return code < 0 && code >= -4095 ? (int)code : -EPERM;
}

/*
 * A request that starts inside a GPU page may not leave it (rule of the ABI), so the
 * first piece ends at the page and the rest follows as one request.
 */
static ssize_t move(struct nvfs_map *map, bool write, int fd, size_t size, off_t file_off,
		    uint64_t gpu_off)
{
	struct nvfs_ioctl_ioargs args;
	size_t done = 0, n, inside;
	ssize_t got = 0;
	int err;

	while (done < size) {
		inside = (map->gpu_va + gpu_off + done) & (NVFS_GPU_PAGE_SIZE - 1);
		n = size - done;
		if (inside && n > NVFS_GPU_PAGE_SIZE - inside)
			n = NVFS_GPU_PAGE_SIZE - inside;

		memset(&args, 0, sizeof(args));
		err = nvfs_fill_file(&args, fd);
		args.cpuvaddr = (uintptr_t)map->cpu;
		args.offset = file_off + done;
		args.size = n;
		args.devptroff = gpu_off + done;
		args.flags = NVFS_IO_SYNC | (nvfs_direct_only ? NVFS_IO_DIRECT_ONLY : 0);
		if (!err)
			err = nvfs_submit(map->nv->fd[0], write, &args, &got);
		if (err) {
			nvfs_explain_io(map, write, fd, n, file_off + done, gpu_off + done, err);
			return err;
		}
		done += got;
		if (got < (ssize_t)n)
			break;
	}
	return done;
}

ssize_t nvfs_read(struct nvfs_map *map, int fd, size_t size, off_t file_off, uint64_t gpu_off)
{
	return move(map, false, fd, size, file_off, gpu_off);
}

ssize_t nvfs_write(struct nvfs_map *map, int fd, size_t size, off_t file_off, uint64_t gpu_off)
{
	return move(map, true, fd, size, file_off, gpu_off);
}

int nvfs_start(struct nvfs_map *map, bool write, int fd, size_t size, off_t file_off,
	       uint64_t gpu_off, uint64_t value)
{
	struct nvfs_ioctl_ioargs args = { 0 };
	ssize_t now;
	int err;

	err = nvfs_fill_file(&args, fd);
	args.cpuvaddr = (uintptr_t)map->cpu;
	args.offset = file_off;
	args.size = size;
	args.devptroff = gpu_off;
	args.end_fence_value = value;
	if (!err)
		err = nvfs_submit(map->nv->fd[0], write, &args, &now);
	if (err)
		nvfs_explain_io(map, write, fd, size, file_off, gpu_off, err);
	return err;
}

bool nvfs_over(const struct nvfs_map *map, uint64_t value)
{
	return __atomic_load_n(&map->fence->end_fence_val, __ATOMIC_ACQUIRE) == value;
}

ssize_t nvfs_wait(const struct nvfs_map *map, uint64_t value, double seconds)
{
	struct timespec now, end, pause = { .tv_nsec = 50000 };

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)seconds;
	while (!nvfs_over(map, value)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return map->fence->result;
}

long nvfs_stat(const char *proc, const char *line, const char *field)
{
	char text[8192], want[64];
	const char *at, *end;
	int err;

	err = read_text(proc ? proc : PROC_DIR, "stats", text, sizeof(text));
	if (err)
		return err;
	snprintf(want, sizeof(want), "\n%s", line);
	at = strstr(text, want);
	if (!at)
		return -ENOENT;
	end = strchr(at + 1, '\n');
	snprintf(want, sizeof(want), "%s=", field);
	for (at++; (at = strstr(at, want)) && (!end || at < end); at++)
		if (at[-1] == ' ' || at[-1] == '\t' || at[-1] == ':')
			return strtol(at + strlen(want), NULL, 10);
	return -ENOENT;
}
