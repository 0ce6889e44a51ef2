// SPDX-License-Identifier: MIT
/*
 * hal.c - the five functions of the bus object whose default arm an edit redirects, and the
 * two that send a peer mapping on its way.
 *
 * The table has two arms for each: GH100's function, and behind `else` a stub of the header
 * that says no. Suffixes of stubs are hashes of their bodies: they name nothing, so the stub is
 * judged by what it returns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdspatch.h"

static const char *const functions[GP_NR_HAL] = {
	"kbusGetBar1P2PDmaInfo",
	"kbusCreateP2PMappingForBar1P2P",
	"kbusRemoveP2PMappingForBar1P2P",
	"kbusHasPcieBar1P2PMapping",
	"kbusIsPcieBar1P2PMappingSupported",
};

static const struct {
	enum gp_site site;
	const char *function, *hal;
	const char *text; /* what the set inserts */
} dispatches[] = {
	{ GP_S_DISPATCH_CREATE, "kbusCreateP2PMapping_GP100", "kbusCreateP2PMappingForBar1P2P_HAL",
	  "    if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE_BAR1, attributes))\n"
	  "        return kbusCreateP2PMappingForBar1P2P_HAL(pGpu0, pKernelBus0, pGpu1, pKernelBus1, attributes);\n" },
	{ GP_S_DISPATCH_REMOVE, "kbusRemoveP2PMapping_GP100", "kbusRemoveP2PMappingForBar1P2P_HAL",
	  "    if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE_BAR1, attributes))\n"
	  "        return kbusRemoveP2PMappingForBar1P2P_HAL(pGpu0, pKernelBus0, pGpu1, pKernelBus1, attributes);\n" },
};

static int count(const struct pk_source *s, const char *fmt, const char *name, struct pk_match *m)
{
	struct pk_error pk;
	char pattern[200];

	snprintf(pattern, sizeof(pattern), fmt, name);
	return (int)pk_count(s, NULL, pattern, m, &pk);
}

/* a declaration at file level: "NAME(...);" */
static bool declared(const struct pk_source *s, const char *name)
{
	char pattern[120];
	struct pk_match m;
	size_t at = 0;

	snprintf(pattern, sizeof(pattern), "%s ( ... ) ;", name);
	while (gp_next(s, NULL, &at, pattern, &m))
		if (!s->tok[m.span.first].depth)
			return true;
	return false;
}

/* all five, or a release from before them */
static int check_age(const struct gp_tree *t, struct gp_error *err)
{
	const char *missing = NULL;
	char name[100];
	int have = 0;

	for (int i = 0; i < GP_NR_HAL; i++) {
		snprintf(name, sizeof(name), "%s_GH100", functions[i]);
		if (count(&t->src[GP_F_TABLE], "-> __%s__ =", functions[i], NULL) > 0 ||
		    declared(&t->src[GP_F_HEADER], name))
			have++;
		else if (!missing)
			missing = functions[i];
	}
	if (have == GP_NR_HAL)
		return 0;
	return gp_refuse(err, GP_TOO_OLD, gp_path[GP_F_TABLE], 0, missing,
			 "five functions for peers through BAR1", "%d of them in release %s", have,
			 t->version);
}

/* both arms, in the one form that is understood */
static int find_arms(const struct gp_tree *t, const char *f, struct pk_match arm[2],
		     struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_TABLE];
	int n = count(s, "-> __%s__ =", f, &arm[0]);
	char pattern[120];
	unsigned int line;
	size_t at = 0;

	if (n != 2)
		return gp_refuse(err, GP_HAL_COUNT, gp_path[GP_F_TABLE],
				 n > 0 ? s->tok[arm[0].span.first].line : 0, f, "two assignments",
				 "%d", n);
	line = s->tok[arm[0].span.first].line;
	snprintf(pattern, sizeof(pattern), "{ $p -> __%s__ = & $f ; }", f);
	if (!gp_next(s, NULL, &at, pattern, &arm[0]) || !gp_next(s, NULL, &at, pattern, &arm[1]) ||
	    arm[1].span.first != arm[0].span.end + 1 || !pk_token_is(s, arm[0].span.end, "else") ||
	    !arm[0].span.first || !pk_token_is(s, arm[0].span.first - 1, ")"))
		return gp_refuse(err, GP_HAL_NO_ELSE, gp_path[GP_F_TABLE], line, f,
				 "if (...) { one assignment } else { the other }", "another form");
	return 0;
}

