#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --nvme 2
# kernels: 7
# core: none
# time: 40
# time-long: 80
# Guards GPU pages in the process through md: level 0, 1 and 10 over two drives, with the kernel's
# own drivers. The library takes route p2pdma there by itself, because the module's own requests do
# not go through md, and strict holds; a file that ends inside a block is right as well. Fails on a
# wrong byte, when a whole block did not go direct, or when a pin stays.
. "$(dirname "$0")/lib.sh"

array=
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log T_STOCK=y
size=$((8 << 20)) odd=5000008
[ -z "${OPENGDS_LONG:-}" ] || size=$((128 << 20)) odd=50000008

# md_set FILE VALUE: of the array
md_set() { echo "$2" >"/sys/block/$array/md/$1" || t_fail "md: $1: $2"; }

# md_make LEVEL: an array of both drives without a superblock, by sysfs: /dev/$array
md_make() {
	local n drive
	array=md_$1
	modprobe -q md-mod && modprobe -q "$1" || t_skip "kernel $OPENGDS_KERNEL has no md $1"
	echo "$array" >/sys/module/md_mod/parameters/new_array || t_fail "md: no new array"
	md_set metadata_version none
	md_set level "$1"
	md_set raid_disks 2
	[ "$1" = raid1 ] || md_set chunk_size $((64 << 10))
	[ "$1" != raid10 ] || md_set layout $((0x102))
	[ "$1" = raid0 ] || md_set component_size $((256 << 10))
	for n in 0 1; do
		drive=$(t_drive $n)
		md_set new_dev "$(cat "/sys/block/${drive##*/}/dev")"
		md_set "dev-${drive##*/}/size" $((256 << 10))
		md_set "dev-${drive##*/}/slot" $n
	done
	[ "$1" = raid0 ] || md_set resync_start none
	md_set array_state active
	t_wait 10 test -b "/dev/$array" || t_fail "no /dev/$array"
}

t_load
t_wait 20 t_drive 1 >/dev/null || t_fail "no second drive"
for level in raid0 raid1 raid10; do
	md_make $level
	mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 -J size=16 "/dev/$array" || t_fail "mkfs.ext4"
	t_mount ext4 "/dev/$array" /mnt
	OPENGDS_STRICT=1 t_run "$level: hello_gds, strict" \
		"$t_top/build/host/examples/hello_gds" /mnt/hello.dat $size
	t_check "$level: all of it by p2pdma" \
		grep -qE "^routes: write p2pdma $size read p2pdma $size\$" "$t_tmp/out"
	OPENGDS_STRICT=1 t_run "$level: an end inside a block" \
		"$t_top/build/host/examples/hello_gds" /mnt/odd.dat $odd
	t_check "$level: whole blocks by p2pdma" \
		grep -qE "^routes: write p2pdma $((odd / 4096 * 4096)) .* read p2pdma" "$t_tmp/out"
	t_umount /mnt
	md_set array_state clear
done
t_check_pins
t_unload
t_done
