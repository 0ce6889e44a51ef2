// SPDX-License-Identifier: MIT
/*
 * t_gdscp.c - gdscp on a cuFile of this test, which is slow, short, wrong or out of room when it
 * is told to. Each run is a process. Fails when a target is under its name and not whole, when a
 * temporary file stays behind anything but SIGKILL, when an old target is lost by a copy that
 * failed, and when bytes that were wrong in GPU memory are said to match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

#include "copy.h"
#include "run.h"
#include "sys.h"

#define KIB 1024
#define MIB (1024 * 1024)

/* -- the cuFile of this test; set before a process is started -- */

static struct {
	int read_err, write_err;	/* an errno or CUfileOpError; 0: none */
	uint64_t read_at, write_at;	/* of the request that has this offset in it */
	size_t most;			/* bytes of one request; 0: all */
	uint64_t flip;			/* this byte is wrong in GPU memory; 0: none */
	uint64_t shrink, touch;		/* a request from here on does that to the source first */
	unsigned int delay_us;
	bool gate;			/* reads wait until there is a file "go" */
	bool half_direct;
	int register_err;
	int ftruncate_err, fallocate_err, fsync_err, rename_err;
} f;

static __thread struct ogds_report last;

static void report(ssize_t n)
{
	memset(&last, 0, sizeof(last));
	last.struct_size = sizeof(last);
	last.bytes[OGDS_ROUTE_NVFS] = n;
	last.whole_bytes = n;
	last.whole_direct = f.half_direct ? n / 2 : n;
	last.reason = f.half_direct ? 1 : 0;
}

static ssize_t refuse(int err)
{
	report(0);
	if (err > CUFILEOP_BASE_ERR)
		return -err;
	errno = err;
	return -1;
}

static size_t cut(size_t size)
{
	return f.most && f.most < size ? f.most : size;
}

static const char *source;
static const char *at(const char *name);
static bool there(const char *path);

ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t off, off_t buf_off)
{
	CUdeviceptr to = (CUdeviceptr)(uintptr_t)base + buf_off;
	int fd = (int)(intptr_t)fh;
	char *host;
	ssize_t n;

	size = cut(size);
	usleep(f.delay_us);
	while (f.gate && !there(at("go")))
		usleep(1000);
	if (f.read_err && f.read_at < off + size)
		return refuse(f.read_err);
	if (f.shrink && f.shrink < off + size && truncate(source, f.shrink))
		return refuse(errno);
	if (f.touch && f.touch < off + size) {
		int w = open(source, O_WRONLY);

		if (w < 0 || pwrite(w, "x", 1, 0) != 1)
			return refuse(EIO);
		close(w);
	}
	host = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	n = pread(fd, host, (size + 4095) / 4096 * 4096, off);
	n = n > (ssize_t)size ? (ssize_t)size : n;
	if (f.flip && (uint64_t)off <= f.flip && f.flip < (uint64_t)off + size)
		host[f.flip - off] ^= 1;
	if (n > 0 && cuMemcpyHtoD(to, host, n))
		n = refuse(EIO);
	free(host);
	report(n);
	return n;
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t off, off_t buf_off)
{
	CUdeviceptr from = (CUdeviceptr)(uintptr_t)base + buf_off;
	int fd = (int)(intptr_t)fh;
	char *host;
	ssize_t n;

	size = cut(size);
	usleep(f.delay_us);
	if (f.write_err && f.write_at < off + size) {
		if (f.write_err < 0)
			return 0;
		return refuse(f.write_err);
	}
	host = malloc(size);
	n = cuMemcpyDtoH(host, from, size) ? refuse(EIO) : pwrite(fd, host, size, off);
	free(host);
	report(n);
	return n;
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *d)
{
	CUfileError_t e = { .err = f.register_err };
	int fd = d->handle.fd;

	/* parts of blocks are not what this one is about */
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT);
	*fh = (void *)(intptr_t)fd;
	return e;
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
}

CUfileError_t cuFileBufRegister(const void *base, size_t size, int flags)
{
	return (CUfileError_t){ 0 };
}

