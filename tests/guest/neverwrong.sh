#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# time: 60
# Guards that every byte is right on ext4 and XFS whatever the file system does with it:
# holes, unwritten extents, the file's end, holes inside a 4-KiB block, inline data,
# data=journal, files without extents, reflinks; and that the CPU moves no byte that a
# drive can. Fails when a byte of GPU memory, of the file or beside them is another, or
# when what the CPU moved is not what it had to.
. "$(dirname "$0")/lib.sh"

# p2pdma_right.sh runs all of this over P2PDMA pages, which need no byte written again
[ "${T_STOCK:-}" = y ] || t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
size=192K

# t_right TEXT CPU read|write FILE [SIZE]
t_right() { t_run "$1" nvfs_right "$3" --file "$4" --size "${5:-$size}" --cpu "$2"; }

# t_ext4 [MKFS-OPTIONS]: a fresh one on drive 0, on /mnt; T_OPTS: how it is mounted
t_ext4() {
	t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
	mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 "$@" "$(t_drive 0)" 64M ||
		t_fail "mkfs.ext4 $*"
	mount -o "noinit_itable,${T_OPTS:-rw}" "$(t_drive 0)" /mnt || t_fail "mount ext4 $*"
	t_mounts=(/mnt)
}

t_load
t_ext4
nvfs_copy make /mnt/f $size 1
t_right "ext4: data, read" none read /mnt/f
t_right "ext4: data, write" none write /mnt/f
nvfs_copy make /mnt/large 20M 1
t_right "ext4: more than one window, read" none read /mnt/large 20M
before=$(t_stat "Sparse Reads" pages)
truncate -s $size /mnt/hole
t_right "ext4: hole, read" 192K read /mnt/hole
t_check "its blocks are counted" test $(($(t_stat "Sparse Reads" pages) - before)) = 48
t_right "ext4: hole, read in parts" all read /mnt/hole
t_right "ext4: hole, write" none write /mnt/hole
fallocate -l $size /mnt/unwritten
t_right "ext4: unwritten, read" all read /mnt/unwritten
t_right "ext4: unwritten, write" none write /mnt/unwritten
t_right "ext4: was unwritten, read" none read /mnt/unwritten
nvfs_copy make /mnt/mixed $size 1
fallocate -p -o 16K -l 4K /mnt/mixed
fallocate -p -o 60K -l 12K /mnt/mixed
t_right "ext4: holes between data, read" 16K read /mnt/mixed
t_right "ext4: holes between data, in parts" some read /mnt/mixed
truncate -s 19M /mnt/large
fallocate -p -o 15M -l 2M /mnt/large
t_right "ext4: a hole over two windows, and the end" 2M read /mnt/large 20M
head -c 100001 /mnt/f >/mnt/tail
t_right "ext4: end inside a sector" none read /mnt/tail
truncate -s 150001 /mnt/tail
t_right "ext4: end inside a hole" some read /mnt/tail
: >/mnt/empty
t_right "ext4: empty" none read /mnt/empty
truncate -s 64K /mnt/hole2
t_expect "ext4: hole, direct only" ENOTBLK "see dmesg" nvfs_try read --file /mnt/hole2 --direct-only
t_umount /mnt

t_ext4 -b 1024
nvfs_copy make /mnt/f $size 1
fallocate -p -o 1K -l 1K /mnt/f
fallocate -p -o 6K -l 4K /mnt/f
fallocate -p -o 15K -l 1K /mnt/f
t_right "ext4 of 1-KiB blocks: holes inside blocks, read" 6K read /mnt/f
t_right "ext4 of 1-KiB blocks: write" none write /mnt/f
t_umount /mnt

t_ext4 -O inline_data -I 256
printf 'inline' >/mnt/f
sync
t_right "ext4: inline data, read" 6 read /mnt/f 4K
t_right "ext4: inline data, write" any write /mnt/f
# it has grown out of its inode, and its data is there until it is written back, which the kernel
# does by itself after 30 seconds: a slow machine is not to get there
printf 'inline' >/mnt/grown
sync
writeback=$(</proc/sys/vm/dirty_writeback_centisecs)
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
head -c $size /dev/zero >>/mnt/grown
for way in read write; do
	t_expect "ext4: grown out of its inode, $way, direct only" EOPNOTSUPP "see dmesg" \
		nvfs_try $way --file /mnt/grown --direct-only
done
echo "$writeback" >/proc/sys/vm/dirty_writeback_centisecs
t_right "ext4: grown out of its inode, read" none read /mnt/grown
t_umount /mnt

# the mark has no meaning beside delayed allocation
T_OPTS=nodelalloc t_ext4
nvfs_copy make /mnt/journal $size 1
t_right "ext4: before chattr +j, read" none read /mnt/journal
chattr +j /mnt/journal || t_fail "chattr +j"
t_right "ext4: chattr +j, read" all read /mnt/journal
t_right "ext4: chattr +j, write" all write /mnt/journal
t_expect "ext4: chattr +j, direct only" EOPNOTSUPP "see dmesg" \
	nvfs_try write --file /mnt/journal --direct-only
t_umount /mnt

T_OPTS=data=journal t_ext4
nvfs_copy make /mnt/f $size 1
t_right "ext4: data=journal, read" all read /mnt/f
t_right "ext4: data=journal, write" all write /mnt/f
t_umount /mnt

# says that it does direct I/O, and writes into a hole through the page cache
t_ext4 -O ^extent,^64bit
truncate -s $size /mnt/f
t_right "ext4 without extents: hole, write" 192K write /mnt/f
t_check "which was written again, if the carriers are host pages" test \
	"$(sed -n 's/^rewrites: //p' $t_proc/opengds)" = "${t_rewrites:-1}"
t_right "ext4 without extents: data, write" none write /mnt/f
truncate -s $size /mnt/f2
t_expect "ext4 without extents: hole, direct only" ENOTBLK "see dmesg" \
	nvfs_try write --file /mnt/f2 --direct-only
# data, a hole, data: refused, but no byte of the carriers may be left where data was
nvfs_copy make /mnt/f3 $size 1
fallocate -p -o 64K -l 64K /mnt/f3
nvfs_copy make /mnt/want $size 9
t_expect "ext4 without extents: data around a hole, direct only" ENOTBLK "see dmesg" \
	nvfs_try write --file /mnt/f3 --size $size --seed 9 --direct-only
t_check "what was refused is written all the same" cmp /mnt/f3 /mnt/want
t_umount /mnt

mkfs.xfs -q -f -K -d size=320m "$(t_drive 0)" || t_fail "mkfs.xfs"
t_mount xfs "$(t_drive 0)" /mnt
nvfs_copy make /mnt/f $size 1
t_right "xfs: data, read" none read /mnt/f
cp --reflink=always /mnt/f /mnt/clone
t_right "xfs: reflink, write" none write /mnt/clone
t_run "xfs: and the other file is as it was" nvfs_copy check /mnt/f 0 $size 1
truncate -s $size /mnt/hole
t_right "xfs: hole, read" all read /mnt/hole
fallocate -l $size /mnt/unwritten
t_right "xfs: unwritten, read" all read /mnt/unwritten
t_right "xfs: unwritten, write" none write /mnt/unwritten
t_umount /mnt

t_right "raw drive, write" none write "$(t_drive 0)"
t_right "raw drive, read" none read "$(t_drive 0)"
t_unload
t_done
