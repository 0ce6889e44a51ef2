// SPDX-License-Identifier: MIT
/*
 * t_patchkit.c - the source editor, in memory: what is code, where things are, what edits
 * make of a text. Files on disk: t_patchkit_tree.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "patchkit.h"

static struct pk_error err;

static void lex(struct pk_source *s, const char *text)
{
	err.text[0] = '\0';
	if (pk_lex(s, "t.c", PK_LANG_C, text, strlen(text), &err))
		fail_msg("%s: %s", pk_id_name(err.id), err.text);
}

/* ---- lexer ---- */

static void mask_is(const char *text, const char *mask)
{
	struct pk_source s;
	char *m;

	lex(&s, text);
	m = pk_mask(&s);
	assert_non_null(m);
	assert_string_equal(m, mask);
	assert_int_equal(strlen(m), s.len);
	free(m);
	pk_source_free(&s);
}

static void t_mask(void **state)
{
	mask_is("a/*b*/c", "a     c");
	mask_is("a//b\nc", "a   \nc");
	mask_is("a//b\\\nb2\nc", "a    \n  \nc");
	mask_is("a//b\r\nc", "a   \r\nc");
	mask_is("x=\"/*\";y", "x=    ;y");
	mask_is("x=\"\\\"//\";y", "x=      ;y");
	mask_is("x='\"';y='/';", "x=   ;y=   ;");
	mask_is("x='\\'';y", "x=    ;y");
	mask_is("a/*\n*/b", "a  \n  b");
	mask_is("#define f(x) /* two\nlines */ g\nh", "                   \n          \nh");
	mask_is("#define f \\\n\t{\nh", "           \n  \nh");
	mask_is("  # include <a>\nb", "               \nb");
	mask_is("a \\\nb", "a  \nb");
	/* dead code */
	mask_is("#if 0\nx {\n#endif\ny", "     \n   \n      \ny");
	mask_is("#if 0\ndon't \"x\n#else\nz\n#endif\ny", "     \n        \n     \nz\n      \ny");
	mask_is("#if 0\n#if 1\nx\n#else\n#endif\nx\n#endif\ny",
		"     \n     \n \n     \n      \n \n      \ny");
	mask_is("#if 0\n/*\n#endif\n*/\n#endif\ny", "     \n  \n      \n  \n      \ny");
	mask_is("#if 1\nx\n#else\nz {\n#endif\ny", "     \nx\n     \n   \n      \ny");
	mask_is("#if 0x1\nx\n#endif", "       \nx\n      ");
	mask_is("#ifdef A\nx\n#else\nz\n#endif\ny", "        \nx\n     \nz\n      \ny");
	mask_is("#error don't\ny", "            \ny");
	mask_is("", "");
	(void)state;
}

static void t_not_understood(void **state)
{
	static const struct {
		const char *text;
		const char *where;
	} bad[] = {
		{ "a\n/* b", "t.c:2" },	    { "x = \"a\n\";", "t.c:1" },
		{ "f() {\n", "t.c:2" },	    { "}\n", "t.c:1" },
		{ "#if A\nx\n", "t.c:3" },  { "#endif\n", "t.c:1" },
		{ "#else\n", "t.c:1" },	    { "#if 0\n/* x\n#endif\n", "t.c:1" },
		{ "x = 'a\n", "t.c:1" },
	};
	struct pk_source s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		memset(&err, 0, sizeof(err));
		assert_true(pk_lex(&s, "t.c", PK_LANG_C, bad[i].text, strlen(bad[i].text), &err) < 0);
		assert_int_equal(err.id, PK_E102_NOT_UNDERSTOOD);
		if (!strstr(err.text, bad[i].where))
			fail_msg("`%s`: %s", bad[i].text, err.text);
	}
	assert_true(pk_lex(&s, "t.c", PK_LANG_C, "a\0b", 3, &err) < 0);
	assert_int_equal(err.id, PK_E102_NOT_UNDERSTOOD);
	(void)state;
}

