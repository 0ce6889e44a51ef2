#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace --nvme-opt mdts=11
# kernels: 6.12 7 debug
# time: 120
# Guards kernel/nvme-hook: large commands over memory in 64-KiB pieces, 8 MiB as SGLs (129
# runs when one starts inside a piece, more than the driver's own list holds) and 4 MiB as
# PRPs over several list pages (QEMU's drive takes no more than 1024 PRPs); registrations
# that come and go while the drive serves the host. Fails when commands were cut smaller, a
# byte went elsewhere (as in direct.sh), a request was refused, or the host's data is wrong.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
param=/sys/module/nvme/parameters
mib=32 loads=8
! t_short || mib=16 loads=3
export GPU_SIM_SCATTER=64k

t_load
t_mkfs ext4 0 /mnt
dev=$(t_drive 0)
queue=/sys/block/${dev##*/}/queue
nvfs_copy make /mnt/f ${mib}M 7 || t_fail "make a file"
sync

# lists THRESHOLD KIB: all of the file each way, in commands of KIB
lists() {
	local how before n least=$((mib * 1024 / $2))
	echo "$1" >$param/sgl_threshold
	echo "$2" >"$queue/max_sectors_kb" || t_fail "$queue: no commands of $2 KiB"
	for how in read write; do
		before=$(<$param/nvfs_requests)
		t_run "$how ${mib}M, sgl_threshold $1" nvfs_copy $how --route nvfs --file /mnt/f \
			--size ${mib}M --buffer 16M --seed 7
		n=$(($(<$param/nvfs_requests) - before))
		# extents of the file and pieces of the module end commands, too
		t_check "  in $n commands" test $n -ge $least -a $n -le $((least + 6))
	done
}
lists 0 4096
lists 32768 8192

# loading registers, unloading unregisters
head -c 8M /dev/urandom >"$t_tmp/a"
(
	until [ -e "$t_tmp/stop" ]; do
		dd if="$t_tmp/a" of=/mnt/host bs=64k oflag=direct conv=notrunc status=none || exit 1
		dd if=/mnt/host of="$t_tmp/b" bs=64k iflag=direct status=none || exit 1
		cmp "$t_tmp/a" "$t_tmp/b" || exit 1
	done
) &
host=$!
for i in $(seq $loads); do
	rmmod nvidia-fs || t_bad "rmmod $i"
	t_insmod nvidia-fs
	t_wait 10 test -c /dev/nvidia-fs0 || t_bad "insmod $i"
done
touch "$t_tmp/stop"
t_check "host I/O while providers come and go" wait $host
t_run "read ${mib}M after that" nvfs_copy read --route nvfs --file /mnt/f --size ${mib}M \
	--buffer 16M --seed 7
t_check "no request refused" test "$(<$param/nvfs_errors)" = 0
t_unload
t_done
