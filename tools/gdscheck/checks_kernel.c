// SPDX-License-Identifier: MIT
/*
 * checks_kernel.c - D-40 .. D-46, D-53: the kernel, the IOMMU, the BAR.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdscheck.h"
#include "read.h"

#define SMALL_BAR1 (256ULL << 20)	/* bytes: what a card has without resizable BAR */
#define RESERVE_MIB 36			/* of BAR1, which the GPU driver keeps for itself */

static void p2pdma_config(const struct gc_machine *m, struct gc_finding *f)
{
	char file[FACTS_PATH];
	char v = gc_kconfig(m, "CONFIG_PCI_P2PDMA", file, sizeof(file));

	if (!v) {
		gc_say(f, GC_SKIP, "no file tells what kernel %s was built with", m->release);
		return;
	}
	gc_seen(f, file, "CONFIG_PCI_P2PDMA=%c", v);
	if (v == 'y') {
		gc_say(f, GC_OK, "the kernel has P2PDMA");
		return;
	}
	if (m->hook_attached ||
	    (m->symbols > 0 && m->symbols & (1 << GC_SYM_NVME_V1 | 1 << GC_SYM_NVME_V2))) {
		gc_say(f, GC_OK, "the kernel has no P2PDMA; the nvme driver has the hook instead");
		gc_note(f, "NVIDIA's P2PDMA mode cannot be had on this kernel");
		return;
	}
	gc_say(f, GC_FAIL, "the kernel is built without P2PDMA, and the nvme driver has no hook");
	gc_remedy(f, "boot a kernel with CONFIG_PCI_P2PDMA, or install the nvme hook (docs/nvme-hook.md)");
}

static void p2pdma_live(const struct gc_machine *m, struct gc_finding *f)
{
	char text[FACTS_NAME], path[FACTS_PATH];
	const struct gc_gpu *g = &m->gpu[0];
	unsigned long long bytes = 0;

	if (!gc_has_gpu(m, f))
		return;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/p2pmem/size", g->pci->address);
	if (facts_pci_text(m->root, g->pci->address, "p2pmem/size", text, sizeof(text)) > 0)
		bytes = strtoull(text, NULL, 10);
	gc_seen(f, path, bytes ? "%llu" : "none", bytes);
	if (bytes && bytes == g->bar1)
		gc_say(f, GC_OK, "the GPU driver has given all of BAR1 to P2PDMA");
	else if (bytes)
		gc_say(f, GC_OK, "%llu MiB of BAR1 are P2PDMA memory", bytes >> 20);
	else
		gc_say(f, GC_OK, "the GPU driver has given no memory to P2PDMA; nvidia-fs makes the pages that it needs");
	if (bytes != g->bar1)
		gc_note(f, "NVIDIA's P2PDMA mode wants RMForceStaticBar1 and RmForceDisableIomapWC, so that p2pmem/size is that of BAR1");
}

/* The type of the IOMMU group of a function: its length, or -errno; -ENOENT: no IOMMU has it */
static int group_type(const struct gc_machine *m, const char *address, char *path, size_t plen,
		      char *type, size_t len)
{
	char group[FACTS_NAME];
	int r = facts_pci_target(m->root, address, "iommu_group", group, sizeof(group));

	if (r)
		return r;
	snprintf(path, plen, "sys/kernel/iommu_groups/%s/type", group);
	return facts_read(m->root, path, type, len);
}

static bool translated(const struct gc_machine *m, struct gc_finding *f, const char *address,
		       const char *what)
{
	char path[FACTS_PATH], type[FACTS_NAME];

	if (group_type(m, address, path, sizeof(path), type, sizeof(type)) <= 0)
		return false;
	gc_seen(f, path, "%s", type);
	if (strncmp(type, "DMA", 3))
		return false;
	gc_remedy(f, "boot with iommu=pt (it takes the isolation of these devices away: a faulty one can write anywhere)");
	if (m->nvfs_err || m->nvfs.ours) {
		gc_say(f, GC_WARN, "the IOMMU translates for %s %s: direct, but each mapping costs more",
		       what, address);
		gc_note(f, "NVIDIA's nvidia-fs hands out untranslated addresses and fails here");
	} else {
		gc_say(f, GC_FAIL, "the IOMMU translates for %s %s, and NVIDIA's nvidia-fs hands out addresses that are not translated",
		       what, address);
	}
	return true;
}

static void iommu(const struct gc_machine *m, struct gc_finding *f)
{
	unsigned int i;

	gc_seen(f, "sys/kernel/iommu_groups", "no group of a GPU or drive");
	for (i = 0; i < m->gpus; i++)
		if (translated(m, f, m->gpu[i].pci->address, "GPU"))
			return;
	for (i = 0; i < m->npci; i++)
		if (m->pci[i].kind == FACTS_PCI_NVME &&
		    translated(m, f, m->pci[i].address, "drive"))
			return;
	gc_say(f, GC_OK, f->value[0] == 'i' ? "the IOMMU passes addresses through" :
	       "no IOMMU is between GPU and drive");
}

static bool is_guest(const struct gc_machine *m)
{
	char flags[8192];

	return facts_label(m->root, "proc/cpuinfo", "flags", flags, sizeof(flags)) > 0 &&
	       strstr(flags, " hypervisor");
}

