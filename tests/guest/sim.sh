#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The simulated GPU itself: where memory lies, poison, two cards, dying processes, unbind.
# Guards that tests which rely on it see what they think they see.
# vm: --gpus 2 --vram 128M
# kernels: 6.12 7 debug
# time: 60
. "$(dirname "$0")/lib.sh"

sim() { "$t_top/sim/run" -- sim_check "$@"; }
all_free() { [ "$(t_sim free_pages)" = "$(t_sim total_pages)" ]; }
held() { grep -q held "$t_tmp/held"; }
param() { echo "$2" >"/sys/module/gpu_sim/parameters/$1"; }

t_insmod gpu-sim
t_wait 10 test -c /dev/gpu-sim1 || t_fail "no /dev/gpu-sim1"
t_check "128 MiB each are 4096 pages" [ "$(t_sim total_pages)" = 4096 ]
t_run "VRAM is poison" sim poison
t_run "and is so again after a process died with memory" sim poison

for p in contig 2m 64k reverse alternate random:1 random:7; do
	export GPU_SIM_SCATTER=$p
	t_run "pattern $p" sim pattern "$p"
done
unset GPU_SIM_SCATTER
t_run "two cards" sim cards 2
t_run "arguments, CPU access, fork" sim access

t_check "all pages are free" all_free
for i in 1 2 3; do
	# a subshell that becomes the program, so that the kill hits it
	(exec "$t_top/sim/run" -- sim_check hold $((i * 10000000))) >"$t_tmp/held" &
	victim=$!
	t_wait 20 held || t_bad "sim_check hold did not start"
	all_free && t_bad "nothing is allocated while a process holds memory"
	rmmod gpu-sim 2>/dev/null && t_fail "rmmod succeeded under a process"
	kill -9 $victim
	wait $victim 2>/dev/null
	t_check "kill -9 leaves no page ($i)" t_wait 10 all_free
done

param fault_alloc 1:12
t_check "an allocation fails on order" bash -c "! '$t_top/sim/run' -- sim_check hold 65536 2>/dev/null"
t_run "and only one" sim access

# unbind under a process
pci=$(basename "$(dirname "$(dirname "$(grep -lx 0 /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)")")")
mkfifo "$t_tmp/go"
"$t_top/sim/run" -- sim_check gone <"$t_tmp/go" >"$t_tmp/held" 2>&1 &
victim=$!
exec 9>"$t_tmp/go"
t_wait 20 held || t_bad "sim_check gone did not start: $(<"$t_tmp/held")"
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/unbind
echo >&9
exec 9>&-
t_check "unbind under a process: errors, no crash" wait $victim
t_check "one card is left" [ "$(t_sim total_pages)" = 2048 ]
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/bind
t_run "bound again" sim cards 2

t_check "unload" timeout 30 rmmod gpu-sim
t_run "and load once more" insmod "$OPENGDS_BUILD/gpu-sim.ko"
t_run "with poison" sim poison
t_unload
t_done
