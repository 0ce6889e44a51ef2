// SPDX-License-Identifier: MIT
/*
 * nvfs_fuzz_kcov.c - which instrumented places of the module have run, by the kernel's KCOV.
 *
 * Only our modules are instrumented, so the addresses are few; which of them are nvidia-fs's
 * is left to tests/fuzz/coverage, which knows the sizes of its sections. Work items and
 * interrupts are not in it: KCOV keeps what a thread's own calls run.
 *
 * The set is shared by all workers: a killed one loses its last call at most.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcov.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvfs_fuzz.h"

#define WORDS (1UL << 18)	/* of a thread's record: a long request runs a great many blocks */
#define SEEN (1UL << 16)	/* places of all our modules, some 10,000, with room */
#define CALL_BYTES 4		/* of the operand: the kernel notes the address behind the call */
#define SECTIONS "/sys/module/nvidia_fs/sections/"

struct seen {
	_Atomic uint64_t pc;		/* 0: free */
	_Atomic uint64_t call;		/* at which it was seen first, about */
};

static struct {
	atomic_ulong full;		/* records that ran over */
	atomic_ulong lost;		/* places without room */
	struct seen seen[SEEN];
} *all;

/* Before the first worker is made. */
void fuzz_kcov_begin(void)
{
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		t_die("mmap: %s", strerror(errno));
}

/* From now on what the calling thread runs in the kernel is kept; ends with the thread. */
void fuzz_kcov_thread(struct fuzz_kcov *k)
{
	k->fd = t_open("/sys/kernel/debug/kcov", O_RDWR);
	if (ioctl(k->fd, KCOV_INIT_TRACE, WORDS))
		t_die("KCOV_INIT_TRACE: %s", strerror(errno));
	k->area = mmap(NULL, WORDS * sizeof(*k->area), PROT_READ | PROT_WRITE, MAP_SHARED, k->fd,
		       0);
	if (k->area == MAP_FAILED || ioctl(k->fd, KCOV_ENABLE, KCOV_TRACE_PC))
		t_die("KCOV_ENABLE: %s", strerror(errno));
}

static void note(uint64_t pc, unsigned long call)
{
	unsigned long i = pc * 0x9e3779b97f4a7c15ULL >> 48, tries;

	for (tries = 0; tries < SEEN; tries++, i = (i + 1) % SEEN) {
		uint64_t have = atomic_load_explicit(&all->seen[i].pc, memory_order_relaxed);

		if (!have && atomic_compare_exchange_strong(&all->seen[i].pc, &have, pc)) {
			atomic_store(&all->seen[i].call, call);
			return;
		}
		if (have == pc)
			return;
	}
	atomic_fetch_add(&all->lost, 1);
}

/* Take over what has run since the last time. */
void fuzz_kcov_harvest(struct fuzz_kcov *k, unsigned long call)
{
	uint64_t i, n;

	if (k->fd < 0)
		return;
	n = __atomic_load_n(&k->area[0], __ATOMIC_RELAXED);
	if (n + 1 >= WORDS)
		atomic_fetch_add(&all->full, 1);
	for (i = 1; i <= n; i++)
		note(k->area[i], call);
	__atomic_store_n(&k->area[0], 0, __ATOMIC_RELAXED);
}

struct section {
	char name[40];
	uint64_t at;
};

/* Where the module's code lies; how many parts. Read by root the file has the true address. */
static int sections(struct section *s, int most)
{
	DIR *d = opendir(SECTIONS);
	struct dirent *e;
	char path[128];
	int n = 0;
	FILE *f;

	if (!d)
		t_die(SECTIONS ": %s", strerror(errno));
	while (n < most && (e = readdir(d))) {
		if (strncmp(e->d_name, ".text", 5) || strlen(e->d_name) >= sizeof(s->name))
			continue;
		strcpy(s[n].name, e->d_name);
		snprintf(path, sizeof(path), SECTIONS "%.40s", e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%" SCNx64, &s[n].at) == 1 && s[n].at)
			n++;
		if (f)
			fclose(f);
	}
	closedir(d);
	return n;
}

/* One line a place: section, offset as `readelf -r` gives it, call. */
void fuzz_kcov_write(const char *path, unsigned long calls)
{
	struct section s[8];
	FILE *f = fopen(path, "we");
	int n = sections(s, 8), j, in;
	unsigned long i;

	if (!f)
		t_die("%s: %s", path, strerror(errno));
	fprintf(f, "calls %lu\n", calls);
	for (i = 0; i < SEEN; i++) {
		uint64_t pc = atomic_load(&all->seen[i].pc);

		for (j = 0, in = -1; j < n; j++)
			if (s[j].at < pc && (in < 0 || s[j].at > s[in].at))
				in = j;
		if (pc && in >= 0)
			fprintf(f, "%s %016" PRIx64 " %" PRIu64 "\n", s[in].name,
				pc - s[in].at - CALL_BYTES, atomic_load(&all->seen[i].call));
	}
	if (atomic_load(&all->full) || atomic_load(&all->lost))
		fprintf(stderr, "KCOV: %lu records ran over, %lu places had no room\n",
			atomic_load(&all->full), atomic_load(&all->lost));
	if (fclose(f))
		t_die("%s: %s", path, strerror(errno));
}
