#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --cpus 2
# kernels: debug
# time: 60
# Guards that mappings do not meet: no lock of ours that two of them share is taken on the way
# of a request. Counts acquisitions of each lock of the module (LOCK_STAT) while 8 threads do
# 1600 requests on 8 mappings, and compares with a run of 160: a lock on the way is taken
# 1440 times more.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
[ -e /proc/lock_stat ] || t_fail "this kernel has no LOCK_STAT: see vm/kernels/debug.config"

# t_taken REQUESTS: "LOCK ACQUISITIONS" of each lock of ours, in all threads
t_taken() {
	echo 0 >/proc/lock_stat
	"$t_top/build/host/bench/nvfs_threads" --file /mnt/f --threads 8 --requests "$1" ||
		t_bad "nvfs_threads"
	# acquisitions are the eighth number behind the name
	sed -n 's/^ *\(&*[a-z_>.-]*[^:]*\): *\([0-9].*\)$/\1 \2/p' /proc/lock_stat |
		awk '{ name = $1; sub(/-[WR]$/, "", name); n[name] += $9 }
			END { for (i in n) print i, n[i] }' | sort
}

t_load
t_mkfs ext4 0 /mnt
echo 1 >/proc/sys/kernel/lock_stat
t_taken 10 >/dev/null	# what is taken once: caches, the first look-ups
t_taken 20 >"$t_tmp/few"
t_taken 200 >"$t_tmp/many"
echo 0 >/proc/sys/kernel/lock_stat

# the locks of the mappings themselves are seen on the way, so the counting works
t_many=$(awk '$1 == "&m->lock" { print $2 }' "$t_tmp/many")
t_check "each request takes its mapping's lock (${t_many:-0} times)" test "${t_many:-0}" -ge 3200
for lock in $(sed -n 's/^\(static \)\?DEFINE_[A-Z_]*(\(nvfs_[a-z_]*\)).*/\2/p' \
	"$t_top"/kernel/nvidia-fs/*.c | sort -u); do
	few=$(awk -v l="$lock" '$1 == l { print $2 }' "$t_tmp/few")
	many=$(awk -v l="$lock" '$1 == l { print $2 }' "$t_tmp/many")
	t_check "$lock: ${few:-0} times for 160 requests, ${many:-0} for 1600" \
		test $((${many:-0} - ${few:-0})) -lt 144
done
t_umount /mnt
t_unload
t_done
