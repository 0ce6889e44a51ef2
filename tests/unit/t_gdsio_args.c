// SPDX-License-Identifier: MIT
/*
 * t_gdsio_args.c - gdsio's command line, its pieces and its result line.
 *
 * Guards what scripts rely on: options that mean what they meant, and a refusal with the
 * reason of those that cannot be meant together; threads that cover the data set once; the
 * columns of the result line, a share for each route, percentiles. Each of them fails here
 * when it changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "../../tools/gdsio/args.c"
#include "../../tools/gdsio/hist.c"
#include "../../tools/gdsio/pieces.c"
#include "../../tools/gdsio/report.c"

#include "t_gdsio.h"

/* -- the library, as far as the report asks it -- */

const char *ogds_route_name(uint32_t route)
{
	static const char *const name[] = { "nvfs", "p2pdma", "staged", "bar", "bounce", "host" };

	assert_true(route < OGDS_ROUTES);
	return name[route];
}

const char *ogds_reason_id(uint32_t reason)
{
	return reason == 7 ? "R-SEVEN" : reason == 70 ? "R-SEVENTY" : "R-UNKNOWN";
}

const char *ogds_reason_text(uint32_t reason)
{
	return "cause";
}

const char *ogds_reason_remedy(uint32_t reason)
{
	return "remedy";
}

/* -- the command line -- */

static void plain_line(void **state)
{
	parse_ok("-f F -d 2 -n 1 -w 4 -s 1G -i 1M -I 1 -x 0 -V");
	assert_int_equal(args.jobs, 1);
	assert_int_equal(args.threads, 4);
	assert_string_equal(args.job[0].path, "F");
	assert_int_equal(args.job[0].gpu, 2);
	assert_int_equal(args.job[0].node, 1);
	assert_int_equal(args.job[0].threads, 4);
	assert_false(args.dirs);
	assert_int_equal(args.size, G);
	assert_int_equal(args.io.min, M);
	assert_int_equal(args.io.max, M);
	assert_int_equal(args.io.step, 0);
	assert_int_equal(args.rw, RW_WRITE);
	assert_int_equal(args.xfer, XFER_GPUD);
	assert_true(args.verify);
	assert_false(args.no_register || args.buffered || args.allow_fallback);
	assert_int_equal(args.start, 0);
	assert_int_equal(args.seconds, 0);
}

static void all_options(void **state)
{
	parse_ok("-D /d -d 0 -w 1 -s 5000 -i 4K:64K:8K -I 3 -x 2 -T 15 -b -O 1 -k 99 -o 12K "
		 "--allow-fallback");
	assert_true(args.dirs);
	assert_int_equal(args.size, 5000);
	assert_int_equal(args.io.min, 4 * K);
	assert_int_equal(args.io.max, 64 * K);
	assert_int_equal(args.io.step, 8 * K);
	assert_int_equal(args.rw, RW_RANDWRITE);
	assert_int_equal(args.xfer, XFER_CPU_GPU);
	assert_int_equal(args.seconds, 15);
	assert_int_equal(args.seed, 99);
	assert_int_equal(args.start, 12 * K);
	assert_true(args.no_register && args.buffered && args.allow_fallback);
	parse_ok("-f F -d 0 -w 1 -s 1M -i 4K -O 0");
	assert_int_equal(args.rw, RW_READ);
	assert_false(args.buffered);
	/* host memory alone needs no GPU */
	parse_ok("-f F -w 1 -s 1M -i 4K -x 1");
}

