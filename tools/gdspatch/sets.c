// SPDX-License-Identifier: MIT
/* sets.c - the three sets of edits: what is in them, where they can be had, their plans. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdspatch.h"

const char *const gp_site_name[GP_NR_SITES] = {
	[GP_S_OVERRIDE] = "p2pOverride",
	[GP_S_FORCE_TYPE] = "forceP2PType",
	[GP_S_PCIE_TYPE] = "pcieP2PType",
	[GP_S_DMA_INFO] = "kbusGetBar1P2PDmaInfo",
	[GP_S_CREATE] = "kbusCreateP2PMappingForBar1P2P",
	[GP_S_REMOVE] = "kbusRemoveP2PMappingForBar1P2P",
	[GP_S_HAS] = "kbusHasPcieBar1P2PMapping",
	[GP_S_SUPPORTED] = "kbusIsPcieBar1P2PMappingSupported",
	[GP_S_DISPATCH_CREATE] = "kbusCreateP2PMapping_GP100",
	[GP_S_DISPATCH_REMOVE] = "kbusRemoveP2PMapping_GP100",
};

const char *const gp_set_name[GP_NR_SETS] = { "none", "bif", "bar1p2p", "gpu-gpu" };

const char *const gp_set_enables[GP_NR_SETS] = {
	[GP_BIF] = "the driver reports peer access between GPUs as possible, of the BAR1 kind",
	[GP_BAR1P2P] =
		"as bif, and the driver's BAR1 functions answer on Turing, Ampere and Ada, too; two GPUs with static BAR1 report peer access",
	[GP_GPU_GPU] =
		"as bar1p2p, and a peer mapping of the BAR1 kind is made and removed: GPU to GPU over PCIe on Turing, Ampere and Ada",
};

const char *const gp_set_not[GP_NR_SETS] = {
	[GP_BIF] =
		"anything that registry keys do not do without a patch (`gdspatch keys --set gpu-gpu`); does not affect GPUDirect Storage; see mode U",
	[GP_BAR1P2P] =
		"does not affect GPUDirect Storage; see mode U. With one GPU these edits do nothing; with two, enabling peers still fails (CUDA error 205): the branches of gpu-gpu are missing",
	[GP_GPU_GPU] =
		"does not affect GPUDirect Storage; see mode U. libcuda may still refuse peers, static BAR1 is needed on both GPUs, and BAR1 must be as large as GPU memory",
};

enum gp_file gp_site_file(enum gp_site s)
{
	if (s < GP_HAL_FIRST)
		return GP_F_BIF;
	return s < GP_S_DISPATCH_CREATE ? GP_F_TABLE : GP_F_DISPATCH;
}

enum gp_set gp_set_of(const char *name)
{
	for (enum gp_set s = GP_BIF; s < GP_NR_SETS; s++)
		if (!strcmp(name, gp_set_name[s]))
			return s;
	return GP_NO_SET;
}

bool gp_in_set(enum gp_set set, enum gp_site s)
{
	switch (gp_site_file(s)) {
	case GP_F_BIF:
		return set >= GP_BIF;
	case GP_F_TABLE:
		return set >= GP_BAR1P2P;
	default:
		return set >= GP_GPU_GPU;
	}
}

/* are exactly the sites of this set edited? */
static bool has_set(const struct gp_tree *t, enum gp_set set)
{
	for (enum gp_site s = 0; s < GP_NR_SITES; s++) {
		enum gp_site_state st = t->site[s].state;

		if (st != GP_ABSENT && (st == GP_EDITED) != gp_in_set(set, s))
			return false;
	}
	return true;
}

bool gp_set_found(const struct gp_tree *t, enum gp_set *set)
{
	for (*set = GP_NO_SET; *set < GP_NR_SETS; (*set)++)
		if (has_set(t, *set) &&
		    (*set < GP_GPU_GPU || t->site[GP_S_DISPATCH_CREATE].state == GP_EDITED))
			return true;
	*set = GP_NO_SET;
	return false;
}

int gp_set_available(const struct gp_tree *t, enum gp_set set, struct gp_error *err)
{
	struct gp_tree *u = (struct gp_tree *)t; /* locating again writes what it found */

	if (set != GP_GPU_GPU)
		return 0;
	if (!t->row->uvm_bar1)
		return gp_refuse(err, GP_SET_UNAVAILABLE, gp_path[GP_F_TABLE], 0, "gpu-gpu",
				 "a release whose UVM maps peers through BAR1", "%s (%s)",
				 t->version, t->row->tags);
	return gp_locate_dispatch(u, err);
}

void gp_set_key(const char *set, char key[65])
{
	char text[80];

	/* the number grows when a set's edits change: then an old one counts as another set */
	snprintf(text, sizeof(text), "gdspatch 1 %s", set);
	pk_sha256(text, strlen(text), key);
}

static int plan_edit(const struct gp_tree *t, enum gp_site s, struct pk_edits *es,
		     struct pk_error *pk)
{
	const struct gp_place *p = &t->site[s];
	const struct pk_source *src = &t->src[gp_site_file(s)];
	char text[128];

	if (gp_site_file(s) == GP_F_BIF)
		return pk_edit_replace(es, src, &p->span, p->edited, pk);
	if (gp_site_file(s) == GP_F_DISPATCH)
		return pk_edit_first(es, src, &p->body, p->edited, pk);
	snprintf(text, sizeof(text), "%s_GH100", gp_site_name[s]);
	return pk_edit_replace(es, src, &p->span, text, pk);
}

static int plan_file(const struct gp_tree *t, enum gp_set set, enum gp_file f, struct pk_change *c,
		     struct gp_error *err)
{
	const struct pk_source *src = &t->src[f];
	struct pk_edits es = { 0 };
	struct pk_buf out = { 0 };
	struct pk_error pk;
	int r = 0;

