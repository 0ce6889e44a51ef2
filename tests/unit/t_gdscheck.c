// SPDX-License-Identifier: MIT
/*
 * t_gdscheck.c - the doctor of gdscheck on made-up machines: tests/fixtures/machines. Each pair is
 * a machine with one bad fact and its repaired twin. Fails when a verdict does not flip, when
 * another check says something else of the two, when a problem has no evidence or no remedy, and
 * when the report or its exit status does not follow from the findings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "machine.h"

#define FOLDER "tests/fixtures/machines/"
#define CHECKS 58	/* of geforce-p2p.md's ids, which are part of the interface */

static char top[64], root[80];
static struct gc_machine machine;

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/t_gdscheck.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(root, sizeof(root), "%s/m", top);
	return mkdir(root, 0755);
}

static int teardown(void **state)
{
	return tree_remove(top) ? 0 : -1;
}

static void anew(const char *base)
{
	char file[128];

	assert_true(tree_remove(root));
	assert_int_equal(mkdir(root, 0755), 0);
	snprintf(file, sizeof(file), FOLDER "%s.machine", base);
	machine_unpack(root, file);
}

/* All findings; given back by gc_report_free() */
static void judge(struct gc_report *r)
{
	assert_int_equal(gc_machine_read(&machine, root, NULL, 0), 0);
	assert_int_equal(gc_doctor(&machine, r), 0);
}

static const struct gc_finding *find(const struct gc_report *r, const char *id)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->finding[i].check->id, id))
			return &r->finding[i];
	return NULL;
}

static void is(const struct gc_report *r, const char *id, enum gc_verdict v)
{
	const struct gc_finding *f = find(r, id);

	assert_non_null(f);
	if (f->verdict != v)
		fail_msg("%s says %s (%s), not %s", id, gc_verdict_name(f->verdict), f->text,
			 gc_verdict_name(v));
}

/* -- pairs -- */

struct pair {
	char name[64], base[32], id[8], good[8], bad[8], other[8];
};

/* What another check may say of the bad twin */
static bool unmoved(const struct pair *p, const struct gc_finding *good,
		    const struct gc_finding *bad)
{
	if (!strcmp(p->other, "skips") && bad->verdict == GC_SKIP)
		return true;
	return good->verdict == bad->verdict &&
	       (!strcmp(p->other, "text") || !strcmp(good->text, bad->text));
}

/* What must hold of any finding that needs a hand */
static void complete(const struct pair *p, const struct gc_finding *f)
{
	if (f->verdict < GC_WARN)
		return;
	if (!f->file[0] || !f->value[0] || !f->remedy[0])
		fail_msg("pair %s: %s has no evidence or no remedy: %s", p->name, f->check->id,
			 f->text);
	/* a sentence, whole: a text that was cut has no room left */
	assert_true(strlen(f->text) < GC_TEXT - 1 && strlen(f->remedy) < GC_TEXT - 1);
}

static void compare(const struct pair *p, const struct gc_report *good, const struct gc_report *bad)
{
	size_t i;

	assert_int_equal(good->n, bad->n);
	for (i = 0; i < good->n; i++) {
		const struct gc_finding *g = &good->finding[i], *b = &bad->finding[i];

		complete(p, b);
		if (!strcmp(g->check->id, p->id)) {
			if (strcmp(gc_verdict_name(g->verdict), p->good))
				fail_msg("pair %s: the good twin's %s says %s: %s", p->name, p->id,
					 gc_verdict_name(g->verdict), g->text);
			if (strcmp(gc_verdict_name(b->verdict), p->bad))
				fail_msg("pair %s: the bad twin's %s says %s: %s", p->name, p->id,
					 gc_verdict_name(b->verdict), b->text);
			continue;
		}
		if (!unmoved(p, g, b))
			fail_msg("pair %s: %s changes too, from %s (%s) to %s (%s)", p->name,
				 g->check->id, gc_verdict_name(g->verdict), g->text,
				 gc_verdict_name(b->verdict), b->text);
	}
}

