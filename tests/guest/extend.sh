#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 debug
# time: 15
# Guards the RDMA registration (what is kept, what is refused and clears), that a request runs
# beside another one of its mapping that waits (in a frozen file system), and our own ioctls:
# QUERY by clients of other sizes, RW's witness of which way the bytes went, UNMAP, which
# returns when the memory is released, with requests in flight. Fails row by row.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt
nvfs_extend --dir /mnt >"$t_tmp/out" 2>&1 || t_bad "nvfs_extend"
sed 's/^/  /' "$t_tmp/out"
t_unload
t_done
