// SPDX-License-Identifier: MIT
/*
 * nvfs_failnth.c - each kind of call with its first allocation (or copy, or place of ours)
 * failing, then with its second, and so on until none is left: /proc/thread-self/fail-nth.
 *
 *   nvfs_failnth --dir D [--most N] [KIND...]
 *   nvfs_failnth --module FILE [--most N] [--from N|init]
 *
 * Prints "ok KIND: N faults, N calls failed" or "BAD KIND: ...". A call works or fails with
 * an errno, nothing is left behind, and the same call works afterwards. N: so many faults at
 * most, which is said. With --module the call is finit_module, and delete_module follows; "init"
 * begins where the kernel has prepared the module and runs its init function.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nvfs_client.h"
#include "nvfs_kinds.h"
#include "t_gpu.h"
#include "t_row.h"

#define SIZE (192 * 1024UL)

static int nth_fd;

static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_fd, text, len, 0) != len)
		t_die("fail-nth: %s", strerror(errno));
}

/*
 * True when the fault has happened. Reading is a call that can fail as well, but only when
 * the fault had not happened before; so can the write that ends it.
 */
static bool disarm(void)
{
	char text[16] = "";
	bool fired = pread(nth_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);

	if (pwrite(nth_fd, "0", 1, 0) != 1 && pwrite(nth_fd, "0", 1, 0) != 1)
		t_die("fail-nth: %s", strerror(errno));
	return fired;
}

static void add_code(char *codes, size_t len, int err)
{
	const char *name = nvfs_errname(err);

	size_t have = strlen(codes);

	if (!strstr(codes, name))
		snprintf(codes + have, len - have, " %s", name);
}

/* -- one kind of call -- */

static void kind(const struct nvfs_kind *k, unsigned int most)
{
	char before[NVFS_STATE_LEN], after[NVFS_STATE_LEN], codes[160] = "";
	unsigned int n, failed = 0;
	int r, again = 0;
	bool fired = true;

	nvfs_kinds_state(before);
	for (n = 1; n <= most && fired; n++) {
		k->prepare();
		arm(n);
		r = k->call();
		fired = disarm();
		r = k->result(r);
		if (r) {
			failed++;
			add_code(codes, sizeof(codes), r);
			again = k->result(k->call());
		}
		k->finish();
		if (!nvfs_kinds_settled(before, after)) {
			t_row(false, k->name, "fault %u, returned %d: was %s, is %s", n, r, before,
			      after);
			return;
		}
		if (again || r == -EILSEQ || r == -EBADMSG || r == -ETIMEDOUT || (r && !fired)) {
			t_row(false, k->name, "fault %u (%s): returned %d (%s), afterwards %d", n,
			      fired ? "happened" : "did not happen", r, nvfs_errname(r), again);
			return;
		}
	}
	printf("     %s: %u faults, %u calls failed:%s%s\n", k->name, n - 1 - !fired, failed, codes,
	       fired ? " (not all: see --most)" : "");
	t_row(true, k->name, " ");
}

/* -- the module itself -- */

static bool loaded(void)
{
	return !access("/sys/module/nvidia_fs", F_OK);
}

static bool leftovers(void)
{
	return loaded() || !access("/proc/driver/nvidia-fs", F_OK) ||
	       !access("/sys/kernel/debug/nvfs_inject_fault", F_OK) ||
	       !access("/sys/class/nvidia-fs-class", F_OK) || !access("/dev/nvidia-fs0", F_OK);
}

/* two nodes: each costs a dozen allocations, and all are made alike */
static int load(int f, unsigned int nth, bool *fired)
{
	int r;

	arm(nth);
	r = syscall(SYS_finit_module, f, "max_devices=2", 0) ? -errno : 0;
	*fired = disarm();
	return r;
}

#define TRACING "/sys/kernel/tracing/"

/* The kernel says so just before it calls the init function. */
static bool init_was_called(void)
{
	FILE *f = fopen(TRACING "trace", "re");
	bool found = false;
	char line[512];

	if (!f)
		t_die(TRACING "trace: %s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, "module_load: nvidia_fs") != NULL;
	fclose(f);
	return found;
}

/* The first fault that is not the loader's. */
static unsigned int first_of_init(int f)
{
	unsigned int before = 0, after = 1 << 14, n;
	int on = t_open(TRACING "events/module/module_load/enable", O_WRONLY);
	bool fired;

	if (write(on, "1", 1) != 1)
		t_die("events/module/module_load: %s", strerror(errno));
	while (after - before > 1) {
		n = before + (after - before) / 2;
		close(t_open(TRACING "trace", O_WRONLY | O_TRUNC));
		if (!load(f, n, &fired))
			syscall(SYS_delete_module, "nvidia_fs", O_NONBLOCK);
		if (init_was_called())
			after = n;
		else
			before = n;
	}
	if (write(on, "0", 1) != 1)
		t_die("events/module/module_load: %s", strerror(errno));
	close(on);
	return after;
}

static void module(const char *file, unsigned int from, unsigned int most)
{
	int f = t_open(file, O_RDONLY), r;
	char codes[160] = "";
	unsigned int n, failed = 0;
	bool fired = true;

	if (!from)
		from = first_of_init(f);
	for (n = from; n < from + most && fired; n++) {
		r = load(f, n, &fired);
		if (r) {
			failed++;
			add_code(codes, sizeof(codes), r);
		} else if (syscall(SYS_delete_module, "nvidia_fs", O_NONBLOCK)) {
			t_row(false, "module", "fault %u: loaded, and cannot be unloaded: %s", n,
			      strerror(errno));
			return;
		}
		if (leftovers() || (r && !fired)) {
			t_row(false, "module", "fault %u (%s), returned %d: %s", n,
			      fired ? "happened" : "did not happen", r,
			      leftovers() ? "something is left" : "nothing is left");
			return;
		}
	}
	printf("     finit_module: faults %u to %u, %u calls failed:%s%s\n", from, n - 1 - !fired,
	       failed, codes, fired ? " (not all: see --most)" : "");
	close(f);
	t_row(true, "module", " ");
}

int main(int argc, char **argv)
{
	const char *dir = NULL, *file = NULL;
	unsigned int most = 100000, from = 1, i;
	int at = 1;

	for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
		if (!strcmp(argv[at], "--dir"))
			dir = argv[at + 1];
		else if (!strcmp(argv[at], "--module"))
			file = argv[at + 1];
		else if (!strcmp(argv[at], "--most"))
			most = strtoul(argv[at + 1], NULL, 0);
		else if (!strcmp(argv[at], "--from"))
			from = strtoul(argv[at + 1], NULL, 0);	/* "init" is no number: 0 */
		else
			break;
	}
	if ((at < argc && !strncmp(argv[at], "--", 2)) || !dir == !file) {
		fputs("usage: nvfs_failnth --dir D|--module FILE [--most N] [--from N|init] [KIND...]\n",
		      stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	nth_fd = t_open("/proc/thread-self/fail-nth", O_RDWR);
	if (file) {
		module(file, from, most);
		return t_rows_bad();
	}
	nvfs_kinds_open(dir, SIZE);
	for (i = 0; i < nvfs_nkinds && at == argc; i++)
		kind(&nvfs_kinds[i], most);
	for (; at < argc; at++) {
		const struct nvfs_kind *k = nvfs_kind_find(argv[at]);

		if (!k)
			t_die("no kind of call is named %s", argv[at]);
		kind(k, most);
	}
	nvfs_kinds_close();
	return t_rows_bad();
}
