// SPDX-License-Identifier: MIT
/*
 * sweep.c - gdsio sweep: a run of gdsio for each point, the document and the page.
 *
 * Each point is a process of its own, so that one that fails takes nothing with it and a
 * route can be chosen by the library's configuration. Both files are written anew after each
 * point: whatever ends the sweep, they hold what there is.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "number.h"
#include "stamp.h"
#include "sweep.h"

#define OUTPUT_MAX (16 << 20)
#define WORDS 40

static const char help[] =
	"usage: gdsio sweep -f FILE [options]\n"
	"\n"
	"Runs gdsio for each I/O size, number of threads and way, and writes NAME.html, a page\n"
	"with plots and a table that needs nothing else, and NAME.json.\n"
	"  -f FILE          read or written by all; made, with stamps, when it is not there\n"
	"  -d GPU           its number (0)\n"
	"  -s SIZE          data set (256M)\n"
	"  --sizes LIST     of one I/O (4K,16K,64K,256K,1M,4M)\n"
	"  --threads LIST   (1,4,16)\n"
	"  --ways LIST      transfer types, and routes of the library: nvfs, p2pdma, staged, bar,\n"
	"                   bounce, each of them alone (GPUD,CPU_GPU,CPUONLY)\n"
	"  -I 0|1|2|3       read, write, read at random, write at random (0)\n"
	"  -T SECONDS       for each point; 0: the data set once (2)\n"
	"  -B ENTRIES       of a batch, for GPU_BATCH and GPU_BATCH_STREAM (16)\n"
	"  --no-verify      do not read the data set once more to compare it with its stamps\n"
	"  --overwrite      write also into a file that gdsio has not made\n"
	"  --out NAME       (gdsio-sweep)\n"
	"  --resume         take the points that NAME.json has, if its settings are these\n"
	"  -h, --help       this help\n"
	"\n"
	"The first SIGINT ends it; what was measured is kept, marked as incomplete.\n"
	"exit status: 0 all points are there, also those that failed with a reason; 1 an error;\n"
	"2 wrong usage; 130 interrupted\n";

struct sweep {
	const struct sweep_args *a;
	struct json_object *doc, *points, *old;	/* old: of --resume, else NULL */
	bool verify;		/* the file has stamps */
	unsigned int done, all, measured;
	uint64_t began_ns;
};

/* The words of a command, and memory for those that are made. */
struct command {
	char *argv[WORDS];
	char text[WORDS][32];
	unsigned int n;
	char config[64];	/* cufile.json of this run; "": none */
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = 1;
}

/* -- a process for a point -- */

static void word(struct command *c, const char *text)
{
	if (c->n < WORDS - 1)
		c->argv[c->n++] = (char *)text;
}

static void number(struct command *c, const char *option, uint64_t value)
{
	word(c, option);
	snprintf(c->text[c->n], sizeof(c->text[0]), "%" PRIu64, value);
	word(c, c->text[c->n]);
}

/* The user's configuration, with one route alone. */
static int write_config(struct command *c, const char *route)
{
	const char *path = getenv("CUFILE_ENV_PATH_JSON");
	struct json_object *conf = json_object_from_file(path && *path ? path : "/etc/cufile.json");
	struct json_object *ours, *list = json_object_new_array();
	int fd, err = 0;

	if (!json_object_is_type(conf, json_type_object)) {
		json_object_put(conf);
		conf = json_object_new_object();
	}
	ours = sweep_get(conf, "opengds");
	if (!ours) {
		ours = json_object_new_object();
		json_object_object_add(conf, "opengds", ours);
	}
	json_object_array_add(list, json_object_new_string(route));
	json_object_object_add(ours, "routes", list);
	snprintf(c->config, sizeof(c->config), "/tmp/gdsio-sweep.XXXXXX");
	fd = mkstemp(c->config);
	if (fd < 0 || json_object_to_fd(fd, conf, JSON_C_TO_STRING_PLAIN)) {
		gdsio_err("%s: a configuration for one route: %s", c->config, strerror(errno));
		err = -EIO;
	}
	if (fd >= 0)
		close(fd);
	json_object_put(conf);
	return err;
}

static void run_child(const struct command *c, int out, int errors)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (c->config[0])
		setenv("CUFILE_ENV_PATH_JSON", c->config, 1);
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0)
		execv("/proc/self/exe", c->argv);
	_exit(127);
}

