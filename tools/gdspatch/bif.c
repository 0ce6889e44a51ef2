// SPDX-License-Identifier: MIT
/*
 * bif.c - the three defaults in kernel_bif.c, and what the registry header says of the values.
 *
 * Each field is given a constant first and is then overwritten by a registry key, if that is
 * set. The constant is what an edit changes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdspatch.h"

#define FUNCTION "_kbifInitRegistryOverrides"

static const struct {
	enum gp_site site;
	const char *field, *pristine, *key;
} fields[] = {
	{ GP_S_OVERRIDE, "p2pOverride", "BIF_P2P_NOT_OVERRIDEN", "NV_REG_STR_CL_FORCE_P2P" },
	{ GP_S_FORCE_TYPE, "forceP2PType", "NV_REG_STR_RM_FORCE_P2P_TYPE_DEFAULT",
	  "NV_REG_STR_RM_FORCE_P2P_TYPE" },
	{ GP_S_PCIE_TYPE, "pcieP2PType", "NV_REG_STR_RM_PCIEP2P_TYPE_DEFAULT",
	  "NV_REG_STR_RM_PCIEP2P_TYPE" },
};

/* an assignment to a field: where it starts, and its right side */
struct assignment {
	size_t first;
	struct pk_span value;
	char text[64];
};

/* the constants that a set writes: by which of them the header has, not by release */
static bool has(const struct gp_tree *t, const char *macro)
{
	struct pk_buf v = { 0 };
	struct pk_error pk;
	bool yes = !pk_find_define(&t->src[GP_F_REGISTRY], macro, &v, &pk) ||
		   pk.id == PK_E104_ANCHOR_AMBIGUOUS;

	pk_buf_free(&v);
	return yes;
}

/* the number of a macro, through others that it names */
static bool number(const struct gp_tree *t, const char *macro, unsigned long *n)
{
	char name[80];
	bool ok = false;

	snprintf(name, sizeof(name), "%s", macro);
	for (int hops = 0; hops < 4 && !ok; hops++) {
		struct pk_buf v = { 0 };
		struct pk_error pk;
		char *p, *end;

		if (pk_find_define(&t->src[GP_F_REGISTRY], name, &v, &pk)) {
			pk_buf_free(&v);
			return false;
		}
		p = v.data + strspn(v.data, "( ");
		*n = strtoul(p, &end, 0);
		ok = end > p && !end[strspn(end, ") uUlL")];
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, " )"), p);
		pk_buf_free(&v);
	}
	return ok;
}

static int check_value(const struct gp_tree *t, const char *macro, unsigned long want,
		       struct gp_error *err)
{
	char expected[40];
	unsigned long n;

	snprintf(expected, sizeof(expected), "the value %lu", want);
	if (!number(t, macro, &n))
		return gp_refuse(err, GP_KEY_MISMATCH, gp_path[GP_F_REGISTRY], 0, macro, expected,
				 "no number");
	if (n == want)
		return 0;
	return gp_refuse(err, GP_KEY_MISMATCH, gp_path[GP_F_REGISTRY], 0, macro, expected, "%lu",
			 n);
}

static int check_text(const struct gp_tree *t, const char *macro, const char *want,
		      struct gp_error *err)
{
	struct pk_buf v = { 0 };
	struct pk_error pk;
	int r = pk_find_define(&t->src[GP_F_REGISTRY], macro, &v, &pk);

	if (r || strcmp(v.data, want))
		r = gp_refuse(err, GP_KEY_MISMATCH, gp_path[GP_F_REGISTRY], 0, macro, want, "%s",
			      r ? "none" : v.data);
	pk_buf_free(&v);
	return r;
}

/* 0x11 is bits 1:0 and 5:4, each 1; both type constants must mean what they meant when read */
static int check_registry(const struct gp_tree *t, bool pcie, const char *type,
			  struct gp_error *err)
{
	int r;

	r = check_text(t, "NV_REG_STR_CL_FORCE_P2P", "\"ForceP2P\"", err);
	r = r ? r : check_text(t, "NV_REG_STR_CL_FORCE_P2P_READ", "1 : 0", err);
	r = r ? r : check_text(t, "NV_REG_STR_CL_FORCE_P2P_WRITE", "5 : 4", err);
	r = r ? r : check_value(t, "NV_REG_STR_CL_FORCE_P2P_READ_ENABLE", 1, err);
	r = r ? r : check_value(t, "NV_REG_STR_CL_FORCE_P2P_WRITE_ENABLE", 1, err);
	r = r ? r : check_text(t, "NV_REG_STR_RM_FORCE_P2P_TYPE", "\"RMForceP2PType\"", err);
	r = r ? r : check_value(t, "NV_REG_STR_RM_FORCE_P2P_TYPE_DEFAULT", 0, err);
	r = r ? r : check_value(t, type, strstr(type, "PCIEP2P") ? 1 : 2, err);
	if (r || !pcie)
		return r;
	r = check_text(t, "NV_REG_STR_RM_PCIEP2P_TYPE", "\"RMPcieP2PType\"", err);
	r = r ? r : check_value(t, "NV_REG_STR_RM_PCIEP2P_TYPE_DEFAULT", 0, err);
	return r ? r : check_value(t, "NV_REG_STR_RM_PCIEP2P_TYPE_BAR1", 1, err);
}

