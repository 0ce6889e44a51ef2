// SPDX-License-Identifier: MIT
/* tree.c - a source tree of the open GPU kernel modules: its files, its release, its sites. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdspatch.h"

const char *const gp_path[GP_NR_FILES] = {
	[GP_F_VERSION] = "version.mk",
	[GP_F_BIF] = "src/nvidia/src/kernel/gpu/bif/kernel_bif.c",
	[GP_F_TABLE] = "src/nvidia/generated/g_kern_bus_nvoc.c",
	[GP_F_HEADER] = "src/nvidia/generated/g_kern_bus_nvoc.h",
	[GP_F_REGISTRY] = "src/nvidia/interface/nvrm_registry.h",
	[GP_F_DISPATCH] = "src/nvidia/src/kernel/gpu/bus/arch/pascal/kern_bus_gp100.c",
	[GP_F_P2PAPI] = "src/nvidia/generated/g_p2p_api_nvoc.h",
};

bool gp_next(const struct pk_source *s, const struct pk_span *in, size_t *at, const char *pattern,
	     struct pk_match *m)
{
	struct pk_span rest = { *at, in ? in->end : s->ntok };
	struct pk_error pk;

	if (in && rest.first < in->first)
		rest.first = in->first;
	if (rest.first >= rest.end || pk_count(s, &rest, pattern, m, &pk) <= 0)
		return false;
	*at = m->span.first + 1;
	return true;
}

void gp_text(const struct pk_source *s, size_t first, size_t end, char *out, size_t len)
{
	size_t n = 0;

	*out = '\0';
	for (size_t i = first; i < end && n < len; i++)
		n += snprintf(out + n, len - n, "%s%.*s", i > first ? " " : "", (int)s->tok[i].len,
			      s->text + s->tok[i].off);
}

/* the closed package has binaries where the open one has src/ */
static int not_a_tree(const char *root, const char *path, struct gp_error *err)
{
	static const char *const binary[] = {
		"kernel-open/nvidia/nv-kernel.o_binary",
		"kernel/nvidia/nv-kernel.o_binary",
		"nvidia/nv-kernel.o_binary",
	};
	char *full, *data;
	size_t len;

	for (size_t i = 0; i < sizeof(binary) / sizeof(*binary); i++) {
		int r = -ENOMEM;

		if (asprintf(&full, "%s/%s", root, binary[i]) >= 0) {
			r = pk_read_file(full, &data, &len, NULL);
			free(full);
		}
		if (r)
			continue;
		free(data);
		return gp_refuse(err, GP_NOT_A_TREE, path, 0, "", "the source of the open flavour",
				 "a package whose core is a binary (%s)", binary[i]);
	}
	return gp_refuse(err, GP_NOT_A_TREE, path, 0, "", "this file", "none below %s", root);
}

/* gpu-gpu alone needs these: without them the other sets are still possible */
static bool optional(enum gp_file f)
{
	return f == GP_F_DISPATCH || f == GP_F_P2PAPI;
}

static int read_one(struct gp_tree *t, enum gp_file f, struct gp_error *err)
{
	struct pk_error pk;
	char *full, *data;
	size_t len;
	int r;

	if (asprintf(&full, "%s/%s", t->root, gp_path[f]) < 0)
		return gp_system(err, -ENOMEM, "read", gp_path[f]);
	r = pk_read_file(full, &data, &len, NULL);
	free(full);
	if ((r == -ENOENT || r == -ENOTDIR) && optional(f))
		return 0;
	if (r == -ENOENT || r == -ENOTDIR || r == -EINVAL || r == -ELOOP)
		return not_a_tree(t->root, gp_path[f], err);
	if (r)
		return gp_system(err, r, "read", gp_path[f]);
	r = pk_lex(&t->src[f], gp_path[f], f == GP_F_VERSION ? PK_LANG_MAKE : PK_LANG_C, data, len,
		   &pk);
	free(data);
	return r ? gp_from_pk(err, r, &pk, gp_path[f], "") : 0;
}