/* All that is in a memory file, with a NUL; NULL: no memory. */
static char *text_of(int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);
	char *text = len >= 0 && len < OUTPUT_MAX ? malloc((size_t)len + 1) : NULL;
	ssize_t n = text ? pread(fd, text, (size_t)len, 0) : -1;

	if (text)
		text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Exit status, or -errno. out and errors are the caller's to free. */
static int run(struct command *c, char **out, char **errors)
{
	int fd[2], status = 0, err = 0;
	pid_t child;

	*out = *errors = NULL;
	c->argv[c->n] = NULL;
	fd[0] = memfd_create("out", MFD_CLOEXEC);
	fd[1] = memfd_create("errors", MFD_CLOEXEC);
	child = fd[0] < 0 || fd[1] < 0 ? -1 : fork();
	if (!child)
		run_child(c, fd[0], fd[1]);
	if (child < 0)
		err = -errno;
	/* the child gets the terminal's SIGINT by itself, and ends soon */
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!err) {
		*out = text_of(fd[0]);
		*errors = text_of(fd[1]);
	}
	if (fd[0] >= 0)
		close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
	if (c->config[0])
		unlink(c->config);
	if (err)
		return err;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* -- the file -- */

/* Is it there, long enough, and of gdsio? */
static int look_at_file(const struct sweep_args *a, bool *there, bool *stamped)
{
	uint8_t *block = NULL;
	uint64_t generation;
	struct stat st;
	int fd;

	*there = *stamped = false;
	fd = open(a->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	*there = true;
	if (fd < 0 || fstat(fd, &st)) {
		gdsio_err("%s: %s", a->file, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	if (!S_ISBLK(st.st_mode) && (uint64_t)st.st_size < a->data && !gdsio_is_write(a->rw)) {
		gdsio_err("%s: %lld bytes long, but -s is %" PRIu64 "; remove it, or give a "
			  "smaller -s", a->file, (long long)st.st_size, a->data);
		close(fd);
		return -EIO;
	}
	if (!posix_memalign((void **)&block, STAMP_BLOCK, STAMP_BLOCK)) {
		*stamped = pread(fd, block, STAMP_BLOCK, 0) == STAMP_BLOCK &&
			   stamp_generation(block, 0, &generation);
		free(block);
	}
	close(fd);
	return 0;
}

static int make_file(const struct sweep_args *a)
{
	struct command c = { 0 };
	char *out, *errors;
	int status;

	fprintf(stderr, "gdsio: writing %s\n", a->file);
	word(&c, "gdsio");
	word(&c, "-f");
	word(&c, a->file);
	number(&c, "-w", 1);
	number(&c, "-s", a->data);
	number(&c, "-i", a->data % (1 << 20) ? 4096 : 1 << 20);
	number(&c, "-O", a->data % 4096 != 0);
	number(&c, "-x", XFER_CPUONLY);
	number(&c, "-I", RW_WRITE);
	word(&c, "-V");
	status = run(&c, &out, &errors);
	if (status)
		fprintf(stderr, "%s", errors ? errors : "gdsio: the file cannot be written\n");
	free(out);
	free(errors);
	return status ? -EIO : 0;
}

static int prepare_file(struct sweep *s)
{
	const struct sweep_args *a = s->a;
	const bool write = gdsio_is_write(a->rw);
	bool there, stamped;

	if (look_at_file(a, &there, &stamped))
		return -EIO;
	if (write && there && !stamped && !a->overwrite) {
		gdsio_err("%s: there is a file that gdsio has not written, and -I %d would write "
			  "into it; --overwrite, or another -f", a->file, a->rw);
		return -EIO;
	}
	if (!there && make_file(a))
		return -EIO;
	s->verify = !write && !a->no_verify && (!there || stamped);
	if (!write && !a->no_verify && !s->verify)
		gdsio_err("%s has no stamps of gdsio: nothing is compared", a->file);
	return 0;
}

/* -- a point -- */

static struct json_object *find_old(const struct sweep *s, uint64_t size, unsigned int threads,
				    const char *way)
{
	struct json_object *list = sweep_get(s->old, "points"), *p;
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		p = json_object_array_get_idx(list, i);
		if (sweep_int(p, "io_bytes") == size && sweep_int(p, "threads") == threads &&
		    !strcmp(sweep_text(p, "way"), way) && sweep_result(p))
			return p;
	}
	return NULL;
}

/* The last line of what a run said, which names cause and next step. */
static const char *last_line(char *text)
{
	size_t n = text ? strlen(text) : 0;
	char *line;

	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	if (!n)
		return "it ended without a message";
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

static void add_child(struct json_object *point, struct json_object *child)
{
	struct json_object *jobs = sweep_get(child, "jobs"), *passes = sweep_get(child, "passes");

	if (jobs && json_object_array_length(jobs))
		json_object_object_add(point, "job",
				       json_object_get(json_object_array_get_idx(jobs, 0)));
	json_object_object_add(point, "passes", json_object_get(passes));
}

static int command_of(const struct sweep *s, uint64_t size, unsigned int threads,
		      const struct sweep_way *way, struct command *c)
{
	const struct sweep_args *a = s->a;

	*c = (struct command){ 0 };
	word(c, "gdsio");
	word(c, "-f");
	word(c, a->file);
	number(c, "-d", a->gpu);
	number(c, "-w", threads);
	number(c, "-s", a->data);
	number(c, "-i", size);
	number(c, "-I", a->rw);
	number(c, "-x", way->xfer);
	if (a->seconds)
		number(c, "-T", a->seconds);
	if (gdsio_has_depth(way->xfer))
		number(c, "-B", a->batch);
	/* memory that is not registered is what that route is for */
	if (!strcmp(way->name, "staged"))
		word(c, "-b");
	if (s->verify)
		word(c, "--verify-after");
	word(c, "--json");
	word(c, "--allow-fallback");
	return way->route ? write_config(c, way->name) : 0;
}

/* The caller owns it; NULL: interrupted, or an error that was told. */
static struct json_object *measure(struct sweep *s, uint64_t size, unsigned int threads,
				   const struct sweep_way *way)
{
	struct json_object *point = json_object_new_object(), *child = NULL;
	char *out = NULL, *errors = NULL;
	struct command c;
	int status;

	if (command_of(s, size, threads, way, &c)) {
		json_object_put(point);
		return NULL;
	}
	status = run(&c, &out, &errors);
	child = out && *out ? json_tokener_parse(out) : NULL;
	json_object_object_add(point, "io_bytes", json_object_new_uint64(size));
	json_object_object_add(point, "threads", json_object_new_uint64(threads));
	json_object_object_add(point, "way", json_object_new_string(way->name));
	json_object_object_add(point, "status", json_object_new_int(status));
	json_object_object_add(point, "error", status || !child ?
			       json_object_new_string(last_line(errors)) : NULL);
	if (child)
		add_child(point, child);
	json_object_put(child);
	free(out);
	free(errors);
	if (!stopped && status != 130)
		return point;
	stopped = 1;
	json_object_put(point);
	return NULL;
}

/* -- the document -- */

static struct json_object *settings(const struct sweep_args *a)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "file", json_object_new_string(a->file));
	json_object_object_add(o, "gpu", json_object_new_uint64(a->gpu));
	json_object_object_add(o, "data_bytes", json_object_new_uint64(a->data));
	json_object_object_add(o, "seconds", json_object_new_uint64(a->seconds));
	json_object_object_add(o, "batch", json_object_new_uint64(a->batch));
	json_object_object_add(o, "io_type", json_object_new_string(gdsio_rw_name(a->rw)));
	json_object_object_add(o, "verify", json_object_new_boolean(!a->no_verify));
	return o;
}

static void new_document(struct sweep *s)
{
	struct json_object *ways = json_object_new_array();
	char text[32];
	time_t now = time(NULL);
	struct tm tm;
	unsigned int i;

	s->doc = json_object_new_object();
	s->points = json_object_new_array();
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	json_object_object_add(s->doc, "gdsio_sweep", json_object_new_int(SWEEP_FORMAT));
	json_object_object_add(s->doc, "complete", json_object_new_boolean(false));
	json_object_object_add(s->doc, "began", json_object_new_string(text));
	json_object_object_add(s->doc, "machine", gdsio_json_machine());
	json_object_object_add(s->doc, "settings", settings(s->a));
	for (i = 0; i < s->a->ways; i++)
		json_object_array_add(ways, json_object_new_string(s->a->way[i].name));
	json_object_object_add(s->doc, "ways", ways);
	json_object_object_add(s->doc, "points_asked", json_object_new_uint64(s->all));
	json_object_object_add(s->doc, "points", s->points);
}

/* Whole, or not at all: under its name stands no half page. */
static int write_one(struct sweep *s, const char *suffix,
		     void (*write)(FILE *f, struct json_object *doc))
{
	char path[PATH_MAX], tmp[PATH_MAX + 8];
	FILE *f;
	bool bad;

	snprintf(path, sizeof(path), "%s.%s", s->a->out, suffix);
	snprintf(tmp, sizeof(tmp), "%s.new", path);
	f = fopen(tmp, "we");
	if (f) {
		write(f, s->doc);
		bad = ferror(f);
		if (!fclose(f) && !bad && !rename(tmp, path))
			return 0;
	}
	gdsio_err("%s: %s; give a folder that can be written with --out", path, strerror(errno));
	return -EIO;
}

static void write_json(FILE *f, struct json_object *doc)
{
	fputs(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY |
					     JSON_C_TO_STRING_NOSLASHESCAPE), f);
	fputc('\n', f);
}

