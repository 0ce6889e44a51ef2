#!/bin/bash
# SPDX-License-Identifier: MIT
# kernels: 6.12
# vm: --nvme 1 --gpus 1 --mem 2G --vram 1G
# time: 60
# time-long: 300
# Guards that the library holds 30,000 handles and 10,000 pinned buffers of GPU memory at once,
# with OPENGDS_LONG=1 in the guest 100,000 handles and 60,000 buffers, which is what the card has
# room for: each read by one of them into one of them is the right file's and goes direct, also
# when half of them are gone. Fails when a registration fails, on a wrong byte, when a read
# does not go direct, and when memory, a mapping, a descriptor or a pin stays.
. "$(dirname "$0")/lib.sh"

t_hook_there || t_skip "no hooked nvme driver for kernel $OPENGDS_KERNEL"
export CUFILE_LOGFILE_PATH=$t_tmp/cufile.log
handles=30000 buffers=10000
! t_short || handles=5000 buffers=1500
[ -z "${OPENGDS_LONG:-}" ] || handles=100000 buffers=60000
t_load
t_mkfs ext4 0 /mnt
# a pinned buffer takes two mappings
sysctl -qw vm.max_map_count=500000 fs.file-max=1000000 || t_fail "sysctl"
# the files and the programs are known to the kernel
cufile_many /mnt --handles 200 --buffers 8 --reads 10 >"$t_tmp/out" 2>&1 ||
	t_bad "cufile_many with few: $(<"$t_tmp/out")"
free_kb=$(t_free_kb)
cufile_many /mnt --handles $handles --buffers $buffers 2>&1 | sed -u 's/^/  /'
status=${PIPESTATUS[0]}
t_check "cufile_many: status $status" [ "$status" = 0 ]
[ ! -s "$CUFILE_LOGFILE_PATH" ] || head -n 20 "$CUFILE_LOGFILE_PATH" | sed 's/^/  log:/'
t_check_pins
rm -f /mnt/many*
t_check "memory is back" t_memory_back "$free_kb"
[ "$t_failed" = 0 ] || t_say "  lost: ${t_lost:-?} KiB"
t_umount /mnt
t_unload
t_done
