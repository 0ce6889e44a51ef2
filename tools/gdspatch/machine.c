// SPDX-License-Identifier: MIT
/* machine.c - what gdspatch asks of the machine below a root: driver, GPUs, tools. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "gdspatch.h"
#include "read.h"

#define GPUS_MAX 256
#define NVIDIA	 0x10de

/* GB202 to GB207 by PCI device id */
static bool gb20x(unsigned int device)
{
	return device >= 0x2b80 && device <= 0x2fff;
}

bool gp_only_gb20x(const char *root)
{
	static struct facts_pci pci[GPUS_MAX];
	int n = facts_pci_tree(root, pci, GPUS_MAX), gpus = 0, others = 0;

	for (int i = 0; i < n; i++) {
		if (pci[i].kind != FACTS_PCI_GPU || pci[i].vendor != NVIDIA)
			continue;
		gpus++;
		others += !gb20x(pci[i].device);
	}
	return gpus && !others;
}

const char *gp_initramfs_tool(const char *root)
{
	static const char *const tools[] = { "update-initramfs", "dracut", "mkinitcpio" };
	static const char *const dirs[] = { "usr/sbin", "usr/bin", "sbin", "bin" };
	char path[512];

	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
		for (size_t d = 0; d < sizeof(dirs) / sizeof(*dirs); d++) {
			snprintf(path, sizeof(path), "%s/%s/%s", root, dirs[d], tools[i]);
			if (!access(path, X_OK))
				return tools[i];
		}
	return "";
}

void gp_running_kernel(const char *root, char *out, size_t len)
{
	if (facts_read(root, "proc/sys/kernel/osrelease", out, len) < 0)
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
}

void gp_installed(const char *root, const char *kernel, bool *mine, char *other, size_t len)
{
	char dir[512], path[900];
	struct dirent **list;
	int n;

	*mine = false;
	*other = '\0';
	snprintf(dir, sizeof(dir), "%.400s/lib/modules", root);
	n = scandir(dir, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s/.patchkit/manifest", dir, list[i]->d_name);
		if (list[i]->d_name[0] != '.' && !access(path, F_OK)) {
			if (!strcmp(list[i]->d_name, kernel))
				*mine = true;
			else
				snprintf(other, len, "%s", list[i]->d_name);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

void gp_each_source(const char *root,
		    void (*each)(void *arg, const char *path, const struct gp_seen *seen),
		    void *arg)
{
	char dir[512], path[900];
	struct dirent **list;
	struct pk_error e;
	struct gp_seen seen;
	struct pk_tree pk;
	int n;

	snprintf(dir, sizeof(dir), "%.400s/usr/src", root);
	n = scandir(dir, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		if (!strncmp(list[i]->d_name, "nvidia", 6) && !pk_tree_open(&pk, path, &e)) {
			gp_look(&seen, &pk, path);
			/* as nvidia-fs's, or a driver whose package has no such source */
			if (seen.why.id != GP_NOT_A_TREE)
				each(arg, path, &seen);
			gp_seen_free(&seen);
			pk_tree_close(&pk);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}
