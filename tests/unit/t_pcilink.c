// SPDX-License-Identifier: MIT
/*
 * t_pcilink.c - what is between PCI functions, on made-up trees of /sys. Fails when two are
 * said to meet at another bridge than they do, when a speed, a width, a bit of ACS or the type
 * of an IOMMU group is read wrong, and when 64 readable bytes are taken for "no ACS".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "facts.h"
#include "pci_made.h"

#define COMPLEX "sys/devices/pci0000:00"
#define PORT COMPLEX "/0000:00:01.0"
#define UP PORT "/0000:01:00.0"
#define DOWN1 UP "/0000:02:00.0"
#define DOWN2 UP "/0000:02:01.0"
#define GPU DOWN1 "/0000:03:00.0"
#define DRIVE DOWN2 "/0000:04:00.0"

/* A switch with a GPU and a drive; a drive at another port, a NIC there, a drive far away */
static int make_tree(struct facts_pci *all, size_t max)
{
	made_function(PORT, "0x060400", "0x8086");
	made_function(UP, "0x060400", "0x1000");
	made_function(DOWN1, "0x060400", "0x1000");
	made_function(DOWN2, "0x060400", "0x1000");
	made_function(GPU, "0x030200", "0x10de");
	made_function(DRIVE, "0x010802", "0x144d");
	made_function(COMPLEX "/0000:00:02.0", "0x060400", "0x8086");
	made_function(COMPLEX "/0000:00:02.0/0000:05:00.0", "0x010802", "0x144d");
	made_function(COMPLEX "/0000:00:02.0/0000:05:00.1", "0x020000", "0x15b3");
	made_function(COMPLEX "/0000:00:03.0", "0x060400", "0x8086");
	made_function(COMPLEX "/0000:00:03.0/0000:06:00.0", "0x020700", "0x15b3");
	made_function("sys/devices/pci0000:80/0000:80:01.0", "0x060400", "0x8086");
	made_function("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", "0x010802", "0x144d");
	return facts_pci_tree_nics(made_root, all, max);
}

static struct facts_pci all[32];

static const struct facts_pci *find(int n, const char *address)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(all[i].address, address))
			return &all[i];
	fail_msg("%s is not in the tree", address);
	return NULL;
}

static void way(int n, const char *a, const char *b, enum facts_pci_way want, const char *meet)
{
	const struct facts_pci *at = NULL;

	assert_int_equal(facts_pci_way(all, n, find(n, a), find(n, b), &at), want);
	assert_string_equal(at ? at->address : "", meet);
	assert_int_equal(facts_pci_way(all, n, find(n, b), find(n, a), &at), want);
	assert_string_equal(at ? at->address : "", meet);
}

static void t_way(void **state)
{
	int n = make_tree(all, 32);

	assert_int_equal(n, 13);
	way(n, "0000:03:00.0", "0000:04:00.0", FACTS_PCI_WAY_SWITCH, "0000:01:00.0");
	way(n, "0000:05:00.0", "0000:05:00.1", FACTS_PCI_WAY_PORT, "0000:00:02.0");
	way(n, "0000:03:00.0", "0000:05:00.0", FACTS_PCI_WAY_HOST, "");
	way(n, "0000:03:00.0", "0000:81:00.0", FACTS_PCI_WAY_OTHER, "");
	assert_string_equal(facts_pci_above(all, n, find(n, "0000:04:00.0"))->address,
			    "0000:02:01.0");
	assert_null(facts_pci_above(all, n, find(n, "0000:80:01.0")));
}

static void t_nics(void **state)
{
	int n;

	made_file(COMPLEX "/0000:00:03.0/0000:06:00.0/net/ibp6s0", "mtu", "4092");
	made_file(COMPLEX "/0000:00:02.0/0000:05:00.1/net/a\"b", "mtu", "1500");
	n = make_tree(all, 32);
	assert_int_equal(find(n, "0000:06:00.0")->kind, FACTS_PCI_NIC);
	assert_string_equal(find(n, "0000:06:00.0")->name, "ibp6s0");
	assert_string_equal(find(n, "0000:05:00.1")->name, "");
	/* who does not ask for them gets neither them nor the bridge above */
	n = facts_pci_tree(made_root, all, 32);
	assert_int_equal(n, 10);
}

/* text of the four files, NULL: not there */
static void link_is(const char *speed, const char *width, unsigned int want_speed,
		    unsigned int want_width)
{
	struct facts_pci_link l;

	made_file(GPU, "current_link_speed", speed);
	made_file(GPU, "current_link_width", width);
	assert_int_equal(facts_pci_link(made_root, "0000:03:00.0", &l), 0);
	assert_int_equal(l.speed, want_speed);
	assert_int_equal(l.width, want_width);
	assert_int_equal(l.max_speed, 32000);
	assert_int_equal(l.max_width, 16);
}

