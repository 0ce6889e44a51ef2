/* SPDX-License-Identifier: MIT */
/* modprobe.h - the driver's options in modprobe.d, and which release they are for. */
#ifndef GDSPATCH_MODPROBE_H
#define GDSPATCH_MODPROBE_H

#include <stdbool.h>
#include <stddef.h>

#define MP_FILE	 "etc/modprobe.d/opengds-nvidia.conf"
#define MP_MARK	 "# OpenGDS: registry keys, written by gdspatch keys"
#define MP_NAMES 4

/* an option of the driver in a file of modprobe.d */
struct mp_option {
	const char *file; /* below the root */
	unsigned int line;
	bool ours; /* our file */
	const char *text; /* "NVreg_RegistryDwords=..." and what follows, of one line */
};

/* calls `each` with every line of options for the driver; stops when it is not 0, returns that */
int mp_options(const char *root, int (*each)(void *arg, const struct mp_option *o), void *arg);

/* the releases that are installed below root, "555.58.02 580.95.05"; their number */
int mp_installed(const char *root, char *out, size_t len);

/* names that the driver's module has below root: "nvidia" when there is none; their number */
int mp_module_names(const char *root, char names[MP_NAMES][64]);

/* the value of a key in a list "A=1;B=0x2", names compared without case; false: not there */
bool mp_key(const char *text, const char *key, unsigned long *value);

#endif /* GDSPATCH_MODPROBE_H */
