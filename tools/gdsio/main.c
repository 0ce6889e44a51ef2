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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdsio.h"
#include "json.h"
#include "machine.h"
#include "sweep.h"

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
	"       gdsio JOBFILE [options]\n"
	"       gdsio sweep ...        many runs and a page of plots: gdsio sweep -h\n"
	"\n"
	"a job group; each -f or -D begins the next one\n"
	"  -f FILE          file or block device that the threads share\n"
	"  -D DIR           folder: a file gdsio.0, gdsio.1, ... for each thread\n"
	"  -d GPU           its number\n"
	"  -w THREADS\n"
	"  -n NODE          NUMA node: the threads run, and host memory lies, there\n"
	"\n"
	"of the whole run; sizes have the suffixes K, M and G\n"
	"  -s SIZE          data set of each job, split among its threads\n"
	"  -i SIZE          bytes at once, or MIN:MAX:STEP\n"
	"  -o OFFSET        where the data set starts in the file (0)\n"
	"  -I 0|1|2|3       read, write, read at random, write at random (0)\n"
	"  -x TYPE          a number or its name (0)\n"
	"     0 GPUD              storage and GPU, by cuFile\n"
	"     1 CPUONLY           storage and host memory\n"
	"     2 CPU_GPU           storage and host memory, and a copy to or from the GPU\n"
	"     3 CPU_ASYNC_GPU     the same, with copies that overlap\n"
	"     4 CPU_CACHED_GPU    the same as 2 through the page cache\n"
	"     5 GPUD_ASYNC        cuFile's stream operations, one at a time\n"
	"     6 GPU_BATCH         cuFile's batches of -B entries\n"
	"     7 GPU_BATCH_STREAM  -B stream operations at a time\n"
	"  -m 0|1|2|3|4     memory: cudaMalloc, cuMem (VMM), cudaMallocHost, malloc, mmap (0)\n"
	"  -B ENTRIES       of a batch (1)\n"
	"  -M PERCENT       of reads among the entries of a batch\n"
	"  -T SECONDS       start over until the time is over\n"
	"  -U               at random, at any byte\n"
	"  -k SEED          of random offsets, sizes and content (0)\n"
	"  -R, -F           write random content; fill the buffer anew for each write\n"
	"  -V               write: stamp, then read back and compare; read: compare\n"
	"  --verify-after   read: compare in a pass of its own, after the one that counts\n"
	"  -b               do not register the GPU buffers\n"
	"  -a STEPS         buffers begin so many 4-KiB steps into a GPU page, 0 to 15 (0)\n"
	"  -O 0|1           open with O_DIRECT, or without (0)\n"
	"  -p               NVLink routes (taken; there are none)\n"
	"  -P URL           RDMA target (refused; there is no RDMA)\n"
	"  -J               a result for each job group, too\n"
	"  --json           one JSON document instead of lines\n"
	"  --progress       a line each second on standard error, also where it is no terminal\n"
	"  --allow-fallback exit status 0 also when whole blocks did not go direct\n"
	"  -h, -v           this help, version\n"
	"\n"
	"exit status: 0; 1 an error; 2 wrong usage; 3 with a type of cuFile (0, 5, 6, 7), whole\n"
	"4-KiB blocks did not go direct; 130 interrupted\n";

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

/* What a run tells: lines, or a document that is printed at the end. */
struct output {
	struct json_object *doc;	/* NULL: lines */
	bool fell_back;
};

static void print_jobs(const struct gdsio_run *run, const struct gdsio_result *all)
{
	const struct gdsio_args *a = run->args;
	struct gdsio_result *one = malloc(sizeof(*one));
	unsigned int i;

	for (i = 0; one && i < a->jobs; i++) {
		printf("Job: %u %s GPU: %d NUMA: %d\n", i, a->job[i].path, a->job[i].gpu,
		       a->job[i].node);
		gdsio_job_result(run, i, all, one);
		gdsio_report(stdout, one);
	}
	free(one);
	puts("Job: all");
}

/* One pass and its report. */
static int do_pass(struct gdsio_run *run, const struct gdsio_pass *pass, struct output *out)
{
	static struct gdsio_result result;
	int err;

	if (pass->check && !out->doc) {
		puts("Verifying data");
		fflush(stdout);
	}
	err = gdsio_pass(run, pass, &result);
	if (err && err != -EINTR)
		return err;
	out->fell_back |= gdsio_fell_back(&result);
	if (out->doc) {
		gdsio_json_add_pass(out->doc, run, &result);
		return err;
	}
	if (run->args->per_job)
		print_jobs(run, &result);
	gdsio_report(stdout, &result);
	gdsio_print_links(stdout, run);
	fflush(stdout);
	return err;
}

static int do_passes(struct gdsio_run *run, struct output *out)
{
	const struct gdsio_args *a = run->args;
	const bool write = gdsio_is_write(a->rw);
	struct gdsio_pass pass = { .rw = a->rw, .timed = true };
	int err;

	pass.stamp = write && a->verify;
	pass.check = !write && a->verify;
	err = do_pass(run, &pass, out);
	if (err || !(pass.stamp || a->verify_after))
		return err;
	err = gdsio_clear(run);
	if (err)
		return err;
	/* random pieces are the same ones again */
	pass.rw = gdsio_is_random(a->rw) ? RW_RANDREAD : RW_READ;
	pass.stamp = false;
	pass.check = true;
	pass.timed = false;
	return do_pass(run, &pass, out);
}

static enum status status_of(int err, const struct gdsio_args *args, bool fell_back)
{
	if (err == -EINTR)
		return EXIT_INTERRUPTED;
	if (err)
		return EXIT_FAILED;
	return fell_back && !args->allow_fallback ? EXIT_FELL_BACK : EXIT_OK;
}

static enum status do_run(const struct gdsio_args *args)
{
	static struct gdsio_run run;
	struct output out = { 0 };
	enum status status;
	int err;

	catch_sigint();
	err = gdsio_run_open(&run, args);
	if (!err && args->json)
		out.doc = gdsio_json_run(&run);
	if (!err)
		err = do_passes(&run, &out);
	gdsio_run_close(&run);
	status = status_of(err, args, out.fell_back);
	if (out.doc) {
		json_object_object_add(out.doc, "status", json_object_new_int(status));
		puts(json_object_to_json_string_ext(out.doc, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
		json_object_put(out.doc);
	}
	if (ferror(stdout) || fflush(stdout)) {
		gdsio_err("standard output: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct gdsio_args args;
	char why[PATH_MAX + 256];

	if (argc > 1 && !strcmp(argv[1], "sweep"))
		return gdsio_sweep(argc - 1, argv + 1);
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
