// SPDX-License-Identifier: MIT
/*
 * t_probes.c - every probe point of the library is hit where it says, with the values that it
 * says. The test does what a kernel's uprobe does: it reads the notes of its own file, puts a
 * breakpoint over the nop of each probe and reads the arguments by the note's text. Fails when
 * a probe is missing, has another number of arguments, is not on the way of its request, or
 * carries another value. x86-64 only; elsewhere, and without sys/sdt.h, it is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_SDT) && defined(__x86_64__)
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "os.h"

#define MIB (1024 * 1024)
#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)
#define ARGS 6

/* What docs/library.md promises. */
static const struct {
	const char *name;
	int args;
} promised[] = {
	{ "cufio_px_read", 6 },		    { "cufio_px_write", 6 },
	{ "cufio_gds_read", 6 },	    { "cufio_gds_write", 6 },
	{ "cufio_gds_read_async", 6 },	    { "cufio_gds_write_async", 6 },
	{ "cufio_gds_unaligned_write", 6 }, { "cufio_px_io_retry", 5 },
	{ "cufio_rdma_read", 3 },	    { "cufio_rdma_write", 3 },
	{ "cufio-internal-read-bb", 4 },    { "cufio-internal-write-bb", 4 },
	{ "cufio-internal-bb-done", 4 },    { "cufio-internal-io-done", 4 },
	{ "cufio-internal-map", 3 },	    { "cufile-internal-rmw", 4 },
};
#define PROMISED (sizeof(promised) / sizeof(promised[0]))

/* A place in the code; a probe may have several. Written by the signal handler. */
static struct site {
	unsigned char *at;
	const char *name, *args;
	volatile sig_atomic_t hits;
	volatile int64_t value[ARGS];	/* of the last hit */
} site[64];
static unsigned int sites;

/* -- the arguments: N@OPERAND for each -- */

static int64_t reg_of(const gregset_t g, const char *name, size_t len)
{
	static const struct {
		const char *name;	/* of 8 bytes, of 4 */
		const char *half;
		int reg;
	} table[] = {
		{ "rax", "eax", REG_RAX }, { "rbx", "ebx", REG_RBX },  { "rcx", "ecx", REG_RCX },
		{ "rdx", "edx", REG_RDX }, { "rsi", "esi", REG_RSI },  { "rdi", "edi", REG_RDI },
		{ "rbp", "ebp", REG_RBP }, { "rsp", "esp", REG_RSP },  { "r8", "r8d", REG_R8 },
		{ "r9", "r9d", REG_R9 },   { "r10", "r10d", REG_R10 }, { "r11", "r11d", REG_R11 },
		{ "r12", "r12d", REG_R12 }, { "r13", "r13d", REG_R13 }, { "r14", "r14d", REG_R14 },
		{ "r15", "r15d", REG_R15 },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if ((strlen(table[i].name) == len && !memcmp(table[i].name, name, len)) ||
		    (strlen(table[i].half) == len && !memcmp(table[i].half, name, len)))
			return g[table[i].reg];
	return INT64_MIN;	/* what no test expects */
}

/* disp(%base,%index,scale) */
static int64_t address_of(const gregset_t g, const char *text)
{
	int64_t at = strtoll(text, (char **)&text, 10), scale = 1, part;
	size_t len;
	int n;

	for (n = 0; (*text == '(' || *text == ',') && n < 3; n++) {
		text++;
		if (*text == '%') {
			len = strcspn(text + 1, ",)");
			part = reg_of(g, text + 1, len);
			text += 1 + len;
			if (n == 1 && *text == ',')
				scale = strtoll(text + 1, NULL, 10);
			at += n == 1 ? part * scale : part;
		} else {
			break;
		}
	}
	return at;
}

static int64_t sized(int64_t v, int size)
{
	switch (size) {
	case 4:
		return (uint32_t)v;
	case -4:
		return (int32_t)v;
	}
	return v;
}

static int64_t operand(const gregset_t g, const char *text)
{
	int size = strtol(text, (char **)&text, 10);
	int64_t v = 0;

	text++;		/* the @ */
	if (*text == '$')
		v = strtoll(text + 1, NULL, 10);
	else if (*text == '%')
		v = reg_of(g, text + 1, strcspn(text + 1, " "));
	else
		memcpy(&v, (void *)(uintptr_t)address_of(g, text), abs(size));
	return sized(v, size);
}

static void trapped(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	const char *text;
	unsigned int i;
	int n;

	/* the breakpoint is as long as the nop that it stands for: the program goes on behind */
	for (i = 0; i < sites; i++) {
		if (site[i].at + 1 != (unsigned char *)uc->uc_mcontext.gregs[REG_RIP])
			continue;
		site[i].hits++;
		for (n = 0, text = site[i].args; *text && n < ARGS; n++) {
			site[i].value[n] = operand(uc->uc_mcontext.gregs, text);
			text += strcspn(text, " ");
			text += strspn(text, " ");
		}
		return;
	}
	_exit(99);
}

/* -- the notes -- */

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

static char *whole_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_true(p != MAP_FAILED);
	close(fd);
	*len = size;
	return p;
}