	for (enum gp_site s = 0; s < GP_NR_SITES && !r; s++)
		if (gp_site_file(s) == f && gp_in_set(set, s) && t->site[s].state == GP_PRISTINE)
			r = plan_edit(t, s, &es, &pk);
	r = r ? r : pk_render(&es, src, &out, &pk);
	pk_edits_free(&es);
	if (r) {
		pk_buf_free(&out);
		return gp_from_pk(err, r, &pk, gp_path[f], "");
	}
	c->path = strdup(gp_path[f]);
	c->before = malloc(src->len + 1);
	c->after = out.data;
	c->after_len = out.len;
	if (!c->path || !c->before)
		return gp_system(err, -ENOMEM, "plan", gp_path[f]);
	memcpy(c->before, src->text, src->len + 1);
	c->before_len = src->len;
	return 0;
}

static int new_plan(enum gp_set set, struct pk_plan *plan, struct gp_error *err)
{
	*plan = (struct pk_plan){ .set = strdup(gp_set_name[set]) };
	gp_set_key(gp_set_name[set], plan->key);
	plan->c = calloc(GP_NR_FILES, sizeof(*plan->c));
	return plan->set && plan->c ? 0 : gp_system(err, -ENOMEM, "plan", gp_set_name[set]);
}

int gp_plan(const struct gp_tree *t, enum gp_set set, struct pk_plan *plan, struct gp_error *err)
{
	static const enum gp_file files[] = { GP_F_BIF, GP_F_TABLE, GP_F_DISPATCH };
	int r = new_plan(set, plan, err);

	/* one file a set: bif 1, bar1p2p 2, gpu-gpu 3 */
	for (int i = 0; i < (int)set && !r; i++)
		r = plan_file(t, set, files[i], &plan->c[plan->n++], err);
	if (r)
		pk_plan_free(plan);
	return r;
}

/* cuts the inserted lines, with the blank one that follows them, wherever they stand */
static int cut(struct pk_buf *text, const char *block)
{
	static const char *const eol[] = { "\n", "\r\n" };

	for (int e = 0; e < 2; e++) {
		struct pk_buf b = { 0 };
		int r = 0;
		char *at;

		for (const char *p = block; *p && !r; p += strcspn(p, "\n") + 1) {
			r = pk_buf_add(&b, p, strcspn(p, "\n"));
			r = r ? r : pk_buf_puts(&b, eol[e]);
		}
		r = r ? r : pk_buf_puts(&b, eol[e]);
		at = r ? NULL : memmem(text->data, text->len, b.data, b.len);
		if (at) {
			memmove(at, at + b.len, text->len - (at - text->data) - b.len + 1);
			text->len -= b.len;
		}
		pk_buf_free(&b);
		if (r || at)
			return r;
	}
	return 0;
}

static int back_file(const struct gp_tree *t, enum gp_set set, enum gp_file f, struct pk_buf *out,
		     struct pk_error *pk)
{
	const struct pk_source *src = &t->src[f];
	struct pk_edits es = { 0 };
	int r = 0;

	for (enum gp_site s = 0; s < GP_S_DISPATCH_CREATE && !r; s++) {
		const struct gp_place *p = &t->site[s];

		if (gp_site_file(s) == f && gp_in_set(set, s) && p->state == GP_EDITED)
			r = pk_edit_replace(&es, src, &p->span, *p->stub ? p->stub : p->pristine,
					    pk);
	}
	r = r ? r : pk_render(&es, src, out, pk);
	pk_edits_free(&es);
	for (enum gp_site s = GP_S_DISPATCH_CREATE; f == GP_F_DISPATCH && s < GP_NR_SITES && !r;
	     s++) {
		r = cut(out, t->site[s].edited);
		if (r)
			pk_system(pk, r, "edit", gp_path[f]);
	}
	return r;
}

/* Refuses (E-FOREIGN) unless the edits are ours to the byte: then taking them back is, too. */
int gp_plan_back(const struct gp_tree *t, enum gp_set set, struct pk_plan *plan,
		 struct gp_error *err)
{
	struct pk_plan again = { 0 };
	struct gp_tree pristine = { 0 };
	enum gp_set left = GP_NO_SET;
	struct pk_error pk;
	int r = gp_plan(t, set, plan, err);

	/* all sites are edited: `after` is what stands there, `before` is made from it */
	for (size_t i = 0; i < plan->n && !r; i++) {
		struct pk_buf out = { 0 };
		enum gp_file f = 0;

		while (strcmp(gp_path[f], plan->c[i].path))
			f++;
		r = back_file(t, set, f, &out, &pk);
		if (r) {
			gp_from_pk(err, r, &pk, gp_path[f], "");
			pk_buf_free(&out);
			break;
		}
		free(plan->c[i].before);
		plan->c[i].before = out.data;
		plan->c[i].before_len = out.len;
	}
	r = r ? r : gp_tree_with(&pristine, t, plan, err);
	if (!r && (!gp_set_found(&pristine, &left) || left != GP_NO_SET))
		r = gp_refuse(err, GP_FOREIGN, t->root, 0, "",
			      "the edits as this tool makes them, to the byte", "others");
	r = r ? r : gp_plan(&pristine, set, &again, err);
	for (size_t i = 0; i < plan->n && !r; i++)
		if (again.c[i].after_len != plan->c[i].after_len ||
		    memcmp(again.c[i].after, plan->c[i].after, again.c[i].after_len))
			r = gp_refuse(err, GP_FOREIGN, plan->c[i].path, 0, "",
				      "the edits as this tool makes them, to the byte", "others");
	gp_tree_free(&pristine);
	pk_plan_free(&again);
	if (r)
		pk_plan_free(plan);
	return r;
}
