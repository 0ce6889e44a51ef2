#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --trace
# vm-more: --trace --topology ports --iommu on
# kernels: 7
# core: 7
# time: 70
# time-long: 200
# Guards P2PDMA carriers: the kernel's own nvme driver moves a file into GPU memory and out of
# it, for a program that knows the plain ABI only.
# Fails when GPU memory was not poisoned before, when its content afterwards, seen from
# outside the guest, is not the file's (poison around it included), when the controllers moved
# one byte more or less than asked for over the card's BAR, or when the module says otherwise.
. "$(dirname "$0")/lib.sh"

# t_value NAME: of the module's own proc file
t_value() { sed -n "s/^$1: //p" $t_proc/opengds; }

quick=--quick
[ -z "${OPENGDS_LONG:-}" ] || t_debug || quick=
T_STOCK=y t_load
t_check "the nvme driver has no hook" test ! -e /sys/module/nvme/parameters/nvfs_requests
t_check "auto takes P2PDMA pages" grep -q "^p2pdma: used " $t_proc/opengds
t_check "... and says why not the hook" grep -q "^driver nvme: not attached: " $t_proc/opengds
for fs in ext4 xfs; do
	t_mkfs $fs 0 /mnt
	nvfs_direct --dir /mnt $quick >"$t_tmp/out" 2>&1 || t_bad "nvfs_direct on $fs"
	sed "s/^/  $fs: /" "$t_tmp/out"
	t_umount /mnt
done
t_check "no byte by a CPU, as the module has it" \
	test "$(t_value cpu_read_bytes) $(t_value cpu_write_bytes)" = "0 0"
# each case once on each file system
all=163790848
[ -z "$quick" ] || all=52633600
t_check "the drive's bytes are all of them" test \
	"$(t_value p2pdma_read_bytes) $(t_value p2pdma_write_bytes)" = "$all $all"
t_unload

# t_try WANT REGEX: a mapping's own choice; no byte may go by a CPU
t_try() {
	local out
	out=$(nvfs_try read --file /mnt/f --size 1M --seed 5 --direct-only --carriers "$1" 2>&1)
	if grep -qE "$2" <<<"$out"; then t_ok "a mapping asks for $1: $2"; else t_bad "$1: $out"; fi
}

T_STOCK=y t_load
t_mkfs ext4 0 /mnt
nvfs_copy make /mnt/f 1M 5 || t_fail "cannot make the file"
t_try auto "^CARRIERS p2pdma"
t_try shadow "^ERR EOPNOTSUPP"
t_try shadow "^CARRIERS shadow: .*by the mapping's owner"
t_unload

# a hooked driver is no hindrance for who wants them
if t_hook_there; then
	T_NVFS=carriers=p2pdma t_load
	t_mkfs ext4 0 /mnt
	nvfs_direct --dir /mnt --quick >"$t_tmp/out" 2>&1 || t_bad "nvfs_direct, hooked driver"
	sed "s/^/  hooked: /" "$t_tmp/out"
	t_check "the hook moved none of it" test "$(cat /sys/module/nvme/parameters/nvfs_requests)" = 0
	t_unload
fi
t_done
