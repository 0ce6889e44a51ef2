#!/bin/bash
# SPDX-License-Identifier: MIT
# time: 20
# Guards BATCH_IO: 1 to 256 entries, all checked before one is submitted, a refused batch
# moves nothing and keeps nothing, each entry has its own code and its own fence, no entry
# reads what its fd may not; and its counters. Fails row by row, each named.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt
echo 1 >/sys/module/nvidia_fs/parameters/rw_stats_enabled
ok=$(t_stat Batches ok) err=$(t_stat Batches err) n=$(t_stat Batches n)
nvfs_batch --dir /mnt >"$t_tmp/out" 2>&1 || t_bad "nvfs_batch"
sed 's/^/  /' "$t_tmp/out"
t_check_pins
# 8 batches of the client go through, 9 entries and 6 calls are refused
t_check "stats: Batches ok" test "$(t_stat Batches ok)" = $((ok + 8))
t_check "stats: Batches err" test "$(t_stat Batches err)" = $((err + 15))
t_check "stats: Batches n" test "$(t_stat Batches n)" = $((n + 23))
t_check "stats: Ops are 0 when idle" \
	grep -qE '^Ops[[:space:]]+: Read=0 Write=0 BatchIO=0$' $t_proc/stats
t_unload
t_done
