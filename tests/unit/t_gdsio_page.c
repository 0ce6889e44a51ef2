// SPDX-License-Identifier: MIT
/*
 * t_gdsio_page.c - the page of gdsio sweep, made of a document, and the sweep's options.
 *
 * Guards that the page needs nothing from elsewhere, that each plotted point and each row
 * says its route, that bytes which went two ways have two rates, that a point which fell back
 * is drawn hollow, that names cannot break out of their place, and that an unfinished sweep
 * says so. Fails when one of them is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "../../tools/gdsio/page.c"
#include "../../tools/gdsio/plot.c"

static char *page;
static size_t page_len;

static struct json_object *point(unsigned int io_bytes, unsigned int threads, const char *way,
				 const char *routes, bool fell_back)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{\"io_bytes\":%u,\"threads\":%u,\"way\":\"%s\",\"status\":0,\"error\":null,"
		 "\"job\":{\"file_system\":\"ext4\",\"drive\":{\"name\":\"nvme0n1\",\"pci\":"
		 "\"0000:02:00.0\",\"link\":{\"mt_per_s\":16000,\"width\":4}},\"gpu\":null},"
		 "\"passes\":[{\"bytes\":1000,\"gib_per_s\":1.5,\"queue_depth\":%u,"
		 "\"latency_us\":{\"p50\":10,\"p90\":11,\"p99\":12,\"p99.9\":13,\"max\":14},"
		 "\"cpu_s_per_gib\":0.25,\"routes\":[%s],\"fell_back\":%s,\"reasons\":[%s],"
		 "\"checksum\":\"not_checked\"},{\"checksum\":\"verified\"}]}",
		 io_bytes, threads, way, threads, routes, fell_back ? "true" : "false",
		 fell_back ? "{\"id\":\"R-WHY\",\"text\":\"cause\",\"remedy\":\"step\"}" : "");
	return json_tokener_parse(text);
}

#define NVFS "{\"route\":\"nvfs\",\"bytes\":1000,\"gib_per_s\":1.5}"
#define BOUNCE "{\"route\":\"bounce\",\"bytes\":1000,\"gib_per_s\":1.5}"
#define BOTH "{\"route\":\"nvfs\",\"bytes\":900,\"gib_per_s\":1.35}," \
	     "{\"route\":\"bounce\",\"bytes\":100,\"gib_per_s\":0.15}"

static struct json_object *document(void)
{
	return json_tokener_parse(
		"{\"gdsio_sweep\":1,\"complete\":true,\"began\":\"2026-01-01T00:00:00Z\","
		"\"machine\":{\"kernel\":\"6.12\",\"cpu\":\"C\",\"cpus\":4,\"memory_bytes\":1,"
		"\"cufile_version\":1180,\"nvidia_fs\":\"2.28\"},"
		"\"settings\":{\"file\":\"/mnt/<b>&\\\"f\",\"data_bytes\":1048576,\"seconds\":2,"
		"\"io_type\":\"READ\"},\"ways\":[\"GPUD\",\"bounce\"],\"points_asked\":9,"
		"\"points\":[]}");
}

static void add_point(struct json_object *doc, struct json_object *p)
{
	assert_non_null(p);
	json_object_array_add(sweep_get(doc, "points"), p);
}

static void make_page(struct json_object *doc)
{
	FILE *f;

	free(page);
	f = open_memstream(&page, &page_len);
	assert_non_null(f);
	sweep_page(f, doc);
	fclose(f);
}

static size_t count(const char *what)
{
	const char *at = page;
	size_t n = 0;

	while ((at = strstr(at, what))) {
		n++;
		at += strlen(what);
	}
	return n;
}

static void has(const char *text)
{
	if (!count(text))
		fail_msg("the page has no %s", text);
}

static struct json_object *example(void)
{
	struct json_object *doc = document();

	add_point(doc, point(4096, 1, "GPUD", NVFS, false));
	add_point(doc, point(4096, 1, "bounce", BOUNCE, true));
	add_point(doc, point(65536, 1, "GPUD", BOTH, true));
	add_point(doc, point(65536, 4, "GPUD", BOUNCE, true));
	return doc;
}

static void needs_nothing_else(void **state)
{
	static const char *const fetched[] = {
		"http:", "https:", "//", "src=", "href=", "@import", "url(", "<script", "<link",
		"<iframe", "<img",
	};
	struct json_object *doc = example();
	size_t i;

	make_page(doc);
	for (i = 0; i < sizeof(fetched) / sizeof(fetched[0]); i++) {
		if (count(fetched[i]))
			fail_msg("the page has %s", fetched[i]);
	}
	has("prefers-color-scheme:dark");
	has("width=device-width");
	json_object_put(doc);
}

/* 4 points: throughput and CPU once, latency twice; and a row each. */
static void every_point_has_its_route(void **state)
{
	struct json_object *doc = example();

	make_page(doc);
	assert_int_equal(count("<g class=\"point\" data-route=\""), 4 * 4);
	assert_int_equal(count("\nroute: "), 4 * 4);
	assert_int_equal(count("<tr data-route=\""), 4);
	assert_int_equal(count("data-route=\"\""), 0);
	assert_int_equal(count("<g class=\"point\" data-route=\"nvfs\">"), 4);
	assert_int_equal(count("data-route=\"nvfs 90.0 % + bounce 10.0 %\""), 4 + 1);
	has("queue depth: 4, checksum: verified");
	has("16.0GT/s x4 / no GPU");
	json_object_put(doc);
}

/* No one rate for bytes of two ways, in the words of a point and in its row. */
static void two_ways_have_two_rates(void **state)
{
	struct json_object *doc = example();

	make_page(doc);
	assert_int_equal(count("GiB/s: nvfs 1.350 + bounce 0.150"), 4);
	has("<td>nvfs 1.350 + bounce 0.150</td>");
	json_object_put(doc);
}

