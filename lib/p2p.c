// SPDX-License-Identifier: MIT
/* p2p.c - cuFileDriverSetP2PFlags, cuFileGetBARSizeInKB: drives and GPUs, function by function. */
#include <string.h>

#define LOG_MODULE "cufio-p2p"
#include "cufile.h"
#include "driver.h"
#include "errmap.h"
#include "facts.h"
#include "gpu.h"
#include "log.h"
#include "os.h"
#include "p2p.h"

/* Of each kind of file system, a mask of CU_FILE_P2P_FLAG_*. Guarded by driver_hold. */
static unsigned int p2p[CU_FILE_MAX_TARGET_TYPES];

void p2p_forget(void)
{
	memset(p2p, 0, sizeof(p2p));
}

/*
 * Flags are kept for who asks. They allow a route that needs no permission here, and forbid none:
 * said once for each call that asks for it.
 */
CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t fsType, CUfileP2PFlags_t flags)
{
	bool open;
	int r;

	if ((unsigned int)fsType >= CU_FILE_MAX_TARGET_TYPES ||
	    ((int)flags && (int)flags != CU_FILE_P2P_FLAG_PCI_P2PDMA)) {
		log_error("cuFileDriverSetP2PFlags: file system %d, flags 0x%x: give one of the 14 and CU_FILE_P2P_FLAG_PCI_P2PDMA",
			  (int)fsType, (unsigned int)flags);
		return errmap_status(ERR(INVALID_VALUE));
	}
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	driver_configured();
	p2p[fsType] |= flags;
	driver_let_go();
	if (flags)
		log_warn("cuFileDriverSetP2PFlags: file system %d: CU_FILE_P2P_FLAG_PCI_P2PDMA is kept without effect: route p2pdma is taken by itself where it is the better one; opengds.routes chooses",
			 (int)fsType);
	return errmap_status(0);
}

CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t fsType, CUfileP2PFlags_t *flags)
{
	bool open;
	int r;

	if ((unsigned int)fsType >= CU_FILE_MAX_TARGET_TYPES || !flags)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_hold(&open);
	if (r)
		return errmap_status(r);
	driver_configured();
	*flags = p2p[fsType];
	driver_let_go();
	return errmap_status(0);
}

static int bar_size(int index, size_t *kb)
{
	uint64_t pdevinfo, bytes;
	char address[32];
	int r;

	if (index < 0 || index >= gpu->count())
		return ERR(INVALID_VALUE);
	r = gpu->pci(index, &pdevinfo, address, sizeof(address));
	if (r)
		return err_cuda(r);
	r = facts_pci_bar1(os_root, address, &bytes);
	if (r) {
		log_error("cuFileGetBARSizeInKB: /sys/bus/pci/devices/%s/resource: %s: check that /sys is mounted",
			  address, log_errno(r));
		return ERR(DEVICE_NOT_FOUND);
	}
	*kb = bytes / 1024;
	return 0;
}

CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize)
{
	int r;

	if (!barSize)
		return errmap_status(ERR(INVALID_VALUE));
	r = driver_enter();
	if (r)
		return errmap_status(r);
	r = bar_size(gpuIndex, barSize);
	driver_leave();
	return errmap_status(r);
}
