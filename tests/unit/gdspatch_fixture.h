/* SPDX-License-Identifier: MIT */
/*
 * gdspatch_fixture.h - for the tests of gdspatch: source trees of all layouts, unpacked from
 * tests/fixtures/gdspatch; the command in this process; what a folder holds, as one text.
 */
#ifndef GDSPATCH_FIXTURE_H
#define GDSPATCH_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "gdspatch.h"
#include "tree.h"

#define main gdspatch_main
int gdspatch_main(int argc, char **argv);
#include "../../tools/gdspatch/main.c"
#undef main

#define FIXTURES "tests/fixtures/gdspatch/"
#define LAYOUTS	 11

/* a small quarantine: some of these tests fork, and AddressSanitizer's usual one makes that slow */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1";
}

struct layout {
	char name[8], release[24], form[4], dma[8], create[8], has[8], supported[8], order[8],
		pcie[4], type[12], fixed[8], chips[40], plan[4];
};

static struct layout layouts[LAYOUTS];
static char base[64], tree_dir[80], out_text[65536], err_text[8192];
static struct pk_os os_quick;
static const struct layout *unpacked;
static bool edited_file[GP_NR_FILES];

static inline int no_fsync(int fd)
{
	(void)fd;
	return 0;
}

/* ---- templates ---- */

