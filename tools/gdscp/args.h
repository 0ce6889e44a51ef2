/* SPDX-License-Identifier: MIT */
/* args.h - the command line of gdscp. */
#ifndef GDSCP_ARGS_H
#define GDSCP_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct gdscp_args {
	char **src;		/* into argv */
	unsigned int sources;
	const char *dst;
	int gpu;
	unsigned int slots, slot_mib;
	bool force, preserve, verbose, progress;
	bool no_checksum, verify, require_direct;
	bool help, version;
};

/* 0, or -EINVAL and why. With help or version set nothing else was looked at. */
int gdscp_args_parse(int argc, char **argv, struct gdscp_args *a, char *why, size_t len);

extern const char gdscp_help[];

#endif /* GDSCP_ARGS_H */
