/* SPDX-License-Identifier: MIT */
/*
 * facts.h - what this machine is: mounts, block devices, PCI, the nvidia-fs module.
 *
 * Everything is read below `root` ("" for this machine, or a recorded tree), so it can be
 * tested anywhere. No function allocates, prints or keeps state: any thread, any time.
 * Results are 0 or -errno; -ENOENT when the file that would tell is not there.
 */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reasons.h"

#define FACTS_NAME 64
#define FACTS_OPTIONS 512
#define FACTS_PATH 256

/* A mounted file system, from root/proc/self/mountinfo. */
struct facts_mount {
	unsigned int major, minor;	/* of its files; major 0: of no block device */
	char fs[FACTS_NAME];		/* "ext4" */
	char source[FACTS_PATH];	/* "/dev/nvme0n1p2" */
	char point[FACTS_PATH];		/* where it is mounted */
	/*
	 * Of the mount and of the file system, "rw,data=ordered". Each is whole; one of more
	 * than 128 bytes (a list of folders) is left out.
	 */
	char options[FACTS_OPTIONS];
};

/*
 * The file system with device number major:minor (st_dev of its files); mounted several
 * times, the last one. -EOVERFLOW: more options than fit. btrfs, and overlayfs on several file
 * systems, show files under device numbers that the table has not: -ENOENT.
 */
int facts_mount_find(const char *root, unsigned int major, unsigned int minor,
		     struct facts_mount *out);

/* The same by the number of the mount, which statx tells of any file (stx_mnt_id). */
int facts_mount_by_id(const char *root, int64_t id, struct facts_mount *out);

/* Calls `each` with every mount, oldest first, until it returns other than 0; returns that. */
int facts_mounts(const char *root, int (*each)(void *arg, const struct facts_mount *m), void *arg);

/* True when the comma-separated options hold a bare `key`, or `key=value` if value is given. */
bool facts_option(const char *options, const char *key, const char *value);

enum facts_block_kind {
	FACTS_BLOCK_OTHER,	/* sd, vd, mmcblk, loop, ... */
	FACTS_BLOCK_NVME,	/* a namespace of a PCI NVMe drive, or a partition of one */
	FACTS_BLOCK_NVME_FABRIC, /* a namespace that another transport reaches */
	FACTS_BLOCK_NVME_MULTIPATH, /* the head of a namespace with several paths */
	FACTS_BLOCK_DM,
	FACTS_BLOCK_MD,
};

/* A block device, from root/sys/dev/block/MAJOR:MINOR. */
struct facts_block {
	enum facts_block_kind kind;
	char name[FACTS_NAME];		/* "nvme0n1p2" */
	char disk[FACTS_NAME];		/* "nvme0n1": the whole disk */
	char pci[FACTS_NAME];		/* "0000:01:00.0" of the drive, "" when it has none */
	unsigned int logical_block;	/* bytes, 0 when unknown */
	bool integrity;			/* carries protection information (T10 PI) */
};

int facts_block_find(const char *root, unsigned int major, unsigned int minor,
		     struct facts_block *out);

/*
 * What a device mapper or md device is made of: calls `each` with the numbers of each device
 * below, until it returns other than 0; returns that. Nothing is below a drive: 0.
 */
int facts_block_below(const char *root, unsigned int major, unsigned int minor,
		      int (*each)(void *arg, unsigned int major, unsigned int minor), void *arg);

/* Text of a file of the whole disk's folder ("dm/uuid", "queue/max_segments"), as facts_read. */
int facts_block_text(const char *root, unsigned int major, unsigned int minor, const char *name,
		     char *buf, size_t len);

/* A PCI function that matters to the way of a byte, from root/sys/bus/pci/devices. */
enum facts_pci_kind {
	FACTS_PCI_ROOT_PORT,	/* a bridge at a root complex */
	FACTS_PCI_SWITCH,	/* a bridge below another */
	FACTS_PCI_GPU,		/* NVIDIA's, or a simulated one with its driver */
	FACTS_PCI_NVME,
	FACTS_PCI_NIC,
};