static inline const char *column(const struct layout *l, const char *name)
{
	const struct {
		const char *name, *value;
	} columns[] = {
		{ "release", l->release },     { "dma", l->dma },
		{ "create", l->create },       { "has", l->has },
		{ "supported", l->supported }, { "order", l->order },
		{ "pcie", l->pcie },	       { "type", l->type },
		{ "static", l->fixed },
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		if (!strcmp(name, columns[i].name))
			return columns[i].value;
	return name;
}

/* two arms: GH100's and another, in the form that the release's generator has */
static inline void put_arms(struct pk_buf *b, const struct layout *l, const char *f,
			    const char *stub)
{
	const char *first = "GH100", *second = stub;

	if (!strcmp(stub, "-"))
		return;
	if (!strcmp(stub, "GP100"))
		first = "GP100", second = "GH100";
	else if (!strcmp(stub, "GH100"))
		second = "GP100";
	assert_int_equal(pk_buf_printf(b,
				       l->form[0] == 'A' ? "    // Hal function -- %s\n"
							 : "    // %s -- halified (2 hals) body\n",
				       f),
			 0);
	assert_int_equal(
		pk_buf_printf(
			b,
			"    if (chip == 28) /* ChipHal: %s */\n    {\n        pThis->__%s__ = &%s_%s;\n    }\n"
			"    else\n    {\n        pThis->__%s__ = &%s_%s;\n    }\n",
			l->chips, f, f, first, f, f, second),
		0);
}

static inline void put_stub(struct pk_buf *b, const struct layout *l, const char *type,
			    const char *f, const char *stub)
{
	const char *value = "NV_ERR_NOT_SUPPORTED";

	if (!strcmp(stub, "-"))
		return;
	if (!strcmp(type, "NvBool"))
		value = !strcmp(stub, "d69453") ? "NV_FALSE" : "((NvBool)(0 != 0))";
	assert_int_equal(
		pk_buf_printf(
			b,
			"%s %s_GH100(struct OBJGPU *pGpu, struct KernelBus *pKernelBus);\n\n"
			"static inline %s %s_%s(struct OBJGPU *pGpu, struct KernelBus *pKernelBus) {\n"
			"    return %s;\n}\n\n"
			"static inline %s %s_DISPATCH(struct OBJGPU *pGpu, struct KernelBus *pKernelBus) {\n"
			"    return pKernelBus->__%s__(pGpu, pKernelBus);\n}\n"
			"#define %s_HAL(pGpu, pKernelBus) %s_DISPATCH(pGpu, pKernelBus)\n",
			type, f, type, f, stub, value, type, f, f, f, f),
		0);
	if (l->form[0] == 'B')
		assert_int_equal(pk_buf_printf(b, "#define %s_FNPTR(p) p->__%s__\n", f, f), 0);
}

static inline void put_line(struct pk_buf *b, const struct layout *l, const char *line, bool *skip)
{
	char word[3][64], *at;

	word[0][0] = word[1][0] = word[2][0] = '\0';
	if (!strcmp(line, "%end")) {
		*skip = false;
	} else if (sscanf(line, "%%if %63s %63s", word[0], word[1]) == 2) {
		*skip = strcmp(column(l, word[0]), word[1]);
	} else if (*skip) {
		return;
	} else if (sscanf(line, "%%arms %63s %63s", word[0], word[1]) == 2) {
		put_arms(b, l, word[0], column(l, word[1]));
	} else if (sscanf(line, "%%stub %63s %63s %63s", word[0], word[1], word[2]) == 3) {
		put_stub(b, l, word[0], word[1], column(l, word[2]));
	} else if ((at = strstr(line, "@release@"))) {
		assert_int_equal(pk_buf_printf(b, "%.*s%s%s\n", (int)(at - line), line, l->release,
					       at + 9),
				 0);
	} else {
		assert_int_equal(pk_buf_printf(b, "%s\n", line), 0);
	}
}

static inline void unpack_file(const char *dir, const struct layout *l, const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char from[200], *text, *s, *next;
	struct pk_buf b = { 0 };
	bool skip = false;
	size_t len;

	snprintf(from, sizeof(from), FIXTURES "%s.in", name);
	assert_int_equal(pk_read_file(from, &text, &len, NULL), 0);
	for (s = text; *s; s = next) {
		next = s + strcspn(s, "\n");
		if (*next)
			*next++ = '\0';
		put_line(&b, l, s, &skip);
	}
	assert_true(tree_put(dir, path, b.data));
	pk_buf_free(&b);
	free(text);
}

static inline const struct layout *layout(const char *name)
{
	for (int i = 0; i < LAYOUTS; i++)
		if (!strcmp(layouts[i].name, name))
			return &layouts[i];
	fail_msg("no layout %s", name);
	return NULL;
}

static inline void drop(const char *dir)
{
	if (!access(dir, F_OK))
		assert_true(tree_remove(dir));
}

/* tree_dir becomes a fresh tree of that layout */
static inline void unpack(const struct layout *l)
{
	drop(tree_dir);
	assert_int_equal(mkdir(tree_dir, 0755), 0);
	for (enum gp_file f = 0; f < GP_NR_FILES; f++)
		unpack_file(tree_dir, l, gp_path[f]);
	unpacked = l;
	memset(edited_file, 0, sizeof(edited_file));
}

/* the same for a tree of which nothing but what edit() did differs */
static inline void unpack_edited(const struct layout *l)
{
	if (unpacked != l) {
		unpack(l);
		return;
	}
	for (enum gp_file f = 0; f < GP_NR_FILES; f++)
		if (edited_file[f])
			unpack_file(tree_dir, l, gp_path[f]);
	memset(edited_file, 0, sizeof(edited_file));
}

static inline int fixture_setup(void **state)
{
	char line[256];
	int n = 0;
	FILE *f;

	strcpy(base, "/dev/shm/t_gdspatch.XXXXXX");
	if (!mkdtemp(base)) {
		strcpy(base, "/tmp/t_gdspatch.XXXXXX");
		if (!mkdtemp(base))
			return -1;
	}
	snprintf(tree_dir, sizeof(tree_dir), "%s/tree", base);
	os_quick = pk_os_libc;
	os_quick.fsync = no_fsync;
	pk_os = &os_quick;
	f = fopen(FIXTURES "layouts", "r");
	while (f && fgets(line, sizeof(line), f)) {
		struct layout *l = &layouts[n < LAYOUTS ? n : 0];

		if (*line == '#')
			continue;
		n += sscanf(line, "%7s %23s %3s %7s %7s %7s %7s %7s %3s %11s %7s %39s %3s", l->name,
			    l->release, l->form, l->dma, l->create, l->has, l->supported, l->order,
			    l->pcie, l->type, l->fixed, l->chips, l->plan) == 13;
	}
	if (f)
		fclose(f);
	(void)state;
	return n == LAYOUTS ? 0 : -1;
}

static inline int fixture_teardown(void **state)
{
	(void)state;
	drop(base);
	return 0;
}

/* ---- the command ---- */

/* where standard output and error go while the command runs: memory, in place of a terminal */
static int kept_fd[2] = { -1, -1 }, said_fd[2] = { -1, -1 };

static inline void redirect(int fd)
{
	int i = fd - 1;

	if (said_fd[i] < 0)
		said_fd[i] = memfd_create("said", MFD_CLOEXEC);
	assert_int_equal(ftruncate(said_fd[i], 0), 0);
	assert_int_equal(lseek(said_fd[i], 0, SEEK_SET), 0);
	kept_fd[i] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	assert_true(kept_fd[i] >= 0 && dup2(said_fd[i], fd) == fd);
}

static inline void restore(int fd, char *text, size_t len)
{
	int i = fd - 1;
	ssize_t n;

	dup2(kept_fd[i], fd);
	close(kept_fd[i]);
	n = pread(said_fd[i], text, len - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
}

/* "gdspatch LINE": words by blanks. The exit status; what it said: out_text and err_text */
static inline int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline int run(const char *fmt, ...)
{
	char line[1024], *argv[24] = { (char *)"gdspatch" }, *save = NULL;
	int argc = 1, status;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (char *w = strtok_r(line, " ", &save); w && argc < 23; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	fflush(NULL);
	redirect(1);
	redirect(2);
	optind = 0;
	status = gdspatch_main(argc, argv);
	fflush(NULL);
	restore(1, out_text, sizeof(out_text));
	restore(2, err_text, sizeof(err_text));
	return status;
}

#define OK(...)                                                                   \
	do {                                                                      \
		int status_ = run(__VA_ARGS__);                                   \
		if (status_)                                                      \
			fail_msg("status %d: %s%s", status_, out_text, err_text); \
	} while (0)

/* refused with this id, on either stream */
#define REFUSED(id, ...)                                                                        \
	do {                                                                                    \
		int status_ = run(__VA_ARGS__);                                                 \
		if (status_ != GP_EXIT_REFUSED ||                                               \
		    (!strstr(err_text, id) && !strstr(out_text, id)))                           \
			fail_msg("expected %s, got %d: %s%s", id, status_, out_text, err_text); \
	} while (0)

static inline bool said(const char *text)
{
	return strstr(out_text, text) || strstr(err_text, text);
}

/* ---- what is there ---- */

static inline int by_path(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* every file below dir: path, mode, hash; folders by name; without `but`. The caller frees. */
static inline char *snapshot_but(const char *dir, const char *but)
{
	char *const paths[] = { (char *)dir, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_path);
	struct pk_buf b = { 0 };
	FTSENT *e;

	assert_non_null(fts);
	assert_int_equal(pk_buf_puts(&b, ""), 0);
	while ((e = fts_read(fts))) {
		const char *name = e->fts_path + strlen(dir);
		char *data, hash[65];
		size_t len;

		if (but && !strcmp(e->fts_name, but)) {
			fts_set(fts, e, FTS_SKIP);
			continue;
		}
		if (e->fts_info == FTS_D && *name)
			assert_int_equal(pk_buf_printf(&b, "%s/\n", name), 0);
		if (e->fts_info != FTS_F)
			continue;
		assert_int_equal(pk_read_file(e->fts_path, &data, &len, NULL), 0);
		pk_sha256(data, len, hash);
		free(data);
		assert_int_equal(pk_buf_printf(&b, "%s %o %s\n", name,
					       (unsigned int)e->fts_statp->st_mode, hash),
				 0);
	}
	fts_close(fts);
	return b.data;
}

static inline char *snapshot(const char *dir)
{
	return snapshot_but(dir, NULL);
}

/* two snapshots; says the first line that differs */
static inline void assert_same(const char *now, const char *want)
{
	while (*now || *want) {
		size_t n = strcspn(now, "\n"), w = strcspn(want, "\n");

		if (n != w || memcmp(now, want, n))
			fail_msg("found    %.*s\nexpected %.*s", (int)n, now, (int)w, want);
		now += n + (now[n] == '\n');
		want += w + (want[w] == '\n');
	}
}

/* a file of the tree; the caller frees */
static inline char *text_of(enum gp_file f)
{
	char path[200], *data;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", tree_dir, gp_path[f]);
	assert_int_equal(pk_read_file(path, &data, &len, NULL), 0);
	return data;
}

/* every (or the n-th, from 1) `old` in a file of the tree becomes `new`; how many there were */
static inline int edit(enum gp_file f, const char *old, const char *new, int nth)
{
	char *text = text_of(f), *p = text, *at;
	struct pk_buf b = { 0 };
	int n = 0;

	assert_int_equal(pk_buf_puts(&b, ""), 0);
	while ((at = strstr(p, old))) {
		n++;
		assert_int_equal(pk_buf_add(&b, p, at - p), 0);
		assert_int_equal(pk_buf_puts(&b, !nth || n == nth ? new : old), 0);
		p = at + strlen(old);
	}
	assert_int_equal(pk_buf_puts(&b, p), 0);
	assert_true(tree_put(tree_dir, gp_path[f], b.data));
	edited_file[f] = true;
	pk_buf_free(&b);
	free(text);
	return n;
}

#endif /* GDSPATCH_FIXTURE_H */
