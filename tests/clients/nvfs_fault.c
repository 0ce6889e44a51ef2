// SPDX-License-Identifier: MIT
/*
 * nvfs_fault.c - each place of debugfs nvfs_inject_fault/ fails once in each kind of call.
 *
 *   nvfs_fault --dir D
 *
 * Prints "ok KIND: PLACE" or "BAD KIND: PLACE: ...". A call that passes the place returns the
 * place's code, one that does not works; afterwards nothing is left, and the same call works.
 * Some fail at a later passing, so that what was done before it must be undone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "nvfs_kinds.h"
#include "t_gpu.h"
#include "t_row.h"

#define SIZE (2112 * 1024UL)	/* more than a carrier has, and some segments */
#define FAULTS "/sys/kernel/debug/nvfs_inject_fault"

/* which kinds pass a place; io: all that move bytes */
static const struct place {
	const char *name;
	int io, map, touch;	/* 0: not passed, or what it then returns */
	/*
	 * Passed more than once: by one MAP (1), or by each request of the block layer (2). A
	 * driver may offer such a request once more, so one failure may be made good.
	 */
	int many;
} places[] = {
	{ "dma_error", -EIO, 0, 0, 2 },
	{ "rw_verify_area_error", -EIO, 0, 0, 0 },
	{ "end_fence_get_user_pages_fast_error", 0, -EFAULT, 0, 0 },
	{ "invalid_p2p_get_page", 0, -EINVAL, 0, 0 },
	{ "io_transit_state_fail", -EIO, -EIO, 0, 0 },
	{ "pin_shadow_pages_error", 0, -ENOMEM, 0, 1 },
	{ "vm_insert_page_error", 0, 0, -EFAULT, 0 },
};

static void put(const char *place, const char *file, const char *text)
{
	char path[256];
	int f;

	snprintf(path, sizeof(path), FAULTS "/%s/%s", place, file);
	f = open(path, O_WRONLY | O_CLOEXEC);
	if (f < 0 || write(f, text, strlen(text)) != (ssize_t)strlen(text))
		t_die("%s: %s: has the kernel CONFIG_FAULT_INJECTION_DEBUG_FS?", path,
		      strerror(errno));
	close(f);
}

static int left(const char *place)
{
	char path[256];
	int n = -1;
	FILE *f;

	snprintf(path, sizeof(path), FAULTS "/%s/times", place);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%d", &n) != 1)
		t_die("%s: no number", path);
	fclose(f);
	return n;
}

/* After `pass` passings that do not fail one does, or all do. */
static void arm(const char *place, unsigned int pass, bool all)
{
	char text[16];

	put(place, "verbose", "0");
	snprintf(text, sizeof(text), "%u", pass + 1);
	put(place, "space", text);
	put(place, "times", all ? "-1" : "1");
	put(place, "probability", "100");
}

static void disarm(const char *place)
{
	put(place, "probability", "0");
	put(place, "space", "0");
}

static int wanted(const struct place *p, const struct nvfs_kind *k)
{
	if (!strcmp(k->name, "touch"))
		return p->touch;
	if (!strcmp(k->name, "MAP"))
		return p->map;
	if (strstr(k->name, "READ") || strstr(k->name, "WRITE") || !strcmp(k->name, "RW") ||
	    !strcmp(k->name, "BATCH_IO"))
		return p->io;
	return 0;
}

static void one(const struct place *p, const struct nvfs_kind *k, unsigned int pass, bool all)
{
	char before[NVFS_STATE_LEN], after[NVFS_STATE_LEN], name[160];
	int want = wanted(p, k), got, fired, again = 0;

	snprintf(name, sizeof(name), "%s: %s, passing %u%s", k->name, p->name, pass + 1,
		 all ? " and later ones" : "");
	nvfs_kinds_state(before);
	k->prepare();
	arm(p->name, pass, all);
	got = k->result(k->call());
	fired = all ? got != 0 : !left(p->name);
	disarm(p->name);
	if (got)
		again = k->result(k->call());
	k->finish();
	if (!nvfs_kinds_settled(before, after))
		t_row(false, name, "left behind: was %s, is %s", before, after);
	else
		t_row((got == want || (!got && p->many == 2 && !all)) &&
		      fired == (want != 0) && !again, name,
		      "returned %d (%s), wanted %d; it %s; the same call again: %d", got,
		      nvfs_errname(got), want, fired ? "failed there" : "did not pass there",
		      again);
}

int main(int argc, char **argv)
{
	unsigned int i, j;

	if (argc != 3 || strcmp(argv[1], "--dir")) {
		fputs("usage: nvfs_fault --dir D\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	nvfs_kinds_open(argv[2], SIZE);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct place *p = &places[i];

		for (j = 0; j < nvfs_nkinds; j++)
			one(p, &nvfs_kinds[j], 0, false);
		/* in the middle: what the earlier passings took has to be given back */
		if (p->many == 1)
			one(p, nvfs_kind_find("MAP"), 1, false);
		for (j = 0; p->many == 2 && j < nvfs_nkinds; j++) {
			if (!wanted(p, &nvfs_kinds[j]))
				continue;
			one(p, &nvfs_kinds[j], 0, true);
			one(p, &nvfs_kinds[j], 3, true);
		}
	}
	nvfs_kinds_close();
	return t_rows_bad();
}
