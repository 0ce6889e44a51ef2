// SPDX-License-Identifier: MIT
/*
 * t_gdsio_jobfile.c - gdsio's job files.
 *
 * Guards that each key means what its option means, that variables and comments are what
 * they are in the vendor's files, and that a wrong line is refused with file, line and what
 * would be right. Fails when a key is lost or a mistake passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "../../tools/gdsio/args.c"

#include "t_gdsio.h"

static char path[] = "/tmp/t_gdsio_jobfile.XXXXXX";

static void put_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void job_ok(const char *text)
{
	put_file(text);
	parse_ok(path);
}

static void job_bad(const char *text, unsigned int line, const char *says)
{
	char place[128];

	put_file(text);
	parse_bad(path, says);
	snprintf(place, sizeof(place), "%s:%u: ", path, line);
	if (line && strncmp(why, place, strlen(place)))
		fail_msg("\"%s\" does not begin with %s", why, place);
}

static void all_keys(void **state)
{
	job_ok("# a comment\n"
	       "[global]\n"
	       "name = the name\n"
	       "xfer_type=6\n"
	       "rw=RandWrite  # a comment behind a value\n"
	       "bs=64K\n"
	       "io_size=64K\n"
	       "size=1G\n"
	       "runtime=30\n"
	       "do_verify=1\n"
	       "skip_bufregister=1\n"
	       "enable_nvlinks=1\n"
	       "random_seed=3456\n"
	       "fill_random=1\n"
	       "refill_buffer=1\n"
	       "unaligned_random=1\n"
	       "start_offset=1M\n"
	       "mem_type=3\n"
	       "fd_type=1\n"
	       "batch_size=16\n"
	       "\n"
	       "[job0]\n"
	       "numa_node=1\n"
	       "gpu_dev_id=2\n"
	       "num_threads=4\n"
	       "filename=/a#b\n"
	       "\n"
	       "[job12]\n"
	       "num_threads=5\n"
	       "filename=/c\n"
	       "start_offset=0\n"
	       "size=2G\n");
	assert_string_equal(args.name, "the name");
	assert_int_equal(args.xfer, XFER_GPU_BATCH);
	assert_int_equal(args.rw, RW_RANDWRITE);
	assert_int_equal(args.io.min, 64 * K);
	assert_int_equal(args.seconds, 30);
	assert_true(args.verify && args.no_register && args.nvlink && args.random_fill);
	assert_true(args.refill && args.unaligned && args.buffered && !args.dirs);
	assert_int_equal(args.seed, 3456);
	assert_int_equal(args.mem, MEM_MALLOC);
	assert_int_equal(args.batch, 16);
	assert_int_equal(args.jobs, 2);
	assert_int_equal(args.threads, 9);
	assert_string_equal(args.job[0].path, "/a#b");
	assert_int_equal(args.job[0].node, 1);
	assert_int_equal(args.job[0].gpu, 2);
	assert_int_equal(args.job[0].threads, 4);
	assert_int_equal(args.job[0].size, G);
	assert_int_equal(args.job[0].start, M);
	assert_string_equal(args.job[1].path, "/c");
	assert_int_equal(args.job[1].size, 2 * G);
	assert_int_equal(args.job[1].start, 0);
}

static void flags_can_be_off(void **state)
{
	job_ok("[global]\nbs=4K:64K:4K\nruntime=0\ndo_verify=0\nskip_bufregister=false\n\n"
	       "[job0]\ngpu_dev_id=0\nnum_threads=1\nsize=1M\ndirectory=/d\n");
	assert_false(args.verify || args.no_register);
	assert_int_equal(args.seconds, 0);
	assert_int_equal(args.io.max, 64 * K);
	assert_true(args.dirs);
}

static void options_beside_it(void **state)
{
	char line[512];

	put_file("[global]\nbs=4K\nsize=1M\n\n[job0]\ngpu_dev_id=0\nnum_threads=1\nfilename=a\n");
	parse_ok(path);
	assert_false(args.json);
	snprintf(line, sizeof(line), "%s --json --allow-fallback", path);
	parse_ok(line);
	assert_true(args.json && args.allow_fallback);
	snprintf(line, sizeof(line), "%s -f b", path);
	parse_bad(line, "leave out -f and -D");
	snprintf(line, sizeof(line), "%s %s", path, path);
	parse_bad(line, "one job file at a time");
	parse_bad("/no/such.gdsio", "/no/such.gdsio: No such file");
}

static void variables(void **state)
{
	setenv("T_GDSIO_X", "2", 1);
	setenv("T_GDSIO_DIR", "/mnt", 1);
	unsetenv("T_GDSIO_NONE");
	job_ok("[global]\nxfer_type=$T_GDSIO_X\nbs=${T_GDSIO_X}M\nsize=4M\n\n"
	       "[job0]\ngpu_dev_id=0\nnum_threads=1\nfilename=$T_GDSIO_DIR/$T_GDSIO_X/f\n");
	assert_int_equal(args.xfer, XFER_CPU_GPU);
	assert_int_equal(args.io.min, 2 * M);
	assert_string_equal(args.job[0].path, "/mnt/2/f");
	job_bad("[global]\nxfer_type=$T_GDSIO_NONE\n", 2, "$T_GDSIO_NONE is not set");
	job_bad("[global]\nname=a $ b\n", 2, "no name of a variable");
	job_bad("[global]\nname=${T_GDSIO_X\n", 2, "no name of a variable");
}

static void wrong_lines(void **state)
{
	static char much[70000];

	job_bad("xfer_type=0\n", 1, "xfer_type stands in no section");
	job_bad("[global]\nbs=4K\n\nsize=1M\n", 4, "size stands in no section (a blank line");
	job_bad("[global]\nspeed=1\n", 2, "speed is no key of a [global] section");
	job_bad("[global]\nfilename=a\n", 2, "filename is no key of a [global] section");
	job_bad("[job0]\nbs=4K\n", 2, "bs is no key of a [jobN] section");
	job_bad("[jobs]\n", 1, "[jobs] is no section");
	job_bad("[job]\n", 1, "[job] is no section");
	job_bad("[global\n", 1, "does not end with ]");
	job_bad("[global]\nbs\n", 2, "neither a section nor key=value");
	job_bad("[global]\nxfer_type=8\n", 2, "-x 8: unknown transfer type");
	job_bad("[global]\nrw=readwrite\n", 2, "rw=readwrite: it takes read, write");
	job_bad("[global]\ndo_verify=yes\n", 2, "do_verify=yes: it takes 0 or 1");
	job_bad("[global]\nbs=4K\nio_size=8K\n", 3, "bs and io_size are one thing");
	job_bad("[job0]\nfilename=a\nfilename=b\n", 3, "filename: this job has one already");
	job_bad("[job0]\nnum_threads=1\nnum_threads=1\n", 3, "num_threads: this job has one");
	job_bad("[job0]\nrdma_url=sockfs://a:1\n", 2, "no RDMA");
	job_bad("[job0]\nsize=0\n", 2, "-s 0");
	job_bad("[global]\nbs=4K\n\n[job0]\ngpu_dev_id=0\nnum_threads=1\nfilename=a\n", 0,
		"Give the size");
	memset(much, 'x', sizeof(much) - 1);
	memcpy(much, "[global]\nname=", 14);
	job_bad(much, 2, "the line is longer");
}

static int make(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int drop(void **state)
{
	return unlink(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_keys),
		cmocka_unit_test(flags_can_be_off),
		cmocka_unit_test(options_beside_it),
		cmocka_unit_test(variables),
		cmocka_unit_test(wrong_lines),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
