#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12 debug
# time: 20
# Guards raw block devices whose page cache is dirty or filled: a read sees what was written
# through the cache and has not reached the drive, a write is seen by who reads through the
# cache afterwards and is not overwritten by older dirty pages; also by another device node.
# Fails when GPU memory or the cache has the older bytes.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
dev=$(t_drive 0)
for s in 5 6 7; do nvfs_copy make "$t_tmp/p$s" 1M $s || t_fail "cannot make a file"; done
# another name of the same device
mknod "$t_tmp/other" b $((0x$(stat -c %t "$dev"))) $((0x$(stat -c %T "$dev"))) || t_fail "mknod"
exec 6<>"$dev"	# closing the last one would write the cache back
t_written() { awk '{ print $7 }' "/sys/block/${dev##*/}/stat"; }
# t_dirty SEED: through the cache, and it stays there
t_dirty() {
	local before
	before=$(t_written)
	dd if="$t_tmp/p$1" of="$dev" bs=1M conv=notrunc,nocreat status=none || t_fail "dd to $dev"
	[ "$(t_written)" = "$before" ] || t_say "  (the kernel has written some of it back already)"
}
t_cached() { dd if="$dev" of="$t_tmp/q" bs=1M count=1 status=none; }

t_dirty 5
out=$(nvfs_try read --file "$dev" --size 1M --seed 5 --direct-only)
t_check "a read sees dirty pages" grep -q "^GPU pattern" <<<"$out"
t_dirty 6
out=$(nvfs_try read --file "$t_tmp/other" --size 1M --seed 6 --direct-only)
t_check "by another node as well" grep -q "^GPU pattern" <<<"$out"

t_cached
out=$(nvfs_try write --file "$dev" --size 1M --seed 8 --direct-only)
t_check "a write over cached pages" grep -q "^OK 1048576" <<<"$out"
t_cached
t_run "... is what the cache has afterwards" nvfs_copy check "$t_tmp/q" 0 1M 8
t_dirty 7
out=$(nvfs_try write --file "$t_tmp/other" --size 1M --seed 9 --direct-only)
t_check "a write over dirty pages" grep -q "^OK 1048576" <<<"$out"
sync
echo 3 >/proc/sys/vm/drop_caches
t_cached
t_run "... is what the drive has after all" nvfs_copy check "$t_tmp/q" 0 1M 9
exec 6>&-
t_unload
t_done
