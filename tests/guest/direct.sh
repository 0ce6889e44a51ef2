#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace
# kernels: 6.1 6.12 7 debug
# core: 7
# time: 60
# Guards the direct path: a drive reads a file into GPU memory and writes GPU memory into
# a file, ext4 and xfs, 4 KiB to 24 MiB, windows smaller and larger than the buffer.
# Fails when GPU memory was not poisoned before, when its content afterwards, seen from
# outside the guest, is not the file's (poison around it included), or when the
# controllers moved one byte more or less than asked for over the card's BAR.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
quick=
! t_short || quick=--quick
t_load
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	nvfs_direct --dir /mnt $quick >"$t_tmp/out" 2>&1 || t_bad "nvfs_direct on $fs"
	sed "s/^/  $fs: /" "$t_tmp/out"
	t_umount /mnt
done
t_unload
t_done