static void job_groups(void **state)
{
	parse_ok("-f a -d 0 -n 0 -w 4 -f b -d 1 -n 1 -w 2 -s 1G -i 1M");
	assert_int_equal(args.jobs, 2);
	assert_int_equal(args.threads, 6);
	assert_string_equal(args.job[1].path, "b");
	assert_int_equal(args.job[1].gpu, 1);
	assert_int_equal(args.job[1].threads, 2);
	/* the file may stand last in its group */
	parse_ok("-s 1G -d 0 -w 4 -f a -d 1 -w 2 -f b -i 1M");
	assert_int_equal(args.jobs, 2);
	assert_string_equal(args.job[0].path, "a");
	assert_int_equal(args.job[0].gpu, 0);
	assert_string_equal(args.job[1].path, "b");
	assert_int_equal(args.job[1].gpu, 1);

	parse_bad("-f a -f b -d 0 -w 4 -s 1G -i 1M", "a: how many threads? Give -w");
	parse_bad("-f a -w 1 -f b -d 0 -w 4 -s 1G -i 1M", "a: which GPU? Give -d");
	parse_bad("-f a -d 0 -w 1 -d 1 -s 1G -i 1M", "job group 2 has no file");
	parse_bad("-f a -d 0 -w 1 -D b -d 0 -w 1 -s 1G -i 1M", "-f and -D exclude each other");
	parse_bad("-f a -d 0 -w 1000 -f b -d 0 -w 25 -s 1G -i 1M", "1025 threads in all");
}

static void too_many_groups(void **state)
{
	char line[1024] = "-s 1M -i 4K";
	size_t at = strlen(line);
	int i;

	for (i = 0; i <= GDSIO_MAX_JOBS; i++)
		at += snprintf(line + at, sizeof(line) - at, " -w 1");
	parse_bad("-w 1", "Give the size");
	parse_bad(line, "more than 64 job groups");
}

static void bad_values(void **state)
{
	parse_bad("", "-s");
	parse_bad("-s 1M", "-i");
	parse_bad("-s 1M -i 4K", "no file");
	parse_bad("-f", "-f needs a value");
	parse_bad("-f a -d 0 -w 0 -s 1M -i 4K", "-w 0");
	parse_bad("-f a -d 0 -w x -s 1M -i 4K", "-w x");
	parse_bad("-f a -d -1 -w 1 -s 1M -i 4K", "-d -1");
	parse_bad("-f a -d 256 -w 1 -s 1M -i 4K", "-d 256");
	parse_bad("-f a -d 0 -w 1 -s 0 -i 4K", "-s 0");
	parse_bad("-f a -d 0 -w 1 -s 1T -i 4K", "-s 1T");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 0", "-i 0");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 2G", "-i 2G");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 8K:4K:4K", "MIN is larger");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K:8K", "MIN:MAX:STEP");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K:8K:4K:4K", "MIN:MAX:STEP");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K:8K:0", "-i 0");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -I 4", "-I 4");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -O 2", "-O 2");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -T 0", "-T 0");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -o -4K", "-o -4K");
	parse_bad("-f a -d 0 -w 9 -s 8 -i 4K", "too few for 9 threads");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -q", "-q is no option");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K --none", "--none is no option");
}

static void other_options(void **state)
{
	parse_ok("-f a -d 0 -w 1 -s 1M -i 4K -p -m 1 -R -F -a 3 -J -b --json --progress");
	assert_true(args.nvlink && args.random_fill && args.refill && args.per_job);
	assert_true(args.json && args.progress);
	assert_int_equal(args.mem, MEM_VMM);
	assert_int_equal(args.align, 3);
	assert_int_equal(args.batch, 1);
	parse_ok("-f a -d 0 -w 1 -s 1M -i 4K -x 6 -B 16 -M 70");
	assert_int_equal(args.batch, 16);
	assert_int_equal(args.mix, 70);
	/* unaligned offsets are random ones */
	parse_ok("-f a -d 0 -w 1 -s 1M -i 4K -U");
	assert_true(args.unaligned);
	assert_int_equal(args.rw, RW_RANDREAD);
	parse_ok("-f a -d 0 -w 1 -s 1M -i 4K -U -I 1");
	assert_int_equal(args.rw, RW_RANDWRITE);
	parse_ok("-f a -d 0 -w 1 -s 1M -i 4K --verify-after -T 5");
	assert_true(args.verify_after);
}

