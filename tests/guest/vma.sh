#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7 debug
# time: 15
# Guards what a process may do to its mapping: munmap or mprotect of a part, mremap,
# MADV_DONTNEED, touches, fork. Fails when the kernel warns, when the wrong errno comes
# back, or when the mapping no longer works after a refused call.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt
nvfs_vma --file /mnt/f >"$t_tmp/out" 2>&1 || t_bad "nvfs_vma"
sed 's/^/  /' "$t_tmp/out"
t_unload
t_done
