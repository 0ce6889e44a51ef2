// SPDX-License-Identifier: MIT
/*
 * gdsio - how fast files go to and from GPU memory, and which way.
 *
 * Options and the result line are those that scripts for GPUDirect Storage know. Beyond
 * them it tells the bytes of each route, why whole blocks did not go direct, and says so in
 * its exit status.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gdsio.h"

#ifndef GDSIO_VERSION
#define GDSIO_VERSION "unknown"
#endif

enum status {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_FELL_BACK = 3,
	EXIT_INTERRUPTED = 130	/* 128 + SIGINT */
};

static const char help[] =
	"usage: gdsio {-f FILE | -D DIR} -d GPU -w THREADS [more job groups]\n"
	"             -s SIZE -i SIZE|MIN:MAX:STEP [options]\n"
	"\n"
	"a job group; each -f or -D begins the next one\n"
	"  -f FILE          file or block device that the threads share\n"
	"  -D DIR           folder: a file gdsio.0, gdsio.1, ... for each thread\n"
	"  -d GPU           its number\n"
	"  -w THREADS\n"
	"  -n NODE          NUMA node (taken, no effect in this version)\n"
	"\n"
	"of the whole run; sizes have the suffixes K, M and G\n"
	"  -s SIZE          data set of each job, split among its threads\n"
	"  -i SIZE          bytes at once, or MIN:MAX:STEP\n"
	"  -o OFFSET        where the data set starts in the file (0)\n"
	"  -I 0|1|2|3       read, write, read at random, write at random (0)\n"
	"  -x 0|1|2         GPU direct by cuFile, host memory, host memory and a copy (0)\n"
	"  -T SECONDS       start over until the time is over\n"
	"  -V               write: stamp, then read back and compare; read: compare\n"
	"  -b               do not register the GPU buffers\n"
	"  -O 0|1           open with O_DIRECT, or without (0)\n"
	"  -k SEED          of random offsets and sizes (0)\n"
	"  --allow-fallback exit status 0 also when whole blocks did not go direct\n"
	"  -h, -v           this help, version\n"
	"\n"
	"exit status: 0; 1 an error; 2 wrong usage; 3 with -x 0, whole 4-KiB blocks did not go\n"
	"direct; 130 interrupted\n";

void gdsio_err(const char *fmt, ...)
{
	char text[PATH_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* one call: threads do not mix their lines */
	fprintf(stderr, "gdsio: %s\n", text);
}

int gdsio_cuda(CUresult res, const char *what)
{
	const char *name = NULL, *text = NULL;

	if (res == CUDA_SUCCESS)
		return 0;
	cuGetErrorName(res, &name);
	cuGetErrorString(res, &text);
	gdsio_err("%s: %s (%s)", what, text ? text : "CUDA error", name ? name : "unknown");
	return -EIO;
}

const char *gdsio_errno_text(int err)
{
	return IS_CUFILE_ERR(err) ? CUFILE_ERRSTR(err) : strerror(err);
}

const char *gdsio_errno_name(int err)
{
	const char *name = strerrorname_np(err);

	if (IS_CUFILE_ERR(err))
		return "cuFile error";
	return name ? name : "unknown errno";
}

static void on_sigint(int sig)
{
	gdsio_stop(STOP_SIGNAL);
}

/* The second one ends the process as if there were no handler. */
static void catch_sigint(void)
{
	struct sigaction sa = { .sa_handler = on_sigint, .sa_flags = SA_RESETHAND | SA_RESTART };

	sigaction(SIGINT, &sa, NULL);
}

static void note_verify(bool check)
{
	if (!check)
		return;
	puts("Verifying data");
	fflush(stdout);
}

/* One pass and its report. */
static int do_pass(struct gdsio_run *run, const struct gdsio_pass *pass, bool *fell_back)
{
	struct gdsio_result result;
	int err;

	note_verify(pass->check);
	err = gdsio_pass(run, pass, &result);
	if (err && err != -EINTR)
		return err;
	gdsio_report(stdout, &result);
	*fell_back |= gdsio_fell_back(&result);
	return err;
}

static int do_passes(struct gdsio_run *run, bool *fell_back)
{
	const struct gdsio_args *a = run->args;
	struct gdsio_pass pass = { .rw = a->rw };
	int err;

	if (gdsio_is_write(a->rw))
		pass.stamp = a->verify;
	else
		pass.check = a->verify;
	err = do_pass(run, &pass, fell_back);
	if (err || !pass.stamp)
		return err;
	err = gdsio_clear(run);
	if (err)
		return err;
	/* random pieces are the same ones again */
	pass.rw = a->rw == RW_WRITE ? RW_READ : RW_RANDREAD;
	pass.stamp = false;
	pass.check = true;
	return do_pass(run, &pass, fell_back);
}

static enum status do_run(const struct gdsio_args *args)
{
	static struct gdsio_run run;
	bool fell_back = false;
	int err;

	catch_sigint();
	err = gdsio_run_open(&run, args);
	if (!err)
		err = do_passes(&run, &fell_back);
	gdsio_run_close(&run);
	if (ferror(stdout) || fflush(stdout)) {
		gdsio_err("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (err == -EINTR)
		return EXIT_INTERRUPTED;
	if (err)
		return EXIT_FAILED;
	return fell_back && !args->allow_fallback ? EXIT_FELL_BACK : EXIT_OK;
}

int main(int argc, char **argv)
{
	static struct gdsio_args args;
	char why[PATH_MAX + 256];

	if (gdsio_args_parse(argc, argv, &args, why, sizeof(why))) {
		gdsio_err("%s (gdsio -h shows all options)", why);
		return EXIT_USAGE;
	}
	if (args.help) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (args.version) {
		puts("gdsio version :" GDSIO_VERSION " (OpenGDS)");
		return EXIT_OK;
	}
	if (args.verify && args.seconds) {
		gdsio_err("-V has no effect with -T: nothing is verified");
		args.verify = false;
	}
	return do_run(&args);
}
