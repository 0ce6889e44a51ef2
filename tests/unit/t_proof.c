// SPDX-License-Identifier: MIT
/*
 * t_proof.c - what vm/proof makes of a trace: on shortened traces of real runs
 * (tests/fixtures/trace), on lines made up for one rule each, and the checkpoint server
 * over a folder. Fails when one data byte is counted twice, not at all or at the wrong
 * place, when a fault of the IOMMU passes for a transfer, or when an answer is wrong.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proof.h"

#define FIXTURES "tests/fixtures/trace/"
#define POISON	 0xdeadbeefcafef00dull

#define DONE(cid, cqid) \
	"pci_nvme_enqueue_req_completion cid " cid " cqid " cqid " dw0 0x0 dw1 0x0 status 0x0"

static const struct proof_pci one_card = {
	.card = { { 0xd0000000, 0x10000000 } }, .cards = 1, .drives = 1,
};

static const struct proof_pci translated = {
	.card = { { 0xd0000000, 0x10000000 } }, .cards = 1, .drives = 2, .translated = true,
};

static struct proof_trace *parse_fixture(const char *name)
{
	struct proof_trace *t;
	struct proof_pci pci;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), FIXTURES "%s.pci.txt", name);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), FIXTURES "none.pci.txt");
	assert_int_equal(proof_pci_read(path, &pci), 0);
	t = proof_trace_new(&pci);
	assert_non_null(t);
	snprintf(path, sizeof(path), FIXTURES "%s.log", name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(proof_trace_file(t, fd), 0);
	close(fd);
	return t;
}

static struct proof_trace *parse_lines(const struct proof_pci *pci, const char *const *line)
{
	struct proof_trace *t = proof_trace_new(pci);

	assert_non_null(t);
	for (; *line; line++)
		assert_int_equal(proof_trace_line(t, *line), 0);
	return t;
}

static void counts(struct proof_trace *t, uint64_t bar0, uint64_t ram, uint64_t unresolved,
		   uint64_t failed, uint64_t commands)
{
	const struct proof_count *c = proof_trace_count(t);

	assert_int_equal(c->bar[0], bar0);
	assert_int_equal(c->ram, ram);
	assert_int_equal(c->unresolved, unresolved);
	assert_int_equal(c->failed, failed);
	assert_int_equal(c->commands, commands);
	proof_trace_free(t);
}

/* ---- real traces ---- */

static void t_no_iommu(void **state)
{
	struct proof_trace *t = parse_fixture("none");
	const struct proof_extent *e;
	size_t n;

	e = proof_trace_extents(t, &n);
	assert_int_equal(n, 4);
	assert_int_equal(e[0].off, 0);
	assert_int_equal(e[0].len, 4096);
	assert_int_equal(e[1].off, 0x200000);
	assert_int_equal(e[2].off, 0x3000);
	assert_int_equal(e[2].len, 32768);
	assert_int_equal(e[3].off, 0x203000);
	/* not the identify data, not the range list of a discard */
	counts(t, 73728, 53248, 0, 0, 7);
}

static void t_iommu(void **state)
{
	/* pages of 4 KiB and of 2 MiB, PRP and SGL */
	counts(parse_fixture("iommu"), 303104, 0, 0, 0, 5);
}

static void t_fault(void **state)
{
	/* commands that QEMU completed with success though none of their bytes moved */
	counts(parse_fixture("fault"), 0, 0, 36864, 0, 2);
}

static void t_error(void **state)
{
	/* a read that the drive failed, and one that it did not */
	counts(parse_fixture("error"), 0, 65536, 0, 65536, 2);
}

/* ---- one rule each ---- */

static void t_counted_when_done(void **state)
{
	static const char *const lines[] = {
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xd0000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xd0000000 len 4096",
		NULL
	};
	struct proof_trace *t = parse_lines(&one_card, lines);

	assert_int_equal(proof_trace_count(t)->bar[0], 0);
	/* another queue's, another number's */
	proof_trace_line(t, DONE("1", "2"));
	proof_trace_line(t, DONE("2", "1"));
	assert_int_equal(proof_trace_count(t)->bar[0], 0);
	proof_trace_line(t, DONE("1", "1"));
	counts(t, 4096, 0, 0, 0, 1);
}

