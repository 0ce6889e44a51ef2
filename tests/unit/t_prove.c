// SPDX-License-Identifier: MIT
/*
 * t_prove.c - gdscheck --prove: what a request proves, by a made-up library that does it wrong in
 * every way, and a whole run on the real library with host memory for a GPU. Fails when "direct"
 * is said of bytes that nobody saw, when wrong or stale bytes pass, when a file that was there is
 * touched or one of ours stays, or when a way that did not run has no reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prove.h"
#include "prove_look.h"
#include "tree.h"

/* ---- a library and a GPU that are not there ---- */

enum lie {
	HONEST,
	READS_NOTHING,		/* says that it read */
	READS_TOO_MUCH,		/* a byte behind the request, too */
	READS_ELSEWHERE,	/* another block of the file */
	READS_SHORT,
	WRITES_NOTHING,
	WRITES_NEIGHBOUR,	/* a byte of the file behind the request, too */
	FAILS,
	FORGETS,		/* GPU memory that does not keep what it is given */
};

static struct {
	enum lie lie;
	int fd;
	int open_code, pin_code;
	bool by_bounce, unseen;
	struct ogds_report last;
} fake;

static CUfileError_t code(int err)
{
	return (CUfileError_t){ .err = (CUfileOpError)err };
}

static CUfileError_t f_open(void)
{
	return code(fake.open_code);
}

static CUfileError_t f_close(void)
{
	return code(0);
}

static CUfileError_t f_file(CUfileHandle_t *fh, CUfileDescr_t *d)
{
	fake.fd = d->handle.fd;
	*fh = &fake;
	return code(0);
}

static void f_unfile(CUfileHandle_t fh)
{
}

static CUfileError_t f_buf(const void *p, size_t n, int flags)
{
	return code(fake.pin_code);
}

static CUfileError_t f_unbuf(const void *p)
{
	return code(0);
}

static void told(size_t size, off_t off)
{
	uint64_t first = (off + 4095) / 4096, last = (off + size) / 4096;

	memset(&fake.last, 0, sizeof(fake.last));
	fake.last.whole_bytes = (last - first) * 4096;
	fake.last.edge_bytes = size - fake.last.whole_bytes;
	fake.last.bytes[OGDS_ROUTE_BOUNCE] = size;
	if (fake.by_bounce) {
		fake.last.reason = 7;
		return;
	}
	fake.last.bytes[OGDS_ROUTE_NVFS] = fake.last.whole_direct = fake.last.whole_bytes;
	fake.last.bytes[OGDS_ROUTE_BOUNCE] = fake.last.edge_bytes;
	fake.last.witnessed = fake.unseen ? 0 : fake.last.whole_bytes;
}

static ssize_t f_read(CUfileHandle_t fh, void *base, size_t size, off_t off, off_t buf_off)
{
	char *to = (char *)base + buf_off;

	told(size, off);
	if (fake.lie == FAILS) {
		errno = EIO;
		return -1;
	}
	if (fake.lie == READS_NOTHING)
		return (ssize_t)size;
	if (fake.lie == READS_ELSEWHERE)
		off += 4096;
	if (pread(fake.fd, to, size, off) != (ssize_t)size)
		return -1;
	if (fake.lie == READS_TOO_MUCH)
		to[size] ^= 1;
	return fake.lie == READS_SHORT ? (ssize_t)size - 1 : (ssize_t)size;
}

static ssize_t f_write(CUfileHandle_t fh, const void *base, size_t size, off_t off, off_t buf_off)
{
	told(size, off);
	if (fake.lie == WRITES_NOTHING)
		return (ssize_t)size;
	if (pwrite(fake.fd, (const char *)base + buf_off, size, off) != (ssize_t)size)
		return -1;
	if (fake.lie == WRITES_NEIGHBOUR && pwrite(fake.fd, "x", 1, off + (off_t)size) != 1)
		return -1;
	return (ssize_t)size;
}

static int f_last(struct ogds_report *r)
{
	*r = fake.last;
	return 0;
}

