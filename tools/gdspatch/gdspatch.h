/* SPDX-License-Identifier: MIT */
/*
 * gdspatch.h - what the parts of gdspatch know of each other.
 *
 * Functions return 0 or a negative errno; a refusal is -EBADMSG with gp_error filled. All that
 * changes a file goes through patchkit's table of system calls, all programs through gp_exec.
 */
#ifndef GDSPATCH_H
#define GDSPATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "patchkit.h"

enum gp_exit { GP_EXIT_OK, GP_EXIT_SYSTEM, GP_EXIT_USAGE, GP_EXIT_REFUSED };

/* ---- refusals: refuse.c ---- */

enum gp_id {
	GP_OK,
	GP_NOT_A_TREE,
	GP_VERSION_UNPARSED,
	GP_TOO_OLD,
	GP_FUNC_MISSING,
	GP_FUNC_DUPLICATE,
	GP_DEFAULT_COUNT,
	GP_KEY_MISMATCH,
	GP_HAL_COUNT,
	GP_HAL_NO_ELSE,
	GP_STUB_UNEXPECTED,
	GP_NO_GH100_PROTO,
	GP_LAYOUT_UNKNOWN,
	GP_MIXED_STATE,
	GP_FOREIGN,
	GP_HASH_CHANGED,
	GP_JOURNAL,
	GP_READONLY,
	GP_NOTHING_TO_DO,
	GP_SET_UNAVAILABLE,
	GP_OTHER_SET,
	GP_NOT_APPLIED,
	GP_BUSY,
	GP_NOT_UNDERSTOOD,
	GP_NO_MODULE,
	GP_MODULE_TWICE,
	GP_WRONG_KERNEL,
	GP_NO_KEY,
	GP_TOOL_FAILED,
	GP_DRIVER_UNKNOWN,
	GP_KEYS_ELSEWHERE,
	GP_NO_PLACE,
	GP_SYSTEM,
	GP_NR_IDS
};

struct gp_error {
	enum gp_id id;
	char file[256]; /* below the tree, or a path */
	unsigned int line; /* 0: none */
	char function[80]; /* function, field or macro; "" */
	char expected[200], found[400];
};

const char *gp_id_name(enum gp_id id); /* "E-HAL-COUNT" */
const char *gp_id_next(enum gp_id id); /* the next step, a sentence */
int gp_refuse(struct gp_error *err, enum gp_id id, const char *file, unsigned int line,
	      const char *function, const char *expected, const char *found, ...)
	__attribute__((format(printf, 7, 8)));
int gp_system(struct gp_error *err, int negative_errno, const char *what, const char *path);
/* a refusal of patchkit about a file, as one of ours */
int gp_from_pk(struct gp_error *err, int r, const struct pk_error *pk, const char *file,
	       const char *function);
/* one line for people, without the name of the program */
void gp_error_text(const struct gp_error *err, struct pk_buf *out);

/* ---- the tree and its sites: tree.c, bif.c, hal.c ---- */

enum gp_file {
	GP_F_VERSION,
	GP_F_BIF,
	GP_F_TABLE,
	GP_F_HEADER,
	GP_F_REGISTRY,
	GP_F_DISPATCH,
	GP_F_P2PAPI,
	GP_NR_FILES
};

extern const char *const gp_path[GP_NR_FILES];

enum gp_site {
	GP_S_OVERRIDE,
	GP_S_FORCE_TYPE,
	GP_S_PCIE_TYPE,
	GP_S_DMA_INFO,
	GP_S_CREATE,
	GP_S_REMOVE,
	GP_S_HAS,
	GP_S_SUPPORTED,
	GP_S_DISPATCH_CREATE,
	GP_S_DISPATCH_REMOVE,
	GP_NR_SITES
};

#define GP_HAL_FIRST GP_S_DMA_INFO
#define GP_NR_HAL    5

extern const char *const gp_site_name[GP_NR_SITES];
enum gp_file gp_site_file(enum gp_site s);

enum gp_site_state {
	GP_ABSENT, /* this layout has no such site */
	GP_PRISTINE,
	GP_EDITED, /* has our form */
};

struct gp_place {
	enum gp_site_state state;
	unsigned int line;
	struct pk_span span; /* tokens that an edit replaces; of dispatch: our block, if any */
	struct pk_function body; /* of dispatch */
	char found[64]; /* what stands there now */
	const char *pristine; /* what replaces an edit again; of HAL sites: see stub */
	const char *edited; /* what an edit puts there */
	char stub[80]; /* of HAL sites: "kbusX_395e98" */
};

/* what of the layout is looked at; texts, so that a report of an unknown one says it all */
struct gp_layout {
	char suffix[GP_NR_HAL][24]; /* of the stubs, by the order of the sites */
	char result[GP_NR_HAL][24]; /* "unsupported", "zero", "false" */
	char form[8]; /* "A": no _FNPTR macros; "B" */
	char order[24]; /* arms of Create/RemoveP2PMapping: "GH100,GP100" */
	char pcie[4]; /* has pcieP2PType: "yes", "no" */
	char type[16]; /* "PCIEP2P" or "BAR1P2P" */
	char static_bar1[16]; /* "GH100", "TU102", "single" */
};

struct gp_row {
	const char *tags; /* of the releases that have it, for people */
	const char *signature;
	bool uvm_bar1; /* its UVM maps peers through BAR1 by itself */
	bool gb20x; /* consumer Blackwell has the working functions already */
};

struct gp_tree {
	char *root;
	char version[32];
	struct pk_source src[GP_NR_FILES];
	struct gp_place site[GP_NR_SITES];
	struct gp_layout layout;
	const struct gp_row *row;
};

