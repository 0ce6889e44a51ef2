// SPDX-License-Identifier: MIT
/*
 * t_gdscheck_record.c - gdscheck --record: a machine as the doctor sees it, in a tar archive. Fails
 * when the unpacked archive is judged in another way than the machine, when a name of a user, host,
 * folder, volume, or a number of a device is found in it, and when tar does not read it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gdscheck.h"
#include "machine.h"
#include "read.h"
#include "scrub.h"
#include "tar.h"

#define FOLDER "tests/fixtures/machines/"
#define ARCHIVE (4 << 20)	/* bytes: more than any of these is */

static char top[64], root[80], file[80], copy[80];
static struct gc_machine machine;

static int setup(void **state)
{
	snprintf(top, sizeof(top), "/tmp/t_gdscheck_record.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(root, sizeof(root), "%s/m", top);
	snprintf(copy, sizeof(copy), "%s/copy", top);
	snprintf(file, sizeof(file), "%s/m.tar", top);
	return mkdir(root, 0755) || mkdir(copy, 0755);
}

static int teardown(void **state)
{
	return tree_remove(top) ? 0 : -1;
}

static void unpack(void)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "tar -xf %s -C %s", file, copy);
	assert_int_equal(system(cmd), 0);
}

/* What it says of itself: given back by free() */
static char *record(const char *of)
{
	char *said;
	size_t len;
	FILE *out = open_memstream(&said, &len);

	assert_non_null(out);
	assert_int_equal(gc_record(of, file, out), 0);
	fclose(out);
	unpack();
	return said;
}

static void judge(const char *where, struct gc_report *r)
{
	assert_int_equal(gc_machine_read(&machine, where, NULL, 0), 0);
	assert_int_equal(gc_doctor(&machine, r), 0);
}

/* The archive says what the machine says; of one that runs, files that are opened aside. */
static void same_verdicts(const char *of)
{
	struct gc_report a, b;
	size_t i;

	judge(of, &a);
	judge(copy, &b);
	assert_int_equal(a.n, b.n);
	for (i = 0; i < a.n; i++) {
		if (b.finding[i].verdict == GC_SKIP &&
		    !strncmp(b.finding[i].text, "needs the live machine", 22))
			continue;
		if (a.finding[i].verdict != b.finding[i].verdict)
			fail_msg("%s: %s (%s), and of the record %s (%s)", a.finding[i].check->id,
				 gc_verdict_name(a.finding[i].verdict), a.finding[i].text,
				 gc_verdict_name(b.finding[i].verdict), b.finding[i].text);
	}
	gc_report_free(&a);
	gc_report_free(&b);
}

/* Nothing in the archive, neither text nor name, has these words, in any case of letters. */
static void has_none(const char *const *word, size_t n)
{
	char *all = malloc(ARCHIVE);
	FILE *f = fopen(file, "r");
	size_t len, at, i;

	assert_true(f && all);
	len = fread(all, 1, ARCHIVE, f);
	assert_true(feof(f) && len > 10240);
	fclose(f);
	for (i = 0; i < n; i++)
		for (at = 0; at + strlen(word[i]) <= len; at++)
			if (!strncasecmp(all + at, word[i], strlen(word[i])))
				fail_msg("'%s' is in the archive", word[i]);
	free(all);
}

static void t_this_machine(void **state)
{
	free(record(""));
	same_verdicts("");
}

static void t_made_up(void **state)
{
	static const char *const bases[] = { "server", "desktop", "cloud" };
	char path[128];
	size_t i;

	for (i = 0; i < 3; i++) {
		assert_true(tree_remove(root) && tree_remove(copy));
		assert_int_equal(mkdir(root, 0755) | mkdir(copy, 0755), 0);
		snprintf(path, sizeof(path), FOLDER "%s.machine", bases[i]);
		machine_unpack(root, path);
		free(record(root));
		same_verdicts(root);
	}
}

/* A setting that a check asks for is in the archive: here that nothing may be listed. */
static void t_geforce(void **state)
{
	struct gc_report r;

	machine_unpack(root, FOLDER "desktop.machine");
	machine_write(root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
		      "Model: \t\t NVIDIA GeForce RTX 3060\nDevice Minor: \t 0\nGPU Firmware: \t 590.48.01\n");
	machine_write(root, "etc/cufile.json", "{ \"opengds\": { \"register_peers\": false } }");
	free(record(root));
	same_verdicts(root);
	judge(copy, &r);
	assert_string_equal(r.first->check->id, "D-04");
	assert_int_equal(r.first->verdict, GC_FAIL);
	gc_report_free(&r);
}

