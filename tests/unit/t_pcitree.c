// SPDX-License-Identifier: MIT
/*
 * t_pcitree.c - the PCI tree of GPUs and drives on made-up trees of /sys, and what the
 * library makes of it: the exported file, the size of BAR1. Fails when a function is taken
 * for another kind, put in a wrong place or forgotten, and when the file is written through
 * somebody's link.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cufile_fake.h"
#include "facts.h"
#include "gpu.h"
#include "os.h"

#define OK(call) assert_int_equal((call).err, CU_FILE_SUCCESS)
#define FAILS(call, code) assert_int_equal((call).err, CU_FILE_##code)

#define COMPLEX "pci0000:00"
#define PORT COMPLEX "/0000:00:01.0"
#define UP PORT "/0000:01:00.0"
#define DOWN1 UP "/0000:02:00.0"
#define DOWN2 UP "/0000:02:01.0"

static void shell(const char *fmt, ...)
{
	char cmd[1024];
	va_list ap;
	int n;

	n = snprintf(cmd, sizeof(cmd), "cd '%s' && ", os_root);
	va_start(ap, fmt);
	vsnprintf(cmd + n, sizeof(cmd) - n, fmt, ap);
	va_end(ap);
	assert_int_equal(system(cmd), 0);
}

/* A function at `path` below sys/devices */
static void put(const char *path, const char *class, const char *vendor, const char *device,
		const char *numa)
{
	const char *address = strrchr(path, '/') + 1;

	shell("mkdir -p sys/devices/%s sys/bus/pci/devices && d=sys/devices/%s && echo %s >$d/class && "
	      "echo %s >$d/vendor && echo %s >$d/device && echo %s >$d/numa_node && "
	      "ln -sfn ../../../devices/%s sys/bus/pci/devices/%s",
	      path, path, class, vendor, device, numa, path, address);
}

static void drive(const char *path, const char *name)
{
	put(path, "0x010802", "0x144d", "0xa80a", "1");
	if (name[0])
		shell("mkdir -p sys/devices/%s/nvme/%s", path, name);
}

/* The machine of cufile_fake.h, its drive aside */
static int setup(void **state)
{
	fake_setup(state);
	shell("rm -rf sys && mkdir -p sys/bus/pci/devices");
	return 0;
}

/* A root port, a switch, two GPUs of generations and a drive below it; a drive aside */
static void make_tree(void)
{
	put(PORT, "0x060400", "0x8086", "0x347a", "0");
	put(UP, "0x060400", "0x1000", "0xc030", "0");
	put(DOWN1, "0x060400", "0x1000", "0xc030", "0");
	put(DOWN2, "0x060400", "0x1000", "0xc030", "0");
	put(DOWN1 "/0000:03:00.0", "0x030200", "0x10de", "0x2330", "0");
	drive(DOWN2 "/0000:04:00.0", "nvme3");
	put(COMPLEX "/0000:00:02.0", "0x060400", "0x8086", "0x347b", "0");
	put(COMPLEX "/0000:00:02.0/0000:05:00.0", "0x030000", "0x10de", "0x20b5", "-1");
}

static struct facts_pci out[64];

static const struct facts_pci *find(int n, const char *address)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(out[i].address, address))
			return &out[i];
	return NULL;
}

static void is(int n, const char *address, enum facts_pci_kind kind, const char *parent)
{
	const struct facts_pci *p = find(n, address);

	assert_non_null(p);
	assert_int_equal(p->kind, kind);
	assert_string_equal(p->parent, parent);
}

/* -- facts -- */