static void t_edge_of_bar(void **state)
{
	static const char *const lines[] = {
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x1 opname 'NVME_NVM_CMD_WRITE'",
		"pci_nvme_map_sgl type 0x0 len 16384",
		"pci_nvme_map_addr addr 0xcffff000 len 8192",
		"pci_nvme_map_addr addr 0xdffff000 len 8192",
		DONE("1", "1"),
		NULL
	};

	counts(parse_lines(&one_card, lines), 8192, 8192, 0, 0, 1);
}

static void t_metadata(void **state)
{
	static const char *const lines[] = {
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xd0000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xd0000000 len 4096",
		"pci_nvme_map_addr addr 0x1000000 len 64",
		DONE("1", "1"),
		NULL
	};

	counts(parse_lines(&one_card, lines), 4096, 0, 0, 0, 1);
}

static void t_two_drives(void **state)
{
	/* one number, one I/O address, two drives: the translation names the drive */
	static const char *const lines[] = {
		"vtd_dmar_translate dev 03:00.00 iova 0xfffe0000 -> gpa 0x1000 mask 0xfff",
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xff000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xff000000 len 4096",
		"vtd_dmar_translate dev 04:00.00 iova 0xfffe0000 -> gpa 0x2000 mask 0xfff",
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xff000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xff000000 len 4096",
		"vtd_dmar_translate dev 04:00.00 iova 0xff000000 -> gpa 0x5000000 mask 0xfff",
		"vtd_dmar_translate dev 03:00.00 iova 0xff000000 -> gpa 0xd0001000 mask 0xfff",
		DONE("1", "1"),
		DONE("1", "1"),
		NULL
	};

	counts(parse_lines(&translated, lines), 4096, 4096, 0, 0, 2);
}

static void t_translated_before(void **state)
{
	/* a translation that came before the command's piece proves nothing */
	static const char *const lines[] = {
		"vtd_dmar_translate dev 03:00.00 iova 0xff000000 -> gpa 0xd0001000 mask 0xfff",
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xff000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xff000000 len 4096",
		DONE("1", "1"),
		"vtd_dmar_translate dev 03:00.00 iova 0xff000000 -> gpa 0xd0001000 mask 0xfff",
		NULL
	};

	counts(parse_lines(&translated, lines), 0, 0, 4096, 0, 1);
}

static void t_large_pages(void **state)
{
	/*
	 * One line serves what an entry has in a page of 2 MiB; the next entry has its own,
	 * and its second page faults
	 */
	static const char *const lines[] = {
		"vtd_dmar_translate dev 03:00.00 iova 0xfffe0000 -> gpa 0x1000 mask 0xfff",
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_sgl type 0x2 len 65536",
		"pci_nvme_map_addr addr 0xfe010000 len 32768",
		"pci_nvme_map_addr addr 0xfe1fc000 len 32768",
		"vtd_dmar_translate dev 03:00.00 iova 0xfe000000 -> gpa 0xd0200000 mask 0x1fffff",
		"vtd_dmar_translate dev 03:00.00 iova 0xfe000000 -> gpa 0xd0200000 mask 0x1fffff",
		DONE("1", "1"),
		NULL
	};
	struct proof_trace *t = parse_lines(&translated, lines);
	const struct proof_extent *e;
	size_t n;

	e = proof_trace_extents(t, &n);
	assert_int_equal(n, 12);
	assert_int_equal(e[0].off, 0x210000);
	assert_int_equal(e[7].off, 0x217000);
	assert_int_equal(e[8].off, 0x3fc000);
	counts(t, 32768 + 16384, 0, 16384, 0, 1);
}

static void t_part_of_pages(void **state)
{
	/* 512 bytes into a page, over its end: the second page faults */
	static const char *const lines[] = {
		"vtd_dmar_translate dev 03:00.00 iova 0xfffe0000 -> gpa 0x1000 mask 0xfff",
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_sgl type 0x0 len 4096",
		"pci_nvme_map_addr addr 0xff000200 len 4096",
		"vtd_dmar_translate dev 03:00.00 iova 0xff000000 -> gpa 0xd0003000 mask 0xfff",
		DONE("1", "1"),
		NULL
	};
	struct proof_trace *t = parse_lines(&translated, lines);
	const struct proof_extent *e;
	size_t n;

	e = proof_trace_extents(t, &n);
	assert_int_equal(n, 1);
	assert_int_equal(e[0].off, 0x3200);
	assert_int_equal(e[0].len, 3584);
	counts(t, 3584, 0, 512, 0, 1);
}