/* arms of an #ifdef that each open a brace are one brace */
static void t_arms(void **state)
{
	struct pk_source s;
	struct pk_function f;

	lex(&s, "int f(int a)\n{\n#ifdef A\n\tif (a) {\n#else\n\tif (!a) {\n#endif\n\t\ta++;\n\t}\n"
		"\treturn a;\n}\nint g(void)\n{\n\treturn 1;\n}\n");
	assert_int_equal(pk_find_function(&s, "f", &f, &err), 0);
	assert_int_equal(s.tok[f.close].line, 11);
	assert_int_equal(pk_find_function(&s, "g", &f, &err), 0);
	pk_source_free(&s);

	lex(&s, "int f(int a)\n{\n#ifdef A\n\treturn 1;\n}\n#else\n\treturn a;\n}\n#endif\n");
	assert_true(pk_find_function(&s, "f", &f, &err) < 0);
	assert_int_equal(err.id, PK_E105_BODY_SHAPE);
	pk_source_free(&s);
	(void)state;
}

/* extern "C" around a file, in arms of their own: what is in it is at file level */
static void t_linkage(void **state)
{
	static const char *const bad[] = {
		"extern \"C\" {\nint a;\n",
		"extern \"C\" {\nint f(void) { return 1; }\n}\n}\n",
		"void f(void)\n{\n\textern \"C\" {\n\t}\n",
	};
	struct pk_source s;
	struct pk_function f;

	lex(&s, "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(int a)\n{\n\tif (a) {\n\t}\n"
		"\treturn a;\n}\n#ifdef __cplusplus\n} // extern \"C\"\n#endif\n");
	assert_int_equal(pk_find_function(&s, "f", &f, &err), 0);
	assert_int_equal(s.tok[f.close].line, 9);
	assert_int_equal(s.tok[f.open].depth, 0);
	assert_true(pk_token_is(&s, f.decl.first, "int"));
	pk_source_free(&s);
	lex(&s, "extern \"C\" {\nint f(int a) { return a; }\n}\nint g(int a) { return a; }\n");
	assert_int_equal(pk_find_function(&s, "f", &f, &err), 0);
	assert_true(pk_token_is(&s, f.decl.first, "int"));
	assert_int_equal(pk_find_function(&s, "g", &f, &err), 0);
	assert_true(pk_token_is(&s, f.decl.first, "int"));
	pk_source_free(&s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_true(pk_lex(&s, "t.c", PK_LANG_C, bad[i], strlen(bad[i]), &err) < 0);
		assert_int_equal(err.id, PK_E102_NOT_UNDERSTOOD);
	}
	(void)state;
}

/* ---- locate ---- */

static const char code[] =
	"/* f(x); */\n"
	"int f(int a);\n"
	"static const char *s = \"f(1);\";\n"
	"#if 0\n"
	"int f(int a) { g(1); }\n"
	"#endif\n"
	"#define CALL f(2);\n"
	"\n"
	"/* what f does */\n"
	"/* and more */\n"
	"static int __must_check\n"
	"f(int a) /* a comment */ __must_hold(x)\n"
	"{\n"
	"\tg ( 1 ) ; /* g(1); */\n"
	"\tx->y = z[1] + x->y;\n"
	"\tif (a) { h(1, (2, 3), 4); } else { h(5); }\n"
	"\treturn a;\n"
	"}\n";

