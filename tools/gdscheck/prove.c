// SPDX-License-Identifier: MIT
/*
 * prove.c - the runs of --prove: a file of our own, a child for each way, and what the machine
 * tells beside them. The parent never loads CUDA or libcufile, so each child starts anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explain.h"
#include "facts.h"
#include "prove.h"
#include "prove_look.h"

#define CHILD_SECONDS 180	/* an emulated machine is slow; a drive that hangs is slower */

/* The configured way first; then each way alone. `alone`: what "routes" allows for it */
static const struct {
	const char *name, *alone;
	bool strict, registered, writes;
	uint64_t skew;
} ways[] = {
	{ "configured", NULL, false, true, true, 0 },
	{ "nvfs", "\"nvfs\", \"bounce\"", true, true, true, 0 },
	{ "p2pdma", "\"p2pdma\", \"bounce\"", true, true, true, 0 },
	{ "staged", "\"staged\", \"bounce\"", true, false, true, 512 },
	{ "bar", "\"bar\"", false, true, false, 0 },
	{ "bounce", "\"bounce\"", false, true, true, 0 },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

struct prove {
	struct prove_report report;
	char folder[PATH_MAX];
	const char *file;	/* that `path` names; NULL: it names a folder */
	uint32_t key;
	struct prove_run *run;	/* shared with the children, [WAYS] */
	struct prove_why cause[WAYS];
};

/* What goes at the end, and by a signal: in this order; "" is nothing. */
enum { MADE_FILE, MADE_CONFIG, MADE_LOG, MADE_DIR, MADE };
static char made[MADE][PATH_MAX + 32];
static volatile pid_t child;

/* ---- what is made, and goes again ---- */

/* Calls nothing that a signal handler may not. */
static void remove_made(void)
{
	unsigned int i;

	for (i = 0; i < MADE; i++)
		if (made[i][0]) {
			if (i == MADE_DIR)
				rmdir(made[i]);
			else
				unlink(made[i]);
			made[i][0] = '\0';
		}
}

/* The child goes first, or it would make its log anew. One that hangs is not waited for. */
static void stopped(int sig)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };
	unsigned int tries = 200;

	if (child > 0) {
		kill(child, SIGKILL);
		while (!waitpid(child, NULL, WNOHANG) && tries--)
			nanosleep(&step, NULL);
	}
	remove_made();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void watch_signals(void)
{
	struct sigaction sa = { .sa_handler = stopped };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

static const char *create_hint(int err)
{
	switch (err) {
	case EROFS: return "the file system is mounted read-only: mount it for writing";
	case EACCES:
	case EPERM: return "this user may not write there: check the folder's permissions";
	case ENOSPC:
	case EDQUOT: return "there is no room: free some, 4 MiB are needed";
	case ENOENT: return "there is no such folder";
	case EIO: return "the drive failed: look at the last lines of dmesg";
	default: return "choose a folder in which files can be made";
	}
}

static int cannot(struct prove *p, const char *what, const char *path, int err)
{
	snprintf(p->report.failed, sizeof(p->report.failed), "%s: %.200s: %s; %s", what, path,
		 strerror(err), create_hint(err));
	return -err;
}

/* The folder that `path` is, or is in */
static int find_folder(struct prove *p, const char *path)
{
	char copy[PATH_MAX];
	struct stat st;

	if (stat(path, &st))
		return cannot(p, "PATH", path, errno);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		snprintf(p->report.failed, sizeof(p->report.failed),
			 "PATH: %.200s is neither a folder nor a file; name one on the file system that is to be proven",
			 path);
		return -EINVAL;
	}
	if (strlen(path) >= sizeof(copy))
		return cannot(p, "PATH", path, ENAMETOOLONG);
	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(p->folder, sizeof(p->folder), "%s", S_ISDIR(st.st_mode) ? path : dirname(copy));
	p->report.folder = p->folder;
	p->file = S_ISREG(st.st_mode) ? path : NULL;
	return 0;
}

