// SPDX-License-Identifier: MIT
/*
 * t_topo.c - the rows of proc files peer_distance and bridges, and the ways, for drawn
 * machines: tests/fixtures/topologies (its README has the language). Fails when a pair is
 * nearer or farther, a link faster, a bridge more or less guilty than the drawing says, when
 * a function counts as a GPU or a peer that is none, or when a pair is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "topo_tree.c"

#define FOLDER "tests/fixtures/topologies/"
#define MAX_NODES 1200
#define MAX_DEPTH 40
#define MAX_TEXT 16384

struct drawing {
	char name[120];
	struct nvfs_node node[MAX_NODES];
	struct nvfs_tree tree;
	char want_rows[MAX_TEXT], want_acs[MAX_TEXT];
};

static int near_a, near_b;	/* of the drawing at hand */

static bool near_each_other(int a, int b)
{
	return (a == near_a && b == near_b) || (a == near_b && b == near_a);
}

static void addr(char *to, size_t len, const struct nvfs_node *d)
{
	snprintf(to, len, "%04x:%02x:%02x.%d", d->domain, d->bus, d->devfn >> 3, d->devfn & 7);
}

static void add(char *text, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, MAX_TEXT - n, fmt, ap);
	va_end(ap);
}

/* What the proc files would say, in the language of the drawings. */
static void rows(const struct nvfs_tree *t, char *text)
{
	unsigned int g, p;
	char a[32], b[32], c[32];
	u8 width, speed;
	int at;

	*text = '\0';
	for (g = 0; g < t->n; g++) {
		for (p = 0; p < t->n && nvfs_node_is_gpu(t, g); p++) {
			const char *class = nvfs_node_peer_class(t, p);
			enum nvfs_way way;

			if (!class)
				continue;
			nvfs_node_link(t, p, &width, &speed);
			way = nvfs_tree_way(t, g, p, &at);
			addr(a, sizeof(a), &t->node[g]);
			addr(b, sizeof(b), &t->node[p]);
			if (at >= 0)
				addr(c, sizeof(c), &t->node[at]);
			add(text, "%s %s %u 0x%08x %u %u %u %s %s%s%s\n", a, b,
			    nvfs_tree_distance(t, g, p), nvfs_tree_rank(t, g, p), width, speed,
			    t->node[p].numa & 0xff, class,
			    way == NVFS_WAY_HOST ? "host" :
			    way == NVFS_WAY_SWITCH ? "switch" : "redirect",
			    at >= 0 ? "@" : "", at >= 0 ? c : "");
		}
	}
}

static void guilty(const struct nvfs_tree *t, char *text)
{
	unsigned int i;
	char a[32];

	*text = '\0';
	for (i = 0; i < t->n; i++) {
		if (!nvfs_node_acs(t, i))
			continue;
		addr(a, sizeof(a), &t->node[i]);
		add(text, " %s", a);
	}
}

static int check(struct drawing *d)
{
	static char got[MAX_TEXT];
	int bad = 0;

	d->tree.node = d->node;
	d->tree.near = near_each_other;
	rows(&d->tree, got);
	if (strcmp(got, d->want_rows)) {
		print_error("%s: drawn rows\n%sare\n%s", d->name, d->want_rows, got);
		bad = 1;
	}
	guilty(&d->tree, got);
	if (strcmp(got, d->want_acs)) {
		print_error("%s: bridges with ACS are drawn as%s, and are%s\n", d->name,
			    d->want_acs, got);
		bad = 1;
	}
	return bad;
}

static void kind(struct nvfs_node *n, const char *word, const char *where)
{
	static const struct {
		const char *word;
		bool bridge;
		u16 vendor, device;
		u32 class;
	} kinds[] = {
		{ "root", true, 0x1b36, 0x000c, 0x060400 },
		{ "up", true, 0x104c, 0x8232, 0x060400 },
		{ "down", true, 0x104c, 0x8233, 0x060400 },
		{ "bridge", true, 0x1b36, 0x000e, 0x060400 },
		{ "gpu", false, 0x10de, 0x2330, 0x030200 },
		{ "vga", false, 0x10de, 0x2204, 0x030000 },
		{ "nvme", false, 0x144d, 0xa80a, 0x010802 },
		{ "eth", false, 0x15b3, 0x1021, 0x020000 },
		{ "ib", false, 0x15b3, 0x1021, 0x020700 },
		{ "other", false, 0x8086, 0x1234, 0xff0000 },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].word, word))
			continue;
		n->bridge = kinds[i].bridge;
		n->vendor = kinds[i].vendor;
		n->device = kinds[i].device;
		n->class = kinds[i].class;
		return;
	}
	fail_msg("%s: unknown kind '%s'", where, word);
}