#define FACTS_PCI_ADDRESS 20	/* "10000:01:00.0" and its NUL, with room */

struct facts_pci {
	enum facts_pci_kind kind;
	char address[FACTS_PCI_ADDRESS];
	char parent[FACTS_PCI_ADDRESS];	/* the bridge above, "" at a root complex */
	char complex[FACTS_PCI_ADDRESS]; /* "pci0000:00" */
	char name[FACTS_PCI_ADDRESS];	/* "nvme0", "eth0"; "" without a driver */
	unsigned int vendor, device;
	int numa;			/* -1: none */
};

/*
 * GPUs, drives, and the bridges above them, by address: their number. -EOVERFLOW: more
 * functions of these kinds than `max`.
 */
int facts_pci_tree(const char *root, struct facts_pci *out, size_t max);

/* The same, with network functions and the bridges above them. */
int facts_pci_tree_nics(const char *root, struct facts_pci *out, size_t max);

/* How far two functions of a tree are from one another; the nearest first. */
enum facts_pci_way {
	FACTS_PCI_WAY_SWITCH,	/* they meet at a bridge of a switch */
	FACTS_PCI_WAY_PORT,	/* they meet at a root port */
	FACTS_PCI_WAY_HOST,	/* they meet at their common root complex */
	FACTS_PCI_WAY_OTHER,	/* each has a root complex of its own */
};

/*
 * Where a and b of the tree all[n] meet. *meet is the bridge, NULL when it is none. A function
 * whose bridge is not in the tree counts as one at its root complex.
 */
enum facts_pci_way facts_pci_way(const struct facts_pci *all, size_t n, const struct facts_pci *a,
				 const struct facts_pci *b, const struct facts_pci **meet);

/* The bridge above p in the tree, NULL at a root complex */
const struct facts_pci *facts_pci_above(const struct facts_pci *all, size_t n,
					const struct facts_pci *p);

/*
 * The link between a function and what is above it. For a root port or the lower port of a
 * switch, that of its slot. Speeds in MT/s (16000 is 16.0 GT/s), widths in lanes; 0: not known,
 * or the function has no link.
 */
struct facts_pci_link {
	unsigned int speed, width;		/* now */
	unsigned int max_speed, max_width;	/* what the function can */
};

/* -ENOENT: no such function */
int facts_pci_link(const char *root, const char *address, struct facts_pci_link *out);

/* Access Control Services of a bridge: the bits of the capability and of its control register */
#define FACTS_ACS_VALIDATION 0x01
#define FACTS_ACS_BLOCKING 0x02
#define FACTS_ACS_REQUEST 0x04		/* P2P Request Redirect */
#define FACTS_ACS_COMPLETION 0x08	/* P2P Completion Redirect */
#define FACTS_ACS_UPSTREAM 0x10
#define FACTS_ACS_EGRESS 0x20		/* P2P Egress Control */
#define FACTS_ACS_DIRECT 0x40
/* With one of these the bridge sends what one function sends another up to the root complex. */
#define FACTS_ACS_REDIRECT (FACTS_ACS_REQUEST | FACTS_ACS_COMPLETION | FACTS_ACS_EGRESS)

struct facts_pci_acs {
	bool readable;		/* false: without privilege the kernel shows 64 bytes only */
	bool there;		/* the function has the capability */
	uint16_t able, on;	/* FACTS_ACS_* */
};

int facts_pci_acs(const char *root, const char *address, struct facts_pci_acs *out);

/* What the IOMMU does with the addresses that a function sends. */
enum facts_iommu {
	FACTS_IOMMU_NONE,	/* the function is in no group: no IOMMU is in use */
	FACTS_IOMMU_IDENTITY,	/* they pass as they are */
	FACTS_IOMMU_DMA,	/* translated */
	FACTS_IOMMU_DMA_FQ,	/* translated, flushed late */
	FACTS_IOMMU_BLOCKED,	/* stopped, or given to user space (VFIO) */
	FACTS_IOMMU_UNKNOWN,	/* in a group whose type cannot be read */
};

struct facts_pci_iommu {
	enum facts_iommu state;
	int group;		/* -1: none */
};

