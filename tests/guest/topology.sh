#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace --nvme 2 --gpus 2 --topology ports --iommu on
# vm-more: --trace --topology ports
# vm-more: --trace --topology ports --iommu pt
# kernels: 6.12 7 debug
# time: 30
# Guards the direct path where card and drive have a root port each: without an IOMMU,
# with one that passes through, and with one that translates (addresses in the trace are
# then resolved through it). Fails as direct.sh does, and on a DMAR fault in the log.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt
nvfs_direct --dir /mnt --quick >"$t_tmp/out" 2>&1 || t_bad "nvfs_direct"
sed 's/^/  /' "$t_tmp/out"
t_unload
t_done