static void t_lost_command(void **state)
{
	/* a reset: the number comes again without a completion in between */
	static const char *const lines[] = {
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xd0000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xd0000000 len 4096",
		"pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'",
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0xd0000000 prp2 0x0 num_prps 2",
		"pci_nvme_map_addr addr 0xd0000000 len 4096",
		DONE("1", "1"),
		NULL
	};

	counts(parse_lines(&one_card, lines), 4096, 0, 0, 4096, 2);
}

static void t_stamped_and_strange(void **state)
{
	static const char *const lines[] = {
		"123@1700000000.123456:pci_nvme_io_cmd cid 1 nsid 0x1 sqid 1 opc 0x2 opname 'R'",
		"123@1700000000.123457:"
		"pci_nvme_map_prp trans_len 4096 len 4096 prp1 0x0 prp2 0x0 num_prps 2",
		"123@1700000000.123458:pci_nvme_map_addr addr 0xd0000000 len 4096",
		"pci_nvme_map_addr_cmb addr 0xd0000000 len 4096",
		"pci_nvme_map_addr addr what len 4096",
		"qemu-system-x86_64: warning: something",
		"",
		"123@1700000000.123459:" DONE("1", "1"),
		NULL
	};

	counts(parse_lines(&one_card, lines), 4096, 0, 0, 0, 1);
}

static void t_grows(void **state)
{
	/* the file ends anywhere in a line, and goes on later */
	char path[] = "/tmp/t_proof.XXXXXX", text[1 << 16];
	struct proof_trace *t;
	ssize_t len, at, n;
	int out, in;

	in = open(FIXTURES "none.log", O_RDONLY);
	assert_true(in >= 0);
	len = read(in, text, sizeof(text));
	assert_in_range(len, 1000, sizeof(text) - 1);
	close(in);
	out = mkstemp(path);
	assert_true(out >= 0);
	in = open(path, O_RDONLY);
	t = proof_trace_new(&one_card);
	for (at = 0; at < len; at += n) {
		n = len - at < 7 ? len - at : 7;
		assert_int_equal(write(out, text + at, n), n);
		assert_int_equal(proof_trace_file(t, in), 0);
		assert_int_equal(proof_trace_offset(t), at + n);
	}
	close(in);
	close(out);
	unlink(path);
	counts(t, 73728, 53248, 0, 0, 7);
}

/* ---- pci.txt and requests ---- */

static int read_pci(const char *text, struct proof_pci *pci)
{
	char path[] = "/tmp/t_proof.XXXXXX";
	int fd = mkstemp(path), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	ret = proof_pci_read(path, pci);
	unlink(path);
	return ret;
}

static void t_pci(void **state)
{
	struct proof_pci pci;

	assert_int_equal(read_pci("card 0 0000:03:00.0 4096 8192\ncard 1 0000:04:00.0 65536 4096\n"
				  "drive 0 0000:05:00.0 gds0\niommu on\n", &pci), 0);
	assert_int_equal(pci.cards, 2);
	assert_int_equal(pci.card[1].bar_gpa, 65536);
	assert_int_equal(pci.card[1].len, 4096);
	assert_int_equal(pci.drives, 1);
	assert_true(pci.translated);
	assert_int_equal(read_pci("iommu pt\n", &pci), 0);
	assert_false(pci.translated);
	assert_int_equal(read_pci("card 1 0000:03:00.0 4096 8192\n", &pci), -EPROTO);
	assert_int_equal(read_pci("card 0 0000:03:00.0 4096 0\n", &pci), -EPROTO);
	assert_int_equal(read_pci("hello\n", &pci), -EPROTO);
	assert_int_equal(proof_pci_read("/nonexistent/pci.txt", &pci), -ENOENT);
}

static int request(const char *text, struct proof_request *req)
{
	char copy[1024], why[256] = "";
	int ret;

	snprintf(copy, sizeof(copy), "%s", text);
	ret = proof_request_parse(copy, &one_card, req, why, sizeof(why));
	assert_true(!ret == !why[0]);
	return ret;
}

