// SPDX-License-Identifier: MIT
/* refuse.c - what gdspatch refuses and why: the ids and next steps in one table. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gdspatch.h"

static const struct {
	const char *name, *next;
} ids[GP_NR_IDS] = {
	[GP_OK] = { "ok", "" },
	[GP_NOT_A_TREE] = { "E-NOT-A-TREE",
			    "name the top folder of the open GPU kernel modules' source" },
	[GP_VERSION_UNPARSED] = { "E-VERSION-UNPARSED",
				  "restore version.mk from the release that the tree is of" },
	[GP_TOO_OLD] = { "E-TOO-OLD",
			 "use release 535 or later: this one has no peer access through BAR1 to turn on" },
	[GP_FUNC_MISSING] = { "E-FUNC-MISSING",
			      "start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_FUNC_DUPLICATE] = { "E-FUNC-DUPLICATE",
				"start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_DEFAULT_COUNT] = { "E-DEFAULT-COUNT",
			       "start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_KEY_MISMATCH] = { "E-KEY-MISMATCH",
			      "start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_HAL_COUNT] = { "E-HAL-COUNT",
			   "start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_HAL_NO_ELSE] = { "E-HAL-NO-ELSE",
			     "start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_STUB_UNEXPECTED] = { "E-STUB-UNEXPECTED",
				 "start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_NO_GH100_PROTO] = { "E-NO-GH100-PROTO",
				"start from an unpatched release; if it is one, report it with `gdspatch inspect --json`" },
	[GP_LAYOUT_UNKNOWN] = { "E-LAYOUT-UNKNOWN",
				"report it with the output of `gdspatch inspect --json`: nothing is guessed" },
	[GP_MIXED_STATE] = { "E-MIXED-STATE",
			     "start from an unpatched release: only some sites of a set are edited" },
	[GP_FOREIGN] = { "E-FOREIGN",
			 "undo the other patch, or take it over with `gdspatch apply --adopt --set SET TREE`" },
	[GP_HASH_CHANGED] = { "E-HASH-CHANGED",
			      "undo that change, or restore the tree (`git checkout -- src` in a clone)" },
	[GP_JOURNAL] = { "E-JOURNAL",
			 "a run was interrupted and files were changed since: restore them from their source" },
	[GP_READONLY] = { "E-READONLY", "run as a user who may write there, on a writable mount" },
	[GP_NOTHING_TO_DO] = { "E-NOTHING-TO-DO",
			       "leave the tree as it is; `gdspatch keys` sets registry keys where they help" },
	[GP_SET_UNAVAILABLE] = { "E-SET-UNAVAILABLE",
				 "use release 580 or later, or a fork that also rewrites the aperture code" },
	[GP_OTHER_SET] = { "E-OTHER-SET",
			   "take that back first: `gdspatch revert TREE`, of modules `gdspatch uninstall --kernel V`" },
	[GP_NOT_APPLIED] = { "E-NOT-APPLIED",
			     "nothing to revert; a tree patched by other means: `git checkout -- src` in a clone" },
	[GP_BUSY] = { "E-BUSY", "wait for the other run to end" },
	[GP_NOT_UNDERSTOOD] = { "E-NOT-UNDERSTOOD",
				"the source is damaged or uses a form that this tool does not know: report it" },
	[GP_NO_MODULE] = { "E-NO-MODULE", "build first: `gdspatch build --kernel V TREE`" },
	[GP_MODULE_TWICE] = { "E-MODULE-TWICE", "remove the driver package that is not in use" },
	[GP_WRONG_KERNEL] = { "E-WRONG-KERNEL",
			      "build for that kernel: `gdspatch build --kernel V TREE`" },
	[GP_NO_KEY] = { "E-NO-KEY",
			"make a machine owner key and enrol it (`mokutil --import`), or turn Secure Boot off" },
	[GP_TOOL_FAILED] = { "E-TOOL-FAILED",
			     "correct what it says above, then run the same again" },
	[GP_DRIVER_UNKNOWN] = { "E-DRIVER-UNKNOWN",
				"name it with --driver V; what the keys mean is known for releases 535 to 595" },
	[GP_KEYS_ELSEWHERE] = { "E-KEYS-ELSEWHERE",
				"move that option away: of two such lines the driver takes only one" },
	[GP_NO_PLACE] = { "E-NO-PLACE",
			  "run `gdspatch hook run` and `gdscheck` by hand after each update of the kernel" },
	[GP_SYSTEM] = { "E-SYSTEM", "see the system's error, correct it, run again" },
};

const char *gp_id_name(enum gp_id id)
{
	return ids[id].name;
}

const char *gp_id_next(enum gp_id id)
{
	return ids[id].next;
}

int gp_refuse(struct gp_error *err, enum gp_id id, const char *file, unsigned int line,
	      const char *function, const char *expected, const char *found, ...)
{
	va_list ap;

	*err = (struct gp_error){ .id = id, .line = line };
	snprintf(err->file, sizeof(err->file), "%s", file);
	snprintf(err->function, sizeof(err->function), "%s", function);
	snprintf(err->expected, sizeof(err->expected), "%s", expected);
	va_start(ap, found);
	vsnprintf(err->found, sizeof(err->found), found, ap);
	va_end(ap);
	return -EBADMSG;
}

int gp_system(struct gp_error *err, int negative_errno, const char *what, const char *path)
{
	bool denied = negative_errno == -EROFS || negative_errno == -EACCES ||
		      negative_errno == -EPERM;

	gp_refuse(err, denied ? GP_READONLY : GP_SYSTEM, path, 0, "", "", "cannot %s: %s (%s)",
		  what, strerror(-negative_errno), strerrorname_np(-negative_errno));
	return negative_errno;
}

int gp_from_pk(struct gp_error *err, int r, const struct pk_error *pk, const char *file,
	       const char *function)
{
	static const enum gp_id of[PK_NR_IDS] = {
		[PK_E101_NO_FILE] = GP_NOT_A_TREE,
		[PK_E103_ANCHOR_NOT_FOUND] = GP_FUNC_MISSING,
		[PK_E104_ANCHOR_AMBIGUOUS] = GP_FUNC_DUPLICATE,
		[PK_E112_CHANGED_SINCE] = GP_HASH_CHANGED,
		[PK_E113_OTHER_SET] = GP_OTHER_SET,
		[PK_E114_JOURNAL] = GP_JOURNAL,
		[PK_E115_NOT_APPLIED] = GP_NOT_APPLIED,
		[PK_E118_BUSY] = GP_BUSY,
	};
	enum gp_id id = of[pk->id] ? of[pk->id] : GP_NOT_UNDERSTOOD;

	if (pk->id == PK_E190_SYSTEM)
		id = r == -EROFS || r == -EACCES || r == -EPERM ? GP_READONLY : GP_SYSTEM;
	gp_refuse(err, id, file, 0, function, "", "%s", pk->text);
	return r;
}

void gp_error_text(const struct gp_error *err, struct pk_buf *out)
{
	int r;

	r = pk_buf_printf(out, "%s: %s", gp_id_name(err->id), err->file);
	if (err->line)
		r = r ? r : pk_buf_printf(out, ":%u", err->line);
	if (*err->function)
		r = r ? r : pk_buf_printf(out, ": %s", err->function);
	if (*err->expected)
		r = r ? r
		      : pk_buf_printf(out, ": expected %s, found %s", err->expected, err->found);
	else
		r = r ? r : pk_buf_printf(out, ": %s", err->found);
	if (!r)
		pk_buf_printf(out, "; %s", gp_id_next(err->id));
}