/* A machine full of names and of problems: the problems stay, the names do not. */
static void t_names(void **state)
{
	static const char *const secrets[] = {
		"alice", "acme", "10.1.2.3", "4d5e6f70", "AbCdEf", "serial-nr", "00:1b:21",
		"naa.5000c500", "192.0.2", "GPU-8a", "builder", "S3CR3T", "ffffffff81",
	};
	char text[256], *said;
	struct gc_report r;

	machine_unpack(root, FOLDER "server.machine");
	machine_write(root, "proc/self/mountinfo",
		      "1 0 8:2 / / rw - ext4 /dev/sda2 rw\n"
		      "2 0 253:0 / /srv/alice/acme rw - xfs /dev/mapper/acme-alice rw\n"
		      "3 0 0:60 / /mnt/acme rw - nfs4 10.1.2.3:/export/alice rw,addr=192.0.2.7\n");
	machine_disk(root, "virtual/block/dm-0 253:0");
	machine_below(root, "253:0 nvme0n1p1");
	machine_write(root, "sys/devices/virtual/block/dm-0/dm/uuid", "LVM-AbCdEfS3CR3T\n");
	machine_write(root, "proc/driver/nvidia/version",
		      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@acme)\n");
	machine_write(root, "proc/driver/nvidia/gpus/0000:03:00.0/information",
		      "Model: \t NVIDIA H200\nGPU UUID: \t GPU-8a0b1c2d-0000-1111-2222-333344445555\n"
		      "Device Minor: \t 0\nGPU Firmware: \t 580.95.05\nSerial: serial-nr\n");
	machine_write(root, "proc/driver/nvidia-fs/opengds",
		      "version: 0.1.0\ndriver nvme: not attached: 4d5e6f70-1111-2222-3333-444455556666 00:1b:21:aa:bb:cc naa.5000c500a1b2c3d4\np2pdma: not used: x\n");
	machine_write(root, "proc/driver/nvidia-fs/modules", "wekafsio: 1\n");
	machine_write(root, "proc/kallsyms",
		      "ffffffff81000000 T nvme_v2_register_nvfs_dma_ops\t[nvme]\nffffffff81000001 T alice\n");
	machine_write(root, "etc/modprobe.d/alice.conf",
		      "# acme, by alice\noptions nvidia NVreg_Other=acme NVreg_EnableGpuFirmware=0\n");
	machine_write(root, "etc/cufile.json",
		      "{ \"logging\": { \"dir\": \"/srv/alice\" },\n"
		      "\"properties\": { \"rdma_dev_addr_list\": [ \"192.0.2.1\" ],\n"
		      "\"force_compat_mode\": true } }");
	machine_write(root, "dev/kmsg",
		      "4,1,1,-;audit: alice logged in\n4,2,2,-;nvidia_fs: no symbol version for nvidia_p2p_get_pages\n");
	machine_write(root, "proc/driver/nvidia-fs/peer_distance", "");
	/* of a folder that is listed only the names count */
	machine_write(root, "proc/driver/nvidia/capabilities/gpu0/mig/gi3/access", "");
	said = record(root);
	same_verdicts(root);
	has_none(secrets, sizeof(secrets) / sizeof(secrets[0]));
	/* the same word for one name, and of another shape the same shape */
	assert_true(facts_read(copy, "proc/self/mountinfo", text, sizeof(text)) > 0);
	assert_non_null(strstr(text, " /srv/dir1/dir2 "));
	assert_non_null(strstr(text, " /mnt/dir2 "));
	assert_non_null(strstr(text, " /dev/mapper/vol1 "));
	assert_true(facts_label(copy, "proc/driver/nvidia-fs/opengds", "driver nvme", text,
				sizeof(text)) > 0);
	assert_string_equal(text, "not attached: 00000000-0000-4000-8000-000000000001 02:00:00:00:00:01 naa.0000000000000001");
	/* it lists what it leaves out */
	assert_non_null(strstr(said, "  /proc/kallsyms: all symbols but"));
	assert_non_null(strstr(said, "  /etc/cufile.json: all but"));
	free(said);
	judge(copy, &r);
	assert_int_equal(gc_report_status(&r), GC_EXIT_FAIL);
	gc_report_free(&r);
}

/* The serial number in a function's configuration */
static void t_config_serial(void **state)
{
	unsigned char c[4096] = { 0 };
	size_t i;

	c[0x100] = 0x0d;	/* ACS, and behind it, at 0x148, the serial number */
	c[0x102] = 1;
	c[0x103] = 0x14;
	c[0x102] |= 0x80;
	c[0x148] = 3;
	c[0x14a] = 1;
	memset(c + 0x14c, 0xab, 8);
	c[0x106] = 0x1d;
	c[0x154] = 0x77;
	scrub_config(c, sizeof(c));
	for (i = 0; i < 8; i++)
		assert_int_equal(c[0x14c + i], 0);
	assert_int_equal(c[0x106], 0x1d);
	assert_int_equal(c[0x154], 0x77);
}

