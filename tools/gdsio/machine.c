// SPDX-License-Identifier: MIT
/* machine.c - reads the facts that stand beside a rate. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "gdsio.h"
#include "machine.h"

/* The text behind `key` and a colon in a file of such lines. */
static bool line_of(const char *root, const char *path, const char *key, char *out, size_t len)
{
	char full[PATH_MAX], line[512], *at;
	bool found = false;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	f = fopen(full, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		at = line + strlen(key);
		if (strncmp(line, key, strlen(key)) || !strchr(" \t:", *at))
			continue;
		at += strspn(at, " \t:");
		at[strcspn(at, "\n")] = '\0';
		snprintf(out, len, "%s", at);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

void gdsio_machine(const char *root, struct gdsio_machine *m)
{
	struct facts_nvfs nvfs;
	struct utsname u;
	char text[64];

	*m = (struct gdsio_machine){ 0 };
	if (uname(&u))
		snprintf(u.release, sizeof(u.release), "unknown");
	snprintf(m->kernel, sizeof(m->kernel), "%s", u.release);
	if (!line_of(root, "proc/cpuinfo", "model name", m->cpu, sizeof(m->cpu)))
		snprintf(m->cpu, sizeof(m->cpu), "unknown");
	m->cpus = facts_cpus(root);
	if (line_of(root, "proc/meminfo", "MemTotal", text, sizeof(text)))
		m->memory = strtoull(text, NULL, 10) * 1024;
	cuFileGetVersion(&m->cufile);
	if (facts_nvfs_find(root, &nvfs))
		snprintf(m->module, sizeof(m->module), "not loaded");
	else
		snprintf(m->module, sizeof(m->module), "%u.%u%s", nvfs.major, nvfs.minor,
			 nvfs.ours ? " (OpenGDS)" : "");
}

void gdsio_end_link(const char *root, struct gdsio_end *end)
{
	end->linked = end->pci[0] && !facts_pci_link(root, end->pci, &end->link) &&
		      end->link.speed && end->link.width;
}

/* btrfs shows its files under numbers that the mount table has not: there the mount's own helps. */
static int mount_of(const char *root, int fd, dev_t dev, struct facts_mount *mount)
{
	int r = facts_mount_find(root, major(dev), minor(dev), mount);

#ifdef STATX_MNT_ID
	struct statx st;

	if (r == -ENOENT && !statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) &&
	    (st.stx_mask & STATX_MNT_ID))
		r = facts_mount_by_id(root, st.stx_mnt_id, mount);
#endif
	return r;
}

void gdsio_place(const char *root, int fd, struct gdsio_place *place)
{
	struct facts_mount mount;
	struct facts_block block;
	struct stat st;
	dev_t dev;

	*place = (struct gdsio_place){ .fs = "unknown" };
	if (fstat(fd, &st))
		return;
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	if (S_ISBLK(st.st_mode))
		snprintf(place->fs, sizeof(place->fs), "block");
	else if (!mount_of(root, fd, dev, &mount))
		memcpy(place->fs, mount.fs, sizeof(place->fs));
	if (facts_block_find(root, major(dev), minor(dev), &block))
		return;
	snprintf(place->drive.name, sizeof(place->drive.name), "%s", block.disk);
	memcpy(place->drive.pci, block.pci, sizeof(place->drive.pci));
	gdsio_end_link(root, &place->drive);
}

const char *gdsio_link_text(const struct gdsio_end *end, char text[64])
{
	const struct facts_pci_link *l = &end->link;
	int n;

	if (!end->linked)
		return "unknown";
	n = snprintf(text, 64, "%u.%uGT/s x%u", l->speed / 1000, l->speed % 1000 / 100, l->width);
	if (l->max_speed > l->speed || l->max_width > l->width)
		snprintf(text + n, 64 - n, " (can %u.%uGT/s x%u)", l->max_speed / 1000,
			 l->max_speed % 1000 / 100, l->max_width);
	return text;
}

void gdsio_gpu(int n, struct gdsio_end *end)
{
	char name[64] = "unknown", pci[32] = "";
	CUdevice dev;
	size_t i;

	*end = (struct gdsio_end){ 0 };
	if (!cuDeviceGet(&dev, n)) {
		cuDeviceGetName(name, sizeof(name), dev);
		cuDeviceGetPCIBusId(pci, sizeof(pci), dev);
	}
	/* CUDA writes capitals, and eight digits of the domain where sysfs has four */
	for (i = 0; pci[i]; i++)
		pci[i] |= pci[i] >= 'A' && pci[i] <= 'F' ? 0x20 : 0;
	i = strlen(pci) > 12 && !strncmp(pci, "0000", 4) ? strlen(pci) - 12 : 0;
	snprintf(end->name, sizeof(end->name), "GPU %d (%s)", n, name);
	snprintf(end->pci, sizeof(end->pci), "%s", pci + i);
	gdsio_end_link("", end);
}

static void print_end(FILE *f, const struct gdsio_end *end)
{
	char text[64];

	fprintf(f, " %s pci: %s link: %s", end->name, end->pci[0] ? end->pci : "none",
		gdsio_link_text(end, text));
}

void gdsio_print_links(FILE *f, const struct gdsio_run *run)
{
	const struct gdsio_args *a = run->args;
	struct gdsio_place place;
	struct gdsio_end gpu;
	unsigned int i, j;

	for (i = 0; i < run->files; i++) {
		/* the threads of a job have files in one folder */
		for (j = 0; j < i && run->file[j].job != run->file[i].job; j++)
			;
		if (j < i)
			continue;
		gdsio_place("", run->file[i].fd, &place);
		fprintf(f, "Link: %s: %s", run->file[i].job->path, place.fs);
		if (place.drive.name[0])
			print_end(f, &place.drive);
		if (gdsio_needs_gpu(a)) {
			gdsio_gpu(run->file[i].job->gpu, &gpu);
			fputs(",", f);
			print_end(f, &gpu);
		}
		fputc('\n', f);
	}
}
