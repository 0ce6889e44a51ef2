// SPDX-License-Identifier: MIT
/*
 * nvfs_explain.c - the client's error texts: object, errno name, cause, next step.
 *
 * The kernel tells one number; the cause is found afterwards from what the program can
 * see itself (the descriptor's flags, the kind of file, sizes, the module's proc files).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvfs_client.h"

#define KERNEL_ENOTSUPP 524	/* not an errno of user space, but drivers return it */

static _Thread_local char message[768];

const char *nvfs_error(void)
{
	return message;
}

void nvfs_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
}

const char *nvfs_errname(int err)
{
	static _Thread_local char number[24];
	const char *name;

	err = abs(err);
	if (err == KERNEL_ENOTSUPP)
		return "ENOTSUPP";
	name = strerrorname_np(err);
	if (name)
		return name;
	snprintf(number, sizeof(number), "errno %d", err);
	return number;
}

void nvfs_explain_open(const char *what, int err)
{
	const char *next;

	switch (err) {
	case -ENOENT:
		next = "the module is loaded but the node is missing; mount devtmpfs on /dev, or "
		       "mknod it with the major number of nvidia-fs in /proc/devices";
		break;
	case -EACCES:
	case -EPERM:
		next = "this user may not open the node; see the module parameters dev_mode and "
		       "dev_gid, or run as a member of that group";
		break;
	case -ENXIO:
	case -ENODEV:
		next = "the node's numbers belong to no driver; remove the stale node and load the "
		       "module again: modprobe nvidia-fs";
		break;
	case -EINVAL:
		next = "the module is being unloaded; load it again: modprobe nvidia-fs";
		break;
	default:
		next = "see the kernel log: dmesg | tail";
	}
	nvfs_say("%s: %s: %s", what, nvfs_errname(err), next);
}

void nvfs_explain_map(const struct nvfs_map *map, const char *step, int err)
{
	const char *next;

	if (strcmp(step, "MAP")) {
		next = err == -EINVAL ?
		       "a mapping is 4 KiB to 16 MiB, in 64-KiB steps above 64 KiB" :
		       "see free memory (free -m) and the process' limits (ulimit -l)";
		nvfs_say("%s (%zu bytes): %s: %s", step, map->shadow, nvfs_errname(err), next);
		return;
	}
	switch (err) {
	case -ENODEV:
	case -ENXIO:
		next = "no GPU driver that can pin memory; load it (modprobe nvidia)";
		break;
	case -ENOMEM:
		next = "the GPU's BAR or the host has no room to pin it; free GPU memory, use a "
		       "smaller buffer, or raise the module's limits";
		break;
	case -EBUSY:
		next = "this mapping is tied to a GPU buffer already; unmap it first";
		break;
	case -EOPNOTSUPP:
	case -KERNEL_ENOTSUPP:
		next = "the GPU driver refused to pin this memory (no peer-to-peer on this "
		       "product or in this mode); use the bounce route";
		break;
	default:
		next = "the GPU driver refused to pin this memory; is the address one of "
		       "cuMemAlloc of this process, and the whole range inside it?";
	}
	nvfs_say("pin of %zu bytes of GPU memory at %#llx: %s: %s", map->size,
		 (unsigned long long)map->gpu_va, nvfs_errname(err), next);
}

/* wekafsio is always listed, hook or not */
/* Does the module do without a hook here (its own proc file says so; others have none)? */
static bool p2pdma_used(const struct nvfs_map *map)
{
	char path[PATH_MAX], line[256];
	bool used = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/opengds", map->nv->proc);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!used && fgets(line, sizeof(line), f))
		used = !strncmp(line, "p2pdma: used ", 13);
	fclose(f);
	return used;
}

static bool hook_attached(const struct nvfs_map *map)
{
	char path[PATH_MAX], line[128];
	bool any = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/modules", map->nv->proc);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!any && fgets(line, sizeof(line), f))
		any = strchr(line, ':') && strncmp(line, "wekafsio:", 9);
	fclose(f);
	return any;
}

/* What is wrong with the descriptor, or NULL. */
static const char *bad_descriptor(bool write, int fd)
{
	struct stat st;
	int flags, mode;

	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st))
		return "the descriptor is not open; open the file with O_DIRECT first";
	if (S_ISDIR(st.st_mode))
		return "it is a directory; name a regular file or a block device";
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return "it is neither a regular file nor a block device; name one of these";
	mode = flags & O_ACCMODE;
	if (write && mode == O_RDONLY)
		return "the file is open for reading only; open it with O_RDWR | O_DIRECT";
	if (!write && mode == O_WRONLY)
		return "the file is open for writing only; open it with O_RDWR | O_DIRECT";
	if (!(flags & O_DIRECT))
		return "the file was opened without O_DIRECT; open it with O_DIRECT";
	return NULL;
}

static const char *bad_range(const struct nvfs_map *map, size_t size, off_t file_off,
			     uint64_t gpu_off, char *buf, size_t len)
{
	if (file_off < 0 || (file_off | size | (map->gpu_va + gpu_off)) % NVFS_BLOCK_SIZE) {
		snprintf(buf, len, "file offset, size and GPU address must be multiples of %d; "
			 "use the bounce route for the edges", NVFS_BLOCK_SIZE);
		return buf;
	}
	if (size > map->size || gpu_off > map->size - size) {
		snprintf(buf, len, "the range reaches past the GPU buffer (%zu bytes at %llu of "
			 "%zu); ask for less or map more", size, (unsigned long long)gpu_off,
			 map->size);
		return buf;
	}
	return NULL;
}

static const char *cause_of(const struct nvfs_map *map, bool write, int err)
{
	if (!hook_attached(map) && !p2pdma_used(map))
		return "no storage driver with the nvfs hook is attached "
		       "(see /proc/driver/nvidia-fs/modules); load the hooked nvme driver "
		       "or use the bounce route";
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "no space is left on the file system; free some (df -h) or write elsewhere";
	case -EIO:
	case -ENODATA:
	case -EREMOTEIO:
	case -EILSEQ:
		return write ? "the drive failed the write; see dmesg and smartctl -a" :
			       "the drive failed the read; see dmesg and smartctl -a";
	case -EOPNOTSUPP:
	case -KERNEL_ENOTSUPP:
	case -ENOTBLK:
		return "the bytes cannot go directly here (a hole, a file system that copies, or a "
		       "drive without the hook); see dmesg, use the bounce route";
	case -EBUSY:
		return "another request runs on this mapping; wait for it or map again";
	case -ESTALE:
		return "the descriptor no longer names the file it was; open it again";
	case -EFAULT:
	case -ENODEV:
		return "the GPU memory was freed; allocate and map again";
	case -EFBIG:
		return "the file would grow past its limit; see ulimit -f";
	case -EINTR:
		return "a signal ended the request; try again";
	default:
		return "see the module's line in dmesg";
	}
}

void nvfs_explain_io(const struct nvfs_map *map, bool write, int fd, size_t size,
		     off_t file_off, uint64_t gpu_off, int err)
{
	char link[64], path[512], range[160];
	const char *cause;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';

	cause = bad_descriptor(write, fd);
	if (!cause)
		cause = bad_range(map, size, file_off, gpu_off, range, sizeof(range));
	if (!cause)
		cause = cause_of(map, write, err);
	nvfs_say("%s of %zu bytes at %lld of fd %d (%s): %s: %s", write ? "write" : "read", size,
		 (long long)file_off, fd, *path ? path : "closed", nvfs_errname(err), cause);
}