static void t_find(void **state)
{
	struct pk_source s;
	struct pk_function f;
	struct pk_match m;

	lex(&s, code);
	assert_int_equal(pk_find_function(&s, "f", &f, &err), 0);
	assert_int_equal(s.tok[f.open].line, 13);
	assert_true(pk_token_is(&s, f.decl.first, "static"));
	assert_int_equal(f.params.end - f.params.first, 2);

	assert_int_equal(pk_count(&s, NULL, "g(1);", &m, &err), 1);
	assert_int_equal(s.tok[m.span.first].line, 14);
	assert_int_equal(pk_count(&s, NULL, "f(2)", NULL, &err), 0);
	assert_int_equal(pk_count(&s, NULL, "g(1", NULL, &err), 1);
	/* tokens, not letters */
	assert_int_equal(pk_count(&s, NULL, "x - > y", NULL, &err), 0);
	assert_int_equal(pk_count(&s, NULL, "x->y", NULL, &err), 2);
	/* a capture is the same token each time */
	assert_int_equal(pk_count(&s, NULL, "$a -> $b = ... + $a -> $b ;", &m, &err), 1);
	assert_int_equal(m.ncap, 2);
	assert_true(pk_token_is(&s, m.cap_tok[0], "x"));
	assert_int_equal(pk_count(&s, NULL, "$a -> $a", NULL, &err), 0);
	/* ... stays inside its brackets */
	assert_int_equal(pk_count(&s, NULL, "h(..., 4)", NULL, &err), 1);
	assert_int_equal(pk_count(&s, NULL, "h(...)", NULL, &err), 2);
	assert_int_equal(pk_count(&s, NULL, "h(... 5)", NULL, &err), 1);
	assert_int_equal(pk_count(&s, NULL, "if (...) { ... } else { ... }", NULL, &err), 1);
	assert_int_equal(pk_count(&s, NULL, "h(..., 3)", NULL, &err), 0);

	assert_true(pk_find(&s, &f.body, "h(9)", "function f", &m, &err) < 0);
	assert_int_equal(err.id, PK_E103_ANCHOR_NOT_FOUND);
	assert_true(pk_find(&s, &f.body, "h(...)", "function f", &m, &err) < 0);
	assert_int_equal(err.id, PK_E104_ANCHOR_AMBIGUOUS);
	assert_non_null(strstr(err.text, "t.c:16"));
	assert_true(pk_find_function(&s, "g", &f, &err) < 0);
	assert_int_equal(err.id, PK_E103_ANCHOR_NOT_FOUND);
	assert_true(pk_find(&s, NULL, "\"open", "x", &m, &err) < 0);
	pk_source_free(&s);

	lex(&s, "int f(void) { return 1; }\nint f(void) { return 2; }\n"
		"struct a { int b; };\nstruct a { int c; };\nstruct d *e;\n");
	assert_true(pk_find_function(&s, "f", &f, &err) < 0);
	assert_int_equal(err.id, PK_E104_ANCHOR_AMBIGUOUS);
	assert_true(pk_find_struct(&s, "a", &m.span, &err) < 0);
	assert_int_equal(err.id, PK_E104_ANCHOR_AMBIGUOUS);
	assert_true(pk_find_struct(&s, "d", &m.span, &err) < 0);
	assert_int_equal(err.id, PK_E103_ANCHOR_NOT_FOUND);
	pk_source_free(&s);
	(void)state;
}

static void t_define(void **state)
{
	static const struct {
		const char *name, *value;	/* NULL: refused, and found at line... */
		unsigned int line;
	} macros[] = {
		{ "A", "0x1" }, { "AB", "( 0x2 )" }, { "STR", "\"x y\"" }, { "NONE", "" },
		{ "F", "( x ) ( ( x ) + 1 )" }, { "LONG", "1 + 2" }, { "B", NULL, 1 },
		{ "TWICE", NULL, 10 }, { "DEAD", NULL, 1 }, { "NOTE", NULL, 1 },
	};
	struct pk_source s;

	lex(&s, "#define A 0x1\n#define AB\t(0x2) // two\n# define STR \"x y\" /* s */\n"
		"#define NONE\n#define F(x) ((x) + 1)\n#undef F\n#define LONG 1 \\\n\t+ 2\n"
		"/* #define NOTE 1 */\n#define TWICE 1\n#define TWICE 2\n#if 0\n#define DEAD 1\n"
		"#endif\nint x; // #define NOTE 1\n#ifdef B\n#endif\n");
	for (size_t i = 0; i < sizeof(macros) / sizeof(*macros); i++) {
		struct pk_buf v = { 0 };
		char where[16];
		int r = pk_find_define(&s, macros[i].name, &v, &err);

		if (macros[i].value) {
			assert_int_equal(r, 0);
			assert_string_equal(v.data, macros[i].value);
		} else {
			snprintf(where, sizeof(where), "t.c:%u:", macros[i].line);
			assert_true(r < 0);
			assert_non_null(strstr(err.text, where));
		}
		pk_buf_free(&v);
	}
	pk_source_free(&s);
	(void)state;
}

