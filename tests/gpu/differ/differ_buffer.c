// SPDX-License-Identifier: MIT
/* differ_buffer.c - cases of differ: registered memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "differ.h"

static void arguments(struct d *d, long arg)
{
	d_err("null", lib.BufRegister(NULL, M, 0));
	d_err("size-0", lib.BufRegister(d_ptr(d, 0), 0, 0));
	d_num("uses", lib.UseCount());
}

/* A part of the allocation, or more than it. */
static void range(struct d *d, size_t at, size_t len)
{
	d_err("open", lib.DriverOpen());
	d_err("register", lib.BufRegister(d_ptr(d, at), len, 0));
	d_err("deregister", lib.BufDeregister(d_ptr(d, at)));
}

static void whole(struct d *d, long arg) { range(d, 0, MEM_SIZE); }
static void one_byte(struct d *d, long arg) { range(d, 0, 1); }
static void odd_length(struct d *d, long arg) { range(d, 0, 5001); }
static void odd_start(struct d *d, long arg) { range(d, 1, 8 * K); }
static void page_start(struct d *d, long arg) { range(d, 4 * K, 64 * K); }
static void beyond(struct d *d, long arg) { range(d, 0, MEM_SIZE + 64 * K); }
static void far_beyond(struct d *d, long arg) { range(d, 0, 1UL << 40); }
static void leaves(struct d *d, long arg) { range(d, MEM_SIZE - 4 * K, 8 * K); }
static void wraps(struct d *d, long arg) { range(d, 0, -1UL); }

static void twice(struct d *d, long arg)
{
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("same", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("shorter", lib.BufRegister(d_ptr(d, 0), 64 * K, 0));
	d_err("longer", lib.BufRegister(d_ptr(d, 0), 2 * M, 0));
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_err("after", lib.BufRegister(d_ptr(d, 0), M, 0));
}

static void part(struct d *d, long arg)
{
	d_err("register", lib.BufRegister(d_ptr(d, 0), 2 * M, 0));
	d_err("part", lib.BufRegister(d_ptr(d, M), 64 * K, 0));
	d_err("overlap", lib.BufRegister(d_ptr(d, M + 64 * K), 2 * M, 0));
	d_file(d, O_RDWR | O_DIRECT);
	d_io("read", lib.Read(d->fh, d_ptr(d, M), 64 * K, 0, 0));
	d_data(d, "data", M, 64 * K, 0);
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_err("part", lib.BufDeregister(d_ptr(d, M)));
	d_err("overlap", lib.BufDeregister(d_ptr(d, M + 64 * K)));
}

static void around(struct d *d, long arg)
{
	d_err("part", lib.BufRegister(d_ptr(d, M), 64 * K, 0));
	d_err("all", lib.BufRegister(d_ptr(d, 0), MEM_SIZE, 0));
}

static void flags(struct d *d, long arg)
{
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, arg));
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
}

/* -- other memory -- */

static void use(struct d *d, void *p)
{
	d_err("register", lib.BufRegister(p, M, 0));
	d_file(d, O_RDWR | O_DIRECT);
	memset(p, 0, M);
	d_io("read", lib.Read(d->fh, p, M, 0, 0));
	d_bytes("data", p, M, 0);
	d_err("deregister", lib.BufDeregister(p));
}

static void host_malloc(struct d *d, long arg)
{
	void *p = malloc(M);

	use(d, p);
	free(p);
}

static void host_mapped(struct d *d, long arg)
{
	void *p = mmap(NULL, M, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	use(d, p);
	munmap(p, M);
}

static void host_pinned(struct d *d, long arg)
{
	void *p;

	if (cuMemAllocHost(&p, M))
		d_not_here("no pinned memory");
	use(d, p);
	cuMemFreeHost(p);
}

static void managed(struct d *d, long arg)
{
	CUresult (*alloc)(CUdeviceptr *p, size_t n, unsigned int how) = NULL;
	CUdeviceptr p;

	*(void **)&alloc = d_cuda("cuMemAllocManaged");
	if (alloc(&p, M, 1))
		d_not_here("no managed memory");
	use(d, (void *)(uintptr_t)p);
	cuMemFree(p);
}

static void host_beyond(struct d *d, long arg)
{
	void *p;

	if (cuMemAllocHost(&p, M))
		d_not_here("no pinned memory");
	d_err("register", lib.BufRegister(p, 64 * M, 0));
	cuMemFreeHost(p);
}

static void nowhere(struct d *d, long arg)
{
	d_err("register", lib.BufRegister((void *)0x10000, 64 * K, 0));
}

static void host_refused(struct d *d, long arg)
{
	void *p = malloc(M);

	d_err("set", lib.SetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY, false));
	d_err("register", lib.BufRegister(p, M, 0));
	d_file(d, O_RDWR);
	d_io("read", lib.Read(d->fh, p, 4 * K, 0, 0));
	free(p);
}

