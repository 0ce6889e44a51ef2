// SPDX-License-Identifier: MIT
/* explain.c - what each site and set is, the risks, and what is to be done after an edit. */
#include <stdio.h>
#include <string.h>

#include "gdspatch.h"

static const char *const about[GP_NR_SITES] = {
	[GP_S_OVERRIDE] =
		"The driver's answer to \"may these GPUs be peers?\". Unedited it asks the chipset rules and the firmware; "
		"0x11 answers reads and writes with yes (bits 1:0 and 5:4) and asks nobody. It maps nothing. "
		"The registry key ForceP2P=0x11 does the same without a patch.",
	[GP_S_FORCE_TYPE] =
		"Which kind of peer access is preferred. Its numbers changed their meaning at release 575, so the edit names a constant: "
		"PCIEP2P where the source has it, else BAR1P2P. Key: RMForceP2PType (1 from 575 on, 2 before).",
	[GP_S_PCIE_TYPE] =
		"Which of the two ways over PCIe: mailbox or BAR1. From release 575 on. BAR1 takes the mailbox's window away, "
		"so peers by mailbox are gone. Key: RMPcieP2PType=1.",
	[GP_S_DMA_INFO] =
		"Bus address of a peer's BAR1. The default arm says `not supported` on Turing, Ampere and Ada; GH100's function works where BAR1 is static.",
	[GP_S_CREATE] =
		"Counts a BAR1 peer mapping between two GPUs and makes it known to the IOMMU. The default arm says `not supported`.",
	[GP_S_REMOVE] = "Takes a BAR1 peer mapping back. The default arm says `not supported`.",
	[GP_S_HAS] = "Is there a BAR1 mapping between these two GPUs? The default arm says no.",
	[GP_S_SUPPORTED] =
		"Could there be one? The default arm says no. GH100's function wants two different GPUs, both with static BAR1: with one GPU it says no as well.",
	[GP_S_DISPATCH_CREATE] =
		"Makes a peer mapping by its kind, on the generations before Hopper. It knows NVLink and mailbox; the inserted branch adds BAR1. "
		"Without it the capability says yes and enabling the peer fails (CUDA error 205).",
	[GP_S_DISPATCH_REMOVE] =
		"Removes a peer mapping by its kind; the inserted branch adds BAR1.",
};

static void paragraph(const char *text)
{
	while (*text) {
		size_t n = strlen(text), cut;

		if (n > 92) {
			for (cut = 92; cut && text[cut] != ' '; cut--)
				;
			n = cut ? cut : 92;
		}
		printf("    %.*s\n", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
}

static void explain_site(enum gp_site s)
{
	printf("%s (%s)\n", gp_site_name[s], gp_path[gp_site_file(s)]);
	paragraph(about[s]);
	fputs("    in:", stdout);
	for (enum gp_set set = GP_BIF; set < GP_NR_SETS; set++)
		if (gp_in_set(set, s))
			printf(" %s", gp_set_name[set]);
	putchar('\n');
}

static void explain_set(enum gp_set set)
{
	printf("set %s\n  enables:\n", gp_set_name[set]);
	paragraph(gp_set_enables[set]);
	puts("  does not enable:");
	paragraph(gp_set_not[set]);
}

/* a site, a set, or the id of a refusal; all sites and sets without a name */
int gp_cmd_explain(const struct gp_options *o, const char *name)
{
	enum gp_set set = name ? gp_set_of(name) : GP_NO_SET;

	for (enum gp_site s = 0; s < GP_NR_SITES; s++)
		if (!name || !strcmp(name, gp_site_name[s])) {
			explain_site(s);
			if (name)
				return GP_EXIT_OK;
		}
	for (enum gp_set s = GP_BIF; s < GP_NR_SETS; s++)
		if (!name || s == set)
			explain_set(s);
	if (!name || set)
		return GP_EXIT_OK;
	for (enum gp_id i = GP_OK + 1; i < GP_NR_IDS; i++)
		if (!strcmp(name, gp_id_name(i))) {
			printf("%s\n", name);
			paragraph(gp_id_next(i));
			return GP_EXIT_OK;
		}
	gp_note("no site, set or refusal `%s`; `gdspatch explain` lists sites and sets", name);
	return GP_EXIT_USAGE;
}

void gp_print_risks(void)
{
	static const char *const risks[] = {
		"Peer access needs the IOMMU off or in identity mode for the devices (iommu=pt): a faulty device can then overwrite host memory.",
		"A root complex that does not pass peer reads answers them with all ones, without an error: compare data in both directions before you trust it.",
		"Patched modules are unsigned and not supported by the vendor, and the next update of the driver package takes the edits away (DKMS builds the new source): run `gdspatch inspect` after each update.",
		"A wrong module can leave the machine without display: keep a second boot entry. Recovery: boot with modprobe.blacklist=nvidia,nvidia_modeset,nvidia_drm,nvidia_uvm, then `gdspatch uninstall --kernel V`.",
	};

	puts("risks:");
	for (size_t i = 0; i < sizeof(risks) / sizeof(*risks); i++)
		paragraph(risks[i]);
}

void gp_print_after(void)
{
	puts("next: build and install the modules (`gdspatch build`, `gdspatch install`, or DKMS), regenerate the\n"
	     "    initramfs, sign them if Secure Boot is on, reboot or reload them, then run `gdscheck`. The user\n"
	     "    space part of the driver must be of the same release.");
}
