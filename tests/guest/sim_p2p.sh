#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# nvidia_p2p_* of the simulated driver, called from a kernel module: page tables, both kinds
# of pins, the free callback and what races with it, DMA mappings, faults on order, unbind.
# Guards the ground that the tests of nvidia-fs stand on.
# vm: --gpus 2 --vram 64M
# kernels: 6.12 7 debug
# time: 240
# shellcheck disable=SC2317 # functions are called by t_check and t_run
. "$(dirname "$0")/lib.sh"

p2p() { "$t_top/sim/run" -- sim_p2p "$@"; }
card() {
	local file
	file=$(grep -lx "$1" /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)
	basename "${file%/gpu_sim/index}"
}
load() {
	t_insmod gpu-sim "$@"
	t_insmod gpu-sim-test
	t_wait 10 test -c /dev/gpu-sim0 -a -c /dev/gpu-sim-test || t_fail "no device nodes"
}
unload() {
	t_check "no pins are left" [ "$(t_sim pins)" = 0 ]
	t_check "no DMA mappings are left" [ "$(t_sim dma_maps)" = 0 ]
	t_check "all pages are free" [ "$(t_sim free_pages)" = "$(t_sim total_pages)" ]
	t_check "unload" rmmod gpu-sim-test gpu-sim
}
ended() {
	local status=$?
	rmmod gpu-sim-test 2>/dev/null
	(exit "$status")
	t_cleanup
}
trap ended EXIT

load
peer=$(card 1)
for p in contig 64k random:3; do
	export GPU_SIM_SCATTER=$p
	t_run "pins, callbacks and mappings ($p)" p2p pins "$peer"
	sed 's/^/    /' "$t_tmp/out"
done
unset GPU_SIM_SCATTER
t_run "faults on order" p2p faults
t_run "races of put and map against free" p2p race "$peer" 5
sed 's/^/    /' "$t_tmp/out"
c=$(card 0)
t_run "unbind with pins" p2p unbind "$c"
echo "$c" >/sys/bus/pci/drivers/gpu-sim/bind
unload
for m in persistent callback; do
	load pin_mode=$m
	t_run "pin_mode=$m" p2p mode $m
	unload
done
refused() { ! insmod "$OPENGDS_BUILD/gpu-sim.ko" pin_mode=no 2>/dev/null; }
t_check "a wrong pin_mode is refused" refused
t_done