static void t_tree(void **state)
{
	int n, i;

	make_tree();
	n = facts_pci_tree(os_root, out, 64);
	assert_int_equal(n, 8);
	is(n, "0000:00:01.0", FACTS_PCI_ROOT_PORT, "");
	is(n, "0000:01:00.0", FACTS_PCI_SWITCH, "0000:00:01.0");
	is(n, "0000:02:00.0", FACTS_PCI_SWITCH, "0000:01:00.0");
	is(n, "0000:02:01.0", FACTS_PCI_SWITCH, "0000:01:00.0");
	is(n, "0000:03:00.0", FACTS_PCI_GPU, "0000:02:00.0");
	is(n, "0000:04:00.0", FACTS_PCI_NVME, "0000:02:01.0");
	is(n, "0000:00:02.0", FACTS_PCI_ROOT_PORT, "");
	is(n, "0000:05:00.0", FACTS_PCI_GPU, "0000:00:02.0");
	for (i = 1; i < n; i++)
		assert_true(strcmp(out[i - 1].address, out[i].address) < 0);
	assert_string_equal(find(n, "0000:04:00.0")->name, "nvme3");
	assert_string_equal(find(n, "0000:04:00.0")->complex, COMPLEX);
	assert_int_equal(find(n, "0000:04:00.0")->numa, 1);
	assert_int_equal(find(n, "0000:03:00.0")->numa, 0);
	assert_int_equal(find(n, "0000:05:00.0")->numa, -1);
	assert_int_equal(find(n, "0000:03:00.0")->vendor, 0x10de);
	assert_int_equal(find(n, "0000:03:00.0")->device, 0x2330);
}

/* What is no GPU, no drive, or above neither, does not matter. */
static void t_left_out(void **state)
{
	int n;

	put(PORT, "0x060400", "0x8086", "0x1", "0");
	put(UP, "0x060400", "0x1000", "0x2", "0");
	put(DOWN1, "0x060400", "0x1000", "0x3", "0");
	put(COMPLEX "/0000:00:03.0", "0x030000", "0x1a03", "0x2000", "0");	/* a BMC's VGA */
	put(COMPLEX "/0000:00:04.0", "0x020000", "0x10de", "0x1", "0");	/* a NIC */
	put(COMPLEX "/0000:00:05.0", "0x010601", "0x8086", "0x2", "0");	/* AHCI */
	put(COMPLEX "/0000:00:06.0", "0x040300", "0x10de", "0x3", "0");	/* a GPU's audio */
	put(COMPLEX "/0000:00:07.0", "0x060100", "0x8086", "0x3", "0");	/* an ISA bridge */
	put(COMPLEX "/0000:00:08.0", "0x050000", "0x1af4", "0x1110", "0");	/* no driver */
	assert_int_equal(facts_pci_tree(os_root, out, 64), 0);
	shell("mkdir sys/devices/" COMPLEX "/0000:00:08.0/gpu_sim");
	n = facts_pci_tree(os_root, out, 64);
	assert_int_equal(n, 1);
	is(n, "0000:00:08.0", FACTS_PCI_GPU, "");
}

static void t_odd(void **state)
{
	int n;

	/* behind a VMD the drives have a complex of their own; a drive without a driver */
	drive(COMPLEX "/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0", "nvme0");
	put(COMPLEX "/0000:00:0e.0/pci10000:e0/10000:e0:06.0", "0x060400", "0x8086", "0x1", "0");
	drive(COMPLEX "/0000:00:04.0", "");
	/* a function that is half gone, a name that is none, a link out of the tree */
	put(COMPLEX "/0000:00:05.0", "0x030200", "0x10de", "0x1", "0");
	shell("rm sys/devices/" COMPLEX "/0000:00:05.0/vendor");
	shell("ln -s ../../../devices/" COMPLEX "/0000:00:04.0 sys/bus/pci/devices/lost+found");
	shell("ln -s ../../../../../../x sys/bus/pci/devices/0000:00:06.0");
	n = facts_pci_tree(os_root, out, 64);
	assert_int_equal(n, 3);
	is(n, "0000:00:04.0", FACTS_PCI_NVME, "");
	assert_string_equal(find(n, "0000:00:04.0")->name, "");
	is(n, "10000:e0:06.0", FACTS_PCI_ROOT_PORT, "");
	is(n, "10000:e1:00.0", FACTS_PCI_NVME, "10000:e0:06.0");
	assert_string_equal(find(n, "10000:e1:00.0")->complex, "pci10000:e0");
	assert_string_equal(out[0].address, "0000:00:04.0");
	assert_int_equal(facts_pci_tree(os_root, out, 2), -EOVERFLOW);
	shell("rm -r sys/bus");
	assert_int_equal(facts_pci_tree(os_root, out, 64), -ENOENT);
}

