#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 7 debug
# time: 20
# Guards the ioctl ABI: return conventions, codes, the place they stand at, the order of
# checks, and that a refused call leaves the mapping usable. Fails row by row, each named.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt
nvfs_abi --file /mnt/f >"$t_tmp/out" 2>&1 || t_bad "nvfs_abi"
sed 's/^/  /' "$t_tmp/out"
t_unload
t_done
