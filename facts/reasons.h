/* SPDX-License-Identifier: MIT */
/*
 * reasons.h - the one table of reasons: why a request, a file or a buffer does not go
 * direct. Each has a stable id for people and scripts, a text and a next step.
 *
 * The ids are part of the interface (ogds_reason_id): they are never given to another
 * meaning. New ones go at the end.
 */
#ifndef FACTS_REASONS_H
#define FACTS_REASONS_H

enum facts_reason {
	REASON_NONE = 0,
	REASON_HOST_MEMORY,	/* the pointer is host memory */
	REASON_EDGE,		/* part of a block: no drive moves less */
	REASON_EOF_BLOCK,	/* the file ends inside this block */
	REASON_OFFSET_MISMATCH,	/* file offset and address differ modulo 4096 */
	REASON_NOT_REGISTERED,	/* the memory is not registered */
	REASON_FORCE_COMPAT,	/* force_compat_mode */
	REASON_ROUTE_DENIED,	/* "routes" of the configuration leaves the direct ones out */
	REASON_NO_MODULE,	/* nvidia-fs is not loaded */
	REASON_MODULE_ACCESS,	/* its nodes may not be opened */
	REASON_MODULE_NODES,	/* its nodes are not there */
	REASON_MODULE_VERSION,	/* a version that this library does not know */
	REASON_PIN_FAILED,	/* the GPU driver refused to pin the memory */
	REASON_PIN_LIMIT,	/* max_device_pinned_mem_size_kb is used up */
	REASON_MANAGED_MEMORY,	/* managed memory has no fixed place in the GPU */
	REASON_OTHER_CONTEXT,	/* memory of a CUDA context that is not the primary one */
	REASON_FS_TYPE,		/* not a file system that is known to pass pages down */
	REASON_FS_UNKNOWN,	/* the mount table does not name the file system */
	REASON_FS_JOURNAL,	/* data=journal, of the mount or of the file */
	REASON_FS_ATTRIBUTE,	/* compressed, encrypted or verity file */
	REASON_NO_ODIRECT,	/* the file cannot be opened with O_DIRECT */
	REASON_DIO_ALIGN,	/* direct I/O of this file needs more than 4 KiB alignment */
	REASON_NOT_NVME,	/* the block device is no NVMe drive */
	REASON_STACKED,		/* device mapper, md, loop: between file system and drive */
	REASON_INTEGRITY,	/* the drive wants protection information */
	REASON_MODULE_REFUSED,	/* the module refused this file */
	REASON_DIRECT_FAILED,	/* a direct request failed at run time */
	REASON_NO_STAGING,	/* no GPU memory for staging could be had */
	REASON_HOLE,		/* a hole of the file: there are no bytes on the drive */
	REASON_STRICT,		/* refused: strict is set and a whole block would not go direct */
	REASON_COMPAT_FORBIDDEN, /* refused: allow_compat_mode is false */
	REASON_ABSENT,		/* this version has no such route */
	REASON_FS_CPU,		/* the file system moved the bytes by CPU */
	REASON_USER_FS,		/* a user-space file system has no drive that is known */
	/* why stores through BAR1 are no way */
	REASON_BAR_NODES,	/* the GPU driver's nodes or files cannot be used */
	REASON_BAR_REFUSED,	/* the driver refused a step */
	REASON_BAR_NO_HANDLE,	/* this memory cannot be shared by a handle */
	REASON_BAR_PROOF,	/* a mapping did not show the memory it was made for */
	REASON_BAR_FULL,	/* there is no room in BAR1 */
	REASON_PIN_GATED,	/* the GPU driver pins only what a process lists (GeForce) */
	/* why plain requests on GPU pages are no way */
	REASON_PAGES_MODULE,	/* the module cannot map GPU pages into a process */
	REASON_PAGES_KERNEL,	/* the kernel has no pages for PCI memory */
	REASON_PAGES_MEMORY,	/* this memory has none, or they could not be mapped */
	REASON_PAGES_DEVICE,	/* the device under the file does not take them */
	REASON_BAR_SEVERAL,	/* a bar's memory is several pieces, mapped beside each other */
	REASONS
};

struct facts_reason_text {
	const char *id;		/* "R-EDGE" */
	const char *text;	/* cause, one sentence without a full stop */
	const char *remedy;	/* next step */
};

/* Never NULL; an unknown number gives an entry that says so. */
const struct facts_reason_text *facts_reason(unsigned int reason);

#endif /* FACTS_REASONS_H */
