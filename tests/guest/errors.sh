#!/bin/bash
# SPDX-License-Identifier: MIT
# expect-log: I/O error, dev nvme0n1, sector
# kernels: 6.1 6.12 7 debug
# time: 40
# Guards that each mistake has its own errno and a message with cause and next step: no
# module, wrong version, no node, file without O_DIRECT, read-only and write-only fd,
# directory, closed fd, range past the buffer, disk full, no hook, pin refused.
# Fails when the errno or the text is another, or when a refused request moved bytes.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"

t_expect "no module" ENODEV "/proc/driver/nvidia-fs/version: ENOENT: .*not loaded.*modprobe nvidia-fs" \
	nvfs_try read --file /etc/hostname

t_load
t_mkfs ext4 0 /mnt 96M
nvfs_copy make /mnt/f 1M 1 || t_fail "cannot make /mnt/f"

mkdir -p "$t_tmp/proc" "$t_tmp/dev"
for v in 1.30 2.11 3.0; do
	echo "version: $v" >"$t_tmp/proc/version"
	t_expect "module version $v" EPROTONOSUPPORT "version $v, wanted is 2.12 or a later 2.x; unload" \
		nvfs_try read --file /mnt/f --proc "$t_tmp/proc"
done
echo "garbage" >"$t_tmp/proc/version"
t_expect "no version at all" EPROTO "\"garbage\" is no version" \
	nvfs_try read --file /mnt/f --proc "$t_tmp/proc"
t_expect "no node" ENOENT "nvidia-fs0: ENOENT: .*node is missing; .*devtmpfs" \
	nvfs_try read --file /mnt/f --dev "$t_tmp/dev"
major=$(awk '$2 == "nvidia-fs" { print $1 }' /proc/devices)
mknod "$t_tmp/dev/nvidia-fs0" c "$major" 0
t_expect "one node of several" ENOENT "nvidia-fs1: ENOENT: .*node is missing" \
	nvfs_try read --file /mnt/f --dev "$t_tmp/dev"

t_expect "file without O_DIRECT" EINVAL "opened without O_DIRECT; open it with O_DIRECT" \
	nvfs_try read --file /mnt/f --no-direct
t_expect "write through a read-only fd" EBADF "open for reading only; open it with O_RDWR" \
	nvfs_try write --file /mnt/f --access ro
t_expect "read through a write-only fd" EBADF "open for writing only; open it with O_RDWR" \
	nvfs_try read --file /mnt/f --access wo
t_expect "directory" EISDIR "it is a directory; name a regular file" \
	nvfs_try read --file /mnt --access ro --no-direct
t_expect "closed fd" EBADF "descriptor is not open; open the file" \
	nvfs_try read --file /mnt/f --closed
t_expect "pipe" EINVAL "neither a regular file nor a block device" \
	nvfs_try read --file /dev/zero --access ro --no-direct
t_expect "range past the buffer" EINVAL "reaches past the GPU buffer .*of 65536\); ask for less" \
	nvfs_try read --file /mnt/f --size 128K --buffer 64K
t_expect "offset past the buffer" EINVAL "reaches past the GPU buffer" \
	nvfs_try read --file /mnt/f --size 64K --buffer 128K --gpu-off 68K
t_expect "file offset 512" EINVAL "must be multiples of 4096" \
	nvfs_try read --file /mnt/f --file-off 512
t_expect "host memory in place of GPU memory" EINVAL "pin of .*EINVAL: the GPU driver refused" \
	nvfs_try read --file /mnt/f --host-memory

# the driver's refusals, one for each errno that drivers give
for e in 22:EINVAL 12:ENOMEM 524:ENOTSUPP 16:EBUSY; do
	echo "-1:${e%:*}" >/sys/module/gpu_sim/parameters/fault_get_pages
	t_expect "pin refused" "${e#*:}" "pin of 65536 bytes of GPU memory at 0x.*${e#*:}: " \
		nvfs_try read --file /mnt/f
	case $e in
	22:*) why="a GeForce, of which peers get only what its process lists" ;;
	12:*) why="BAR1 is full: register less" ;;
	*) why="the GPU driver's own lines in this log" ;;
	esac
	t_check "... and the log says who, what, how much, why, and what to do" grep -qE \
		"nvidia-fs: nvfs_try\[[0-9]+\]: MAP: nvidia_p2p_get_pages(_persistent)?\(0x[0-9a-f]+, 65536 bytes\) refused: -${e%:*} \(.*$why" \
		<(dmesg | tac | sed '/opengds-test: begin/q')
done
echo 0 >/sys/module/gpu_sim/parameters/fault_get_pages

# the pin is made, but not for the drive: its requests fail, nothing moves
echo "1:5" >/sys/module/gpu_sim/parameters/fault_dma_map
t_expect "mapping for the drive refused" EIO "EIO" nvfs_try read --file /mnt/f
echo 0 >/sys/module/gpu_sim/parameters/fault_dma_map
t_run "and then it works" nvfs_try read --file /mnt/f --seed 1

# a refused request moves nothing: GPU memory keeps its poison
out=$(nvfs_try read --file /mnt/f --no-direct)
t_check "a refused read leaves GPU memory alone" grep -q "^GPU poison" <<<"$out"

# the file system is full: all but a little is taken
dd if=/dev/zero of=/mnt/rest bs=1M status=none 2>/dev/null
sync
t_expect "disk full" ENOSPC "no space is left on the file system; free some" \
	nvfs_try write --file /mnt/new --size 8M
rm -f /mnt/rest /mnt/new
sync
t_run "and then there is room" nvfs_try write --file /mnt/new --size 8M
t_unload

# the stock driver has no hook
T_STOCK=y T_NVFS=carriers=shadow t_load
t_mount ext4 "$(t_drive 0)" /mnt
t_expect "no storage driver with the hook" EOPNOTSUPP "no storage driver with the nvfs hook is attached .*load the hooked nvme" \
	nvfs_try read --file /mnt/f --direct-only
out=$(nvfs_try read --file /mnt/f --seed 1)
t_check "and by CPU it works" grep -q "^GPU pattern" <<<"$out"
t_unload
t_done
