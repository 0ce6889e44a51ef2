// SPDX-License-Identifier: MIT
/*
 * t_gdsio_machine.c - the facts beside gdsio's rates, and the processors of a node (-n).
 *
 * Guards that speed and width of a link are those of sysfs, that a link below what it can is
 * told, that what cannot be read is called unknown, and that -n binds to the node's
 * processors and refuses a node that is not there; that a file of btrfs is called one. Fails when
 * a fact is made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "../../tools/gdsio/machine.c"
#include "../../tools/gdsio/numa.c"
#include "tree.h"

static char root[] = "/tmp/t_gdsio_machine.XXXXXX";
static char told[512];

void gdsio_err(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(told, sizeof(told), fmt, ap);
	va_end(ap);
}

static void put(const char *path, const char *text)
{
	assert_true(tree_put(root, path, text));
}

static void facts_of_the_machine(void **state)
{
	struct gdsio_machine m;

	gdsio_machine(root, &m);
	assert_string_equal(m.cpu, "unknown");
	assert_int_equal(m.memory, 0);
	assert_string_equal(m.module, "not loaded");
	put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nmodel name\t: Other\n");
	put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
	gdsio_machine(root, &m);
	assert_string_equal(m.cpu, "Some CPU");
	assert_int_equal(m.memory, 16384 * 1024);
	assert_true(m.cpus >= 1);
	assert_int_equal(m.cufile, 1180);
}

#define DRIVE "0000:02:00.0"
#define FOLDER "sys/devices/pci0000:00/0000:00:01.0/" DRIVE "/"

static void links(void **state)
{
	struct gdsio_end end = { .pci = DRIVE };
	char text[64];

	gdsio_end_link(root, &end);
	assert_string_equal(gdsio_link_text(&end, text), "unknown");
	put(FOLDER "current_link_speed", "16.0 GT/s PCIe\n");
	put(FOLDER "current_link_width", "4\n");
	put(FOLDER "max_link_speed", "16.0 GT/s PCIe\n");
	put(FOLDER "max_link_width", "4\n");
	assert_true(tree_link(root, "sys/bus/pci/devices/" DRIVE,
			      "../../../devices/pci0000:00/0000:00:01.0/" DRIVE));
	gdsio_end_link(root, &end);
	assert_string_equal(gdsio_link_text(&end, text), "16.0GT/s x4");
	put(FOLDER "current_link_speed", "2.5 GT/s PCIe\n");
	put(FOLDER "current_link_width", "2\n");
	gdsio_end_link(root, &end);
	assert_string_equal(gdsio_link_text(&end, text), "2.5GT/s x2 (can 16.0GT/s x4)");
	end.pci[0] = '\0';
	gdsio_end_link(root, &end);
	assert_string_equal(gdsio_link_text(&end, text), "unknown");
}

static void lists_of_processors(void **state)
{
	static const struct {
		const char *text;
		int count, first, last;	/* count 0: refused */
	} lists[] = {
		{ "0", 1, 0, 0 }, { "0-3\n", 4, 0, 3 }, { "2,5-6,9\n", 4, 2, 9 }, { "\n", 0 },
		{ "3-1", 0 }, { "a", 0 }, { "1-", 0 }, { "0-99999", 0 },
	};
	cpu_set_t set;
	size_t i;
	int err;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		err = parse_list(lists[i].text, &set);
		assert_int_equal(!err, lists[i].count > 0);
		if (err)
			continue;
		assert_int_equal(CPU_COUNT(&set), lists[i].count);
		assert_true(CPU_ISSET(lists[i].first, &set) && CPU_ISSET(lists[i].last, &set));
	}
}

static void binds_to_a_node(void **state)
{
	cpu_set_t was, now, back;
	char list[16];
	int cpu;

	sched_getaffinity(0, sizeof(back), &back);
	for (cpu = 0; !CPU_ISSET(cpu, &back); cpu++)
		;
	snprintf(list, sizeof(list), "%d\n", cpu);
	put("sys/devices/system/node/node3/cpulist", list);
	put("sys/devices/system/node/node4/cpulist", "\n");
	assert_int_equal(gdsio_numa_bind(root, 3, &was), 0);
	assert_true(CPU_EQUAL(&was, &back));
	sched_getaffinity(0, sizeof(now), &now);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_true(CPU_ISSET(cpu, &now));
	sched_setaffinity(0, sizeof(back), &back);
	assert_int_equal(gdsio_numa_bind(root, 4, &was), -EIO);
	assert_non_null(strstr(told, "-n 4: the node has no processors"));
	assert_int_equal(gdsio_numa_bind(root, 5, &was), -EIO);
	assert_non_null(strstr(told, "-n 5: this machine has no such node"));
}

/* btrfs: the mount table has not the number of its files, but that of the mount. */
static void the_file_system(void **state)
{
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct gdsio_place place;
	struct statx st;
	char line[200];

	assert_true(fd >= 0);
	put("proc/self/mountinfo", "1 0 4095:4095 / / rw - ext4 /dev/x rw\n");
	gdsio_place(root, fd, &place);
	assert_string_equal(place.fs, "unknown");
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st), 0);
	if (!(st.stx_mask & STATX_MNT_ID)) {
		print_message("this kernel tells no number of a mount (5.8 does)\n");
		skip();
	}
	snprintf(line, sizeof(line), "%llu 0 4095:4094 / /b rw - btrfs /dev/x rw\n",
		 (unsigned long long)st.stx_mnt_id);
	put("proc/self/mountinfo", line);
	gdsio_place(root, fd, &place);
	assert_string_equal(place.fs, "btrfs");
	close(fd);
}

static int make(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int drop(void **state)
{
	return nftw(root, tree_drop, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_of_the_machine),
		cmocka_unit_test(links),
		cmocka_unit_test(the_file_system),
		cmocka_unit_test(lists_of_processors),
		cmocka_unit_test(binds_to_a_node),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