/* The problem that the report puts first is the one that the pair is about. */
static void first(const struct pair *p, const struct gc_report *good, const struct gc_report *bad)
{
	if (!strcmp(p->bad, "FAIL") && !good->count[GC_FAIL])
		assert_string_equal(bad->first->check->id, p->id);
	assert_int_equal(gc_report_status(bad), bad->count[GC_FAIL] ? GC_EXIT_FAIL :
			 bad->count[GC_WARN] ? GC_EXIT_WARN : GC_EXIT_OK);
}

/* The lines of one pair, from behind its first one; false: that was the last one. */
static bool one_pair(FILE *in, struct pair *p, char *line, size_t len)
{
	static struct machine_file f;
	struct gc_report good = { 0 }, bad;
	bool more = false, turned = false;

	f.root = root;
	anew(p->base);
	while (fgets(line, (int)len, in)) {
		more = !strncmp(line, "pair ", 5);
		if (more)
			break;
		if (!strcmp(line, "bad\n")) {
			machine_flush(&f);
			judge(&good);
			turned = true;
		} else if (!machine_line(&f, line)) {
			fail_msg("pair %s: what is this line: %s", p->name, line);
		}
	}
	machine_flush(&f);
	assert_true(turned);
	judge(&bad);
	compare(p, &good, &bad);
	first(p, &good, &bad);
	gc_report_free(&good);
	gc_report_free(&bad);
	return more;
}

static unsigned int pairs_of(const char *file)
{
	char line[2048];
	struct pair p;
	unsigned int n = 0;
	FILE *in = fopen(file, "r");

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) && strncmp(line, "pair ", 5))
		;
	do {
		memset(&p, 0, sizeof(p));
		if (sscanf(line, "pair %63s %31s %7s %7s %7s %7s", p.name, p.base, p.id, p.good,
			   p.bad, p.other) < 5)
			fail_msg("%s: no pair: %s", file, line);
		/* what must not flip is no pair of the count */
		n += strcmp(p.good, p.bad) != 0;
	} while (one_pair(in, &p, line, sizeof(line)));
	fclose(in);
	return n;
}

static void t_pairs(void **state)
{
	static const char *const files[] = { "pairs.gpu", "pairs.platform", "pairs.storage" };
	unsigned int n = 0;
	char file[128];
	size_t i;

	for (i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), FOLDER "%s", files[i]);
		n += pairs_of(file);
	}
	print_message("%u pairs\n", n);
	assert_true(n >= 25);
}

/* -- whole machines -- */

static void t_machines(void **state)
{
	struct gc_report r;

	anew("server");
	judge(&r);
	assert_int_equal(r.count[GC_FAIL] + r.count[GC_WARN], 0);
	assert_int_equal(gc_report_status(&r), GC_EXIT_OK);
	assert_null(r.first);
	gc_report_free(&r);

	anew("desktop");
	judge(&r);
	assert_int_equal(r.count[GC_FAIL] + r.count[GC_WARN], 0);
	gc_report_free(&r);

	/* each of its two warnings is for its own reason */
	anew("cloud");
	judge(&r);
	is(&r, "D-01", GC_WARN);
	is(&r, "D-43", GC_WARN);
	assert_int_equal(r.count[GC_FAIL], 0);
	assert_int_equal(r.count[GC_WARN], 2);
	assert_int_equal(gc_report_status(&r), GC_EXIT_WARN);
	gc_report_free(&r);
}

/* "D-43=WARN D-62=FAIL", in the order of the report */
static void needing(const struct gc_report *r, char *out, size_t len)
{
	size_t i, n = 0;

	out[0] = '\0';
	for (i = 0; i < r->n; i++)
		if (r->finding[i].verdict > GC_OK && n < len)
			n += (size_t)snprintf(out + n, len - n, "%s%s=%s", n ? " " : "",
					      r->finding[i].check->id,
					      gc_verdict_name(r->finding[i].verdict));
}