static int write_both(struct sweep *s)
{
	json_object_object_add(s->doc, "complete", json_object_new_boolean(s->done == s->all));
	return write_one(s, "json", write_json) || write_one(s, "html", sweep_page) ? -EIO : 0;
}

static void read_old(struct sweep *s)
{
	struct json_object *now = settings(s->a);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s.json", s->a->out);
	s->old = json_object_from_file(path);
	if (!s->old || !json_object_equal(sweep_get(s->old, "settings"), now)) {
		gdsio_err("%s: %s; all points are measured", path,
			  s->old ? "its settings are others" : "there is none");
		json_object_put(s->old);
		s->old = NULL;
	}
	json_object_put(now);
}

/* -- all points -- */

static void tell(const struct sweep *s, struct json_object *point, bool old)
{
	const double seconds = (gdsio_now_ns() - s->began_ns) / 1e9;
	struct json_object *r = sweep_result(point);
	char size[24], routes[160], rates[160];
	unsigned int left = 0;

	if (s->measured)
		left = (unsigned int)(seconds / s->measured * (s->all - s->done) + 0.5);
	fprintf(stderr, "[%u/%u] %s x %" PRIu64 " %s: ", s->done, s->all,
		gdsio_size_text(sweep_int(point, "io_bytes"), size), sweep_int(point, "threads"),
		sweep_text(point, "way"));
	if (r)
		fprintf(stderr, "%s GiB/s by %s, p99 %.0f us, %s", sweep_rates(point, rates,
			sizeof(rates)), sweep_routes(point, routes, sizeof(routes)),
			sweep_real(sweep_get(r, "latency_us"), "p99"), sweep_checksum(point));
	else
		fprintf(stderr, "failed: %s", sweep_text(point, "error"));
	fprintf(stderr, "%s; %u min %02u s left\n", old ? " (of the last sweep)" : "", left / 60,
		left % 60);
}

