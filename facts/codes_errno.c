// SPDX-License-Identifier: MIT
/* codes_errno.c - errno as the module, the kernel and the library give it. */
#include <errno.h>

#include "codes.h"
#include "cufile.h"

static const struct facts_code table[] = {
	{ EPERM, "EPERM", "not permitted; as the result of an ioctl of nvidia-fs it means nothing by itself",
	  "READ, WRITE and MAP of nvidia-fs (the true code is inside their structure); opening nodes; I/O on sealed or immutable files",
	  { { "the ioctl failed, and its structure holds the cause",
	      "the library's log line has ioctl_return with another number",
	      "decode that number instead" },
	    { "a container or seccomp profile forbids the call", "it works outside the container",
	      "pass /dev/nvidia-fs* through, and allow ioctl on them" },
	    { "the file is immutable or append-only", "lsattr shows i or a",
	      "chattr -i -a, or another file" } } },
	{ ENOENT, "ENOENT", "there is no such file or node", "opening of nodes, files, libraries",
	  { { "the nodes of the GPU driver or of nvidia-fs are not in this container",
	      "ls /dev/nvidia* inside and outside differ", "pass the nodes through" },
	    { "the module is not loaded", "lsmod has no nvidia_fs", "modprobe nvidia-fs" } } },
	{ EIO, "EIO", "the bytes did not get where they should: a drive, the GPU driver, or two kinds of memory in one command",
	  "reads and writes; MAP when the GPU driver answered nothing; the end of the GPU's driver",
	  { { "the drive reported an error", "dmesg has a line 'I/O error, dev nvme...' or 'nvme ... I/O Error'",
	      "smartctl -a of the drive; replace it or leave the place out" },
	    { "the GPU fell off or its memory went away", "dmesg has 'Xid' or 'fallen off the bus'",
	      "nvidia-smi, power and slot; restart the program" },
	    { "the link has errors", "dmesg has 'AER:' lines; aer_dev_* counters grow",
	      "reseat, another slot or cable, a lower generation in the firmware" },
	    { "a cgroup's I/O priorities joined GPU and host memory in one command",
	      "a line of nvidia-fs says 'went in one command with other memory'",
	      "use the I/O scheduler none, or carriers=shadow" } } },
	{ EBADF, "EBADF", "the descriptor is not open for this direction", "READ, WRITE; cuFileRead on a file opened for writing",
	  { { "the file is open for the other direction only", "fcntl F_GETFL, or the log's line",
	      "open it with O_RDWR" },
	    { "it was closed while in use", "strace shows the close", "deregister the handle first" } } },
	{ ENOMEM, "ENOMEM", "no room; from the pin of GPU memory it is BAR1 that is full, not the host's memory",
	  "nvidia_p2p_get_pages (MAP), mmap of a node, registrations",
	  { { "BAR1 has no room for the range and 36 MiB of reserve",
	      "nvidia-smi -q -d MEMORY: BAR1 free is less than the buffer; dmesg 'no space for BAR1 mappings'",
	      "register smaller buffers, or enable resizable BAR (Above 4G Decoding) in the firmware" },
	    { "a limit of nvidia-fs for one user", "dmesg: 'user N asked for ... the limit is'",
	      "unmap some, or raise user_max_shadow_mb or user_max_pinned_mb" },
	    { "a cgroup's or the machine's memory is used up", "dmesg has 'oom', memory.events grows",
	      "raise the limit" } } },
	{ EACCES, "EACCES", "this user may not open it", "nodes, files, folders",
	  { { "the mode or group of the nodes", "ls -l /dev/nvidia-fs0 /dev/nvidia0",
	      "join the group, or set dev_mode and dev_gid of nvidia-fs" },
	    { "the file's permissions", "ls -l of file and folders", "chmod, or another user" } } },
	{ EFAULT, "EFAULT", "an address was not the caller's, or the GPU memory behind a mapping was freed",
	  "ioctls; with a module that is not ours also a buffer freed while registered",
	  { { "the buffer was freed while it was registered", "the log says 'was freed while registered'",
	      "cuFileBufDeregister before cudaFree" },
	    { "libcuda: the attribute does not exist on this GPU (14 beside 801)",
	      "a GeForce, and the program asks for GPUDirect attributes",
	      "expected there; it is no fault of the driver" } } },
	{ EBUSY, "EBUSY", "somebody else has it just now", "a second request on one asynchronous mapping; a second registration of a process with the GPU driver",
	  { { "two asynchronous requests on one mapping", "a line of nvidia-fs says 'one fence'",
	      "wait for the first, or use another mapping" },
	    { "the process is registered with this address space already",
	      "two libraries in one process make the object", "one of them only" },
	    { "the mapping's GPU memory is going away", "a line says 'the mapping cannot be used'",
	      "register the buffer again" } } },
	{ ENODEV, "ENODEV", "there is no such device, or no driver for it", "MAP without a GPU driver; DMA mapping of a GPU that is not found",
	  { { "nvidia-fs finds no loaded GPU driver", "dmesg: 'no loaded module exports nvidia_p2p_...'",
	      "load the GPU driver (modprobe nvidia), then open the library again" },
	    { "the GPU's UUID is not found, or its function has no driver",
	      "/sys/bus/pci/devices/<GPU>/driver is missing or vfio-pci", "bind the GPU to its driver" },
	    { "the drive was unbound", "the drive's folder in /sys has no driver", "bind it" } } },
	{ EINVAL, "EINVAL", "refused as it was asked for; from the pin of GPU memory this is the answer of a GPU whose driver made no object for peers (GeForce)",
	  "nvidia_p2p_get_pages(_persistent) below MAP (dmesg: 'refused: -22', or 'Error ret -22 invoking'); READ, WRITE; open with O_DIRECT",
	  { { "address or length is not a multiple of 64 KiB, or leaves the allocation",
	      "the numbers in the line of dmesg; look at this first", "register whole allocations of cudaMalloc" },
	    { "gated: libcuda made no third-party object for this process, as on GeForce",
	      "the GPU is a GeForce and an aligned buffer of cudaMalloc fails, too (check D-04 of the doctor)",
	      "leave opengds.register_peers on: the libcufile of OpenGDS then lists the memory by itself; a patch of the kernel driver for GPU-to-GPU does not help" },
	    { "the memory was freed, or belongs to another process", "the program frees before it deregisters",
	      "deregister first" },
	    { "a file without O_DIRECT, or offsets that are no multiples of 4096 (READ, WRITE)",
	      "the line of nvidia-fs names it", "open with O_DIRECT, align" } } },
	{ EMFILE, "EMFILE", "the process has no descriptor left", "cuFileHandleRegister: a handle takes two of its own",
	  { { "ulimit -n", "ls /proc/PID/fd | wc -l is at the limit", "raise it, or deregister handles" } } },
	{ ENOTTY, "ENOTTY", "the module does not know this call", "our library on NVIDIA's module: that is how it tells them apart",
	  { { "NVIDIA's nvidia-fs is loaded", "/proc/driver/nvidia-fs/opengds is not there",
	      "nothing to do; for witnesses load the module of this project" } } },
	{ EFBIG, "EFBIG", "the file would grow too large", "writes",
	  { { "a limit of the process or the file system", "ulimit -f; df -T", "raise it" } } },
	{ ENOTBLK, "ENOTBLK", "not every block was moved by the drive, and only that was asked for",
	  "READ and WRITE of our module with 'direct only', below a request of the library",
	  { { "the range has a hole", "filefrag -v shows a gap", "nothing to do: the library reads it another way" },
	    { "the file system copied by CPU (inline data, journal, a fallback)",
	      "a line of nvidia-fs 'blocks were not moved by DMA'", "copy the file with cp, look at R-FS-CPU" } } },
	{ ENOSPC, "ENOSPC", "there is no room on the file system", "writes, fallocate",
	  { { "it is full", "df and df -i", "free some" } } },
	{ EDQUOT, "EDQUOT", "the quota of this user is used up", "writes",
	  { { "quota", "quota -s", "free some, or have it raised" } } },
	{ EROFS, "EROFS", "the file system is mounted read-only", "opening for writing",
	  { { "mounted so on purpose", "findmnt -T FILE shows ro", "mount -o remount,rw" },
	    { "an error made the kernel do it", "dmesg has 'Remounting filesystem read-only'",
	      "fsck, and look at the drive" } } },
	{ EOPNOTSUPP, "EOPNOTSUPP", "the file, its file system or the drive's driver has no direct way",
	  "READ and WRITE of nvidia-fs; open; some layers show -524 as this",
	  { { "the drive's nvme driver has no hook, and there are no P2PDMA carriers",
	      "/proc/driver/nvidia-fs/modules has no line nvme; 'driver nvme: not attached' in opengds",
	      "load the hooked nvme driver, or a kernel with CONFIG_PCI_P2PDMA" },
	    { "the file system moves bytes by CPU (tmpfs, btrfs, overlay, data=journal)",
	      "findmnt -T FILE; the line of nvidia-fs says why", "a file on ext4 (data=ordered) or XFS" },
	    { "something is between file system and drive (dm, md, loop)", "lsblk -s",
	      "the file system on the drive itself" } } },
	{ ESTALE, "ESTALE", "the descriptor names another file than the one that was registered", "READ, WRITE",
	  { { "the descriptor's number was used again", "strace shows close and open",
	      "deregister the handle before the close" },
	    { "a file system whose numbers differ (btrfs subvolumes, overlayfs)", "findmnt -T FILE",
	      "a file on ext4 or XFS" } } },
	{ EREMOTEIO, "EREMOTEIO", "no way from one PCI function to the other, or a drive's own code",
	  "pci_p2pdma_distance(), io_uring buffers of GPU pages, writes to bad sectors",
	  { { "the host bridge is not on the kernel's list, or ACS redirects",
	      "gdscheck --topology: ACS and the way of the pair",
	      "the same switch for both, ACS off for these bridges" },
	    { "the drive failed", "dmesg has an I/O error", "smartctl -a" } } },
	{ FACTS_ENOTSUPP, "ENOTSUPP", "the GPU driver does not do this here; user space may see 'Unknown error 524', some layers turn it into -95",
	  "nvidia_p2p_get_pages, nvidia_p2p_dma_map_pages",
	  { { "confidential computing or APM is on, or MIG without its object", "nvidia-smi conf-compute -f; nvidia-smi -L",
	      "turn it off, or give the process a whole GPU" },
	    { "the driver bars this chipset for DMA mappings", "GrdmaPciTopoCheckOverride is not set, the line of NVRM",
	      "both below one switch, or that registry key" },
	    { "pin_mode asks for a kind of pin that the driver has not", "the line of nvidia-fs",
	      "pin_mode=auto" } } },
};