CUfileError_t cuFileBufDeregister(const void *base)
{
	return (CUfileError_t){ 0 };
}

int ogds_last_io(struct ogds_report *r)
{
	*r = last;
	return 0;
}

const char *ogds_route_name(uint32_t route)
{
	return route == OGDS_ROUTE_NVFS ? "nvfs" : "other";
}

const char *ogds_reason_id(uint32_t reason) { return "R-TEST"; }
const char *ogds_reason_text(uint32_t reason) { return "it is a test"; }
const char *ogds_reason_remedy(uint32_t reason) { return "go on"; }

/* -- system calls -- */

static int fails(int err)
{
	errno = err;
	return -1;
}

static int t_ftruncate(int fd, off_t size)
{
	return f.ftruncate_err ? fails(f.ftruncate_err) : ftruncate(fd, size);
}

static int t_fallocate(int fd, int mode, off_t off, off_t len)
{
	return f.fallocate_err ? fails(f.fallocate_err) : fallocate(fd, mode, off, len);
}

static int t_fsync(int fd)
{
	return f.fsync_err ? fails(f.fsync_err) : 0;
}

static int t_renameat2(int a, const char *from, int b, const char *to, unsigned int flags)
{
	return f.rename_err ? fails(f.rename_err) : renameat2(a, from, b, to, flags);
}

static const struct gdscp_sys sys = { t_ftruncate, t_fallocate, t_fsync, t_renameat2 };

/* -- the folder of a test -- */

static char dir[64], src[96], dst[96];

