#!/bin/bash
# SPDX-License-Identifier: MIT
# expect-log: I/O error, dev nvme0n1, sector
# kernels: debug
# time: 60
# Guards the places of debugfs nvfs_inject_fault/: each fails once in each kind of call, also
# in the middle of a request of many segments. Fails when the call returns another code than
# the place's, when it does not reach its place, when the same call does not work afterwards,
# or when a pin, a DMA mapping, a reference or a request is left (nvfs_fault).
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_debugfs
[ -d /sys/kernel/debug/nvfs_inject_fault ] ||
	t_skip "kernel $OPENGDS_KERNEL has no CONFIG_FAULT_INJECTION_DEBUG_FS"
t_mkfs ext4 0 /mnt
# each 64-KiB page anywhere in the card: a segment each
GPU_SIM_SCATTER=random:3 nvfs_fault --dir /mnt >"$t_tmp/out" 2>&1 || t_bad "nvfs_fault"
sed 's/^/  /' "$t_tmp/out" | grep -vE '^  ok ' | tail -n 40
t_say "  $(grep -c '^ok ' "$t_tmp/out") cases ok"
t_check "all cases ran" test "$(grep -cE '^(ok|BAD) ' "$t_tmp/out")" = 132
t_unload
t_check "the folder went with the module" test ! -e /sys/kernel/debug/nvfs_inject_fault
t_done
