#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --gpus 2 --vram 64M
# kernels: 6.12 7 debug
# time: 60
# Guards the simulated GPU's resource manager, by which lib/rm maps GPU memory and lists it for
# other drivers (there with the answers of a real one, tests/gpu/peers): that it answers
# what it is asked, refuses what is wrong by the status and not by accident, shows each byte of
# memory where it lies, in each pattern of pages, keeps memory that has a second name, and gives
# back what was freed, closed or killed. Fails when a request has another answer, a mapping shows
# another byte or one of memory that is somebody else's by now, when a page or a name stays, or when the
# module unloads under an open node or an unbound card does more to a mapping than make it fault.
. "$(dirname "$0")/lib.sh"

sim() { "$t_top/sim/run" -- sim_rm "$@"; }
all_free() { [ "$(t_sim free_pages)" = "$(t_sim total_pages)" ]; }
nothing_named() { [ "$(t_sim rm_names)" = 0 ] && [ "$(t_sim rm_views)" = 0 ]; }
held() { grep -q held "$t_tmp/held"; }

t_insmod gpu-sim
t_wait 10 test -c /dev/nvidia1 || t_fail "no /dev/nvidia1"
for p in contig 2m 64k alternate random:5; do
	export GPU_SIM_SCATTER=$p
	t_run "requests and memory, pattern $p" sim check
	t_check "all pages are free" t_wait 10 all_free
	t_check "no name and no view is left" t_wait 10 nothing_named
done
unset GPU_SIM_SCATTER

# the same program, asked of a real driver: what it answered there
"$t_top/sim/run" -- "$t_top/build/host/tests/gpu/peers/peers" >"$t_tmp/peers" 2>&1 ||
	t_bad "peers: status $?"
grep -vE '^GPU |^    at ' "$t_tmp/peers" >"$t_tmp/answers"
t_check "memory for peers: each answer is driver 580's" \
	diff "$t_top/tests/fixtures/rm/peers-580" "$t_tmp/answers"
t_check "no name is left of it" t_wait 10 nothing_named
t_run "memory of cuMemCreate for peers, by a descriptor" \
	"$t_top/sim/run" -- "$t_top/build/host/tests/gpu/peers/exported"
t_check "no name and no page is left of it" eval 't_wait 10 nothing_named && t_wait 10 all_free'

# hold: a process with a mapping of card 0, which goes on when it reads a line
hold() {
	rm -f "$t_tmp/held" "$t_tmp/go"
	mkfifo "$t_tmp/go"
	(exec "$t_top/sim/run" -- sim_rm gone) <"$t_tmp/go" >"$t_tmp/held" 2>&1 &
	victim=$!
	exec 9>"$t_tmp/go"
	t_wait 20 held || t_fail "sim_rm gone did not start: $(<"$t_tmp/held")"
}

hold
rmmod gpu-sim 2>/dev/null && t_fail "rmmod succeeded under a mapping"
t_check "a name and a view" [ "$(t_sim rm_names)$(t_sim rm_views)" = 11 ]
kill -9 $victim
wait $victim 2>/dev/null
exec 9>&-
t_check "kill -9 leaves no name" t_wait 10 nothing_named
t_check "and no page" t_wait 10 all_free

hold
index=$(grep -lx 0 /sys/bus/pci/drivers/gpu-sim/*/gpu_sim/index)
pci=$(basename "${index%/gpu_sim/index}")
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/unbind
t_check "its file in /proc is gone" [ ! -e "/proc/driver/nvidia/gpus/$pci" ]
echo >&9
exec 9>&-
t_check "unbind under a mapping: it faults, and no more" wait $victim
sed 's/^/  /' "$t_tmp/held"
echo "$pci" >/sys/bus/pci/drivers/gpu-sim/bind
t_run "bound again" sim check

t_check "unload" timeout 30 rmmod gpu-sim
t_check "what /proc told is gone" [ ! -e /proc/driver/nvidia ]
t_insmod gpu-sim rm=0
t_check "rm=0: no node" [ ! -e /dev/nvidiactl ]
t_check "rm=0: nothing in /proc" [ ! -e /proc/driver/nvidia ]
t_unload
t_done
