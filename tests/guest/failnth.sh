#!/bin/bash
# SPDX-License-Identifier: MIT
# expect-log: I/O error, dev nvme0n1, sector
# expect-log: kobject_add_internal failed for [a-z0-9_-]+ \(error: -12 parent
# kernels: debug
# time: 200
# time-long: 400
# Guards every error path that an allocation, a copy from or to the user, or a place of
# nvfs_inject_fault/ leads to: in each kind of call the first of them fails, then the second,
# and so on. Fails when something is left, when the same call does not work afterwards, when
# bytes are wrong in spite of success, or on a bad line in the log. The long form lets the
# loading of the module fail everywhere, too; the short one only where its own work is.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
[ -e /proc/self/fail-nth ] || t_skip "kernel $OPENGDS_KERNEL has no CONFIG_FAULT_INJECTION"
t_debugfs

# t_faults: what may fail at all, and quietly; allocations that can wait as well
t_faults() {
	local d
	for d in failslab fail_page_alloc fail_usercopy; do
		echo 0 >/sys/kernel/debug/$d/verbose || t_fail "no /sys/kernel/debug/$d"
	done
	echo 0 >/sys/kernel/debug/failslab/ignore-gfp-wait
	echo "$1" >/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait
	echo 0 >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem
	echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
	for d in /sys/kernel/debug/nvfs_inject_fault/*/verbose; do
		[ ! -e "$d" ] || echo 0 >"$d"
	done
}

t_load
t_mkfs ext4 0 /mnt
t_faults 0
GPU_SIM_SCATTER=random:3 nvfs_failnth --dir /mnt >"$t_tmp/out" 2>&1 || t_bad "nvfs_failnth"
sed 's/^/  /' "$t_tmp/out"
t_check "every kind of call came to its end" test "$(grep -cE '^ok ' "$t_tmp/out")" = 17

# pages that the loader waits for are left out: there are thousands, none of them ours
t_umount_all
t_debugfs
t_faults 1
rmmod nvidia-fs || t_bad "rmmod nvidia-fs"
t_tracefs
cp "$OPENGDS_BUILD/nvidia-fs.ko" "$t_tmp/nvidia-fs.ko"
from=init
[ -z "${OPENGDS_LONG:-}" ] || from=1
nvfs_failnth --module "$t_tmp/nvidia-fs.ko" --from $from >"$t_tmp/out" 2>&1 ||
	t_bad "nvfs_failnth --module"
sed 's/^/  /' "$t_tmp/out"
t_check "the loading came to its end" test "$(grep -cE '^ok ' "$t_tmp/out")" = 1
t_insmod nvidia-fs
t_unload
t_done