static void transfer_types(void **state)
{
	static const char *const name[] = {
		"GPUD", "CPUONLY", "CPU_GPU", "CPU_ASYNC_GPU", "CPU_CACHED_GPU", "GPUD_ASYNC",
		"GPU_BATCH", "GPU_BATCH_STREAM",
	};
	char line[128];
	int i;

	assert_int_equal(XFERS, 8);
	for (i = 0; i < 8; i++) {
		snprintf(line, sizeof(line), "-f a -d 0 -w 1 -s 1M -i 4K -x %d", i);
		parse_ok(line);
		assert_int_equal(args.xfer, i);
		assert_string_equal(gdsio_xfer_name(args.xfer), name[i]);
		assert_int_equal(gdsio_by_cufile(args.xfer), i == 0 || i >= 5);
		/* through the page cache without being told */
		assert_int_equal(args.buffered, i == 4);
		snprintf(line, sizeof(line), "-f a -d 0 -w 1 -s 1M -i 4K -x %s", name[i]);
		parse_ok(line);
		assert_int_equal(args.xfer, i);
	}
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -x 8", "-x 8: unknown transfer type");
	parse_bad("-f a -d 0 -w 1 -s 1M -i 4K -x GPU", "-x GPU: unknown transfer type");
}

static void refused_together(void **state)
{
	static const struct {
		const char *options, *why;
	} bad[] = {
		{ "-x 0 -B 4", "-B: GPUD moves one piece" },
		{ "-x 5 -B 4", "-B: GPUD_ASYNC moves one piece" },
		{ "-x 0 -M 50", "-M: GPUD has no batches" },
		{ "-x 6 -M 50 -V", "-M with -V" },
		{ "-x 6 -M 0", "-M 0: it takes a number from 1 to 99" },
		{ "-x 6 -M 100", "-M 100" },
		{ "-x 6 -B 0", "-B 0: it takes a number from 1 to 16384" },
		{ "-m 5", "-m 5: it takes a number from 0 to 4" },
		{ "-a 16", "-a 16: it takes a number from 0 to 15" },
		{ "-x 2 -m 3", "-m 3 with -x 2: that type copies to GPU memory" },
		{ "-x 3 -m 2", "-m 2 with -x 3" },
		{ "-x 1 -m 1", "-m 1 with -x 1" },
		{ "-x 1 -a 1", "-a is about GPU buffers" },
		{ "-I 1 --verify-after", "--verify-after is for reads" },
		{ "-V --verify-after", "--verify-after is for reads" },
		{ "-P sockfs://h:1", "this library has no RDMA" },
	};
	char line[128];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "-f a -d 0 -w 1 -s 1M -i 4K %s", bad[i].options);
		parse_bad(line, bad[i].why);
	}
}

static void who_needs_a_gpu(void **state)
{
	parse_ok("-f a -w 1 -s 1M -i 4K -x 1");
	parse_ok("-f a -w 1 -s 1M -i 4K -x 0 -m 3");
	parse_ok("-f a -w 1 -s 1M -i 4K -x 6 -m 4");
	parse_bad("-f a -w 1 -s 1M -i 4K -x 0", "which GPU?");
	parse_bad("-f a -w 1 -s 1M -i 4K -x 1 -m 2", "which GPU?");
	parse_bad("-f a -w 1 -s 1M -i 4K -x 5 -m 3", "which GPU?");
}

static void help_needs_nothing_else(void **state)
{
	parse_ok("-h");
	assert_true(args.help);
	parse_ok("-v");
	assert_true(args.version);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 }, { "1", 1 }, { "4096", 4096 }, { "4K", 4 * K }, { "3m", 3 * M },
		{ "1G", G }, { "17179869183G", 17179869183UL * G },
	};
	static const char *const bad[] = {
		"", "K", "1KK", "1.5M", "-1", "+1", " 1", "1 ", "0x10", "1T", "17179869184G",
		"99999999999999999999", "1000000000000000000000000000",
	};
	char text[24];
	uint64_t bytes;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (gdsio_parse_size(good[i].text, &bytes) || bytes != good[i].bytes)
			fail_msg("size '%s'", good[i].text);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!gdsio_parse_size(bad[i], &bytes))
			fail_msg("size '%s' is taken", bad[i]);
	}
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		gdsio_parse_size(gdsio_size_text(good[i].bytes, text), &bytes);
		assert_int_equal(bytes, good[i].bytes);
	}
	assert_string_equal(gdsio_size_text(4096, text), "4K");
	assert_string_equal(gdsio_size_text(4097, text), "4097");
}

