// SPDX-License-Identifier: MIT
/*
 * t_topology.c - the tree that gdscheck draws, of a made-up machine with a switch, ports of their
 * own and a second socket. Fails when a function stands in a wrong place, when a link below what
 * both ends can is not marked (or one that is not, is), when a bridge's ACS or an IOMMU is told
 * wrong, when a pair is said to be nearer than it is, and when the picture is no XML or needs
 * anything else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "pci_made.h"
#include "topology.h"

#define A "sys/devices/pci0000:00"
#define PORT A "/0000:00:01.0"
#define UP PORT "/0000:01:00.0"
#define DOWN1 UP "/0000:02:00.0"
#define DOWN2 UP "/0000:02:01.0"
#define GPU DOWN1 "/0000:03:00.0"
#define DRIVE DOWN2 "/0000:04:00.0"
#define PORT2 A "/0000:00:02.0"
#define DRIVE2 PORT2 "/0000:05:00.0"
#define NIC PORT2 "/0000:05:00.1"
#define FAR "sys/devices/pci0000:80/0000:80:01.0"
#define FAR_DRIVE FAR "/0000:81:00.0"

static char text[65536];

static void bridge(const char *path, unsigned int acs)
{
	made_function(path, "0x060400", "0x8086");
	made_acs(path, acs);
	made_link(path, "16.0 GT/s PCIe", 16, "32.0 GT/s PCIe", 16);
}

static void iommu(const char *path, const char *to)
{
	char link[200];

	snprintf(link, sizeof(link), "%s/iommu_group", path);
	assert_true(tree_link(made_root, link, to));
}

static void machine(void)
{
	bridge(PORT, 0);
	bridge(UP, 0);
	bridge(DOWN1, 0);
	bridge(DOWN2, 0);
	made_function(GPU, "0x030200", "0x10de");
	made_file(GPU, "numa_node", "0");
	made_link(GPU, "16.0 GT/s PCIe", 16, "32.0 GT/s PCIe", 16);
	made_function(DRIVE, "0x010802", "0x144d");
	made_file(DRIVE, "nvme/nvme0/x", "");
	/* the drive can no more than it has */
	made_link(DRIVE, "16.0 GT/s PCIe", 4, "16.0 GT/s PCIe", 4);
	bridge(PORT2, 0);
	made_function(DRIVE2, "0x010802", "0x144d");
	made_file(DRIVE2, "nvme/nvme1/x", "");
	made_link(DRIVE2, "16.0 GT/s PCIe", 2, "16.0 GT/s PCIe", 4);
	made_function(NIC, "0x020000", "0x15b3");
	made_file(NIC, "net/eth0/x", "");
	bridge(FAR, 0);
	made_function(FAR_DRIVE, "0x010802", "0x144d");
}

static void draw(void)
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	assert_int_equal(gc_topology(made_root, f), TOPOLOGY_EXIT_TOLD);
	fclose(f);
}

static void has(const char *want)
{
	if (!strstr(text, want))
		fail_msg("'%s' is not in:\n%s", want, text);
}

static void has_not(const char *want)
{
	if (strstr(text, want))
		fail_msg("'%s' is in:\n%s", want, text);
}

static void t_tree(void **state)
{
	machine();
	draw();
	has("pci0000:00 root complex\n"
	    "|- 0000:00:01.0 root port [8086:0001], ACS redirects nothing\n"
	    "|  `- 0000:01:00.0 switch [8086:0001], link 16.0 GT/s x16, SLOW: both ends can 32.0 GT/s x16, ACS redirects nothing\n"
	    "|     |- 0000:02:00.0 switch port [8086:0001], ACS redirects nothing\n"
	    "|     |  `- 0000:03:00.0 GPU [10de:0001], link 16.0 GT/s x16, SLOW: both ends can 32.0 GT/s x16, no IOMMU, NUMA node 0\n"
	    "|     `- 0000:02:01.0 switch port [8086:0001], ACS redirects nothing\n"
	    "|        `- 0000:04:00.0 drive nvme0 [144d:0001], link 16.0 GT/s x4, no IOMMU\n"
	    "`- 0000:00:02.0 root port [8086:0001], ACS redirects nothing\n"
	    "   |- 0000:05:00.0 drive nvme1 [144d:0001], link 16.0 GT/s x2, SLOW: both ends can 16.0 GT/s x4, no IOMMU\n"
	    "   `- 0000:05:00.1 network eth0 [15b3:0001], link 16.0 GT/s x16, SLOW: both ends can 32.0 GT/s x16, no IOMMU\n"
	    "pci0000:80 root complex\n"
	    "`- 0000:80:01.0 root port [8086:0001], ACS redirects nothing\n"
	    "   `- 0000:81:00.0 drive [144d:0001], link 16.0 GT/s x16");
	has("SLOW: an idle GPU");
	has_not("REDIRECTS:");
}

static void t_pairs(void **state)
{
	machine();
	draw();
	has("  0000:03:00.0 - 0000:04:00.0 nvme0: same switch (meet at 0000:01:00.0)\n");
	has("  0000:03:00.0 - 0000:05:00.0 nvme1: same host bridge\n");
	has("  0000:03:00.0 - 0000:81:00.0: other host bridge\n");
	/* a GPU beside a drive in one slot */
	made_function(PORT2 "/0000:05:00.2", "0x030200", "0x10de");
	draw();
	has("  0000:05:00.2 - 0000:05:00.0 nvme1: same root port (meet at 0000:00:02.0)\n");
}

