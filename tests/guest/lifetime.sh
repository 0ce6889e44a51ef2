#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace --nvme 2 --gpus 2 --topology ports --iommu on
# vm-more: --cpus 2
# kernels: 6.1 6.12 7 debug
# time: 60
# Guards the ends of a mapping in the middle of I/O: SIGKILL, exit, munmap, cuMemFree and
# closing the nodes, many rounds, with persistent and with callback pins; with a
# translating IOMMU DMA to memory whose mapping is gone is a DMAR fault in the log. Fails
# when the log has a fault or a splat, when a pin or a DMA mapping stays, when a module does
# not unload, when a request returns wrong or fewer bytes, or when memory given back is
# written to, and when the counters of MAP do not say what happened: each mapping that was made
# is given back; persistent pins have no free callbacks; callback pins have one for each free
# under the mapping, and of these `delay-frees` had to wait for a request, none when idle.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
rounds=${T_ROUNDS:-25}
! t_short || rounds=8

# counters: those of Bar1-map that the ends of mappings move
counters() {
	local field
	for field in ok free callbacks delay-frees; do t_stat Bar1-map $field; done
}
# moved PIN MODE: a row of how far they went since `before`, and what must be true of it
moved() {
	local -a now d
	local i
	mapfile -t now < <(counters)
	for i in 0 1 2 3; do d[i]=$((now[i] - before[i])); done
	t_say "  $1 $2: ok +${d[0]} free +${d[1]} callbacks +${d[2]} delay-frees +${d[3]}"
	[ "${d[0]}" -ge "$rounds" ] && [ "${d[1]}" = "${d[0]}" ] || return 1
	case $1-$2 in
	persistent-*) [ "${d[2]}" = 0 ] && [ "${d[3]}" = 0 ] ;;
	callback-free) [ "${d[2]}" = "$rounds" ] && [ "${d[3]}" -ge 1 ] && [ "${d[3]}" -le "${d[2]}" ] ;;
	callback-idle) [ "${d[2]}" = "$rounds" ] && [ "${d[3]}" = 0 ] ;;
	# who is first, the unmapping or the end of the memory, is a matter of luck
	callback-*) [ "${d[2]}" -le "${d[0]}" ] && [ "${d[3]}" -le "${d[2]}" ] ;;
	esac
}

for pin in persistent callback; do
	flag=
	[ $pin != persistent ] || flag=--persistent
	T_NVFS="pin_mode=$pin" t_load
	t_mkfs ext4 0 /mnt
	for mode in kill exit munmap free idle close; do
		mapfile -t before < <(counters)
		t_run "$pin: $mode, $rounds rounds" \
			nvfs_life $mode --file /mnt/f --rounds "$rounds" --seed $RANDOM $flag
		t_check_pins
		t_check "$pin: $mode, the counters" moved $pin $mode
	done
	t_unload
done
t_done
