/* SPDX-License-Identifier: MIT */
/*
 * nvfs_kinds.h - one of each kind of call of the module, for the tests that make calls fail:
 * everything around the call is done outside of the part that may fail.
 */
#ifndef NVFS_KINDS_H
#define NVFS_KINDS_H

#include <stdbool.h>
#include <stddef.h>

struct nvfs_kind {
	const char *name;
	void (*prepare)(void);
	int (*call)(void);	/* 0 or -errno; the only part that may fail */
	/*
	 * Waits for what call() began. Its result: 0 when all bytes are right, or -errno, which
	 * is r where there is nothing to wait for. call() may be called again then.
	 */
	int (*result)(int r);
	void (*finish)(void);	/* gives back what there is */
};

extern const struct nvfs_kind nvfs_kinds[];
extern const unsigned int nvfs_nkinds;
const struct nvfs_kind *nvfs_kind_find(const char *name);

/*
 * dir: on a file system of a drive with the hook; bytes: of a request, a multiple of 64 KiB.
 * Ends the program when it cannot.
 */
void nvfs_kinds_open(const char *dir, size_t bytes);
void nvfs_kinds_close(void);

/* What exists in the module and in the simulated driver; compared as text. */
#define NVFS_STATE_LEN 256
void nvfs_kinds_state(char text[NVFS_STATE_LEN]);
/* Waits until the state is `want`; false, and it is in now[], when it stays another. */
bool nvfs_kinds_settled(const char *want, char now[NVFS_STATE_LEN]);

#endif /* NVFS_KINDS_H */
