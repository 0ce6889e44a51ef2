#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --drive blkdebug:tests/fixtures/bad-sectors.conf:size=256M
# expect-log: nvme.*(sct|sc|I/O Cmd|I/O Error)
# expect-log: (critical|I/O) .*error, dev nvme
# kernels: 6.12 7 debug
# time: 15
# Guards that a drive's error is reported as such: the request fails with the block
# layer's errno, the message says that the drive failed and where to look, and other
# ranges go on working. Fails when the error passes as data.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
t_load
t_wait 20 t_drive 0 >/dev/null || t_fail "no drive"
dev=$(t_drive 0)

# tests/fixtures/bad-sectors.conf: reads that cover 64 MiB and writes that cover 128 MiB fail
t_expect "read of a bad sector" "(EIO|ENODATA)" "the drive failed the read; see dmesg" \
	nvfs_try read --file "$dev" --file-off 64M --size 64K
t_expect "a large read over it" "(EIO|ENODATA)" "the drive failed the read" \
	nvfs_try read --file "$dev" --file-off 60M --size 8M
t_expect "write to a bad sector" "(EIO|ENODATA|EREMOTEIO)" "the drive failed the write; see dmesg" \
	nvfs_try write --file "$dev" --file-off 128M --size 64K
out=$(nvfs_try write --file "$dev" --file-off 8M --size 64K --seed 3)
t_check "other ranges can be written" grep -q "^OK 65536" <<<"$out"
out=$(nvfs_try read --file "$dev" --file-off 8M --size 64K --seed 3)
t_check "and read back right" grep -q "^GPU pattern" <<<"$out"
t_unload
t_done
