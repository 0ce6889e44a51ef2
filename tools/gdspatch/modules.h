/* SPDX-License-Identifier: MIT */
/* modules.h - built modules, their places below lib/modules, and the form they take there. */
#ifndef GDSPATCH_MODULES_H
#define GDSPATCH_MODULES_H

#include "gdspatch.h"

#define GM_MAX 16

struct gm_module {
	char name[64]; /* "nvidia-uvm" */
	char *built; /* path of the .ko that make left */
	char *place; /* below lib/modules/V: "updates/dkms/nvidia-uvm.ko.xz" */
	const char *suffix; /* "", ".xz", ".zst", ".gz" */
	bool there; /* a module is in that place now */
};

struct gm_modules {
	struct gm_module m[GM_MAX];
	size_t n;
	bool new_folder; /* all go to updates/, which is not there yet */
	char key[512], cert[512], sign_file[512], hash[32]; /* key "": nothing is signed */
};

/* what make left in the tree, and where it goes for a kernel; refuses modules of another kernel */
int gm_find(struct gm_modules *ms, const struct gp_options *o, const char *tree,
	    struct gp_error *err);
void gm_free(struct gm_modules *ms);
/* stripped, signed and compressed: the bytes that go to m->place */
int gm_finish(const struct gm_modules *ms, const struct gm_module *m, char **data, size_t *len,
	      struct gp_error *err);

#endif /* GDSPATCH_MODULES_H */
