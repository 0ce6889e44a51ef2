#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 7 debug
# core: 7
# time: 60
# Guards the life of P2PDMA pages: the GPU's driver is unbound under I/O within 5 seconds,
# requests end with EIO or EBUSY and none succeeds afterwards; bound again, all works; parts of
# the BAR are given back with their last mapping, so nothing of them can be had from a pool; the
# card can go under mappings, and the modules can. Fails when something hangs, stays or moves.
. "$(dirname "$0")/lib.sh"

t_no_pages() { grep -qx "p2pdma_pages_mib: 0" $t_proc/opengds; }
t_direct() {
	local out
	out=$(nvfs_try read --file /mnt/f --size 1M --buffer 1M --seed 5 --direct-only 2>&1)
	grep -q "^GPU pattern" <<<"$out" || { t_say "$out"; return 1; }
}

T_STOCK=y t_load
t_mkfs ext4 0 /mnt
nvfs_copy make /mnt/f 16M 5 || t_fail "cannot make the file"
t_check "a direct request" t_direct
t_check "its pages are gone with it" t_no_pages
card=$(basename "$(dirname "$(dirname "$(ls -d /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)")")")
for mode in auto callback; do
	t_say "pin_mode $mode"
	t_umount_all
	rmmod nvidia-fs || t_fail "rmmod nvidia-fs"
	t_insmod nvidia-fs pin_mode=$mode
	t_wait 10 test -c /dev/nvidia-fs0 || t_fail "no /dev/nvidia-fs0"
	t_mount ext4 "$(t_drive 0)" /mnt
	for round in 1 2 3; do
		nvfs_copy make /mnt/g 16M 6 || t_fail "cannot make the file"
		timeout 60 "$t_bin/nvfs_unbind" --file /mnt/g --card "$card" >"$t_tmp/out" 2>&1 ||
			t_bad "unbind under I/O, round $round: status $?"
		sed 's/^/    /' "$t_tmp/out"
		t_check "no pages are left" t_no_pages
		echo "$card" >/sys/bus/pci/drivers/gpu-sim/bind || t_bad "bind"
		t_wait 10 test -c /dev/gpu-sim0 || t_fail "the card did not come back"
		t_check "bound again: a direct request" t_direct
	done
done
# without a pool, or with one of which we have all: nothing can be had of p2pmem/allocate
t_no_pool() { [ ! -e "$1" ] || [ "$(<"$1/available")" = 0 ]; }
t_check "no pool, or nothing in it" t_no_pool "/sys/bus/pci/devices/$card/p2pmem"
t_unload
t_done
