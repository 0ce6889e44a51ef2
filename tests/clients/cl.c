// SPDX-License-Identifier: MIT
/* cl.c - see cl.h */
#include <stdio.h>

#include "cl.h"

const char *cl_begin(int argc, char **argv)
{
	static struct t_gpu gpu;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		exit(2);
	}
	t_gpu_open(&gpu, 0);
	return argv[1];
}

int cl_end(void)
{
	printf("%s: ok\n", program_invocation_short_name);
	return 0;
}

void *cl_symbol(void *lib, const char *name)
{
	void *f;

	if (!lib)
		t_die("%s", dlerror());
	f = dlsym(lib, name);
	if (!f)
		t_die("%s", dlerror());
	return f;
}

void cl_ok(const char *call, CUfileError_t e)
{
	if (e.err || e.cu_err)
		t_die("%s: %d (%s), cu_err %d", call, (int)e.err, CUFILE_ERRSTR(e.err),
		      (int)e.cu_err);
}

void cl_bytes(const char *call, ssize_t r, size_t want)
{
	int err = errno;

	if (r == (ssize_t)want)
		return;
	if (r != -1)
		t_die("%s: %zd instead of %zu", call, r, want);
	t_die("%s: errno %d (%s)", call, err, IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err));
}

unsigned char cl_byte(size_t i, unsigned int seed)
{
	return (i * 31 + i / 4096 * 7 + i / M) + seed;
}

static unsigned char *bytes(size_t size, size_t off, unsigned int seed)
{
	unsigned char *p = malloc(size + 1);
	size_t i;

	if (!p)
		t_die("out of memory");
	for (i = 0; i < size; i++)
		p[i] = cl_byte(off + i, seed);
	return p;
}

static void same(const char *what, const unsigned char *is, const unsigned char *want, size_t size,
		 size_t off)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (is[i] != want[i])
			t_die("%s: byte %zu is 0x%02x, 0x%02x was expected", what, off + i, is[i],
			      want[i]);
}

void cl_make(const char *path, size_t size, unsigned int seed)
{
	unsigned char *p = bytes(size, 0, seed);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, p, size) != (ssize_t)size || fsync(fd))
		t_die("%s: %s", path, strerror(errno));
	close(fd);
	free(p);
}

void cl_file_is(const char *path, size_t off, size_t size, unsigned int seed)
{
	unsigned char *want = bytes(size, off, seed), *is = malloc(size + 1);
	int fd = t_open(path, O_RDONLY);

	if (pread(fd, is, size, off) != (ssize_t)size)
		t_die("%s: has not %zu bytes at %zu", path, size, off);
	same(path, is, want, size, off);
	close(fd);
	free(is);
	free(want);
}

void cl_gpu_fill(const void *p, size_t size, size_t off, unsigned int seed)
{
	unsigned char *src = bytes(size, off, seed);

	t_gpu_put((uintptr_t)p, src, size);
	free(src);
}

void cl_gpu_is(const void *p, size_t size, size_t off, unsigned int seed)
{
	unsigned char *want = bytes(size, off, seed), *is = malloc(size + 1);

	t_gpu_get(is, (uintptr_t)p, size);
	same("GPU memory", is, want, size, off);
	free(is);
	free(want);
}

void cl_gpu_poison(const void *p, size_t size)
{
	cuMemsetD8((uintptr_t)p, 0xee, size);
	cuCtxSynchronize();
}

void *cl_gpu_alloc(size_t size)
{
	void *p = (void *)(uintptr_t)t_gpu_alloc(size);

	cl_gpu_poison(p, size);
	return p;
}

CUfileDescr_t cl_descr(int fd)
{
	CUfileDescr_t d;

	memset(&d, 0, sizeof(d));
	d.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
	d.handle.fd = fd;
	return d;
}
