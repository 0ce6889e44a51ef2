/* SPDX-License-Identifier: MIT */
/*
 * t_gpu.h - what every test client needs around the CUDA driver API, files and time.
 *
 * These end the program with a text on failure (exit status 1): a test that cannot set
 * up its GPU memory or its file has failed.
 */
#ifndef T_GPU_H
#define T_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

struct t_gpu {
	CUdevice dev;
	CUcontext ctx;
	uint64_t pdevinfo;	/* PCI address as nvfs MAP takes it */
};

void t_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Opens GPU `index` and makes its primary context current in the calling thread. */
void t_gpu_open(struct t_gpu *gpu, int index);
CUdeviceptr t_gpu_alloc(size_t size);
void t_gpu_free(CUdeviceptr ptr);
void t_gpu_put(CUdeviceptr dst, const void *src, size_t size);
void t_gpu_get(void *dst, CUdeviceptr src, size_t size);

/* Host memory in 2-MiB pages where the kernel has some, else ordinary; 2-MiB aligned. */
void *t_host_alloc(size_t size, bool *huge);

/* "64K", "8M", "1G" or plain bytes */
size_t t_size(const char *text);
double t_now(void);		/* seconds, monotonic */
double t_cpu_self(void);	/* seconds of CPU of this process */
double t_cpu_guest(void);	/* seconds of CPU that all processors were not idle */

int t_open(const char *path, int flags);
/* Makes the file: size bytes of the pattern of seed, on the drive when it returns. */
void t_file_make(const char *path, size_t size, uint64_t seed);
/* Reads it back through the page cache after dropping it: 0, or -EILSEQ and why. */
int t_file_check(const char *path, size_t off, size_t size, uint64_t seed, char *why,
		 size_t why_len);
void t_file_digest(const char *path, char hex[65]);
/* Writes dirty data and forgets what is cached of the file. */
void t_file_drop(int fd);

#endif /* T_GPU_H */
