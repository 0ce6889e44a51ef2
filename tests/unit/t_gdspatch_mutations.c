// SPDX-License-Identifier: MIT
/*
 * t_gdspatch_mutations.c - every site of every layout, damaged in every way of the list: each
 * mutation is refused with its id and nothing is written, or it changes nothing that counts: then
 * the edits are planned and, on three layouts, made, verified and taken back to the byte.
 */
#include "gdspatch_fixture.h"

/* what is to come of it */
#define FINE NULL

static struct {
	int fine, refused, applied;
} count;

static const struct layout *now;
static char label[200];

/* every call that could change something is counted */
static int calls;

static int c_open(const char *path, int flags, mode_t mode)
{
	calls += flags & O_CREAT ? 1 : 0;
	return pk_os_libc.open(path, flags, mode);
}

static ssize_t c_write(int fd, const void *data, size_t len)
{
	calls++;
	return write(fd, data, len);
}

static int c_rename(const char *from, const char *to)
{
	calls++;
	return rename(from, to);
}

static int c_unlink(const char *path)
{
	calls++;
	return unlink(path);
}

static int c_mkdir(const char *path, mode_t mode)
{
	calls++;
	return mkdir(path, mode);
}

static int c_rmdir(const char *path)
{
	calls++;
	return rmdir(path);
}

static const struct pk_os counting = {
	.open = c_open,
	.write = c_write,
	.fsync = no_fsync,
	.close = close,
	.rename = c_rename,
	.unlink = c_unlink,
	.mkdir = c_mkdir,
	.rmdir = c_rmdir,
};

/* written, verified and taken back: no byte differs, no folder of ours is left */
static void there_and_back(const char *set)
{
	char *before = snapshot(tree_dir), *after;

	if (run("apply --root %s --set %s %s", base, set, tree_dir) ||
	    run("verify --set %s %s", set, tree_dir) || run("revert %s", tree_dir))
		fail_msg("%s: %s", label, err_text);
	assert_true(calls > 0);
	after = snapshot(tree_dir);
	if (strcmp(before, after))
		fail_msg("%s: not as it was:\n%s\n%s", label, before, after);
	free(before);
	free(after);
}

/* the first of each kind of table; what is written depends on nothing else of the layout */
static bool in_full(void)
{
	return !strcmp(now->name, "535") || !strcmp(now->name, "570") || !strcmp(now->name, "595");
}

/* the tree as it stands, with this set */
static void judge(const char *set, const char *id, const char *what)
{
	int status;

	pk_os = &counting;
	calls = 0;
	snprintf(label, sizeof(label), "layout %s, set %s: %s", now->name, set, what);
	status = run("apply --root %s %s --set %s %s", base, id ? "" : "--dry-run", set, tree_dir);
	if (status != (id ? GP_EXIT_REFUSED : GP_EXIT_OK) || (id && !strstr(err_text, id)))
		fail_msg("%s: expected %s, got %d: %s", label, id ? id : "a plan", status,
			 err_text);
	if (calls)
		fail_msg("%s: %d calls that write", label, calls);
	if (id) {
		count.refused++;
		return;
	}
	count.fine++;
	if (in_full()) {
		count.applied++;
		there_and_back(set);
	}
}

/* one replacement, in a fresh tree */
static void mutate(const char *set, enum gp_file f, const char *old, const char *new,
		   const char *id, const char *what)
{
	unpack_edited(now);
	if (!edit(f, old, new, 1))
		fail_msg("layout %s: %s: no `%s` in %s", now->name, what, old, gp_path[f]);
	judge(set, id, what);
}

/* ---- the defaults ---- */