static void one_note(const char *desc, uintptr_t moved)
{
	uint64_t pc, base, semaphore;
	const char *provider;

	memcpy(&pc, desc, 8);
	memcpy(&base, desc + 8, 8);
	memcpy(&semaphore, desc + 16, 8);
	provider = desc + 24;
	if (strcmp(provider, "cufio"))
		return;
	assert_int_equal(semaphore, 0);
	assert_true(sites < sizeof(site) / sizeof(site[0]));
	site[sites].name = provider + strlen(provider) + 1;
	site[sites].args = site[sites].name + strlen(site[sites].name) + 1;
	site[sites++].at = (unsigned char *)(pc + moved);
}

static void read_notes(void)
{
	uintptr_t moved = 0;
	const ElfW(Ehdr) *e;
	const ElfW(Shdr) *s;
	const char *names, *p, *end;
	size_t len;
	unsigned int i;

	dl_iterate_phdr(first_object, &moved);
	e = (const void *)whole_file("/proc/self/exe", &len);
	s = (const void *)((const char *)e + e->e_shoff);
	names = (const char *)e + s[e->e_shstrndx].sh_offset;
	for (i = 0; i < e->e_shnum; i++) {
		if (strcmp(names + s[i].sh_name, ".note.stapsdt"))
			continue;
		p = (const char *)e + s[i].sh_offset;
		for (end = p + s[i].sh_size; p < end;) {
			const ElfW(Nhdr) *n = (const void *)p;
			const char *desc = p + sizeof(*n) + (n->n_namesz + 3) / 4 * 4;

			one_note(desc, moved);
			p = desc + (n->n_descsz + 3) / 4 * 4;
		}
	}
}

static void set_breakpoints(void)
{
	struct sigaction act = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER };
	unsigned char *page;
	unsigned int i;

	assert_int_equal(sigaction(SIGTRAP, &act, NULL), 0);
	for (i = 0; i < sites; i++) {
		assert_int_equal(*site[i].at, 0x90);
		page = (unsigned char *)((uintptr_t)site[i].at & ~(uintptr_t)4095);
		assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
		*site[i].at = 0xcc;
	}
}

static int begin(void **state)
{
	if (fake_cuda(state))
		return -1;
	read_notes();
	set_breakpoints();
	return 0;
}

/*
 * Threads of the library and of CUDA have all signals blocked: a breakpoint there would end the
 * program. Only these stay.
 */
static void only(const char *what)
{
	unsigned int i;

	for (i = 0; i < sites; i++)
		*site[i].at = !what || strstr(site[i].name, what) ? 0xcc : 0x90;
}

/* -- what was seen -- */

static int setup(void **state)
{
	unsigned int i;

	for (i = 0; i < sites; i++)
		site[i].hits = 0;
	return fake_setup(state);
}

static unsigned int hits(const char *name)
{
	unsigned int n = 0, i;

	for (i = 0; i < sites; i++)
		if (!strcmp(site[i].name, name))
			n += site[i].hits;
	return n;
}

/* Hit just so often, the last time with these values. */
static void seen(const char *name, unsigned int times, int n, ...)
{
	unsigned int i;
	va_list ap;
	int64_t want;
	int arg;

	if (hits(name) != times)
		fail_msg("%s was hit %u times, not %u", name, hits(name), times);
	for (i = 0; i < sites; i++) {
		if (strcmp(site[i].name, name) || !site[i].hits)
			continue;
		va_start(ap, n);
		for (arg = 0; arg < n; arg++) {
			want = va_arg(ap, int64_t);
			if (site[i].value[arg] != want)
				fail_msg("%s: argument %d is %lld, not %lld", name, arg + 1,
					 (long long)site[i].value[arg], (long long)want);
		}
		va_end(ap);
		site[i].hits = 0;
	}
}

#define I(v) ((int64_t)(v))