static int check_stub(const struct gp_tree *t, int i, const char *name, char result[24],
		      struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_HEADER];
	const char *expected = i < 3 ? "one inline stub that returns NV_ERR_NOT_SUPPORTED"
				     : "one inline stub that returns false";
	struct pk_function f;
	struct pk_error pk;
	char body[80], decl[80];

	if (pk_find_function(s, name, &f, &pk))
		return gp_refuse(err, GP_STUB_UNEXPECTED, gp_path[GP_F_HEADER], 0, name, expected,
				 "%s",
				 pk.id == PK_E103_ANCHOR_NOT_FOUND ? "none" : "more than one");
	gp_text(s, f.body.first, f.body.end, body, sizeof(body));
	gp_text(s, f.decl.first, f.decl.first + 2, decl, sizeof(decl));
	*result = '\0';
	if (strcmp(decl, "static inline"))
		snprintf(body, sizeof(body), "a function that is not static inline");
	else if (i < 3 && !strcmp(body, "return NV_ERR_NOT_SUPPORTED ;"))
		strcpy(result, "unsupported");
	else if (i >= 3 && !strcmp(body, "return ( ( NvBool ) ( 0 != 0 ) ) ;"))
		strcpy(result, "zero");
	else if (i >= 3 && !strcmp(body, "return NV_FALSE ;"))
		strcpy(result, "false");
	if (*result)
		return 0;
	return gp_refuse(err, GP_STUB_UNEXPECTED, gp_path[GP_F_HEADER], s->tok[f.open].line, name,
			 expected, "`%s`", body);
}

/* the stub of a function whose two arms are both GH100's: the header still has it */
static int find_stub(const struct gp_tree *t, const char *f, char *stub, size_t len,
		     struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_HEADER];
	size_t n = strlen(f);
	int found = 0;

	for (size_t i = 0; i < s->ntok; i++) {
		const struct pk_token *k = &s->tok[i];
		struct pk_function def;
		struct pk_error pk;
		char name[80];

		if (k->depth || k->kind != PK_T_IDENT || k->len <= n + 1 ||
		    k->len >= sizeof(name) || memcmp(s->text + k->off, f, n) ||
		    s->text[k->off + n] != '_')
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)k->len, s->text + k->off);
		if (!strcmp(name + n, "_DISPATCH") || pk_find_function(s, name, &def, &pk))
			continue;
		snprintf(stub, len, "%s", name);
		found++;
	}
	if (found == 1)
		return 0;
	return gp_refuse(err, GP_STUB_UNEXPECTED, gp_path[GP_F_HEADER], 0, f, "one inline stub",
			 "%d", found);
}

static int locate(struct gp_tree *t, int i, struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_TABLE];
	struct gp_place *p = &t->site[GP_HAL_FIRST + i];
	const char *f = functions[i];
	char gh100[80], name[2][80];
	struct pk_match arm[2];
	size_t n = strlen(f);
	int r;

	r = find_arms(t, f, arm, err);
	if (r)
		return r;
	snprintf(gh100, sizeof(gh100), "%s_GH100", f);
	for (int k = 0; k < 2; k++) {
		gp_text(s, arm[k].cap_tok[1], arm[k].cap_tok[1] + 1, name[k], sizeof(name[k]));
		if (strncmp(name[k], f, n) || name[k][n] != '_')
			return gp_refuse(err, GP_HAL_COUNT, gp_path[GP_F_TABLE],
					 s->tok[arm[k].span.first].line, f, "a variant of it", "%s",
					 name[k]);
	}
	p->line = s->tok[arm[1].cap_tok[1]].line;
	p->span = (struct pk_span){ arm[1].cap_tok[1], arm[1].cap_tok[1] + 1 };
	p->state = strcmp(name[1], gh100) ? GP_PRISTINE : GP_EDITED;
	gp_text(s, p->span.first, p->span.end, p->found, sizeof(p->found));
	if (strcmp(name[0], gh100) && p->state == GP_EDITED)
		return gp_refuse(err, GP_HAL_NO_ELSE, gp_path[GP_F_TABLE], p->line, f,
				 "GH100's in the first arm, the stub behind else",
				 "them the other way round");
	if (strcmp(name[0], gh100))
		return gp_refuse(err, GP_HAL_COUNT, gp_path[GP_F_TABLE], p->line, f,
				 "one arm of GH100", "none");
	if (!declared(&t->src[GP_F_HEADER], gh100))
		return gp_refuse(err, GP_NO_GH100_PROTO, gp_path[GP_F_HEADER], 0, gh100,
				 "its prototype", "none");
	if (p->state == GP_EDITED)
		r = find_stub(t, f, p->stub, sizeof(p->stub), err);
	else
		gp_text(s, p->span.first, p->span.end, p->stub, sizeof(p->stub));
	r = r ? r : check_stub(t, i, p->stub, t->layout.result[i], err);
	if (r)
		return r;
	for (size_t k = 0; k + 1 < sizeof(t->layout.suffix[i]) && p->stub[n + 1 + k]; k++)
		t->layout.suffix[i][k] = p->stub[n + 1 + k];
	return 0;
}

/* the arms of a function that no set edits, as "GH100,GP100" */
static void arms(const struct pk_source *s, const char *f, char *out, size_t len)
{
	char pattern[120], name[80];
	struct pk_match m;
	size_t at = 0, n = 0;

	*out = '\0';
	snprintf(pattern, sizeof(pattern), "-> __%s__ = & $f ;", f);
	while (n < len && gp_next(s, NULL, &at, pattern, &m)) {
		const char *suffix;

		gp_text(s, m.cap_tok[0], m.cap_tok[0] + 1, name, sizeof(name));
		suffix = strncmp(name, f, strlen(f)) ? name : name + strlen(f) + 1;
		n += snprintf(out + n, len - n, "%s%s", n ? "," : "", suffix);
	}
}