/* Records of machines that ran: each check says what it said there. */
static void t_records(void **state)
{
	char line[512], name[64], got[512];
	const char *want;
	struct gc_report r;
	unsigned int n = 0;
	FILE *in = fopen(FOLDER "records/expected", "r");
	size_t i;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in)) {
		if (line[0] == '#')
			continue;
		if (sscanf(line, "%55[^:]:", name) != 1)
			fail_msg("records/expected: NAME: VERDICTS: %s", line);
		line[strcspn(line, "\n")] = '\0';
		want = strchr(line, ':') + 1;
		want += strspn(want, " ");
		snprintf(got, sizeof(got), "records/%.55s", name);
		anew(got);
		judge(&r);
		needing(&r, got, sizeof(got));
		if (strcmp(got, want))
			fail_msg("%s: %s, wanted %s", name, got, want);
		for (i = 0; i < r.n; i++)
			complete(&(struct pair){ .name = "of a record" }, &r.finding[i]);
		gc_report_free(&r);
		n++;
	}
	fclose(in);
	print_message("%u records\n", n);
	assert_true(n >= 8);
}

/* Nothing there at all: no crash, no verdict without a cause. */
static void t_empty(void **state)
{
	struct gc_report r;
	size_t i;

	assert_true(tree_remove(root));
	assert_int_equal(mkdir(root, 0755), 0);
	assert_int_equal(gc_machine_read(&machine, root, NULL, 0), -ENOENT);
	assert_true(tree_put(root, "proc/sys/kernel/osrelease", "6.12.9\n"));
	judge(&r);
	assert_int_equal(r.n, CHECKS);
	assert_int_equal(gc_report_status(&r), GC_EXIT_FAIL);
	for (i = 0; i < r.n; i++)
		assert_true(r.finding[i].text[0]);
	is(&r, "D-03", GC_FAIL);
	is(&r, "D-47", GC_SKIP);
	gc_report_free(&r);
}

static void t_ids(void **state)
{
	struct gc_report r;
	size_t i, j;

	anew("server");
	judge(&r);
	assert_int_equal(r.n, CHECKS);
	for (i = 0; i < r.n; i++)
		for (j = i + 1; j < r.n; j++)
			assert_string_not_equal(r.finding[i].check->id, r.finding[j].check->id);
	gc_report_free(&r);
}

/* A caller names files: the file system of each of them counts, not the best one. */
static void t_named(void **state)
{
	char data_file[] = "/data/sub/file", etc[] = "/etc";
	char *data[] = { data_file }, *system[] = { etc };
	struct gc_report r;

	anew("server");
	assert_int_equal(gc_machine_read(&machine, root, data, 1), 0);
	assert_int_equal(machine.stores, 1);
	assert_string_equal(machine.store[0].mount.point, "/data");
	assert_int_equal(gc_machine_read(&machine, root, system, 1), 0);
	assert_string_equal(machine.store[0].mount.point, "/");
	assert_int_equal(gc_doctor(&machine, &r), 0);
	is(&r, "D-65", GC_FAIL);
	is(&r, "D-60", GC_OK);
	/* no file of a recorded machine can be opened */
	is(&r, "D-62", GC_SKIP);
	gc_report_free(&r);
}

/* One file system that can go direct is enough; that others cannot is told. */
static void t_best(void **state)
{
	struct gc_report r;

	anew("server");
	assert_true(tree_put(root, "proc/self/mountinfo",
			     "22 1 0:44 / / rw - btrfs /dev/nvme0n1p1 rw\n"
			     "41 22 259:1 / /data rw - xfs /dev/nvme0n1p1 rw\n"));
	judge(&r);
	is(&r, "D-60", GC_OK);
	assert_non_null(strstr(find(&r, "D-60")->note, "/ (/ is on btrfs"));
	gc_report_free(&r);
}