static void mutate_default(const char *field, const char *value, const char *key)
{
	char line[200], new[600], read[200];
	struct {
		const char *fmt, *id, *what;
	} of_line[] = {
		/* %1$s: the statement */
		{ "", "E-DEFAULT-COUNT", "default deleted" },
		{ "%1$s\n    %1$s", "E-DEFAULT-COUNT", "default twice" },
		{ "/* %1$s */", "E-DEFAULT-COUNT", "default in a comment" },
		{ "// %1$s", "E-DEFAULT-COUNT", "default behind //" },
		{ "puts(\"%1$s\");", "E-DEFAULT-COUNT", "default in a string" },
		{ "\n#if 0\n%1$s\n#endif\n", "E-DEFAULT-COUNT", "default in dead code" },
		{ "\n#ifdef A\n%1$s\n#else\n%1$s\n#endif\n", "E-DEFAULT-COUNT",
		  "default in two arms" },
		{ "/* %1$s */ %1$s", FINE, "a copy in a comment" },
		{ "puts(\"%1$s\");\n    %1$s", FINE, "a copy in a string" },
		{ "\n#if 0\n%1$s\n#endif\n    %1$s", FINE, "a copy in dead code" },
		{ "%1$s // %1$s", FINE, "a copy behind //" },
		{ "\t%1$s", FINE, "a tab before it" },
	};

	snprintf(line, sizeof(line), "pKernelBif->%s = %s;", field, value);
	for (size_t i = 0; i < sizeof(of_line) / sizeof(*of_line); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(new, sizeof(new), of_line[i].fmt, line);
#pragma GCC diagnostic pop
		mutate("bar1p2p", GP_F_BIF, line, new, of_line[i].id, of_line[i].what);
	}
	snprintf(new, sizeof(new), "pKernelBif\n\t->%s\n= /* now */ %s ;", field, value);
	mutate("bar1p2p", GP_F_BIF, line, new, FINE, "other white space");
	snprintf(new, sizeof(new), "pKernelBif->%s = 0x111;", field);
	mutate("bar1p2p", GP_F_BIF, line, new, "E-DEFAULT-COUNT", "another constant");
	snprintf(new, sizeof(new), "pKernelBif->%s = word;", field);
	mutate("bar1p2p", GP_F_BIF, line, new, "E-DEFAULT-COUNT", "a variable");
	snprintf(new, sizeof(new), "pKernelBif->%s_2 = %s;", field, value);
	mutate("bar1p2p", GP_F_BIF, line, new, "E-DEFAULT-COUNT", "another field");

	/* the value of the key first, then the constant */
	unpack_edited(now);
	snprintf(read, sizeof(read), "pKernelBif->%s = word;", field);
	assert_int_equal(edit(GP_F_BIF, line, "@", 1), 1);
	assert_int_equal(edit(GP_F_BIF, read, line, 1), 1);
	assert_int_equal(edit(GP_F_BIF, "@", read, 1), 1);
	judge("bar1p2p", "E-DEFAULT-COUNT", "swapped");

	snprintf(line, sizeof(line), "osReadRegistryDword(pGpu, %s, &word)", key);
	mutate("bar1p2p", GP_F_BIF, line, "osReadRegistryDword(pGpu, NV_REG_STR_OTHER, &word)",
	       "E-KEY-MISMATCH", "another key");
	mutate("bar1p2p", GP_F_BIF, line, "ask(pGpu)", "E-KEY-MISMATCH", "no key");
	snprintf(new, sizeof(new), "%s == NV_OK || %s", line, line);
	mutate("bar1p2p", GP_F_BIF, line, new, "E-KEY-MISMATCH", "the key twice");
	snprintf(new, sizeof(new), "osReadRegistryDword(pGpu, %s, &other)", key);
	mutate("bar1p2p", GP_F_BIF, line, new, "E-DEFAULT-COUNT", "the key into another variable");
}

static void mutate_bif(void)
{
	mutate_default("p2pOverride", "BIF_P2P_NOT_OVERRIDEN", "NV_REG_STR_CL_FORCE_P2P");
	mutate_default("forceP2PType", "NV_REG_STR_RM_FORCE_P2P_TYPE_DEFAULT",
		       "NV_REG_STR_RM_FORCE_P2P_TYPE");
	if (!strcmp(now->pcie, "yes"))
		mutate_default("pcieP2PType", "NV_REG_STR_RM_PCIEP2P_TYPE_DEFAULT",
			       "NV_REG_STR_RM_PCIEP2P_TYPE");
	mutate("bar1p2p", GP_F_BIF, "static void\n_kbifInitRegistryOverrides\n",
	       "static void\n_kbifInitOverrides\n", "E-FUNC-MISSING", "function renamed");
	mutate("bar1p2p", GP_F_BIF, "NV_STATUS\nkbifBegin_IMPL(",
	       "static void _kbifInitRegistryOverrides(void)\n{\n}\n\nNV_STATUS\nkbifBegin_IMPL(",
	       "E-FUNC-DUPLICATE", "function twice");
}