/* bounce by itself was asked for; GPUD was not. */
static void fallback_is_hollow(void **state)
{
	struct json_object *doc = example();

	assert_true(sweep_as_asked(json_object_array_get_idx(sweep_get(doc, "points"), 0)));
	assert_true(sweep_as_asked(json_object_array_get_idx(sweep_get(doc, "points"), 1)));
	assert_false(sweep_as_asked(json_object_array_get_idx(sweep_get(doc, "points"), 2)));
	assert_false(sweep_as_asked(json_object_array_get_idx(sweep_get(doc, "points"), 3)));
	make_page(doc);
	assert_int_equal(count("class=\"m hollow\""), 2 * 4);
	/* the reason is explained once */
	assert_int_equal(count("<dt>R-WHY</dt><dd>cause; step</dd>"), 1);
	json_object_put(doc);
}

static void names_stay_text(void **state)
{
	struct json_object *doc = example();

	make_page(doc);
	assert_int_equal(count("<b>"), 0);
	has("/mnt/&lt;b&gt;&amp;&quot;f");
	json_object_put(doc);
}

static void unfinished_says_so(void **state)
{
	struct json_object *doc = example(), *bad;

	make_page(doc);
	assert_int_equal(count("Incomplete"), 0);
	json_object_object_add(doc, "complete", json_object_new_boolean(false));
	make_page(doc);
	has("<strong>Incomplete:</strong> 4 of 9 points");
	/* a point that failed has its reason, and no marker */
	bad = json_tokener_parse("{\"io_bytes\":8192,\"threads\":1,\"way\":\"GPUD\",\"status\":1,"
				 "\"error\":\"gdsio: no <good>\"}");
	add_point(doc, bad);
	make_page(doc);
	has("failed: gdsio: no &lt;good&gt;");
	assert_int_equal(count("<g class=\"point\""), 4 * 4);
	json_object_put(doc);
	doc = document();
	make_page(doc);
	assert_int_equal(count("<svg viewBox=\"0 0 400"), 0);
	assert_null(strstr(page, "nan"));
	json_object_put(doc);
}

/* Numbers on the axes are in the picture, whatever the values are. */
static void points_are_in_the_picture(void **state)
{
	struct json_object *doc = example(), *r;
	double x, y;
	char *at;
	size_t n = 0;

	r = json_object_array_get_idx(sweep_get(doc, "points"), 0);
	json_object_object_add(sweep_result(r), "gib_per_s", json_object_new_double(0.00001));
	r = json_object_array_get_idx(sweep_get(doc, "points"), 1);
	json_object_object_add(sweep_result(r), "gib_per_s", json_object_new_double(900));
	make_page(doc);
	for (at = page; (at = strstr(at, "<circle class=\"m")); at++, n++) {
		assert_int_equal(sscanf(strstr(at, "cx="), "cx=\"%lf\" cy=\"%lf\"", &x, &y), 2);
		assert_true(x >= 0 && x <= WIDTH && y >= 0 && y <= HEIGHT);
	}
	assert_true(n >= 8);
	json_object_put(doc);
}

/* -- the options -- */

static int sweep(const char *line, char *why)
{
	static struct sweep_args a;
	static char words[512];
	char *argv[64], *save = NULL, *w;
	int argc = 1;

	argv[0] = (char *)"sweep";
	snprintf(words, sizeof(words), "%s", line);
	for (w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	why[0] = '\0';
	if (sweep_args_parse(argc, argv, &a, why, 256))
		return -EINVAL;
	snprintf(why, 256, "%s %u %u %u %s %d %u", a.out, a.sizes, a.thread_counts, a.ways,
		 a.way[a.ways - 1].name, a.way[a.ways - 1].route, a.seconds);
	return 0;
}

static void sweep_options(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{ "", "no file" }, { "-f", "needs a value" }, { "-f F --sizes 0", "--sizes 0" },
		{ "-f F --sizes ,", "an empty list" }, { "-f F --threads 0", "--threads 0" },
		{ "-f F --ways host", "--ways host" }, { "-f F --ways 8", "--ways 8" },
		{ "-f F --ways 0,GPUD", "GPUD is named twice" }, { "-f F -T 3601", "-T 3601" },
		{ "-f F -s 1M --sizes 1M --threads 2", "the data set has no I/O of 1048576" },
		{ "-f F --what", "--what is no option" }, { "-f F x", "x: what is it?" },
	};
	char why[256];
	size_t i;

	assert_int_equal(sweep("-f F", why), 0);
	assert_string_equal(why, "gdsio-sweep 6 3 3 CPUONLY 0 2");
	assert_int_equal(sweep("-f F -T 5 --out /o --sizes 4K --threads 1,2 --ways 6,nvfs", why), 0);
	assert_string_equal(why, "/o 1 2 2 nvfs 1 5");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!sweep(bad[i].line, why) || !strstr(why, bad[i].says))
			fail_msg("'%s': \"%s\" does not say \"%s\"", bad[i].line, why, bad[i].says);
	}
}

static int drop(void **state)
{
	free(page);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs_nothing_else),
		cmocka_unit_test(every_point_has_its_route),
		cmocka_unit_test(two_ways_have_two_rates),
		cmocka_unit_test(fallback_is_hollow),
		cmocka_unit_test(names_stay_text),
		cmocka_unit_test(unfinished_says_so),
		cmocka_unit_test(points_are_in_the_picture),
		cmocka_unit_test(sweep_options),
	};

	return cmocka_run_group_tests(tests, NULL, drop);
}
