// SPDX-License-Identifier: MIT
/*
 * modules.c - built modules, their places below lib/modules, and the form they take there.
 *
 * A module takes the place and the compression of the one it replaces; modules that no package
 * installed yet go beside nvidia.ko, or to updates/.
 */
#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modules.h"

static const char *const suffixes[] = { "", ".xz", ".zst", ".gz" };

/* the row of suffixes of "x.ko.xz"; -1: no module. *stem: length of "x" */
static int suffix_of(const char *name, size_t *stem)
{
	const char *ko = strstr(name, ".ko");

	for (size_t i = 0; ko && i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (!strcmp(ko + 3, suffixes[i])) {
			*stem = ko - name;
			return (int)i;
		}
	return -1;
}

/* "nvidia-current-open-uvm" is Debian's file name of nvidia-uvm */
static bool same_module(const char *stem, size_t len, const char *name)
{
	static const char *const prefixes[] = { "nvidia", "nvidia-current", "nvidia-current-open" };
	const char *rest = name + strlen("nvidia");

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (len == n + strlen(rest) && !memcmp(stem, prefixes[i], n) &&
		    !memcmp(stem + n, rest, strlen(rest)))
			return true;
	}
	return false;
}

static int built_modules(struct gm_modules *ms, const char *tree, const char *kernel,
			 struct gp_error *err)
{
	char pattern[600], magic[128];
	glob_t g;
	int r;

	snprintf(pattern, sizeof(pattern), "%s/kernel-open/nvidia*.ko", tree);
	r = glob(pattern, 0, NULL, &g);
	if (r)
		return gp_refuse(err, GP_NO_MODULE, pattern, 0, "", "built modules", "none");
	snprintf(magic, sizeof(magic), "vermagic=%s ", kernel);
	for (size_t i = 0; i < g.gl_pathc && ms->n < GM_MAX && !r; i++) {
		const char *path = g.gl_pathv[i], *base = strrchr(path, '/') + 1;
		struct gm_module *m = &ms->m[ms->n++];
		char *data;
		size_t len;

		snprintf(m->name, sizeof(m->name), "%.*s", (int)(strlen(base) - 3), base);
		m->built = strdup(path);
		r = m->built ? pk_read_file(path, &data, &len, NULL) : -ENOMEM;
		if (r) {
			gp_system(err, r, "read", path);
			break;
		}
		if (!memmem(data, len, magic, strlen(magic)))
			r = gp_refuse(err, GP_WRONG_KERNEL, path, 0, m->name, magic,
				      "another kernel");
		free(data);
	}
	globfree(&g);
	return r;
}

struct walk {
	struct gm_modules *ms;
	size_t base; /* length of "ROOT/lib/modules/V/" */
	int common; /* compression of any module of this kernel; -1: none seen */
	struct gp_error *err;
};

static int place_one(struct walk *w, const char *path, const char *name)
{
	size_t stem;
	int s = suffix_of(name, &stem);

	if (s < 0)
		return 0;
	if (w->common < 0)
		w->common = s;
	for (size_t i = 0; i < w->ms->n; i++) {
		struct gm_module *m = &w->ms->m[i];

		if (!same_module(name, stem, m->name))
			continue;
		if (m->there)
			return gp_refuse(w->err, GP_MODULE_TWICE, path + w->base, 0, m->name,
					 "one module of that name", "another: %s", m->place);
		m->place = strdup(path + w->base);
		m->suffix = suffixes[s];
		m->there = true;
		return m->place ? 0 : gp_system(w->err, -ENOMEM, "read", path);
	}
	return 0;
}

