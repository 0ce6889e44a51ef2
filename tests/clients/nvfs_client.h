/* SPDX-License-Identifier: MIT */
/*
 * nvfs_client.h - a small client of the nvidia-fs ioctl ABI.
 *
 * Every call returns 0 (or bytes) or -errno; after a failure nvfs_error() holds a text
 * of the calling thread: the object, the errno name, the cause and the next step.
 * Nothing here knows CUDA: GPU memory is a device address and a length.
 */
#ifndef T_NVFS_CLIENT_H
#define T_NVFS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "uapi/nvfs.h"

#define NVFS_WANT_MAJOR 2
#define NVFS_WANT_MINOR 12

struct nvfs {
	const char *proc;		/* the module's proc directory */
	int fd[NVFS_MAX_DEVICES];
	unsigned int nfds;
	unsigned int major, minor;
	unsigned int next;		/* node that the next mapping goes through */
};

/* One mapping of a node, tied to a range of GPU memory; not to be copied. */
struct nvfs_map {
	struct nvfs *nv;
	void *cpu;			/* the carrier range; no data stands here */
	size_t shadow;			/* its length */
	uint64_t gpu_va;
	size_t size;			/* of the GPU buffer */
	struct nvfs_fence_page *fence;
};

/*
 * proc and dev: where the module's files are, NULL for /proc/driver/nvidia-fs and /dev.
 * Opens every node that the module announces.
 */
int nvfs_open(struct nvfs *nv, const char *proc, const char *dev);
void nvfs_close(struct nvfs *nv);

/* shadow: 0 for the best one; pdevinfo: PCI address of the GPU as MAP takes it, or 0 */
int nvfs_map(struct nvfs *nv, struct nvfs_map *map, uint64_t gpu_va, size_t size,
	     size_t shadow, uint64_t pdevinfo);
int nvfs_unmap(struct nvfs_map *map);

/* Its P2PDMA pages in this process; *p has the module's reason after -EOPNOTSUPP. */
int nvfs_pages(const struct nvfs_map *map, struct nvfs_ogds_pages *p);
void nvfs_pages_unmap(const struct nvfs_ogds_pages *p);

/*
 * Move size bytes between the file at file_off and the GPU buffer at gpu_off, all
 * multiples of 4096, synchronously. Bytes moved, less than size at the end of the file.
 */
extern uint32_t nvfs_want_carriers;	/* NVFS_CARRIERS_*, for later nvfs_map(); 0: no choice */
extern bool nvfs_direct_only;	/* rather fail than let the module's CPU move a byte */
ssize_t nvfs_read(struct nvfs_map *map, int fd, size_t size, off_t file_off, uint64_t gpu_off);
ssize_t nvfs_write(struct nvfs_map *map, int fd, size_t size, off_t file_off, uint64_t gpu_off);

/*
 * One asynchronous request; value: not 0, and not what the fence page holds. 0 when it is
 * under way or over (nvfs_wait() tells), -errno when it was refused.
 */
int nvfs_start(struct nvfs_map *map, bool write, int fd, size_t size, off_t file_off,
	       uint64_t gpu_off, uint64_t value);
/* Its result, once the fence page has the value; -ETIMEDOUT after so many seconds. */
ssize_t nvfs_wait(const struct nvfs_map *map, uint64_t value, double seconds);
bool nvfs_over(const struct nvfs_map *map, uint64_t value);

/*
 * One ioctl with the caller's values. 0 with *result the bytes, or -errno: the code from
 * the structure where the ioctl says EPERM, the ioctl's own errno otherwise.
 */
int nvfs_submit(int node, bool write, struct nvfs_ioctl_ioargs *args, ssize_t *result);
int nvfs_fill_file(struct nvfs_ioctl_ioargs *args, int fd);

const char *nvfs_error(void);
const char *nvfs_errname(int err);	/* 22 or -22 -> "EINVAL" */

/* One number of the module's stats file: the field after `line:`; -errno when absent. */
long nvfs_stat(const char *proc, const char *line, const char *field);

/* inside the client: texts (nvfs_explain.c) */
void nvfs_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void nvfs_explain_open(const char *what, int err);
void nvfs_explain_map(const struct nvfs_map *map, const char *step, int err);
void nvfs_explain_io(const struct nvfs_map *map, bool write, int fd, size_t size,
		     off_t file_off, uint64_t gpu_off, int err);

#endif /* T_NVFS_CLIENT_H */
