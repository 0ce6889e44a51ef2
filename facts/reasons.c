// SPDX-License-Identifier: MIT
/*
 * reasons.c - the table of reasons: id, cause, next step. Order and meaning are those of
 * enum facts_reason.
 */
#include "reasons.h"

#define REASON(name, id, text, remedy) [REASON_##name] = { id, text, remedy }

static const struct facts_reason_text table[] = {
	REASON(NONE, "R-NONE", "nothing stands in the way", "nothing to do"),
	REASON(HOST_MEMORY, "R-HOST-MEMORY", "the pointer is host memory",
	       "pass memory of cudaMalloc when the bytes are meant for a GPU"),
	REASON(EDGE, "R-EDGE", "part of a 4-KiB block, and no drive moves less than a block",
	       "begin and end requests at multiples of 4096 bytes of the file"),
	REASON(EOF_BLOCK, "R-EOF-BLOCK", "the file ends inside this block",
	       "nothing to do, or pad the file to a multiple of 4096 bytes"),
	REASON(OFFSET_MISMATCH, "R-OFFSET-MISMATCH",
	       "file offset and GPU address differ modulo 4096",
	       "choose both so that they leave the same remainder modulo 4096"),
	REASON(NOT_REGISTERED, "R-NOT-REGISTERED", "the memory is not registered",
	       "call cuFileBufRegister on the buffer before the first request"),
	REASON(FORCE_COMPAT, "R-FORCE-COMPAT", "force_compat_mode is set",
	       "unset CUFILE_FORCE_COMPAT_MODE and properties.force_compat_mode of cufile.json"),
	REASON(ROUTE_DENIED, "R-ROUTE-DENIED",
	       "opengds.routes of the configuration leaves the direct routes out",
	       "add \"nvfs\" and \"staged\" to opengds.routes in cufile.json, or remove the list"),
	REASON(NO_MODULE, "R-NO-MODULE", "the kernel module nvidia-fs is not loaded",
	       "run 'modprobe nvidia-fs' as root and read its lines in 'dmesg'"),
	REASON(MODULE_ACCESS, "R-MODULE-ACCESS", "/dev/nvidia-fs0 and its like may not be opened",
	       "join the group that 'ls -l /dev/nvidia-fs0' shows, or have its mode changed"),
	REASON(MODULE_NODES, "R-MODULE-NODES",
	       "nvidia-fs is loaded, but the nodes /dev/nvidia-fs* are not there",
	       "in a container pass the nodes through; else load the module again with udev running"),
	REASON(MODULE_VERSION, "R-MODULE-VERSION",
	       "the loaded nvidia-fs has a version that this library does not know",
	       "install nvidia-fs and library of one release; see /proc/driver/nvidia-fs/version"),
	REASON(PIN_FAILED, "R-PIN-FAILED", "the GPU driver refused to pin the memory",
	       "use memory of cudaMalloc and look for lines of nvidia-fs in 'dmesg'"),
	REASON(PIN_LIMIT, "R-PIN-LIMIT", "max_device_pinned_mem_size_kb is used up",
	       "deregister buffers, or raise properties.max_device_pinned_mem_size_kb"),
	REASON(MANAGED_MEMORY, "R-MANAGED-MEMORY",
	       "managed memory moves about and has no fixed place in the GPU",
	       "use cudaMalloc instead of cudaMallocManaged"),
	REASON(OTHER_CONTEXT, "R-OTHER-CONTEXT",
	       "the memory belongs to a CUDA context that is not the primary one of its GPU",
	       "allocate it with the primary context (the one of the runtime API) current"),
	REASON(FS_TYPE, "R-FS-TYPE",
	       "the file system is none that is known to pass GPU pages down to the drive",
	       "put the file on ext4 or XFS on a local NVMe drive"),
	REASON(FS_UNKNOWN, "R-FS-UNKNOWN", "the mount table does not name the file system",
	       "compare 'stat -c %d' of the file with /proc/self/mountinfo; in a container mount "
	       "the file system itself"),
	REASON(FS_JOURNAL, "R-FS-JOURNAL", "the data of the file goes through the journal",
	       "mount with data=ordered, and clear the file's flag with 'chattr -j'"),
	REASON(FS_ATTRIBUTE, "R-FS-ATTRIBUTE", "the file is compressed, encrypted or verity",
	       "see 'lsattr' and copy the file to a folder without these attributes"),
	REASON(NO_ODIRECT, "R-NO-ODIRECT", "the file cannot be opened with O_DIRECT",
	       "put the file on a file system that has O_DIRECT, as ext4 and XFS do"),
	REASON(DIO_ALIGN, "R-DIO-ALIGN", "direct I/O of this file needs more than 4 KiB alignment",
	       "make the file system with blocks of 4 KiB, on a drive with blocks of at most that"),
	REASON(NOT_NVME, "R-NOT-NVME", "the block device under the file is no NVMe drive",
	       "put the file on a file system on a local NVMe drive; 'lsblk -o NAME,TRAN' shows them"),
	REASON(STACKED, "R-STACKED",
	       "device mapper, md or a loop device is between file system and drive",
	       "put the file system on the drive or a partition of it"),
	REASON(INTEGRITY, "R-INTEGRITY", "the drive is formatted with protection information",
	       "format the namespace without it ('nvme format --pi=0' erases the drive)"),
	REASON(MODULE_REFUSED, "R-MODULE-REFUSED", "nvidia-fs refused this file",
	       "look for its line in 'dmesg' and read /proc/driver/nvidia-fs/stats"),
	REASON(DIRECT_FAILED, "R-DIRECT-FAILED", "a direct request failed when it ran",
	       "look in the log of the library for the errno and in 'dmesg' for drive and module"),
	REASON(NO_STAGING, "R-NO-STAGING", "no GPU memory for staging could be had",
	       "free GPU memory, raise opengds.staging_max_mb, or register the buffer"),
	REASON(HOLE, "R-HOLE", "a hole of the file: there are no bytes on the drive",
	       "nothing to do; write the range once when its reads must be direct"),
	REASON(STRICT, "R-STRICT",
	       "refused: strict is set and whole blocks would not have gone direct",
	       "ask ogds_explain for the cause and remove it, or unset OPENGDS_STRICT, "
	       "opengds.strict and ogds_handle_set_strict"),
	REASON(COMPAT_FORBIDDEN, "R-COMPAT-FORBIDDEN",
	       "refused: allow_compat_mode is false and there is no direct way",
	       "remove the cause, or set properties.allow_compat_mode to true"),
	REASON(ABSENT, "R-ABSENT", "this version of the library has no such route",
	       "nothing to do: the other routes are tried"),
	REASON(FS_CPU, "R-FS-CPU",
	       "the file system moved the bytes by CPU instead of handing them to the drive",
	       "look for the line of nvidia-fs in 'dmesg'; copying the file may mend it (cp)"),
	REASON(USER_FS, "R-USER-FS", "the file is one of a user-space file system, which no drive is known of",
	       "nothing to do: its read and write are called with host memory"),
	REASON(BAR_NODES, "R-BAR-NODES", "the nodes or files of the GPU driver cannot be used",
	       "let the program open /dev/nvidiactl and /dev/nvidia0 and read /proc/driver/nvidia "
	       "and /sys; the copy engine does it meanwhile"),
	REASON(BAR_REFUSED, "R-BAR-REFUSED", "the GPU driver refused to show the CPU its memory",
	       "look for 'NVRM' in dmesg and report the driver's version with this status; the copy "
	       "engine does it meanwhile"),
	REASON(BAR_NO_HANDLE, "R-BAR-NO-HANDLE",
	       "this GPU memory has no handle: of a pool (cuMemAllocAsync), managed, or of cuMemCreate "
	       "without one",
	       "allocate it with cudaMalloc, or cuMemCreate with "
	       "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR; the copy engine does it meanwhile"),
	REASON(BAR_PROOF, "R-BAR-PROOF",
	       "a mapping of GPU memory did not show what CUDA had written there",
	       "report the driver's version; nothing was lost, the copy engine does it"),
	REASON(BAR_FULL, "R-BAR-FULL", "there is no room in the GPU's BAR1 for this buffer",
	       "register smaller buffers, or enable resizable BAR in the firmware; the copy engine "
	       "does it meanwhile"),
	REASON(PIN_GATED, "R-PIN-GATED",
	       "the GPU driver refuses to pin this memory (-22), as on GeForce, and it could not be "
	       "listed for nvidia-fs",
	       "leave \"register_peers\" on, allocate with cudaMalloc (or cuMemCreate for a "
	       "descriptor), and look for 'listed' in the log; docs/geforce.md"),
	REASON(PAGES_MODULE, "R-PAGES-MODULE",
	       "this nvidia-fs cannot map GPU pages into a process",
	       "load the module of this project and version"),
	REASON(PAGES_KERNEL, "R-PAGES-KERNEL",
	       "the kernel has no pages for PCI memory, or not as nvidia-fs was built for",
	       "use a kernel with CONFIG_PCI_P2PDMA (Debian's 6.17 and later) and build the module "
	       "for it; /proc/driver/nvidia-fs/opengds tells which it was"),
	REASON(PAGES_MEMORY, "R-PAGES-MEMORY",
	       "this GPU memory has no P2PDMA pages, or they could not be mapped",
	       "look for the cause in the log of the library and at 'p2pdma' in "
	       "/proc/driver/nvidia-fs/opengds; carriers=p2pdma of the module asks for them"),
	REASON(PAGES_DEVICE, "R-PAGES-DEVICE",
	       "the kernel lets no peer-to-peer transfer to this GPU through the device under the file",
	       "put the file on an NVMe drive, or on md 0, 1 or 10 of such, below one switch or a "
	       "host bridge that the kernel allows; 'dmesg' may name the parameter"),
	REASON(BAR_SEVERAL, "R-BAR-SEVERAL",
	       "this GPU memory is several pieces that cuMemMap put beside each other",
	       "register what each cuMemMap mapped by itself, or allocate it in one piece; the copy "
	       "engine does it meanwhile"),
};

_Static_assert(sizeof(table) / sizeof(*table) == REASONS, "a reason is without its texts");

const struct facts_reason_text *facts_reason(unsigned int reason)
{
	static const struct facts_reason_text unknown = {
		"R-UNKNOWN", "a reason that this version does not know",
		"update the program and the library together",
	};

	return reason < REASONS && table[reason].id ? &table[reason] : &unknown;
}