/* Without privileges the kernel shows 64 bytes of a configuration: not known is not OK. */
static void t_acs_unknown(void **state)
{
	static const char port[] =
		"sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/config";
	struct gc_report r;
	char text[65];

	anew("server");
	memset(text, 'x', 64);
	text[64] = '\0';
	assert_true(tree_put(root, port, text));
	judge(&r);
	is(&r, "D-47", GC_SKIP);
	gc_report_free(&r);
}

/* That the kernel's log may not be read is no sign that it has no complaint. */
static void t_log_unread(void **state)
{
	struct gc_report r;
	char path[128];

	anew("server");
	machine_write(root, "dev/kmsg", "");
	judge(&r);
	is(&r, "D-22", GC_OK);
	gc_report_free(&r);
	snprintf(path, sizeof(path), "%s/dev/kmsg", root);
	assert_int_equal(unlink(path), 0);
	judge(&r);
	is(&r, "D-22", GC_SKIP);
	gc_report_free(&r);
}

/* -- reports -- */

static char *report_of(const struct gc_report *r, bool json, bool all)
{
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	if (json)
		assert_int_equal(gc_report_json(&machine, r, out), 0);
	else
		gc_report_text(r, all, out);
	fclose(out);
	return text;
}

static const char *member(struct json_object *o, const char *name)
{
	struct json_object *m = NULL;

	return json_object_object_get_ex(o, name, &m) ? json_object_get_string(m) : "";
}

static void t_json(void **state)
{
	struct json_object *o, *checks, *one;
	struct gc_report r;
	size_t i;
	char *text;

	anew("cloud");
	judge(&r);
	text = report_of(&r, true, false);
	o = json_tokener_parse(text);
	assert_non_null(o);
	assert_string_equal(member(o, "format"), "1");
	assert_string_equal(member(o, "recorded"), "true");
	assert_string_equal(member(o, "verdict"), "WARN");
	assert_string_equal(member(o, "next"), "D-01");
	assert_true(json_object_object_get_ex(o, "checks", &checks));
	assert_int_equal(json_object_array_length(checks), CHECKS);
	for (i = 0; i < r.n; i++) {
		one = json_object_array_get_idx(checks, i);
		assert_string_equal(member(one, "id"), r.finding[i].check->id);
		assert_string_equal(member(one, "verdict"), gc_verdict_name(r.finding[i].verdict));
		assert_string_equal(member(one, "text"), r.finding[i].text);
		assert_string_equal(member(one, "remedy"), r.finding[i].remedy);
	}
	json_object_put(o);
	free(text);
	gc_report_free(&r);
}

/* The worst first; a summary; one next step, that of the first one. */
static void t_text(void **state)
{
	struct gc_report r;
	const char *fail, *warn;
	char *text, *line, *rest;

	anew("cloud");
	machine_write(root, "etc/cufile.json", "{ \"properties\": { \"force_compat_mode\": true } }");
	judge(&r);
	text = report_of(&r, false, false);
	fail = strstr(text, "  FAIL  D-31");
	warn = strstr(text, "  WARN  D-01");
	assert_ptr_equal(fail, text);
	assert_non_null(warn);
	assert_non_null(strstr(warn, "  WARN  D-43"));
	assert_non_null(strstr(text, "\n1 FAIL, 2 WARN, "));
	assert_non_null(strstr(text, "\nNext: D-31: set properties.force_compat_mode to false"));
	assert_non_null(strstr(text, "        seen  /etc/cufile.json: "));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		assert_true(strlen(line) <= 100);
	free(text);
	text = report_of(&r, false, true);
	assert_non_null(strstr(text, "SKIP  D-74"));
	free(text);
	gc_report_free(&r);
}

/*
 * What the owner of a GeForce is told to do next, by the state of his machine: one thing. Storage
 * first: what is wrong with keys or edits, which storage does not need, waits.
 */
