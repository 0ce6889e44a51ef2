// SPDX-License-Identifier: MIT
/*
 * differ.c - what a library does, case by case: to compare two of them.
 *
 *   differ --list
 *   differ --lib LIBRARY --dir DIR [CASE...]
 *
 * Runs all cases, or the named ones, one after another in this process and prints for each
 * `case<TAB>result`. The library is opened at the first case. A case that crashes or hangs
 * ends the process, after what it saw until then and `died: SIGNAL` or `hung` was printed.
 * tests/gpu/differences runs it with two libraries and compares.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "differ.h"

#define LIMIT_S 15		/* a case that takes longer hangs */
#define MOST_CLOSES 64
#define ORDINARY \
	"{ \"properties\": { \"allow_compat_mode\": true },\n" \
	"  \"execution\": { \"parallel_io\": true, \"max_io_threads\": 4 } }\n"

struct d_lib lib;

static const struct d_case *const tables[] = {
	driver_cases, handle_cases, buffer_cases, io_cases, batch_cases, stream_cases,
	param_cases, stats_cases,
};

static char result[8192];
static size_t used;
static const char *running;
static jmp_buf leave;
static int opened[64];		/* descriptors that the case asked for */
static unsigned int nopened;

/* -- what was seen -- */

void d_say(const char *fmt, ...)
{
	va_list ap;
	int n;

	if (used && used < sizeof(result) - 1)
		result[used++] = ' ';
	va_start(ap, fmt);
	n = vsnprintf(result + used, sizeof(result) - used, fmt, ap);
	va_end(ap);
	used += n;
	if (used >= sizeof(result))
		used = sizeof(result) - 1;
}

void d_err(const char *step, CUfileError_t e)
{
	if (e.cu_err)
		d_say("%s=%d/%d", step, (int)e.err, (int)e.cu_err);
	else
		d_say("%s=%d", step, (int)e.err);
}

void d_io(const char *step, ssize_t n)
{
	int err = errno;
	const char *name = strerrorname_np(err);

	if (n != -1)
		d_say("%s=%zd", step, n);
	else if (name)
		d_say("%s=-1/%s", step, name);
	else
		d_say("%s=-1/%d", step, err);
}

void d_num(const char *step, long long n)
{
	d_say("%s=%lld", step, n);
}

void d_flag(const char *step, bool yes)
{
	d_say("%s=%s", step, yes ? "yes" : "no");
}

void d_not_here(const char *why)
{
	used = 0;
	d_say("n/a: %s", why);
	longjmp(leave, 1);
}

/* -- pieces -- */

unsigned char d_byte(size_t off)
{
	return off * 7 + off / 4096 + 1;
}

void *d_ptr(const struct d *d, size_t off)
{
	return (void *)(uintptr_t)(d->mem + off);
}

void d_bytes(const char *step, const unsigned char *p, size_t len, size_t off)
{
	size_t i;

	for (i = 0; i < len && p[i] == d_byte(off + i); i++)
		;
	if (i == len)
		d_say("%s=ok", step);
	else
		d_say("%s=wrong@%zu", step, i);
}

void d_data(struct d *d, const char *step, size_t mem_off, size_t len, size_t off)
{
	unsigned char *buf = malloc(len + 1);

	if (!buf)
		t_die("out of memory");
	t_gpu_get(buf, d->mem + mem_off, len);
	d_bytes(step, buf, len, off);
	free(buf);
}

int d_open(struct d *d, const char *path, int flags)
{
	d->fd = open(path, flags | O_CLOEXEC, 0644);
	if (d->fd < 0)
		d_say("open=%s", strerrorname_np(errno));
	else if (nopened < sizeof(opened) / sizeof(opened[0]))
		opened[nopened++] = d->fd;
	return d->fd;
}

CUfileError_t d_register(struct d *d, int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	descr.handle.fd = fd;
	d->fh = NULL;
	return lib.HandleRegister(&d->fh, &descr);
}

void d_file(struct d *d, int flags)
{
	CUfileError_t e;

	if (d_open(d, "data", flags) < 0)
		return;
	e = d_register(d, d->fd);
	if (e.err || !d->fh)
		d_err("register", e);
}

void *d_cuda(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f)
		d_not_here("this CUDA driver is the simulator's, and lacks a function");
	return f;
}

/* -- running them -- */

static void print_result(const char *end)
{
	char line[sizeof(result) + 300];
	int n;

	n = snprintf(line, sizeof(line), "%s\t%s%s%s\n", running, result,
		     *end && used ? " " : "", end);
	if (write(STDOUT_FILENO, line, n) != n)
		_exit(3);
}

