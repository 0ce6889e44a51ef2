#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 7 debug
# time: 40
# Guards that a request that asks for direct only never passes for bytes which no drive moved:
# holes, unwritten extents, inline data, data=journal, tmpfs, loop and a drive without the
# hook. It must fail (or have the right bytes), and GPU memory and file keep no wrong content.
# Fails when success is reported for a block that was not DMA-mapped. What happens without
# direct only is neverwrong's.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_mkfs ext4 0 /mnt

# t_never FILE TEXT: a read of FILE's first 64 KiB fails, or has the file's bytes
t_never() {
	local out
	out=$(nvfs_try read --direct-only --file "$1" --seed "${3:-1}" 2>&1)
	case $out in
	"ERR "*) t_ok "$2: refused: $(cut -d' ' -f2 <<<"${out%%$'\n'*}")" ;;
	"OK "*GPU\ pattern*) t_ok "$2: right bytes" ;;
	*) t_bad "$2: passed as data: $out" ;;
	esac
}

truncate -s 1M /mnt/hole
t_never /mnt/hole "hole"
fallocate -l 1M /mnt/unwritten
t_never /mnt/unwritten "unwritten extent"
nvfs_copy make /mnt/mixed 64K 1
fallocate -p -o 16K -l 4K /mnt/mixed
t_never /mnt/mixed "hole inside data"
before=$(t_stat Reads err)
t_never /mnt/hole "hole again"
t_check "the failure is counted" test "$(t_stat Reads err)" -gt "$before"

# t_never_written FILE TEXT: a write fails and leaves the file's bytes, or is right
t_never_written() {
	local out sum
	sum=$(sha256sum <"$1")
	out=$(nvfs_try write --direct-only --file "$1" --seed 9 2>&1)
	sync
	echo 3 >/proc/sys/vm/drop_caches
	case $out in
	"ERR "*)
		if [ "$(sha256sum <"$1")" = "$sum" ]; then
			t_ok "$2: refused, file unchanged"
		else
			t_bad "$2: refused, but the file changed"
		fi
		;;
	*)
		nvfs_copy check "$1" 0 64K 9 2>"$t_tmp/why" && { t_ok "$2: right bytes"; return; }
		t_bad "$2: passed as written: $out $(cat "$t_tmp/why")"
		;;
	esac
}

nvfs_copy make /mnt/journal 64K 1
chattr +j /mnt/journal 2>/dev/null && {
	t_never /mnt/journal "data=journal, read"
	t_never_written /mnt/journal "data=journal, write"
}
t_umount /mnt

dev=$(t_drive 0)
mkfs.ext4 -q -F -O inline_data -I 256 "$dev"
t_mount ext4 "$dev" /mnt
printf 'inline' >/mnt/inline
sync
t_never /mnt/inline "inline data"
t_umount /mnt

mkdir -p "$t_tmp/ram"
mount -t tmpfs tmpfs "$t_tmp/ram"
t_mounts=("$t_tmp/ram")
nvfs_copy make "$t_tmp/ram/f" 64K 1
t_never "$t_tmp/ram/f" "tmpfs, read"
t_never_written "$t_tmp/ram/f" "tmpfs, write"
t_umount_all

# a file on a loop device: not an NVMe function at all
truncate -s 64M "$t_tmp/img"
modprobe -q loop
if loop=$(losetup -f --show "$t_tmp/img" 2>/dev/null); then
	mkfs.ext4 -q -F "$loop"
	t_mount ext4 "$loop" /mnt
	nvfs_copy make /mnt/f 64K 1
	t_never /mnt/f "loop device, read"
	t_never_written /mnt/f "loop device, write"
	t_umount /mnt
	losetup -d "$loop"
else
	t_say "  (no loop devices here: a file on one was not tried)"
fi
t_unload

# the same drive without the hook
T_STOCK=y T_NVFS=carriers=shadow t_load
mkfs.ext4 -q -F "$(t_drive 0)"
t_mount ext4 "$(t_drive 0)" /mnt
nvfs_copy make /mnt/f 64K 1
t_never /mnt/f "drive without the hook, read"
t_never_written /mnt/f "drive without the hook, write"
t_unload
t_done