/* The columns of `resource`: start, end, flags; six BARs, the ROM, then the windows. */
static void t_bar1(void **state)
{
	static const char *const text[] = {
		/* an older generation: BAR1 is at 1 */
		"0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n"
		"0x00000000e0000000 0x00000000efffffff 0x000000000014220c\n"
		"0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		"0x00000000f0000000 0x00000000f1ffffff 0x000000000014220c\n"
		"0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		"0x000000000000e000 0x000000000000e07f 0x0000000000040101\n"
		"0x0000000800000000 0x0000008fffffffff 0x000000000014220c\n",
		/* a newer one: BAR0 has 64 bits too, BAR1 is at 2 */
		"0x0000022042000000 0x0000022042ffffff 0x000000000014220c\n"
		"0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		"0x0000020000000000 0x0000021fffffffff 0x000000000014220c\n"
		"0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
		"0x0000022040000000 0x0000022041ffffff 0x000000000014220c\n"
		"0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		/* none */
		"0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n"
		"0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n",
	};
	static const uint64_t want[] = { 256ULL << 20, 128ULL << 30, 0 };
	unsigned int i;
	uint64_t n;

	put(COMPLEX "/0000:00:05.0", "0x030200", "0x10de", "0x1", "0");
	assert_int_equal(facts_pci_bar1(os_root, "0000:00:05.0", &n), -ENOENT);
	for (i = 0; i < 3; i++) {
		shell("printf '%s' >sys/devices/" COMPLEX "/0000:00:05.0/resource", text[i]);
		assert_int_equal(facts_pci_bar1(os_root, "0000:00:05.0", &n), 0);
		assert_int_equal(n, want[i]);
	}
	shell("echo nonsense >sys/devices/" COMPLEX "/0000:00:05.0/resource");
	assert_int_equal(facts_pci_bar1(os_root, "0000:00:05.0", &n), -EPROTO);
	shell("printf '0 0 0\\n0 0 0' >sys/devices/" COMPLEX "/0000:00:05.0/resource");
	assert_int_equal(facts_pci_bar1(os_root, "0000:00:05.0", &n), -EPROTO);
	assert_int_equal(facts_pci_bar1(os_root, "../0000:00:05.0", &n), -EINVAL);
	assert_int_equal(facts_pci_bar1(os_root, "0000:00:09.0", &n), -ENOENT);
}

/* -- the library -- */

static void t_bar_size(void **state)
{
	char address[32], what[256], path[64];
	uint64_t pdevinfo;
	size_t kb = 7;

	assert_int_equal(gpu->open(what, sizeof(what)), 0);
	assert_int_equal(gpu->pci(0, &pdevinfo, address, sizeof(address)), 0);
	FAILS(cuFileGetBARSizeInKB(0, &kb), DEVICE_NOT_FOUND);
	snprintf(path, sizeof(path), COMPLEX "/%s", address);
	put(path, "0x030200", "0x10de", "0x1", "0");
	shell("printf '0 0 0\\n0x10000000 0x1fffffff 0x14220c\\n0 0 0\\n0 0 0\\n0 0 0\\n0 0 0\\n' >sys/devices/%s/resource",
	      path);
	OK(cuFileGetBARSizeInKB(0, &kb));
	assert_int_equal(kb, 262144);
	FAILS(cuFileGetBARSizeInKB(-1, &kb), INVALID_VALUE);
	FAILS(cuFileGetBARSizeInKB(gpu->count(), &kb), INVALID_VALUE);
	FAILS(cuFileGetBARSizeInKB(0, NULL), INVALID_VALUE);
	/* the first call opened the library, as the vendor's does */
	assert_int_equal(cuFileUseCount(), 1);
	OK(cuFileDriverClose());
}

static const char *target(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", fake.dir, name);
	return path;
}

