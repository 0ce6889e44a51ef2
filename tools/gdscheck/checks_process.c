// SPDX-License-Identifier: MIT
/*
 * checks_process.c - D-70 .. D-76: what this process, or this container, may see and do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "read.h"

#define MEMLOCK_MIN (8UL << 20)	/* bytes: the kernel's default since 5.16 */
#define FILES_MIN 1024

static void gpu_nodes(const struct gc_machine *m, struct gc_finding *f)
{
	char path[2 * FACTS_NAME], minor[FACTS_NAME];
	const char *missing = NULL;
	unsigned int i;

	if (!gc_has_gpu(m, f))
		return;
	if (m->simulated || m->driver_err) {
		gc_say(f, GC_SKIP, m->simulated ? "the card is a simulated one" :
		       "the GPU driver is not loaded");
		return;
	}
	if (facts_mode(m->root, "dev/nvidiactl") < 0)
		missing = "dev/nvidiactl";
	else if (facts_mode(m->root, "dev/nvidia-uvm") < 0)
		missing = "dev/nvidia-uvm";
	for (i = 0; !missing && i < m->gpus; i++) {
		if (facts_gpu_info(m->root, m->gpu[i].pci->address, "Device Minor", minor,
				   sizeof(minor)) <= 0)
			continue;
		snprintf(path, sizeof(path), "dev/nvidia%s", minor);
		if (facts_mode(m->root, path) < 0)
			missing = path;
	}
	if (!missing) {
		gc_say(f, GC_OK, "the nodes of the GPU driver are there");
		gc_seen(f, "dev/nvidiactl", "there");
		return;
	}
	gc_say(f, GC_FAIL, "the node /%s is not there: CUDA finds no GPU", missing);
	gc_seen(f, missing, "%s", strerror(ENOENT));
	gc_remedy(f, "in a container start it with --gpus all and --device /dev/nvidia-fs0 ...; else run nvidia-modprobe -u -c 0");
}

static void visible(const struct gc_machine *m, struct gc_finding *f)
{
	if (m->pci_err) {
		gc_say(f, GC_FAIL, "the PCI functions cannot be read, so the library cannot tell which drive is near");
		gc_seen(f, "sys/bus/pci/devices", "%s", strerror(-m->pci_err));
		gc_remedy(f, "mount /sys read-only into the container");
		return;
	}
	if (m->nvfs_err && facts_there(m->root, "sys/module", "nvidia_fs")) {
		gc_say(f, GC_FAIL, "nvidia-fs is loaded, but its files in /proc cannot be seen");
		gc_seen(f, "proc/driver/nvidia-fs", "%s", strerror(ENOENT));
		gc_remedy(f, "do not mask /proc/driver in the container");
		return;
	}
	gc_say(f, GC_OK, "/proc and /sys can be read");
	gc_seen(f, "sys/bus/pci/devices", "%zu functions that matter", m->npci);
}

/* "Max locked memory         8388608              8388608              bytes" */
struct limit {
	const char *name;
	unsigned long value;	/* the soft one; ULONG_MAX: unlimited */
	bool found;
};

static int limit_line(void *arg, char *line)
{
	struct limit *l = arg;
	size_t n = strlen(l->name);

	if (strncmp(line, l->name, n))
		return 0;
	line += n;
	line += strspn(line, " ");
	l->value = strncmp(line, "unlimited", 9) ? strtoul(line, NULL, 10) : (unsigned long)-1;
	l->found = true;
	return 1;
}

static void rlimits(const struct gc_machine *m, struct gc_finding *f)
{
	static const char path[] = "proc/self/limits";
	struct limit lock = { .name = "Max locked memory" }, files = { .name = "Max open files" };

	facts_lines(m->root, path, limit_line, &lock);
	facts_lines(m->root, path, limit_line, &files);
	if (!lock.found || !files.found) {
		gc_say(f, GC_SKIP, "the limits of the process cannot be read");
		return;
	}
	if (lock.value < MEMLOCK_MIN) {
		gc_say(f, GC_WARN, "only %lu KiB of memory may be locked: io_uring and RDMA need more",
		       lock.value >> 10);
		gc_seen(f, path, "Max locked memory: %lu", lock.value);
		gc_remedy(f, "raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, or --ulimit memlock=-1 of a container");
		return;
	}
	gc_seen(f, path, "Max open files: %lu", files.value);
	if (files.value < FILES_MIN) {
		gc_say(f, GC_WARN, "only %lu files may be open", files.value);
		gc_remedy(f, "raise it: ulimit -n 65536");
		return;
	}
	gc_say(f, GC_OK, "memory may be locked, files may be opened");
}

static void seccomp(const struct gc_machine *m, struct gc_finding *f)
{
	static const char path[] = "proc/self/status";
	char text[FACTS_NAME];

	if (facts_label(m->root, path, "Seccomp", text, sizeof(text)) <= 0) {
		gc_say(f, GC_SKIP, "the kernel does not tell whether a filter is set");
		return;
	}
	gc_seen(f, path, "Seccomp: %s", text);
	if (!strcmp(text, "0")) {
		gc_say(f, GC_OK, "no system call is filtered");
		return;
	}
	gc_say(f, GC_WARN, "a filter of system calls is set: io_uring may be refused, and another way is taken then");
	gc_remedy(f, "a container: --security-opt seccomp=unconfined, or a profile that allows io_uring_setup, io_uring_enter and io_uring_register");
}

static void fork_rule(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "a rule for programs: no GPU work across fork; start workers by spawn");
}

static void allocation(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_SKIP, "a rule for programs: memory of cudaMalloc, not managed and not stream-ordered");
}

static void namespaces(const struct gc_machine *m, struct gc_finding *f)
{
	gc_say(f, GC_OK, "PID namespaces are no problem: the GPU driver compares the kernel's own numbers");
}

const struct gc_check gc_checks_process[] = {
	{ "D-70", "GPU nodes", gpu_nodes, 12 },
	{ "D-71", "proc and sys", visible, 11 },
	{ "D-72", "limits", rlimits, 92 },
	{ "D-73", "seccomp", seccomp, 93 },
	{ "D-74", "fork", fork_rule, 99 },
	{ "D-75", "allocation", allocation, 99 },
	{ "D-76", "PID namespace", namespaces, 99 },
};
const size_t gc_n_process = sizeof(gc_checks_process) / sizeof(gc_checks_process[0]);