int facts_pci_iommu(const char *root, const char *address, struct facts_pci_iommu *out);

/*
 * Size of the memory window of a GPU, bytes: its largest prefetchable BAR. That is BAR1 in
 * NVIDIA's words, at number 1 or 2 of the function, by generation. 0: it has none.
 */
int facts_pci_bar1(const char *root, const char *address, uint64_t *bytes);

/* One BAR of a function, 0 .. 5: start 0 where it is not set, or the function has no such one. */
int facts_pci_bar(const char *root, const char *address, unsigned int bar, uint64_t *start_bus,
		  uint64_t *bytes);

/* Text of a file of the function's folder, as facts_read; the last component of a link there. */
int facts_pci_text(const char *root, const char *address, const char *name, char *buf, size_t len);
int facts_pci_target(const char *root, const char *address, const char *name, char *buf,
		     size_t len);

/* Which way the bytes between two functions go; the kernel's P2PDMA judges by the same bridges. */
enum facts_way_kind {
	FACTS_WAY_SWITCH,	/* a bridge below the root hands them on */
	FACTS_WAY_REDIRECT,	/* they would, but ACS of a bridge sends them to the host bridge */
	FACTS_WAY_HOST,		/* through one host bridge */
	FACTS_WAY_FAR,		/* through two of them */
};

struct facts_way {
	enum facts_way_kind kind;
	char at[FACTS_PCI_ADDRESS];	/* the bridge that hands on or redirects, else "" */
	bool acs_unknown;	/* the registers could not be read: SWITCH may be REDIRECT */
};

/* a and b: elements of tree, which facts_pci_tree() filled */
void facts_way(const char *root, const struct facts_pci *tree, size_t n, const struct facts_pci *a,
	       const struct facts_pci *b, struct facts_way *out);

/* NUMA node that a PCI function is at; -1: none, or not known. */
int facts_pci_numa(const char *root, const char *address);

/*
 * Processors that this process can keep busy: those its first thread may run on, no more than
 * the quota of its control groups (root/proc/self/cgroup, root/sys/fs/cgroup) allows. 1 at least.
 */
unsigned int facts_cpus(const char *root);

/* The GPU driver that is loaded, from root/proc/driver/nvidia/version. */
struct facts_gpu_driver {
	char version[FACTS_NAME];	/* "580.95.05" */
	unsigned int major;		/* 580 */
	bool open;			/* the open kernel modules */
};

/* -ENODEV: not loaded; -EPROTO: the file says something else. */
int facts_gpu_driver(const char *root, struct facts_gpu_driver *out);

/* The library's version by what root/.../libcuda.so.1 links to, and where that is. */
int facts_libcuda(const char *root, char *version, size_t len, char *path, size_t path_len);

/*
 * What stands behind "label:" in a file of lines "label: value". Its length, or -errno; -ENODATA:
 * no such line.
 */
int facts_label(const char *root, const char *path, const char *label, char *buf, size_t len);

/* The same of root/proc/driver/nvidia/gpus/ADDRESS/information. */
int facts_gpu_info(const char *root, const char *address, const char *label, char *buf, size_t len);

/* The value of a key in "Key=1;Other=0x2", names without regard to case; false: it is not there. */
bool facts_registry(const char *list, const char *key, unsigned long *value);

/* Bit i is set when root/proc/kallsyms has names[i] (32 at most). -errno: it cannot be read. */
int64_t facts_symbols(const char *root, const char *const *names, unsigned int n);

/* Access bits of root/path, 0666 and the like. -errno: it is not there. */
int facts_mode(const char *root, const char *path);

/* The nvidia-fs module, from root/proc/driver/nvidia-fs. */
struct facts_nvfs {
	unsigned int major, minor;	/* of the ABI */
	unsigned int devcount;		/* nodes /dev/nvidia-fs0 .. */
	bool ours;			/* this project's module: it counts every sector it saw */
};

/* -ENODEV: not loaded; -EPROTO: its files say what no module says. */
int facts_nvfs_find(const char *root, struct facts_nvfs *out);

#endif /* FACTS_H */
