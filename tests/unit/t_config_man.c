// SPDX-License-Identifier: MIT
/*
 * t_config_man.c - man/cufile.json.5 against the table of keys: each key has an item, whose first
 * line says type, unit, range, default and whether it has an effect, as the table does; no item
 * is of a key that is none; the examples are read without a word and set what they show. A key
 * that is added, changed or taken away without the page fails here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"
#include "opengds.h"

static char *page;
static struct config usual;

static int setup(void **state)
{
	FILE *f = fopen("man/cufile.json.5", "r");
	size_t n;

	(void)state;
	page = calloc(1, 1 << 20);
	if (!f || !page)
		return -1;
	n = fread(page, 1, (1 << 20) - 1, f);
	fclose(f);
	config_defaults(&usual);
	return n ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(page);
	return 0;
}

static const void *value(const struct config_key *k)
{
	return (const char *)&usual + k->target;
}

static bool ends(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* The end of a name tells the unit. */
static const char *unit(const char *name)
{
	return ends(name, "_kb") ? " of KB" : ends(name, "_mb") ? " of MB" :
	       ends(name, "_msecs") ? " of ms" : "";
}

static void put_range(FILE *f, const struct config_key *k)
{
	fprintf(f, "%s, %" PRId64 " to %" PRId64, unit(k->name), k->min, k->max);
	if (k->no_zero)
		fputs(", not 0", f);
	if (k->multiple)
		fprintf(f, ", a multiple of %u", k->multiple);
}

/* What stands for "not configured": a value, or that the library chooses and what it reports. */
static const char *standing(const struct config_key *k)
{
	return k->set == CONFIG_NOWHERE ? "default" : "unset, reported as";
}

static void put_sizes(FILE *f, const size_t *v)
{
	unsigned int i;

	if (!v[0]) {
		fputs(", default empty", f);
		return;
	}
	for (i = 0; i < CONFIG_SLABS && v[i]; i++)
		fprintf(f, "%s%zu", i ? ", " : ", default [", v[i]);
	fputs("]", f);
}

/* The first line of the key's item. */
static void first_line(const struct config_key *k, char *out, size_t len)
{
	static const char *const kind[] = {
		[CONFIG_BOOL] = "Boolean", [CONFIG_INT] = "Integer", [CONFIG_SIZE] = "Integer",
		[CONFIG_LEVEL] = "Level", [CONFIG_TEXT] = "Text", [CONFIG_NAMES] = "List of texts",
		[CONFIG_ROUTES] = "List of routes", [CONFIG_SIZES] = "List of integers",
		[CONFIG_LIST] = "List", [CONFIG_OBJECT] = "Object", [CONFIG_ANY] = "Any type",
	};
	FILE *f = fmemopen(out, len, "w");

	assert_non_null(f);
	fputs(kind[k->type], f);
	if (k->target != CONFIG_NOWHERE) {
		switch (k->type) {
		case CONFIG_BOOL:
			fprintf(f, ", %s %s", standing(k), *(const bool *)value(k) ? "true" : "false");
			break;
		case CONFIG_INT:
			put_range(f, k);
			fprintf(f, ", %s %d", standing(k), *(const int *)value(k));
			break;
		case CONFIG_SIZE:
			put_range(f, k);
			fprintf(f, ", %s %zu", standing(k), *(const size_t *)value(k));
			break;
		case CONFIG_LEVEL:
			assert_int_equal(usual.log_level, LOG_ERROR);
			fputs(", default ERROR", f);
			break;
		case CONFIG_TEXT:
		case CONFIG_NAMES:
			assert_string_equal(value(k), "");
			fputs(", default empty", f);
			break;
		case CONFIG_ROUTES:
			assert_int_equal(usual.routes, (1u << OGDS_ROUTES) - 1);
			fputs(", default all", f);
			break;
		case CONFIG_SIZES:
			put_range(f, k);
			put_sizes(f, value(k));
			break;
		default:
			fail_msg("%s has a target and no type that can have one", k->name);
		}
	}
	fputs(k->target == CONFIG_NOWHERE || k->no_effect ? "; no effect." : ".", f);
	fclose(f);
}

static void t_each_key(void **state)
{
	char item[200], want[300], is[300];
	const struct config_key *k;
	unsigned int i, bad = 0;
	const char *at;

	(void)state;
	for (i = 0; (k = config_key_at(i)); i++) {
		snprintf(item, sizeof(item), "\n.It Va %s\n", k->name);
		at = strstr(page, item);
		if (!at) {
			print_error("no item of %s\n", k->name);
			bad++;
			continue;
		}
		first_line(k, want, sizeof(want));
		at += strlen(item);
		snprintf(is, sizeof(is), "%.*s", (int)strcspn(at, "\n"), at);
		if (strcmp(is, want)) {
			print_error("%s: the page says '%s', the table '%s'\n", k->name, is, want);
			bad++;
		}
	}
	assert_true(i > 90);
	if (bad)
		fail_msg("man/cufile.json.5: %u keys are wrong", bad);
}

/* Another name stands in the item of its key; of the denylist it is the section's. */
static void t_each_alias(void **state)
{
	char item[200], alias[200];
	const struct config_key *k;
	const char *at, *end;
	unsigned int i, n = 0;

	(void)state;
	for (i = 0; (k = config_key_at(i)); i++) {
		if (!k->alias)
			continue;
		n++;
		snprintf(item, sizeof(item), "\n.It Va %s\n", k->name);
		if (!strncmp(k->alias, "blacklist.", 10)) {
			assert_non_null(strstr(page, "\n.Va blacklist .\n"));
			continue;
		}
		at = strstr(page, item);
		assert_non_null(at);
		at += strlen(item);
		end = strstr(at, "\n.It ");
		snprintf(alias, sizeof(alias), "\n.Va %s .\n", k->alias);
		at = strstr(at, alias);
		if (!at || (end && at > end))
			fail_msg("the item of %s does not have its other name %s", k->name, k->alias);
	}
	assert_true(n);
}

static void t_no_other_key(void **state)
{
	static const char mark[] = "\n.It Va ";
	const char *at = page;
	char name[200];
	bool alias;

	(void)state;
	while ((at = strstr(at, mark))) {
		at += strlen(mark);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "\n"), at);
		if (!config_key_find(name, &alias) || alias)
			fail_msg("%s is on the page and in no table", name);
	}
}

static void heard(void *arg, enum log_level level, const char *text)
{
	(void)arg;
	fail_msg("an example: %d: %s", level, text);
}

static void t_examples(void **state)
{
	static const char begin[] = "\n.Bd -literal -offset indent\n", end[] = "\n.Ed\n";
	const char *at = page, *stop;
	struct config c;
	unsigned int n = 0;

	(void)state;
	while ((at = strstr(at, begin))) {
		at += strlen(begin);
		stop = strstr(at, end);
		assert_non_null(stop);
		config_parse(&c, "example", at, (size_t)(stop - at), heard, NULL);
		assert_memory_not_equal(&c, &usual, offsetof(struct config, path));
		n++;
	}
	assert_int_equal(n, 3);
	/* of the last one */
	assert_true(c.force_compat && c.posix_slabs_set && c.nposix_slabs == 1);
	assert_int_equal(c.posix_slab_count[0], 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_each_key),
		cmocka_unit_test(t_each_alias),
		cmocka_unit_test(t_no_other_key),
		cmocka_unit_test(t_examples),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
