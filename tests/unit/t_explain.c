// SPDX-License-Identifier: MIT
/*
 * t_explain.c - what gdscheck says of error numbers, reasons and lines of logs. Fails when a
 * number has another meaning than its own, when one has no cause, sign or next step, when a kind
 * of line hides another one, and when a log's lines are counted or named wrong. Logs:
 * tests/fixtures/explain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "explain_log.c"

#include "cufile.h"

static char text[65536];

/* The exit status of --explain-error; its output in `text` */
static int error(const char *code)
{
	FILE *f = fmemopen(text, sizeof(text), "w");
	int status;

	assert_non_null(f);
	status = gc_explain_error(code, f);
	fclose(f);
	return status;
}

static void says(const char *code, const char *want)
{
	assert_int_equal(error(code), EXPLAIN_EXIT_KNOWN);
	if (!strstr(text, want))
		fail_msg("%s: '%s' is not in:\n%s", code, want, text);
}

static void says_not(const char *code, const char *word)
{
	assert_int_equal(error(code), EXPLAIN_EXIT_KNOWN);
	if (strstr(text, word))
		fail_msg("%s: '%s' is in:\n%s", code, word, text);
}

static void same(const char *a, const char *b)
{
	static char first[sizeof(text)];

	assert_int_equal(error(a), EXPLAIN_EXIT_KNOWN);
	memcpy(first, text, sizeof(first));
	assert_int_equal(error(b), EXPLAIN_EXIT_KNOWN);
	assert_string_equal(first, text);
}

/* The pin: gated is -22, not there is -95 or -524; what to look at first stands first. */
static void t_errno(void **state)
{
	char *align, *gated;

	says("-22", "EINVAL");
	says("-22", "third-party object");
	says_not("-22", "hook");
	align = strstr(text, "multiple of 64 KiB");
	gated = strstr(text, "gated");
	assert_true(align && gated && align < gated);
	says("-22", "5022");
	same("-22", "22");
	same("-22", "EINVAL");
	same("-22", "-EINVAL");
	says("-95", "hook");
	says_not("-95", "third-party");
	says("-95", "5008");
	same("-95", "eopnotsupp");
	says("-524", "confidential");
	says("-524", "-95");
	same("-524", "524");
	same("524", "ENOTSUPP");
	says("-12", "BAR1");
	says("-12", "36 MiB");
	says("-5", "Xid");
	says("-5", "AER");
	says("-16", "EBUSY");
	says("-19", "UUID");
	says("-14", "GeForce");
	says("-71", "EPROTO");
	same("-71", "EPROTO");
}

static void t_cufile(void **state)
{
	char code[16];
	int i;

	for (i = 5001; i <= 5050; i++) {
		snprintf(code, sizeof(code), "%d", i);
		says(code, code);
		says(code, "cause 1:");
		says(code, "next:");
	}
	says("5008", "CU_FILE_IO_NOT_SUPPORTED");
	same("5008", "IO_NOT_SUPPORTED");
	same("5008", "-5008");
	says("5011", "cu_err");
	says("5030", "containers");
	says("5001", "modprobe nvidia-fs");
	says("5036", "-22");
	assert_int_equal(error("5051"), EXPLAIN_EXIT_UNKNOWN);
	assert_int_equal(error("5000"), EXPLAIN_EXIT_UNKNOWN);
}

static void t_cuda(void **state)
{
	says("205", "CUDA_ERROR_MAP_FAILED");
	says("205", "ForceP2P");
	says("801", "GeForce");
	same("801", "CUDA_ERROR_NOT_SUPPORTED");
	says("100", "CUDA_VISIBLE_DEVICES");
	/* a number with two meanings has both; with a sign it is an errno */
	says("2", "ENOENT");
	says("2", "CUDA_ERROR_OUT_OF_MEMORY");
	says_not("-2", "CUDA");
}

static void t_reasons(void **state)
{
	unsigned int i;

	for (i = 0; i < REASONS; i++) {
		says(facts_reason(i)->id, facts_reason(i)->text);
		says(facts_reason(i)->id, facts_reason(i)->remedy);
	}
	same("R-FS-TYPE", "r-fs-type");
}

static void t_unknown(void **state)
{
	static const char *const codes[] = { "", "0", "R-", "R-NOTHING", "EVERYTHING", "12x", "99999999999999999999",
					     "--5", "4999", "-4096" };
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(error(codes[i]), EXPLAIN_EXIT_UNKNOWN);
		assert_non_null(strstr(text, "can be asked for"));
	}
}

/* Each entry has all its texts, and is found by its number. */
static void whole(const struct facts_code *c, const struct facts_code *(*find)(int))
{
	unsigned int i;

	assert_ptr_equal(find(c->number), c);
	assert_true(c->name && c->name[0] && c->means[0] && c->seen[0] && c->cause[0].what);
	for (i = 0; i < FACTS_CAUSES && c->cause[i].what; i++)
		if (!c->cause[i].tell || !c->cause[i].next || !c->cause[i].tell[0] ||
		    !c->cause[i].next[0])
			fail_msg("%s, cause %u: sign or next step is missing", c->name, i + 1);
}

