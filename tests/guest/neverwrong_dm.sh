#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# time: 40
# time-long: 60
# long-only: make check has two minutes for the whole module
# Guards that every byte is right where another driver stands above the hooked one, or none
# below: encryption and a linear map over the hooked drive, loop, SCSI. All of it goes by CPU,
# and "direct only" is refused before a byte moves. Fails when a byte of GPU memory, of the
# file or beside them is another.
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

# t_synced NAME: the mirror's first copy is made
t_synced() { dmsetup status "$1" | grep -q ' 128/128 '; }

# t_dm TEXT NAME TARGET ARGS...: a table over the drive, a file on it, and the device itself
t_dm() {
	local text=$1 name=$2 dev
	shift 2
	dmsetup create --noudevsync "$name" --table "0 $((64 * 2048)) $*" ||
		t_fail "dmsetup create: $*"
	[ "$1" != mirror ] || t_wait 60 t_synced "$name" || t_fail "$name: $(dmsetup status "$name")"
	# nobody makes links in /dev/mapper here
	dev=/dev/$(dmsetup info -c --noheadings -o blkdevname "$name")
	t_file "file on $text" "$dev"
	t_refused "$text" "$dev"
	dmsetup remove --noudevsync --retry "$name" || t_bad "dmsetup remove $name"
}

modprobe -q dm-mod
t_dm "dm-linear over the drive" gdsline linear "$drive" 0
modprobe -q dm-crypt
key=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
t_dm "dm-crypt over the drive" gdscrypt crypt aes-xts-plain64 $key 0 "$drive" 0
t_dm "dm-stripe over the drive" gdsstripe striped 2 128 "$drive" 0 "$drive" 131072
# both halves of a mirror must get a write, from memory that the CPU may read
if modprobe -q dm-mirror; then
	t_dm "dm-mirror over the drive" gdsmirror mirror core 1 1024 2 "$drive" 0 "$drive" 131072
	t_check "both halves of the mirror are equal" cmp -s -n $((64 << 20)) \
		<(dd if="$drive" bs=1M count=64 iflag=direct status=none) \
		<(dd if="$drive" bs=1M skip=64 count=64 iflag=direct status=none)
else
	t_say "  (no dm-mirror here: a mirror was not tried)"
fi

modprobe -q loop
truncate -s 64M "$t_tmp/img"
if loop=$(losetup -f --show "$t_tmp/img"); then
	t_file "loop" "$loop"
	losetup -d "$loop"
else
	t_bad "no loop device here"
fi
# t_scsi: the disk of scsi_debug
t_scsi() {
	local d
	for d in /sys/block/sd*; do
		grep -q scsi_debug "$d/device/model" || continue
		[ -b "/dev/${d##*/}" ] || return 1
		echo "/dev/${d##*/}"
		return 0
	done
	return 1
}

modprobe -q sd_mod
if modprobe -q scsi_debug dev_size_mb=64; then
	t_wait 20 t_scsi >/dev/null || t_fail "scsi_debug made no disk: $(ls /sys/block)"
	sd=$(t_scsi)
	t_both "SCSI disk" "$sd"
	t_file "file on a SCSI disk" "$sd"
	t_wait 20 modprobe -r scsi_debug || t_bad "modprobe -r scsi_debug"
else
	t_say "  (no scsi_debug here: a SCSI disk was not tried)"
fi
t_unload
t_done
