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
for f in version devcount modules stats peer_distance peer_affinity bridges; do
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
t_check "stats: Ops" t_lines stats '^Ops[[:space:]]+: Read=[0-9]+ Write=[0-9]+ BatchIO=[0-9]+$'
t_check "fs/nvfs leads there" test "$(cat /proc/fs/nvfs/version)" = "version: 2.28"

# one row for each GPU and each drive or adapter; addresses are those of sysfs
t_cards() { find /sys/bus/pci/drivers/gpu-sim -name '*:*' | wc -l; }
t_peers() { grep -lE '^0x(010802|0200..|0207..)' /sys/bus/pci/devices/*/class | wc -l; }
t_addr='[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]'
t_check "peer_distance: header" test "$(head -1 $t_proc/peer_distance)" = \
	$'gpu\t\tpeer\t\tpeerrank\tp2pdist\tlink\tgen\tnuma\tnp2p\tclass'
t_check "peer_distance: rows" test "$(tail -n +2 $t_proc/peer_distance | \
	grep -cE "^$t_addr \\s$t_addr \\s0x[0-9a-f]{8}\\s0x[0-9a-f]{4}(\\s0x[0-9a-f]{2}){3}\\s[0-9]+\\s(nvme|network)\$")" = \
	$(($(t_cards) * $(t_peers)))
t_check "peer_affinity: empty without peer stats" test ! -s <(cat $t_proc/peer_affinity)
# bridges: those whose ACS control has a bit set, as lspci or setpci would find them
t_check "bridges: addresses only" test "$(grep -vcE "^$t_addr\$" $t_proc/bridges)" = 0

# the counters count
nvfs_copy make /mnt/f 1M 1
ok=$(t_stat Bar1-map ok) err=$(t_stat Reads err)
t_run "a read" nvfs_try read --file /mnt/f
nvfs_try read --file /mnt/f --no-direct >/dev/null
t_check "Bar1-map ok went up by 2" test "$(t_stat Bar1-map ok)" = $((ok + 2))
t_check "Reads err went up by 1" test "$(t_stat Reads err)" = $((err + 1))
t_check "Bar1-map active is 0 again" t_wait 5 t_quiet

# who reached whom is counted on demand, for the pair that it was
gpu=$(basename "$(echo /sys/bus/pci/drivers/gpu-sim/*:*)")
t_check "stats: the GPU" t_lines stats "^GPU $gpu  uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} : Registered_MiB=0 Cache_MiB=0 max_pinned_MiB=[0-9]+ \$"
echo 1 >/sys/module/nvidia_fs/parameters/peer_stats_enabled
t_run "a read" nvfs_try read --file /mnt/f
nvme=$(basename "$(readlink -f "/sys/block/$(basename "$(t_drive 0)")/device/device")")
t_check "peer_distance: np2p of the pair" test \
	"$(awk -v g="$gpu" -v p="$nvme" '$1 == g && $2 == p { print $8 }' $t_proc/peer_distance)" = 1
t_check "peer_affinity: it is there, once" test "$(sed -n "s/^GPU :$gpu ://p" $t_proc/peer_affinity | \
	tr -s ' ' '\n' | awk 'NF { n++; s += $1 } END { print n, s }')" = "33 1"
t_check "stats: crossing" t_lines stats "^GPU $gpu .*max_pinned_MiB=[0-9]+ cross_root_port\(%\)=[0-9]+\$"
echo 0 >/sys/module/nvidia_fs/parameters/peer_stats_enabled
echo 1 >/sys/module/nvidia_fs/parameters/rw_stats_enabled
t_run "a read" nvfs_try read --file /mnt/f
t_check "Reads line with rw stats" t_lines stats '^Reads[[:space:]]+: n=1 ok=1 err=[0-9]+ readMiB=[0-9]+ io_state_err=[0-9]+'
t_check "Ops are 0 when idle" t_lines stats '^Ops[[:space:]]+: Read=0 Write=0 BatchIO=0$'
t_check "Batches line with rw stats" t_lines stats '^Batches[[:space:]]+: n=[0-9]+ ok=[0-9]+ err=[0-9]+ Avg-Submit-Latency\(usec\)=[0-9]+$'
echo 1 >$t_proc/stats 2>/dev/null
t_unload
t_done
