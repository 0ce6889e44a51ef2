// SPDX-License-Identifier: MIT
/*
 * t_log.c - the log of the library, on files in a temporary folder. Fails when a line has
 * another form than scripts read, a file appears without a line, a link is followed, a
 * descriptor of the program is taken or written to, stderr hears of a failure more or less
 * than once, lines of threads mix, or the file outgrows its limit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_MODULE "t-log"
#include "log.h"

static char dir[] = "/tmp/t_log.XXXXXX";
static char file[64];

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

static int setup(void **state)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/x.log", dir);
	return 0;
}

static int teardown(void **state)
{
	log_close();
	return nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* The content of a file; the caller frees. "" of a file that is not there */
static char *content(const char *path)
{
	char *text = NULL, buf[4096];
	FILE *in = fopen(path, "re"), *out;
	size_t len, n;

	out = open_memstream(&text, &len);
	assert_non_null(out);
	while (in && (n = fread(buf, 1, sizeof(buf), in)) > 0)
		fwrite(buf, 1, n, out);
	if (in)
		fclose(in);
	fclose(out);
	return text;
}

static unsigned int lines(const char *text)
{
	unsigned int n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static bool matches(const char *text, const char *regex)
{
	regex_t re;
	bool ok;

	assert_int_equal(regcomp(&re, regex, REG_EXTENDED | REG_NOSUB), 0);
	ok = !regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return ok;
}

/* ---- what is written ---- */

static void t_form(void **state)
{
	char want[256], *text;
	int line;

	log_setup(file, NULL, LOG_TRACE, -1);
	log_error("no %s", "drive"); line = __LINE__;
	text = content(file);
	snprintf(want, sizeof(want),
		 "^ [0-9]{2}-[0-9]{2}-20[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}:[0-9]{3} "
		 "\\[pid=%d tid=%d\\] ERROR  t-log:%d no drive\n$", getpid(), gettid(), line);
	assert_true(matches(text, want));
	free(text);
}

static void t_level_column(void **state)
{
	static const char *const want[] = {
		[LOG_NOTICE] = "] NOTICE m:7 x\n", [LOG_ERROR] = "] ERROR  m:7 x\n",
		[LOG_WARN] = "] WARN   m:7 x\n", [LOG_INFO] = "] INFO   m:7 x\n",
		[LOG_DEBUG] = "] DEBUG  m:7 x\n", [LOG_TRACE] = "] TRACE  m:7 x\n",
	};
	unsigned int i;
	char *text;

	log_setup(file, NULL, LOG_TRACE, -1);
	for (i = LOG_NOTICE; i <= LOG_TRACE; i++)
		log_line((enum log_level)i, "m", 7, "x");
	text = content(file);
	assert_int_equal(lines(text), 6);
	for (i = LOG_NOTICE; i <= LOG_TRACE; i++)
		assert_non_null(strstr(text, want[i]));
	free(text);
}

static void t_levels(void **state)
{
	unsigned int threshold, level;

	for (threshold = LOG_OFF; threshold <= LOG_TRACE; threshold++) {
		log_setup(file, NULL, (enum log_level)threshold, -1);
		for (level = LOG_NOTICE; level <= LOG_TRACE; level++)
			assert_int_equal(log_on((enum log_level)level), level <= threshold);
		assert_false(log_on(LOG_OFF));
	}
}

static void t_below_the_level(void **state)
{
	char *text;

	log_setup(file, NULL, LOG_ERROR, -1);
	log_warn("not this");
	log_line(LOG_WARN, "m", 1, "nor this");
	assert_int_equal(access(file, F_OK), -1);
	log_notice("this");
	text = content(file);
	assert_int_equal(lines(text), 1);
	assert_non_null(strstr(text, "this"));
	free(text);
}

static void t_no_line_no_file(void **state)
{
	log_setup(file, NULL, LOG_TRACE, -1);
	log_close();
	assert_int_equal(access(file, F_OK), -1);
	log_error("after the end");
	assert_int_equal(access(file, F_OK), -1);
	log_setup(file, NULL, LOG_OFF, -1);
	log_notice("off");
	assert_int_equal(access(file, F_OK), -1);
}

static void t_one_line_each(void **state)
{
	char *text, *wide;

	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("a\nforged\tline\x1b[0m");
	text = content(file);
	assert_int_equal(lines(text), 1);
	assert_non_null(strstr(text, "a?forged?line?[0m\n"));
	free(text);

	wide = malloc(10001);
	assert_non_null(wide);
	memset(wide, 'w', 10000);
	wide[10000] = '\0';
	log_error("%s", wide);
	free(wide);
	text = content(file);
	assert_int_equal(lines(text), 2);
	assert_int_equal(strlen(strchr(text, '\n') + 1), 4096);
	assert_string_equal(text + strlen(text) - 5, "w...\n");
	free(text);
}

static void t_errno_kept(void **state)
{
	char *text;

	log_setup(file, NULL, LOG_ERROR, -1);
	errno = EDOM;
	log_error("%m");
	assert_int_equal(errno, EDOM);
	log_close();
	assert_int_equal(errno, EDOM);
	text = content(file);
	assert_non_null(strstr(text, strerror(EDOM)));
	free(text);
}

/* ---- where ---- */

static void t_in_dir(void **state)
{
	char path[128], *text;

	log_setup("", dir, LOG_ERROR, -1);
	log_error("here");
	snprintf(path, sizeof(path), "%s/cufile.log", dir);
	text = content(path);
	assert_int_equal(lines(text), 1);
	free(text);
	/* the path counts more than the folder */
	log_setup(file, dir, LOG_ERROR, -1);
	log_error("there");
	text = content(path);
	assert_int_equal(lines(text), 1);
	free(text);
	text = content(file);
	assert_int_equal(lines(text), 1);
	free(text);
}

static void t_in_working_directory(void **state)
{
	char *before = getcwd(NULL, 0), path[128], *text;

	assert_non_null(before);
	assert_int_equal(chdir(dir), 0);
	log_setup(NULL, NULL, LOG_ERROR, -1);
	log_error("here");
	assert_int_equal(chdir(before), 0);
	free(before);
	snprintf(path, sizeof(path), "%s/cufile.log", dir);
	text = content(path);
	assert_int_equal(lines(text), 1);
	free(text);
}

static void t_mode(void **state)
{
	mode_t before = umask(0);
	struct stat st;

	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("x");
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(remove(file), 0);
	umask(077);
	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("x");
	umask(before);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void t_appends(void **state)
{
	FILE *f = fopen(file, "we");
	char *text;

	assert_non_null(f);
	fputs("mine\n", f);
	fclose(f);
	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("x");
	text = content(file);
	assert_int_equal(lines(text), 2);
	assert_int_equal(strncmp(text, "mine\n", 5), 0);
	free(text);
}

static void t_descriptor(void **state)
{
	char link[64], to[PATH_MAX];
	int status, fd;
	pid_t pid;
	ssize_t n;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(0);
		close(1);
		close(2);
		log_setup(file, NULL, LOG_ERROR, -1);
		log_error("x");
		for (fd = 0; fd < 3; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(1);
		for (fd = 3; fd < 64; fd++) {
			snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
			n = readlink(link, to, sizeof(to) - 1);
			if (n == (ssize_t)strlen(file) && !memcmp(to, file, (size_t)n))
				_exit((fcntl(fd, F_GETFD) & FD_CLOEXEC) &&
				      (fcntl(fd, F_GETFL) & O_APPEND) ? 0 : 2);
		}
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- failures: each in a child whose stderr is a file ---- */

static char *child_stderr(void (*body)(void))
{
	char path[128];
	int status, fd;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/stderr", dir);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || dup2(fd, 2) < 0)
			_exit(1);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return content(path);
}

static void twice(void)
{
	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("a");
	if (log_on(LOG_ERROR))
		_exit(2);
	log_error("b");
	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("c");
}

static void expect(int err)
{
	char want[256], *text = child_stderr(twice);

	snprintf(want, sizeof(want),
		 "warn: error opening log file: %s, logging will be disabled\n", strerror(err));
	assert_string_equal(text, want);
	free(text);
}

static void t_symlink(void **state)
{
	char target[128];

	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, file), 0);
	expect(ELOOP);
	assert_int_equal(access(target, F_OK), -1);
}

static void t_no_folder(void **state)
{
	snprintf(file, sizeof(file), "%s/no/x.log", dir);
	expect(ENOENT);
}

static void t_folder(void **state)
{
	assert_int_equal(mkdir(file, 0755), 0);
	expect(EISDIR);
}

/* Without a reader, and with one that could leave */
static void t_fifo(void **state)
{
	int fd;

	assert_int_equal(mkfifo(file, 0600), 0);
	expect(ENXIO);
	fd = open(file, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	expect(EOPNOTSUPP);
	close(fd);
}

static void another_file(void)
{
	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("a");
	snprintf(file, sizeof(file), "%s/nowhere/x.log", dir);
	log_setup(file, NULL, LOG_ERROR, -1);
	log_error("b");
}

static void t_each_file_is_told(void **state)
{
	char *text;

	snprintf(file, sizeof(file), "%s/no/x.log", dir);
	text = child_stderr(another_file);
	assert_int_equal(lines(text), 2);
	free(text);
}

/* ---- size ---- */

static void t_limit(void **state)
{
	off_t most = 0;
	struct stat st;
	unsigned int i, truncated = 0;
	off_t before = 0;
	char *text;

	log_setup(file, NULL, LOG_ERROR, 1);
	for (i = 0; i < 2500; i++) {
		log_error("%u %01000u", i, 0);
		assert_int_equal(stat(file, &st), 0);
		if (st.st_size > most)
			most = st.st_size;
		truncated += st.st_size < before;
		before = st.st_size;
	}
	assert_true(most <= 1 << 20);
	assert_true(most > (1 << 20) - 2000);
	assert_int_equal(truncated, 2);
	/* no hole where the old lines were, and the newest line is the last */
	text = content(file);
	assert_int_equal(strlen(text), before);
	assert_non_null(strstr(text, " 2499 0000"));
	free(text);
}

static void t_no_limit(void **state)
{
	struct stat st;
	unsigned int i;

	log_setup(file, NULL, LOG_ERROR, -1);
	for (i = 0; i < 1200; i++)
		log_error("%01000u", 0);
	assert_int_equal(stat(file, &st), 0);
	assert_true(st.st_size > 1200 * 1000);
}

/* ---- threads ---- */

#define THREADS 4
#define LINES	500

static atomic_bool stop;

static void *writer(void *arg)
{
	unsigned int i;

	for (i = 0; i < LINES; i++)
		log_error("thread %u line %u end", (unsigned int)(uintptr_t)arg, i);
	return NULL;
}

static void *endless(void *arg)
{
	while (!atomic_load(&stop)) {
		log_error("thread");
		usleep(50);	/* the lock is not fair: others need a chance */
	}
	return NULL;
}

static void start(pthread_t *t, void *(*body)(void *))
{
	uintptr_t i;

	atomic_store(&stop, false);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, body, (void *)i), 0);
}

static void join(pthread_t *t)
{
	unsigned int i;

	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
}

static void t_threads(void **state)
{
	unsigned int next[THREADS] = { 0 }, thread, line;
	char *text, *p, *nl;
	pthread_t t[THREADS];

	log_setup(file, NULL, LOG_ERROR, -1);
	start(t, writer);
	join(t);
	text = content(file);
	assert_int_equal(lines(text), THREADS * LINES);
	for (p = text; *p; p = nl + 1) {
		nl = strchr(p, '\n');
		*nl = '\0';
		assert_true(matches(p, "^ [-0-9]+ [0-9:]+ \\[pid=[0-9]+ tid=[0-9]+\\] ERROR  "
				       "t-log:[0-9]+ thread [0-9]+ line [0-9]+ end$"));
		p = strstr(p, " thread ");
		assert_int_equal(sscanf(p, " thread %u line %u", &thread, &line), 2);
		assert_true(thread < THREADS);
		assert_int_equal(line, next[thread]++);
	}
	free(text);
}

/* Set up and closed under its writers: no line lands in a file that took the number. */
static void t_close_under_writers(void **state)
{
	pthread_t t[THREADS];
	char other[128];
	struct stat st;
	unsigned int i;
	int fd;

	snprintf(other, sizeof(other), "%s/other", dir);
	log_setup(file, NULL, LOG_ERROR, 1);
	start(t, endless);
	for (i = 0; i < 300; i++) {
		log_setup(file, NULL, LOG_ERROR, 1);
		usleep(100);
		log_close();
		fd = open(other, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		usleep(100);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, 0);
		close(fd);
	}
	join(t);
	assert_int_equal(stat(file, &st), 0);
	assert_true(st.st_size > 0);
}

static atomic_bool slow;

/* In place of libc's. The log calls it in the middle of a line: there is time for a fork. */
pid_t gettid(void)
{
	if (atomic_load(&slow))
		usleep(2000);
	return (pid_t)syscall(SYS_gettid);
}

/* A child born while others write can write too. */
static void t_fork(void **state)
{
	pthread_t t[THREADS];
	unsigned int i;
	int status;
	pid_t pid;

	log_setup(file, NULL, LOG_ERROR, 1);
	start(t, endless);
	atomic_store(&slow, true);
	for (i = 0; i < 10; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			alarm(10);
			log_error("child");
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status))
			break;
	}
	atomic_store(&slow, false);
	join(t);
	assert_int_equal(i, 10);
}

/* ---- names of errors ---- */

static void t_errno_names(void **state)
{
	assert_string_equal(log_errno(22), "EINVAL");
	assert_string_equal(log_errno(-22), "EINVAL");
	assert_string_equal(log_errno(-ENOENT), "ENOENT");
	assert_string_equal(log_errno(123456), "E123456");
	assert_string_equal(log_errno(-123456), "E123456");
	assert_string_equal(log_errno(INT_MIN), "E2147483648");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(t_form), T(t_level_column), T(t_levels), T(t_below_the_level),
		T(t_no_line_no_file), T(t_one_line_each), T(t_errno_kept),
		T(t_in_dir), T(t_in_working_directory), T(t_mode), T(t_appends),
		T(t_descriptor), T(t_symlink), T(t_no_folder), T(t_folder), T(t_fifo),
		T(t_each_file_is_told), T(t_limit), T(t_no_limit),
		T(t_threads), T(t_close_under_writers), T(t_fork), T(t_errno_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