static int setup(void **state)
{
	memset(&f, 0, sizeof(f));
	gdscp_sys = &sys;
	snprintf(dir, sizeof(dir), "%s/t_gdscp.XXXXXX",
		 getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40 ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	snprintf(src, sizeof(src), "%s/src", dir);
	snprintf(dst, sizeof(dst), "%s/dst", dir);
	source = src;
	return 0;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	return nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name)
{
	static char path[8][160];
	static unsigned int n;

	n = (n + 1) % 8;
	snprintf(path[n], sizeof(path[n]), "%s/%s", dir, name);
	return path[n];
}

/* `size` bytes that each place tells apart. */
static void put(const char *path, size_t size, uint64_t seed)
{
	uint64_t *p = malloc(size + 8);
	FILE *file = fopen(path, "w");
	size_t i;

	assert_non_null(file);
	for (i = 0; i < size / 8 + 1; i++)
		p[i] = (i + seed) * 0x9e3779b97f4a7c15;
	assert_int_equal(fwrite(p, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	free(p);
}

static char *get(const char *path, size_t *size)
{
	struct stat st;
	FILE *file = fopen(path, "r");
	char *p;

	if (!file)
		return NULL;
	assert_int_equal(fstat(fileno(file), &st), 0);
	p = calloc(1, st.st_size + 1);
	*size = fread(p, 1, st.st_size, file);
	fclose(file);
	return p;
}

static bool same(const char *a, const char *b)
{
	size_t n = 0, m = 0;
	char *p = get(a, &n), *q = get(b, &m);
	bool is = p && q && n == m && !memcmp(p, q, n);

	free(p);
	free(q);
	return is;
}

static bool there(const char *path)
{
	return !access(path, F_OK);
}

/* Files that are not ours: what a copy left. */
static unsigned int left_behind(void)
{
	struct dirent *d;
	unsigned int n = 0;
	DIR *of = opendir(dir);

	assert_non_null(of);
	while ((d = readdir(of)))
		n += d->d_name[0] == '.' && strstr(d->d_name, ".gdscp-") != NULL;
	closedir(of);
	return n;
}

/* -- one run -- */

static char said[16384];

static pid_t start(const char *const *args)
{
	char *argv[16] = { (char *)"gdscp" };
	int argc = 1, fd;
	pid_t pid;

	while (*args)
		argv[argc++] = (char *)*args++;
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	fd = open(at("said"), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
	dup2(fd, 1);
	dup2(fd, 2);
	alarm(60);
	exit(gdscp_run(argc, argv));
}

static int end(pid_t pid)
{
	size_t n = 0;
	char *text;
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	text = get(at("said"), &n);
	snprintf(said, sizeof(said), "%s", text ? text : "");
	free(text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define run(...) end(start((const char *const[]){ __VA_ARGS__, NULL }))

static void says(const char *text)
{
	if (!strstr(said, text))
		fail_msg("no '%s' in: %s", text, said);
}

/* -- digests -- */

static const char *digest(const void *data, size_t len, size_t step)
{
	static char text[2 * MD5_BYTES + 1];
	uint8_t sum[MD5_BYTES];
	struct md5 m;
	size_t i, n;

	md5_begin(&m);
	for (i = 0; i < len; i += n) {
		n = step && step < len - i ? step : len - i;
		md5_add(&m, (const char *)data + i, n);
	}
	md5_end(&m, sum);
	md5_text(sum, text);
	return text;
}

/* Those of the RFC; then that it does not matter how it is fed, around the ends of blocks. */
static void t_md5(void **state)
{
	char data[300], whole[33];
	size_t len;

	assert_string_equal(digest("", 0, 0), "d41d8cd98f00b204e9800998ecf8427e");
	assert_string_equal(digest("abc", 3, 0), "900150983cd24fb0d6963f7d28e17f72");
	assert_string_equal(digest("message digest", 14, 0), "f96b697d7cb7938d525a2f31aaf161d0");
	assert_string_equal(digest("12345678901234567890123456789012345678901234567890123456789012345678901234567890", 80, 0),
			    "57edf4a22be3c955ac49da2e2107b67a");
	memset(data, 0xa5, sizeof(data));
	for (len = 0; len < sizeof(data); len++) {
		snprintf(whole, sizeof(whole), "%s", digest(data, len, 0));
		assert_string_equal(digest(data, len, 1), whole);
		assert_string_equal(digest(data, len, 63), whole);
	}
}

/* -- copies -- */

static void t_sizes(void **state)
{
	static const size_t size[] = { 0, 1, 4095, 4096, 4097, MIB, 6 * MIB + 77 };
	char line[128], *text;
	size_t i, n;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		put(src, size[i], i);
		/* requests that do a part of what is asked */
		f.most = i % 2 ? 300000 : 0;
		assert_int_equal(run("--slots", "2", "--slot-mib", "1", "-f", src, dst, "0"), 0);
		assert_true(same(src, dst));
		text = get(src, &n);
		snprintf(line, sizeof(line), "gpu md5:%s\n", digest(text, n, 0));
		says(line);
		memcpy(line, "cpu", 3);
		says(line);
		says("md5sum Match!!\n");
		assert_int_equal(strncmp(said, "gpu md5:", 8), 0);
		free(text);
	}
	assert_int_equal(run("--no-checksum", "-f", src, dst), 0);
	assert_true(same(src, dst));
	assert_null(strstr(said, "md5"));
	assert_int_equal(run("--verify", "-f", src, dst), 0);
	says("target md5:");
	assert_int_equal(left_behind(), 0);
}

/* Holes stay, of whichever length and at the end; bytes stay where they are. */
static void t_sparse(void **state)
{
	static const off_t place[] = { 64 * KIB, MIB + 4096, 3 * (off_t)MIB };
	struct stat a, b;
	size_t i;
	int fd;

	fd = open(src, O_CREAT | O_RDWR, 0644);
	assert_int_equal(ftruncate(fd, 4 * (off_t)MIB + 5), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(pwrite(fd, "here", 4, place[i]), 4);
	fsync(fd);
	close(fd);
	assert_int_equal(run("--slots", "3", "--slot-mib", "1", src, dst), 0);
	assert_true(same(src, dst));
	assert_int_equal(stat(src, &a), 0);
	assert_int_equal(stat(dst, &b), 0);
	assert_true(a.st_blocks < 4 * MIB / 512 / 2);
	assert_true(b.st_blocks <= a.st_blocks);
	/* as large as a file can be here, with a byte behind 4 GiB */
	assert_int_equal(truncate(src, (off_t)1 << 40), 0);
	fd = open(src, O_RDWR);
	assert_int_equal(pwrite(fd, "far", 3, ((off_t)1 << 39) + 3), 3);
	close(fd);
	assert_int_equal(run("--no-checksum", "-f", src, dst), 0);
	assert_int_equal(stat(dst, &b), 0);
	assert_int_equal(b.st_size, (off_t)1 << 40);
	fd = open(dst, O_RDONLY);
	assert_int_equal(pread(fd, said, 3, ((off_t)1 << 39) + 3), 3);
	assert_memory_equal(said, "far", 3);
	close(fd);
}

static void t_preserve(void **state)
{
	const struct timespec times[2] = { { 1000000000, 5 }, { 1111111111, 123456789 } };
	mode_t mask = umask(027);
	struct stat st;

	put(src, 5000, 1);
	assert_int_equal(chmod(src, 0675), 0);
	assert_int_equal(utimensat(AT_FDCWD, src, times, 0), 0);
	assert_int_equal(run(src, dst), 0);
	assert_int_equal(stat(dst, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0650);
	assert_true(st.st_mtim.tv_sec > 1500000000);
	assert_int_equal(run("-p", "-f", src, dst), 0);
	assert_int_equal(stat(dst, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0675);
	assert_int_equal(st.st_mtim.tv_sec, 1111111111);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	/* what is replaced keeps its mode */
	assert_int_equal(chmod(dst, 0604), 0);
	assert_int_equal(run("-f", src, dst), 0);
	assert_int_equal(stat(dst, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	umask(mask);
}

/* Several into a folder; through a link, which stays one. */
static void t_folders(void **state)
{
	struct stat st;

	put(src, 5000, 1);
	put(at("b"), 6000, 2);
	assert_int_equal(mkdir(at("to"), 0755), 0);
	assert_int_equal(run(src, at("b"), at("to"), "0"), 0);
	assert_true(same(src, at("to/src")));
	assert_true(same(at("b"), at("to/b")));
	/* one of them does not go: the others do */
	assert_int_equal(run("-f", at("none"), src, at("to/")), GDSCP_FAILED);
	says("none: No such file");
	assert_int_equal(symlink("to/b", at("link")), 0);
	assert_int_equal(run("-f", src, at("link")), 0);
	assert_int_equal(lstat(at("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_true(same(src, at("to/b")));
}

static void t_refused(void **state)
{
	put(src, 5000, 1);
	put(dst, 100, 2);
	assert_int_equal(run(src, dst), GDSCP_FAILED);
	says("exists: give -f");
	assert_int_equal(run("-f", src, src), GDSCP_FAILED);
	says("are the same file");
	assert_int_equal(link(src, at("hard")), 0);
	assert_int_equal(run("-f", src, at("hard")), GDSCP_FAILED);
	says("are the same file");
	assert_int_equal(run(src, at("no/such")), GDSCP_FAILED);
	says("No such file or directory: make it");
	assert_int_equal(run(src, at("no/")), GDSCP_FAILED);
	says("is no folder");
	assert_int_equal(run(src, dst, at("no")), GDSCP_FAILED);
	says("several files go into one alone");
	assert_int_equal(run(dir, at("x")), GDSCP_FAILED);
	says("is a folder: only regular files");
	assert_int_equal(mkdir(at("d"), 0755), 0);
	assert_int_equal(mkdir(at("d/src"), 0755), 0);
	assert_int_equal(run("-f", src, at("d")), GDSCP_FAILED);
	says("is a folder: a file does not replace it");
	assert_int_equal(mkdir(at("e"), 0755), 0);
	put(at("e/src"), 10, 1);
	assert_int_equal(run("-f", src, at("e/src"), at("d")), GDSCP_FAILED);
	says("would both be");
	assert_int_equal(mkfifo(at("pipe"), 0644), 0);
	assert_int_equal(run("-f", src, at("pipe")), GDSCP_FAILED);
	says("no regular file: only such a one is replaced");
	assert_int_equal(run(at("pipe"), at("x")), GDSCP_FAILED);
	says("no regular file: only regular files");
	assert_int_equal(symlink("nowhere", at("dangling")), 0);
	assert_int_equal(run("-f", src, at("dangling")), GDSCP_FAILED);
	says("leads nowhere");
	assert_int_equal(run(src, at("y"), "99"), GDSCP_FAILED);
	says("GPU 99: there ");
	assert_int_equal(run(src), GDSCP_USAGE);
	says("no target");
	assert_int_equal(run("-d", "0", src, dst, "0"), GDSCP_USAGE);
	says("both name a GPU");
	assert_int_equal(run("--slots", "1", src, dst), GDSCP_USAGE);
	says("--slots 1: it takes 2 to 64");
	assert_int_equal(run("--what", src, dst), GDSCP_USAGE);
	says("--what is no option");
	assert_int_equal(run("--verify", "--no-checksum", src, dst), GDSCP_USAGE);
	assert_false(there(at("y")));
	assert_int_equal(left_behind(), 0);
}

static void t_direct(void **state)
{
	put(src, MIB, 1);
	assert_int_equal(run("--require-direct", src, dst), 0);
	says("Read: nvfs: 1048576 whole_blocks: 1048576 direct: 1048576");
	says("Written: nvfs: 1048576 whole_blocks: 1048576 direct: 1048576");
	f.half_direct = true;
	assert_int_equal(run("-f", src, dst), 0);
	says("Reason: R-TEST: it is a test; go on");
	assert_int_equal(run("-f", "--require-direct", src, dst), GDSCP_NOT_DIRECT);
	assert_true(same(src, dst));
}

/* -- what goes wrong -- */

/* Not there, or (each second time) where there was one, as it was; nothing else. */
static void check_failed(const char *why)
{
	static bool old;

	old = !old;
	put(at("old"), 1234, 9);
	if (old)
		put(dst, 1234, 9);
	assert_int_equal(run("--slots", "2", "--slot-mib", "1", "-f", src, dst), GDSCP_FAILED);
	says(why);
	assert_int_equal(there(dst), old);
	assert_true(!old || same(dst, at("old")));
	assert_int_equal(left_behind(), 0);
	if (old)
		assert_int_equal(unlink(dst), 0);
	memset(&f, 0, sizeof(f));
	/* some of these have changed it */
	put(src, MIB + 77, 3);
}

static void t_faults(void **state)
{
	static const uint64_t place[] = { 0, MIB / 2, MIB + 76 };
	size_t i;

	put(src, MIB + 77, 3);
	for (i = 0; i < 3; i++) {
		f.read_err = EIO;
		f.read_at = place[i];
		check_failed("Input/output error");
		f.write_err = ENOSPC;
		f.write_at = place[i];
		check_failed("No space left on device");
		/* the other way of these two */
		f.fsync_err = EIO;
		check_failed("fsync: Input/output error");
	}
	f.read_err = CU_FILE_INTERNAL_ERROR;
	check_failed("internal error");
	/* a write that does nothing has no errno */
	f.write_err = -1;
	check_failed("No space left on device");
	f.most = 70000;
	f.write_err = EIO;
	f.write_at = MIB / 2;
	check_failed("Input/output error");
	f.ftruncate_err = EFBIG;
	check_failed("File too large");
	f.fallocate_err = ENOSPC;
	check_failed("no room for");
	f.rename_err = EIO;
	check_failed("rename: Input/output error");
	f.register_err = CU_FILE_IO_NOT_SUPPORTED;
	check_failed("cuFileHandleRegister: GPUDirect Storage not supported on current file");
	/* what no room in advance can be had for is copied all the same */
	f.fallocate_err = EOPNOTSUPP;
	assert_int_equal(run(src, dst), 0);
	assert_true(same(src, dst));
}

static void t_wrong_bytes(void **state)
{
	put(src, MIB + 77, 3);
	f.flip = MIB / 2 + 17;
	check_failed("md5sum Mismatch!!");
	f.flip = MIB + 76;
	check_failed("what was in GPU memory is not what the CPU reads");
}

static void t_changes(void **state)
{
	put(src, MIB + 77, 3);
	f.shrink = MIB / 2;
	check_failed("become shorter");
	f.touch = MIB / 2;
	check_failed("has changed while it was copied");
	/* without digests, too */
	f.touch = MIB / 2;
	assert_int_equal(run("--no-checksum", src, dst), GDSCP_FAILED);
	says("has changed while it was copied");
	assert_false(there(dst));
}

/* Who has come first stays, and a temporary file in use is nobody's leftover. */
static void t_at_once(void **state)
{
	pid_t slow, quick;
	int a, b;

	put(src, 4 * MIB, 1);
	put(at("other"), 5000, 2);
	f.gate = true;
	slow = start((const char *const[]){ "--slot-mib", "1", src, dst, NULL });
	while (!left_behind())
		usleep(1000);
	f.gate = false;
	assert_int_equal(run(at("other"), at("third")), 0);
	assert_null(strstr(said, "removed"));
	put(at("mine"), 10, 3);
	assert_int_equal(run(at("mine"), dst), 0);
	put(at("go"), 1, 0);
	assert_int_equal(end(slow), GDSCP_FAILED);
	says("has come meanwhile: give -f");
	assert_true(same(at("mine"), dst));
	/* two that look at the same moment: one of them */
	unlink(dst);
	unlink(at("go"));
	f.gate = true;
	slow = start((const char *const[]){ src, dst, NULL });
	quick = start((const char *const[]){ src, dst, NULL });
	while (left_behind() < 2)
		usleep(1000);
	put(at("go"), 1, 0);
	a = end(slow);
	b = end(quick);
	assert_int_equal(a + b, GDSCP_FAILED);
	assert_true(same(src, dst));
	assert_int_equal(left_behind(), 0);
}

/* Any signal at any time: the target is whole or not there; only SIGKILL leaves anything else. */
static void t_signals(void **state)
{
	static const int sig[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGKILL };
	const char *const args[] = { "--slot-mib", "1", "--slots", "2", src, dst, NULL };
	unsigned int round, stopped = 0, done = 0, kept = 0, before, usec;
	struct timespec a, b;
	pid_t pid;
	int status, s;

	srandom(1);
	put(src, MIB + 5, 1);
	f.delay_us = 10000;
	/* some come before its start, some behind its end */
	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(end(start(args)), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	usec = (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000;
	assert_int_equal(unlink(dst), 0);
	for (round = 0; round < 20; round++) {
		before = left_behind();
		s = sig[round % 5];
		pid = start(args);
		usleep(random() % (usec * 2));
		kill(pid, s);
		/* and once more, before it is done with the first */
		if (round % 3 == 0)
			kill(pid, s);
		status = end(pid);
		/* before it could catch it, it is the default that ends it */
		assert_true(status == 0 || status == 128 + s);
		if (there(dst)) {
			assert_true(same(src, dst));
			assert_int_equal(unlink(dst), 0);
			done++;
		} else {
			assert_int_not_equal(status, 0);
			stopped++;
		}
		kept += left_behind() > before;
		if (s != SIGKILL)
			assert_true(left_behind() <= before);
	}
	assert_true(stopped > 0);
	/* what was killed in its midst is found and goes */
	f.delay_us = 0;
	assert_int_equal(run(src, dst), 0);
	assert_int_equal(left_behind(), 0);
	assert_int_equal(unlink(dst), 0);
	f.gate = true;
	pid = start((const char *const[]){ src, dst, NULL });
	while (!left_behind())
		usleep(1000);
	kill(pid, SIGKILL);
	assert_int_equal(end(pid), 128 + SIGKILL);
	assert_false(there(dst));
	assert_int_equal(left_behind(), 1);
	f.gate = false;
	put(at(".not.gdscp-x"), 1, 1);
	put(at(".not.gdscp-ABCDEF"), 1, 1);
	assert_int_equal(run(src, dst), 0);
	says("which a gdscp that was killed has left");
	assert_true(same(src, dst));
	/* these are somebody's */
	assert_int_equal(left_behind(), 2);
	print_message("%u were stopped, %u were done, %u left a file\n", stopped, done, kept);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_md5),     T(t_sizes),	T(t_sparse),  T(t_preserve), T(t_folders),
		T(t_refused), T(t_direct),	T(t_faults),  T(t_wrong_bytes), T(t_changes),
		T(t_at_once), T(t_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
