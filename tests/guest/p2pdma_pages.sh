#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 7 debug
# core: 7
# time: 40
# Guards the P2PDMA pages of a mapping in its process (ioctl PAGES): what is refused, every byte by
# the drive and by a CPU and which of them is noted as the drive's, what a process may do with
# the range, and its ends in the middle of I/O: SIGKILL, exit, munmap of the mapping, GPU memory
# freed (persistent and callback pins), the card's driver unbound within 5 seconds. Fails row by row,
# when a page or a pin stays, when memory that was given back is written to, or when a module
# does not unload.
. "$(dirname "$0")/lib.sh"

rounds=${T_ROUNDS:-8}
! t_debug || rounds=4
[ -z "${OPENGDS_LONG:-}" ] || rounds=40
t_no_pages() { grep -qx "p2pdma_pages_mib: 0" "$t_proc/opengds"; }

export T_STOCK=y
for pin in persistent callback; do
	T_NVFS="pin_mode=$pin carriers=p2pdma" t_load
	t_mkfs ext4 0 /mnt
	if [ $pin = persistent ]; then
		flag=--persistent
		t_run "rules" nvfs_view --dir /mnt
		sed 's/^/    /' "$t_tmp/out"
	else
		flag=
	fi
	for mode in kill exit munmap free idle; do
		t_run "$pin: $mode, $rounds rounds" \
			nvfs_life $mode --file /mnt/f --rounds "$rounds" --seed $RANDOM --pages $flag
		t_check_pins
		t_check "$pin: $mode, no pages are left" t_wait 5 t_no_pages
	done
	card=$(basename "$(dirname "$(dirname "$(ls -d /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)")")")
	nvfs_copy make /mnt/g 16M 6 || t_fail "cannot make the file"
	t_run "$pin: the card's driver is unbound" timeout 60 nvfs_unbind --file /mnt/g --card "$card" --pages
	sed 's/^/    /' "$t_tmp/out"
	t_check "$pin: no pages are left" t_no_pages
	echo "$card" >/sys/bus/pci/drivers/gpu-sim/bind || t_bad "bind"
	t_wait 10 test -c /dev/gpu-sim0 || t_fail "the card did not come back"
	t_unload
done
t_done
