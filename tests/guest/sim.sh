#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The simulated GPU itself: where memory lies, poison, two cards, dying processes, unbind.
# Guards that tests which rely on it see what they think they see.
# vm: --gpus 2 --vram 64M
# kernels: 6.12 7 debug
# time: 180
# shellcheck disable=SC2317 # functions are called by t_check and t_run
. "$(dirname "$0")/lib.sh"

sim() { "$t_top/sim/run" -- sim_check "$@"; }
all_free() { [ "$(t_sim free_pages)" = "$(t_sim total_pages)" ]; }
held() { grep -q held "$t_tmp/held"; }
param() { echo "$2" >"/sys/module/gpu_sim/parameters/$1"; }

t_insmod gpu-sim
t_wait 10 test -c /dev/gpu-sim1 || t_fail "no /dev/gpu-sim1"
t_check "64 MiB each are 2048 pages" [ "$(t_sim total_pages)" = 2048 ]
t_run "VRAM is poison" sim poison
t_run "and is so again after a process died with memory" sim poison

for p in contig 2m 64k reverse alternate random:1; do
	export GPU_SIM_SCATTER=$p
	t_run "pattern $p" sim pattern "$p"
done
unset GPU_SIM_SCATTER
t_run "two cards" sim cards 2
t_run "arguments, CPU access, fork" sim access

t_check "all pages are free" all_free
for i in 1 2; do
	rm -f "$t_tmp/held"
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
fails() { timeout 20 "$t_top/sim/run" -- sim_check hold 65536 2>&1 | grep -q OUT_OF_MEMORY; }
t_check "an allocation fails on order" fails
t_run "and only one" sim access

# unbind under a process
index=$(grep -lx 0 /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)
pci=$(basename "${index%/gpu_sim/index}")
rm -f "$t_tmp/held"
mkfifo "$t_tmp/go"
"$t_top/sim/run" -- sim_check gone <"$t_tmp/go" >"$t_tmp/held" 2>&1 &
victim=$!
exec 9>"$t_tmp/go"
t_wait 20 held || t_bad "sim_check gone did not start: $(<"$t_tmp/held")"
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/unbind
echo >&9
exec 9>&-
t_check "unbind under a process: errors, no crash" wait $victim
t_check "one card is left" [ "$(t_sim total_pages)" = 1024 ]
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/bind
t_run "bound again" sim cards 2

# and pull the card
rm -f "$t_tmp/held"
(exec "$t_top/sim/run" -- sim_check hold 3000000) >"$t_tmp/held" &
victim=$!
t_wait 20 held || t_bad "sim_check hold did not start"
echo 1 >"/sys/bus/pci/devices/$pci/remove"
kill -9 $victim
wait $victim 2>/dev/null
t_check "one card is left" [ "$(t_sim total_pages)" = 1024 ]
echo 1 >/sys/bus/pci/rescan
t_wait 20 test -c /dev/gpu-sim0 || t_bad "the card did not come back"
t_run "plugged in again" sim cards 2

t_check "unload" timeout 30 rmmod gpu-sim
t_run "and load once more" insmod "$OPENGDS_BUILD/gpu-sim.ko"
t_run "with poison" sim poison
t_unload
t_done