static void virtual(const struct gc_machine *m, struct gc_finding *f)
{
	gc_seen(f, "proc/cpuinfo", is_guest(m) ? "flag hypervisor" : "no flag hypervisor");
	if (!is_guest(m)) {
		gc_say(f, GC_OK, "no virtual machine");
		return;
	}
	if (m->simulated) {
		gc_say(f, GC_OK, "a virtual machine with simulated cards");
		return;
	}
	gc_say(f, GC_WARN, "a virtual machine: whether GPU and drive reach each other is the host's choice");
	gc_remedy(f, "prove it by gdscheck --prove FILE; the host must pass both through and let their switch forward (ACS)");
}

static void bar1_size(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_gpu *g;
	unsigned int i;
	char path[FACTS_PATH];

	if (!gc_has_gpu(m, f))
		return;
	for (i = 0; i < m->gpus; i++) {
		g = &m->gpu[i];
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/resource", g->pci->address);
		gc_seen(f, path, "BAR1 of %llu MiB", (unsigned long long)g->bar1 >> 20);
		if (m->simulated || g->bar1 > SMALL_BAR1)
			continue;
		if (!g->bar1) {
			gc_say(f, GC_SKIP, "GPU %s has no BAR1 (D-46)", g->pci->address);
			return;
		}
		gc_say(f, GC_WARN, "BAR1 of GPU %s is %llu MiB: no more than %llu MiB can be pinned at a time",
		       g->pci->address, (unsigned long long)g->bar1 >> 20,
		       g->bar1 >> 20 > RESERVE_MIB ?
			       ((unsigned long long)g->bar1 >> 20) - RESERVE_MIB : 0);
		gc_remedy(f, "switch Above 4G Decoding and Resizable BAR on in the BIOS (CSM off)");
		return;
	}
	gc_say(f, GC_OK, "BAR1 is large: %llu MiB", (unsigned long long)m->gpu[0].bar1 >> 20);
}

static void bar1_room(const struct gc_machine *m, struct gc_finding *f)
{
	static const char *const words[] = { "no space for BAR1 mappings", NULL };
	char line[GC_TEXT];

	if (gc_kmsg(m, words, line, sizeof(line)) <= 0) {
		gc_say(f, GC_SKIP, "what is in use of BAR1 only the GPU driver knows (nvidia-smi -q -d MEMORY)");
		return;
	}
	gc_say(f, GC_WARN, "there was no room in BAR1 for a pin");
	gc_seen(f, "dev/kmsg", "%s", line);
	gc_remedy(f, "end programs that hold BAR1 mappings, or set max_device_pinned_mem_size_kb lower");
}

static void bar1_place(const struct gc_machine *m, struct gc_finding *f)
{
	const struct gc_gpu *g;
	char path[FACTS_PATH];
	unsigned int i;

	if (!gc_has_gpu(m, f))
		return;
	for (i = 0; i < m->gpus; i++) {
		g = &m->gpu[i];
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/resource", g->pci->address);
		gc_seen(f, path, "BAR1 at 0x%llx", (unsigned long long)g->bar1_bus);
		if (!g->bar1) {
			gc_say(f, GC_FAIL, "GPU %s has no BAR1: the firmware found no place for it",
			       g->pci->address);
			gc_remedy(f, "switch Above 4G Decoding on in the BIOS, or boot with pci=realloc");
			return;
		}
		if (m->simulated || g->bar1_bus >> 32)
			continue;
		gc_say(f, GC_WARN, "BAR1 of GPU %s lies below 4 GiB, where it cannot grow",
		       g->pci->address);
		gc_remedy(f, "switch Above 4G Decoding on in the BIOS");
		return;
	}
	gc_say(f, GC_OK, "BAR1 lies above 4 GiB");
}

static void lockdown(const struct gc_machine *m, struct gc_finding *f)
{
	static const char path[] = "sys/kernel/security/lockdown";
	char text[FACTS_NAME];

	if (facts_read(m->root, path, text, sizeof(text)) <= 0) {
		gc_say(f, GC_OK, "the kernel has no lockdown");
		gc_seen(f, path, "not there");
		return;
	}
	gc_seen(f, path, "%s", text);
	if (strstr(text, "[none]")) {
		gc_say(f, GC_OK, "the kernel is not locked down");
		return;
	}
	gc_say(f, GC_WARN, "the kernel is locked down (Secure Boot): it loads signed modules only");
	gc_remedy(f, "enrol the key that DKMS signs with: mokutil --import /var/lib/dkms/mok.pub, then reboot");
}

const struct gc_check gc_checks_kernel[] = {
	{ "D-40", "kernel P2PDMA", p2pdma_config, 36 },
	{ "D-41", "P2PDMA memory", p2pdma_live, 99 },
	{ "D-42", "IOMMU", iommu, 45 },
	{ "D-43", "virtual machine", virtual, 75 },
	{ "D-44", "size of BAR1", bar1_size, 65 },
	{ "D-45", "room in BAR1", bar1_room, 66 },
	{ "D-46", "place of BAR1", bar1_place, 64 },
	{ "D-53", "lockdown", lockdown, 82 },
};
const size_t gc_n_kernel = sizeof(gc_checks_kernel) / sizeof(gc_checks_kernel[0]);