static void t_link(void **state)
{
	struct facts_pci_link l;

	make_tree(all, 32);
	assert_int_equal(facts_pci_link(made_root, "0000:03:00.0", &l), 0);
	assert_int_equal(l.speed + l.width + l.max_speed + l.max_width, 0);
	made_file(GPU, "max_link_speed", "32.0 GT/s PCIe\n");
	made_file(GPU, "max_link_width", "16\n");
	link_is("2.5 GT/s PCIe\n", "8\n", 2500, 8);
	link_is("8 GT/s\n", "1\n", 8000, 1);	/* older kernels */
	link_is("64.0 GT/s PCIe\n", "32\n", 64000, 32);
	link_is("Unknown\n", "0\n", 0, 0);
	link_is("Unknown speed\n", "255\n", 0, 0);
	link_is("99999999999 GT/s\n", "-1\n", 0, 0);
	link_is("16.0 MB/s\n", "x4\n", 0, 0);
	assert_int_equal(facts_pci_link(made_root, "0000:33:00.0", &l), -ENOENT);
	assert_int_equal(facts_pci_link(made_root, "../../etc", &l), -EINVAL);
}

static void t_acs(void **state)
{
	unsigned char b[4096] = { 0 };
	struct facts_pci_acs a;

	make_tree(all, 32);
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), -ENOENT);
	/* AER at 0x100, then ACS at 0x148, with capability 0x5f and control 0x1d */
	made_word(b, 0x100, 0x14820001);
	made_word(b, 0x148, 0x0001000d);
	made_word(b, 0x14c, 0x001d005f);
	made_config(DOWN1, b, sizeof(b));
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), 0);
	assert_true(a.readable && a.there);
	assert_int_equal(a.able, 0x5f);
	assert_int_equal(a.on, 0x1d);
	/* what the kernel shows to those without privilege */
	made_config(DOWN1, b, 64);
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), 0);
	assert_false(a.readable || a.there || a.on);
	/* a function without an extended space; one that is gone; a list in a circle */
	made_config(DOWN1, b, 256);
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), 0);
	assert_true(a.readable && !a.there);
	memset(b, 0xff, sizeof(b));
	made_config(DOWN1, b, sizeof(b));
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), 0);
	assert_true(a.readable && !a.there);
	made_word(b, 0x100, 0x20020001);
	made_word(b, 0x200, 0x10020003);
	made_config(DOWN1, b, sizeof(b));
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), 0);
	assert_true(a.readable && !a.there);
	/* the capability at the very end, cut off */
	memset(b, 0, sizeof(b));
	made_word(b, 0x100, 0xffc20001);
	made_word(b, 0xffc, 0x0001000d);
	made_config(DOWN1, b, sizeof(b));
	assert_int_equal(facts_pci_acs(made_root, "0000:02:00.0", &a), 0);
	assert_false(a.there);
}

static void group(const char *type, enum facts_iommu want)
{
	struct facts_pci_iommu i;

	assert_true(tree_put(made_root, "sys/kernel/iommu_groups/17/type", type));
	assert_int_equal(facts_pci_iommu(made_root, "0000:03:00.0", &i), 0);
	assert_int_equal(i.group, 17);
	assert_int_equal(i.state, want);
}

static void t_iommu(void **state)
{
	struct facts_pci_iommu i;

	make_tree(all, 32);
	assert_int_equal(facts_pci_iommu(made_root, "0000:03:00.0", &i), 0);
	assert_int_equal(i.state, FACTS_IOMMU_NONE);
	assert_int_equal(i.group, -1);
	/* up from the function to sys: six */
	assert_true(tree_link(made_root, GPU "/iommu_group",
			      "../../../../../../kernel/iommu_groups/17"));
	assert_int_equal(facts_pci_iommu(made_root, "0000:03:00.0", &i), 0);
	assert_int_equal(i.state, FACTS_IOMMU_UNKNOWN);
	group("identity\n", FACTS_IOMMU_IDENTITY);
	group("DMA\n", FACTS_IOMMU_DMA);
	group("DMA-FQ\n", FACTS_IOMMU_DMA_FQ);
	group("blocked\n", FACTS_IOMMU_BLOCKED);
	group("unmanaged\n", FACTS_IOMMU_BLOCKED);
	group("auto\n", FACTS_IOMMU_UNKNOWN);
	assert_int_equal(facts_pci_iommu(made_root, "0000:33:00.0", &i), -ENOENT);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, made_setup, made_teardown)
	const struct CMUnitTest tests[] = {
		T(t_way), T(t_nics), T(t_link), T(t_acs), T(t_iommu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