/* where those go that are not there yet */
static int place_rest(struct walk *w)
{
	const struct gm_module *lead = NULL;
	struct gm_modules *ms = w->ms;

	for (size_t i = 0; i < ms->n; i++)
		if (ms->m[i].there && !strcmp(ms->m[i].name, "nvidia"))
			lead = &ms->m[i];
	for (size_t i = 0; i < ms->n; i++) {
		struct gm_module *m = &ms->m[i];
		const char *slash = lead ? strrchr(lead->place, '/') : NULL;
		int dir = slash ? (int)(slash - lead->place) : 0;

		if (m->there)
			continue;
		m->suffix = lead ? lead->suffix : suffixes[w->common < 0 ? 0 : w->common];
		if (asprintf(&m->place, "%.*s/%s.ko%s", dir ? dir : 7,
			     dir ? lead->place : "updates", m->name, m->suffix) < 0)
			return gp_system(w->err, -ENOMEM, "plan", m->name);
		ms->new_folder |= !dir;
	}
	return 0;
}

static int find_places(struct gm_modules *ms, const char *root, const char *kernel,
		       struct gp_error *err)
{
	struct walk w = { .ms = ms, .common = -1, .err = err };
	char path[600], *const paths[] = { path, NULL };
	FTSENT *e;
	FTS *fts;
	int r = 0;

	w.base = snprintf(path, sizeof(path), "%s/lib/modules/%s", root, kernel) + 1;
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!fts || access(path, F_OK)) {
		if (fts)
			fts_close(fts);
		return gp_refuse(err, GP_WRONG_KERNEL, path, 0, "", "the modules of that kernel",
				 "none");
	}
	while (!r && (e = fts_read(fts))) {
		/* our own copies of old modules, and the build folder of the kernel */
		if (e->fts_info == FTS_D && e->fts_level == 1 &&
		    (*e->fts_name == '.' || !strcmp(e->fts_name, "build")))
			fts_set(fts, e, FTS_SKIP);
		else if (e->fts_info == FTS_F)
			r = place_one(&w, e->fts_path, e->fts_name);
	}
	fts_close(fts);
	return r ? r : place_rest(&w);
}

/* ---- signing ---- */

static bool there(char *out, size_t len, const char *root, const char *name)
{
	snprintf(out, len, "%s/%s", root, name);
	return !access(out, R_OK);
}