static int one_point(struct sweep *s, uint64_t size, unsigned int threads,
		     const struct sweep_way *way)
{
	struct json_object *point = json_object_get(find_old(s, size, threads, way->name));
	const bool old = point;

	if (!point)
		point = measure(s, size, threads, way);
	if (!point)
		return -EIO;
	json_object_array_add(s->points, point);
	s->done++;
	s->measured += !old;
	tell(s, point, old);
	return write_both(s);
}

static int all_points(struct sweep *s)
{
	const struct sweep_args *a = s->a;
	unsigned int i, t, w;
	int err = 0;

	for (t = 0; t < a->thread_counts; t++)
		for (i = 0; i < a->sizes; i++)
			for (w = 0; w < a->ways && !err && !stopped; w++)
				err = one_point(s, a->size[i], a->threads[t], &a->way[w]);
	return stopped ? -EINTR : err;
}

int gdsio_sweep(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
	static struct sweep_args args;
	struct sweep s = { .a = &args };
	char why[512];
	int err;

	if (sweep_args_parse(argc, argv, &args, why, sizeof(why))) {
		gdsio_err("%s (gdsio sweep -h shows all options)", why);
		return 2;
	}
	if (args.help) {
		fputs(help, stdout);
		return 0;
	}
	s.all = args.sizes * args.thread_counts * args.ways;
	if (args.resume)
		read_old(&s);
	if (prepare_file(&s))
		return 1;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	new_document(&s);
	s.began_ns = gdsio_now_ns();
	err = write_both(&s);
	if (!err)
		err = all_points(&s);
	json_object_put(s.doc);
	json_object_put(s.old);
	if (err == -EINTR)
		gdsio_err("interrupted after %u of %u points; %s.html and %s.json have them, "
			  "--resume goes on", s.done, s.all, args.out, args.out);
	else if (!err)
		printf("%s.html\n%s.json\n", args.out, args.out);
	return err == -EINTR ? 130 : err ? 1 : 0;
}
