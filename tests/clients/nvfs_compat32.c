// SPDX-License-Identifier: MIT
/*
 * nvfs_compat32.c - a 32-bit caller of the nodes: MAP, READ, BATCH_IO, RDMA, UNMAP.
 *
 *   nvfs_compat32 FILE       FILE: 2 MiB at least, the first of them is read
 *
 * Stands alone (no C library, system calls by int 0x80), so that building it needs nothing
 * for 32 bits but the compiler. GPU memory comes straight from the simulated card's node
 * and is looked at through its mmap. Prints "ok RULE" or "BAD RULE NUMBER".
 */
#include <asm-generic/errno-base.h>
#include <linux/stat.h>
#include <linux/types.h>

#include "gpu_sim_abi.h"
#include "uapi/nvfs.h"

_Static_assert(sizeof(void *) == 4, "this is for 32-bit callers");

#define SIZE (1024 * 1024)
#define PART 65536
#define PROT_RW 3
#define MAP_SHARED 1
#define MAP_ANON_PRIVATE 0x22
#define MAP_NORESERVE 0x4000
#define O_RDWR_DIRECT (02 | 040000 | 0100000)	/* and O_LARGEFILE */
#define AT_EMPTY_PATH 0x1000

enum { SYS_EXIT = 1, SYS_WRITE = 4, SYS_OPEN = 5, SYS_IOCTL = 54, SYS_MUNMAP = 91,
	SYS_NANOSLEEP = 162, SYS_PREAD = 180, SYS_MMAP2 = 192, SYS_STATX = 383 };

static long syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	const long args[3] = { a, b, f };
	const void *at = args;
	long r;

	/* the compiler may keep ebx and ebp for itself: they are set behind its back */
	__asm__ volatile("pushl %%ebx\n\tpushl %%ebp\n\t"
			 "movl 8(%%ecx), %%ebp\n\tmovl (%%ecx), %%ebx\n\tmovl 4(%%ecx), %%ecx\n\t"
			 "int $0x80\n\t"
			 "popl %%ebp\n\tpopl %%ebx"
			 : "=a"(r), "+c"(at)
			 : "0"(nr), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return r;
}

#define SYS(nr, a, b, c) syscall6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static int bad;

void *memset(void *p, int c, unsigned int n)
{
	char *s = p;

	while (n--)
		*s++ = c;
	return p;
}

static void put(const char *s)
{
	unsigned int n = 0;

	while (s[n])
		n++;
	SYS(SYS_WRITE, 1, s, n);
}

static void row(int ok, const char *name, long number)
{
	char text[16], *t = text + sizeof(text) - 1;
	unsigned long n = number < 0 ? -number : number;

	put(ok ? "ok  " : "BAD ");
	put(name);
	if (!ok) {
		*t = 0;
		do
			*--t = '0' + n % 10;
		while (n /= 10);
		put(number < 0 ? " -" : " ");
		put(t);
		bad = 1;
	}
	put("\n");
}

static void leave(void)
{
	SYS(SYS_EXIT, bad, 0, 0);
	__builtin_unreachable();
}

static void need(int ok, const char *name, long number)
{
	if (ok)
		return;
	row(0, name, number);
	leave();
}

static void *map(unsigned long len, int prot, int flags, int fd, __u64 off)
{
	long r = syscall6(SYS_MMAP2, 0, len, prot, flags, fd, (long)(off >> 12));

	need((unsigned long)r < -4095UL, "mmap", r);
	return (void *)r;
}

struct map32 {
	char *cpu;
	struct nvfs_fence_page *fence;
};

static __u64 gpu_va;
static volatile char *gpu;	/* the same memory, as the CPU sees it */
static int node, file;

static void do_map(struct map32 *m)
{
	struct nvfs_ioctl_map a = { 0 };
	long r;

	m->cpu = map(SIZE, PROT_RW, MAP_SHARED, node, 0);
	m->fence = map(4096, PROT_RW, MAP_ANON_PRIVATE, -1, 0);
	a.size = SIZE;
	a.cpuvaddr = (unsigned long)m->cpu;
	a.gpuvaddr = gpu_va;
	a.end_fence_addr = (unsigned long)m->fence;
	a.sbuf_block = SIZE / NVFS_BLOCK_SIZE;
	r = SYS(SYS_IOCTL, node, NVFS_IOCTL_MAP, &a);
	row(!r, "MAP", r ? (long)a.end_fence_addr : 0);
}

static void fill(struct nvfs_ioctl_ioargs *a, const struct map32 *m)
{
	struct statx st;
	long r = syscall6(SYS_STATX, file, (long)"", AT_EMPTY_PATH, STATX_BASIC_STATS, (long)&st, 0);

	need(!r, "statx", r);
	memset(a, 0, sizeof(*a));
	a->cpuvaddr = (unsigned long)m->cpu;
	a->size = PART;
	a->inum = st.stx_ino;
	a->majdev = st.stx_dev_major;
	a->mindev = st.stx_dev_minor;
	a->fd = file;
	a->flags = NVFS_IO_SYNC;
}

/* n bytes of GPU memory at `at` are those of the file at off */
static int same(unsigned int at, __u64 off, unsigned int n)
{
	static char block[4096] __attribute__((aligned(4096)));
	unsigned int i, done;
	long r;

	for (done = 0; done < n; done += sizeof(block)) {
		r = syscall6(SYS_PREAD, file, (long)block, sizeof(block), (long)(off + done), 0, 0);
		need(r == sizeof(block), "pread", r);
		for (i = 0; i < sizeof(block); i++)
			if (gpu[at + done + i] != block[i])
				return 0;
	}
	return 1;
}