static void attribute(struct nvfs_node *n, const char *word, const char *where)
{
	unsigned int v, w;
	int end = 0;

	if (sscanf(word, "x%u%n", &v, &end) == 1 && !word[end])
		n->width = v;
	else if (sscanf(word, "gen%u%n", &v, &end) == 1 && !word[end])
		n->speed = v;
	else if (sscanf(word, "numa=%u%n", &v, &end) == 1 && !word[end])
		n->numa = v;
	else if (sscanf(word, "acs=%x%n", &v, &end) == 1 && !word[end])
		n->acs = v;
	else if (sscanf(word, "class=%x%n", &v, &end) == 1 && !word[end])
		n->class = v;
	else if (sscanf(word, "id=%x:%x%n", &v, &w, &end) == 2 && !word[end])
		n->vendor = v, n->device = w;
	else
		fail_msg("%s: unknown attribute '%s'", where, word);
}

/* One function; last[depth] is the latest one so far indented. */
static void function(struct drawing *d, char *line, int *last)
{
	struct nvfs_node *n = &d->node[d->tree.n];
	unsigned int domain, bus, slot, fn, depth = strspn(line, " ") / 2;
	char *word, *save;

	assert_true(d->tree.n < MAX_NODES && depth < MAX_DEPTH);
	word = strtok_r(line, " \n", &save);
	if (sscanf(word, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) != 4)
		fail_msg("%s: '%s' is no address", d->name, word);
	*n = (struct nvfs_node){
		.domain = domain, .bus = bus, .devfn = slot << 3 | fn,
		.parent = depth ? last[depth - 1] : NVFS_NO_NODE, .numa = NVFS_NO_NODE,
	};
	if (depth && (n->parent < 0 || !d->node[n->parent].bridge))
		fail_msg("%s: %s hangs below no bridge", d->name, word);
	kind(n, strtok_r(NULL, " \n", &save), d->name);
	while ((word = strtok_r(NULL, " \n", &save)))
		attribute(n, word, d->name);
	last[depth] = d->tree.n++;
}

/* All drawings of one file; how many there were. */
static int file(const char *name, int *bad)
{
	static struct drawing d;
	int last[MAX_DEPTH] = { 0 }, n = 0;
	char path[200], line[300];
	FILE *f;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s cannot be read", path);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "tree ", 5)) {
			if (n++)
				*bad += check(&d);
			memset(&d, 0, sizeof(d));
			near_a = near_b = -2;
			snprintf(d.name, sizeof(d.name), "%s: %.*s", name,
				 (int)strcspn(line + 5, "\n"), line + 5);
		} else if (sscanf(line, "near %d %d", &near_a, &near_b) == 2) {
			continue;
		} else if (!strncmp(line, "extra ", 6)) {
			assert_int_equal(nvfs_extra_gpu_parse(line + 6, &d.tree.extra_vendor,
							      &d.tree.extra_device), 0);
		} else if (!strncmp(line, "= ", 2)) {
			add(d.want_rows, "%s", line + 2);
		} else if (!strncmp(line, "acs ", 4)) {
			add(d.want_acs, " %.*s", (int)strcspn(line + 4, "\n"), line + 4);
		} else if (line[0] != '#' && line[0] != '\n') {
			function(&d, line, last);
		}
	}
	if (n)
		*bad += check(&d);
	fclose(f);
	return n;
}

static void drawn(void **state)
{
	int bad = 0, n = file("switches", &bad) + file("acs", &bad) + file("odd", &bad);

	assert_true(n >= 40);	/* none is lost on the way */
	assert_int_equal(bad, 0);
}

/* 100 GPUs and 100 drives, more than any table of the original holds, on ten switches. */
static void many(void **state)
{
	static struct nvfs_node node[10 * 2 + 400];
	struct nvfs_tree t = { .node = node };
	unsigned int i, g, p, pairs = 0, gpus = 0;

	for (i = 0; i < 10; i++) {
		node[t.n++] = (struct nvfs_node){ .bridge = true, .parent = NVFS_NO_NODE };
		node[t.n] = (struct nvfs_node){ .bridge = true, .parent = t.n - 1 };
		t.n++;
	}
	for (i = 0; i < 200; i++) {
		node[t.n] = (struct nvfs_node){ .bridge = true, .parent = i % 10 * 2 + 1 };
		t.n++;
		node[t.n] = (struct nvfs_node){ .parent = t.n - 1, .vendor = i < 100 ? 0x10de : 1,
						.class = i < 100 ? 0x030200 : 0x010802 };
		t.n++;
	}
	for (g = 0; g < t.n; g++) {
		if (!nvfs_node_is_gpu(&t, g))
			continue;
		gpus++;
		for (p = 0; p < t.n; p++) {
			bool together;

			if (!nvfs_node_peer_class(&t, p))
				continue;
			pairs++;
			together = node[node[g].parent].parent == node[node[p].parent].parent;
			assert_int_equal(nvfs_tree_distance(&t, g, p),
					 together ? 3 : NVFS_CROSS_LOCAL + 3 + 3 + 1);
		}
	}
	assert_int_equal(gpus, 100);
	assert_int_equal(pairs, 100 * 100);
}

