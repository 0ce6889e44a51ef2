// SPDX-License-Identifier: MIT
/*
 * t_facts_machine.c - facts of the GPU driver, the kernel, the PCI ways and stacked devices, on
 * made-up machines. Fails when a value is read from another line, key, register or device than
 * its own, when a long line is taken for two, and when what cannot be read passes for absent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "machine.h"
#include "read.h"

#define SWITCH "pci0000:00/0000:00:01.0/0000:01:00.0"

static char root[80];
static struct facts_pci tree[32];

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/t_facts_machine.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	machine_unpack(root, "tests/fixtures/machines/server.machine");
	return 0;
}

static int teardown(void **state)
{
	return tree_remove(root) ? 0 : -1;
}

static void put(const char *path, const char *text)
{
	assert_true(tree_put(root, path, text));
}

struct lines {
	unsigned int n, stop;
	size_t longest;
	char last[64];
};

static int line(void *arg, char *text)
{
	struct lines *l = arg;

	l->n++;
	if (strlen(text) > l->longest)
		l->longest = strlen(text);
	snprintf(l->last, sizeof(l->last), "%.63s", text);
	return l->n == l->stop ? 7 : 0;
}

static void t_lines(void **state)
{
	struct lines l = { 0 };
	char *big = malloc(100001);

	assert_non_null(big);
	put("lines", "one\n\nthree");
	assert_int_equal(facts_lines(root, "lines", line, &l), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.last, "three");
	l = (struct lines){ .stop = 1 };
	assert_int_equal(facts_lines(root, "lines", line, &l), 7);
	assert_string_equal(l.last, "one");
	assert_int_equal(facts_lines(root, "no-such", line, &l), -ENOENT);

	/* one line, cut; the next one is whole */
	memset(big, 'a', 100000);
	memcpy(big + 99990, "\nshort\n", 8);
	put("lines", big);
	l = (struct lines){ 0 };
	assert_int_equal(facts_lines(root, "lines", line, &l), 0);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.longest, FACTS_LINE - 1);
	assert_string_equal(l.last, "short");
	free(big);
}

static void t_label(void **state)
{
	char text[16];

	put("labels", "Name2: no\nName : \t yes \nName: late\n");
	assert_int_equal(facts_label(root, "labels", "Name", text, sizeof(text)), 3);
	assert_string_equal(text, "yes");
	assert_int_equal(facts_label(root, "labels", "Nam", text, sizeof(text)), -ENODATA);
	assert_int_equal(facts_label(root, "labels", "Name", text, 3), -EOVERFLOW);
	assert_int_equal(facts_label(root, "no-such", "Name", text, sizeof(text)), -ENOENT);
}

static void t_registry(void **state)
{
	static const char list[] = "\"ForceP2P=0x11;RMForceP2PType=1;Odd\"";
	unsigned long v = 0;

	assert_true(facts_registry(list, "ForceP2P", &v));
	assert_int_equal(v, 0x11);
	/* names without regard to case, and whole */
	assert_true(facts_registry(list, "rmforcep2ptype", &v));
	assert_int_equal(v, 1);
	assert_false(facts_registry(list, "P2PType", &v));
	assert_false(facts_registry(list, "Odd", &v));
	assert_false(facts_registry("", "ForceP2P", &v));
	assert_false(facts_registry("ForceP2P=", "ForceP2P", &v));
}

static void t_driver(void **state)
{
	struct facts_gpu_driver d;
	char version[32], path[64], text[32];

	assert_int_equal(facts_gpu_driver(root, &d), 0);
	assert_string_equal(d.version, "580.95.05");
	assert_int_equal(d.major, 580);
	assert_true(d.open);
	put("proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n");
	assert_int_equal(facts_gpu_driver(root, &d), 0);
	assert_string_equal(d.version, "535.129.03");
	assert_false(d.open);
	put("proc/driver/nvidia/version", "NVRM version: none\n");
	assert_int_equal(facts_gpu_driver(root, &d), -EPROTO);
	assert_int_equal(facts_gpu_driver("/nonexistent", &d), -ENODEV);

	assert_int_equal(facts_libcuda(root, version, sizeof(version), path, sizeof(path)), 0);
	assert_string_equal(version, "580.95.05");
	assert_true(facts_gpu_info(root, "0000:03:00.0", "Model", text, sizeof(text)) > 0);
	assert_string_equal(text, "NVIDIA H200");
}

static void t_symbols(void **state)
{
	static const char *const names[] = { "_text", "text", "nvme_v2_register_nvfs_dma_ops" };

	/* "[nvme]" behind a name is not part of it, the end of a name is not the name */
	assert_int_equal(facts_symbols(root, names, 3), 5);
	assert_int_equal(facts_symbols("/nonexistent", names, 3), -ENOENT);
}

static void t_mode(void **state)
{
	assert_int_equal(facts_mode(root, "dev/nvidia0"), 0666);
	assert_int_equal(facts_mode(root, "dev/nvidia1"), -ENOENT);
}

/* -- PCI -- */

static const struct facts_pci *at(size_t n, const char *address)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(tree[i].address, address))
			return &tree[i];
	fail_msg("no function %s", address);
	return NULL;
}

