#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7 debug
# time: 20
# Guards that rmmod of a module in use fails at once and changes nothing: nvidia-fs,
# the hooked nvme and gpu-sim while a process holds a mapping. Fails when rmmod waits,
# succeeds, or leaves a request behind that no longer works.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt

# the module's node alone keeps it
exec 5<>/dev/nvidia-fs0
t_refused() {
	local err
	err=$(LC_ALL=C timeout 3 rmmod "$1" 2>&1) && return 1
	grep -qE "in use|temporarily unavailable|busy" <<<"$err"
}
t_check "rmmod nvidia-fs with an open node" t_refused nvidia-fs
t_check "it is still there" grep -q ^version: $t_proc/version
exec 5>&-

nvfs_copy make /mnt/f 4M 1
nvfs_hold /mnt/f "$t_tmp/hold" >"$t_tmp/out" 2>&1 &
holder=$!
t_wait 10 test -e "$t_tmp/hold.ready" || t_fail "nvfs_hold: $(cat "$t_tmp/out")"
for m in nvidia-fs nvme gpu-sim; do
	t_check "rmmod $m under a mapping" t_refused $m
done
touch "$t_tmp/hold.go"
wait $holder || t_bad "requests no longer work after the refused rmmod: $(cat "$t_tmp/out")"
t_check "the holder read the right bytes" grep -q "^OK" "$t_tmp/out"
t_unload
t_check "afterwards everything unloads" test ! -d /sys/module/nvidia_fs
t_done