/* ---- the table ---- */

struct hal_site {
	const char *function, *stub, *type, *value;
};

static void mutate_table(const struct hal_site *h)
{
	char stub[100], ours[100], block[400], swapped[400], text[1000], proto[200], old[200];
	const char *f = h->function;

	snprintf(stub, sizeof(stub), "__%s__ = &%s_%s;", f, f, h->stub);
	snprintf(ours, sizeof(ours), "__%s__ = &%s_GH100;", f, f);
	snprintf(block, sizeof(block),
		 "    {\n        pThis->%s\n    }\n    else\n    {\n        pThis->%s\n    }\n",
		 ours, stub);
	snprintf(swapped, sizeof(swapped),
		 "    {\n        pThis->%s\n    }\n    else\n    {\n        pThis->%s\n    }\n",
		 stub, ours);

	mutate("bar1p2p", GP_F_TABLE, block, "    {\n    }\n", "E-HAL-COUNT", "both arms deleted");
	snprintf(old, sizeof(old), "pThis->%s", stub);
	mutate("bar1p2p", GP_F_TABLE, old, ";", "E-HAL-COUNT", "default arm deleted");
	snprintf(text, sizeof(text), "/* %s */", old);
	mutate("bar1p2p", GP_F_TABLE, old, text, "E-HAL-COUNT", "default arm in a comment");
	snprintf(text, sizeof(text), "puts(\"%s\");", old);
	mutate("bar1p2p", GP_F_TABLE, old, text, "E-HAL-COUNT", "default arm in a string");
	snprintf(text, sizeof(text), "/* %s */ %s // %s", old, old, old);
	mutate("bar1p2p", GP_F_TABLE, old, text, FINE, "copies in comments");
	snprintf(text, sizeof(text), "pThis -> \t%s", stub);
	mutate("bar1p2p", GP_F_TABLE, old, text, FINE, "other white space");
	snprintf(text, sizeof(text), "%s\n        %s", old, old);
	mutate("bar1p2p", GP_F_TABLE, old, text, "E-HAL-COUNT", "default arm twice");
	snprintf(text, sizeof(text), "%s    if (chip)\n%s", block, block);
	mutate("bar1p2p", GP_F_TABLE, block, text, "E-HAL-COUNT", "block twice");
	mutate("bar1p2p", GP_F_TABLE, block, swapped, "E-HAL-NO-ELSE", "arms swapped");

	snprintf(text, sizeof(text),
		 "    {\n        pThis->%s\n    }\n    {\n        pThis->%s\n    }\n", ours, stub);
	mutate("bar1p2p", GP_F_TABLE, block, text, "E-HAL-NO-ELSE", "no else");
	snprintf(
		text, sizeof(text),
		"    {\n        pThis->%s\n    }\n    else if (chip)\n    {\n        pThis->%s\n    }\n",
		ours, stub);
	mutate("bar1p2p", GP_F_TABLE, block, text, "E-HAL-NO-ELSE", "else if");
	snprintf(
		text, sizeof(text),
		"    {\n        pThis->%s\n    }\n    else\n    {\n        chip++;\n        pThis->%s\n    }\n",
		ours, stub);
	mutate("bar1p2p", GP_F_TABLE, block, text, "E-HAL-NO-ELSE", "more in the arm");
	snprintf(text, sizeof(text),
		 "    {\n        pThis->%s\n    }\n    else\n        pThis->%s\n", ours, stub);
	mutate("bar1p2p", GP_F_TABLE, block, text, "E-HAL-NO-ELSE", "no braces");
	snprintf(text, sizeof(text), "__%s__ = &%s_GP100;", f, f);
	mutate("bar1p2p", GP_F_TABLE, ours, text, "E-HAL-COUNT", "no arm of GH100");
	snprintf(text, sizeof(text), "__%s__ = &other_%s;", f, h->stub);
	mutate("bar1p2p", GP_F_TABLE, stub, text, "E-HAL-COUNT", "another function");
	snprintf(text, sizeof(text), "__%s__ = &%s_123abc;", f, f);
	mutate("bar1p2p", GP_F_TABLE, stub, text, "E-STUB-UNEXPECTED", "suffix renamed here only");

	/* everywhere: a shape that nobody has seen, whatever it returns */
	unpack_edited(now);
	snprintf(old, sizeof(old), "%s_%s", f, h->stub);
	snprintf(text, sizeof(text), "%s_123abc", f);
	assert_int_equal(edit(GP_F_TABLE, old, text, 0), 1);
	assert_int_equal(edit(GP_F_HEADER, old, text, 0), 1);
	judge("bar1p2p", "E-LAYOUT-UNKNOWN", "suffix renamed everywhere");

	/* the header */
	snprintf(proto, sizeof(proto),
		 "%s %s_GH100(struct OBJGPU *pGpu, struct KernelBus *pKernelBus);", h->type, f);
	mutate("bar1p2p", GP_F_HEADER, proto, "", "E-NO-GH100-PROTO", "prototype deleted");
	snprintf(text, sizeof(text), "/* %s */", proto);
	mutate("bar1p2p", GP_F_HEADER, proto, text, "E-NO-GH100-PROTO", "prototype in a comment");
	snprintf(old, sizeof(old),
		 "static inline %s %s_%s(struct OBJGPU *pGpu, struct KernelBus *pKernelBus) {\n"
		 "    return %s;\n}",
		 h->type, f, h->stub, h->value);
	snprintf(text, sizeof(text), "%s\n%s", old, old);
	mutate("bar1p2p", GP_F_HEADER, old, text, "E-STUB-UNEXPECTED", "stub twice");
	mutate("bar1p2p", GP_F_HEADER, old, "", "E-STUB-UNEXPECTED", "stub deleted");
	snprintf(text, sizeof(text), "/* yes */ %s", old);
	mutate("bar1p2p", GP_F_HEADER, old, text, FINE, "comment at the stub");
	snprintf(text, sizeof(text),
		 "%s %s_%s(struct OBJGPU *pGpu, struct KernelBus *pKernelBus) {\n"
		 "    return %s;\n}",
		 h->type, f, h->stub, h->value);
	mutate("bar1p2p", GP_F_HEADER, old, text, "E-STUB-UNEXPECTED", "stub not inline");
	snprintf(text, sizeof(text),
		 "static inline %s %s_%s(struct OBJGPU *pGpu, struct KernelBus *pKernelBus) {\n"
		 "    return %s;\n}",
		 h->type, f, h->stub, strcmp(h->type, "NvBool") ? "NV_OK" : "NV_TRUE");
	mutate("bar1p2p", GP_F_HEADER, old, text, "E-STUB-UNEXPECTED", "stub says yes");
	snprintf(text, sizeof(text),
		 "static inline %s %s_%s(struct OBJGPU *pGpu, struct KernelBus *pKernelBus) {\n"
		 "    note(pGpu);\n    return %s;\n}",
		 h->type, f, h->stub, h->value);
	mutate("bar1p2p", GP_F_HEADER, old, text, "E-STUB-UNEXPECTED", "stub does more");
}