static void t_acs(void **state)
{
	unsigned char b[64] = { 0 };

	machine();
	made_acs(DOWN2, FACTS_ACS_REQUEST | FACTS_ACS_COMPLETION | FACTS_ACS_UPSTREAM);
	draw();
	has("0000:02:01.0 switch port [8086:0001], ACS REDIRECTS request completion\n");
	has("nvme0: same switch (meet at 0000:01:00.0), but ACS of 0000:02:01.0 sends it up to the host bridge\n");
	has("REDIRECTS: bytes between");
	/* what stands above the bridge where they meet, or is no redirection, is none of theirs */
	made_acs(DOWN2, FACTS_ACS_VALIDATION | FACTS_ACS_BLOCKING | FACTS_ACS_UPSTREAM);
	made_acs(PORT, FACTS_ACS_EGRESS);
	draw();
	has("0000:00:01.0 root port [8086:0001], ACS REDIRECTS egress\n");
	has("nvme0: same switch (meet at 0000:01:00.0)\n");
	/* not readable is not "off" */
	made_acs(PORT, 0);
	made_config(DOWN1, b, sizeof(b));
	draw();
	has("0000:02:00.0 switch port [8086:0001], ACS not readable\n");
	has("nvme0: same switch (meet at 0000:01:00.0), if ACS is off (not readable: run as root)\n");
}

static void t_iommu(void **state)
{
	machine();
	iommu(GPU, "../../../../../../kernel/iommu_groups/7");
	made_file("sys/kernel/iommu_groups/7", "type", "DMA-FQ\n");
	iommu(DRIVE, "../../../../../../kernel/iommu_groups/8");
	made_file("sys/kernel/iommu_groups/8", "type", "identity\n");
	draw();
	has("0000:03:00.0 GPU [10de:0001], link 16.0 GT/s x16, SLOW: both ends can 32.0 GT/s x16, IOMMU TRANSLATES (lazy), group 7, NUMA node 0\n");
	has("link 16.0 GT/s x4, IOMMU identity, group 8\n");
	has("nvme0: same switch (meet at 0000:01:00.0), addresses of 0000:03:00.0 are translated\n");
}

static void t_nothing(void **state)
{
	FILE *f = fmemopen(text, sizeof(text), "w");

	assert_non_null(f);
	assert_int_equal(gc_topology(made_root, f), TOPOLOGY_EXIT_FAILED);
	fclose(f);
	has("sys/bus/pci/devices: No such file or directory; mount /sys");
	assert_true(tree_put(made_root, "sys/bus/pci/devices/x", ""));
	draw();
	has("no pair:");
}

/* ---- the picture ---- */

static void read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
}

/* Elements end in the order in which they began. */
static void nests(void)
{
	const char *open[16], *p = text, *end;
	unsigned int n = 0;
	size_t len;

	for (; (p = strchr(p, '<')); p = end + 1) {
		end = strchr(p, '>');
		assert_non_null(end);
		if (p[1] == '/') {
			len = strcspn(p + 2, ">");
			assert_true(n-- > 0);
			assert_int_equal(strncmp(open[n], p + 2, len), 0);
			assert_true(strchr(" >", open[n][len]));
		} else if (end[-1] != '/') {
			assert_true(n < 16);
			open[n++] = p + 1;
		}
	}
	assert_int_equal(n, 0);
}

static void t_svg(void **state)
{
	char path[128];

	machine();
	made_acs(DOWN2, FACTS_ACS_REQUEST);
	snprintf(path, sizeof(path), "%s/out.svg", made_root);
	assert_int_equal(gc_topology_svg(made_root, path), TOPOLOGY_EXIT_TOLD);
	read_file(path);
	assert_int_equal(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", 50), 0);
	nests();
	has("GPU  0000:03:00.0</text>");
	has("drive nvme1  0000:05:00.0</text>");
	has("class=\"w\">ACS REDIRECTS request</tspan>");
	has("class=\"w\">link 16.0 GT/s x2, SLOW: both ends can 16.0 GT/s x4</tspan>");
	has("<tspan dx=\"0\">link 16.0 GT/s x4</tspan>");
	has("class=\"s w\">0000:03:00.0 - 0000:04:00.0 nvme0: same switch");
	has("prefers-color-scheme:dark");
	has("class=\"bg\" width=\"100%\"");
	/* nothing from elsewhere */
	has_not("href");
	has_not("url(");
	has_not("@import");
	has_not("<script");
	assert_int_equal(gc_topology_svg(made_root, "/dev/full"), TOPOLOGY_EXIT_FAILED);
	assert_int_equal(gc_topology_svg(made_root, made_root), TOPOLOGY_EXIT_FAILED);
	snprintf(path, sizeof(path), "%s/none", made_root);
	assert_int_equal(gc_topology_svg(path, "/dev/null"), TOPOLOGY_EXIT_FAILED);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, made_setup, made_teardown)
	const struct CMUnitTest tests[] = {
		T(t_tree), T(t_pairs), T(t_acs), T(t_iommu), T(t_nothing), T(t_svg),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
