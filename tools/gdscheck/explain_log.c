// SPDX-License-Identifier: MIT
/*
 * explain_log.c - the lines of kernel logs and of cufile.log that tell something about this
 * stack. A kind is a few texts in order; the first kind of the table that fits a line is its
 * kind, so what is special stands before what is general.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"
#include "explain.h"
#include "reasons.h"

static const struct explain_kind kinds[] = {
	/* modules that do not fit */
	{ "symbol-version", { "disagrees about version of symbol" },
	  "a module was built for another kernel or another GPU driver than runs; it was not loaded",
	  "build it again with the Module.symvers of the running kernel and GPU driver (dkms)" },
	{ "no-symbol-version", { "no symbol version for" },
	  "a module was built without the Module.symvers of the module it needs; nothing checks that they fit",
	  "build nvidia-fs again with the GPU driver's Module.symvers" },
	{ "unknown-symbol", { "Unknown symbol" },
	  "a module needs another one that is not loaded, or whose version has no such function",
	  "load the GPU driver first; see which symbol it is" },
	{ "module-signature", { "module verification failed" },
	  "a module without a trusted signature was loaded; with Secure Boot it would be refused",
	  "sign it and enrol the key, where Secure Boot is on" },
	{ "module-rejected", { "Loading of unsigned module is rejected" },
	  "Secure Boot or lockdown refuses the module", "sign it and enrol the key (mokutil)" },
	/* our module, and NVIDIA's */
	{ "nvfs-no-gpu-driver", { "no loaded module exports" },
	  "nvidia-fs found no GPU driver when the memory was to be pinned",
	  "load the GPU driver, then open the library again" },
	{ "nvfs-pin-gated", { "nvidia-fs", "refused: -22" },
	  "the GPU driver refused the pin: no object for peers covers the memory (GeForce), or it is not aligned to 64 KiB",
	  "look at the address in the line first; gdscheck --explain-error -22" },
	{ "nvfs-pin-full", { "nvidia-fs", "refused: -12" },
	  "BAR1 has no room for the memory that was to be pinned",
	  "smaller buffers, or resizable BAR in the firmware; gdscheck --explain-error -12" },
	{ "nvfs-pin-unsupported", { "nvidia-fs", "refused: -524" },
	  "the GPU driver pins nothing here (confidential computing, MIG, a kind of pin it has not)",
	  "gdscheck --explain-error -524" },
	{ "nvfs-pin-refused", { "nvidia-fs", "MAP:", "refused:" },
	  "the GPU driver refused to pin the memory", "decode the number: gdscheck --explain-error" },
	{ "vendor-pin-failed", { "Error ret", "invoking" },
	  "NVIDIA's nvidia-fs: the GPU driver refused the pin; -22 is the answer on GeForce",
	  "gdscheck --explain-error with the number of the line" },
	{ "nvfs-user-limit", { "user ", " asked for ", "the limit is" },
	  "nvidia-fs keeps each user below a limit, and one was at it",
	  "unmap some, or raise the parameter that the line names" },
	{ "nvfs-mixed-command", { "went in one command with other memory" },
	  "GPU and host memory came into one command of the drive, so the request failed",
	  "the I/O scheduler none for this drive, or carriers=shadow" },
	{ "nvfs-not-dma", { "blocks were not moved by DMA" },
	  "a hole, or the file system copied bytes by CPU where the drive was to move them",
	  "nothing for holes; else copy the file (cp), and look at the mount options" },
	{ "nvfs-no-way", { "use host memory for it" },
	  "nvidia-fs refused the file: its drive or file system has no direct way, the line says why",
	  "what the line names; gdscheck --explain-error -95" },
	{ "nvfs-by-cpu", { "the CPU moves its bytes" },
	  "the file has no direct way: right data, moved by the CPU", "what the line names" },
	{ "nvfs-not-attached", { "nvidia-fs", "not attached" },
	  "a storage driver has no hook that fits, so its drives are not direct by the hook",
	  "load the hooked driver, or a kernel with CONFIG_PCI_P2PDMA" },
	{ "nvfs-attached", { "nvidia-fs", "attached" },
	  "a storage driver with the hook is in use: good", "nothing to do" },
	{ "nvfs-table-version", { "page table version" },
	  "the GPU driver's page table is of a version that nvidia-fs does not know",
	  "update nvidia-fs together with the GPU driver" },
	{ "nvfs-errno-line", { "nvidia-fs", "(-E" },
	  "nvidia-fs refused a call: the line names object, error and next step", "what the line says" },
	/* the GPU driver */
	{ "xid-bus", { "NVRM:", "fallen off the bus" },
	  "the GPU answers no more: power, slot, riser or overheating",
	  "reseat, look at power and AER lines; reboot" },
	{ "xid-31", { "NVRM: Xid", ": 31," },
	  "the GPU's memory management met a bad address: a program, or memory freed in use",
	  "compute-sanitizer; deregister before the free" },
	{ "xid-79", { "NVRM: Xid", ": 79," }, "the GPU fell off the bus", "power, slot, riser" },
	{ "xid", { "NVRM: Xid" }, "the GPU driver reports an error of the GPU or of a program",
	  "the number behind the address, in NVIDIA's list of Xid" },
	{ "bar1-space", { "no space for BAR1 mappings" },
	  "BAR1 has no room: pins and views of GPU memory fail with -12",
	  "smaller buffers, or resizable BAR (Above 4G Decoding) in the firmware" },
	{ "bar1-static", { "BAR1", "not large enough", "static BAR1" },
	  "static BAR1 was forced, but BAR1 is smaller than the memory: the GPU does not start",
	  "set the registry key to 2, or remove it" },
	{ "bar1-vendor", { "Inc-bar-usage failed" },
	  "the vendor's library found no room in BAR1", "smaller buffers, or resizable BAR" },
	{ "p2p-console", { "not aligned at 0x20000000" },
	  "the console's memory shifts BAR1, so GPU-to-GPU mappings do not fit (not needed for storage)",
	  "a GPU without a display" },
	{ "nvrm-p2p", { "NVRM:", "P2P" },
	  "the GPU driver about peer-to-peer between GPUs, which storage does not need",
	  "nothing for storage" },
	{ "nvrm-bar", { "NVRM:", "BAR" },
	  "the GPU driver about a BAR: often the firmware gave it no address",
	  "Above 4G Decoding on, CSM off; pci=realloc" },
	/* the IOMMU, the links */
	{ "dmar-fault", { "DMAR:", "fault addr" },
	  "the IOMMU stopped a transfer: a device used an address that was not mapped for it",
	  "with an unmapped GPU address a driver without the DMA API: iommu=pt, or the module of this project; gdscheck --topology shows the state" },
	{ "dmar-fault-old", { "DMAR:", "DMA", "Request device" },
	  "the IOMMU stopped a transfer: a device used an address that was not mapped for it",
	  "iommu=pt, or the module of this project" },
	{ "amd-vi-fault", { "AMD-Vi:", "IO_PAGE_FAULT" },
	  "the IOMMU stopped a transfer: a device used an address that was not mapped for it",
	  "iommu=pt, or the module of this project" },
	{ "aer-fatal", { "AER:", "ncorrect" },
	  "a link failed and data may be lost", "reseat, another slot or cable; the firmware's generation" },
	{ "aer", { "AER:" },
	  "a link has errors that were corrected; many of them cost speed and are a bad sign",
	  "reseat, shorter cable or riser, a lower generation" },
	{ "pcie-bus-error", { "PCIe Bus Error" }, "a link reports errors", "as for AER" },
	{ "bridge-window", { "BAR", "no space for" },
	  "the kernel found no addresses for a BAR", "Above 4G Decoding on, pci=realloc" },
	/* drives and file systems */
	{ "nvme-timeout", { "nvme", "timeout" },
	  "the drive did not answer a command", "its firmware, power states (nvme_core.default_ps_max_latency_us=0), the slot" },
	{ "nvme-down", { "nvme", "controller is down" }, "the drive was reset", "firmware, power, slot" },
	{ "nvme-error", { "nvme", "I/O Error" }, "the drive reported an error", "smartctl -a" },
	{ "nvme-status", { "nvme", "sct 0x" }, "the drive reported an error", "smartctl -a" },
	{ "block-error", { "I/O error, dev nvme" }, "a request of an NVMe drive failed", "smartctl -a; the lines around" },
	{ "medium-error", { "critical medium error, dev" }, "the drive cannot read or write a place", "smartctl -a; replace it" },
	{ "buffer-error", { "Buffer I/O error on dev" }, "a request of a block device failed", "the lines before it" },
	{ "fs-readonly", { "Remounting filesystem read-only" },
	  "the file system met an error and takes no writes", "fsck, and look at the drive" },
	{ "ext4-error", { "EXT4-fs error" }, "the file system is damaged or its drive failed", "fsck.ext4; the drive" },
	{ "xfs-error", { "XFS (", "orruption" }, "the file system is damaged", "xfs_repair" },
	{ "btrfs-csum", { "BTRFS", "csum failed" },
	  "a checksum was wrong; with a module that is not ours also because the CPU saw carriers instead of data",
	  "no direct I/O on btrfs; scrub it" },
	/* cufile.log, ours and the vendor's */
	{ "log-map-ioctl", { "nvidia-fs MAP ioctl failed" },
	  "memory was not pinned: the module refused it", "the number of the line; dmesg has the reason" },
	{ "log-reg-failed", { "cuFileBufRegister error" },
	  "a buffer was not registered; its requests go another way, or fail under strict", "the rest of the line" },
	{ "log-handle", { "cuFileHandleRegister error" },
	  "a file was not registered", "the rest of the line" },
	{ "log-freed", { "was freed while registered" },
	  "memory was freed while it was registered: its address may be another's now",
	  "cuFileBufDeregister before the free" },
	{ "log-strict", { "would not go direct, and" },
	  "a request was refused because it would not go direct", "the R- id of the line" },
	{ "log-fallback", { "done through host memory" },
	  "a direct request failed and went through host memory", "the R- id of the line" },
	{ "log-host", { "goes through host memory" },
	  "a file goes through host memory", "the R- id of the line" },
	{ "log-bar", { "no stores through BAR1" },
	  "the CPU cannot see GPU memory; the copy engine does it", "the R- id of the line" },
	{ "log-driver-open", { "cuFileDriverOpen", "allow_compat_mode" },
	  "the open failed, because there is no direct way and no other is allowed", "the R- id of the line" },
	{ "log-rdma", { "Failed to load libcufile_rdma" },
	  "the vendor's library has no RDMA part here: needed for network file systems only", "nothing to do" },
	{ "log-posix", { "POSIX" , "ompat" },
	  "the vendor's library goes through host memory (compatible mode)", "gdscheck --prove FOLDER says why" },
	{ "log-udev", { "udev" },
	  "the vendor's library did not find the drive by udev", "mount /run/udev into the container" },
	{ "log-config", { "cufile.json" }, "a word about the configuration", "correct file and line" },
	{ "log-error", { "[pid=", " ERROR " }, "an error of the library", "the rest of the line" },
	{ "log-warn", { "[pid=", " WARN " }, "a warning of the library", "the rest of the line" },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool fits(const struct explain_kind *k, const char *line)
{
	unsigned int i;

	for (i = 0; i < 3 && k->has[i]; i++) {
		line = strstr(line, k->has[i]);
		if (!line)
			return false;
		line += strlen(k->has[i]);
	}
	return true;
}