/* Random trees: what does not depend on where something else is must not change. */
static void random_trees(void **state)
{
	static struct nvfs_node node[60], other[60];
	struct nvfs_tree t = { .node = node, .n = 60 }, u = { .node = other, .n = 60 };
	unsigned int round, i, a, b, pairs = 0;
	int at, at2;

	srand(20261129);
	for (round = 0; round < 400; round++) {
		for (i = 0; i < 60; i++)
			node[i] = (struct nvfs_node){
				.bridge = i < 30, .numa = NVFS_NO_NODE,
				.parent = rand() % ((i < 30 ? i : 30) + 1) - 1,
				.acs = rand() % 4 ? 0 : rand() % 0x80,
			};
		a = 30 + rand() % 30;
		b = 30 + rand() % 30;
		/* from the other end the way is the same; without ACS the distance, too */
		assert_int_equal(nvfs_tree_way(&t, a, b, &at), nvfs_tree_way(&t, b, a, &at2));
		memcpy(other, node, sizeof(node));
		for (i = 0; i < 60; i++)
			other[i].acs = 0;
		assert_int_equal(nvfs_tree_distance(&u, a, b), nvfs_tree_distance(&u, b, a));
		assert_true(nvfs_tree_distance(&u, a, b) <= nvfs_tree_distance(&t, a, b));
		assert_true(nvfs_tree_way(&u, a, b, &at) != NVFS_WAY_REDIRECT);
		assert_true(nvfs_is_cross(nvfs_tree_distance(&u, a, b)) ==
			    (nvfs_tree_way(&u, a, b, &at) == NVFS_WAY_HOST));
		/* one more bridge above a, which is not b's, is one more hop */
		if (node[a].parent != node[b].parent && a != b) {
			other[59] = (struct nvfs_node){ .bridge = true, .parent = node[a].parent };
			if (a != 59 && b != 59) {
				u32 before = nvfs_tree_distance(&u, a, b);

				other[a].parent = 59;
				assert_int_equal(nvfs_tree_distance(&u, a, b), before + 1);
				pairs++;
			}
		}
	}
	assert_true(pairs > 100);
}

/* What the kernel never makes: a circle. Any number will do, if it comes. */
static void circle(void **state)
{
	struct nvfs_node node[] = {
		{ .bridge = true, .parent = 1 }, { .bridge = true, .parent = 0 },
		{ .parent = 0 }, { .parent = NVFS_NO_NODE },
	};
	struct nvfs_tree t = { .node = node, .n = 4 };
	u8 width, speed;
	int at;

	nvfs_node_link(&t, 2, &width, &speed);
	assert_int_equal(width, 0);
	nvfs_tree_distance(&t, 2, 3);
	nvfs_tree_distance(&t, 3, 2);
	nvfs_tree_way(&t, 2, 3, &at);
	nvfs_tree_way(&t, 2, 2, &at);
}

static void extra_gpu(void **state)
{
	static const char *const wrong[] = {
		"1af4", "1af4:", "1af4:111", "1af4:11100", "1af41110", "1af4:111g", "0000:1110",
		" 1af4:1110", "1af4:1110 ", "1af4:1110,", "1af4:1110\n\n", "\x11" "af4:1110",
	};
	u16 v, d;
	size_t i;

	assert_int_equal(nvfs_extra_gpu_parse("1af4:1110", &v, &d), 0);
	assert_int_equal(v, 0x1af4);
	assert_int_equal(d, 0x1110);
	assert_int_equal(nvfs_extra_gpu_parse("10DE:0000\n", &v, &d), 0);
	assert_int_equal(v, 0x10de);
	assert_int_equal(d, 0);
	assert_int_equal(nvfs_extra_gpu_parse("", &v, &d), 0);
	assert_int_equal(v, 0);
	assert_int_equal(nvfs_extra_gpu_parse(NULL, &v, &d), 0);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (nvfs_extra_gpu_parse(wrong[i], &v, &d) != -EINVAL || v || d)
			fail_msg("extra_gpu=%s is taken", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn),
		cmocka_unit_test(many),
		cmocka_unit_test(random_trees),
		cmocka_unit_test(circle),
		cmocka_unit_test(extra_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