static const char *text_of(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static struct json_object *in_list(struct json_object *root, const char *list, size_t i)
{
	struct json_object *l = json_object_object_get(root, list);

	assert_true(json_object_is_type(l, json_type_array));
	assert_true(i < json_object_array_length(l));
	return json_object_array_get_idx(l, i);
}

static void has(struct json_object *o, const char *key, const char *want)
{
	struct json_object *v = json_object_object_get(o, key);

	if (want)
		assert_string_equal(json_object_get_string(v), want);
	else
		assert_null(v);
}

#define HEAD "// Topology file for cuFile.\n"

static void t_export(void **state)
{
	const char *path = target("topology.json"), *text;
	struct json_object *root, *o;

	make_tree();
	OK(cuFileExportPCIeTopology(path));
	text = text_of(path);
	assert_int_equal(strncmp(text, HEAD, strlen(HEAD)), 0);
	root = json_tokener_parse(text + strlen(HEAD));
	assert_non_null(root);
	assert_int_equal(json_object_array_length(json_object_object_get(root, "bridges")), 5);
	assert_int_equal(json_object_array_length(json_object_object_get(root, "gpus")), 2);
	assert_int_equal(json_object_array_length(json_object_object_get(root, "drives")), 1);
	o = in_list(root, "bridges", 0);
	has(o, "address", "0000:00:01.0");
	has(o, "kind", "root port");
	has(o, "parent", NULL);
	o = in_list(root, "bridges", 2);
	has(o, "kind", "switch");
	has(o, "parent", "0000:00:01.0");
	o = in_list(root, "gpus", 0);
	has(o, "address", "0000:03:00.0");
	has(o, "vendor", "0x10de");
	has(o, "device", "0x2330");
	has(o, "root", COMPLEX);
	has(o, "numa_node", "0");
	o = in_list(root, "drives", 0);
	has(o, "name", "nvme3");
	json_object_put(root);
	/* a shorter one over it leaves nothing of the longer */
	shell("rm -r sys/bus");
	OK(cuFileExportPCIeTopology(path));
	assert_string_equal(text_of(path), HEAD "null\n");
	assert_int_equal(cuFileUseCount(), 0);
}

static void t_export_refused(void **state)
{
	char victim[128], path[300];

	FAILS(cuFileExportPCIeTopology(NULL), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology(""), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology("/proc/nothing/here"), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology(fake.dir), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology("/"), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology(target("x/")), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology("/dev/full"), INVALID_VALUE);
	memset(path, 'n', 299);
	path[299] = '\0';
	FAILS(cuFileExportPCIeTopology(path), INVALID_VALUE);

	shell("mkdir -m 1777 ../all && mkdir ../own && mkfifo ../own/fifo && echo precious >../own/victim");
	snprintf(victim, sizeof(victim), "%s", target("own/victim"));
	FAILS(cuFileExportPCIeTopology(target("own/fifo")), INVALID_VALUE);
	/* a link as the file, a link as a folder on the way, a second name of a file */
	shell("ln -s ../own/victim ../all/link && ln -s ../own ../all/folder");
	FAILS(cuFileExportPCIeTopology(target("all/link")), INVALID_VALUE);
	FAILS(cuFileExportPCIeTopology(target("all/folder/victim")), INVALID_VALUE);
	assert_string_equal(text_of(victim), "precious\n");
	shell("ln ../own/victim ../all/hard");
	FAILS(cuFileExportPCIeTopology(target("all/hard")), INVALID_VALUE);
	assert_string_equal(text_of(victim), "precious\n");
	/* one's own are followed, and a file among all is made */
	OK(cuFileExportPCIeTopology(target("all/plain")));
	OK(cuFileExportPCIeTopology(target("all/plain")));
	shell("ln -s victim ../own/link");
	OK(cuFileExportPCIeTopology(target("own/link")));
	assert_string_equal(text_of(victim), HEAD "null\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(t_tree),     T(t_left_out), T(t_odd),	    T(t_bar1),
		T(t_bar_size), T(t_export),   T(t_export_refused),
	};

	return cmocka_run_group_tests(tests, fake_cuda, NULL);
}
