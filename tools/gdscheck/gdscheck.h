/* SPDX-License-Identifier: MIT */
/*
 * gdscheck.h - the doctor: what a machine is, the checks, what they found.
 *
 * Facts are read below a root (facts/); here they are judged. Nothing here writes to the machine.
 */
#ifndef GDSCHECK_H
#define GDSCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config.h"
#include "facts.h"

/* Exit statuses of the doctor: part of the interface (gdscheck(1)). */
enum gc_status {
	GC_EXIT_OK = 0,		/* every check is OK or was skipped */
	GC_EXIT_ERROR = 1,	/* the doctor itself failed; -p, -f: verification failed */
	GC_EXIT_USAGE = 2,
	GC_EXIT_WARN = 3,
	GC_EXIT_FAIL = 4,
};

/* By weight: of two verdicts the larger one counts. */
enum gc_verdict {
	GC_SKIP,	/* not looked at, for the reason that the text says */
	GC_OK,
	GC_WARN,	/* direct I/O works, but slower, or not in all cases, or it is not sure */
	GC_FAIL,	/* this keeps bytes from going direct */
};

struct gc_machine;
struct gc_finding;

/* One check. Ids are part of the interface and never get another meaning. */
struct gc_check {
	const char *id;		/* "D-01" */
	const char *name;	/* a few words */
	void (*run)(const struct gc_machine *m, struct gc_finding *f);
	unsigned int rank;	/* of two that fail, the one of the lower rank is done first */
};

extern const struct gc_check gc_checks_gpu[], gc_checks_module[], gc_checks_path[],
	gc_checks_kernel[], gc_checks_pcie[], gc_checks_storage[], gc_checks_process[];
extern const size_t gc_n_gpu, gc_n_module, gc_n_path, gc_n_kernel, gc_n_pcie, gc_n_storage,
	gc_n_process;

#define GC_TEXT 384

struct gc_finding {
	const struct gc_check *check;
	const char *group;
	enum gc_verdict verdict;
	char text[GC_TEXT];	/* one sentence without a full stop */
	char file[GC_TEXT];	/* evidence: the file, and what stands there */
	char value[GC_TEXT];
	char remedy[GC_TEXT];	/* "": none */
	char note[GC_TEXT];	/* a limit of NVIDIA's stack that is none of ours; "": none */
};

#define GC_PRINTF(a, b) __attribute__((format(printf, a, b)))
void gc_say(struct gc_finding *f, enum gc_verdict v, const char *fmt, ...) GC_PRINTF(3, 4);
void gc_seen(struct gc_finding *f, const char *file, const char *fmt, ...) GC_PRINTF(3, 4);
void gc_remedy(struct gc_finding *f, const char *fmt, ...) GC_PRINTF(2, 3);
void gc_note(struct gc_finding *f, const char *fmt, ...) GC_PRINTF(2, 3);

/* -- what the machine is -- */

#define GC_PCI 512
#define GC_GPUS 64
#define GC_STORES 64
#define GC_LEAVES 16

struct gc_gpu {
	const struct facts_pci *pci;
	char model[FACTS_NAME];		/* "" where the GPU driver says nothing of it */
	uint64_t bar1, bar1_bus;	/* bytes, address; 0: not known */
};

/* A file system that matters, or the one that the caller named */
struct gc_store {
	struct facts_mount mount;
	char path[FACTS_PATH];		/* that the caller named, else "" */
	bool has_block;
	struct facts_block block;	/* right below the file system */
	unsigned int major, minor;	/* of that */
	char layers[GC_TEXT];		/* "dm-0 (LVM) on nvme0n1" */
	char dm[FACTS_NAME];		/* what kind of device mapper, "": none */
	char md[FACTS_NAME];		/* level, "": none */
	struct facts_block leaf[GC_LEAVES];
	unsigned int leaf_major[GC_LEAVES], leaf_minor[GC_LEAVES];
	unsigned int leaves;
};