static void t_include(void **state)
{
	struct pk_source s;
	size_t tok;

	lex(&s, "#include \"a.h\"\n/* #include \"b.h\" */\n# include <c.h> /* x */\n"
		"#if 0\n#include \"d.h\"\n#endif\n#include \"e.h\"\n#include \"e.h\"\n#include \"a.h2\"\n");
	assert_int_equal(pk_find_include(&s, "\"a.h\"", &tok, &err), 0);
	assert_int_equal(s.tok[tok].line, 1);
	assert_int_equal(pk_find_include(&s, "<c.h>", &tok, &err), 0);
	assert_true(pk_find_include(&s, "\"b.h\"", &tok, &err) < 0);
	assert_int_equal(err.id, PK_E103_ANCHOR_NOT_FOUND);
	assert_true(pk_find_include(&s, "\"d.h\"", &tok, &err) < 0);
	assert_true(pk_find_include(&s, "\"e.h\"", &tok, &err) < 0);
	assert_int_equal(err.id, PK_E104_ANCHOR_AMBIGUOUS);
	pk_source_free(&s);
	(void)state;
}

/* ---- edits ---- */

enum where { FIRST, BEFORE_FN, AFTER_X, BEFORE_X, REPLACE_X };

struct shape {
	enum where where;
	const char *text;	/* a source with a function f, statement `x;` */
	const char *result;	/* NULL: refused with id */
	enum pk_id id;
};

#define NEW "\tnew();\n"

static int edit(const struct shape *c, struct pk_buf *out)
{
	struct pk_edits es = { 0 };
	struct pk_source s;
	struct pk_function f;
	struct pk_match m;
	int r;

	r = pk_lex(&s, "t.c", PK_LANG_C, c->text, strlen(c->text), &err);
	if (r)
		return r;
	r = pk_find_function(&s, "f", &f, &err);
	if (!r && c->where >= AFTER_X)
		r = pk_find(&s, &f.body, "x;", "function f", &m, &err);
	if (!r)
		switch (c->where) {
		case FIRST:
			r = pk_edit_first(&es, &s, &f, NEW, &err);
			break;
		case BEFORE_FN:
			r = pk_edit_before_function(&es, &s, &f, "int g;\n", &err);
			break;
		case AFTER_X:
			r = pk_edit_after_line(&es, &s, m.span.end - 1, NEW, &err);
			break;
		case BEFORE_X:
			r = pk_edit_before_line(&es, &s, m.span.first, NEW, &err);
			break;
		case REPLACE_X:
			r = pk_edit_replace(&es, &s, &m.span, "y;", &err);
			break;
		}
	if (!r)
		r = pk_render(&es, &s, out, &err);
	pk_edits_free(&es);
	pk_source_free(&s);
	return r;
}

