#!/bin/bash
# SPDX-License-Identifier: MIT
# vm: --topology ports --cpu max
# kernels: 6.12 7
# time: 60
# Guards that P2PDMA carriers are refused with the true reason, before a byte moves for who asks
# for direct only, and that the CPU moves the bytes right for all others: a kernel without
# CONFIG_PCI_P2PDMA (where auto takes the hook), a BAR that is mapped write-combined, a pair of
# functions that the kernel does not allow (two root ports of a CPU that is not on its list),
# carriers=shadow; and that a hooked driver goes first, unless carriers=p2pdma says otherwise.
# Fails when a reason is another, or a byte.
. "$(dirname "$0")/lib.sh"

t_says() { grep -qE -- "$1" $t_proc/opengds; }

# t_refused TEXT REGEX: direct only fails, the reason is told, and by CPU it is right
t_refused() {
	local out
	t_expect "$1: direct only" EOPNOTSUPP "(see dmesg|no storage driver)" \
		nvfs_try read --file /mnt/f --size 1M --buffer 1M --direct-only
	dmesg | tail -n 20 | grep -qE -- "P2PDMA: .*$2" || t_bad "$1: the log does not say why"
	t_says "^p2pdma (not used|refused .* times): .*$2" || t_bad "$1: the proc file does not say why"
	out=$(nvfs_try read --file /mnt/f --size 1M --buffer 1M --seed 5 2>&1)
	t_check "$1: right by CPU" grep -q "^GPU pattern" <<<"$out"
}

t_direct() {
	local out
	out=$(nvfs_try read --file /mnt/f --size 1M --buffer 1M --seed 5 --direct-only 2>&1)
	grep -q "^GPU pattern" <<<"$out" || { t_say "$out"; return 1; }
}

# t_start T_STOCK T_SIM T_NVFS
t_start() {
	T_STOCK=$1 T_SIM=$2 T_NVFS=$3 t_load
	t_mkfs ext4 0 /mnt
	nvfs_copy make /mnt/f 1M 5 || t_fail "cannot make the file"
}

t_check "an unknown word for carriers" eval \
	'! insmod "$OPENGDS_BUILD/nvidia-fs.ko" carriers=what 2>/dev/null'
if [ "$OPENGDS_KERNEL" = 6.12 ]; then
	t_start n "" ""
	t_check "auto takes the hook" t_direct
	t_check "... and says so" t_says "^driver nvme: attached"
	t_check "... and why nothing else" t_says "^p2pdma: not used: .*CONFIG_PCI_P2PDMA"
	t_unload
	t_start n "" carriers=p2pdma
	t_refused "p2pdma alone" "CONFIG_PCI_P2PDMA"
	t_unload
	t_start y "" ""
	t_refused "no hook either" "CONFIG_PCI_P2PDMA"
	t_unload
	t_done
fi
t_start y wc=1 ""
t_refused "write-combined BAR" "write-combined"
t_unload
t_start y "" ""
t_refused "two root ports, CPU not on the list" "no peer-to-peer transfer"
t_unload
t_start y "" carriers=shadow
t_refused "carriers=shadow" "carriers=shadow"
t_unload
t_start n "" ""
t_check "hooked driver: auto takes the hook" t_direct
t_check "... and says so" t_says "^p2pdma: not used: .*has the hook"
t_unload
t_start n "" carriers=p2pdma
t_refused "hooked driver, carriers=p2pdma" "no peer-to-peer transfer"
t_unload
t_done