static void way(const char *a, const char *b, enum facts_way_kind kind, const char *where)
{
	int n = facts_pci_tree(root, tree, 32);
	struct facts_way w;

	assert_true(n > 0);
	facts_way(root, tree, n, at(n, a), at(n, b), &w);
	assert_int_equal(w.kind, kind);
	assert_string_equal(w.at, where);
	/* the other way round the same kind */
	facts_way(root, tree, n, at(n, b), at(n, a), &w);
	assert_int_equal(w.kind, kind);
}

static void t_way(void **state)
{
	char pci[256];

	way("0000:03:00.0", "0000:04:00.0", FACTS_WAY_SWITCH, "0000:01:00.0");
	/* source validation, upstream forwarding: they send nothing to the top */
	snprintf(pci, sizeof(pci), SWITCH "/0000:02:01.0 060400 1000:c030 acs=11");
	machine_pci(root, pci);
	way("0000:03:00.0", "0000:04:00.0", FACTS_WAY_SWITCH, "0000:01:00.0");
	snprintf(pci, sizeof(pci), SWITCH "/0000:02:01.0 060400 1000:c030 acs=04");
	machine_pci(root, pci);
	way("0000:03:00.0", "0000:04:00.0", FACTS_WAY_REDIRECT, "0000:02:01.0");
	/* above the bridge in common nothing counts */
	snprintf(pci, sizeof(pci), SWITCH "/0000:02:01.0 060400 1000:c030 acs=00");
	machine_pci(root, pci);
	snprintf(pci, sizeof(pci), "pci0000:00/0000:00:01.0 060400 8086:352a acs=1d");
	machine_pci(root, pci);
	way("0000:03:00.0", "0000:04:00.0", FACTS_WAY_SWITCH, "0000:01:00.0");

	snprintf(pci, sizeof(pci), "pci0000:00/0000:00:02.0 060400 8086:352a acs=00");
	machine_pci(root, pci);
	snprintf(pci, sizeof(pci), "pci0000:00/0000:00:02.0/0000:06:00.0 010802 144d:a824 acs=00");
	machine_pci(root, pci);
	way("0000:03:00.0", "0000:06:00.0", FACTS_WAY_HOST, "");
	snprintf(pci, sizeof(pci), "pci0000:80/0000:80:02.0 010802 144d:a824 acs=00");
	machine_pci(root, pci);
	way("0000:03:00.0", "0000:80:02.0", FACTS_WAY_FAR, "");
}

static void t_acs(void **state)
{
	struct facts_pci_acs acs;
	char pci[128];

	snprintf(pci, sizeof(pci), "pci0000:00/0000:00:09.0 060400 8086:1 acs=2c");
	machine_pci(root, pci);
	assert_int_equal(facts_pci_acs(root, "0000:00:09.0", &acs), 0);
	assert_true(acs.readable);
	assert_int_equal(acs.on, 0x2c);
	put("sys/devices/pci0000:00/0000:00:09.0/config", "64 bytes or less");
	assert_int_equal(facts_pci_acs(root, "0000:00:09.0", &acs), 0);
	assert_false(acs.readable);
	assert_int_equal(facts_pci_acs(root, "0000:00:1f.0", &acs), -ENOENT);
}

static void t_bar(void **state)
{
	uint64_t start, bytes;

	assert_int_equal(facts_pci_bar(root, "0000:03:00.0", 1, &start, &bytes), 0);
	assert_int_equal(start, 0x20000000000);
	assert_int_equal(bytes, 262144ULL << 20);
	assert_int_equal(facts_pci_bar(root, "0000:03:00.0", 2, &start, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(facts_pci_bar(root, "0000:03:00.0", 6, &start, &bytes), -EINVAL);
}

/* -- stacked devices, mounts -- */

static int gather(void *arg, unsigned int major, unsigned int minor)
{
	*(unsigned int *)arg = *(unsigned int *)arg * 1000 + major + minor;
	return 0;
}

static void t_below(void **state)
{
	unsigned int got = 0;
	char text[32];

	machine_disk(root, "virtual/block/dm-0 253:0");
	machine_below(root, "253:0 nvme0n1p1");
	put("sys/devices/virtual/block/dm-0/dm/uuid", "LVM-abc\n");
	assert_int_equal(facts_block_below(root, 253, 0, gather, &got), 0);
	assert_int_equal(got, 259 + 1);
	assert_true(facts_block_text(root, 253, 0, "dm/uuid", text, sizeof(text)) > 0);
	assert_string_equal(text, "LVM-abc");
	/* of a partition: the disk's */
	assert_true(facts_block_text(root, 259, 1, "queue/max_segments", text, sizeof(text)) > 0);
	got = 0;
	assert_int_equal(facts_block_below(root, 259, 0, gather, &got), 0);
	assert_int_equal(got, 0);
}

static int count(void *arg, const struct facts_mount *m)
{
	unsigned int *n = arg;

	if (!strcmp(m->point, "/data"))
		assert_int_equal(m->major * 1000 + m->minor, 259001);
	return ++*n == 9 ? 1 : 0;
}

static void t_mounts(void **state)
{
	unsigned int n = 0;

	assert_int_equal(facts_mounts(root, count, &n), 0);
	assert_int_equal(n, 3);
	n = 8;
	assert_int_equal(facts_mounts(root, count, &n), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_lines), T(t_label), T(t_registry), T(t_driver), T(t_symbols), T(t_mode),
		T(t_way), T(t_acs), T(t_bar), T(t_below), T(t_mounts),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