static const struct shape shapes[] = {
	{ FIRST, "void f(void)\n{\n\tint a;\n\n\tx;\n}\n",
	  "void f(void)\n{\n\tint a;\n\n" NEW "\n\tx;\n}\n", 0 },
	{ FIRST, "void f(void) {\n\tint a;\n\n\n\tx;\n}\n",
	  "void f(void) {\n\tint a;\n\n" NEW "\n\n\tx;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n\tx;\n}\n", "void f(void)\n{\n" NEW "\n\tx;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n}\n", "void f(void)\n{\n" NEW "}\n", 0 },
	{ FIRST, "void f(void)\n{\n\tint a; /* why\n\t */\n\tx;\n}\n",
	  "void f(void)\n{\n\tint a; /* why\n\t */\n\n" NEW "\n\tx;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n\tint a = 1,\n\t\tb[2] = { 1, 2 };\n\tu8 *p = g(a);\n"
		 "\tstruct y z;\n\tDECLARE_BITMAP(m, 9);\n\tfoo_t *q, *r;\n\n\tp = q;\n}\n",
	  "void f(void)\n{\n\tint a = 1,\n\t\tb[2] = { 1, 2 };\n\tu8 *p = g(a);\n"
	  "\tstruct y z;\n\tDECLARE_BITMAP(m, 9);\n\tfoo_t *q, *r;\n\n" NEW "\n\tp = q;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n\treturn g;\n}\n", "void f(void)\n{\n" NEW "\n\treturn g;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\nout:\n\tgoto out;\n}\n",
	  "void f(void)\n{\n" NEW "\nout:\n\tgoto out;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n\tint a;\n#ifdef B\n\tint b;\n#endif\n\n\tx;\n}\n",
	  "void f(void)\n{\n\tint a;\n#ifdef B\n\tint b;\n#endif\n\n" NEW "\n\tx;\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n\tint a;\n#ifdef B\n\tx;\n#endif\n}\n",
	  "void f(void)\n{\n\tint a;\n\n" NEW "\n#ifdef B\n\tx;\n#endif\n}\n", 0 },
	{ FIRST, "void f(void)\n{\n#ifdef B\n\tint a;\n\tx;\n#endif\n}\n", NULL, PK_E105_BODY_SHAPE },
	{ FIRST, "void f(void) { x; }\n", NULL, PK_E107_LINE_SHARED },
	{ FIRST, "void f(void)\n{\n\tint a; x;\n}\n", NULL, PK_E107_LINE_SHARED },
	{ FIRST, "void f(void)\n{ int a;\n\tx;\n}\n",
	  "void f(void)\n{ int a;\n\n" NEW "\n\tx;\n}\n", 0 },
	/* line ends, and the end of the file */
	{ FIRST, "void f(void)\r\n{\r\n\tint a;\r\n\r\n\tx;\r\n}\r\n",
	  "void f(void)\r\n{\r\n\tint a;\r\n\r\n\tnew();\r\n\r\n\tx;\r\n}\r\n", 0 },
	{ FIRST, "void f(void)\n{\n\tx;\n}", "void f(void)\n{\n" NEW "\n\tx;\n}", 0 },
	{ AFTER_X, "void f(void)\r\n{\r\n\tx;\r\n}", "void f(void)\r\n{\r\n\tx;\r\n\tnew();\r\n}", 0 },

	{ AFTER_X, "void f(void)\n{\n\tx; // why\n}\n", "void f(void)\n{\n\tx; // why\n" NEW "}\n", 0 },
	{ AFTER_X, "void f(void)\n{\n\tx; y;\n}\n", NULL, PK_E107_LINE_SHARED },
	{ AFTER_X, "void f(void)\n{\n\tx\n\t;\n}\n", "void f(void)\n{\n\tx\n\t;\n" NEW "}\n", 0 },
	{ BEFORE_X, "void f(void)\n{\n\tx;\n}\n", "void f(void)\n{\n" NEW "\tx;\n}\n", 0 },
	{ BEFORE_X, "void f(void)\n{\n\ty; x;\n}\n", NULL, PK_E107_LINE_SHARED },
	{ BEFORE_X, "void f(void)\n{\n\t/* x; */\n}\n", NULL, PK_E103_ANCHOR_NOT_FOUND },
	{ BEFORE_X, "void f(void)\n{\n\tg(\"x;\");\n}\n", NULL, PK_E103_ANCHOR_NOT_FOUND },
	{ BEFORE_X, "void f(void)\n{\n#if 0\n\tx;\n#endif\n}\n", NULL, PK_E103_ANCHOR_NOT_FOUND },
	{ BEFORE_X, "void f(void)\n{\n\tx;\n\tx;\n}\n", NULL, PK_E104_ANCHOR_AMBIGUOUS },
	{ REPLACE_X, "void f(void)\n{\n\ta; x /* y */ ; b;\n}\n", "void f(void)\n{\n\ta; y; b;\n}\n", 0 },

	{ BEFORE_FN, "int a;\n\n/*\n * about f\n */\nstatic\nint f(void)\n{\n}\n",
	  "int a;\n\nint g;\n/*\n * about f\n */\nstatic\nint f(void)\n{\n}\n", 0 },
	{ BEFORE_FN, "/* about the file */\n\nint f(void)\n{\n}\n",
	  "/* about the file */\n\nint g;\nint f(void)\n{\n}\n", 0 },
	{ BEFORE_FN, "int f(void)\n{\n}\n", "int g;\nint f(void)\n{\n}\n", 0 },
	{ BEFORE_FN, "int a; int f(void)\n{\n}\n", NULL, PK_E107_LINE_SHARED },
	{ BEFORE_FN, "int a; /* about\n f */\nint f(void)\n{\n}\n", NULL, PK_E107_LINE_SHARED },
	{ BEFORE_FN, "int f(void);\n#define X\nint f(void)\n{\n}\n",
	  "int f(void);\n#define X\nint g;\nint f(void)\n{\n}\n", 0 },
};