static const char *f_id(uint32_t reason)
{
	return "R-SEVEN";
}

static CUresult f_init(unsigned int flags)
{
	return CUDA_SUCCESS;
}

static CUresult f_count(int *n)
{
	*n = 1;
	return CUDA_SUCCESS;
}

static CUresult f_device(CUdevice *d, int i)
{
	*d = i;
	return CUDA_SUCCESS;
}

static CUresult f_pci(char *out, int len, CUdevice d)
{
	snprintf(out, (size_t)len, "0000:01:00.0");
	return CUDA_SUCCESS;
}

static CUresult f_retain(CUcontext *c, CUdevice d)
{
	*c = NULL;
	return CUDA_SUCCESS;
}

static CUresult f_current(CUcontext c)
{
	return CUDA_SUCCESS;
}

static CUresult f_sync(void)
{
	return CUDA_SUCCESS;
}

static CUresult f_alloc(CUdeviceptr *p, size_t n)
{
	*p = (uintptr_t)malloc(n);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult f_free(CUdeviceptr p)
{
	free((void *)(uintptr_t)p);
	return CUDA_SUCCESS;
}

static CUresult f_fill(CUdeviceptr p, unsigned char c, size_t n)
{
	memset((void *)(uintptr_t)p, fake.lie == FORGETS ? 0 : c, n);
	return CUDA_SUCCESS;
}

static CUresult f_to(CUdeviceptr p, const void *from, size_t n)
{
	memcpy((void *)(uintptr_t)p, from, n);
	return CUDA_SUCCESS;
}

static CUresult f_from(void *to, CUdeviceptr p, size_t n)
{
	memcpy(to, (void *)(uintptr_t)p, n);
	return CUDA_SUCCESS;
}

static const struct prove_api api = {
	.open = f_open, .close = f_close, .file = f_file, .unfile = f_unfile, .buf = f_buf,
	.unbuf = f_unbuf, .read = f_read, .write = f_write, .last_io = f_last, .reason_id = f_id,
	.reason_text = f_id, .reason_remedy = f_id, .init = f_init, .count = f_count,
	.device = f_device, .pci = f_pci, .retain = f_retain, .current = f_current,
	.sync = f_sync, .alloc = f_alloc, .free = f_free, .fill = f_fill, .to_gpu = f_to,
	.from_gpu = f_from,
};

/*
 * The real ones, which a run then finds by their names: a linker leaves out what nobody names,
 * and a sanitizer's dlopen() does not look where the program was built.
 */
static const void *volatile real[] = { (const void *)cuInit, (const void *)cuFileDriverOpen };

static char root[] = "/dev/shm/t_prove.XXXXXX";	/* the tests sync a lot */

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	return tree_remove(root) ? 0 : -1;
}

static struct prove_run run;

static void work(const struct prove_api *with, enum lie lie)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/f", root);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	fake.lie = lie;
	memset(&run, 0, sizeof(run));
	run.name = "configured";
	run.writes = run.registered = true;
	prove_work(with, fd, 77, &run);
	close(fd);
}

/* Verdicts of the reads and the writes */
static void all(enum prove_verdict reads, enum prove_verdict writes)
{
	unsigned int i;

	for (i = 0; i < PROVE_ROWS; i++) {
		assert_int_equal(run.row[i].op, i % 2 ? OGDS_OP_WRITE : OGDS_OP_READ);
		if (prove_judge(&run.row[i]) != (i % 2 ? writes : reads))
			fail_msg("row %u is %d: %s", i, prove_judge(&run.row[i]), run.row[i].wrong);
	}
}

static void t_direct(void **state)
{
	work(&api, HONEST);
	all(PROVE_DIRECT, PROVE_DIRECT);
	assert_string_equal(run.failed, "");
	assert_string_equal(run.gpu, "0000:01:00.0");
	assert_int_equal(prove_exit(&run, &run, 1), PROVE_EXIT_DIRECT);
	assert_null(prove_first_not_direct(&run));
	/* the unaligned one has edges, which no drive moves */
	assert_int_equal(run.row[4].whole, 94208);
	assert_int_equal(run.row[4].edge, 100000 - 94208);
}

