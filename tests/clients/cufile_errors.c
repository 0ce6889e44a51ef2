// SPDX-License-Identifier: MIT
/*
 * cufile_errors.c - what the API answers to what is wrong or at a limit, case by case.
 *
 *   cufile_errors --dir D [--block DEVICE] [--only NAME]... [--list]
 *
 * Each case runs in a process of its own with a log of its own. It checks return values and
 * errno, and, where an error is reported, that the log got a line of the right level that
 * names the object and ends with a next step. Prints `ok NAME`, `BAD NAME: why` or
 * `n/a NAME: why`; the latter for cases that need the module, or its absence, or a block
 * device. Exit status 1 on any BAD, or when nothing ran. Where versions of cuFile differ
 * (deregistered handles, write to a read-only descriptor) the newer answer is demanded.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cufile_errors.h"

#define LIMIT_S 60			/* a case that takes longer hangs */

void e_breach(struct t *t, const char *fmt, ...)
{
	va_list ap;

	if (t->told->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(t->told->why, sizeof(t->told->why), fmt, ap);
	va_end(ap);
}

void e_object(struct t *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->told->object, sizeof(t->told->object), fmt, ap);
	va_end(ap);
}

void e_want(struct t *t, const char *what, CUfileError_t got, int err)
{
	if ((int)got.err != err)
		e_breach(t, "%s gave %d (%s), expected %d", what, got.err,
		       cufileop_status_error(got.err), err);
	else if (got.cu_err)
		e_breach(t, "%s: cu_err is %d, expected 0", what, (int)got.cu_err);
}

void e_want_io(struct t *t, const char *what, ssize_t got, ssize_t n, int err)
{
	int is = errno;

	if (got != n)
		e_breach(t, "%s gave %zd (errno %d), expected %zd (%d)", what, got, is, n, err);
	else if (n < 0 && is != err)
		e_breach(t, "%s: errno is %d (%s), expected %d", what, is,
		       IS_CUFILE_ERR(is) ? CUFILE_ERRSTR(is) : strerror(is), err);
}

void e_want_uses(struct t *t, const char *when, long n)
{
	if (cuFileUseCount() != n)
		e_breach(t, "%s: use count %ld, expected %ld", when, cuFileUseCount(), n);
}

/* -- pieces of the cases -- */

unsigned char e_byte_at(size_t n)
{
	return n * 7 + 1;
}

void e_make_file(const char *path)
{
	int fd = t_open(path, O_RDWR | O_CREAT | O_TRUNC);
	unsigned char *buf = malloc(FILE_SIZE);
	size_t i;

	if (!buf)
		t_die("out of memory");
	for (i = 0; i < FILE_SIZE; i++)
		buf[i] = e_byte_at(i);
	if (pwrite(fd, buf, FILE_SIZE, 0) != (ssize_t)FILE_SIZE || fsync(fd))
		t_die("%s: write: %s", path, strerror(errno));
	free(buf);
	close(fd);
}

CUfileError_t e_register_fd(struct t *t, int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	descr.handle.fd = fd;
	t->fh = NULL;
	return cuFileHandleRegister(&t->fh, &descr);
}

void *e_mem(const struct t *t)
{
	return (void *)(uintptr_t)t->mem;
}

void e_gpu(struct t *t)
{
	t_gpu_open(&t->gpu, 0);
	t->mem = t_gpu_alloc(M);
}

void e_file(struct t *t, int flags)
{
	e_gpu(t);
	t->fd = open(t->path, flags | O_CLOEXEC);
	if (t->fd < 0)	/* a file system without O_DIRECT: then by the page cache */
		t->fd = t_open(t->path, flags & ~O_DIRECT);
	e_want(t, "cuFileHandleRegister", e_register_fd(t, t->fd), 0);
	if (!t->fh)
		e_breach(t, "cuFileHandleRegister gave a NULL handle");
}

void e_want_bytes(struct t *t, size_t len, size_t from)
{
	unsigned char *buf = malloc(len);
	size_t i;

	if (!buf)
		t_die("out of memory");
	t_gpu_get(buf, t->mem, len);
	for (i = 0; i < len && buf[i] == e_byte_at(from + i); i++)
		;
	if (i < len)
		e_breach(t, "byte %zu of the read is %02x, expected %02x", i, buf[i],
		       e_byte_at(from + i));
	free(buf);
}

/* -- the log -- */

/* After what is wrong, behind a colon or a semicolon, stands what to do. */
#define NEXT_STEP \
	"[:;] (add|allow|ask|call|check|close|compare|copy|deregister|enable|free|get|give|install|" \
	"keep|load|lower|make|mount|move|open|pass|put|raise|register|remount|retry|round|run|set|" \
	"stop|turn|use|wait|write)\\b"