static void mutate_hal(void)
{
	const char *no = "NV_ERR_NOT_SUPPORTED";
	const char *falsy = strcmp(now->has, "d69453") ? "((NvBool)(0 != 0))" : "NV_FALSE";
	const struct hal_site sites[GP_NR_HAL] = {
		{ "kbusGetBar1P2PDmaInfo", now->dma, "NV_STATUS", no },
		{ "kbusCreateP2PMappingForBar1P2P", now->create, "NV_STATUS", no },
		{ "kbusRemoveP2PMappingForBar1P2P", now->create, "NV_STATUS", no },
		{ "kbusHasPcieBar1P2PMapping", now->has, "NvBool", falsy },
		{ "kbusIsPcieBar1P2PMappingSupported", now->supported, "NvBool", falsy },
	};

	for (int i = 0; i < GP_NR_HAL; i++)
		mutate_table(&sites[i]);
}

/* ---- the branches ---- */

static void mutate_dispatch(void)
{
	static const char branch[] =
		"    if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE_BAR1, attributes))\n"
		"        return mine();\n    if (FLD_TEST_DRF(";
	static const char *const functions[] = { "kbusCreateP2PMapping_GP100",
						 "kbusRemoveP2PMapping_GP100" };
	char text[200];

	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "%s_2", functions[i]);
		mutate("gpu-gpu", GP_F_DISPATCH, functions[i], text, "E-FUNC-MISSING",
		       "function renamed");
		mutate("bar1p2p", GP_F_DISPATCH, functions[i], text, FINE, "function renamed");
		snprintf(text, sizeof(text), "NV_STATUS\n%s(void)\n{\n}\n\nNV_STATUS\nkbusCreate",
			 functions[i]);
		mutate("gpu-gpu", GP_F_DISPATCH, "NV_STATUS\nkbusCreate", text, "E-FUNC-DUPLICATE",
		       "function twice");
		snprintf(text, sizeof(text), "kbus%sP2PMappingForBar1P2P_HAL",
			 i ? "Remove" : "Create");
		mutate("gpu-gpu", GP_F_HEADER, text, "other_HAL", "E-FUNC-MISSING",
		       "no such macro");
	}
	/* each function's own: the first and the last of the file */
	for (int i = 1; i <= 2; i++) {
		unpack_edited(now);
		assert_int_equal(
			edit(GP_F_DISPATCH, "NvU32      attributes\n", "NvU32      how\n", i), 2);
		judge("gpu-gpu", "E-FUNC-MISSING", "parameter renamed");
		unpack_edited(now);
		assert_int_equal(edit(GP_F_DISPATCH, "OBJGPU    *pGpu1,", "OBJGPU    *pPeer,", i),
				 2);
		judge("gpu-gpu", "E-FUNC-MISSING", "parameter renamed");
		unpack_edited(now);
		assert_int_equal(edit(GP_F_DISPATCH, "    if (FLD_TEST_DRF(", branch, i), 2);
		judge("gpu-gpu", "E-FUNC-DUPLICATE", "a BAR1 branch of somebody else");
		judge("bar1p2p", FINE, "a BAR1 branch of somebody else");
	}
	mutate("gpu-gpu", GP_F_P2PAPI, "CONNECTION_TYPE_PCIE_BAR1", "CONNECTION_TYPE_BAR1",
	       "E-FUNC-MISSING", "no such attribute");
	mutate("gpu-gpu", GP_F_DISPATCH, "NV_STATUS status = NV_ERR_NOT_SUPPORTED;",
	       "NV_STATUS status = NV_ERR_NOT_SUPPORTED; status = 1;", "E-NOT-UNDERSTOOD",
	       "code on the line of the declaration");
}

