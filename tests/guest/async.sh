#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.1 6.12 debug
# time: 40
# Guards asynchronous requests: the ioctl returns while the drive works, the fence page has
# the result before the value, one request a mapping, refusals leave the fence alone, the
# submitter's limits hold; and their ends in flight: SIGKILL, exit, munmap, cuMemFree, with
# both kinds of pins. Fails when a fence is never signalled, when a result or a byte is
# wrong, when a pin stays, or when a file system cannot be unmounted afterwards.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
rounds=${T_ROUNDS:-8}
modes='kill exit munmap free close'
! t_short || rounds=2
t_load
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	nvfs_async --dir /mnt >"$t_tmp/out" 2>&1 || t_bad "nvfs_async on $fs"
	sed "s/^/  $fs: /" "$t_tmp/out"
	t_check_pins
	t_check "Ops are 0 when idle" test "$(t_stat Ops Read)$(t_stat Ops Write)" = 00
	t_umount /mnt
done
t_unload

for pin in persistent callback; do
	flag=
	[ $pin != persistent ] || flag=--persistent
	T_NVFS="pin_mode=$pin" t_load
	t_mkfs ext4 0 /mnt
	# how a pin is freed under I/O differs with its kind; who dies does not
	! t_short || [ $pin = persistent ] || modes='kill free'
	for mode in $modes; do
		t_run "$pin: $mode, $rounds rounds" nvfs_life $mode --async --file /mnt/f \
			--rounds "$rounds" --seed $RANDOM $flag
		t_check_pins
	done
	t_unload
done
t_done
