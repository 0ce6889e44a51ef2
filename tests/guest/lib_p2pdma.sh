# SPDX-License-Identifier: MIT
# What the tests of refused P2PDMA carriers share; sourced after lib.sh.
# shellcheck shell=bash disable=SC2154 # its variables

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