static char *gpu_alloc(size_t size)
{
	CUdeviceptr p;

	assert_int_equal(cuMemAlloc(&p, size), 0);
	return (char *)(uintptr_t)p;
}

/* -- cases -- */

static void t_all_there(void **state)
{
	unsigned int i, j, n;
	const char *p;
	int args;

	for (i = 0; i < sites; i++) {
		for (j = 0; j < PROMISED && strcmp(promised[j].name, site[i].name); j++)
			;
		if (j == PROMISED)
			fail_msg("%s is a probe that nobody promised", site[i].name);
		for (args = 0, p = site[i].args; (p = strchr(p, '@')); p++)
			args++;
		if (args != promised[j].args)
			fail_msg("%s has %d arguments, not %d", site[i].name, args,
				 promised[j].args);
	}
	for (j = 0; j < PROMISED; j++) {
		for (n = 0, i = 0; i < sites; i++)
			n += !strcmp(promised[j].name, site[i].name);
		if (!n)
			fail_msg("%s is missing", promised[j].name);
	}
}

static void t_direct(void **state)
{
	char *p = gpu_alloc(MIB);
	CUfileHandle_t fh;
	int fd;

	fh = fake_register(fake_file("f", MIB, 1), O_RDWR | O_DIRECT, &fd);
	OK(cuFileBufRegister(p, MIB, 0));
	seen("cufio-internal-map", 1, 3, I(p), I(MIB), I(0));
	assert_int_equal(cuFileRead(fh, p, 65536, 8192, 4096), 65536);
	seen("cufio_gds_read", 1, 6, I(fd), I(8192), I(65536), I(4096), I(65536), I(0));
	assert_true(hits("cufio-internal-io-done") > 0);
	assert_int_equal(cuFileWrite(fh, p, 8192, 4096, 0), 8192);
	seen("cufio_gds_write", 1, 6, I(fd), I(4096), I(8192), I(0), I(8192), I(0));
	assert_int_equal(hits("cufio_px_read") + hits("cufio_px_write"), 0);

	/* a write of a whole block and a part: the part is an edge */
	assert_int_equal(cuFileWrite(fh, p, 5000, 4096, 0), 5000);
	seen("cufio_gds_write", 1, 6, I(fd), I(4096), I(4096), I(0), I(4096), I(0));
	seen("cufio_px_write", 1, 6, I(fd), I(8192), I(904), I(4096), I(904), I(0));
	seen("cufio_gds_unaligned_write", 1, 6, I(fd), I(8192), I(904), I(4096), I(904), I(0));

	/* one that fails in the module and goes by the CPU */
	atomic_store(&fake.io_error, EIO);
	atomic_store(&fake.io_failures, 1);
	assert_int_equal(cuFileRead(fh, p, 4096, 0, 0), 4096);
	seen("cufio_px_io_retry", 1, 5, I(fd), I(0), I(4096), I(-EIO), I(0));
	seen("cufio_gds_read", 1, 6, I(fd), I(0), I(4096), I(0), I(-EIO), I(0));
	seen("cufio_px_read", 1, 6, I(fd), I(0), I(4096), I(0), I(4096), I(0));
	OK(cuFileBufDeregister(p));
	cuFileHandleDeregister(fh);
	close(fd);
	cuMemFree((uintptr_t)p);
}

static void t_bounce(void **state)
{
	char *p = gpu_alloc(3 * MIB), host[512];
	CUfileHandle_t fh;
	int fd;

	/* alone, in pieces of a quarter: no thread of ours may meet a breakpoint */
	fake_configure("{\"execution\": {\"parallel_io\": false}, "
		       "\"properties\": {\"force_compat_mode\": true}}");
	fh = fake_register(fake_file("f", 3 * MIB, 1), O_RDWR, &fd);
	assert_int_equal(cuFileRead(fh, p, 2 * MIB, 4096, 100), 2 * MIB);
	seen("cufio_px_read", 1, 6, I(fd), I(4096), I(2 * MIB), I(100), I(2 * MIB), I(0));
	seen("cufio-internal-read-bb", 4, 4, I(fd), I(4096 + 3 * MIB / 2), I(MIB / 2), I(MIB / 2));
	seen("cufio-internal-bb-done", 1, 4, I(fd), I(4096), I(2 * MIB), I(0));
	/* up to the end of the file: asked for and got */
	assert_int_equal(cuFileRead(fh, p, MIB, 3 * MIB - 10, 0), 10);
	seen("cufio_px_read", 1, 6, I(fd), I(3 * MIB - 10), I(10), I(0), I(10), I(0));
	assert_int_equal(cuFileWrite(fh, p, 4096, 0, 0), 4096);
	seen("cufio-internal-write-bb", 1, 4, I(fd), I(0), I(4096), I(0));
	seen("cufio_px_write", 1, 6, I(fd), I(0), I(4096), I(0), I(4096), I(0));
	assert_int_equal(hits("cufio_gds_unaligned_write"), 0);
	/* host memory: no GPU */
	assert_int_equal(cuFileRead(fh, host, sizeof(host), 5, 0), sizeof(host));
	seen("cufio_px_read", 1, 6, I(fd), I(5), I(sizeof(host)), I(0), I(sizeof(host)), I(-1));
	cuFileHandleDeregister(fh);
	close(fd);
	cuMemFree((uintptr_t)p);
}

