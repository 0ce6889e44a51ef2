#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace --nvme 2 --gpus 2 --topology ports --iommu on
# vm-more: --trace --nvme 2 --gpus 2
# kernels: 6.12 7 debug
# time: 40
# Guards several drives and several cards: each of the four pairs by itself, then all at
# once, also with a translating IOMMU, where each drive has its own mapping of each card.
# Fails when a byte crosses another card's BAR than the one asked for, when a pair gets
# another pair's data, or on a DMAR fault in the log.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt/a
t_mkfs xfs 1 /mnt/b
nvfs_pairs --cards 2 /mnt/a /mnt/b >"$t_tmp/out" 2>&1 || t_bad "nvfs_pairs"
sed 's/^/  /' "$t_tmp/out"
t_unload
t_done