static void pinned_limit(struct d *d, long arg)
{
	d_err("set", lib.SetParameterSizeT(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
					   64));
	d_err("open", lib.DriverOpen());
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
}

/* -- deregistering -- */

static void deregister_wrong(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_err("null", lib.BufDeregister(NULL));
	d_err("unknown", lib.BufDeregister(d_ptr(d, 0)));
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("inside", lib.BufDeregister(d_ptr(d, 4 * K)));
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_err("again", lib.BufDeregister(d_ptr(d, 0)));
	d_num("uses", lib.UseCount());
}

static void deregister_closed(struct d *d, long arg)
{
	d_err("open", lib.DriverOpen());
	d_err("register", lib.BufRegister(d_ptr(d, 0), M, 0));
	d_err("close", lib.DriverClose_v2());
	d_err("null", lib.BufDeregister(NULL));
	d_err("deregister", lib.BufDeregister(d_ptr(d, 0)));
	d_num("uses", lib.UseCount());
}

static void freed_first(struct d *d, long arg)
{
	CUdeviceptr p = t_gpu_alloc(2 * M);

	d_err("register", lib.BufRegister((void *)(uintptr_t)p, 2 * M, 0));
	t_gpu_free(p);
	d_err("deregister", lib.BufDeregister((void *)(uintptr_t)p));
}

/* The address is given out again; the registration of the old memory is still there. */
static void freed_and_again(struct d *d, long arg)
{
	CUdeviceptr p = t_gpu_alloc(2 * M), q;

	d_err("register", lib.BufRegister((void *)(uintptr_t)p, 2 * M, 0));
	t_gpu_free(p);
	q = t_gpu_alloc(2 * M);
	if (q != p)
		d_not_here("the freed address was not given out again");
	d_err("register", lib.BufRegister((void *)(uintptr_t)q, 2 * M, 0));
	d_file(d, O_RDWR | O_DIRECT);
	d_io("read", lib.Read(d->fh, (void *)(uintptr_t)q, 64 * K, 0, 0));
	d_err("deregister", lib.BufDeregister((void *)(uintptr_t)q));
	t_gpu_free(q);
}

static void many(struct d *d, long arg)
{
	int i, ok = 0, gone = 0;

	for (i = 0; i < 64; i++)
		ok += !lib.BufRegister(d_ptr(d, i * 64 * K), 64 * K, 0).err;
	d_num("registered", ok);
	for (i = 0; i < 64; i++)
		gone += !lib.BufDeregister(d_ptr(d, i * 64 * K)).err;
	d_num("deregistered", gone);
}

const struct d_case buffer_cases[] = {
	{ "buffer-arguments", arguments },
	{ "buffer-whole", whole },
	{ "buffer-one-byte", one_byte },
	{ "buffer-odd-length", odd_length },
	{ "buffer-odd-start", odd_start },
	{ "buffer-page-start", page_start },
	{ "buffer-beyond", beyond },
	{ "buffer-far-beyond", far_beyond },
	{ "buffer-leaves", leaves },
	{ "buffer-wraps", wraps },
	{ "buffer-twice", twice },
	{ "buffer-part", part },
	{ "buffer-around", around },
	{ "buffer-flags-rdma", flags, CU_FILE_RDMA_REGISTER },
	{ "buffer-flags-relaxed", flags, CU_FILE_RDMA_RELAXED_ORDERING },
	{ "buffer-flags-minus-1", flags, -1 },
	{ "buffer-flags-256", flags, 256 },
	{ "buffer-malloc", host_malloc },
	{ "buffer-mmap", host_mapped },
	{ "buffer-pinned", host_pinned },
	{ "buffer-managed", managed },
	{ "buffer-pinned-beyond", host_beyond },
	{ "buffer-nowhere", nowhere },
	{ "buffer-host-refused", host_refused },
	{ "buffer-pinned-limit", pinned_limit },
	{ "buffer-deregister", deregister_wrong },
	{ "buffer-deregister-closed", deregister_closed },
	{ "buffer-freed-first", freed_first },
	{ "buffer-freed-and-again", freed_and_again },
	{ "buffer-many", many },
	{ NULL }
};
