/* SPDX-License-Identifier: MIT */
/*
 * scrub.h - takes names out of what is recorded. The same name becomes the same word everywhere
 * in one recording.
 */
#ifndef GC_SCRUB_H
#define GC_SCRUB_H

#include <stdbool.h>
#include <stddef.h>

#define SCRUB_NAMES 512
#define SCRUB_NAME 128

struct scrub {
	struct {
		const char *kind;	/* "dir", "vol", ... */
		char name[SCRUB_NAME];	/* in any case of letters */
		unsigned int number;
	} known[SCRUB_NAMES];
	unsigned int n;
};

/* The word for a name of a kind, "dir3", into out. */
void scrub_name(struct scrub *s, const char *kind, const char *name, char *out, size_t len);

/*
 * UUIDs, MAC addresses and world wide names in a text, each by others of the same shape. In place:
 * what is put in is no longer than what was there. The new length.
 */
size_t scrub_text(struct scrub *s, char *text, size_t len);

/* A folder's path: components that are not usual become dirN. */
void scrub_path(struct scrub *s, const char *path, char *out, size_t len);

/* What is mounted: names of the kernel stay, others become volN or sourceN. */
void scrub_source(struct scrub *s, const char *source, char *out, size_t len);

/* The serial number in the configuration of a PCI function becomes zeros. */
void scrub_config(unsigned char *config, size_t len);

#endif /* GC_SCRUB_H */
