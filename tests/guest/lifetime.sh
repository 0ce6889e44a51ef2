#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --cpus 2
# vm: --topology ports --iommu on
# kernels: 6.1 6.12 7 debug
# time: 60
# Guards the ends of a mapping in the middle of I/O: SIGKILL, exit, munmap, cuMemFree and
# closing the nodes, many rounds, with persistent and with callback pins; with a
# translating IOMMU DMA to memory whose mapping is gone is a DMAR fault in the log. Fails
# when the log has a fault or a splat, when a pin or a DMA mapping stays, when a module does
# not unload, when a request returns wrong or fewer bytes, or when memory given back is
# written to.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
rounds=${T_ROUNDS:-25}
[ "$OPENGDS_KERNEL" != debug ] || rounds=8
for pin in persistent callback; do
	flag=
	[ $pin != persistent ] || flag=--persistent
	T_NVFS="pin_mode=$pin" t_load
	t_mkfs ext4 0 /mnt
	for mode in kill exit munmap free close; do
		t_run "$pin: $mode, $rounds rounds" \
			nvfs_life $mode --file /mnt/f --rounds "$rounds" --seed $RANDOM $flag
		t_check_pins
	done
	t_unload
done
t_done