/* how many assignments to the field the body has; the first two are stored */
static int assignments(const struct pk_source *s, const struct pk_span *body, const char *field,
		       struct assignment a[2])
{
	char pattern[80];
	struct pk_match m;
	size_t at = 0;
	int n = 0;

	snprintf(pattern, sizeof(pattern), "-> %s = ... ;", field);
	while (gp_next(s, body, &at, pattern, &m)) {
		if (n < 2) {
			a[n].first = m.span.first;
			a[n].value = (struct pk_span){ m.span.first + 3, m.span.end - 1 };
			gp_text(s, a[n].value.first, a[n].value.end, a[n].text, sizeof(a[n].text));
		}
		n++;
	}
	return n;
}

/* between the two: one read of the key; var: where it puts the value */
static int check_read(const struct gp_tree *t, size_t i, const struct assignment a[2], char *var,
		      size_t len, struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_BIF];
	struct pk_span between = { a[0].value.end, a[1].first };
	struct pk_match m, other;
	char key[80];
	size_t at = 0;

	if (!gp_next(s, &between, &at, "osReadRegistryDword ( $g , $k , & $v )", &m))
		return gp_refuse(err, GP_KEY_MISMATCH, gp_path[GP_F_BIF], s->tok[a[0].first].line,
				 fields[i].field, fields[i].key, "no read of a key");
	gp_text(s, m.cap_tok[1], m.cap_tok[1] + 1, key, sizeof(key));
	gp_text(s, m.cap_tok[2], m.cap_tok[2] + 1, var, len);
	if (strcmp(key, fields[i].key))
		return gp_refuse(err, GP_KEY_MISMATCH, gp_path[GP_F_BIF], s->tok[m.span.first].line,
				 fields[i].field, fields[i].key, "%s", key);
	if (gp_next(s, &between, &at, "osReadRegistryDword ( ... )", &other))
		return gp_refuse(err, GP_KEY_MISMATCH, gp_path[GP_F_BIF],
				 s->tok[other.span.first].line, fields[i].field,
				 "one read of a key", "another");
	return 0;
}

static int locate(struct gp_tree *t, const struct pk_function *f, size_t i, struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_BIF];
	struct gp_place *p = &t->site[fields[i].site];
	struct assignment a[2];
	char expected[120], var[64];
	int r, n = assignments(s, &f->body, fields[i].field, a);

	if (n != 2)
		return gp_refuse(err, GP_DEFAULT_COUNT, gp_path[GP_F_BIF], s->tok[f->open].line,
				 fields[i].field,
				 "one default and one assignment of the key's value",
				 "%d assignments", n);
	p->line = s->tok[a[0].first].line;
	p->span = a[0].value;
	snprintf(p->found, sizeof(p->found), "%s", a[0].text);
	snprintf(expected, sizeof(expected), "%s or %s first", p->pristine, p->edited);
	if (!strcmp(a[0].text, p->pristine))
		p->state = GP_PRISTINE;
	else if (!strcmp(a[0].text, p->edited))
		p->state = GP_EDITED;
	else
		return gp_refuse(err, GP_DEFAULT_COUNT, gp_path[GP_F_BIF], p->line, fields[i].field,
				 expected, "%s", a[0].text);
	r = check_read(t, i, a, var, sizeof(var), err);
	if (!r && strcmp(a[1].text, var))
		r = gp_refuse(err, GP_DEFAULT_COUNT, gp_path[GP_F_BIF], s->tok[a[1].first].line,
			      fields[i].field, var, "%s", a[1].text);
	return r;
}

int gp_locate_bif(struct gp_tree *t, struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_BIF];
	bool pcie = has(t, "NV_REG_STR_RM_PCIEP2P_TYPE"), field;
	bool by_pcie = has(t, "NV_REG_STR_RM_FORCE_P2P_TYPE_PCIEP2P");
	const char *type = by_pcie ? "NV_REG_STR_RM_FORCE_P2P_TYPE_PCIEP2P"
				   : "NV_REG_STR_RM_FORCE_P2P_TYPE_BAR1P2P";
	struct assignment a[2];
	struct pk_function f;
	struct pk_error pk;
	int r;

	r = pk_find_function(s, FUNCTION, &f, &pk);
	if (r)
		return gp_from_pk(err, r, &pk, gp_path[GP_F_BIF], FUNCTION);
	field = assignments(s, &f.body, "pcieP2PType", a);
	t->site[GP_S_OVERRIDE].edited = "0x11";
	t->site[GP_S_FORCE_TYPE].edited = type;
	t->site[GP_S_PCIE_TYPE].edited = "NV_REG_STR_RM_PCIEP2P_TYPE_BAR1";
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields) && !r; i++) {
		t->site[fields[i].site].pristine = fields[i].pristine;
		if (fields[i].site == GP_S_PCIE_TYPE && !pcie && !field)
			continue;
		r = locate(t, &f, i, err);
	}
	r = r ? r : check_registry(t, pcie || field, type, err);
	snprintf(t->layout.pcie, sizeof(t->layout.pcie), "%s", field ? "yes" : "no");
	snprintf(t->layout.type, sizeof(t->layout.type), "%s", by_pcie ? "PCIEP2P" : "BAR1P2P");
	return r;
}