/* The library says direct and the module did not see it. */
static void t_unseen(void **state)
{
	fake.unseen = true;
	work(&api, HONEST);
	all(PROVE_UNSEEN, PROVE_UNSEEN);
	assert_int_equal(prove_exit(&run, &run, 1), PROVE_EXIT_INDIRECT);
}

static void t_indirect(void **state)
{
	struct prove_api other = api;

	fake.by_bounce = true;
	work(&api, HONEST);
	all(PROVE_INDIRECT, PROVE_INDIRECT);
	assert_string_equal(run.row[0].why.id, "R-SEVEN");
	assert_int_equal(prove_exit(&run, &run, 1), PROVE_EXIT_INDIRECT);
	/* a library that tells nothing proves nothing */
	fake.by_bounce = false;
	other.last_io = NULL;
	work(&other, HONEST);
	all(PROVE_INDIRECT, PROVE_INDIRECT);
}

/* One byte that nobody saw is enough, and so is a sector too few. */
static void t_judge(void **state)
{
	struct prove_row r = { .made = true, .result = 100000, .size = 100000, .right = true,
			       .told = true, .whole = 94208, .whole_direct = 94208,
			       .witnessed = 94208 };

	r.bytes[OGDS_ROUTE_NVFS] = 94208;
	r.bytes[OGDS_ROUTE_BOUNCE] = 5792;
	assert_int_equal(prove_judge(&r), PROVE_DIRECT);
	r.witnessed -= 512;
	assert_int_equal(prove_judge(&r), PROVE_UNSEEN);
	r.witnessed += 1024;
	assert_int_equal(prove_judge(&r), PROVE_UNSEEN);
	/* a staged read takes its edges along, and they are seen as well */
	r.bytes[OGDS_ROUTE_NVFS] = r.bytes[OGDS_ROUTE_BOUNCE] = 0;
	r.bytes[OGDS_ROUTE_STAGED] = r.witnessed = 100000;
	assert_int_equal(prove_judge(&r), PROVE_DIRECT);
	r.witnessed = 94208;
	assert_int_equal(prove_judge(&r), PROVE_UNSEEN);
	r.witnessed = 100000;
	r.whole_direct -= 4096;
	assert_int_equal(prove_judge(&r), PROVE_INDIRECT);
	r.whole_direct += 4096;
	r.right = false;
	assert_int_equal(prove_judge(&r), PROVE_WRONG);
	r.result = -1;
	assert_int_equal(prove_judge(&r), PROVE_NOT_RUN);
}

static void t_wrong(void **state)
{
	work(&api, READS_NOTHING);
	all(PROVE_WRONG, PROVE_DIRECT);
	assert_non_null(strstr(run.row[0].wrong, "byte 65536 of the file is 0xa5"));
	assert_int_equal(prove_exit(&run, &run, 1), PROVE_EXIT_WRONG);
	work(&api, READS_TOO_MUCH);
	all(PROVE_WRONG, PROVE_DIRECT);
	assert_non_null(strstr(run.row[0].wrong, "beside the request"));
	work(&api, READS_ELSEWHERE);
	all(PROVE_WRONG, PROVE_DIRECT);
	work(&api, READS_SHORT);
	all(PROVE_WRONG, PROVE_DIRECT);
	assert_non_null(strstr(run.row[0].wrong, "65535 bytes moved, asked for 65536"));
	work(&api, WRITES_NOTHING);
	all(PROVE_DIRECT, PROVE_WRONG);
	work(&api, WRITES_NEIGHBOUR);
	all(PROVE_DIRECT, PROVE_WRONG);
	assert_non_null(strstr(run.row[1].wrong, "behind the write"));
	/* wrong data of any way counts, also when the configured one is right */
	{
		struct prove_run two[2] = { { .name = "configured" }, run };

		assert_int_equal(prove_exit(&two[0], two, 2), PROVE_EXIT_WRONG);
	}
}