/* System errors of open, close and registration; what is not listed is INTERNAL_ERROR. */
static const struct {
	int number, code;
} translation[] = {
	{ EBADF, CU_FILE_INVALID_VALUE },
	{ EINVAL, CU_FILE_INVALID_VALUE },
	{ EFAULT, CU_FILE_INVALID_VALUE },
	{ EACCES, CU_FILE_PERMISSION_DENIED },
	{ EPERM, CU_FILE_PERMISSION_DENIED },
	{ EROFS, CU_FILE_PERMISSION_DENIED },
	{ ENOMEM, CU_FILE_NOMEM_ERROR },
	{ EIO, CU_FILE_IO_ERROR },
	{ ENODEV, CU_FILE_DRIVER_NOT_INITIALIZED },
	{ EMFILE, CU_FILE_GETNEWFD_FAILED },
	{ ENFILE, CU_FILE_GETNEWFD_FAILED },
	{ EPROTO, CU_FILE_DRIVER_VERSION_READ_ERROR },
	{ EPROTONOSUPPORT, CU_FILE_DRIVER_VERSION_MISMATCH },
	{ EOPNOTSUPP, CU_FILE_IO_NOT_SUPPORTED },
};

const struct facts_code *facts_code_errno_at(size_t index)
{
	return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

const struct facts_code *facts_code_errno(int number)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].number == number)
			return &table[i];
	return NULL;
}

int facts_code_of_errno(int number)
{
	size_t i;

	for (i = 0; i < sizeof(translation) / sizeof(translation[0]); i++)
		if (translation[i].number == number)
			return translation[i].code;
	return CU_FILE_INTERNAL_ERROR;
}