/* A line of the level that names the object and has a next step; NULL: fine. */
static const char *check_log(const char *path, const char *level, const char *names)
{
	FILE *f = fopen(path, "re");
	bool leveled = false, named = false, stepped = false;
	char line[2048], want[32];
	regex_t step;

	if (!f)
		return "the log was not written";
	if (regcomp(&step, NEXT_STEP, REG_EXTENDED | REG_NOSUB | REG_NEWLINE))
		t_die("regcomp failed");
	snprintf(want, sizeof(want), "] %-6s ", level);
	while (!stepped && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strstr(line, want))
			continue;
		leveled = true;
		if (!strstr(line, names))
			continue;
		named = true;
		stepped = !regexec(&step, line, 0, NULL, 0);
	}
	regfree(&step);
	fclose(f);
	return stepped ? NULL : named ? "the log line has no next step" :
	       leveled ? "no log line of the level names the object" :
	       "the log has no line of the level";
}

static void show_log(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[2048];

	while (f && fgets(line, sizeof(line), f))
		printf("    log:%s", line);
	if (f)
		fclose(f);
}

/* -- running them -- */

/* The simulator makes as many as a case asks for; a real machine has what it has. */
static bool one_real_gpu(void)
{
	DIR *d = opendir("/proc/driver/nvidia/gpus");
	struct dirent *e;
	int n = 0;

	if (!d)
		return false;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n < 2;
}

static const char *not_here(const struct t *t, enum need need)
{
	bool module = !access("/proc/driver/nvidia-fs/version", F_OK);

	if (need == MODULE && !module)
		return "nvidia-fs is not loaded";
	if (need == NO_MODULE && module)
		return "nvidia-fs is loaded";
	if (need == BLOCK && !t->block)
		return "no --block DEVICE";
	if (need == TWO_GPUS && one_real_gpu())
		return "one GPU";
	return NULL;
}

static void __attribute__((noreturn)) run_child(struct t *t, const struct kase *k,
						const char *log)
{
	char env[256], *value;

	setenv("CUFILE_LOGFILE_PATH", log, 1);
	setenv("CUFILE_LOGGING_LEVEL", "ERROR", 1);
	unsetenv("OPENGDS_STRICT");
	if (k->env) {
		snprintf(env, sizeof(env), "%s", k->env);
		value = strchr(env, '=');
		*value++ = '\0';
		setenv(env, value, 1);
	}
	alarm(LIMIT_S);
	k->run(t);
	exit(0);
}

static int run(struct t *t, const struct kase *k)
{
	char log[600];
	const char *why = NULL;
	int status;
	pid_t pid;

	why = not_here(t, k->need);
	if (why) {
		printf("n/a %s: %s\n", k->name, why);
		return 0;
	}
	memset(t->told, 0, sizeof(*t->told));
	snprintf(log, sizeof(log), "%s/cufile_errors.log", t->dir);
	unlink(log);
	e_make_file(t->path);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		t_die("fork: %s", strerror(errno));
	if (!pid)
		run_child(t, k, log);
	if (waitpid(pid, &status, 0) != pid)
		t_die("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status)) {
		printf("BAD %s: ended by signal %d%s\n", k->name, WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? ": it hung" : "");
		return 1;
	}
	if (t->told->why[0])
		why = t->told->why;
	else if (WEXITSTATUS(status))
		why = "the case could not be run";
	else if (k->level)
		why = check_log(log, k->level, t->told->object);
	printf(why ? "BAD %s: %s\n" : "ok  %s\n", k->name, why);
	if (why)
		show_log(log);
	unlink(log);
	unlink(t->path);
	return why ? 1 : 0;
}

/* Runs the cases of a table, or lists them; counts what ran and what was bad. */
static void run_table(struct t *t, const struct kase *k, const char *only, bool list, int *done,
		      int *bad)
{
	for (; k->name; k++) {
		if (only && strcmp(only, k->name))
			continue;
		if (list)
			puts(k->name);
		else
			*bad += run(t, k);
		(*done)++;
	}
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: cufile_errors --dir D [--block DEVICE] [--only NAME] [--list]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "dir", 1, 0, 'd' }, { "block", 1, 0, 'b' }, { "only", 1, 0, 'o' },
		{ "list", 0, 0, 'l' }, { 0 },
	};
	const char *only = NULL;
	struct t t = { 0 };
	bool list = false;
	int o, bad = 0, done = 0;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'd': t.dir = optarg; break;
		case 'b': t.block = optarg; break;
		case 'o': only = optarg; break;
		case 'l': list = true; break;
		default: usage();
		}
	}
	if ((!t.dir && !list) || optind < argc)
		usage();
	t.told = mmap(NULL, sizeof(*t.told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (t.told == MAP_FAILED)
		t_die("out of memory");
	snprintf(t.path, sizeof(t.path), "%s/cufile_errors.dat", t.dir);
	run_table(&t, open_kases, only, list, &done, &bad);
	run_table(&t, io_kases, only, list, &done, &bad);
	if (list)
		return 0;
	printf("cufile_errors: %d cases, %d bad\n", done, bad);
	return bad || !done;
}