/* -- who moves what -- */

static void slices_cover_all_once(void **state)
{
	static const struct {
		uint64_t total, unit;
		unsigned int threads;
		uint64_t align;
	} cases[] = {
		{ G, M, 4, M }, { G, M, 3, M }, { 10 * M + 777, M, 3, M },
		{ M, M, 4, 4096 }, { 4096, M, 4, 1 }, { 1000001, 1000, 7, 1000 },
		{ 5, 4096, 5, 1 }, { 1UL << 50, 1, GDSIO_MAX_THREADS, 1 },
	};
	uint64_t off, len, at;
	unsigned int t;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (at = 0, t = 0; t < cases[i].threads; t++, at += len) {
			gdsio_slice(cases[i].total, cases[i].unit, cases[i].threads, t, &off,
				    &len);
			assert_int_equal(off, at);
			assert_int_equal(off % cases[i].align, 0);
			assert_true(len > 0);
		}
		assert_int_equal(at, cases[i].total);
	}
	gdsio_slice(G, M, 4, 3, &off, &len);
	assert_int_equal(off, 768 * M);
	assert_int_equal(len, 256 * M);
}

static void pieces_in_order(void **state)
{
	/* 4-10-3: sizes 4, 7, 10, then 4 again; the last piece is what is left */
	static const struct gdsio_sizes io = { 4, 10, 3 }, odd = { 4, 9, 3 };
	static const size_t want[] = { 4, 7, 10, 4, 5 };
	struct gdsio_cursor c;
	off_t off, at = 100;
	size_t size, i;

	gdsio_cursor_init(&c, &io, 100, 30, false, 1);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++, at += size) {
		assert_true(gdsio_cursor_next(&c, &off, &size));
		assert_int_equal(off, at);
		assert_int_equal(size, want[i]);
	}
	assert_false(gdsio_cursor_next(&c, &off, &size));
	gdsio_cursor_again(&c);
	assert_true(gdsio_cursor_next(&c, &off, &size));
	assert_int_equal(off, 100);

	/* MAX is a limit also where no step hits it */
	gdsio_cursor_init(&c, &odd, 0, 1000, false, 1);
	for (i = 0; gdsio_cursor_next(&c, &off, &size); i++) {
		if (off + size < 1000)
			assert_int_equal(size, i % 2 ? 7 : 4);
	}
}

/* With a unit of 1 (-U) a piece begins at any byte of the part. */
static void pieces_at_any_byte(void **state)
{
	static const struct gdsio_sizes io = { 4096, 4096, 0 };
	struct gdsio_cursor c;
	size_t size, odd = 0;
	off_t off;

	gdsio_cursor_init(&c, &io, 8192, M, true, 7);
	c.unit = 1;
	while (gdsio_cursor_next(&c, &off, &size)) {
		assert_true(off >= 8192 && off + size <= 8192 + M);
		odd += off % 4096 != 0;
	}
	assert_true(odd > 200);
}