static void t_geforce(void **state)
{
	static const char params[] = "proc/driver/nvidia/params", conf[] = "etc/modprobe.d/gds.conf";
#define CARD "sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/"
	static const struct {
		const char *path, *text, *next, *also;
	} states[] = {
		{ NULL, NULL, "D-04: no kernel patch helps; use the libcufile of OpenGDS", NULL },
		{ "etc/cufile.json", "{ \"opengds\": { \"register_peers\": false } }",
		  "D-04: set opengds.register_peers to true", "FAIL  D-04" },
		{ "proc/driver/nvidia/version",
		  "NVRM version: NVIDIA UNIX x86_64 Kernel Module  590.48.01  Tue Sep 23 2025\n",
		  "D-01: install the open kernel modules", "FAIL  D-01" },
		{ "proc/driver/nvidia-fs/opengds",
		  "version: 0.1.0\ndriver nvme: not attached: x\np2pdma: not used: x\n",
		  "D-23: install the nvme hook", "WARN  D-04" },
		{ "etc/cufile.json", "{ \"properties\": { \"force_compat_mode\": true } }",
		  "D-31: set properties.force_compat_mode to false", "WARN  D-04" },
		/* keys: one that is not in force, one of another release, one that stops the GPU */
		{ conf, "options nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=2;ForceP2P=0x11\"\n",
		  "D-04: no kernel patch helps", "WARN  D-06" },
		{ params, "RegistryDwords: \"RMForceStaticBar1=2;RmForceDisableIomapWC=1;RMForceP2PType=2\"\n",
		  "D-04: no kernel patch helps", "WARN  D-08" },
		{ params, "RegistryDwords: \"RMForceStaticBar1=1\"\n", "D-09: set RMForceStaticBar1=2",
		  "FAIL  D-09" },
		/* half of the well-known patch */
		{ "usr/src/nvidia-590.48.01/src/nvidia/generated/g_kern_bus_nvoc.c",
		  "p->a = &kbusGetBar1P2PDmaInfo_GH100;\np->a = &kbusGetBar1P2PDmaInfo_GH100;\n",
		  "D-04: no kernel patch helps", "WARN  D-10" },
		/* risers: a link of fewer lanes, one with errors; a tunnel is no riser */
		{ CARD "current_link_width", "4\n",
		  "D-04: no kernel patch helps", "WARN  D-50" },
		{ CARD "aer_dev_correctable",
		  "RxErr 9\nTOTAL_ERR_COR 9\n", "D-04: no kernel patch helps", "WARN  D-51" },
		{ CARD "removable", "removable\n",
		  "D-52: connect it by OCuLink, M.2 or a slot", "FAIL  D-52" },
	};
	struct gc_report r;
	char *text, *next, *p;
	unsigned int lines;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		anew("desktop");
		machine_write(root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
			      "Model: \t\t NVIDIA GeForce RTX 3060\nDevice Minor: \t 0\nGPU Firmware: \t 590.48.01\n");
		/* without resizable BAR the key that stops the GPU does */
		if (states[i].also && !strcmp(states[i].also, "FAIL  D-09")) {
			machine_bar1(root, CARD "resource", "7c00000000+256");
			machine_write(root, conf, "# nothing is set\n");
		}
		if (states[i].path)
			machine_write(root, states[i].path, states[i].text);
		judge(&r);
		text = report_of(&r, false, false);
		for (lines = 0, p = text; (p = strstr(p, "\nNext: ")); p++)
			lines++;
		assert_int_equal(lines, 1);
		next = strstr(text, "\nNext: ") + 7;
		if (strncmp(next, states[i].next, strlen(states[i].next)))
			fail_msg("state %zu: next is %.80s, wanted %s", i, next, states[i].next);
		if (states[i].also && !strstr(text, states[i].also))
			fail_msg("state %zu: no %s: %s", i, states[i].also, text);
		free(text);
		gc_report_free(&r);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(t_pairs), T(t_machines), T(t_records), T(t_empty), T(t_ids), T(t_named),
		T(t_best),
		T(t_acs_unknown), T(t_log_unread), T(t_json), T(t_text), T(t_geforce),
	};
#undef T

	return cmocka_run_group_tests(tests, setup, teardown);
}