static bool secure_boot(const char *root)
{
	char path[512], *data;
	size_t len;
	bool on = false;

	snprintf(path, sizeof(path),
		 "%s/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		 root);
	if (!pk_read_file(path, &data, &len, NULL)) {
		on = len > 4 && data[4] == 1; /* after four bytes of attributes */
		free(data);
	}
	return on;
}

/* the digest that the kernel was told to use for its own modules */
static void find_hash(struct gm_modules *ms, const char *root, const char *kernel)
{
	static const char key[] = "\nCONFIG_MODULE_SIG_HASH=\"";
	char path[512], *data, *at;
	size_t len;

	strcpy(ms->hash, "sha256");
	snprintf(path, sizeof(path), "%s/boot/config-%s", root, kernel);
	if (pk_read_file(path, &data, &len, NULL))
		return;
	at = strstr(data, key);
	if (at)
		snprintf(ms->hash, sizeof(ms->hash), "%.*s", (int)strcspn(at + strlen(key), "\"\n"),
			 at + strlen(key));
	free(data);
}

static int find_keys(struct gm_modules *ms, const char *root, const char *kernel,
		     struct gp_error *err)
{
	/* DKMS, Ubuntu's shim-signed, Fedora's akmods */
	static const char *const pairs[][2] = {
		{ "var/lib/dkms/mok.key", "var/lib/dkms/mok.pub" },
		{ "var/lib/shim-signed/mok/MOK.priv", "var/lib/shim-signed/mok/MOK.der" },
		{ "etc/pki/akmods/private/private_key.priv",
		  "etc/pki/akmods/certs/public_key.der" },
	};
	static const char *const tools[] = {
		"lib/modules/%s/build/scripts/sign-file",
		"usr/src/linux-headers-%s/scripts/sign-file",
		"usr/src/kernels/%s/scripts/sign-file",
	};
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (there(ms->key, sizeof(ms->key), root, pairs[i][0]) &&
		    there(ms->cert, sizeof(ms->cert), root, pairs[i][1]))
			break;
	if (i == sizeof(pairs) / sizeof(*pairs)) {
		ms->key[0] = '\0';
		if (!secure_boot(root))
			return 0;
		return gp_refuse(err, GP_NO_KEY, pairs[0][0], 0, "",
				 "a key to sign with, as Secure Boot is on", "none");
	}
	find_hash(ms, root, kernel);
	for (i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		char name[256];

		snprintf(name, sizeof(name), tools[i], kernel);
		if (there(ms->sign_file, sizeof(ms->sign_file), root, name))
			return 0;
	}
	/* Ubuntu's package sbsigntool; found by PATH */
	strcpy(ms->sign_file, "kmodsign");
	return 0;
}

int gm_find(struct gm_modules *ms, const struct gp_options *o, const char *tree,
	    struct gp_error *err)
{
	int r;

	*ms = (struct gm_modules){ 0 };
	r = built_modules(ms, tree, o->kernel, err);
	r = r ? r : find_places(ms, o->root, o->kernel, err);
	return r ? r : find_keys(ms, o->root, o->kernel, err);
}

void gm_free(struct gm_modules *ms)
{
	for (size_t i = 0; i < ms->n; i++) {
		free(ms->m[i].built);
		free(ms->m[i].place);
	}
	*ms = (struct gm_modules){ 0 };
}

/* ---- the form ---- */

/* what the kernel itself can unpack: xz with crc32 and a small dictionary */
static int compress(const char *path, const char *suffix, struct gp_error *err)
{
	const char *const xz[] = { "xz", "--check=crc32", "--lzma2=dict=1MiB", "-f", path, NULL };
	const char *const zst[] = { "zstd", "-q", "-f", "--rm", path, NULL };
	const char *const gz[] = { "gzip", "-n", "-f", path, NULL };

	if (!strcmp(suffix, ".xz"))
		return gp_exec(xz, err);
	if (!strcmp(suffix, ".zst"))
		return gp_exec(zst, err);
	return !strcmp(suffix, ".gz") ? gp_exec(gz, err) : 0;
}

static int make_one(const struct gm_modules *ms, const struct gm_module *m, const char *path,
		    struct gp_error *err)
{
	const char *const strip[] = { "strip", "--strip-debug", path, NULL };
	const char *const sign[] = { ms->sign_file, ms->hash, ms->key, ms->cert, path, NULL };
	char *data;
	size_t len;
	int r;

	r = pk_read_file(m->built, &data, &len, NULL);
	if (r)
		return gp_system(err, r, "read", m->built);
	r = pk_write_file(path, data, len, 0644);
	free(data);
	if (r)
		return gp_system(err, r, "write", path);
	r = gp_exec(strip, err);
	/* a signature is the last thing of a module, and is made of its final bytes */
	if (!r && *ms->key)
		r = gp_exec(sign, err);
	return r ? r : compress(path, m->suffix, err);
}

int gm_finish(const struct gm_modules *ms, const struct gm_module *m, char **data, size_t *len,
	      struct gp_error *err)
{
	const char *tmp = getenv("TMPDIR");
	char dir[300], path[400], packed[410];
	int r;

	snprintf(dir, sizeof(dir), "%s/gdspatch.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return gp_system(err, -errno, "make", dir);
	snprintf(path, sizeof(path), "%s/%s.ko", dir, m->name);
	snprintf(packed, sizeof(packed), "%s%s", path, m->suffix);
	r = make_one(ms, m, path, err);
	if (!r) {
		r = pk_read_file(packed, data, len, NULL);
		if (r)
			gp_system(err, r, "read", packed);
	}
	unlink(path);
	unlink(packed);
	rmdir(dir);
	return r;
}