static void pieces_at_random(void **state)
{
	static const struct gdsio_sizes io = { 4096, 16384, 4096 };
	uint64_t total = 0, seen_sizes = 0, low = UINT64_MAX, high = 0;
	struct gdsio_cursor a, b, other;
	off_t off, off2, off3;
	size_t size, size2, size3, differs = 0;

	gdsio_cursor_init(&a, &io, 8192, M, true, 7);
	gdsio_cursor_init(&b, &io, 8192, M, true, 7);
	gdsio_cursor_init(&other, &io, 8192, M, true, 8);
	while (gdsio_cursor_next(&a, &off, &size)) {
		assert_true(gdsio_cursor_next(&b, &off2, &size2));
		assert_int_equal(off, off2);
		assert_int_equal(size, size2);
		assert_int_equal(off % 4096, 0);
		assert_int_equal(size % 4096, 0);
		assert_true(off >= 8192 && off + size <= 8192 + M && size <= 16384);
		if (gdsio_cursor_next(&other, &off3, &size3) && off3 != off)
			differs++;
		seen_sizes |= 1ULL << size / 4096;
		low = (uint64_t)off < low ? (uint64_t)off : low;
		high = (uint64_t)off > high ? (uint64_t)off : high;
		total += size;
	}
	assert_int_equal(total, M);
	assert_int_equal(seen_sizes, 0x1e);	/* 4, 8, 12 and 16 KiB */
	assert_true(differs > 20);
	assert_true(low < M / 4 && high > M / 4 * 3);
}

/* -- the report -- */

static char text[4096];

static void report(const struct gdsio_result *r)
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	gdsio_report(f, r);
	fclose(f);
}

/* Word n, from 1, of line `row`, from 0, as awk counts. */
static const char *word(unsigned int row, unsigned int n)
{
	static char copy[sizeof(text)];
	char *line = copy, *save = NULL, *w;

	snprintf(copy, sizeof(copy), "%s", text);
	while (row-- && line)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	assert_non_null(line);
	line[strcspn(line, "\n")] = '\0';
	for (w = strtok_r(line, " \t", &save); w && --n; w = strtok_r(NULL, " \t", &save))
		;
	return w ? w : "(none)";
}

static struct gdsio_result example(void)
{
	struct gdsio_result r = {
		.rw = RW_READ,
		.xfer = XFER_GPUD,
		.threads = 4,
		.io = { M, M, 0 },
		.requested = 104857600 * K,
		.seconds = 2.0,
		.tally = {
			.bytes = 4 * G,
			.ops = 4096,
			.ns = 4096 * 589437ULL,
			.whole = 4 * G,
			.direct = 4 * G,
			.witnessed = 4 * G,
		},
	};

	r.tally.route[OGDS_ROUTE_NVFS] = 4 * G;
	return r;
}

static void result_line(void **state)
{
	struct gdsio_result r = example();

	report(&r);
	assert_string_equal(word(0, 2), "READ");
	assert_string_equal(word(0, 4), "GPUD");
	assert_string_equal(word(0, 6), "4");
	assert_string_equal(word(0, 8), "4194304/104857600(KiB)");
	assert_string_equal(word(0, 10), "1024(KiB)");
	assert_string_equal(word(0, 12), "2.000000");
	assert_string_equal(word(0, 15), "589.437000");
	assert_string_equal(word(0, 18), "4096");
	assert_string_equal(word(0, 20), "2.000000");
	assert_string_equal(word(0, 21), "secs");
	*strchr(text, '\n') = '\0';
	assert_string_equal(text, "IoType: READ XferType: GPUD Threads: 4 DataSetSize: "
		"4194304/104857600(KiB) IOSize: 1024(KiB) Throughput: 2.000000 GiB/sec, "
		"Avg_Latency: 589.437000 usecs ops: 4096 total_time 2.000000 secs");
}

static void result_words(void **state)
{
	static const char *const rw[] = { "READ", "WRITE", "RANDREAD", "RANDWRITE" };
	struct gdsio_result r = example();
	int i;

	for (i = 0; i < 4; i++) {
		r.rw = (enum gdsio_rw)i;
		report(&r);
		assert_string_equal(word(0, 2), rw[i]);
	}
	for (i = 0; i < XFERS; i++) {
		r.xfer = (enum gdsio_xfer)i;
		report(&r);
		assert_string_equal(word(0, 4), gdsio_xfer_name(r.xfer));
		/* scripts strip what only batches have */
		assert_string_equal(word(0, 7), i >= XFER_GPU_BATCH ? "IoDepth:" : "DataSetSize:");
	}
	r.xfer = XFER_GPUD;
	r.io = (struct gdsio_sizes){ 4 * K, 32 * K, 1 * K };
	report(&r);
	assert_string_equal(word(0, 10), "4-32-1(KiB)");
	r.io = (struct gdsio_sizes){ 1000, 1000, 0 };
	report(&r);
	assert_string_equal(word(0, 10), "0.977(KiB)");
}