static void t_edits(void **state)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		const struct shape *c = &shapes[i];
		struct pk_buf out = { 0 };
		int r;

		memset(&err, 0, sizeof(err));
		r = edit(c, &out);
		if (c->result && r)
			fail_msg("shape %zu: %s: %s", i, pk_id_name(err.id), err.text);
		if (c->result && strcmp(out.data, c->result))
			fail_msg("shape %zu: got\n%s\nnot\n%s", i, out.data, c->result);
		if (!c->result && (!r || err.id != c->id))
			fail_msg("shape %zu: %s, expected %s", i, r ? pk_id_name(err.id) : "accepted",
				 pk_id_name(c->id));
		if (!c->result) {
			assert_true(strlen(pk_id_next(err.id)) > 0);
			assert_memory_equal(err.text, "t.c:", 4);
		}
		pk_buf_free(&out);
	}
	(void)state;
}

static void t_overlap(void **state)
{
	struct pk_edits es = { 0 };
	struct pk_buf out = { 0 };
	struct pk_source s;
	struct pk_span one = { 0, 2 }, two = { 1, 3 };

	lex(&s, "a b c\n");
	assert_int_equal(pk_edit_replace(&es, &s, &one, "x", &err), 0);
	assert_int_equal(pk_edit_replace(&es, &s, &two, "y", &err), 0);
	assert_true(pk_render(&es, &s, &out, &err) < 0);
	assert_int_equal(err.id, PK_E108_EDITS_OVERLAP);
	pk_edits_free(&es);
	/* two insertions at one place keep their order */
	assert_int_equal(pk_edit_after_line(&es, &s, 2, "1\n", &err), 0);
	assert_int_equal(pk_edit_after_line(&es, &s, 2, "2\n", &err), 0);
	assert_int_equal(pk_render(&es, &s, &out, &err), 0);
	assert_string_equal(out.data, "a b c\n1\n2\n");
	pk_buf_free(&out);
	pk_edits_free(&es);
	pk_source_free(&s);

	/* a file without a final newline stays so */
	assert_int_equal(pk_lex(&s, "Makefile", PK_LANG_MAKE, "a := b # c\r\nd := e", 18, &err), 0);
	assert_int_equal(s.ntok, 6);
	assert_int_equal(pk_edit_after_line(&es, &s, 5, "f\n", &err), 0);
	assert_int_equal(pk_render(&es, &s, &out, &err), 0);
	assert_string_equal(out.data, "a := b # c\r\nd := e\r\nf");
	pk_buf_free(&out);
	pk_edits_free(&es);
	pk_source_free(&s);
	(void)state;
}

/* ---- diff ---- */

