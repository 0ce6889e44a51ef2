#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# time: 40
# time-long: 60
# long-only: make check has two minutes for the whole module
# Guards that every byte is right on file systems that look at the pages, or have no hooked
# drive: btrfs with checksums, compression and neither, subvolumes, overlayfs, tmpfs, a drive
# without the hook. All of it goes by CPU, and "direct only" is refused before a byte moves.
# Fails when a byte of GPU memory, of the file or beside them is another.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
size=192K

# t_both TEXT FILE: a write and a read
t_both() {
	t_run "$1, write" nvfs_right write --file "$2" --size $size --cpu all
	t_run "$1, read" nvfs_right read --file "$2" --size $size --cpu all
}

# t_refused TEXT FILE: direct only is refused, and nothing moves
t_refused() {
	local sum
	sum=$(head -c $size "$2" | sha256sum)
	t_expect "$1, direct only" EOPNOTSUPP "OPNOTSUPP" nvfs_try write --file "$2" --direct-only
	t_check "$1, and nothing moved" test "$(head -c $size "$2" | sha256sum)" = "$sum"
}

# t_file TEXT DEVICE: a file on a fresh ext4 there
t_file() {
	mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 "$2" 32M || t_fail "mkfs.ext4 $2"
	t_mount ext4 "$2" /mnt
	nvfs_copy make /mnt/f $size 1
	t_both "$1" /mnt/f
	t_umount /mnt
}

t_load
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
drive=$(t_drive 0)

if command -v mkfs.btrfs >/dev/null && mkfs.btrfs -q -f -K -b 256M "$drive"; then
	t_mount btrfs "$drive" /mnt
	nvfs_copy make /mnt/f $size 1
	t_both "btrfs" /mnt/f
	t_refused "btrfs" /mnt/f
	truncate -s $size /mnt/hole
	t_run "btrfs, hole" nvfs_right read --file /mnt/hole --size $size --cpu all
	touch /mnt/nocow /mnt/small
	chattr +C /mnt/nocow || t_fail "chattr +C"
	nvfs_copy make /mnt/nocow $size 1
	t_both "btrfs nodatacow" /mnt/nocow
	chattr +c /mnt/small || t_fail "chattr +c"
	head -c $((192 * 1024)) /dev/zero >/mnt/small
	sync
	t_run "btrfs compressed, read" nvfs_right read --file /mnt/small --size $size --cpu all
	t_both "btrfs compressed" /mnt/small
	# a subvolume: fstat tells other numbers than the inode and the super block have
	btrfs subvolume create /mnt/sub >/dev/null || t_fail "btrfs subvolume create"
	nvfs_copy make /mnt/sub/f $size 1
	t_both "btrfs subvolume" /mnt/sub/f
	t_check "btrfs counted no error" test \
		"$(btrfs device stats /mnt | awk '{ n += $2 } END { print n }')" = 0
	t_umount /mnt
else
	t_bad "no btrfs here (btrfs-progs)"
fi

# overlayfs on the hooked drive: fstat tells the numbers of the layer or of its own
mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 "$drive" 64M || t_fail "mkfs.ext4 $drive"
t_mount ext4 "$drive" /mnt
mkdir -p /mnt/lower /mnt/upper /mnt/work "$t_tmp/over"
nvfs_copy make /mnt/lower/f $size 1
if mount -t overlay -o "lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work" overlay \
	"$t_tmp/over"; then
	t_mounts=("$t_tmp/over" "${t_mounts[@]}")
	t_run "overlayfs, read of the lower file" nvfs_right read --file "$t_tmp/over/f" \
		--size $size --cpu all
	t_both "overlayfs" "$t_tmp/over/f"
	t_refused "overlayfs" "$t_tmp/over/f"
else
	t_bad "no overlayfs here"
fi
t_umount "$t_tmp/over"
t_umount /mnt

mkdir -p "$t_tmp/ram"
mount -t tmpfs tmpfs "$t_tmp/ram"
t_mounts=("$t_tmp/ram")
nvfs_copy make "$t_tmp/ram/f" $size 1
t_both "tmpfs" "$t_tmp/ram/f"
t_unload

# the same drive without the hook
T_STOCK=y T_NVFS=carriers=shadow t_load
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
t_file "drive without the hook" "$(t_drive 0)"
t_unload
t_done