/* reads and locates: 0 when every site is found and the layout is a known one */
int gp_tree_read(struct gp_tree *t, const char *root, struct gp_error *err);
/* the same with the plan's `before` in place of its files */
int gp_tree_with(struct gp_tree *t, const struct gp_tree *of, const struct pk_plan *plan,
		 struct gp_error *err);
void gp_tree_free(struct gp_tree *t);
int gp_locate_bif(struct gp_tree *t, struct gp_error *err);
int gp_locate_hal(struct gp_tree *t, struct gp_error *err);
int gp_locate_dispatch(struct gp_tree *t, struct gp_error *err);
/* the next match of a pattern in a span at or after token *at; false: none (or no memory) */
bool gp_next(const struct pk_source *s, const struct pk_span *in, size_t *at, const char *pattern,
	     struct pk_match *m);
/* the text of tokens [first, end), a blank between them */
void gp_text(const struct pk_source *s, size_t first, size_t end, char *out, size_t len);

/* layout.c */
void gp_signature(const struct gp_layout *l, struct pk_buf *out);
const struct gp_row *gp_row_of(const struct gp_layout *l);

/* ---- sets: sets.c ---- */

enum gp_set { GP_NO_SET, GP_BIF, GP_BAR1P2P, GP_GPU_GPU, GP_NR_SETS };

extern const char *const gp_set_name[GP_NR_SETS];
extern const char *const gp_set_enables[GP_NR_SETS], *const gp_set_not[GP_NR_SETS];

enum gp_set gp_set_of(const char *name); /* GP_NO_SET: there is none */
bool gp_in_set(enum gp_set set, enum gp_site s);
/* which set the sites have: GP_NO_SET for pristine; false: some of a set only */
bool gp_set_found(const struct gp_tree *t, enum gp_set *set);
/* can this tree have it? */
int gp_set_available(const struct gp_tree *t, enum gp_set set, struct gp_error *err);
/* the edits of a set on a pristine tree */
int gp_plan(const struct gp_tree *t, enum gp_set set, struct pk_plan *plan, struct gp_error *err);
/* the same plan for a tree that has the edits already: its `before` is made by taking them back */
int gp_plan_back(const struct gp_tree *t, enum gp_set set, struct pk_plan *plan,
		 struct gp_error *err);
void gp_set_key(const char *set, char key[65]);

/* ---- states and commands: patch.c, report.c, explain.c ---- */

enum gp_state { GP_ST_PRISTINE, GP_ST_APPLIED, GP_ST_FOREIGN, GP_ST_MIXED, GP_ST_UNKNOWN };

extern const char *const gp_state_name[];

struct gp_options {
	const char *root; /* of the machine; "" for this one */
	const char *set, *kernel, *driver, *out;
	bool json, dry_run, adopt, remove, show;
};

struct gp_seen {
	enum gp_state state;
	enum gp_set set; /* applied or foreign */
	struct gp_tree tree;
	struct gp_error why; /* unless pristine or applied */
};

int gp_cmd_inspect(const struct gp_options *o, const char *tree);
int gp_cmd_plan(const struct gp_options *o, const char *tree);
int gp_cmd_apply(const struct gp_options *o, const char *tree);
int gp_cmd_verify(const struct gp_options *o, const char *tree);
int gp_cmd_revert(const struct gp_options *o, const char *tree);
int gp_cmd_explain(const struct gp_options *o, const char *site);
int gp_cmd_keys(const struct gp_options *o);
int gp_cmd_build(const struct gp_options *o, const char *tree);
int gp_cmd_install(const struct gp_options *o, const char *tree);
int gp_cmd_uninstall(const struct gp_options *o);
int gp_cmd_hook(const struct gp_options *o, const char *what);
int gp_cmd_result(const struct gp_options *o, const char *tree);
int gp_cmd_result_here(const struct gp_options *o);

/* finds the state of a tree that is open; reads only */
int gp_look(struct gp_seen *seen, const struct pk_tree *pk, const char *root);
void gp_seen_free(struct gp_seen *seen);

void gp_report_seen(const struct gp_seen *seen, const char *root, bool json);
void gp_report_plan(const struct gp_seen *seen, const struct pk_plan *plan, enum gp_set set,
		    const char *diff, bool json);
/* prints the error (on standard error, or as JSON on standard output); gives the exit status */
int gp_fail(const struct gp_error *err, bool json);
void gp_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void gp_print_set(enum gp_set set);
void gp_print_risks(void);
void gp_print_after(void);

/* ---- the machine: machine.c ---- */

/* are all of NVIDIA's GPUs consumer Blackwell? false without a GPU */
bool gp_only_gb20x(const char *root);
/* what regenerates the initramfs below root: a line for people; "" when none is there */
const char *gp_initramfs_tool(const char *root);
/* the release of the kernel that runs; "": not told */
void gp_running_kernel(const char *root, char *out, size_t len);
/* *mine: kernel has modules of ours; other: some other one that has, or "" */
void gp_installed(const char *root, const char *kernel, bool *mine, char *other, size_t len);
/* the sources of the driver in usr/src, by name; reads only, but for the end of a run that died */
void gp_each_source(const char *root,
		    void (*each)(void *arg, const char *path, const struct gp_seen *seen),
		    void *arg);
bool gp_hook_there(const char *root); /* hook.c */

/* ---- programs: run.c ---- */

/* argv[0] by PATH, its output on ours; -ECHILD: it failed (err says how) */
int gp_exec(const char *const *argv, struct gp_error *err);
extern int (*gp_exec_hook)(const char *const *argv, struct gp_error *err); /* tests replace it */

#endif /* GDSPATCH_H */