static void t_request(void **state)
{
	static const char *const bad[] = {
		"mark start X\n", "mark begin\n", "mark begin a/b\n", "poison xyz\n",
		"poison 123456789abcdef01\n", "range 0 0 0 0\n", "range 1 0 4096 0\n",
		"range 0 268435456 1 0\n", "range 0 268431360 8192 0\n",
		"range 0 18446744073709551615 2 0\n", "range 0 0 4096\n", "range 0 0 4096 0 9\n",
		"range 0 0 4096 0\nrange 0 8192 4096 8192\n",
		"range 0 0 4096 0\nrange 0 8192 4096 2048\n", "nonsense\n",
	};
	struct proof_request req;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(request(bad[i], &req), -EINVAL);
		proof_request_free(&req);
	}
	assert_int_equal(request("mark end A-1\npoison deadbeefcafef00d\n"
				 "range 0 65536 4096 4096\nrange 0 0 4096 0\n", &req), 0);
	assert_int_equal(req.mark, PROOF_END);
	assert_string_equal(req.section, "A-1");
	assert_true(req.has_poison);
	assert_true(req.poison == POISON);
	assert_int_equal(req.ranges, 2);
	assert_int_equal(req.range[0].off, 0);
	assert_int_equal(req.range[1].off, 65536);
	proof_request_free(&req);
}

static void t_hits(void **state)
{
	static const struct proof_extent ext[] = {
		{ 0, 0, 4096 },		/* whole */
		{ 0, 65536 - 512, 1024 },	/* half, over the start */
		{ 0, 69632, 4096 },	/* just behind */
		{ 0, 0, 131072 },	/* over all ranges */
		{ 1, 0, 4096 },		/* another card's */
	};
	struct proof_request req;
	uint64_t hit;

	assert_int_equal(request("range 0 65536 4096 4096\nrange 0 0 4096 0\n", &req), 0);
	assert_int_equal(proof_ranges_hit(&req, ext, 5, &hit), 0);
	assert_int_equal(hit, 4096 + 512 + 0 + 8192 + 0);
	proof_request_free(&req);
	/* a place that is twice in the buffer is one place */
	assert_int_equal(request("range 0 0 4096 0\nrange 0 0 4096 4096\n", &req), 0);
	assert_int_equal(proof_ranges_hit(&req, ext, 1, &hit), 0);
	assert_int_equal(hit, 4096);
	proof_request_free(&req);
}

/* ---- content and the server ---- */

static char dir[64];