/* digits and dots, at least one of each between others: "580.65.06" */
static bool good_version(const char *v)
{
	return strspn(v, "0123456789") && strchr(v, '.') && strspn(v, "0123456789.") == strlen(v) &&
	       v[strlen(v) - 1] != '.';
}

static int find_version(struct gp_tree *t, struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_VERSION];
	struct pk_match m, other;
	size_t at = 0, on;

	if (!gp_next(s, NULL, &at, "NVIDIA_VERSION = $v", &m))
		return gp_refuse(err, GP_VERSION_UNPARSED, gp_path[GP_F_VERSION], 0, "",
				 "NVIDIA_VERSION = X.Y", "none");
	on = at;
	gp_text(s, m.cap_tok[0], m.cap_tok[0] + 1, t->version, sizeof(t->version));
	if (gp_next(s, NULL, &on, "NVIDIA_VERSION = $v", &other))
		return gp_refuse(err, GP_VERSION_UNPARSED, gp_path[GP_F_VERSION],
				 s->tok[other.span.first].line, "", "NVIDIA_VERSION once",
				 "it twice");
	if (!good_version(t->version))
		return gp_refuse(err, GP_VERSION_UNPARSED, gp_path[GP_F_VERSION],
				 s->tok[m.span.first].line, "", "NVIDIA_VERSION = X.Y", "`%s`",
				 t->version);
	return 0;
}

static int locate_all(struct gp_tree *t, struct gp_error *err)
{
	struct pk_buf sig = { 0 };
	struct gp_error later;
	int r;

	r = find_version(t, err);
	r = r ? r : gp_locate_hal(t, err);
	r = r ? r : gp_locate_bif(t, err);
	if (r)
		return r;
	/* what is wrong there is asked again when gpu-gpu is */
	if (gp_locate_dispatch(t, &later))
		t->site[GP_S_DISPATCH_CREATE].state = t->site[GP_S_DISPATCH_REMOVE].state =
			GP_ABSENT;
	t->row = gp_row_of(&t->layout);
	if (t->row)
		return 0;
	gp_signature(&t->layout, &sig);
	r = gp_refuse(err, GP_LAYOUT_UNKNOWN, gp_path[GP_F_TABLE], 0, "", "a layout of the table",
		      "%s", sig.data ? sig.data : "?");
	pk_buf_free(&sig);
	return r;
}

int gp_tree_read(struct gp_tree *t, const char *root, struct gp_error *err)
{
	int r;

	*t = (struct gp_tree){ .root = strdup(root) };
	if (!t->root)
		return gp_system(err, -ENOMEM, "read", root);
	for (enum gp_file f = 0; f < GP_NR_FILES; f++) {
		r = read_one(t, f, err);
		if (r)
			return r;
	}
	return locate_all(t, err);
}

int gp_tree_with(struct gp_tree *t, const struct gp_tree *of, const struct pk_plan *plan,
		 struct gp_error *err)
{
	*t = (struct gp_tree){ .root = strdup(of->root) };
	if (!t->root)
		return gp_system(err, -ENOMEM, "read", of->root);
	for (enum gp_file f = 0; f < GP_NR_FILES; f++) {
		const struct pk_source *s = &of->src[f];
		const char *text = s->text;
		size_t len = s->len;
		struct pk_error pk;
		int r;

		for (size_t i = 0; i < plan->n; i++)
			if (!strcmp(plan->c[i].path, gp_path[f])) {
				text = plan->c[i].before;
				len = plan->c[i].before_len;
			}
		r = text ? pk_lex(&t->src[f], gp_path[f], s->lang, text, len, &pk) : 0;
		if (r)
			return gp_from_pk(err, r, &pk, gp_path[f], "");
	}
	return locate_all(t, err);
}

void gp_tree_free(struct gp_tree *t)
{
	for (enum gp_file f = 0; f < GP_NR_FILES; f++)
		pk_source_free(&t->src[f]);
	free(t->root);
	*t = (struct gp_tree){ 0 };
}