static void t_fails(void **state)
{
	work(&api, FAILS);
	all(PROVE_NOT_RUN, PROVE_DIRECT);
	assert_int_equal(run.row[0].error, EIO);
	assert_int_equal(prove_exit(&run, &run, 1), PROVE_EXIT_NOT_RUN);
	work(&api, FORGETS);
	assert_non_null(strstr(run.failed, "does not keep"));
	assert_int_equal(prove_exit(&run, &run, 1), PROVE_EXIT_NOT_RUN);
	fake.open_code = CU_FILE_DRIVER_NOT_INITIALIZED;
	work(&api, HONEST);
	assert_non_null(strstr(run.failed, "cuFileDriverOpen: 5001"));
	fake.open_code = 0;
	/* memory that is not pinned goes another way */
	fake.pin_code = CU_FILE_GPU_MEMORY_PINNING_FAILED;
	work(&api, HONEST);
	assert_non_null(strstr(run.pin, "5036"));
	assert_string_equal(run.failed, "");
	all(PROVE_DIRECT, PROVE_DIRECT);
}

/* ---- what is looked at beside ---- */

static void t_changes(void **state)
{
	static const char before[] = "IO stats: Enabled\nReads\t\t\t\t: err=0 io_state_err=0\n"
				     "Bar1-map\t: n=3 ok=3 err=0 free=1\nActive Process: 1\n";
	static const char after[] = "IO stats: Enabled\nReads\t\t\t\t: err=2 io_state_err=0\n"
				    "Bar1-map\t: n=5 ok=4 err=1 free=1\nActive Process: 0\nnew: 7\n";
	struct prove_notes n = { .n = 0 };
	char got[512] = "";
	size_t i;

	prove_look_changes(before, after, &n);
	for (i = 0; i < n.n; i++) {
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s\n", n.line[i]);
		free(n.line[i]);
	}
	assert_string_equal(got, "Reads err: +2\nBar1-map n: +2\nBar1-map ok: +1\n"
				 "Bar1-map err: +1\nActive Process: -1\n");
}

static void t_log(void **state)
{
	struct prove_notes n = { .n = 0 };
	struct prove_why why = { .id = "" };
	char path[64];

	assert_true(tree_put(root, "l",
		" 30-11-2026 1 [pid=7 tid=7] INFO   cufio:1 GPU x: no stores through BAR1: open: ENOENT, -2 (R-BAR-NODES: a; b)\n"
		" 30-11-2026 1 [pid=7 tid=7] ERROR  cufio:2 f: 1 bytes would not go direct, and strict is set: R-ROUTE-DENIED: x; y\n"
		" 30-11-2026 1 [pid=7 tid=7] ERROR  cufio:3 nvidia-fs MAP ioctl failed : ioctl_return: -22\n"
		" 30-11-2026 1 [pid=7 tid=7] ERROR  cufio:3 nvidia-fs MAP ioctl failed : ioctl_return: -22\n"));
	snprintf(path, sizeof(path), "%s/l", root);
	prove_look_log(path, &n, "bar", &why);
	assert_int_equal(n.n, 1);
	assert_string_equal(n.line[0], "bar: ERROR  cufio:3 nvidia-fs MAP ioctl failed : ioctl_return: -22");
	free(n.line[0]);
	/* a rule of ours is no cause */
	assert_string_equal(why.id, "R-BAR-NODES");
	assert_true(why.remedy[0]);
	snprintf(path, sizeof(path), "%s/none", root);
	prove_look_log(path, &n, "bar", &why);
	assert_string_equal(why.id, "R-BAR-NODES");
}

/* ---- all of it ---- */

static char text[262144];

static int prove(const char *path, bool json)
{
	FILE *f = fmemopen(text, sizeof(text), "w");
	int status;

	assert_non_null(f);
	status = gc_prove(path, json, f);
	fclose(f);
	return status;
}

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static struct json_object *get(struct json_object *o, const char *key)
{
	struct json_object *v;

	assert_true(json_object_object_get_ex(o, key, &v));
	return v;
}