/* A GPU and the drive that is nearest to it */
struct gc_pair {
	const struct gc_gpu *gpu;
	const struct facts_pci *drive;	/* NULL: there is none */
	struct facts_way way;
};

struct gc_machine {
	const char *root;		/* "": this machine */
	bool recorded;

	int pci_err, driver_err, nvfs_err;
	struct facts_pci pci[GC_PCI];
	size_t npci;
	struct facts_gpu_driver driver;
	struct facts_nvfs nvfs;
	struct gc_gpu gpu[GC_GPUS];
	unsigned int gpus;
	bool simulated;			/* the cards are this project's simulated ones */
	struct gc_pair pair[GC_GPUS];	/* of each GPU */

	char registry[2048];		/* RegistryDwords in force */
	char registry_file[2048];	/* of modprobe.d */
	char registry_from[FACTS_PATH];	/* the file that has it */
	char firmware_file[FACTS_NAME];	/* NVreg_EnableGpuFirmware of modprobe.d */
	char firmware_from[FACTS_PATH];

	bool hook_attached;		/* the module took the nvme driver's hook */
	bool p2pdma_used;		/* our module has P2PDMA carriers for drives without it */
	char p2pdma_why[GC_TEXT];	/* what it says of them */
	char hook_why[GC_TEXT];		/* what it says of the nvme driver */
	int64_t symbols;		/* bits of enum gc_symbol; < 0: cannot be read */

	char release[FACTS_NAME];	/* of the kernel */
	struct gc_store store[GC_STORES];
	unsigned int stores;
	bool stores_named;		/* by the caller */

	struct config config;
	bool config_found;
};

enum gc_symbol { GC_SYM_NVME_V1, GC_SYM_NVME_V2, GC_SYM_P2PDMA_OPS };

/*
 * Reads what all checks need. `paths`: files or folders to judge instead of all file systems on
 * NVMe drives. 0, or -errno with a line on standard error.
 */
int gc_machine_read(struct gc_machine *m, const char *root, char *const *paths, size_t npaths);

/* Some function of a GPU or drive on the way, or NULL */
const struct facts_pci *gc_pci(const struct gc_machine *m, const char *address);

/* A drive's PCI function is below one of the file systems that were looked at. */
bool gc_has_gpu(const struct gc_machine *m, struct gc_finding *f);

/* machine_store.c: fills store[]. */
int gc_stores_read(struct gc_machine *m, char *const *paths, size_t npaths);

/* What keeps a file system from the direct way, of the facts of its mount and its devices */
bool gc_store_good(const struct gc_machine *m, const struct gc_store *s);

/* kconfig.c: 'y', 'm', 'n' of an option; 0: no file tells. `file`: which one it was */
char gc_kconfig(const struct gc_machine *m, const char *option, char *file, size_t len);

/*
 * The first line of the kernel's log that has all of the words (NULL ends them). 1: found; 0: there
 * is none; -errno: the log cannot be read (it is root's).
 */
int gc_kmsg(const struct gc_machine *m, const char *const *words, char *line, size_t len);

/* -- the doctor -- */

struct gc_report {
	struct gc_finding *finding;
	size_t n;
	unsigned int count[GC_FAIL + 1];
	const struct gc_finding *first;	/* what to mend first; NULL: nothing */
};

/* All checks. -ENOMEM */
int gc_doctor(const struct gc_machine *m, struct gc_report *r);
void gc_report_free(struct gc_report *r);
void gc_report_text(const struct gc_report *r, bool all, FILE *out);
int gc_report_json(const struct gc_machine *m, const struct gc_report *r, FILE *out);
int gc_report_status(const struct gc_report *r);
const char *gc_verdict_name(enum gc_verdict v);

/* -- the rest of the commands: an exit status each -- */

int gc_platform(FILE *out);
int gc_verify_file(const char *path, FILE *out);
int gc_versions(FILE *out);
int gc_clients(FILE *out);

/* record.c: a machine as the checks see it, names taken out, into a tar archive. */
int gc_record(const char *root, const char *file, FILE *out);

#endif /* GDSCHECK_H */