static bool defined(const struct pk_source *s, const char *name)
{
	struct pk_buf v = { 0 };
	struct pk_error pk;
	bool yes = !pk_find_define(s, name, &v, &pk) || pk.id == PK_E104_ANCHOR_AMBIGUOUS;

	pk_buf_free(&v);
	return yes;
}

/* how static BAR1 is switched: by the table, for which chips, or one body for all */
static void static_form(const struct gp_tree *t, char *out, size_t len)
{
	char a[64];

	arms(&t->src[GP_F_TABLE], "kbusEnableStaticBar1Mapping", a, sizeof(a));
	if (strstr(a, "TU102"))
		snprintf(out, len, "TU102");
	else if (strstr(a, "GH100"))
		snprintf(out, len, "GH100");
	else if (!*a && defined(&t->src[GP_F_HEADER], "kbusEnableStaticBar1Mapping"))
		snprintf(out, len, "single");
	else
		snprintf(out, len, "none");
}

int gp_locate_hal(struct gp_tree *t, struct gp_error *err)
{
	char remove[sizeof(t->layout.order)];
	int r = check_age(t, err);

	for (int i = 0; i < GP_NR_HAL && !r; i++)
		r = locate(t, i, err);
	if (r)
		return r;
	snprintf(t->layout.form, sizeof(t->layout.form), "%s",
		 defined(&t->src[GP_F_HEADER], "kbusGetBar1P2PDmaInfo_FNPTR") ? "B" : "A");
	arms(&t->src[GP_F_TABLE], "kbusCreateP2PMapping", t->layout.order, sizeof(t->layout.order));
	arms(&t->src[GP_F_TABLE], "kbusRemoveP2PMapping", remove, sizeof(remove));
	if (strcmp(t->layout.order, remove))
		snprintf(t->layout.order, sizeof(t->layout.order), "unequal");
	static_form(t, t->layout.static_bar1, sizeof(t->layout.static_bar1));
	return 0;
}

/* the parameters that the inserted text uses, under these names */
static int check_params(const struct pk_source *s, const struct pk_function *f, const char *name,
			struct gp_error *err)
{
	static const char *const params[] = {
		"pGpu0 ,", "pKernelBus0 ,", "pGpu1 ,", "pKernelBus1 ,", "NvU32 attributes",
	};
	struct pk_error pk;

	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++)
		if (pk_count(s, &f->params, params[i], NULL, &pk) != 1)
			return gp_refuse(err, GP_FUNC_MISSING, gp_path[GP_F_DISPATCH],
					 s->tok[f->open].line, name, params[i], "other parameters");
	return 0;
}

static int locate_dispatch(struct gp_tree *t, int i, struct gp_error *err)
{
	const struct pk_source *s = &t->src[GP_F_DISPATCH];
	struct gp_place *p = &t->site[dispatches[i].site];
	const char *name = dispatches[i].function;
	struct pk_error pk;
	struct pk_match m;
	size_t at = 0;
	int r;

	r = pk_find_function(s, name, &p->body, &pk);
	if (r)
		return gp_from_pk(err, r, &pk, gp_path[GP_F_DISPATCH], name);
	r = check_params(s, &p->body, name, err);
	if (r)
		return r;
	p->edited = dispatches[i].text;
	p->line = s->tok[p->body.open].line;
	p->state = gp_next(s, &p->body.body, &at, dispatches[i].text, &m) ? GP_EDITED : GP_PRISTINE;
	snprintf(p->found, sizeof(p->found), "%s BAR1 branch",
		 p->state == GP_EDITED ? "our" : "no");
	at = p->state == GP_EDITED ? m.span.end : 0;
	if (gp_next(s, &p->body.body, &at, "_CONNECTION_TYPE , _PCIE_BAR1", &m))
		return gp_refuse(err, GP_FUNC_DUPLICATE, gp_path[GP_F_DISPATCH],
				 s->tok[m.span.first].line, name, "no BAR1 branch but ours",
				 "another");
	if (!defined(&t->src[GP_F_HEADER], dispatches[i].hal))
		return gp_refuse(err, GP_FUNC_MISSING, gp_path[GP_F_HEADER], 0, dispatches[i].hal,
				 "its definition", "none");
	return 0;
}

int gp_locate_dispatch(struct gp_tree *t, struct gp_error *err)
{
	static const char attribute[] = "NV_P2PAPI_ATTRIBUTES_CONNECTION_TYPE_PCIE_BAR1";
	int r = 0;

	if (!t->src[GP_F_DISPATCH].text)
		return gp_refuse(err, GP_NOT_A_TREE, gp_path[GP_F_DISPATCH], 0, "", "this file",
				 "none");
	for (int i = 0; i < 2 && !r; i++)
		r = locate_dispatch(t, i, err);
	if (!r && (!t->src[GP_F_P2PAPI].text || !defined(&t->src[GP_F_P2PAPI], attribute)))
		r = gp_refuse(err, GP_FUNC_MISSING, gp_path[GP_F_P2PAPI], 0, attribute,
			      "its definition", "none");
	return r;
}