/* No drive is here: right data, not direct, and a reason for each way that did not run. */
static void t_whole(void **state)
{
	struct json_object *o, *runs, *r, *why;
	char tmp[80], path[96];
	size_t i;

	assert_true(real[0] && real[1]);
	snprintf(tmp, sizeof(tmp), "%s/tmp", root);
	assert_int_equal(mkdir(tmp, 0700), 0);
	assert_true(tree_put(root, "data/mine", "precious"));
	setenv("TMPDIR", tmp, 1);
	snprintf(path, sizeof(path), "%s/data", root);
	if (prove(path, true) != PROVE_EXIT_INDIRECT)
		fail_msg("%s", text);
	assert_int_equal(entries(path), 1);
	assert_int_equal(entries(tmp), 0);
	o = json_tokener_parse(text);
	assert_non_null(o);
	assert_string_equal(json_object_get_string(get(o, "verdict")), "works, not direct");
	assert_non_null(get(get(o, "reason"), "id"));
	runs = get(o, "runs");
	assert_int_equal(json_object_array_length(runs), 6);
	for (i = 0; i < 6; i++) {
		r = json_object_array_get_idx(runs, i);
		why = get(r, "reason");
		if (strcmp(json_object_get_string(get(r, "route")), "bounce"))
			assert_true(strlen(json_object_get_string(get(why, "next"))) > 5);
		assert_int_equal(strncmp(json_object_get_string(get(why, "id")), "R-", 2), 0);
	}
	json_object_put(o);
	/* a file stands for its folder, and stays as it is */
	snprintf(path, sizeof(path), "%s/data/mine", root);
	assert_int_equal(prove(path, false), PROVE_EXIT_INDIRECT);
	assert_non_null(strstr(text, "verdict: works, not direct\n  R-"));
	assert_non_null(strstr(text, "p2pdma     did not run"));
	assert_null(strstr(text, "R-ABSENT"));
	assert_null(strstr(text, "ok     nvfs"));
	/* which is asked about, and not more */
	assert_non_null(strstr(text, "/data/mine itself: it is shorter than a block"));
	assert_int_equal(truncate(path, 8192), 0);
	assert_int_equal(prove(path, false), PROVE_EXIT_INDIRECT);
	assert_non_null(strstr(text, "/data/mine itself: a read of it would not go direct: R-"));
	snprintf(path, sizeof(path), "%s/data", root);
	assert_int_equal(entries(path), 1);
	unsetenv("TMPDIR");
}

/* Stopped in the middle: nothing of it stays. */
static void t_stopped(void **state)
{
	const struct timespec step = { .tv_nsec = 1000 * 1000 };
	char tmp[80], path[96];
	int status, n = 0;
	pid_t pid;

	snprintf(tmp, sizeof(tmp), "%s/tmp", root);
	snprintf(path, sizeof(path), "%s/data", root);
	assert_int_equal(mkdir(tmp, 0700), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("TMPDIR", tmp, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(prove(path, false));
	while ((!entries(path) || entries(tmp) == 0) && n++ < 60000)
		nanosleep(&step, NULL);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(entries(path), 0);
	assert_int_equal(entries(tmp), 0);
	unsetenv("TMPDIR");
}

static void t_no_place(void **state)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/none", root);
	assert_int_equal(prove(path, false), PROVE_EXIT_NOT_RUN);
	assert_non_null(strstr(text, "verdict: could not run\n  PATH: "));
	assert_non_null(strstr(text, "there is no such folder"));
	assert_int_equal(prove("/dev/null", false), PROVE_EXIT_NOT_RUN);
	assert_non_null(strstr(text, "neither a folder nor a file"));
	assert_int_equal(prove("/proc", true), PROVE_EXIT_NOT_RUN);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_direct), T(t_unseen),  T(t_indirect), T(t_judge), T(t_wrong),
		T(t_fails),  T(t_changes), T(t_log),	  T(t_whole), T(t_stopped), T(t_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
