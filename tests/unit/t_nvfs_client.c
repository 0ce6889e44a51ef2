// SPDX-License-Identifier: MIT
/*
 * t_nvfs_client.c - the test client's own rules, without module or card: opening against
 * made-up proc and dev folders, the texts, the request of a checkpoint and its answer, the
 * pattern that names misplaced blocks, and the digest.
 *
 * Guards the tools that the guest tests judge by: a client that accepts a wrong version or
 * a checker that sees no misplaced block would make those tests worthless.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "../clients/t_checkpoint.c"
#include "nvfs_client.h"
#include "t_pattern.h"
#include "tree.h"

static char root[64], path[160];

/* The simulator's: two pieces on card 1, the second one first in the card. */
int gpu_sim_where(const void *ptr, size_t size, struct gpu_sim_piece *pieces, unsigned int n)
{
	assert_int_equal((uintptr_t)ptr, 0x10000);
	assert_true(n >= 2);
	pieces[0] = (struct gpu_sim_piece){ 1, 0, 0x50000, 0x10000, 0 };
	pieces[1] = (struct gpu_sim_piece){ 1, 0, 0x20000, size - 0x10000, 0x10000 };
	return 2;
}

static const char *at(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	assert_true(tree_put(root, name, text));
}

static int make_root(void **state)
{
	strcpy(root, "/tmp/t_nvfs_client.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	return tree_remove(root) ? 0 : -1;
}

/* -- open -- */

static void no_module(void **state)
{
	struct nvfs nv;

	assert_int_equal(nvfs_open(&nv, root, root), -ENODEV);
	assert_non_null(strstr(nvfs_error(), "ENOENT"));
	assert_non_null(strstr(nvfs_error(), "modprobe nvidia-fs"));
}

static void wrong_versions(void **state)
{
	static const char *const bad[] = { "version: 2.11\n", "version: 1.99\n", "version: 3.12\n" };
	struct nvfs nv;
	size_t i;

	for (i = 0; i < 3; i++) {
		put("version", bad[i]);
		assert_int_equal(nvfs_open(&nv, root, root), -EPROTONOSUPPORT);
		assert_non_null(strstr(nvfs_error(), "wanted is 2.12"));
	}
	put("version", "2.28\n");
	assert_int_equal(nvfs_open(&nv, root, root), -EPROTO);
}

static void opens_all_nodes(void **state)
{
	struct nvfs nv;

	put("version", "version: 2.28\n");
	put("devcount", "3\n");
	put("nvidia-fs0", "");
	put("nvidia-fs1", "");
	assert_int_equal(nvfs_open(&nv, root, root), -ENOENT);
	assert_non_null(strstr(nvfs_error(), "nvidia-fs2"));
	assert_int_equal(nv.nfds, 0);
	put("nvidia-fs2", "");
	assert_int_equal(nvfs_open(&nv, root, root), 0);
	assert_int_equal(nv.nfds, 3);
	assert_int_equal(nv.minor, 28);
	nvfs_close(&nv);
}

static void bad_devcount(void **state)
{
	static const char *const bad[] = { "0\n", "17\n", "x\n", "" };
	struct nvfs nv;
	size_t i;

	put("version", "version: 2.12\n");
	for (i = 0; i < 4; i++) {
		put("devcount", bad[i]);
		assert_int_equal(nvfs_open(&nv, root, root), -EPROTO);
	}
}

/* -- texts: the cause comes from the descriptor, not from the errno -- */

static const char *text_of(bool write, int fd, size_t size, uint64_t gpu_off, int err)
{
	static struct nvfs nv;
	static struct nvfs_map map = { .nv = &nv, .size = 65536, .gpu_va = 0x700000000000 };

	nv.proc = root;
	nvfs_explain_io(&map, write, fd, size, 0, gpu_off, err);
	return nvfs_error();
}

static void texts_name_the_cause(void **state)
{
	int ro, dir;

	put("file", "x");
	put("modules", "nvme: 1\n");
	ro = open(at("file"), O_RDONLY);
	dir = open(root, O_RDONLY | O_DIRECTORY);
	assert_non_null(strstr(text_of(true, ro, 4096, 0, -EBADF), "open for reading only"));
	assert_non_null(strstr(text_of(false, ro, 4096, 0, -EINVAL), "without O_DIRECT"));
	assert_non_null(strstr(text_of(false, dir, 4096, 0, -EISDIR), "it is a directory"));
	assert_non_null(strstr(text_of(false, 999, 4096, 0, -EBADF), "not open"));
	close(ro);
	ro = open(at("file"), O_RDWR | O_DIRECT);
	if (ro < 0)
		skip();		/* /tmp without O_DIRECT */
	assert_non_null(strstr(text_of(false, ro, 8192, 61440, -EINVAL), "past the GPU buffer"));
	assert_non_null(strstr(text_of(true, ro, 4096, 0, -ENOSPC), "no space is left"));
	assert_non_null(strstr(text_of(false, ro, 4096, 0, -ENODATA), "the drive failed the read"));
	put("modules", "wekafsio: 1\n");
	assert_non_null(strstr(text_of(false, ro, 4096, 0, -EOPNOTSUPP), "no storage driver"));
	close(ro);
	close(dir);
}

static void errnames(void **state)
{
	assert_string_equal(nvfs_errname(-22), "EINVAL");
	assert_string_equal(nvfs_errname(524), "ENOTSUPP");
	assert_string_equal(nvfs_errname(4000), "errno 4000");
}

static void stats_fields(void **state)
{
	put("stats", "GDS Version: 1 \nReads\t\t: err=7 io_state_err=8\n"
	    "Bar1-map\t\t: n=1 ok=22 err=3 active=-1 delay-frees=0\n");
	assert_int_equal(nvfs_stat(root, "Bar1-map", "ok"), 22);
	assert_int_equal(nvfs_stat(root, "Bar1-map", "active"), -1);
	assert_int_equal(nvfs_stat(root, "Reads", "err"), 7);
	assert_int_equal(nvfs_stat(root, "Reads", "io_state_err"), 8);
	assert_int_equal(nvfs_stat(root, "Reads", "ok"), -ENOENT);
	assert_int_equal(nvfs_stat(root, "Writes", "err"), -ENOENT);
}

/* -- checkpoints -- */

static void request_text(void **state)
{
	struct t_range range[2] = { { 0x10000, 0x18000 }, { 0x10000, 0x18000 } };
	char text[1024], want[1024];
	size_t n;
	FILE *f;

	assert_int_equal(write_request(at("cp.req"), T_MARK_BEGIN, "one", range, 2), 0);
	f = fopen(at("cp.req"), "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	snprintf(want, sizeof(want), "mark begin one\npoison %016llx\n"
		 "range 1 327680 65536 0\nrange 1 131072 32768 65536\n"
		 "range 1 327680 65536 98304\nrange 1 131072 32768 163840\n",
		 (unsigned long long)GPU_SIM_POISON);
	assert_string_equal(text, want);
}

static void answers(void **state)
{
	struct t_proof p;

	assert_int_equal(t_proof_parse("bar0_bytes=5\nbar1_bytes=7\nrange_bytes=4\nram_bytes=9\n"
				       "unresolved=1\nsha256=00ff\npoisoned=yes\nbytes=4096\n",
				       &p), 0);
	assert_int_equal(p.bar[0], 5);
	assert_int_equal(p.bar[1], 7);
	assert_int_equal(p.bar_all, 12);
	assert_int_equal(p.range, 4);
	assert_int_equal(p.ram, 9);
	assert_int_equal(p.unresolved, 1);
	assert_int_equal(p.bytes, 4096);
	assert_true(p.poisoned);
	assert_string_equal(p.sha256, "00ff");
	assert_int_equal(t_proof_parse("error=no such card\n", &p), -EPROTO);
	assert_int_equal(t_proof_parse("range_bytes=4\nram_bytes=9\nunresolved=0\nbytes=1\n", &p),
			 -EPROTO);
}

/* -- the pattern -- */

static void pattern_names_the_block(void **state)
{
	static char buf[8 * T_BLOCK];
	char why[160];

	t_pattern_fill(buf, sizeof(buf), 3, 100);
	assert_int_equal(t_pattern_check(buf, sizeof(buf), 3, 100, why, sizeof(why)), 0);
	assert_int_equal(t_pattern_check(buf, sizeof(buf), 4, 100, why, sizeof(why)), -EILSEQ);
	assert_int_equal(t_pattern_check(buf, sizeof(buf), 3, 101, why, sizeof(why)), -EILSEQ);
	assert_string_equal(why, "block 101 of seed 0x3 holds block 100 of seed 0x3");

	buf[5 * T_BLOCK + 4095] ^= 1;
	assert_int_equal(t_pattern_check(buf, sizeof(buf), 3, 100, why, sizeof(why)), -EILSEQ);
	assert_non_null(strstr(why, "block 105 is torn"));
	memset(buf + 2 * T_BLOCK, 0xee, T_BLOCK);
	assert_int_equal(t_pattern_check(buf, sizeof(buf), 3, 100, why, sizeof(why)), -EILSEQ);
	assert_string_equal(why, "block 102 holds the word eeeeeeeeeeeeeeee all over");
}

static void digests(void **state)
{
	struct t_sha256 s;
	char hex[65], two[65], buf[300];
	size_t cut;

	t_sha256("abc", 3, hex);
	assert_string_equal(hex,
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	memset(buf, 'x', sizeof(buf));
	t_sha256(buf, sizeof(buf), hex);
	for (cut = 0; cut <= sizeof(buf); cut++) {
		t_sha256_init(&s);
		t_sha256_add(&s, buf, cut);
		t_sha256_add(&s, buf + cut, sizeof(buf) - cut);
		t_sha256_end(&s, two);
		assert_string_equal(two, hex);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(no_module), T(wrong_versions), T(opens_all_nodes), T(bad_devcount),
		T(texts_name_the_cause), T(errnames), T(stats_fields), T(request_text),
		T(answers), T(pattern_names_the_block), T(digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