/* ---- registry, layout, and whole files ---- */

static void mutate_rest(void)
{
	static const char values[][48] = {
		"FORCE_P2P_READ_ENABLE      0x00000001",
		"FORCE_P2P_WRITE_ENABLE     0x00000001",
		"FORCE_P2P_TYPE_DEFAULT     (0x00000000)",
	};
	/* the two forms of the table: with the suffixes of 545 to 560 both were seen */
	const char *form = strcmp(now->has, "bf6dfa") ? "E-LAYOUT-UNKNOWN" : FINE;
	char text[200];
	bool pcie = !strcmp(now->pcie, "yes");

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		snprintf(text, sizeof(text), "%.*s0x7", (int)strcspn(values[i], "x") - 1, values[i]);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s",
			 strchr(values[i], ')') ? ")" : "");
		mutate("bar1p2p", GP_F_REGISTRY, values[i], text, "E-KEY-MISMATCH",
		       "another value");
	}
	mutate("bar1p2p", GP_F_REGISTRY, "READ             1:0", "READ             3:2",
	       "E-KEY-MISMATCH", "other bits");
	mutate("bar1p2p", GP_F_REGISTRY, "\"ForceP2P\"", "\"ForceP3P\"", "E-KEY-MISMATCH",
	       "another name");
	snprintf(text, sizeof(text), "#define NV_REG_STR_RM_FORCE_P2P_TYPE_%s ", now->type);
	mutate("bar1p2p", GP_F_REGISTRY, text, "#define NOTHING ", "E-KEY-MISMATCH",
	       "no such type");
	if (pcie) {
		mutate("bar1p2p", GP_F_REGISTRY, "TYPE_BAR1          (0x00000001)",
		       "TYPE_BAR1          (0x00000003)", "E-KEY-MISMATCH", "another value");
		mutate("bar1p2p", GP_F_BIF, "pcieP2PType", "other", "E-DEFAULT-COUNT",
		       "field renamed");
	}
	/* a shape that was not seen: which arms the two dispatching functions have, and how */
	snprintf(text, sizeof(text), "&kbusCreateP2PMapping_%s;", now->order);
	mutate("bar1p2p", GP_F_TABLE, text, "&kbusCreateP2PMapping_TU102;", "E-LAYOUT-UNKNOWN",
	       "other arms");
	mutate("bar1p2p", GP_F_TABLE, "__kbusRemoveP2PMapping__ = &kbusRemoveP2PMapping_",
	       "__kbusRemoveP2PMapping__ = &kbusRemoveP2PMapping_X", "E-LAYOUT-UNKNOWN",
	       "unequal arms");
	if (now->form[0] == 'B')
		mutate("bar1p2p", GP_F_HEADER, "#define kbusGetBar1P2PDmaInfo_FNPTR",
		       "#define kbusGetBar1P2PDmaInfo_NO", form, "another form");
	else
		mutate("bar1p2p", GP_F_HEADER, "#define kbusGetBar1P2PDmaInfo_HAL",
		       "#define kbusGetBar1P2PDmaInfo_FNPTR(p)\n#define kbusGetBar1P2PDmaInfo_HAL",
		       form, "another form");
	mutate("bar1p2p", strcmp(now->fixed, "single") ? GP_F_TABLE : GP_F_HEADER,
	       strcmp(now->fixed, "single") ? "__kbusEnableStaticBar1Mapping__"
					    : "#define kbusEnableStaticBar1Mapping",
	       strcmp(now->fixed, "single") ? "__none__" : "#define none", "E-LAYOUT-UNKNOWN",
	       "no static BAR1");
}