/* What is printed cannot be made worse by a crash inside: the process ends here. */
static void on_signal(int sig)
{
	char end[64];

	if (sig == SIGALRM)
		snprintf(end, sizeof(end), "hung");
	else
		snprintf(end, sizeof(end), "died: SIG%s", sigabbrev_np(sig));
	print_result(end);
	_exit(0);
}

static void load(const char *path)
{
	void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!h)
		t_die("%s", dlerror());
#define X(name) *(void **)&lib.name = dlsym(h, "cuFile" #name);
	D_FUNCTIONS(X)
#undef X
}

static void write_file(const char *name, const void *p, size_t n)
{
	int fd = t_open(name, O_RDWR | O_CREAT | O_TRUNC);

	if (write(fd, p, n) != (ssize_t)n)
		t_die("%s: %s", name, strerror(errno));
	close(fd);
}

static void make_data(void)
{
	static unsigned char buf[FILE_SIZE];
	size_t i;

	for (i = 0; i < FILE_SIZE; i++)
		buf[i] = d_byte(i);
	write_file("data", buf, sizeof(buf));
}

static void set_env(const char *env, bool on)
{
	char name[256], *value;

	snprintf(name, sizeof(name), "%s", env);
	value = strchr(name, '=');
	*value++ = '\0';
	if (on)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* The folder and the environment of the case; it is the working directory afterwards. */
static void prepare(const struct d_case *c, const char *dir)
{
	const char *config = c->config ? c->config : ORDINARY;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, c->name);
	if ((mkdir(path, 0755) && errno != EEXIST) || chdir(path))
		t_die("%s: %s", path, strerror(errno));
	make_data();
	write_file("cufile.json", config, strlen(config));
	snprintf(path, sizeof(path), "%s/%s/cufile.json", dir, c->name);
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	unsetenv("CUFILE_LOGFILE_PATH");
	if (c->env)
		set_env(c->env, true);
}

static bool has(const char *function)
{
#define X(name) \
	if (!strcmp(function, #name)) \
		return lib.name;
	D_FUNCTIONS(X)
#undef X
	t_die("no function %s", function);
}

/*
 * Whatever a case left open is closed. When another one follows, what it set for the next open
 * is used up as well.
 */
static void close_all(bool forget)
{
	int i;

	for (i = 0; i < MOST_CLOSES && lib.UseCount() > 0; i++)
		lib.DriverClose_v2();
	if (forget) {
		lib.SetStatsLevel(0);
		lib.SetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, true);
		if (!lib.DriverOpen().err)
			lib.DriverClose_v2();
	}
	while (nopened)
		close(opened[--nopened]);
}

static void run(struct d *d, const struct d_case *c, const char *dir, const char *library,
		bool alone)
{
	running = c->name;
	used = 0;
	result[0] = '\0';
	prepare(c, dir);
	if (!lib.DriverOpen)
		load(library);
	if (!d->mem) {
		t_gpu_open(&d->gpu, 0);
		d->mem = t_gpu_alloc(MEM_SIZE);
	}
	cuCtxSetCurrent(d->gpu.ctx);
	cuMemsetD8(d->mem, 0xa5, MEM_SIZE);
	cuCtxSynchronize();
	d->fh = NULL;
	alarm(LIMIT_S);
	if (c->needs && !has(c->needs))
		d_say("no such function");
	else if (!setjmp(leave))
		c->run(d, c->arg);
	alarm(0);
	print_result("");
	if (c->env)
		set_env(c->env, false);
	alarm(LIMIT_S);
	used = 0;
	snprintf(result, sizeof(result), "after the case:");
	used = strlen(result);
	close_all(!alone);
	alarm(0);
}

static bool wanted(const char *name, char **names, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return !n;
}

static void __attribute__((noreturn)) usage(void)
{
	fputs("usage: differ --list, or differ --lib LIBRARY --dir DIR [CASE...]\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	static const int fatal[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM };
	static const struct option opts[] = {
		{ "lib", 1, 0, 'b' }, { "dir", 1, 0, 'd' }, { "list", 0, 0, 'l' }, { 0 },
	};
	const char *library = NULL, *dir = NULL;
	const struct d_case *c;
	struct d d = { 0 };
	bool list = false;
	int o, done = 0;
	size_t i;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (o) {
		case 'b': library = realpath(optarg, NULL); break;
		case 'd': dir = realpath(optarg, NULL); break;
		case 'l': list = true; break;
		default: usage();
		}
	}
	if (!list && (!library || !dir))
		usage();
	for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		signal(fatal[i], on_signal);
	signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (c = tables[i]; c->name; c++) {
			if (!wanted(c->name, argv + optind, argc - optind))
				continue;
			if (list)
				puts(c->name);
			else
				run(&d, c, dir, library, argc - optind == 1);
			done++;
		}
	if (!done)
		t_die("no such case");
	return 0;
}
