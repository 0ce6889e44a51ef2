#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 7
# core: none
# vm: --trace
# time: 90
# Guards P2PDMA carriers where the GPU's driver has made the pages of its BAR itself (gpu-sim's
# own_pages=1, NVIDIA's driver with a static BAR1): the module uses those, adds none and
# keeps none from going, so the driver is unbound under I/O within 5 seconds; a process gets none of
# them, with the reason; where the driver has the BAR mapped write-combined they are refused as
# ours are. Fails when a byte is wrong or goes by a CPU, when a reason is another, and when
# something hangs or stays.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_p2pdma.sh"

t_bound() {
	echo "$card" >/sys/bus/pci/drivers/gpu-sim/bind || t_bad "bind"
	t_wait 10 test -c /dev/gpu-sim0 || t_fail "the card did not come back"
}

t_start y own_pages=1 ""
card=$(basename "$(dirname "$(dirname "$(ls -d /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)")")")
t_check "the driver has pages" test "$(<"/sys/bus/pci/devices/$card/p2pmem/size")" -gt 0
t_check "a direct request" t_direct
nvfs_direct --dir /mnt --quick >"$t_tmp/out" 2>&1 || t_bad "nvfs_direct"
sed "s/^/  /" "$t_tmp/out"
out=$(nvfs_try read --file /mnt/f --size 1M --seed 5 --direct-only --carriers auto --pages 2>&1)
t_check "its pages are the carriers" grep -q "^CARRIERS p2pdma" <<<"$out"
t_check "a process gets none of them" \
	grep -q "^PAGES EOPNOTSUPP: the GPU's driver has made the pages" <<<"$out"
t_check "none is ours" grep -qx "p2pdma_pages_mib: 0" $t_proc/opengds
for round in 1 2; do
	nvfs_copy make /mnt/g 16M 6 || t_fail "cannot make the file"
	t_run "the driver is unbound under I/O, round $round" \
		timeout 60 nvfs_unbind --file /mnt/g --card "$card"
	t_check "its pages went" test ! -e "/sys/bus/pci/devices/$card/p2pmem"
	t_bound
	t_check "bound again: a direct request" t_direct
done
t_unload

t_start y "own_pages=1 wc=1" ""
t_refused "the driver's pages, write-combined" "write-combined"
t_unload
t_done
