// SPDX-License-Identifier: MIT
/*
 * t_troubleshooting.c - docs/troubleshooting.md against the tables of facts/: the part below its
 * mark is what they say today, and what the symptoms above it name (reasons, checks of the doctor,
 * numbers) is there. T_RECORD=1 writes the part below the mark anew (and fails).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"
#include "reasons.h"

#define PAGE "docs/troubleshooting.md"
#define MARK "<!-- made of facts/ from here on: T_RECORD=1 build/host/tests/unit/t_troubleshooting -->\n"
#define ROOM (1 << 20)

static char *read_text(const char *path)
{
	char *text = calloc(1, ROOM);
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(text);
	if (!f)
		fail_msg("%s: not there", path);
	n = fread(text, 1, ROOM - 1, f);
	fclose(f);
	assert_true(n && n < ROOM - 1);
	return text;
}

/* A text as markdown: what would be a mark of it is none. */
static void put(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (strchr("|<*`\\", *text))
			fputc('\\', f);
		fputc(*text, f);
	}
}

static void put_code(FILE *f, const struct facts_code *c, const char *sign)
{
	const struct facts_cause *k;
	unsigned int i;

	fprintf(f, "\n### %s%d ", sign, c->number);
	put(f, c->name);
	fputs("\n\n", f);
	put(f, c->means);
	fputs(". Seen in: ", f);
	put(f, c->seen);
	fputs(".\n\n| cause | seen by | next |\n|---|---|---|\n", f);
	for (i = 0; i < FACTS_CAUSES && c->cause[i].what; i++) {
		k = &c->cause[i];
		fputs("| ", f);
		put(f, k->what);
		fputs(" | ", f);
		put(f, k->tell);
		fputs(" | ", f);
		put(f, k->next);
		fputs(" |\n", f);
	}
}

static char *made(void)
{
	const struct facts_reason_text *r;
	const struct facts_code *c;
	char *text = calloc(1, ROOM);
	FILE *f = text ? fmemopen(text, ROOM, "w") : NULL;
	unsigned int i;

	assert_non_null(f);
	fputs("\n## Reasons\n\nWhy bytes did not go direct. `gdscheck --explain-error R-EDGE` tells the same.\n\n"
	      "| id | cause | next step |\n|---|---|---|\n", f);
	for (i = 1; i < REASONS; i++) {
		r = facts_reason(i);
		fprintf(f, "| %s | ", r->id);
		put(f, r->text);
		fputs(" | ", f);
		put(f, r->remedy);
		fputs(" |\n", f);
	}
	fputs("\n## Numbers of the library\n", f);
	for (i = 0; (c = facts_code_cufile_at(i)); i++)
		put_code(f, c, "");
	fputs("\n## Numbers of the system\n\nAs the kernel log and the module have them; in `errno` they are positive.\n", f);
	for (i = 0; (c = facts_code_errno_at(i)); i++)
		put_code(f, c, "-");
	fputs("\n## Numbers of CUDA\n", f);
	for (i = 0; (c = facts_code_cuda_at(i)); i++)
		put_code(f, c, "");
	fclose(f);
	return text;
}

static void t_tables(void **state)
{
	char *page = read_text(PAGE), *mark = strstr(page, MARK), *want = made(), *is, *a, *b;
	FILE *f;

	(void)state;
	assert_non_null(mark);
	is = mark + strlen(MARK);
	if (getenv("T_RECORD")) {
		f = fopen(PAGE, "w");
		assert_non_null(f);
		fwrite(page, 1, (size_t)(is - page), f);
		fputs(want, f);
		assert_int_equal(fclose(f), 0);
		fail_msg(PAGE " is written anew");
	}
	for (a = is, b = want; *a && *a == *b; a++, b++)
		;
	if (*a || *b) {
		while (a > is && a[-1] != '\n') {
			a--;
			b--;
		}
		fail_msg(PAGE " is behind the tables: it says\n%.*s\nand they\n%.*s\nT_RECORD=1 writes it anew",
			 (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
	}
	free(page);
	free(want);
}

static bool reason_known(const char *id)
{
	unsigned int i;

	for (i = 0; i < REASONS; i++)
		if (!strcmp(facts_reason(i)->id, id))
			return true;
	return false;
}

/* The word at p, of capitals, digits and hyphens. */
static const char *word(const char *p, char *out, size_t len)
{
	size_t n = 0;

	while (n < len - 1 &&
	       (isupper((unsigned char)p[n]) || isdigit((unsigned char)p[n]) || p[n] == '-')) {
		out[n] = p[n];
		n++;
	}
	out[n] = '\0';
	return p + n;
}

static void t_symptoms(void **state)
{
	char *page = read_text(PAGE), *doctor = read_text("docs/gdscheck.md"), *mark = strstr(page, MARK);
	char id[64], row[80];
	unsigned int reasons = 0, checks = 0, numbers = 0;
	const char *p;

	(void)state;
	assert_non_null(mark);
	*mark = '\0';
	for (p = page; *p; p++) {
		if (p > page && (isalnum((unsigned char)p[-1]) || p[-1] == '-'))
			continue;
		if (!strncmp(p, "R-", 2)) {
			p = word(p, id, sizeof(id)) - 1;
			reasons++;
			if (!reason_known(id))
				fail_msg("%s is no reason", id);
		} else if (!strncmp(p, "D-", 2)) {
			p = word(p, id, sizeof(id)) - 1;
			checks++;
			snprintf(row, sizeof(row), "\n| %s |", id);
			if (!strstr(doctor, row))
				fail_msg("%s is no check of the doctor", id);
		} else if (!strncmp(p, "50", 2) && isdigit((unsigned char)p[2]) &&
			   isdigit((unsigned char)p[3]) && !isalnum((unsigned char)p[4])) {
			numbers++;
			if (!facts_code_cufile((int)strtol(p, NULL, 10)))
				fail_msg("%.4s is no number of the library", p);
			p += 3;
		}
	}
	print_message("%u reasons, %u checks, %u numbers\n", reasons, checks, numbers);
	assert_true(reasons > 10 && checks > 10 && numbers > 3);
	free(page);
	free(doctor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_tables),
		cmocka_unit_test(t_symptoms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