/* Interrupted before the first I/O: no division by nothing. */
static void result_of_nothing(void **state)
{
	struct gdsio_result r = { .io = { M, M, 0 }, .threads = 1, .requested = M };

	report(&r);
	assert_string_equal(word(0, 8), "0/1024(KiB)");
	assert_string_equal(word(0, 12), "0.000000");
	assert_string_equal(word(0, 15), "0.000000");
	assert_null(strstr(text, "nan"));
}

static void routes_line(void **state)
{
	struct gdsio_result r = example();

	report(&r);
	assert_non_null(strstr(text, "\nRoutes: nvfs: 4294967296 (100.00%) staged: 0 (0.00%) "
		"bounce: 0 (0.00%) host: 0 (0.00%) whole_blocks: 4294967296 direct: 4294967296 "
		"edge: 0 retried: 0 witnessed: 4294967296\n"));
	assert_null(strstr(text, "Reason:"));
	assert_false(gdsio_fell_back(&r));
	/* a route that most reports do not have appears with its first byte */
	r.tally.route[OGDS_ROUTE_BAR] = 1;
	report(&r);
	assert_non_null(strstr(text, " bar: 1 (0.00%) bounce: "));
	assert_null(strstr(text, "p2pdma"));
}

/* One rate of two ways says nothing: each has its own, in the same time. */
static void shares_line(void **state)
{
	struct gdsio_result r = example();

	report(&r);
	assert_null(strstr(text, "Shares:"));
	r.tally.route[OGDS_ROUTE_NVFS] = 3 * G;
	r.tally.route[OGDS_ROUTE_BOUNCE] = G;
	report(&r);
	assert_non_null(strstr(text, "\nShares: nvfs: 1.500000 GiB/sec bounce: 0.500000 GiB/sec\n"));
	assert_int_equal(gdsio_unattributed(&r.tally), 0);
	r.tally.route[OGDS_ROUTE_BOUNCE] = G - 5;
	assert_int_equal(gdsio_unattributed(&r.tally), 5);
}

static void state_lines(void **state)
{
	struct gdsio_result r = example();
	int i;

	for (i = 1; i <= 1000; i++)
		gdsio_hist_put(&r.tally.hist, i == 1000 ? 7654321 : 100);
	r.depth = 8;
	r.cpu_seconds = 3;
	report(&r);
	assert_non_null(strstr(text, "\nLatency: p50: 0.100 p90: 0.100 p99: 0.100 p99.9: 0.100 "
				     "max: 7654.321 usecs\n"));
	assert_non_null(strstr(text, "\nState: queue_depth: 32 checksum: not_checked compared: 0 "
				     "cpu: 0.750000 s/GiB\n"));
	r.stamped = true;
	assert_string_equal(gdsio_checksum(&r), "stamped");
	r.compared = true;
	r.tally.checked = r.tally.bytes - 1;
	assert_string_equal(gdsio_checksum(&r), "not_checked");
	r.tally.checked++;
	assert_string_equal(gdsio_checksum(&r), "verified");
	r.mix = 70;
	r.tally.written = G;
	report(&r);
	assert_non_null(strstr(text, " mix: 70 read: 3221225472 written: 1073741824\n"));
}