/* A file that can only be had with O_DIRECT: a part of a block is read, changed, written. */
static int only_direct(const char *path, int flags)
{
	return !strncmp(path, "/proc/self/fd/", 14) && !(flags & O_DIRECT) ?
		       -EACCES : os_real.open(path, flags);
}

static void t_patch(void **state)
{
	char *p = gpu_alloc(4096);
	struct os_ops mine = *os;
	const struct os_ops *old = os;
	CUfileHandle_t fh;
	int fd;

	fake_configure("{\"properties\": {\"force_compat_mode\": true}}");
	mine.open = only_direct;
	os = &mine;
	fh = fake_register(fake_file("f", MIB, 1), O_RDWR | O_DIRECT, &fd);
	assert_int_equal(cuFileWrite(fh, p, 100, 4096 + 50, 0), 100);
	assert_int_equal(hits("cufile-internal-rmw"), 1);
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileDriverClose().err, 0);
	os = old;
	close(fd);
	cuMemFree((uintptr_t)p);
}

static void t_async(void **state)
{
	char *p = gpu_alloc(MIB);
	size_t size = 65536;
	off_t off = 4096, zero = 512;
	ssize_t done = 0;
	CUfileHandle_t fh;
	CUstream s;
	int fd;

	fh = fake_register(fake_file("f", MIB, 1), O_RDWR | O_DIRECT, &fd);
	assert_int_equal(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
	only("_async");
	OK(cuFileReadAsync(fh, p, &size, &off, &zero, &done, s));
	seen("cufio_gds_read_async", 1, 6, I(fd), I(4096), I(65536), I(512), I(0), I(0));
	assert_int_equal(cuStreamSynchronize(s), 0);
	OK(cuFileWriteAsync(fh, p, &size, &off, &zero, &done, s));
	seen("cufio_gds_write_async", 1, 6, I(fd), I(4096), I(65536), I(512), I(0), I(0));
	assert_int_equal(cuStreamSynchronize(s), 0);
	assert_int_equal(done, 65536);
	only(NULL);
	assert_int_equal(cuStreamDestroy(s), 0);
	cuFileHandleDeregister(fh);
	close(fd);
	cuMemFree((uintptr_t)p);
}

static ssize_t user_read(const void *handle, char *buf, size_t size, loff_t off,
			 const cufileRDMAInfo_t *rdma)
{
	memset(buf, 1, size);
	return size;
}

static ssize_t user_write(const void *handle, const char *buf, size_t size, loff_t off,
			  const cufileRDMAInfo_t *rdma)
{
	return -EROFS;
}

static void t_user_fs(void **state)
{
	CUfileFSOps_t ops = { .read = user_read, .write = user_write };
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS, .fs_ops = &ops };
	char host[1000];
	CUfileHandle_t fh;

	OK(cuFileHandleRegister(&fh, &d));
	assert_int_equal(cuFileRead(fh, host, 1000, 77, 0), 1000);
	seen("cufio_rdma_read", 1, 3, I(77), I(1000), I(1000));
	seen("cufio_px_read", 1, 6, I(-1), I(77), I(1000), I(0), I(1000), I(-1));
	assert_int_equal(cuFileWrite(fh, host, 1000, 78, 0), -1);
	seen("cufio_rdma_write", 1, 3, I(78), I(1000), I(-EROFS));
	cuFileHandleDeregister(fh);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(t_all_there), T(t_direct), T(t_bounce), T(t_patch), T(t_async), T(t_user_fs),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}

#else

static void t_left_out(void **state)
{
	print_message("no probes here: not x86-64, or built without sys/sdt.h (systemtap-sdt-dev)\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(t_left_out) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