static void write_file(const char *name, const char *text)
{
	char path[128], tmp[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(tmp, sizeof(tmp), "%s/write", dir);
	f = fopen(tmp, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(tmp, path), 0);
}

static void append_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "a");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* A card of 64 KiB: poison, but for "abc" at 8192 */
static int setup(void **state)
{
	uint64_t vram[8192];
	char path[128];
	FILE *f;
	int i;

	strcpy(dir, "/tmp/t_proof.XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (i = 0; i < 8192; i++)
		vram[i] = POISON;
	memcpy(vram + 1024, "abc", 3);
	snprintf(path, sizeof(path), "%s/card0.vram", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(vram, sizeof(vram), 1, f), 1);
	fclose(f);
	write_file("pci.txt", "card 0 0000:03:00.0 3489660928 65536\ndrive 0 0000:04:00.0 gds0\n"
			      "iommu none\n");
	write_file("trace.log", "");
	return 0;
}

static int teardown(void **state)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static void content(const char *text, const char *sha256, bool poisoned)
{
	struct proof_content c;
	struct proof_request req;

	assert_int_equal(request(text, &req), 0);
	assert_int_equal(proof_ranges_content(dir, &req, &c), 0);
	if (sha256)
		assert_string_equal(c.sha256, sha256);
	assert_int_equal(c.poisoned, poisoned);
	proof_request_free(&req);
}

static void t_content(void **state)
{
	struct proof_content c;
	struct proof_request req;

	/* FIPS 180: SHA-256 of "abc"; then of "cab", by the order in the buffer */
	content("poison deadbeefcafef00d\nrange 0 8192 3 0\n",
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", false);
	content("range 0 8194 1 0\nrange 0 8192 2 1\n",
		"6548d955790a22925c1e23508ec4e2bffb8e45d80261b4b2c1f9d8c9b0d152b6", false);
	content("poison deadbeefcafef00d\nrange 0 0 8192 0\n", NULL, true);
	/* the poison's phase comes from the place on the card */
	content("poison deadbeefcafef00d\nrange 0 5 11 0\n", NULL, true);
	content("poison deadbeefcafef00d\nrange 0 0 8193 0\n", NULL, false);
	content("poison deadbeefcafef00d\nrange 0 8196 57340 0\n", NULL, true);
	content("poison deadbeefcafef00e\nrange 0 0 4096 0\n", NULL, false);
	/* the file is shorter than the card is said to be */
	assert_int_equal(request("range 0 65536 4096 0\n", &req), 0);
	assert_int_equal(proof_ranges_content(dir, &req, &c), -ENODATA);
	proof_request_free(&req);
}

static void ask(const char *name, const char *text, char *answer, size_t len)
{
	struct timespec pause = { .tv_nsec = 2000000 };
	char req[80], ack[80], path[160];
	int i, fd = -1;
	ssize_t n;

	snprintf(req, sizeof(req), "%s.req", name);
	snprintf(ack, sizeof(ack), "%s.ack", name);
	write_file(req, text);
	snprintf(path, sizeof(path), "%s/%s", dir, ack);
	for (i = 0; i < 5000 && (fd = open(path, O_RDONLY)) < 0; i++)
		nanosleep(&pause, NULL);
	assert_true(fd >= 0);
	n = read(fd, answer, len - 1);
	assert_true(n > 0);
	answer[n] = 0;
	close(fd);
	unlink(path);
	/* a request is gone once it is answered, so its name can be used again */
	snprintf(path, sizeof(path), "%s/%s", dir, req);
	assert_int_equal(access(path, F_OK), -1);
}

static void has(const char *answer, const char *line)
{
	char want[128], text[2048];

	snprintf(want, sizeof(want), "\n%s\n", line);
	snprintf(text, sizeof(text), "\n%s", answer);
	if (!strstr(text, want))
		fail_msg("no line '%s' in:\n%s", line, answer);
}

#define CMD(cid, addr) \
	"pci_nvme_io_cmd cid " cid " nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'\n" \
	"pci_nvme_map_prp trans_len 4096 len 4096 prp1 " addr " prp2 0x0 num_prps 2\n" \
	"pci_nvme_map_addr addr " addr " len 4096\n" \
	DONE(cid, "1") "\n"

static void t_server(void **state)
{
	char a[2048];
	pid_t pid;
	int status;

	/* before the section, and before the server */
	append_file("trace.log", CMD("1", "0xd0000000"));
	write_file("early.req", "mark begin early\n");
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(proof_watch(dir) ? 1 : 0);
	ask("p", "mark begin S\npoison deadbeefcafef00d\nrange 0 0 4096 0\n", a, sizeof(a));
	has(a, "section=S");
	has(a, "bar0_bytes=0");
	has(a, "poisoned=yes");
	has(a, "bytes=4096");
	append_file("trace.log", CMD("2", "0xd0001000") CMD("3", "0xd0000000") CMD("4", "0x1000"));
	ask("p", "mark end S\npoison deadbeefcafef00d\nrange 0 8192 3 0\nrange 0 0 4096 3\n", a,
	    sizeof(a));
	has(a, "bar0_bytes=8192");
	has(a, "range_bytes=4096");
	has(a, "ram_bytes=4096");
	has(a, "unresolved=0");
	has(a, "commands=3");
	has(a, "poisoned=no");
	/* without a mark: the latest open section */
	ask("q", "range 0 8192 3 0\n", a, sizeof(a));
	has(a, "section=early");
	has(a, "sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_null(strstr(a, "poisoned="));
	ask("r", "mark end S\n", a, sizeof(a));
	has(a, "error=section 'S' was not begun");
	ask("r", "range 0 65536 4096 0\n", a, sizeof(a));
	has(a, "error=the range is not within its card: 'range 0 65536 4096 0'");
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_no_iommu),
		cmocka_unit_test(t_iommu),
		cmocka_unit_test(t_fault),
		cmocka_unit_test(t_error),
		cmocka_unit_test(t_counted_when_done),
		cmocka_unit_test(t_edge_of_bar),
		cmocka_unit_test(t_metadata),
		cmocka_unit_test(t_two_drives),
		cmocka_unit_test(t_translated_before),
		cmocka_unit_test(t_large_pages),
		cmocka_unit_test(t_part_of_pages),
		cmocka_unit_test(t_lost_command),
		cmocka_unit_test(t_stamped_and_strange),
		cmocka_unit_test(t_grows),
		cmocka_unit_test(t_pci),
		cmocka_unit_test(t_request),
		cmocka_unit_test(t_hits),
		cmocka_unit_test_setup_teardown(t_content, setup, teardown),
		cmocka_unit_test_setup_teardown(t_server, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