static void reasons_lines(void **state)
{
	struct gdsio_result r = example();
	struct ogds_report io = OGDS_REPORT_INIT;

	memset(&r.tally, 0, sizeof(r.tally));
	io.bytes[OGDS_ROUTE_NVFS] = 8192;
	io.bytes[OGDS_ROUTE_BOUNCE] = 4096 + 10;
	io.whole_bytes = 12288;
	io.whole_direct = 8192;
	io.edge_bytes = 10;
	io.witnessed = 8192;
	io.retried = 4096;
	io.reason = 7;
	gdsio_tally_io(&r.tally, &io);
	gdsio_tally_io(&r.tally, &io);
	io.reason = 70;
	gdsio_tally_io(&r.tally, &io);
	io.reason = 100000;
	gdsio_tally_io(&r.tally, &io);
	/* all direct: what the reason member holds does not count */
	io.whole_direct = 12288;
	io.reason = 9;
	gdsio_tally_io(&r.tally, &io);
	r.tally.bytes = 5 * (12288 + 10);
	report(&r);
	assert_true(gdsio_fell_back(&r));
	assert_non_null(strstr(text, "bounce: 20530 (33.39%)"));
	assert_non_null(strstr(text, "whole_blocks: 61440 direct: 45056 edge: 50 retried: 20480 "
				     "witnessed: 40960\n"
				     "Reason: R-SEVEN: cause; remedy\n"
				     "Reason: R-SEVENTY: cause; remedy\n"
				     "Reason: R-UNKNOWN: cause; remedy\n"));
	assert_int_equal(r.tally.reason[0], 1ULL << 7);

	/* batches and streams ask for the direct way, too */
	r.xfer = XFER_GPU_BATCH;
	assert_true(gdsio_fell_back(&r));
	r.xfer = XFER_GPUD_ASYNC;
	assert_true(gdsio_fell_back(&r));
	/* who asked for host memory did not fall back to it */
	r.host_memory = true;
	assert_false(gdsio_fell_back(&r));
	r.host_memory = false;
	r.xfer = XFER_CPU_GPU;
	assert_false(gdsio_fell_back(&r));
	report(&r);
	assert_null(strstr(text, "Reason:"));
}

static void plain_io_counts_blocks(void **state)
{
	struct gdsio_tally t = { 0 }, sum = { 0 };

	gdsio_tally_plain(&t, OGDS_ROUTE_HOST, 0, 8192);
	assert_int_equal(t.whole, 8192);
	gdsio_tally_plain(&t, OGDS_ROUTE_HOST, 1, 8192);	/* one block in 8192 bytes */
	assert_int_equal(t.whole, 8192 + 4096);
	assert_int_equal(t.edge, 4096);
	gdsio_tally_plain(&t, OGDS_ROUTE_HOST, 4097, 100);
	assert_int_equal(t.whole, 8192 + 4096);
	assert_int_equal(t.edge, 4196);
	assert_int_equal(t.route[OGDS_ROUTE_HOST], 16484);
	assert_int_equal(t.direct, 0);
	gdsio_tally_add(&sum, &t);
	gdsio_tally_add(&sum, &t);
	assert_int_equal(sum.edge, 2 * 4196);
	assert_int_equal(sum.route[OGDS_ROUTE_HOST], 2 * 16484);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_line),
		cmocka_unit_test(all_options),
		cmocka_unit_test(job_groups),
		cmocka_unit_test(too_many_groups),
		cmocka_unit_test(bad_values),
		cmocka_unit_test(other_options),
		cmocka_unit_test(transfer_types),
		cmocka_unit_test(refused_together),
		cmocka_unit_test(who_needs_a_gpu),
		cmocka_unit_test(help_needs_nothing_else),
		cmocka_unit_test(sizes),
		cmocka_unit_test(slices_cover_all_once),
		cmocka_unit_test(pieces_in_order),
		cmocka_unit_test(pieces_at_any_byte),
		cmocka_unit_test(pieces_at_random),
		cmocka_unit_test(result_line),
		cmocka_unit_test(result_words),
		cmocka_unit_test(result_of_nothing),
		cmocka_unit_test(routes_line),
		cmocka_unit_test(shares_line),
		cmocka_unit_test(state_lines),
		cmocka_unit_test(reasons_lines),
		cmocka_unit_test(plain_io_counts_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
