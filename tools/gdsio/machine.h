/* SPDX-License-Identifier: MIT */
/* machine.h - the machine that a rate is of: GPUs, drives, their links, software. */
#ifndef GDSIO_MACHINE_H
#define GDSIO_MACHINE_H

#include <stdio.h>
#include <sys/types.h>

#include "facts.h"

struct gdsio_run;

/* A PCI function that bytes came from or went to. */
struct gdsio_end {
	char name[128];			/* "GPU 0 (NVIDIA L4)", "nvme0n1" */
	char pci[FACTS_NAME];		/* "" : none */
	bool linked;			/* link is known */
	struct facts_pci_link link;
};

/* A file, by what is below it. */
struct gdsio_place {
	char fs[FACTS_NAME];		/* "ext4", "block" for a device, "unknown" */
	struct gdsio_end drive;		/* name "" when there is no block device */
};

struct gdsio_machine {
	char kernel[80];
	char cpu[128];
	unsigned int cpus;		/* that this process may use */
	uint64_t memory;		/* bytes */
	int cufile;			/* 1180; 0: not asked */
	char module[32];		/* "2.28", "not loaded" */
};

/* Facts below `root`; what cannot be read is "unknown" or 0. */
void gdsio_machine(const char *root, struct gdsio_machine *m);
void gdsio_place(const char *root, int fd, struct gdsio_place *place);

/* The link of the function m->pci */
void gdsio_end_link(const char *root, struct gdsio_end *end);

/* "16.0GT/s x16", "16.0GT/s x8 (can x16)", "unknown" */
const char *gdsio_link_text(const struct gdsio_end *end, char text[64]);

/* GPU number n of a run, which has CUDA open. */
void gdsio_gpu(int n, struct gdsio_end *end);

/* The lines "Link: ..." of a run: each of its GPUs and drives once. */
void gdsio_print_links(FILE *f, const struct gdsio_run *run);

#endif /* GDSIO_MACHINE_H */