static void wait_for(const struct map32 *m, __u64 value)
{
	volatile __u64 *v = &m->fence->end_fence_val;
	long pause[2] = { 0, 1000000 };
	int i;

	for (i = 0; i < 10000 && *v != value; i++)
		SYS(SYS_NANOSLEEP, pause, 0, 0);
	need(*v == value, "the fence is signalled", i);
}

static void batch(struct map32 *m)
{
	static struct nvfs_ioctl_ioargs e[2];
	struct nvfs_ioctl_batch b = { .nents = 2, .entries = (unsigned long)e };
	unsigned int i;
	long r;

	for (i = 0; i < 2; i++) {
		fill(&e[i], &m[i]);
		e[i].flags = i << NVFS_IO_OPTYPE_SHIFT;		/* a read and a write */
		e[i].devptroff = e[i].offset = i * PART;
		e[i].end_fence_value = 5;
	}
	e[1].offset = SIZE;
	for (i = 0; i < PART; i++) {
		gpu[i] = 0x33;
		gpu[PART + i] = (char)(i * 7);
	}
	r = SYS(SYS_IOCTL, node, NVFS_IOCTL_BATCH_IO, &b);
	need(!r, "BATCH_IO", r);
	wait_for(&m[0], 5);
	wait_for(&m[1], 5);
	row(m[0].fence->result == PART && same(0, 0, PART), "BATCH_IO: the read",
	    (long)m[0].fence->result);
	row(m[1].fence->result == PART && same(PART, SIZE, PART), "BATCH_IO: the write",
	    (long)m[1].fence->result);
}

static void rdma(const struct map32 *m)
{
	struct nvfs_ioctl_set_rdma s = { .cpuvaddr = (unsigned long)m->cpu, .version = 2,
		.nkeys = 1, .rkey = { 0x1234 } };
	struct nvfs_ioctl_get_rdma g = { .cpuvaddr = (unsigned long)m->cpu };
	long r = SYS(SYS_IOCTL, node, NVFS_IOCTL_SET_RDMA_REG_INFO, &s);

	r = r ? r : SYS(SYS_IOCTL, node, NVFS_IOCTL_GET_RDMA_REG_INFO, &g);
	row(!r && g.info.rkey == 0x1234 && g.info.rem_vaddr == gpu_va && g.info.size == SIZE,
	    "SET and GET_RDMA_REG_INFO", r);
}

static void run(const char *path)
{
	struct gpu_sim_alloc alloc = { .size = SIZE };
	struct nvfs_ogds_unmap u = { 0 };
	struct nvfs_ioctl_ioargs a;
	struct map32 m[2];
	long r, card;
	char *range;

	file = SYS(SYS_OPEN, path, O_RDWR_DIRECT, 0);
	need(file >= 0, "open of the file", file);
	card = SYS(SYS_OPEN, "/dev/gpu-sim0", 02, 0);
	need(card >= 0, "open of the card", card);
	node = SYS(SYS_OPEN, "/dev/nvidia-fs0", 02, 0);
	need(node >= 0, "open of the node", node);
	range = map(2 * GPU_SIM_BLOCK_SIZE, 0, MAP_ANON_PRIVATE | MAP_NORESERVE, -1, 0);
	alloc.va = ((unsigned long)range + GPU_SIM_BLOCK_SIZE - 1) & ~(GPU_SIM_BLOCK_SIZE - 1UL);
	r = SYS(SYS_IOCTL, card, GPU_SIM_IOC_ALLOC, &alloc);
	need(!r, "allocation of GPU memory", r);
	gpu_va = alloc.va;
	gpu = map(SIZE, PROT_RW, MAP_SHARED, card, alloc.handle);

	do_map(&m[0]);
	do_map(&m[1]);
	fill(&a, &m[0]);
	a.size = SIZE;
	r = SYS(SYS_IOCTL, node, NVFS_IOCTL_READ, &a);
	row(!r && a.ioctl_return == SIZE && same(0, 0, SIZE), "READ", r ? (long)a.ioctl_return : 0);
	fill(&a, &m[0]);
	a.offset = 512;
	r = SYS(SYS_IOCTL, node, NVFS_IOCTL_READ, &a);
	row(r == -EPERM && a.ioctl_return == -EINVAL, "a bad READ has its code", r);
	r = SYS(SYS_IOCTL, node, NVFS_IOCTL_READ, 0);
	row(r == -EFAULT, "READ at address 0", r);
	batch(m);
	rdma(&m[0]);
	u.cpuvaddr = (unsigned long)m[1].cpu;
	r = SYS(SYS_IOCTL, node, NVFS_IOCTL_OGDS_UNMAP, &u);
	row(!r, "UNMAP", r);
	SYS(SYS_MUNMAP, m[0].cpu, SIZE, 0);
	SYS(SYS_MUNMAP, m[1].cpu, SIZE, 0);
}

__attribute__((used)) void start(long *stack)
{
	need(stack[0] == 2, "usage: nvfs_compat32 FILE;", stack[0]);
	run((const char *)stack[2]);
	leave();
}

__asm__(".globl _start\n_start:\n\tmovl %esp, %eax\n\tandl $-16, %esp\n\tsubl $12, %esp\n\t"
	"pushl %eax\n\tcall start\n");