static int make_file(struct prove *p)
{
	char name[sizeof(made[0])];
	int fd, err = 0;

	snprintf(name, sizeof(name), "%s/.gdscheck-prove.XXXXXX", p->folder);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return cannot(p, "no file can be made", p->folder, errno);
	memcpy(made[MADE_FILE], name, sizeof(name));
	/* room on the drive, so that a full file system is told as such. Some cannot tell. */
	do
		err = fallocate(fd, 0, 0, PROVE_FILE) ? errno : 0;
	while (err == EINTR);
	close(fd);
	if (err && err != EOPNOTSUPP && err != ENOSYS)
		return cannot(p, "the file gets no room", p->folder, err);
	return 0;
}

static int make_work(struct prove *p)
{
	const char *tmp = getenv("TMPDIR");
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.3000s/gdscheck.XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return cannot(p, "no folder for a configuration can be made", dir, errno);
	snprintf(made[MADE_DIR], sizeof(made[0]), "%s", dir);
	snprintf(made[MADE_CONFIG], sizeof(made[0]), "%.4000s/cufile.json", dir);
	snprintf(made[MADE_LOG], sizeof(made[0]), "%.4000s/cufile.log", dir);
	return 0;
}

/* ---- a child ---- */

/* Only what the way needs; the user's own file and environment do not reach it. */
static bool configure(size_t way)
{
	static const char *const ours[] = {
		"CUFILE_FORCE_COMPAT_MODE", "CUFILE_ALLOW_COMPAT_MODE", "OPENGDS_STRICT",
	};
	FILE *f;
	bool ok;
	size_t i;

	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		unsetenv(ours[i]);
	setenv("CUFILE_ENV_PATH_JSON", made[MADE_CONFIG], 1);
	f = fopen(made[MADE_CONFIG], "we");
	if (!f)
		return false;
	ok = fprintf(f, "{ \"properties\": { \"allow_compat_mode\": true },\n"
		     "  \"opengds\": { \"routes\": [%s], \"strict\": %s } }\n", ways[way].alone,
		     ways[way].strict ? "true" : "false") > 0;
	return !fclose(f) && ok;
}

static void run_child(const struct prove *p, size_t way)
{
	struct prove_run *run = &p->run[way];
	struct prove_api api;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	setenv("CUFILE_LOGFILE_PATH", made[MADE_LOG], 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	if (ways[way].alone && !configure(way)) {
		snprintf(run->failed, sizeof(run->failed), "%.200s: %s", made[MADE_CONFIG],
			 strerror(errno));
		return;
	}
	if (!prove_api_load(&api, run->failed, sizeof(run->failed)))
		return;
	fd = open(made[MADE_FILE], O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0 && errno == EINVAL)
		fd = open(made[MADE_FILE], O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		snprintf(run->failed, sizeof(run->failed), "%.200s: %s", made[MADE_FILE], strerror(errno));
		return;
	}
	prove_work(&api, fd, p->key << 3 | way, run);
	close(fd);
}

/* True when it ended by itself */
static bool wait_child(struct prove_run *run)
{
	const struct timespec step = { .tv_nsec = 20 * 1000 * 1000 };
	struct timespec now, end;
	int status;
	pid_t r;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += CHILD_SECONDS;
	while (!(r = waitpid(child, &status, WNOHANG)) || (r < 0 && errno == EINTR)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end.tv_sec) {
			kill(child, SIGKILL);
			snprintf(run->failed, sizeof(run->failed),
				 "a request did not end in %d seconds; look at the last lines of dmesg",
				 CHILD_SECONDS);
			return false;
		}
		nanosleep(&step, NULL);
	}
	if (r > 0 && WIFSIGNALED(status))
		snprintf(run->failed, sizeof(run->failed), "the process died of %s",
			 strsignal(WTERMSIG(status)));
	return true;
}

static int run_way(struct prove *p, size_t way, FILE *out)
{
	struct prove_run *run = &p->run[way];
	bool ended;

	*run = (struct prove_run){
		.name = ways[way].name, .writes = ways[way].writes, .strict = ways[way].strict,
		.registered = ways[way].registered, .skew = ways[way].skew,
		.file = way ? NULL : p->file,
	};
	fflush(out);
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		run_child(p, way);
		_exit(0);
	}
	ended = wait_child(run);
	child = 0;
	prove_look_log(made[MADE_LOG], &p->report.library, run->name, &p->cause[way]);
	unlink(made[MADE_LOG]);
	return ended ? 0 : -ETIMEDOUT;
}

