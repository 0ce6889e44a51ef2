// SPDX-License-Identifier: MIT
/*
 * t_config_fuzz.c - the short cut of tests/fuzz/config: crafted files (tests/fixtures/config),
 * all their beginnings, and bytes changed in them, through the same entry point. Fails (by
 * abort) when a rule of config_fuzz.c is broken, under ASan when the reader leaves its memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fuzz/config_fuzz.h"

#define CORPUS "tests/fixtures/config"
#define MOST 8192	/* bytes of a file */

typedef void each_fn(const char *name, uint8_t *data, size_t n);

static void each(each_fn *fn)
{
	static uint8_t data[MOST];
	struct dirent *e;
	unsigned int files = 0;
	char path[512];
	size_t n;
	FILE *f;
	DIR *d = opendir(CORPUS);

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), CORPUS "/%s", e->d_name);
		f = fopen(path, "r");
		assert_non_null(f);
		n = fread(data, 1, sizeof(data), f);
		assert_true(n < sizeof(data));
		fclose(f);
		fn(e->d_name, data, n);
		files++;
	}
	closedir(d);
	assert_true(files >= 45);
}

static void one(const char *name, uint8_t *data, size_t n)
{
	LLVMFuzzerTestOneInput(data, n);
}

static void t_corpus(void **state)
{
	each(one);
}

/* Every file that was not written to its end. */
static void beginnings(const char *name, uint8_t *data, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += i < 600 ? 1 : 37)
		LLVMFuzzerTestOneInput(data, i);
}

static void t_beginnings(void **state)
{
	each(beginnings);
}

/* What means something in JSON, put where something else was. */
static void changes(const char *name, uint8_t *data, size_t n)
{
	static const char some[] = "{}[]:,\"'\\/*\n\0 019-.eEtfn\x80\xff";
	uint64_t seed = 1 + n;
	unsigned int i;
	uint8_t was;
	size_t at;

	for (i = 0; i < 300 && n; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = (seed >> 33) % n;
		was = data[at];
		data[at] = some[(seed >> 20) % (sizeof(some) - 1)];
		LLVMFuzzerTestOneInput(data, n);
		/* a few changes stay, so that the next ones meet them */
		if (i % 16)
			data[at] = was;
	}
}

static void t_changes(void **state)
{
	each(changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_corpus), cmocka_unit_test(t_beginnings),
		cmocka_unit_test(t_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
