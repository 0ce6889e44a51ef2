#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --nvme 1 --gpus 1 --mem 2G --vram 1G
# core: none
# time: 30
# Guards gdscp and gds_stats where bytes go direct: a copy of a file with a hole and with parts of
# blocks, on ext4 and on XFS, is the file, its whole blocks went direct both ways, and it is read
# back from the drive; what gds_stats tells of a process that reads registered and loose memory
# is nvfs and staged, with slots of GPU memory. Fails when a whole block of a copy went another
# way, when a byte differs, when --require-direct lies on a file system that has no direct way,
# and when a route or the pool is not told.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
tools=$t_top/build/host/tools
PATH=$tools/gdscp:$tools/gds_stats:$tools/gdsio:$PATH
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log CUFILE_ENV_PATH_JSON=$t_tmp/cufile.json
echo '{"profile": {"cufile_stats": 3}}' >"$CUFILE_ENV_PATH_JSON"

# said NAME REGEX: a line of the output matches
said() { t_check "$1: says '$2'" grep -qE -- "$2" "$t_tmp/$1"; }

# copies NAME STATUS ARGUMENTS...
copies() {
	local name=$1 want=$2 status=0
	shift 2
	gdscp "$@" >"$t_tmp/$name" 2>&1 || status=$?
	sed "s/^/  $name: /" "$t_tmp/$name"
	t_check "$name: status $status" [ "$status" = "$want" ]
}

t_load
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	# 8 MiB of data in two parts, a hole of 8 MiB between them, 77 bytes in the last block
	head -c 4194304 /dev/urandom >/mnt/src
	truncate -s 12M /mnt/src
	head -c 4194381 /dev/urandom >>/mnt/src
	sync /mnt/src
	copies $fs 0 --require-direct --verify --slot-mib 2 /mnt/src /mnt/dst
	said $fs '^md5sum Match!!$'
	said $fs '^Read: nvfs: 8388608 .*whole_blocks: 8388608 direct: 8388608 edge: 77 retried: 0$'
	said $fs '^Written: .*whole_blocks: 8388608 direct: 8388608 edge: 77 retried: 0$'
	t_check "$fs: it is the file" cmp /mnt/src /mnt/dst
	t_check "$fs: the hole is one" [ "$(stat -c %b /mnt/dst)" -lt $((10 << 11)) ]
	t_check "$fs: nothing else is there" [ "$(find /mnt -name '.*gdscp*')" = "" ]
	[ $fs = ext4 ] || break
	t_umount /mnt
done
# a file system without a drive: copied, and said
copies tmpfs 3 --require-direct /mnt/src /dev/shm
said tmpfs '^Reason: R-'
t_check "tmpfs: it is the file" cmp /mnt/src /dev/shm/src
rm -f /dev/shm/src

# looked_at NAME OPTIONS...: gdsio reads for a moment, is stopped, and gds_stats looks at it
looked_at() {
	local name=$1 pid
	shift
	gdsio -f /mnt/src -d 0 -w 1 -s 4M -i 64K -I 0 -x 0 -T 60 "$@" >"$t_tmp/gdsio" 2>&1 &
	pid=$!
	t_wait 20 eval "gds_stats -p $pid | grep -q '^Read: ok = [1-9]'" || t_bad "$name: no reads"
	kill -STOP $pid
	gds_stats -p $pid -l 3 >"$t_tmp/$name" 2>&1 || t_bad "$name: gds_stats: status $?"
	gds_stats --prometheus >"$t_tmp/$name.prom" 2>&1 || t_bad "$name: --prometheus: status $?"
	grep -E '^(ROUTE|GPU|FILE) ' "$t_tmp/$name" | sed "s/^/  $name: /"
	kill -CONT $pid
	kill -INT $pid
	wait $pid
}
looked_at registered
said registered '^ROUTE nvfs Read: n=[1-9]'
said registered '^ROUTE bounce Read: n=0 '
said registered '^GPU 0 Read: n=[1-9].* nvfs_MiB='
said registered '^FILE /mnt/src handles=1 Read: n=[1-9]'
said registered.prom '^opengds_route_bytes_total\{pid="[0-9]+",command="gdsio",route="nvfs",op="read"\} [1-9]'
looked_at loose -b
said loose '^ROUTE staged Read: n=[1-9]'
said loose '^GPU : 0 pool_size_MiB : [1-9][0-9]* usage : [0-9]+/[1-9]'
t_umount_all
t_unload
t_done
