// SPDX-License-Identifier: MIT
/* machine.c - what gdspatch asks of the machine below a root: driver, GPUs, tools. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "gdspatch.h"

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
