/* SPDX-License-Identifier: MIT */
/*
 * cufile_fake.h - a machine for tests of the library: the simulated GPU in host memory,
 * and an nvidia-fs that moves bytes with pread and pwrite, after checking each rule of the
 * module's ABI. Nothing else of the library is replaced.
 */
#ifndef CUFILE_FAKE_H
#define CUFILE_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "cufile.h"

/* What the fake module is to do, and what it saw. Atomic: requests run on many threads. */
struct fake {
	char dir[64];			/* holds root/ and the data files */
	atomic_int map_error;		/* each MAP fails with this errno */
	atomic_int io_error;		/* the next io_failures READ or WRITE fail with it */
	atomic_int io_failures;
	atomic_int io_delay_us;
	atomic_int no_node;		/* open of a node fails with this errno */
	bool first_node_only;		/* as in a container that was given one */
	/*
	 * The next reads are done by "the file system's CPU": ours fails with ENOTBLK, the
	 * other one reports a hole and success, and leaves the GPU memory as it was.
	 */
	atomic_int cpu_reads;
	atomic_int lost_writes;		/* the other one: the next writes fail and return 0 */
	atomic_int died;		/* the other one: the next reads find the memory freed */
	bool theirs;			/* the module is not ours; set by fake_theirs() */
	/* NULL, or: does the GPU's driver pin this memory? Else MAP fails with EINVAL. */
	bool (*pins)(uint64_t va, size_t size);
	/* P2PDMA pages: the ioctl fails with no_pages, is not known; what is on them */
	bool no_feature;
	atomic_int no_pages, pages_asked;
	atomic_int page_failures, page_error;	/* the next requests on them fail so */
	atomic_int cpu_pages;		/* the next blocks are moved by a CPU */
	atomic_ulong page_ios, page_bytes;
	atomic_ulong maps, unmaps, ios;
	atomic_ulong bytes;		/* moved by the module */
	atomic_ulong violations;	/* of the ABI; each is printed */
};

extern struct fake fake;

/* fs: "ext4", "xfs", ..., options of the mount; module: false for none. Installs the seams. */
void fake_machine(const char *fs, const char *options, bool module);
/* After fake_machine(), before the library is opened: a module that is not ours. */
void fake_theirs(void);
/* After fake_machine(): the drive is one of md. */
void fake_md(void);
/* Fails the test unless nothing is mapped and no rule was broken. */
void fake_check(void);
void fake_end(void);

/* A file of the fake file system, of random bytes by seed; returns its path (static). */
const char *fake_file(const char *name, size_t size, uint64_t seed);

uint64_t fake_random(uint64_t *state);
void fake_fill(char *p, size_t n, uint64_t *seed);

/* Opens and registers; the descriptor is the caller's. */
CUfileHandle_t fake_register(const char *path, int flags, int *fd);
/* This JSON is the configuration of the opens that follow. */
void fake_configure(const char *json);

/* GPU memory of all 0xee; it is there when this returns. */
char *fake_gpu(size_t size);
void fake_gpu_set(char *gpu, int byte, size_t size);
void fake_gpu_free(char *gpu);

/*
 * Memory of cuMemCreate at an address of its own, of all 0xee; types: of handles that it can be
 * exported as. fake_vmm_map: at a reserved address.
 */
#define FAKE_FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
char *fake_vmm(size_t size, unsigned int types);
void fake_vmm_map(CUdeviceptr va, size_t size, unsigned int types);
void fake_vmm_free(char *gpu, size_t size);

/* A file "f" of `size` random bytes, registered, and as much GPU memory: what one test works on. */
struct fake_pair {
	CUfileHandle_t fh;
	int fd;
	size_t size;
	char *gpu;
	char *file, *got;	/* host memory: what the file holds; room for what is found */
};

void fake_pair_open(struct fake_pair *m, size_t size, uint64_t seed, int flags);
void fake_pair_close(struct fake_pair *m);
/* The file is as m->file, up to `to`. */
void fake_pair_file_is_right(const struct fake_pair *m, size_t to);

/* For cmocka: CUDA of the group; a machine with ext4 and the module for each test. */
int fake_cuda(void **state);
int fake_setup(void **state);
int fake_teardown(void **state);
extern CUcontext fake_ctx;

#endif /* CUFILE_FAKE_H */