/* ---- why ---- */

/*
 * Of a run that did not go direct: what the library said of the request, else what its log
 * says. The rule that forbade another way is no cause, it was ours.
 */
static void find_cause(struct prove_run *run, struct prove_why *why)
{
	const struct prove_row *row;
	unsigned int i;

	if (!prove_first_not_direct(run))
		return;
	for (i = 0; i < PROVE_ROWS; i++) {
		row = &run->row[i];
		if (row->made && row->why.id[0] &&
		    !(why->id[0] && !strcmp(row->why.id, "R-ROUTE-DENIED"))) {
			*why = row->why;
			return;
		}
	}
}

/*
 * A list of this route alone, and the planner denies it: it is not in the library. A route that
 * is there and refuses has a reason of its own.
 */
static void name_absent(const struct prove_run *run, struct prove_why *why)
{
	const struct facts_reason_text *t = facts_reason(REASON_ABSENT);

	if (strcmp(run->name, "p2pdma") || strcmp(run->row[0].why.id, "R-ROUTE-DENIED"))
		return;
	snprintf(why->id, sizeof(why->id), "%s", t->id);
	snprintf(why->text, sizeof(why->text), "%s", t->text);
	snprintf(why->remedy, sizeof(why->remedy), "%s", t->remedy);
}

static void look_around(struct prove *p, struct look *look)
{
	struct facts_nvfs v;
	static char module[64];

	if (!facts_nvfs_find("", &v))
		snprintf(module, sizeof(module), "%s %u.%u", v.ours ? "OpenGDS" : "NVIDIA", v.major,
			 v.minor);
	p->report.module = module;
	prove_look_begin(look);
}

static void run_all(struct prove *p, FILE *out)
{
	struct look look;
	size_t i;
	int r = 0;

	look_around(p, &look);
	for (i = 0; i < WAYS && !r; i++) {
		r = run_way(p, i, out);
		p->report.runs = i + 1;
		find_cause(&p->run[i], &p->cause[i]);
		name_absent(&p->run[i], &p->cause[i]);
	}
	prove_look_end(&look, &p->report.counters, &p->report.kernel);
	p->report.status = prove_exit(&p->run[0], p->run, p->report.runs);
}

void prove_note(struct prove_notes *notes, const char *fmt, ...)
{
	va_list ap;

	if (notes->n == PROVE_NOTES)
		return;
	va_start(ap, fmt);
	if (vasprintf(&notes->line[notes->n], fmt, ap) >= 0)
		notes->n++;
	va_end(ap);
}

static void free_notes(struct prove_notes *notes)
{
	while (notes->n)
		free(notes->line[--notes->n]);
}

int gc_prove(const char *path, bool json, FILE *out)
{
	struct prove *p = calloc(1, sizeof(*p));
	int status;

	if (!p)
		return PROVE_EXIT_INTERNAL;
	p->run = mmap(NULL, WAYS * sizeof(*p->run), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->run == MAP_FAILED) {
		free(p);
		return PROVE_EXIT_INTERNAL;
	}
	p->report = (struct prove_report){
		.path = path, .folder = "", .module = "", .run = p->run, .cause = p->cause,
		.status = PROVE_EXIT_NOT_RUN,
	};
	if (getrandom(&p->key, sizeof(p->key), 0) != sizeof(p->key))
		p->key = (uint32_t)getpid();
	p->key &= (1u << 18) - 1;	/* with way and age it fits above the offsets */
	watch_signals();
	if (!find_folder(p, path) && !make_file(p) && !make_work(p))
		run_all(p, out);
	remove_made();
	if (json)
		prove_print_json(&p->report, out);
	else
		prove_print(&p->report, out);
	status = p->report.status;
	free_notes(&p->report.counters);
	free_notes(&p->report.kernel);
	free_notes(&p->report.library);
	munmap(p->run, WAYS * sizeof(*p->run));
	free(p);
	return status;
}