static void t_tables(void **state)
{
	const struct facts_code *c;
	size_t i;

	for (i = 0; (c = facts_code_errno_at(i)); i++) {
		whole(c, facts_code_errno);
		if (c->number != FACTS_ENOTSUPP)
			assert_string_equal(c->name, strerrorname_np(c->number));
	}
	for (i = 0; (c = facts_code_cufile_at(i)); i++) {
		whole(c, facts_code_cufile);
		assert_int_equal(c->number, CUFILEOP_BASE_ERR + 1 + (int)i);
	}
	assert_int_equal(i, 50);
	for (i = 0; (c = facts_code_cuda_at(i)); i++)
		whole(c, facts_code_cuda);
}

/* ---- logs ---- */

/* A line with just the texts of a kind is of that kind: none before it in the table takes it. */
static void t_kinds(void **state)
{
	char line[512];
	unsigned int j;
	size_t i;

	for (i = 0; i < KINDS; i++) {
		line[0] = '\0';
		for (j = 0; j < 3 && kinds[i].has[j]; j++)
			snprintf(line + strlen(line), sizeof(line) - strlen(line), "x %s",
				 kinds[i].has[j]);
		if (explain_kind(line) != &kinds[i])
			fail_msg("'%s' of %s is taken for %s", line, kinds[i].name,
				 explain_kind(line)->name);
		assert_true(kinds[i].means[0] && kinds[i].next[0]);
	}
	assert_null(explain_kind(""));
	assert_null(explain_kind("disagrees about it"));
}

static int log_of(const char *name)
{
	FILE *out = fmemopen(text, sizeof(text), "w"), *in;
	char path[128];
	int status;

	snprintf(path, sizeof(path), "tests/fixtures/explain/%s", name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_non_null(out);
	status = gc_explain_log(in, out);
	fclose(in);
	fclose(out);
	return status;
}

static void has(const char *want)
{
	if (!strstr(text, want))
		fail_msg("'%s' is not in:\n%s", want, text);
}

static void t_geforce(void **state)
{
	assert_int_equal(log_of("geforce.log"), EXPLAIN_EXIT_KNOWN);
	has("vendor-pin-failed, 2 lines\n  first: [   93.700212] nvidia-fs:nvfs_pin_gpu_pages");
	has("error: -22 EINVAL");
	has("module-signature, 1 line\n");
	has("xid-31, 1 line\n");
	has("xid, 1 line\n  first: [  102.555000]");
	has("5 of 9 lines are known");
}

static void t_ours(void **state)
{
	assert_int_equal(log_of("ours.log"), EXPLAIN_EXIT_KNOWN);
	has("nvfs-attached, 1 line\n");
	has("nvfs-pin-full, 2 lines\n");
	has("error: -12 ENOMEM");
	has("nvfs-pin-gated, 1 line\n");
	has("nvfs-no-way, 1 line\n");
	has("nvfs-errno-line, 1 line\n");
	has("nvfs-user-limit, 1 line\n");
	has("7 of 7 lines are known");
}

static void t_machine(void **state)
{
	assert_int_equal(log_of("machine.log"), EXPLAIN_EXIT_KNOWN);
	has("dmar-fault, 1 line\n");
	has("aer, 2 lines\n");
	has("aer-fatal, 1 line\n");
	has("nvme-timeout, 1 line\n");
	has("block-error, 1 line\n");
	has("medium-error, 1 line\n");
	has("symbol-version, 1 line\n");
	has("unknown-symbol, 1 line\n");
	has("fs-readonly, 1 line\n");
	has("bar1-space, 1 line\n");
	has("11 of 12 lines are known");
}

static void t_library_log(void **state)
{
	assert_int_equal(log_of("cufile.log"), EXPLAIN_EXIT_KNOWN);
	has("log-map-ioctl, 1 line\n");
	has("error: -524 ENOTSUPP");
	has("log-strict, 1 line\n");
	has("  R-FS-TYPE: ");
	has("log-fallback, 1 line\n");
	has("  R-FS-CPU: ");
	has("log-freed, 1 line\n");
	has("log-rdma, 1 line\n");
}

static void t_quiet(void **state)
{
	assert_int_equal(log_of("quiet.log"), EXPLAIN_EXIT_UNKNOWN);
	assert_string_equal(text, "0 of 4 lines are known\n");
}

/* A log is anybody's bytes: nothing of it may reach a terminal as a command. */
static void t_bytes(void **state)
{
	char in[] = "NVRM: Xid (\033[2J): 31, \001\n";
	FILE *f = fmemopen(in, strlen(in), "r"), *out = fmemopen(text, sizeof(text), "w");

	assert_int_equal(gc_explain_log(f, out), EXPLAIN_EXIT_KNOWN);
	fclose(f);
	fclose(out);
	has("first: NVRM: Xid (?[2J): 31, ?\n");
}

static void t_unreadable(void **state)
{
	FILE *in = fopen("tests", "r"), *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(in);
	assert_int_equal(gc_explain_log(in, out), EXPLAIN_EXIT_READ);
	fclose(in);
	fclose(out);
	has("Is a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_errno),	 cmocka_unit_test(t_cufile),
		cmocka_unit_test(t_cuda),	 cmocka_unit_test(t_reasons),
		cmocka_unit_test(t_unknown),	 cmocka_unit_test(t_tables),
		cmocka_unit_test(t_kinds),	 cmocka_unit_test(t_geforce),
		cmocka_unit_test(t_ours),	 cmocka_unit_test(t_machine),
		cmocka_unit_test(t_library_log), cmocka_unit_test(t_quiet),
		cmocka_unit_test(t_bytes),	 cmocka_unit_test(t_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