const struct explain_kind *explain_kind(const char *line)
{
	size_t i;

	for (i = 0; i < KINDS; i++)
		if (fits(&kinds[i], line))
			return &kinds[i];
	return NULL;
}

/* "-22" or "EINVAL" at p, of those that are known: the errno */
static int errno_at(const char *p)
{
	const struct facts_code *c;
	size_t i, n;

	if (*p == '-')
		p++;
	if (isdigit((unsigned char)*p)) {
		n = strtoul(p, NULL, 10);
		return n < 4096 && facts_code_errno((int)n) ? (int)n : 0;
	}
	for (i = 0; (c = facts_code_errno_at(i)); i++) {
		n = strlen(c->name);
		if (!strncmp(p, c->name, n) && !isupper((unsigned char)p[n]))
			return c->number;
	}
	return 0;
}

int explain_errno(const char *line)
{
	static const char *const before[] = {
		"refused: ", "ioctl_return: ", "Error ret ", "(-", "errno ", "error ", "ret=", ": -",
	};
	const char *p;
	size_t i;
	int e;

	for (i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		for (p = line; (p = strstr(p, before[i])); p++) {
			e = errno_at(p + strlen(before[i]));
			if (e)
				return e;
		}
	return 0;
}

static void end_line(char *line)
{
	char *p;

	for (p = line; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			*p = *p == '\n' ? '\0' : '?';
}

struct seen {
	unsigned long n;
	char *first;
};

static void tell(const struct explain_kind *k, const struct seen *s, FILE *out)
{
	const struct facts_reason_text *t;
	int e = explain_errno(s->first);
	const char *p;
	unsigned int i;

	fprintf(out, "%s, %lu line%s\n  first: %s\n  means: %s\n  next:  %s\n", k->name, s->n,
		s->n == 1 ? "" : "s", s->first, k->means, k->next);
	if (e)
		fprintf(out, "  error: -%d %s: %s\n", e, facts_code_errno(e)->name,
			facts_code_errno(e)->means);
	for (i = 1; i < REASONS; i++) {
		t = facts_reason(i);
		p = strstr(s->first, t->id);
		if (p && p[strlen(t->id)] != '-' && !isupper((unsigned char)p[strlen(t->id)]))
			fprintf(out, "  %s: %s; %s\n", t->id, t->text, t->remedy);
	}
	fputc('\n', out);
}

int gc_explain_log(FILE *in, FILE *out)
{
	struct seen seen[KINDS] = { { 0 } };
	const struct explain_kind *k;
	unsigned long lines = 0, known = 0;
	char *line = NULL;
	size_t len = 0, i;
	int status, err;

	while (getline(&line, &len, in) >= 0) {
		lines++;
		end_line(line);
		k = explain_kind(line);
		if (!k)
			continue;
		known++;
		if (!seen[k - kinds].n++)
			seen[k - kinds].first = strdup(line);
	}
	err = errno;
	status = ferror(in) ? EXPLAIN_EXIT_READ : known ? EXPLAIN_EXIT_KNOWN : EXPLAIN_EXIT_UNKNOWN;
	for (i = 0; i < KINDS; i++) {
		if (seen[i].n && seen[i].first)
			tell(&kinds[i], &seen[i], out);
		free(seen[i].first);
	}
	free(line);
	if (status == EXPLAIN_EXIT_READ)
		fprintf(out, "the log could not be read to its end: %s\n", strerror(err));
	fprintf(out, "%lu of %lu lines are known\n", known, lines);
	return status;
}
