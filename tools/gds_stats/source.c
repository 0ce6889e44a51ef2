// SPDX-License-Identifier: MIT
/*
 * source.c - where the statistics of a process are. A segment may be anything that somebody put
 * there: what it says is checked (snapshot.c), and that it is cut short while it is read ends
 * the reading, not the program.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "source.h"

static int __attribute__((format(printf, 3, 4))) explain(char why[SOURCE_WHY], int err,
							 const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, SOURCE_WHY, fmt, ap);
	va_end(ap);
	return err;
}

/* A line of /proc/PID/FILE that begins with `key`, what follows it; "": there is none. */
static void proc_line(int pid, const char *file, const char *key, char *out, size_t len)
{
	char path[64], line[512];
	FILE *f;

	out[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "re");
	if (!f)
		return;
	while (!out[0] && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, len, "%.*s", (int)len - 1, line + strlen(key));
	}
	fclose(f);
}

/* Its number as it sees it itself: the last of those that its namespaces give it. */
static int own_pid(int pid)
{
	char text[256], *last;
	int n = pid;

	proc_line(pid, "status", "NSpid:", text, sizeof(text));
	last = strrchr(text, '\t');
	if (last)
		sscanf(last, "%d", &n);
	return n;
}

static bool maps_cufile(int pid)
{
	char path[64], line[PATH_MAX + 128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	/* not to be told */
	if (!f)
		return true;
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, "libcufile");
	fclose(f);
	return found;
}

static const char *user_name(uid_t uid)
{
	static char number[32];
	const struct passwd *p = getpwuid(uid);

	if (p)
		return p->pw_name;
	snprintf(number, sizeof(number), "number %u", uid);
	return number;
}

/* What is in the way of an open that failed with err. */
static int why_not(int pid, int err, char why[SOURCE_WHY])
{
	char path[64], command[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc_line(pid, "comm", "", command, sizeof(command));
	if ((err == EACCES || err == EPERM) && !stat(path, &st) && st.st_uid != geteuid())
		return explain(why, -err,
			       "process %d (%s) is of user %s: run gds_stats as that user, or as root",
			       pid, command, user_name(st.st_uid));
	if (err == EACCES || err == EPERM)
		return explain(why, -err,
			       "process %d (%s): its folder /dev/shm may not be looked into (%s): run gds_stats as root, or inside its container",
			       pid, command, strerror(err));
	if (err != ENOENT)
		return explain(why, -err, "statistics of process %d (%s): %s", pid, command,
			       strerror(err));
	return explain(why, -err,
		       "process %d (%s) publishes no statistics%s: set \"profile\": {\"cufile_stats\": 3} (1, 2 or 3) in its cufile.json and start it anew, or let it call cuFileSetStatsLevel",
		       pid, command,
		       maps_cufile(pid) ? " (its library is closed, or collects none)" :
					  " and has no libcufile.so loaded");
}

static int map(int fd, int pid, int number, struct source *s, char why[SOURCE_WHY])
{
	uint32_t version;
	int r = stats_area_map(fd, number, &s->area, &version);

	if (!r)
		return 0;
	if (r != -EPROTO)
		return explain(why, r, "statistics of process %d: %s", pid, strerror(-r));
	if (version && version != STATS_SHM_VERSION)
		return explain(why, r,
			       "process %d publishes version %u of the statistics, this gds_stats reads version %u: use the gds_stats of its library",
			       pid, version, STATS_SHM_VERSION);
	return explain(why, r,
		       "what process %d publishes is not (or not yet) statistics of OpenGDS: try again, or see docs/gds_stats.md",
		       pid);
}

/* What lies below the name of a process that is not there. */
static int open_left(int pid, struct source *s, char why[SOURCE_WHY])
{
	char path[64];
	int fd, r;

	snprintf(path, sizeof(path), "/dev/shm" STATS_SHM_NAME, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return explain(why, -errno, "nothing left by a process %d: %s: %s", pid, path,
			       strerror(errno));
	r = map(fd, pid, pid, s, why);
	close(fd);
	snprintf(s->command, sizeof(s->command), "(left)");
	return r;
}

static int no_process(int pid, char why[SOURCE_WHY])
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm" STATS_SHM_NAME, pid);
	if (access(path, R_OK))
		return explain(why, -ESRCH, "no process %d", pid);
	return explain(why, -ESRCH,
		       "no process %d; one of that number was killed and left its statistics: --left prints them, removing %s ends them",
		       pid, path);
}

int source_open(int pid, bool left, struct source *s, char why[SOURCE_WHY])
{
	char path[96];
	int fd, number, err, r;

	memset(s, 0, sizeof(*s));
	s->pid = pid;
	if (left)
		return open_left(pid, s, why);
	if (kill(pid, 0) && errno == ESRCH)
		return no_process(pid, why);
	number = own_pid(pid);
	snprintf(path, sizeof(path), "/proc/%d/root/dev/shm" STATS_SHM_NAME, pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	err = errno;
	/* one that may not be traced, but has the same /dev/shm */
	if (fd < 0 && err == EACCES && number == pid) {
		snprintf(path, sizeof(path), "/dev/shm" STATS_SHM_NAME, pid);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		err = fd < 0 && errno != ENOENT ? errno : err;
	}
	if (fd < 0)
		return kill(pid, 0) && errno == ESRCH ? no_process(pid, why) :
							why_not(pid, err, why);
	r = map(fd, pid, number, s, why);
	close(fd);
	if (r)
		return r;
	proc_line(pid, "comm", "", s->command, sizeof(s->command));
	if (s->area->started && stats_started(pid) && s->area->started != stats_started(pid)) {
		source_close(s);
		return explain(why, -ESTALE,
			       "process %d publishes no statistics; a killed one of that number left some: --left prints them, removing /dev/shm" STATS_SHM_NAME " ends them",
			       pid, pid);
	}
	return 0;
}

void source_close(struct source *s)
{
	if (s->area)
		stats_area_close(s->area);
	s->area = NULL;
}

/* -- reading. One thread -- */

static sigjmp_buf cut;

static void on_bus(int sig)
{
	siglongjmp(cut, 1);
}

int source_read(const struct source *s, struct snapshot *out)
{
	struct sigaction act = { .sa_handler = on_bus }, was;
	struct timespec now;
	volatile int r = 0;

	sigaction(SIGBUS, &act, &was);
	if (sigsetjmp(cut, 1)) {
		r = -EBUSY;
	} else {
		clock_gettime(CLOCK_MONOTONIC, &now);
		snapshot_take(s->area, (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec, out);
	}
	sigaction(SIGBUS, &was, NULL);
	out->pid = s->pid;
	memcpy(out->command, s->command, sizeof(out->command));
	return r;
}

bool source_lives(const struct source *s)
{
	return !kill(s->pid, 0) || errno != ESRCH;
}

/* -- all of them -- */

static int is_pid(const struct dirent *d)
{
	return isdigit((unsigned char)d->d_name[0]);
}

int source_list(struct source **at)
{
	struct dirent **names;
	char why[SOURCE_WHY];
	int n, i, pid, found = 0;

	*at = NULL;
	n = scandir("/proc", &names, is_pid, versionsort);
	if (n < 0)
		return -errno;
	*at = calloc(n + 1, sizeof(**at));
	for (i = 0; i < n; i++) {
		/* is_pid() has seen that it is a number */
		pid = (int)strtol(names[i]->d_name, NULL, 10);
		if (*at && !source_open(pid, false, &(*at)[found], why))
			found++;
		free(names[i]);
	}
	free(names);
	return *at ? found : -ENOMEM;
}
