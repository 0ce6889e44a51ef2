#!/bin/bash
# SPDX-License-Identifier: MIT
# time: 10
# Guards that a 32-bit program can use the nodes: MAP, READ, BATCH_IO, RDMA, UNMAP, with the
# bytes compared. Fails when a structure or a pointer of such a caller is misread.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
[ -x "$t_bin/nvfs_compat32" ] || t_fail "no 32-bit client: nvfs_compat32 is not built"
t_load
t_mkfs ext4 0 /mnt
nvfs_copy make /mnt/f 2M 1 || t_fail "cannot make /mnt/f"
nvfs_compat32 /mnt/f >"$t_tmp/out" 2>&1 || t_bad "nvfs_compat32 (status $?)"
sed 's/^/  /' "$t_tmp/out"
t_check "it got to its end" grep -q '^ok  UNMAP' "$t_tmp/out"
t_unload
t_done
