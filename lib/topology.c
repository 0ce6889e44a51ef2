// SPDX-License-Identifier: MIT
/* topology.c - cuFileExportPCIeTopology: the PCI tree of GPUs and drives, as a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_MODULE "cufio-topo"
#include "cufile.h"
#include "errmap.h"
#include "facts.h"
#include "log.h"
#include "os.h"

#define FUNCTIONS_MAX 1024
#define ALL_MAY_WRITE 0002

/* -- where it is written -- */

/* A descriptor of 3 or more; `fd` is given up. */
static int above_stdio(int fd)
{
	int up;

	if (fd < 0)
		return -errno;
	if (fd > 2)
		return fd;
	up = os->dup(fd);
	close(fd);
	return up;
}

/* In a folder that all may write to, a name can be anybody's. 1, 0, or -errno */
static int is_shared(int dir)
{
	struct stat st;

	return fstat(dir, &st) ? -errno : !!(st.st_mode & ALL_MAY_WRITE);
}

/*
 * The file, open for writing, or -errno. What lies in a shared folder is not followed, nor
 * is a file there that another user has, or has under a second name.
 */
static int open_last(int dir, const char *name)
{
	int shared = is_shared(dir), fd, r = 0;
	struct stat st;

	if (shared < 0)
		return shared;
	fd = above_stdio(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
				(shared ? O_NOFOLLOW : 0), 0644));
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (shared && (st.st_uid != geteuid() || st.st_nlink != 1))
		r = -EPERM;
	else if (ftruncate(fd, 0))
		r = -errno;
	if (!r)
		return fd;
	close(fd);
	return r;
}

/* The folder `name` in `dir`, which is given up */
static int open_next(int dir, const char *name)
{
	int shared = is_shared(dir), fd = shared;

	if (shared >= 0)
		fd = above_stdio(openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC |
					(shared ? O_NOFOLLOW : 0)));
	close(dir);
	return fd;
}

static int open_path(const char *path)
{
	char name[NAME_MAX + 1];
	int dir, fd;
	size_t n;

	dir = above_stdio(open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	for (;; path += n) {
		if (dir < 0)
			return dir;
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (!n || n > NAME_MAX)
			break;
		memcpy(name, path, n);
		name[n] = '\0';
		if (!path[n]) {
			fd = open_last(dir, name);
			close(dir);
			return fd;
		}
		dir = open_next(dir, name);
	}
	close(dir);
	return n ? -ENAMETOOLONG : -EISDIR;
}

/* -- what is written -- */

static const char *kind_name(enum facts_pci_kind kind)
{
	switch (kind) {
	case FACTS_PCI_ROOT_PORT:
		return "root port";
	case FACTS_PCI_SWITCH:
		return "switch";
	case FACTS_PCI_GPU:
		return "gpu";
	case FACTS_PCI_NVME:
		return "nvme";
	case FACTS_PCI_NIC:	/* not asked for */
		break;
	}
	return "";
}

/* 0: bridges, 1: GPUs, 2: drives */
static unsigned int list_of(enum facts_pci_kind kind)
{
	return kind == FACTS_PCI_GPU ? 1 : kind == FACTS_PCI_NVME ? 2 : 0;
}

/* No text of these needs to be escaped: addresses and names were looked at. */
static void write_one(FILE *f, const struct facts_pci *p)
{
	fprintf(f, "    { \"address\": \"%s\", \"kind\": \"%s\", ", p->address, kind_name(p->kind));
	if (p->parent[0])
		fprintf(f, "\"parent\": \"%s\", ", p->parent);
	else
		fprintf(f, "\"parent\": null, ");
	if (p->kind == FACTS_PCI_NVME && p->name[0])
		fprintf(f, "\"name\": \"%s\", ", p->name);
	fprintf(f, "\"root\": \"%s\", \"vendor\": \"0x%04x\", \"device\": \"0x%04x\", ", p->complex,
		p->vendor, p->device);
	fprintf(f, "\"numa_node\": %d }", p->numa);
}

static void write_all(FILE *f, const struct facts_pci *p, size_t n)
{
	static const char *const list[] = { "bridges", "gpus", "drives" };
	const char *comma;
	unsigned int i;
	size_t j;

	fprintf(f, "// Topology file for cuFile.\n");
	if (!n) {
		fprintf(f, "null\n");
		return;
	}
	fprintf(f, "{\n");
	for (i = 0; i < 3; i++) {
		fprintf(f, "  \"%s\": [", list[i]);
		comma = "";
		for (j = 0; j < n; j++) {
			if (list_of(p[j].kind) != i)
				continue;
			fprintf(f, "%s\n", comma);
			write_one(f, &p[j]);
			comma = ",";
		}
		fprintf(f, "%s]%s\n", comma[0] ? "\n  " : "", i < 2 ? "," : "");
	}
	fprintf(f, "}\n");
}

static int export(const char *path, const struct facts_pci *p, size_t n)
{
	int fd = open_path(path), r;
	FILE *f;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (!f) {
		r = -errno;
		close(fd);
		return r;
	}
	write_all(f, p, n);
	/* the buffer goes to the file here; a full disk is seen here */
	r = fflush(f) || ferror(f) ? -errno : 0;
	if (fclose(f) && !r)
		r = -errno;
	return r;
}

CUfileError_t cuFileExportPCIeTopology(const char *filename)
{
	struct facts_pci *p;
	int n, r;

	if (!filename || !filename[0]) {
		log_error("cuFileExportPCIeTopology: no name of a file: give one");
		return errmap_status(ERR(INVALID_VALUE));
	}
	p = calloc(FUNCTIONS_MAX, sizeof(*p));
	if (!p)
		return errmap_status(-ENOMEM);
	n = facts_pci_tree(os_root, p, FUNCTIONS_MAX);
	if (n < 0) {
		log_warn("cuFileExportPCIeTopology: /sys/bus/pci/devices: %s: written as empty; check that /sys is mounted",
			 log_errno(n));
		n = 0;
	}
	r = export(filename, p, n);
	free(p);
	if (!r)
		return errmap_status(0);
	log_error("cuFileExportPCIeTopology: %s: %s: give a file that can be written, and no link in a folder of all users",
		  filename, log_errno(r));
	return errmap_status(ERR(INVALID_VALUE));
}