static void t_scrub(void **state)
{
	static struct scrub s;
	char text[128];

	/* PCI addresses, sizes and short numbers are none of these things */
	snprintf(text, sizeof(text), "0000:01:00.0 0x00000000fb000000 8:0 aa:bb:cc 12345678-1234");
	scrub_text(&s, text, strlen(text));
	assert_string_equal(text, "0000:01:00.0 0x00000000fb000000 8:0 aa:bb:cc 12345678-1234");
	/* in any case of letters one name */
	snprintf(text, sizeof(text), "AA:BB:CC:DD:EE:FF aa:bb:cc:dd:ee:ff aa:bb:cc:dd:ee:00");
	scrub_text(&s, text, strlen(text));
	assert_string_equal(text, "02:00:00:00:00:01 02:00:00:00:00:01 02:00:00:00:00:02");
	scrub_path(&s, "/", text, sizeof(text));
	assert_string_equal(text, "/");
	scrub_path(&s, "/data/x/data", text, sizeof(text));
	assert_string_equal(text, "/data/dir1/data");
	scrub_source(&s, "/dev/nvme0n1p2", text, sizeof(text));
	assert_string_equal(text, "/dev/nvme0n1p2");
	scrub_source(&s, "/dev/disk/by-id/x", text, sizeof(text));
	assert_string_equal(text, "source1");
	scrub_source(&s, "/dev/vdiskofbob", text, sizeof(text));
	assert_string_equal(text, "source2");
}

/* A path of n bytes whose first folder has a name of its own */
static void long_name(char *path, size_t n)
{
	size_t i;

	memset(path, 'a' + (int)(n % 26), n);
	for (i = 20; i < n; i += 21)
		path[i] = '/';
	path[n] = '\0';
}

/* Names of any length, contents of any size, modes, links: as tar reads them. */
static void t_tar(void **state)
{
	char *path = calloc(1, 700), to[300], got[400], text[1200];
	static const size_t sizes[] = { 0, 1, 511, 512, 513, 1024 };
	FILE *f = fopen(file, "w");
	struct stat st;
	size_t i;
	ssize_t n;

	assert_non_null(f);
	assert_non_null(path);
	memset(text, 'x', sizeof(text));
	for (i = 0; i < 6; i++) {
		snprintf(path, 700, "size/%zu", sizes[i]);
		assert_int_equal(tar_file(f, path, 0640, text, sizes[i]), 0);
	}
	/* fits the header; split; too long for it; a component that cannot be split */
	for (i = 99; i < 320; i += 55) {
		long_name(path, i);
		assert_int_equal(tar_file(f, path, 0600, "long", 4), 0);
	}
	memset(path, 'b', 200);
	path[200] = '\0';
	assert_int_equal(tar_file(f, path, 0600, "whole", 5), 0);
	memset(to, 'c', sizeof(to));
	to[299] = '\0';
	assert_int_equal(tar_link(f, "far", to), 0);
	assert_int_equal(tar_link(f, "near", "size/1"), 0);
	assert_int_equal(tar_dir(f, "empty"), 0);
	assert_int_equal(tar_end(f), 0);
	fclose(f);
	unpack();

	for (i = 0; i < 6; i++) {
		snprintf(path, 700, "%s/size/%zu", copy, sizes[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_size, sizes[i]);
		assert_int_equal(st.st_mode & 0777, 0640);
	}
	for (i = 99; i < 320; i += 55) {
		long_name(path, i);
		assert_int_equal(facts_read(copy, path, text, sizeof(text)), 4);
	}
	memset(path, 'b', 200);
	path[200] = '\0';
	assert_int_equal(facts_read(copy, path, text, sizeof(text)), 5);
	snprintf(text, sizeof(text), "%s/far", copy);
	n = readlink(text, got, sizeof(got));
	assert_int_equal(n, 299);
	assert_memory_equal(got, to, 299);
	assert_int_equal(facts_read(copy, "near", text, sizeof(text)), 1);
	free(path);
}

static void t_no_room(void **state)
{
	FILE *out = fopen("/dev/null", "w");

	assert_int_equal(gc_record("", "/nonexistent/x.tar", out), GC_EXIT_ERROR);
	assert_int_equal(gc_record("/nonexistent", file, out), GC_EXIT_ERROR);
	/* a full disk is no record */
	assert_int_equal(gc_record("", "/dev/full", out), GC_EXIT_ERROR);
	fclose(out);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(t_this_machine), T(t_made_up), T(t_geforce), T(t_names), T(t_config_serial),
		T(t_scrub), T(t_tar), T(t_no_room),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