static void to_crlf(enum gp_file f)
{
	edit(f, "\n", "\r\n", 0);
}

static void to_tabs(enum gp_file f)
{
	edit(f, "    ", "\t", 0);
}

/* line ends and indentation are kept: every line of the result has them, too */
static void whole_files(void)
{
	const char *set = !strcmp(now->fixed, "TU102") ? "gpu-gpu" : "bar1p2p";
	void (*const how[])(enum gp_file f) = { to_crlf, to_tabs };

	for (int i = 0; i < 2; i++) {
		char *text;

		unpack_edited(now);
		for (enum gp_file f = GP_F_BIF; f < GP_NR_FILES; f++)
			how[i](f);
		judge(set, FINE, i ? "tabs" : "CRLF");
		OK("apply --set %s %s", set, tree_dir);
		for (enum gp_file f = GP_F_BIF; f < GP_NR_FILES && !i; f++) {
			text = text_of(f);
			for (char *p = text; (p = strchr(p, '\n')); p++)
				assert_true(p > text && p[-1] == '\r');
			free(text);
		}
		OK("revert %s", tree_dir);
	}
	/* a file without its last newline */
	unpack_edited(now);
	for (enum gp_file f = GP_F_BIF; f <= GP_F_TABLE; f++) {
		char path[200];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", tree_dir, gp_path[f]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(truncate(path, st.st_size - 1), 0);
	}
	judge(set, FINE, "no newline at the end");
}

static void t_mutations(void **state)
{
	for (int i = 0; i < LAYOUTS; i++) {
		now = &layouts[i];
		if (strcmp(now->plan, "yes"))
			continue;
		mutate_bif();
		mutate_hal();
		if (!strcmp(now->fixed, "TU102"))
			mutate_dispatch();
		mutate_rest();
		whole_files();
	}
	print_message("%d mutations: %d refused, %d planned, %d of these applied and taken back\n",
		      count.fine + count.refused, count.refused, count.fine, count.applied);
	assert_true(count.refused > 900 && count.fine > 200);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(t_mutations) };

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
