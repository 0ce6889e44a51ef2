#!/bin/bash
# SPDX-License-Identifier: MIT
# time: 20
# Guards the list of holes in the fence page: which blocks, relative to which offset, its
# state, magic and limit of 768, for synchronous and asynchronous reads. Fails when a hole is
# missing or wrong, when a block with data is listed, or when a read that succeeds left other
# bytes than the file's.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	nvfs_sparse --dir /mnt >"$t_tmp/out" 2>&1 || t_bad "nvfs_sparse on $fs"
	sed "s/^/  $fs: /" "$t_tmp/out"
	t_umount /mnt
done
t_unload
t_done
