#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7 debug
# time: 20
# Guards the formats of /proc/driver/nvidia-fs/*, which libraries parse. Fails when a
# line, a blank or a counter is not where the original has it.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt

t_lines() { grep -qE -- "$2" "$t_proc/$1"; }
t_check "version" test "$(cat $t_proc/version)" = "version: 2.28"
t_check "devcount" test "$(cat $t_proc/devcount)" = 16
t_check "as many nodes" test "$(find /dev -name 'nvidia-fs*' | wc -l)" = 16
t_check "nodes are 0666" test "$(stat -c %a /dev/nvidia-fs0)" = 666
for f in version devcount modules stats; do
	t_check "$f is 0444" test "$(stat -c %a $t_proc/$f)" = 444
done
t_check "modules: wekafsio is always there" t_lines modules '^wekafsio: 1$'
exec 5<>/dev/nvidia-fs0
t_check "modules: nvme is attached when a node is open" t_lines modules '^nvme: [^ ]+$'
exec 5>&-

t_check "stats: GDS Version" t_lines stats '^GDS Version: [0-9.]+ $'
t_check "stats: statistics" t_lines stats '^NVFS statistics\(ver: 4\.0\)$'
t_check "stats: driver" t_lines stats '^NVFS Driver\(version: 2\.28\.[0-9]+\)$'
t_check "stats: PeerDirect" t_lines stats '^Mellanox PeerDirect Supported: (True|False)$'
t_check "stats: IO stats" t_lines stats '^IO stats: (Enabled|Disabled), peer IO stats: (Enabled|Disabled)$'
t_check "stats: level" t_lines stats '^Logging level: (debug|info|warn)$'
t_check "stats: shadow" t_lines stats '^Active Shadow-Buffer \(MiB\): [0-9]+$'
t_check "stats: process" t_lines stats '^Active Process: [0-9]+$'
t_check "stats: Sparse" t_lines stats '^Sparse Reads.*: n=[0-9]+ io=[0-9]+ holes=[0-9]+ pages=[0-9]+'
t_check "stats: Mmap" t_lines stats '^Mmap[[:space:]]+: n=[0-9]+ ok=[0-9]+ err=[0-9]+ munmap=[0-9]+'
t_check "stats: Bar1-map" t_lines stats '^Bar1-map[[:space:]]+: n=[0-9]+ ok=[0-9]+ err=[0-9]+ free=[0-9]+ callbacks=[0-9]+ active=[0-9]+ delay-frees=[0-9]+'
t_check "stats: Error" t_lines stats '^Error[[:space:]]+: cpu-gpu-pages=[0-9]+ sg-ext=[0-9]+ dma-map=[0-9]+ dma-ref=[0-9]+'
t_check "stats: Ops" t_lines stats '^Ops[[:space:]]+: Read=[0-9]+ Write=[0-9]+'

# the counters count
nvfs_copy make /mnt/f 1M 1
ok=$(t_stat Bar1-map ok) err=$(t_stat Reads err)
t_run "a read" nvfs_try read --file /mnt/f
nvfs_try read --file /mnt/f --no-direct >/dev/null
t_check "Bar1-map ok went up by 2" test "$(t_stat Bar1-map ok)" = $((ok + 2))
t_check "Reads err went up by 1" test "$(t_stat Reads err)" = $((err + 1))
t_check "Bar1-map active is 0 again" t_wait 5 t_quiet
echo 1 >/sys/module/nvidia_fs/parameters/rw_stats_enabled
t_run "a read" nvfs_try read --file /mnt/f
t_check "Reads line with rw stats" t_lines stats '^Reads[[:space:]]+: n=1 ok=1 err=[0-9]+ readMiB=[0-9]+ io_state_err=[0-9]+'
t_check "Ops are 0 when idle" t_lines stats '^Ops[[:space:]]+: Read=0 Write=0'
echo 1 >$t_proc/stats 2>/dev/null
t_unload
t_done