static void t_diff_form(void **state)
{
	struct pk_buf out = { 0 };

	assert_int_equal(pk_diff(&out, "f", "a\n", 2, "a\n", 2), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(pk_diff(&out, "d/f", "1\n2\n3\n4\n5\n6\n7", 13, "1\n2\n3\n4\nX\n5\n6\n7", 15),
			 0);
	assert_string_equal(out.data, "diff --git a/d/f b/d/f\n--- a/d/f\n+++ b/d/f\n@@ -2,6 +2,7 @@\n"
				      " 2\n 3\n 4\n+X\n 5\n 6\n 7\n\\ No newline at end of file\n");
	pk_buf_free(&out);
	assert_int_equal(pk_diff(&out, "f", "1\n2\n", 4, "1\n2", 3), 0);
	assert_string_equal(out.data, "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n"
				      " 1\n-2\n+2\n\\ No newline at end of file\n");
	pk_buf_free(&out);
	assert_int_equal(pk_diff(&out, "f", NULL, 0, "a\nb\n", 4), 0);
	assert_string_equal(out.data, "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n"
				      "+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
	pk_buf_free(&out);
	(void)state;
}

static void put(const char *dir, const char *name, const char *data, size_t len)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static unsigned int rnd(unsigned int n)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned int)(x % n);
}

/* git makes the new text from the old and our diff, for random texts with many equal lines */
static void t_diff_applies(void **state)
{
	char dir[] = "/tmp/t_patchkit.XXXXXX", cmd[600], path[300];

	if (system("git --version >/dev/null 2>&1")) {
		print_message("git is missing: diffs are not tried\n");
		skip();
	}
	assert_non_null(mkdtemp(dir));
	for (int round = 0; round < 60; round++) {
		struct pk_buf a = { 0 }, b = { 0 }, d = { 0 };
		unsigned int lines = 1 + rnd(60);
		char *now;
		size_t len;

		for (unsigned int i = 0; i < lines; i++) {
			char line[20];

			snprintf(line, sizeof(line), "%s%u\n", rnd(4) ? "\t" : "", rnd(rnd(3) ? 5 : 999));
			if (rnd(8))
				pk_buf_puts(&a, line);
			if (!rnd(8))
				pk_buf_printf(&b, "new %u\n", i);
			if (rnd(8))
				pk_buf_puts(&b, line);
		}
		pk_buf_puts(&a, rnd(3) ? "end\n" : "end");
		pk_buf_puts(&b, rnd(3) ? "end\n" : "end");
		assert_int_equal(pk_diff(&d, "f", a.data, a.len, b.data, b.len), 0);
		put(dir, "f", a.data, a.len);
		put(dir, "d", d.data ? d.data : "", d.len);
		snprintf(cmd, sizeof(cmd), "cd %s && GIT_CEILING_DIRECTORIES=/tmp git apply d", dir);
		if (d.len)
			assert_int_equal(system(cmd), 0);
		snprintf(path, sizeof(path), "%s/f", dir);
		assert_int_equal(pk_read_file(path, &now, &len, NULL), 0);
		assert_string_equal(now, b.data);
		free(now);
		pk_buf_free(&a);
		pk_buf_free(&b);
		pk_buf_free(&d);
	}
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
	(void)state;
}

/* ---- sha256: examples of FIPS 180 ---- */

static void t_sha256(void **state)
{
	char hex[65], *a;

	pk_sha256("", 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	pk_sha256("abc", 3, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	pk_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
	assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	a = malloc(1000000);
	assert_non_null(a);
	memset(a, 'a', 1000000);
	pk_sha256(a, 1000000, hex);
	free(a);
	assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	(void)state;
}

static void t_ids(void **state)
{
	for (int i = PK_OK + 1; i < PK_NR_IDS; i++) {
		assert_memory_equal(pk_id_name(i), "PK-E1", 5);
		assert_true(strlen(pk_id_next(i)) > 5);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_mask),
		cmocka_unit_test(t_not_understood),
		cmocka_unit_test(t_arms),
		cmocka_unit_test(t_linkage),
		cmocka_unit_test(t_find),
		cmocka_unit_test(t_define),
		cmocka_unit_test(t_include),
		cmocka_unit_test(t_edits),
		cmocka_unit_test(t_overlap),
		cmocka_unit_test(t_diff_form),
		cmocka_unit_test(t_diff_applies),
		cmocka_unit_test(t_sha256),
		cmocka_unit_test(t_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
