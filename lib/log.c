// SPDX-License-Identifier: MIT
/*
 * log.c - the log file: made late, bounded, one write(2) a line.
 *
 * One mutex guards all but `threshold`. It is held while a line is written, so that a
 * descriptor is never closed, and its number never given to another file, under a writer.
 * fork() takes it first: a child finds it free.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define LINE_MAX_BYTES 4096	/* of a line with its newline; a longer one is cut */
#define FIRST_FD 3		/* 0, 1 and 2 belong to the program, open or not */
#define DEFAULT_NAME "cufile.log"

/* What is written: lines of this level and below it. LOG_OFF: nothing. */
static atomic_int threshold = LOG_OFF;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static char log_file[PATH_MAX];		/* what log_setup made of path and dir */
static char told_file[PATH_MAX];	/* stderr was told about this one */
static int log_fd = -1;
static off_t limit = -1;		/* bytes; -1: none */
static bool regular;			/* a file that can be truncated */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

static void close_file(void)
{
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
}

void log_setup(const char *path, const char *dir, enum log_level level, int max_mb)
{
	int saved = errno, n;

	pthread_once(&fork_once, watch_fork);
	pthread_mutex_lock(&lock);
	close_file();
	if (path && path[0])
		n = snprintf(log_file, sizeof(log_file), "%s", path);
	else if (dir && dir[0])
		n = snprintf(log_file, sizeof(log_file), "%s/%s", dir, DEFAULT_NAME);
	else
		n = snprintf(log_file, sizeof(log_file), "%s", DEFAULT_NAME);
	/* open() fails on "" and the cause is told then */
	if (n < 0 || (size_t)n >= sizeof(log_file))
		log_file[0] = '\0';
	limit = max_mb < 0 ? -1 : (off_t)max_mb << 20;
	atomic_store(&threshold, (int)level);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

void log_close(void)
{
	int saved = errno;

	pthread_mutex_lock(&lock);
	atomic_store(&threshold, LOG_OFF);
	close_file();
	pthread_mutex_unlock(&lock);
	errno = saved;
}

bool log_on(enum log_level level)
{
	return level != LOG_OFF && (int)level <= atomic_load(&threshold);
}

/* A descriptor of 3 or more: a program that closed 0 to 2 opens its own files there. */
static int move_up(int fd)
{
	int up, err;

	if (fd < 0)
		return -errno;
	if (fd >= FIRST_FD)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	err = errno;
	close(fd);
	return up < 0 ? -err : up;
}

/*
 * The descriptor or -errno. A pipe or a socket is refused: with nobody at its other end a
 * line would end the program by SIGPIPE. O_NONBLOCK: nor does opening one wait for a reader.
 */
static int open_file(void)
{
	struct stat st;
	int fd;

	fd = move_up(open(log_file,
			  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY |
				  O_NONBLOCK, 0644));
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))) {
		close(fd);
		return -EOPNOTSUPP;
	}
	regular = S_ISREG(st.st_mode);
	return fd;
}

/* One line on stderr for a file, however often the log is set up with it. */
static void tell_failure(int err)
{
	char text[512];
	int n;

	if (told_file[0] && !strcmp(told_file, log_file))
		return;
	snprintf(told_file, sizeof(told_file), "%s", log_file);
	n = snprintf(text, sizeof(text),
		     "warn: error opening log file: %s, logging will be disabled\n", strerror(err));
	while (write(STDERR_FILENO, text, (size_t)n) < 0 && errno == EINTR)
		;
}

/* Under the lock. true when there is a file to write to */
static bool ready(void)
{
	if (log_fd < 0) {
		log_fd = open_file();
		if (log_fd < 0) {
			tell_failure(-log_fd);
			log_fd = -1;
			atomic_store(&threshold, LOG_OFF);
		}
	}
	return log_fd >= 0;
}

/* The size is asked for each time: other processes may append to the same file. */
static void write_line(const char *text, size_t len)
{
	struct stat st;

	if (limit >= 0 && regular && !fstat(log_fd, &st) && st.st_size + (off_t)len > limit)
		(void)!ftruncate(log_fd, 0);
	/* nobody can be told about a full disk here: the line is lost */
	while (write(log_fd, text, len) < 0 && errno == EINTR)
		;
}

static const char *level_name(enum log_level level)
{
	static const char *const name[] = {
		[LOG_NOTICE] = "NOTICE", [LOG_ERROR] = "ERROR", [LOG_WARN] = "WARN",
		[LOG_INFO] = "INFO", [LOG_DEBUG] = "DEBUG", [LOG_TRACE] = "TRACE",
	};

	return level > LOG_OFF && level <= LOG_TRACE ? name[level] : "?";
}

/* All before the message; bytes */
static size_t prefix(char *buf, size_t len, enum log_level level, const char *module, int line)
{
	struct timespec now;
	struct tm tm;
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	memset(&tm, 0, sizeof(tm));
	localtime_r(&now.tv_sec, &tm);
	n = snprintf(buf, len,
		     " %02d-%02d-%04d %02d:%02d:%02d:%03d [pid=%d tid=%d] %-6s %s:%d ", tm.tm_mday,
		     tm.tm_mon + 1, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec,
		     (int)(now.tv_nsec / 1000000), (int)getpid(), (int)gettid(),
		     level_name(level), module, line);
	return n < 0 ? 0 : (size_t)n < len ? (size_t)n : len - 1;
}

/* A whole line into buf, of LINE_MAX_BYTES; bytes. `err`: the errno of the caller, for %m */
static size_t format(char *buf, enum log_level level, const char *module, int line, int err,
		     const char *fmt, va_list ap)
{
	size_t used = prefix(buf, LINE_MAX_BYTES, level, module, line), i = used;
	int n;

	errno = err;
	n = vsnprintf(buf + used, LINE_MAX_BYTES - used, fmt, ap);
	if (n > 0 && (size_t)n >= LINE_MAX_BYTES - used) {
		used = LINE_MAX_BYTES - 1;
		memcpy(buf + used - 3, "...", 3);
	} else if (n > 0) {
		used += (size_t)n;
	}
	/* a name of a file can hold a newline, which would forge a line */
	for (; i < used; i++)
		if ((unsigned char)buf[i] < ' ' || buf[i] == 0x7f)
			buf[i] = '?';
	buf[used++] = '\n';	/* in place of the NUL */
	return used;
}

/*
 * The line is made under the lock too: localtime_r holds a lock of libc, which a fork() in
 * between would leave held in the child for ever.
 */
void log_line(enum log_level level, const char *module, int line, const char *fmt, ...)
{
	char buf[LINE_MAX_BYTES];
	int saved = errno;
	size_t len;
	va_list ap;

	if (!log_on(level))
		return;
	pthread_mutex_lock(&lock);
	if (log_on(level) && ready()) {
		va_start(ap, fmt);
		len = format(buf, level, module, line, saved, fmt, ap);
		va_end(ap);
		write_line(buf, len);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

const char *log_errno(int err)
{
	static _Thread_local char text[16];
	const char *name;

	/* not -err: INT_MIN has no positive twin */
	unsigned int number = err < 0 ? 0u - (unsigned int)err : (unsigned int)err;

	name = number <= INT_MAX ? strerrorname_np((int)number) : NULL;
	if (name)
		return name;
	snprintf(text, sizeof(text), "E%u", number);
	return text;
}
